"""All pairs of rows with equal keys, with times at their least upper bound and diffs multiplied, in bounded chunks.

Work is proportional to the smaller side of each pair of rows objects, and to the output: the distinct keys of the smaller
side are sought in the larger one, a block at a time. A call first lists *rectangles* (a run of rows of one side by a run of
the other) until it has `limit` rows, and cuts the last one if necessary. Then it writes the output column by column.

Short names, for the sides a (`delta`) and b (`other`): `kc` is the number of key columns; `nd_a` and `nd_b` are the numbers of
data columns; `nt_a`, `nt_b` and `nt` are the numbers of time columns of the sides and of the output; `lo` is the least epoch.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tektite.kernels.compile import inner, kernel
from tektite.kernels.layout.columns import all_same, copy_words
from tektite.kernels.layout.memory import load, read, store
from tektite.kernels.layout.pages import address_of, prefetch
from tektite.kernels.layout.records import room
from tektite.kernels.layout.rows import address, count, new_head, set_constant, set_stored, step_of
from tektite.kernels.layout.scratch import keep, scratch
from tektite.kernels.operators.pairs import write_maxima, write_products
from tektite.kernels.operators.wide import product_overflows
from tektite.kernels.seek.keys import BLOCK, gather_block, group_end, has_null, seek_block
from tektite.kernels.seek.search import gallop_rows
from tektite.values.words import NULL

# The cursor that the caller keeps between calls, all 0 at first. DONE is 1 after the last chunk. PAIR is the pair of rows
# objects, SMALL_ROW and LARGE_ROW are the next rows of its smaller and its larger side. A rectangle that the limit cut goes on
# at row CUT_AT of the inner run, in row CUT_OUTER of the outer run; it is written when CUT_OUTER is CUT_OUTER_END.
DONE = 0
PAIR = 1
SMALL_ROW = 2
LARGE_ROW = 3
CUT_SIDE = 4
CUT_OUTER = 5
CUT_OUTER_END = 6
CUT_START = 7
CUT_END = 8
CUT_AT = 9
JOIN_STATE = 10

# A rectangle is five words: the side whose run is inner, the outer run, the inner run. The inner run is repeated for each row of
# the outer run.
SIDE_A = 0
SIDE_B = 1
RECTANGLE = 5

# A flag: keys with a NULL match.
_MATCH_NULLS = 1


@inner
def _add_rectangle(rectangles, used, inner_side, outer, outer_end, start, end):
    """Append a rectangle. Returns the array, grown if it was full."""
    at = RECTANGLE * used
    if at == len(rectangles):
        rectangles = room(rectangles, at, RECTANGLE)
    rectangles[at] = inner_side
    rectangles[at + 1] = outer
    rectangles[at + 2] = outer_end
    rectangles[at + 3] = start
    rectangles[at + 4] = end
    return rectangles


@inner
def _go_on_with_cut(rectangles, used, rows, limit, state):
    """List what is left of the rectangle that the last chunk's limit cut, as far as this chunk's limit allows."""
    while state[CUT_OUTER] < state[CUT_OUTER_END] and rows < limit:
        left = limit - rows
        outer = state[CUT_OUTER]
        start = state[CUT_START]
        end = state[CUT_END]
        at = state[CUT_AT]
        if at > start or left < end - start:
            take = min(left, end - at)
            rectangles = _add_rectangle(rectangles, used, state[CUT_SIDE], outer, outer + 1, at, at + take)
            rows += take
            state[CUT_AT] = at + take
            if at + take == end:
                state[CUT_OUTER] += 1
                state[CUT_AT] = start
        else:
            take = min(left // (end - start), state[CUT_OUTER_END] - outer)
            rectangles = _add_rectangle(rectangles, used, state[CUT_SIDE], outer, outer + take, start, end)
            rows += take * (end - start)
            state[CUT_OUTER] += take
        used += 1
    return rectangles, used, rows


@inner
def _cut_rectangle(rectangles, used, left, inner_side, outer, outer_end, start, end, state):
    """List the first rows, `left` at most, of a rectangle that has more, and leave the rest in the state. Returns the rectangles
    and how many rows these are.
    """
    whole = left // (end - start)
    state[CUT_SIDE] = inner_side
    state[CUT_OUTER] = outer + whole
    state[CUT_OUTER_END] = outer_end
    state[CUT_START] = start
    state[CUT_END] = end
    state[CUT_AT] = start
    if whole > 0:
        return _add_rectangle(rectangles, used, inner_side, outer, outer + whole, start, end), whole * (end - start)
    state[CUT_AT] = start + left
    return _add_rectangle(rectangles, used, inner_side, outer, outer + 1, start, start + left), left


@inner
def _prefetch_columns(head, spec, first, kc, stop, places, many):
    """Ask for the words behind the key that will be copied from the rows at `places`. Column c of these rows is `first + c` in
    `spec`; they have `stop` data columns.
    """
    for s in range(len(spec)):
        column = spec[s] - first
        if kc <= column < stop and step_of(head, column) != 0:
            for j in range(many):
                prefetch(address(head, column) + step_of(head, column) * load(places, j))


@inner
def _find_rectangles(
    small, large, small_side, kc, nd_a, nd_b, spec, flags, limit, keys, firsts, places, rectangles, used, rows, state
):
    """List rectangles of the rows from the state's on, until there are `limit` rows, one side ends, or a rectangle is cut.
    `keys`, `firsts` and `places` are scratch memory. Returns the rectangles, how many they are, and their rows.
    """
    small_rows = count(small)
    large_rows = count(large)
    small_row = state[SMALL_ROW]
    large_row = state[LARGE_ROW]
    while rows < limit and small_row < small_rows and large_row < large_rows:
        # Keys of the smaller side that lie before all that is left of the larger one need not be sought one by one.
        small_row = gallop_rows(small, small_rows, small_row, large, large_row, kc)
        many = min(gather_block(small, small_row, kc, keys, firsts), limit)
        if many == 0:
            break
        seek_block(large, large_row, keys, many, kc, places)
        if load(places, many - 1) - load(places, 0) > 8 * many:
            # The rows found lie far apart, and are copied when all rectangles are known.
            if small_side == SIDE_B:
                _prefetch_columns(large, spec, 0, kc, nd_a, places, many)
            else:
                _prefetch_columns(large, spec, nd_a, kc, nd_b, places, many)
        j = 0
        while j < many and rows < limit:
            large_row = load(places, j)
            end = group_end(large, large_rows, large_row, keys, j, kc)
            small_row = load(firsts, j + 1)
            if end > large_row and (flags & _MATCH_NULLS != 0 or not has_null(keys, j, kc)):
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
                size = (outer_end - outer) * (stop - start)
                if size <= limit - rows:
                    rectangles = _add_rectangle(rectangles, used, inner_side, outer, outer_end, start, stop)
                    rows += size
                else:
                    rectangles, some = _cut_rectangle(
                        rectangles, used, limit - rows, inner_side, outer, outer_end, start, stop, state
                    )
                    rows += some
                    limit = rows  # the chunk is full
                used += 1
            large_row = end
            j += 1
    state[SMALL_ROW] = small_row
    state[LARGE_ROW] = large_row
    return rectangles, used, rows


@inner
def _copy_side(rectangles, first, last, side, at, by, out, o):
    """Write one data column of `side` for rectangles first..last, from output row `o` on; returns the row after."""
    for q in range(first, last):
        w = RECTANGLE * q
        start = rectangles[w + 3]
        size = rectangles[w + 4] - start
        if rectangles[w] == side and by != 0:
            for _ in range(rectangles[w + 1], rectangles[w + 2]):
                copy_words(at, by, start, start + size, out + 8 * o, 8)
                o += size
        else:
            turn = by if rectangles[w] != side else 0
            for r in range(rectangles[w + 1], rectangles[w + 2]):
                word = read(at, turn, r)
                target = out + 8 * o
                for i in range(size):
                    store(target, i, word)
                o += size
    return o


def _rectangle_writer_of(write_pairs: Any) -> Any:
    """A function that writes a column of rectangles first..last, of which both sides have a part, from output row `o` on: that of
    side a is at `a`, that of side b at `b`; outer words count as at least `floor`. Returns the row after, and whether a word
    overflows.
    """

    @inner
    def write(rectangles, first, last, a, a_step, b, b_step, floor, out, o):
        wrong = False
        for q in range(first, last):
            w = RECTANGLE * q
            outer, outer_step, run, run_step = b, b_step, a, a_step
            if rectangles[w] == SIDE_B:
                outer, outer_step, run, run_step = a, a_step, b, b_step
            start = rectangles[w + 3]
            size = rectangles[w + 4] - start
            for r in range(rectangles[w + 1], rectangles[w + 2]):
                word = max(read(outer, outer_step, r), floor)
                wrong |= write_pairs(word, run, run_step, start, size, out + 8 * o)
                o += size
        return o, wrong

    return write


_write_times = _rectangle_writer_of(write_maxima)
_write_diffs = _rectangle_writer_of(write_products)


@inner
def _column_at(head, column, zero):
    """The address and the step of a column; those of a constant 0 if there is none (-1)."""
    if column < 0:
        return zero, 0
    return address(head, column), step_of(head, column)


@inner
def _parts_of(c, spec, nd_a, nd_b, nt_a, nt_b, nt):
    """The columns of side a and of side b that make output column c; -1 where a side has no part in it."""
    t = c - len(spec)
    if t < 0:
        if spec[c] < nd_a:
            return spec[c], -1
        return -1, spec[c] - nd_a
    if t == nt:
        return nd_a + nt_a, nd_b + nt_b
    return nd_a + t if t < nt_a else -1, nd_b + t if t < nt_b else -1


@inner
def _constant_of(a, b, column_a, column_b, is_data, is_diff, floor, zero):
    """Of one pair of rows objects: whether the parts of an output column are constant, and its word then; whether that
    overflows.
    """
    x, x_step = _column_at(a, column_a, zero)
    y, y_step = _column_at(b, column_b, zero)
    if x_step != 0 or y_step != 0:
        return False, 0, False
    x = load(x, 0)
    y = load(y, 0)
    if is_diff:
        return True, x * y, product_overflows(x, y)
    if is_data:
        return True, x if column_a >= 0 else y, False
    return True, max(max(x, y), floor), False


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
    pair = state[PAIR]
    rectangles = np.empty(RECTANGLE * 32, np.int64)
    used = 0
    rows = 0
    # Segments: the rectangles of one pair of rows objects lie together. A segment is the pair and its first rectangle.
    segments = np.empty(2 * (pairs - pair) + 2, np.int64)
    n_segments = 0
    memory, (keys, firsts, places, zero) = scratch((BLOCK * kc, BLOCK + 1, BLOCK, 1))
    while pair < pairs and rows < limit:
        before = used
        rectangles, used, rows = _go_on_with_cut(rectangles, used, rows, limit, state)
        small = delta[pair // others]
        large = other[pair % others]
        small_side = SIDE_A
        if count(small) > count(large):
            small, large = large, small
            small_side = SIDE_B
        rectangles, used, rows = _find_rectangles(
            small, large, small_side, kc, nd_a, nd_b, spec, flags, limit, keys, firsts, places,
            rectangles, used, rows, state,
        )  # fmt: skip
        if used > before:
            segments[2 * n_segments] = pair
            segments[2 * n_segments + 1] = before
            n_segments += 1
        if state[CUT_OUTER] < state[CUT_OUTER_END]:
            break
        if state[SMALL_ROW] >= count(small) or state[LARGE_ROW] >= count(large):
            pair += 1
            state[SMALL_ROW] = 0
            state[LARGE_ROW] = 0
    segments[2 * n_segments + 1] = used
    state[PAIR] = pair
    state[DONE] = 1 if pair >= pairs else 0

    outputs = len(spec)
    width = outputs + nt + 1
    head = new_head(rows, width)
    if rows == 0:
        keep(memory)
        return np.empty(0, np.int64), head
    store(zero, 0, 0)
    # Which columns are constant by construction, and how many must be stored.
    stored = 0
    for c in range(width):
        column_a, column_b = _parts_of(c, spec, nd_a, nd_b, nt_a, nt_b, nt)
        floor = lo if c == outputs else 0
        constant = True
        word = 0
        for s in range(n_segments):
            a = delta[segments[2 * s] // others]
            b = other[segments[2 * s] % others]
            constant, here, wrong = _constant_of(
                a, b, column_a, column_b, c < outputs, c == width - 1, floor, zero
            )  # fmt: skip
            if wrong:
                head[0] = -1
            if s == 0:
                word = here
            constant = constant and word == here
            if not constant:
                break
        if constant:
            set_constant(head, c, word)
        else:
            set_stored(head, c, stored)
            stored += 1

    buf = np.empty(stored * rows, np.int64)
    for c in range(width):
        if head[4 + 3 * c] == 0:
            continue
        column_a, column_b = _parts_of(c, spec, nd_a, nd_b, nt_a, nt_b, nt)
        out = address_of(buf) + 8 * rows * head[3 + 3 * c]
        o = 0
        wrong = False
        for s in range(n_segments):
            first = segments[2 * s + 1]
            last = segments[2 * s + 3]
            x, x_step = _column_at(delta[segments[2 * s] // others], column_a, zero)
            y, y_step = _column_at(other[segments[2 * s] % others], column_b, zero)
            if c == width - 1:
                o, bad = _write_diffs(rectangles, first, last, x, x_step, y, y_step, NULL, out, o)
                wrong |= bad
            elif c >= outputs:
                floor = lo if c == outputs else 0
                o, bad = _write_times(rectangles, first, last, x, x_step, y, y_step, floor, out, o)
            elif column_a >= 0:
                o = _copy_side(rectangles, first, last, SIDE_A, x, x_step, out, o)
            else:
                o = _copy_side(rectangles, first, last, SIDE_B, y, y_step, out, o)
        if wrong:
            head[0] = -1
        if c >= outputs and not wrong and all_same(out, rows):
            set_constant(head, c, load(out, 0))
        else:
            set_stored(head, c, out)
    keep(memory)
    return buf, head
