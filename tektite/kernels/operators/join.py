"""All pairs of rows with equal keys, with times at their least upper bound and diffs multiplied, in bounded chunks.

Work is proportional to the smaller side of each pair of rows objects, and to the output: the distinct keys of the smaller
side are sought in the larger one, a block at a time. A call first lists *rectangles* (a run of rows of one side by a run of
the other) until it has `limit` rows, and cuts the last one if necessary. Then it writes the output column by column.
"""

from __future__ import annotations

import numpy as np

from tektite.kernels.compile import inner, kernel
from tektite.kernels.layout.memory import load, read, store
from tektite.kernels.layout.pages import address_of, prefetch
from tektite.kernels.layout.rows import address, copy_words, count, new_head, set_constant, set_stored, step_of
from tektite.kernels.operators.wide import product_overflows
from tektite.kernels.seek.keys import BLOCK, all_same, gallop_rows, gather_block, group_end, has_null, seek_block

# Length of the cursor that the caller keeps between calls: done, pair, row of the smaller side, row of the larger side,
# and the rest of a rectangle that was cut: side that is inner, outer run, inner run, row of the inner run to go on at.
JOIN_STATE = 10


@inner
def _add_rectangle(found, used, inner_side, outer, outer_end, start, end):
    """Append a rectangle, five words: which side is inner (0 delta, 1 other), the outer run, the inner run. Returns the
    array, grown if it was full.
    """
    at = 5 * used
    if at == len(found):
        larger = np.empty(2 * at, np.int64)
        for w in range(at):
            larger[w] = found[w]
        found = larger
    found[at] = inner_side
    found[at + 1] = outer
    found[at + 2] = outer_end
    found[at + 3] = start
    found[at + 4] = end
    return found


@inner
def _write_data(found, first, last, side, at, by, out, o):
    """Write one data column of `side` for rectangles first..last, from output row `o` on; returns the row after."""
    for q in range(first, last):
        w = 5 * q
        outer = found[w + 1]
        outer_end = found[w + 2]
        start = found[w + 3]
        size = found[w + 4] - start
        if found[w] == side and by != 0:
            for _ in range(outer, outer_end):
                copy_words(at, by, start, start + size, out + 8 * o, 8)
                o += size
        else:
            turn = by if found[w] != side else 0
            for r in range(outer, outer_end):
                word = read(at, turn, r)
                target = out + 8 * o
                for i in range(size):
                    store(target, i, word)
                o += size
    return o


@inner
def _write_maxima(found, first, last, a, a_step, b, b_step, floor, out, o):
    """Write the greater of both sides' words, and no less than `floor`; returns the row after."""
    for q in range(first, last):
        w = 5 * q
        x = b
        x_step = b_step
        y = a
        y_step = a_step
        if found[w] == 1:
            x = a
            x_step = a_step
            y = b
            y_step = b_step
        start = found[w + 3]
        size = found[w + 4] - start
        for r in range(found[w + 1], found[w + 2]):
            word = max(read(x, x_step, r), floor)
            target = out + 8 * o
            if y_step == 0:
                word = max(word, load(y, 0))
                for i in range(size):
                    store(target, i, word)
            else:
                for i in range(size):
                    store(target, i, max(word, read(y, y_step, start + i)))
            o += size
    return o


@inner
def _write_products(found, first, last, a, a_step, b, b_step, out, o):
    """Write the products of both sides' words; returns the row after, or -1 if one does not fit a word."""
    wrong = False
    for q in range(first, last):
        w = 5 * q
        x = b
        x_step = b_step
        y = a
        y_step = a_step
        if found[w] == 1:
            x = a
            x_step = a_step
            y = b
            y_step = b_step
        start = found[w + 3]
        size = found[w + 4] - start
        for r in range(found[w + 1], found[w + 2]):
            word = read(x, x_step, r)
            target = out + 8 * o
            for i in range(size):
                factor = read(y, y_step, start + i)
                wrong |= product_overflows(word, factor)
                store(target, i, word * factor)
            o += size
    return -1 if wrong else o


@kernel(
    "Tuple((int64[::1], int64[::1]))(int64[::1], int64[::1], int64, int64, int64, int64, int64, int64,"
    " int64[::1], int64, int64, int64, int64[::1])"
)
def join(delta, other, kc, nd_a, nd_b, nt_a, nt_b, nt, spec, lo, limit, flags, state):
    """The next chunk of at most `limit` >= 1 pairs of rows of `delta` and `other` that agree on their first `kc`
    columns.

    Entry c of `spec` takes delta's data column c if c < nd_a, else other's column c - nd_a. Times have `nt` columns; a
    side with fewer has 0 in the missing ones; epochs count as at least `lo`. Keys with a NULL match only if flags & 1.
    `state` (JOIN_STATE zeros at first) is the cursor; state[0] is 1 after the last chunk. The number of rows is -1 if a
    product of diffs does not fit a word.
    """
    pairs = len(delta) * len(other)
    others = len(other)
    pair = state[1]
    small_row = state[2]
    large_row = state[3]
    found = np.empty(5 * 32, np.int64)
    used = 0
    rows = 0
    # Segments: the rectangles of one pair of rows objects lie together.
    segments = np.empty(2 * (pairs - pair) + 2, np.int64)
    n_segments = 0
    work = np.empty((kc + 2) * BLOCK + 1, np.int64)
    keys = address_of(work)
    firsts = keys + 8 * BLOCK * kc
    places = firsts + 8 * (BLOCK + 1)

    while pair < pairs and rows < limit:
        a = delta[pair // others]
        b = other[pair % others]
        small = a
        large = b
        small_side = 0
        if count(a) > count(b):
            small = b
            large = a
            small_side = 1
        before = used
        # The rest of a rectangle that the limit cut.
        while state[6] > state[5] and rows < limit:
            room = limit - rows
            start = state[7]
            end = state[8]
            at = state[9]
            if at > start or room < end - start:
                take = min(room, end - at)
                found = _add_rectangle(found, used, state[4], state[5], state[5] + 1, at, at + take)
                rows += take
                state[9] = at + take
                if at + take == end:
                    state[5] += 1
                    state[9] = start
            else:
                take = min(room // (end - start), state[6] - state[5])
                found = _add_rectangle(found, used, state[4], state[5], state[5] + take, start, end)
                rows += take * (end - start)
                state[5] += take
            used += 1
        small_rows = count(small)
        large_rows = count(large)
        while rows < limit and small_row < small_rows and large_row < large_rows:
            # Keys of the smaller side that lie before all that is left of the larger one need not be sought one by one.
            small_row = gallop_rows(small, small_rows, small_row, large, large_row, kc)
            many = min(gather_block(small, small_row, kc, keys, firsts), limit)
            if many == 0:
                break
            seek_block(large, large_row, keys, many, kc, places)
            if load(places, many - 1) - load(places, 0) > 8 * many:
                # What will be copied from there lies far apart, and is needed when all rectangles are known.
                for c in range(len(spec)):
                    column = spec[c] if small_side == 1 else spec[c] - nd_a
                    if kc <= column < (nd_a if small_side == 1 else nd_b) and step_of(large, column) != 0:
                        for j in range(many):
                            prefetch(address(large, column) + step_of(large, column) * load(places, j))
            j = 0
            while j < many and rows < limit:
                large_row = load(places, j)
                end = group_end(large, large_rows, large_row, keys, j, kc)
                small_row = load(firsts, j + 1)
                if end > large_row and (flags & 1 != 0 or not has_null(keys, j, kc)):
                    start = load(firsts, j)
                    # The longer run goes inside: it is copied at memory speed.
                    if end - large_row >= small_row - start:
                        inner_side = 1 - small_side
                        outer = start
                        outer_end = small_row
                        start = large_row
                        stop = end
                    else:
                        inner_side = small_side
                        outer = large_row
                        outer_end = end
                        stop = small_row
                    if (outer_end - outer) * (stop - start) <= limit - rows:
                        found = _add_rectangle(found, used, inner_side, outer, outer_end, start, stop)
                        used += 1
                        rows += (outer_end - outer) * (stop - start)
                    else:
                        room = limit - rows
                        whole = room // (stop - start)
                        part = 0
                        if whole > 0:
                            found = _add_rectangle(found, used, inner_side, outer, outer + whole, start, stop)
                            rows += whole * (stop - start)
                        else:
                            part = room
                            found = _add_rectangle(found, used, inner_side, outer, outer + 1, start, start + part)
                            rows += part
                        used += 1
                        state[4] = inner_side
                        state[5] = outer + whole
                        state[6] = outer_end
                        state[7] = start
                        state[8] = stop
                        state[9] = start + part
                        limit = rows  # the chunk is full
                large_row = end
                j += 1
        if used > before:
            segments[2 * n_segments] = pair
            segments[2 * n_segments + 1] = before
            n_segments += 1
        if state[6] == state[5] and (small_row >= small_rows or large_row >= large_rows):
            pair += 1
            small_row = 0
            large_row = 0
    segments[2 * n_segments + 1] = used
    state[1] = pair
    state[2] = small_row
    state[3] = large_row
    state[0] = 1 if pair >= pairs else 0

    # Which columns are constant by construction, and how many must be stored.
    outputs = len(spec)
    width = outputs + nt + 1
    head = new_head(rows, width)
    if rows == 0:
        work[0] = 0  # keeps the scratch alive up to here
        return np.empty(0, np.int64), head
    stored = 0
    for c in range(width):
        constant = True
        word = 0
        for s in range(n_segments):
            pair = segments[2 * s]
            a = delta[pair // others]
            b = other[pair % others]
            here = 0
            if c < outputs:
                pick = spec[c]
                source = a if pick < nd_a else b
                column = pick if pick < nd_a else pick - nd_a
                if step_of(source, column) != 0:
                    constant = False
                    break
                here = load(address(source, column), 0)
            elif c < outputs + nt:
                t = c - outputs
                here = lo if t == 0 else 0
                if t < nt_a:
                    if step_of(a, nd_a + t) != 0:
                        constant = False
                        break
                    here = max(here, load(address(a, nd_a + t), 0))
                if t < nt_b:
                    if step_of(b, nd_b + t) != 0:
                        constant = False
                        break
                    here = max(here, load(address(b, nd_b + t), 0))
            else:
                if step_of(a, nd_a + nt_a) != 0 or step_of(b, nd_b + nt_b) != 0:
                    constant = False
                    break
                x = load(address(a, nd_a + nt_a), 0)
                y = load(address(b, nd_b + nt_b), 0)
                if product_overflows(x, y):
                    head[0] = -1
                here = x * y
            if s == 0:
                word = here
            elif word != here:
                constant = False
                break
        if constant:
            set_constant(head, c, word)
        else:
            set_stored(head, c, stored)
            stored += 1

    buf = np.empty(stored * rows, np.int64)
    work[0] = 0  # what a missing time column reads
    for c in range(width):
        if head[4 + 3 * c] == 0:
            continue
        out = address_of(buf) + 8 * rows * head[3 + 3 * c]
        o = 0
        for s in range(n_segments):
            pair = segments[2 * s]
            first = segments[2 * s + 1]
            last = segments[2 * s + 3]
            a = delta[pair // others]
            b = other[pair % others]
            if c < outputs:
                pick = spec[c]
                if pick < nd_a:
                    o = _write_data(found, first, last, 0, address(a, pick), step_of(a, pick), out, o)
                else:
                    o = _write_data(found, first, last, 1, address(b, pick - nd_a), step_of(b, pick - nd_a), out, o)
            elif c < outputs + nt:
                t = c - outputs
                x = keys
                y = x
                x_step = 0
                y_step = 0
                if t < nt_a:
                    x = address(a, nd_a + t)
                    x_step = step_of(a, nd_a + t)
                if t < nt_b:
                    y = address(b, nd_b + t)
                    y_step = step_of(b, nd_b + t)
                o = _write_maxima(found, first, last, x, x_step, y, y_step, lo if t == 0 else 0, out, o)
            else:
                x = address(a, nd_a + nt_a)
                y = address(b, nd_b + nt_b)
                x_step = step_of(a, nd_a + nt_a)
                y_step = step_of(b, nd_b + nt_b)
                o = _write_products(found, first, last, x, x_step, y, y_step, out, o)
                if o < 0:
                    head[0] = -1
                    break
        if c >= outputs and o >= 0 and all_same(out, rows):
            set_constant(head, c, load(out, 0))
        else:
            set_stored(head, c, out)
    work[0] = 0  # keeps the scratch alive up to here
    return buf, head
