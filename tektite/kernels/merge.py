"""Merge two sorted, consolidated rows objects into one, a little at a time, compacting times on the way.

Promise: however the work is cut into pieces, the result is the sorted, consolidated union of both inputs with each
time t replaced by rep_F(t), F the frontier given at the start: diffs of rows that agree in data and time are summed
exactly (or the merge ends with OVERFLOWN), rows without a diff are gone, and columns that turn out constant are known
as such.

rep_F(t) is the meet over f in F of join(t, f). Times are tuples of integers, a distributive lattice, so that this
equals join(t, meet of F): one *floor* per time column, and each coordinate is clamped by itself.

An open merge is an int64 array of state; Python owns it, the inputs and the room for the result's columns. A block of
rows is merged in phases: *plan* which side each row comes from, *copy* column by column, *fold* rows that became
equal. Inputs may hold equal data at many times. Clamping keeps the order of times unless it collapses a column that
varies and another one behind it varies too; then (`GROUPED`) the rows of equal data are sorted again, whole groups at
a time. Otherwise (`STREAMED`, or `DISTINCT` if no time column varies at all and equal rows can only come from
different sides) rows are merged by data and time.
"""

from __future__ import annotations

import numpy as np

from tektite.kernels.compile import inner, kernel
from tektite.kernels.memory import load, store
from tektite.kernels.pages import address_of, empty_words
from tektite.kernels.rows import address, count, mask, new_head, set_constant, set_stored
from tektite.kernels.sums import carry, overflow_head

RUNNING = 0
DONE = 1
OVERFLOWN = -1

DISTINCT = 0
STREAMED = 1
GROUPED = 2

# The state: first what concerns the whole merge ...
STATUS = 0
ROWS = 1  # rows of the result that are final
TAIL = 2  # 1 if one more row follows them that may still grow (STREAMED only)
DIRTY = 3  # the tail is a sum: it may be zero, or too large
TAKEN_A = 4
TAKEN_B = 5
SIZE_A = 6
SIZE_B = 7
DATA = 8
KEYS = 9
COLUMNS = 10
MODE = 11
COMPARED = 12  # how many columns rows are compared by
COMPARED_DATA = 13  # how many of those are data columns
SCANNED = 14  # rows looked at for columns that vary
FIELDS = 15
# ... then for each column, from FIELDS + PER_COLUMN * j ...
ADDRESS_A = 0
MASK_A = 1
CONSTANT_A = 2
ADDRESS_B = 3
MASK_B = 4
CONSTANT_B = 5
ROOM = 6  # address of the memory for this column of the result; NEEDED until Python has provided it, 0 if constant
LIVE = 7  # whether rows are written there: diff columns that are constant so far are not
FLOOR = 8
REFERENCE = 9  # the column's first word
VARIES = 10
UNFILLED = 11  # rows before this one still lack the constant that a diff column had until it came alive
ABOVE = 12  # the tail's carry
PER_COLUMN = 13
# ... and at last the numbers of the columns to compare.

NEEDED = -1

_LEAST = -(2**63)
_MOST = 2**63 - 1
_BLOCK = 1024
# Arguments that are not literals: for those Numba would compile a function once more.
_FIRST = np.int64(0)
_ALL = np.int64(_MOST)
# Groups up to this long are sorted by insertion.
_SHORT = 16


@inner
def _column(state, j, field):
    return load(state, FIELDS + PER_COLUMN * j + field)


@inner
def _set_column(state, j, field, word):
    store(state, FIELDS + PER_COLUMN * j + field, word)


@inner
def _set_side(state, j, side, head, floor, latest):
    """Describe column j of one input: side is ADDRESS_A or ADDRESS_B. Clamped constants become constants of the
    state.
    """
    base = FIELDS + PER_COLUMN * j + side
    if mask(head, j) != 0 and latest > floor:
        store(state, base, address(head, j))
        store(state, base + 1, -1)
        store(state, base + 2, 0)
    else:
        store(state, base, state + 8 * (base + 2))
        store(state, base + 1, 0)
        store(state, base + 2, floor if mask(head, j) != 0 else max(load(head, 5 + 3 * j), floor))


@inner
def _prepare(state, a, b, nd, nt, nf, frontier, latest_a, latest_b):
    """Write the state of a merge of `a` and `b` that has not begun."""
    columns = nd + nt + nf
    for x in range(FIELDS):
        store(state, x, 0)
    rows_a = count(a)
    rows_b = count(b)
    store(state, SIZE_A, rows_a)
    store(state, SIZE_B, rows_b)
    store(state, DATA, nd)
    store(state, KEYS, nd + nt)
    store(state, COLUMNS, columns)
    if rows_a == 0:
        a = b
        latest_a = latest_b
    elif rows_b == 0:
        b = a
        latest_b = latest_a
    mode = DISTINCT
    compared = 0
    collapsed_a = False
    collapsed_b = False
    for j in range(columns):
        is_time = nd <= j < nd + nt
        floor = _LEAST
        if is_time and frontier.shape[0] > 0:
            floor = frontier[0, j - nd]
            for f in range(1, frontier.shape[0]):
                floor = min(floor, frontier[f, j - nd])
        _set_side(state, j, ADDRESS_A, a, floor, latest_a if j == nd else _MOST)
        _set_side(state, j, ADDRESS_B, b, floor, latest_b if j == nd else _MOST)
        if is_time:
            varies_a = mask(a, j) != 0
            varies_b = mask(b, j) != 0
            if (varies_a and collapsed_a) or (varies_b and collapsed_b):
                mode = GROUPED
            elif (varies_a or varies_b) and mode == DISTINCT:
                mode = STREAMED
            collapsed_a = collapsed_a or (varies_a and floor > _LEAST)
            collapsed_b = collapsed_b or (varies_b and floor > _LEAST)
        constant = (
            _column(state, j, MASK_A) == 0
            and _column(state, j, MASK_B) == 0
            and _column(state, j, CONSTANT_A) == _column(state, j, CONSTANT_B)
        )
        if not constant and j < nd + nt:
            store(state, FIELDS + PER_COLUMN * columns + compared, j)
            compared += 1
        if j < nd:
            store(state, COMPARED_DATA, compared)
        _set_column(state, j, ROOM, 0 if constant and j < nd + nt else NEEDED)
        _set_column(state, j, LIVE, 0 if constant else 1)
        _set_column(state, j, FLOOR, floor)
        _set_column(state, j, REFERENCE, _column(state, j, CONSTANT_A) if constant else 0)
        _set_column(state, j, VARIES, 0)
        _set_column(state, j, UNFILLED, 0)
        _set_column(state, j, ABOVE, 0)
    if compared == 0 and mode == DISTINCT:
        mode = STREAMED  # all rows are equal; planning has nothing to tell them by
    store(state, MODE, mode)
    store(state, COMPARED, compared)
    if rows_a + rows_b == 0:
        store(state, STATUS, DONE)


@inner
def _word(state, j, source):
    """Column j of the input row that `source` names: row i of the first input is i, row k of the second ~k."""
    base = FIELDS + PER_COLUMN * j
    if source >= 0:
        word = load(load(state, base + ADDRESS_A), source & load(state, base + MASK_A))
    else:
        word = load(load(state, base + ADDRESS_B), ~source & load(state, base + MASK_B))
    return max(word, load(state, base + FLOOR))


@inner
def _compare(state, x, y, start, stop):
    """-1, 0 or 1 as input row x is before, equal to or behind y in the compared columns start..stop."""
    names = FIELDS + PER_COLUMN * load(state, COLUMNS)
    for c in range(start, stop):
        j = load(state, names + c)
        left = _word(state, j, x)
        right = _word(state, j, y)
        if left != right:
            return -1 if left < right else 1
    return 0


@inner
def _plan(state, sources, ties, size, compared):
    """Fill sources[:n], at least min(size, rows left) and at most one more, with the next input rows in order.

    Rows equal in all compared columns come in pairs; ties lists where the second of each pair stands.
    Returns (n, number of ties) and moves on in the inputs.
    """
    i = load(state, TAKEN_A)
    k = load(state, TAKEN_B)
    stop_a = load(state, SIZE_A)
    stop_b = load(state, SIZE_B)
    n = 0
    tied = 0
    if compared > 0:
        names = FIELDS + PER_COLUMN * load(state, COLUMNS)
        first = load(state, names)
        a0 = _column(state, first, ADDRESS_A)
        b0 = _column(state, first, ADDRESS_B)
        ma0 = _column(state, first, MASK_A)
        mb0 = _column(state, first, MASK_B)
        floor0 = _column(state, first, FLOOR)
        second = load(state, names + (1 if compared > 1 else 0))
        a1 = _column(state, second, ADDRESS_A)
        b1 = _column(state, second, ADDRESS_B)
        ma1 = _column(state, second, MASK_A)
        mb1 = _column(state, second, MASK_B)
        floor1 = _column(state, second, FLOOR)
        # Two columns are compared without a branch that depends on them; only rows equal in both take a closer look.
        while n < size and i < stop_a and k < stop_b:
            x0 = max(load(a0, i & ma0), floor0)
            y0 = max(load(b0, k & mb0), floor0)
            x1 = max(load(a1, i & ma1), floor1)
            y1 = max(load(b1, k & mb1), floor1)
            same0 = np.int64(x0 == y0)
            less = np.int64(x0 < y0) | (same0 & np.int64(x1 < y1))
            if same0 & np.int64(x1 == y1):
                order = 0
                if compared > 2:
                    order = _compare(state, i, ~k, np.int64(2), compared)
                if order == 0:
                    sources[n] = i
                    sources[n + 1] = ~k
                    ties[tied] = n + 1
                    tied += 1
                    n += 2
                    i += 1
                    k += 1
                    continue
                less = np.int64(order < 0)
            sources[n] = ~k ^ ((~k ^ i) & -less)
            n += 1
            i += less
            k += 1 - less
    else:
        # Nothing to compare: all rows are equal, and any order will do.
        while n < size and i < stop_a:
            sources[n] = i
            n += 1
            i += 1
    if k >= stop_b:
        while n < size and i < stop_a:
            sources[n] = i
            n += 1
            i += 1
    if i >= stop_a:
        while n < size and k < stop_b:
            sources[n] = ~k
            n += 1
            k += 1
    store(state, TAKEN_A, i)
    store(state, TAKEN_B, k)
    return n, tied


@inner
def _whole_groups(state, sources, n):
    """Make a planned block end where a group of equal data ends. Returns (sources, n): the block is cut back, or, if
    it lies within one group, replaced by the whole group.
    """
    compared = load(state, COMPARED_DATA)
    i = load(state, TAKEN_A)
    k = load(state, TAKEN_B)
    stop_a = load(state, SIZE_A)
    stop_b = load(state, SIZE_B)
    last = sources[n - 1]
    goes_on = i < stop_a and _compare(state, last, i, _FIRST, compared) == 0
    goes_on = goes_on or (k < stop_b and _compare(state, last, ~k, _FIRST, compared) == 0)
    if not goes_on:
        return sources, n
    start = n - 1
    while start > 0 and _compare(state, last, sources[start - 1], _FIRST, compared) == 0:
        start -= 1
    for r in range(start, n):
        if sources[r] >= 0:
            i -= 1
        else:
            k -= 1
    if start == 0:
        start_a = i
        start_b = k
        while i < stop_a and _compare(state, last, i, _FIRST, compared) == 0:
            i += 1
        while k < stop_b and _compare(state, last, ~k, _FIRST, compared) == 0:
            k += 1
        start = (i - start_a) + (k - start_b)
        sources = np.empty(start + 1, np.int64)
        for r in range(start_a, i):
            sources[r - start_a] = r
        for r in range(start_b, k):
            sources[i - start_a + r - start_b] = ~r
    store(state, TAKEN_A, i)
    store(state, TAKEN_B, k)
    return sources, start


@inner
def _sort_groups(state, sources, n):
    """Sort each group of equal data by its clamped times."""
    data = load(state, COMPARED_DATA)
    compared = load(state, COMPARED)
    start = np.int64(0)
    while start < n:
        stop = start + 1
        while stop < n and _compare(state, sources[start], sources[stop], _FIRST, data) == 0:
            stop += 1
        if stop - start > _SHORT:
            _merge_sort(state, sources, start, stop, data, compared)
        else:
            _insertion_sort(state, sources, start, stop, data, compared)
        start = stop


@inner
def _insertion_sort(state, sources, start, stop, first, compared):
    for r in range(start + 1, stop):
        source = sources[r]
        place = r
        while place > start and _compare(state, sources[place - 1], source, first, compared) > 0:
            sources[place] = sources[place - 1]
            place -= 1
        sources[place] = source


@inner
def _merge_sort(state, sources, start, stop, first, compared):
    """Bottom up, from runs sorted by insertion; runs already in order are not touched."""
    for r in range(start, stop, _SHORT):
        _insertion_sort(state, sources, r, min(r + _SHORT, stop), first, compared)
    spare = np.empty(stop - start, np.int64)
    width = _SHORT
    while width < stop - start:
        for left in range(start, stop - width, 2 * width):
            middle = left + width
            right = min(middle + width, stop)
            if _compare(state, sources[middle - 1], sources[middle], first, compared) <= 0:
                continue
            for r in range(left, middle):
                spare[r - left] = sources[r]
            x = 0
            y = middle
            place = left
            while x < width and y < right:
                if _compare(state, sources[y], spare[x], first, compared) < 0:
                    sources[place] = sources[y]
                    y += 1
                else:
                    sources[place] = spare[x]
                    x += 1
                place += 1
            while x < width:
                sources[place] = spare[x]
                x += 1
                place += 1
        width *= 2


@inner
def _copy(state, sources, n, start):
    """Write the planned rows of every live column behind row `start` of the result."""
    for j in range(load(state, COLUMNS)):
        if _column(state, j, LIVE) == 0:
            continue
        a = _column(state, j, ADDRESS_A)
        b = _column(state, j, ADDRESS_B)
        mask_a = _column(state, j, MASK_A)
        mask_b = _column(state, j, MASK_B)
        floor = _column(state, j, FLOOR)
        to = _column(state, j, ROOM) + 8 * start
        other = a ^ b
        if mask_a & mask_b != 0:
            for r in range(n):
                source = sources[r]
                side = source >> 63
                store(to, r, max(load(a ^ (other & side), source ^ side), floor))
        else:
            for r in range(n):
                source = sources[r]
                side = source >> 63
                row = (source ^ side) & (mask_a ^ ((mask_a ^ mask_b) & side))
                store(to, r, max(load(a ^ (other & side), row), floor))


@inner
def _mark_equal(state, same, n, start, has_before):
    """same[r] = whether row start + r of the result agrees with the row before it in the compared columns."""
    names = FIELDS + PER_COLUMN * load(state, COLUMNS)
    compared = load(state, COMPARED)
    for r in range(n):
        same[r] = 1
    if not has_before:
        same[0] = 0
    first = 0 if has_before else 1
    for c in range(compared):
        at = _column(state, load(state, names + c), ROOM) + 8 * start
        for r in range(first, n):
            same[r] &= np.int64(load(at, r) == load(at, r - 1))
    found = 0
    for r in range(n):
        found |= same[r]
    return found != 0


@inner
def _awaken(state, start, n):
    """Sums are about to change diff columns that were constant so far: write them from row `start` on."""
    for j in range(load(state, KEYS), load(state, COLUMNS)):
        constant = _column(state, j, CONSTANT_A)
        if _column(state, j, LIVE) == 0 and constant != 0:
            _set_column(state, j, LIVE, 1)
            _set_column(state, j, UNFILLED, start)
            to = _column(state, j, ROOM) + 8 * start
            for r in range(n):
                store(to, r, constant)


@inner
def _close(state, row, dirty):
    """Whether the row of the result, which will not grow any more, stays. A sum that does not fit ends the merge."""
    if not dirty:
        return True
    some = False
    for j in range(load(state, KEYS), load(state, COLUMNS)):
        if _column(state, j, ABOVE) != 0:
            store(state, STATUS, OVERFLOWN)
        _set_column(state, j, ABOVE, 0)
        if _column(state, j, LIVE) != 0:
            some = some or load(_column(state, j, ROOM), row) != 0
    return some


@inner
def _fold(state, same, n, start):
    """Sum rows start..start+n of the result into the row before them where `same` says so, and close the gaps.
    Returns (row, dirty): the last row written, not closed yet.
    """
    keys = load(state, KEYS)
    columns = load(state, COLUMNS)
    tail = load(state, TAIL)
    row = start - 1
    is_open = tail != 0
    dirty = load(state, DIRTY) != 0
    for r in range(start, start + n):
        if same[r - start]:
            for j in range(keys, columns):
                if _column(state, j, LIVE) != 0:
                    at = _column(state, j, ROOM)
                    left = load(at, row)
                    right = load(at, r)
                    total = left + right
                    store(at, row, total)
                    _set_column(state, j, ABOVE, _column(state, j, ABOVE) + carry(left, right, total))
            dirty = True
            continue
        if not is_open or _close(state, row, dirty):
            row += 1
        is_open = True
        dirty = False
        if row != r:
            for j in range(columns):
                if _column(state, j, LIVE) != 0:
                    at = _column(state, j, ROOM)
                    store(at, row, load(at, r))
    return row, dirty


@inner
def _scan(state):
    """Look at the final rows that were not looked at yet: which columns vary?"""
    rows = load(state, ROWS)
    scanned = load(state, SCANNED)
    for j in range(load(state, COLUMNS)):
        if _column(state, j, LIVE) == 0 or _column(state, j, VARIES) != 0 or rows == scanned:
            continue
        at = _column(state, j, ROOM)
        if scanned == 0 and _column(state, j, UNFILLED) == 0:
            _set_column(state, j, REFERENCE, load(at, 0))
        word = _column(state, j, REFERENCE)
        for r in range(max(scanned, _column(state, j, UNFILLED)), rows):
            if load(at, r) != word:
                _set_column(state, j, VARIES, 1)
                break
    store(state, SCANNED, rows)


@inner
def _fill(state, fuel):
    """Write constants in front of diff columns that came alive late. Returns the fuel left."""
    for j in range(load(state, KEYS), load(state, COLUMNS)):
        stop = _column(state, j, UNFILLED)
        if stop > 0:
            start = max(0, stop - 4 * min(max(fuel, 1), stop))
            at = _column(state, j, ROOM)
            constant = _column(state, j, CONSTANT_A)
            for r in range(start, stop):
                store(at, r, constant)
            _set_column(state, j, UNFILLED, start)
            fuel -= (stop - start) // 4
    return fuel


@inner
def _advance(state, fuel, sources, ties, same):
    """Merge `fuel` more input rows, or a few more; returns the status."""
    mode = load(state, MODE)
    rows_in = load(state, SIZE_A) + load(state, SIZE_B)
    while fuel > 0 and load(state, STATUS) == RUNNING:
        left = rows_in - load(state, TAKEN_A) - load(state, TAKEN_B)
        if left == 0:
            row = load(state, ROWS)
            if load(state, TAIL):
                if _close(state, row, load(state, DIRTY) != 0):
                    row += 1
                store(state, TAIL, 0)
                store(state, DIRTY, 0)
                store(state, ROWS, row)
                _scan(state)
                continue
            unfilled = 0
            for j in range(load(state, KEYS), load(state, COLUMNS)):
                unfilled += _column(state, j, UNFILLED)
            if unfilled == 0:
                store(state, STATUS, DONE)
                break
            fuel = _fill(state, fuel)
            continue
        block = sources
        compared = load(state, COMPARED_DATA if mode == GROUPED else COMPARED)
        n, tied = _plan(state, sources, ties, min(_BLOCK, min(fuel, left)), compared)
        flags = same
        if mode == GROUPED:
            block, n = _whole_groups(state, sources, n)
            if n > len(same):
                flags = np.empty(n, np.int64)
            _sort_groups(state, block, n)
        start = load(state, ROWS) + load(state, TAIL)
        _copy(state, block, n, start)
        if mode == DISTINCT:
            found = tied > 0
            if found:
                for r in range(n):
                    flags[r] = 0
                for t in range(tied):
                    flags[ties[t]] = 1
        else:
            found = _mark_equal(state, flags, n, start, load(state, TAIL) != 0)
        if found or load(state, DIRTY):
            if found:
                _awaken(state, start - load(state, TAIL), n + load(state, TAIL))
            row, dirty = _fold(state, flags, n, start)
        else:
            row = start + n - 1
            dirty = False
        if mode == STREAMED:
            store(state, TAIL, 1)
            store(state, DIRTY, np.int64(dirty))
        elif _close(state, row, dirty):
            row += 1
        store(state, ROWS, row)
        _scan(state)
        fuel -= n
    return load(state, STATUS)


@kernel("int64(int64[::1], int64)")
def advance_merges(states, fuel):
    """Advance every merge whose state's address is listed by `fuel` input rows; returns how many are not running."""
    sources = np.empty(3 * (_BLOCK + 2), np.int64)
    ties = sources[_BLOCK + 2 :]
    same = sources[2 * (_BLOCK + 2) :]
    ended = 0
    for m in range(len(states)):
        ended += _advance(states[m], fuel, sources, ties, same) != RUNNING
    return ended


@kernel("int64[::1](int64, int64, int64, int64, int64, int64[:, ::1], int64, int64)")
def open_merge(a, b, nd, nt, nf, frontier, latest_a, latest_b):
    """The state of a merge of the rows at `a` and `b` that has not begun. Columns whose ROOM says NEEDED get memory
    for as many rows as both inputs have together from the caller. An empty frontier leaves times alone; no epoch of
    an input is later than `latest_a` or `latest_b`.
    """
    columns = nd + nt + nf
    state = np.empty(FIELDS + (PER_COLUMN + 1) * columns, np.int64)
    _prepare(address_of(state), a, b, nd, nt, nf, frontier, latest_a, latest_b)
    return state


@kernel("int64[::1](int64[::1])")
def merged_head(state):
    """The head of a merge that is done, over the memory in its ROOM fields."""
    columns = state[COLUMNS]
    head = new_head(state[ROWS], columns)
    for j in range(columns):
        base = FIELDS + PER_COLUMN * j
        if state[base + VARIES] != 0:
            set_stored(head, j, state[base + ROOM])
        else:
            set_constant(head, j, state[base + REFERENCE])
    return head


@kernel("Tuple((int64[::1], int64[::1]))(int64, int64, int64, int64, int64, int64[:, ::1])")
def merge_rows(a, b, nd, nt, nf, frontier):
    """The whole merge of the rows at `a` and `b` at once: (buf, head), head[0] is -1 if a sum of diffs does not fit."""
    columns = nd + nt + nf
    rows_in = count(a) + count(b)
    block = min(rows_in, _BLOCK) + 2
    words = FIELDS + (PER_COLUMN + 1) * columns
    scratch = np.empty(words + 3 * block, np.int64)
    state = address_of(scratch)
    _prepare(state, a, b, nd, nt, nf, frontier, _ALL, _ALL)
    needed = 0
    for j in range(columns):
        needed += _column(state, j, ROOM) == NEEDED
    room = empty_words(needed * rows_in)
    at = address_of(room)
    for j in range(columns):
        if _column(state, j, ROOM) == NEEDED:
            _set_column(state, j, ROOM, at)
            at += 8 * rows_in
    if rows_in > 0:
        _advance(state, _ALL, scratch[words:], scratch[words + block :], scratch[words + 2 * block :])
    if scratch[STATUS] == OVERFLOWN:
        return overflow_head(columns)
    rows = scratch[ROWS]
    head = new_head(rows, columns)
    stored = 0
    for j in range(columns):
        stored += _column(state, j, VARIES)
    buf = room
    if stored * rows != len(room):
        buf = empty_words(stored * rows)
    at = address_of(buf)
    for j in range(columns):
        if _column(state, j, VARIES) != 0:
            source = _column(state, j, ROOM)
            if source != at:
                for i in range(rows):
                    store(at, i, load(source, i))
            set_stored(head, j, at)
            at += 8 * rows
        else:
            set_constant(head, j, _column(state, j, REFERENCE))
    if len(room) + len(scratch) < 0:  # both are read by address up to here, and may not be freed before
        head[0] = 0
    return buf, head
