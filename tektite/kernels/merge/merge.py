"""Merges two sorted, consolidated rows objects step by step, and compacts times.

Promise: however the work is divided, the result is the sorted, consolidated union of both inputs, with each time t replaced
by rep_F(t), where F is the frontier given at the start. Diffs of rows with equal data and time are summed exactly (or the
merge ends with OVERFLOWN), rows whose diffs are zero are dropped, and columns that turn out constant are marked as such.

rep_F(t) is the meet over f in F of join(t, f). Times are tuples of integers, a distributive lattice, so this equals join(t,
meet of F): one *floor* per time column, and each coordinate is clamped by itself.

If the next block of rows comes from one input, as when keys grow with time, it is copied. Any other block is merged in
phases: *plan* which side each row comes from, *copy* column by column, *fold* rows that became equal. Inputs may hold equal
data at many times:

* `DISTINCT`: no time column varies, so equal rows can only come from different sides. Rows are merged by data and time.
* `STREAMED`: clamping keeps the order of times. Rows are merged by data and time.
* `GROUPED`: clamping collapses a column that varies, and a later one varies, too. Rows of equal data are sorted again, whole
  groups at a time.

Columns of large results are as narrow as the words written so far allow. If a block has a word that does not fit, the column
is widened in place, from its last row to its first, and the block is written again.
"""

from __future__ import annotations

import numpy as np

from tektite.kernels.compile import inner, kernel
from tektite.kernels.layout.memory import load, load4, read, store, store1, store2, store4
from tektite.kernels.layout.pages import address_of, empty_words
from tektite.kernels.layout.rows import (
    column_bytes,
    copy_words,
    count,
    empty_columns,
    fitting_step,
    new_head,
    put,
    set_constant,
    set_stored,
)
from tektite.kernels.merge.order import plan, plan_pairs, plan_run, sort_groups, whole_groups
from tektite.kernels.merge.state import (
    ABOVE,
    ADDRESS_A,
    ADDRESS_B,
    COLUMNS,
    COMPARED,
    COMPARED_DATA,
    CONSTANT_A,
    DIRTY,
    DISTINCT,
    DONE,
    FIELDS,
    FLOOR,
    GROUPED,
    KEYS,
    LEAST,
    LIVE,
    MODE,
    NEEDED,
    OVERFLOWN,
    PER_COLUMN,
    REFERENCE,
    ROOM,
    ROWS,
    RUNNING,
    SCANNED,
    SIZE_A,
    SIZE_B,
    STATUS,
    STEP,
    STEP_A,
    STEP_B,
    STREAMED,
    TAIL,
    TAKEN_A,
    TAKEN_B,
    UNFILLED,
    VARIES,
    column_field,
    prepare,
    set_column_field,
)
from tektite.kernels.operators.sums import carry, overflow_head

_MOST = 2**63 - 1
_BLOCK = 1024
# An argument that is not a literal: for those Numba would compile a function once more.
_ALL = np.int64(_MOST)


@inner
def _copy_column(a, step_a, b, step_b, floor, to, to_step, sources, n):
    """Write one column of the planned rows to `to`. Returns the bits that some word needs beside its sign, if the
    column is narrow: whether all fit is for the caller to see.
    """
    other = a ^ b
    turn = step_a ^ step_b
    bits = 0
    if to_step == 8:
        if step_a == 8 and step_b == 8:
            for r in range(n):
                source = sources[r]
                side = source >> 63
                store(to, r, max(load(a ^ (other & side), source ^ side), floor))
        else:
            for r in range(n):
                source = sources[r]
                side = source >> 63
                store(to, r, max(read(a ^ (other & side), step_a ^ (turn & side), source ^ side), floor))
    elif to_step == 4:
        if step_a == 4 and step_b == 4:
            for r in range(n):
                source = sources[r]
                side = source >> 63
                word = max(load4(a ^ (other & side), source ^ side), floor)
                bits |= word ^ (word >> 63)
                store4(to, r, word)
        else:
            for r in range(n):
                source = sources[r]
                side = source >> 63
                word = max(read(a ^ (other & side), step_a ^ (turn & side), source ^ side), floor)
                bits |= word ^ (word >> 63)
                store4(to, r, word)
    elif to_step == 2:
        for r in range(n):
            source = sources[r]
            side = source >> 63
            word = max(read(a ^ (other & side), step_a ^ (turn & side), source ^ side), floor)
            bits |= word ^ (word >> 63)
            store2(to, r, word)
    else:
        for r in range(n):
            source = sources[r]
            side = source >> 63
            word = max(read(a ^ (other & side), step_a ^ (turn & side), source ^ side), floor)
            bits |= word ^ (word >> 63)
            store1(to, r, word)
    return bits


@inner
def _widen(state, j, rows, needed):
    """Make column j of the result, of which `rows` are written, wide enough. Returns its step."""
    at = column_field(state, j, ROOM)
    former = column_field(state, j, STEP)
    if needed > former:
        for r in range(rows - 1, -1, -1):
            put(at, needed, r, read(at, former, r))
        set_column_field(state, j, STEP, needed)
    return max(former, needed)


@inner
def _copy(state, sources, n, start):
    """Write the planned rows of every live column behind row `start` of the result."""
    for j in range(load(state, COLUMNS)):
        if column_field(state, j, LIVE) == 0:
            continue
        to_step = column_field(state, j, STEP)
        while True:
            bits = _copy_column(
                column_field(state, j, ADDRESS_A), column_field(state, j, STEP_A),
                column_field(state, j, ADDRESS_B), column_field(state, j, STEP_B),
                column_field(state, j, FLOOR), column_field(state, j, ROOM) + to_step * start, to_step, sources, n,
            )  # fmt: skip
            needed = fitting_step(0, bits)
            if needed <= to_step:
                break
            to_step = _widen(state, j, start, needed)


@inner
def _copy_run(state, source, n, start):
    """Write n rows of one input, from row `source` on (named as in a plan), behind row `start` of the result."""
    side = ADDRESS_A if source >= 0 else ADDRESS_B
    first = source if source >= 0 else ~source
    for j in range(load(state, COLUMNS)):
        if column_field(state, j, LIVE) == 0:
            continue
        by = column_field(state, j, side + 1)
        at = column_field(state, j, side) + by * first
        floor = column_field(state, j, FLOOR)
        to_step = column_field(state, j, STEP)
        while True:
            to = column_field(state, j, ROOM) + to_step * start
            bits = 0
            if by == to_step and floor == LEAST:
                copy_words(at, by, 0, n, to, by)
            else:
                for r in range(n):
                    word = max(read(at, by, r), floor)
                    bits |= word ^ (word >> 63)
                    put(to, to_step, r, word)
            needed = fitting_step(0, bits)
            if needed <= to_step:
                break
            to_step = _widen(state, j, start, needed)


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
        j = load(state, names + c)
        by = column_field(state, j, STEP)
        at = column_field(state, j, ROOM) + by * start
        if by == 8:
            for r in range(first, n):
                same[r] &= np.int64(load(at, r) == load(at, r - 1))
        else:
            for r in range(first, n):
                same[r] &= np.int64(read(at, by, r) == read(at, by, r - 1))
    found = 0
    for r in range(n):
        found |= same[r]
    return found != 0


@inner
def _awaken(state, start, n):
    """Sums are about to change diff columns that were constant so far: write them from row `start` on."""
    for j in range(load(state, KEYS), load(state, COLUMNS)):
        constant = column_field(state, j, CONSTANT_A)
        if column_field(state, j, LIVE) == 0 and constant != 0:
            set_column_field(state, j, LIVE, 1)
            set_column_field(state, j, UNFILLED, start)
            by = max(column_field(state, j, STEP), fitting_step(constant, constant))
            set_column_field(state, j, STEP, by)
            for r in range(start, start + n):
                put(column_field(state, j, ROOM), by, r, constant)


@inner
def _close(state, row, dirty):
    """Whether the row of the result, which will not grow any more, stays. A sum that does not fit ends the merge."""
    if not dirty:
        return True
    some = False
    for j in range(load(state, KEYS), load(state, COLUMNS)):
        if column_field(state, j, ABOVE) != 0:
            store(state, STATUS, OVERFLOWN)
        set_column_field(state, j, ABOVE, 0)
        if column_field(state, j, LIVE) != 0:
            some = some or read(column_field(state, j, ROOM), column_field(state, j, STEP), row) != 0
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
                if column_field(state, j, LIVE) != 0:
                    at = column_field(state, j, ROOM)
                    by = column_field(state, j, STEP)
                    left = read(at, by, row)
                    right = read(at, by, r)
                    total = left + right
                    by = _widen(state, j, start + n, fitting_step(total, total))
                    put(at, by, row, total)
                    set_column_field(state, j, ABOVE, column_field(state, j, ABOVE) + carry(left, right, total))
            dirty = True
            continue
        if not is_open or _close(state, row, dirty):
            row += 1
        is_open = True
        dirty = False
        if row != r:
            for j in range(columns):
                if column_field(state, j, LIVE) != 0:
                    at = column_field(state, j, ROOM)
                    by = column_field(state, j, STEP)
                    put(at, by, row, read(at, by, r))
    return row, dirty


@inner
def _fold_pairs(state, pairs, paired, n, start, kept):
    """Add the second input's diffs to those rows start..start+n of the result that have a partner there, and close the
    gaps that rows without a diff leave. Returns how many rows remain; `kept` is room for their numbers.
    """
    keys = load(state, KEYS)
    columns = load(state, COLUMNS)
    for r in range(n):
        kept[r] = 1
    for p in range(paired):
        kept[pairs[2 * p]] = 0
    for j in range(keys, columns):
        if column_field(state, j, LIVE) == 0:
            continue  # all diffs are 0, and a sum of zeros is one
        at = column_field(state, j, ROOM)
        by = column_field(state, j, STEP)
        b = column_field(state, j, ADDRESS_B)
        step_b = column_field(state, j, STEP_B)
        for p in range(paired):
            row = start + pairs[2 * p]
            left = read(at, by, row)
            right = read(b, step_b, pairs[2 * p + 1])
            total = left + right
            if carry(left, right, total) != 0:
                store(state, STATUS, OVERFLOWN)
            if fitting_step(total, total) > by:
                by = _widen(state, j, start + n, fitting_step(total, total))
            put(at, by, row, total)
            kept[pairs[2 * p]] |= np.int64(total != 0)
    many = 0
    for r in range(n):
        there = kept[r]
        kept[many] = r
        many += there
    if many < n:
        for j in range(columns):
            if column_field(state, j, LIVE) != 0:
                by = column_field(state, j, STEP)
                at = column_field(state, j, ROOM) + by * start
                if by == 8:
                    for q in range(many):
                        store(at, q, load(at, kept[q]))
                elif by == 4:
                    for q in range(many):
                        store4(at, q, load4(at, kept[q]))
                else:
                    for q in range(many):
                        put(at, by, q, read(at, by, kept[q]))
    return many


@inner
def _scan(state):
    """Look at the final rows that were not looked at yet: which columns vary?"""
    rows = load(state, ROWS)
    scanned = load(state, SCANNED)
    for j in range(load(state, COLUMNS)):
        if column_field(state, j, LIVE) == 0 or column_field(state, j, VARIES) != 0 or rows == scanned:
            continue
        at = column_field(state, j, ROOM)
        by = column_field(state, j, STEP)
        if scanned == 0 and column_field(state, j, UNFILLED) == 0:
            set_column_field(state, j, REFERENCE, read(at, by, 0))
        word = column_field(state, j, REFERENCE)
        for r in range(max(scanned, column_field(state, j, UNFILLED)), rows):
            if read(at, by, r) != word:
                set_column_field(state, j, VARIES, 1)
                break
    store(state, SCANNED, rows)


@inner
def _fill(state, fuel):
    """Write constants in front of diff columns that came alive late. Returns the fuel left."""
    for j in range(load(state, KEYS), load(state, COLUMNS)):
        stop = column_field(state, j, UNFILLED)
        if stop > 0:
            start = max(0, stop - 4 * min(max(fuel, 1), stop))
            at = column_field(state, j, ROOM)
            by = column_field(state, j, STEP)
            constant = column_field(state, j, CONSTANT_A)
            for r in range(start, stop):
                put(at, by, r, constant)
            set_column_field(state, j, UNFILLED, start)
            fuel -= (stop - start) // 4
    return fuel


@inner
def _advance(state, fuel, sources, pairs, same):
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
                unfilled += column_field(state, j, UNFILLED)
            if unfilled == 0:
                store(state, STATUS, DONE)
                break
            fuel = _fill(state, fuel)
            continue
        size = min(_BLOCK, min(fuel, left))
        if mode == DISTINCT:
            source, n = plan_run(state, size)
            if n > 0:
                start = load(state, ROWS)
                _copy_run(state, source, n, start)
                store(state, ROWS, start + n)
                _scan(state)
                fuel -= n
                continue
            n, paired = plan_pairs(state, sources, pairs, size)
            start = load(state, ROWS)
            _copy(state, sources, n, start)
            if paired > 0:
                _awaken(state, start, n)
                store(state, ROWS, start + _fold_pairs(state, pairs, paired, n, start, same))
            else:
                store(state, ROWS, start + n)
            _scan(state)
            fuel -= n + paired
            continue
        block = sources
        n = plan(state, sources, size, load(state, COMPARED_DATA if mode == GROUPED else COMPARED))
        flags = same
        if mode == GROUPED:
            block, n = whole_groups(state, sources, n)
            if n > len(same):
                flags = np.empty(n, np.int64)
            sort_groups(state, block, n)
        start = load(state, ROWS) + load(state, TAIL)
        _copy(state, block, n, start)
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
    sources = np.empty(4 * (_BLOCK + 2), np.int64)
    same = sources[_BLOCK + 2 :]
    pairs = sources[2 * (_BLOCK + 2) :]
    ended = 0
    for m in range(len(states)):
        ended += _advance(states[m], fuel, sources, pairs, same) != RUNNING
    return ended


@kernel("int64[::1](int64, int64, int64, int64, int64, int64[:, ::1], int64, int64)")
def open_merge(a, b, nd, nt, nf, frontier, latest_a, latest_b):
    """The state of a merge of the rows at `a` and `b` that has not begun. Columns whose ROOM says NEEDED get memory
    for as many rows as both inputs have together from the caller. An empty frontier leaves times alone; no epoch of
    an input is later than `latest_a` or `latest_b`.
    """
    columns = nd + nt + nf
    state = np.empty(FIELDS + (PER_COLUMN + 1) * columns, np.int64)
    prepare(address_of(state), a, b, nd, nt, nf, frontier, latest_a, latest_b)
    return state


@kernel("int64[::1](int64[::1])")
def merged_head(state):
    """The head of a merge that is done, over the memory in its ROOM fields."""
    columns = state[COLUMNS]
    head = new_head(state[ROWS], columns)
    for j in range(columns):
        base = FIELDS + PER_COLUMN * j
        if state[base + VARIES] != 0:
            set_stored(head, j, state[base + ROOM], state[base + STEP])
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
    scratch = np.empty(words + 4 * block, np.int64)
    state = address_of(scratch)
    prepare(state, a, b, nd, nt, nf, frontier, _ALL, _ALL)
    needed = 0
    for j in range(columns):
        needed += column_field(state, j, ROOM) == NEEDED
    room = empty_words(needed * rows_in)
    at = address_of(room)
    for j in range(columns):
        if column_field(state, j, ROOM) == NEEDED:
            set_column_field(state, j, ROOM, at)
            at += 8 * rows_in
    if rows_in > 0:
        _advance(state, _ALL, scratch[words:], scratch[words + 2 * block :], scratch[words + block :])
    if scratch[STATUS] == OVERFLOWN:
        return overflow_head(columns)
    rows = scratch[ROWS]
    head = new_head(rows, columns)
    total = 0
    for j in range(columns):
        if column_field(state, j, VARIES) != 0:
            total += column_bytes(rows, column_field(state, j, STEP))
    buf = room
    lean = total != 8 * len(room)
    if lean:
        buf = empty_columns(total)
    at = address_of(buf)
    for j in range(columns):
        if column_field(state, j, VARIES) != 0:
            by = column_field(state, j, STEP)
            if lean:
                copy_words(column_field(state, j, ROOM), by, 0, rows, at, by)
            set_stored(head, j, at, by)
            at += column_bytes(rows, by)
        else:
            set_constant(head, j, column_field(state, j, REFERENCE))
    if len(room) + len(scratch) < 0:  # both are read by address up to here, and may not be freed before
        head[0] = 0
    return buf, head
