"""Finds the pairs of rows that a join writes, as rectangles.

A *rectangle* is a run of rows of one side by a run of rows of the other: all rows that have one key. The inner run is repeated
for each row of the outer run. The distinct keys of the smaller side are sought in the larger one, a block at a time. So the work
is proportional to the smaller side, and to the rectangles.

`list_rectangles` lists rectangles until they have `limit` rows. It cuts the last one if necessary, and goes on with the rest of
it in the next call. What it must remember between calls is in `state`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tektite.kernels.compile import inlined, inner
from tektite.kernels.layout.memory import load, store
from tektite.kernels.layout.pages import address_of, prefetch
from tektite.kernels.layout.records import room
from tektite.kernels.layout.rows import address, count, step_of
from tektite.kernels.seek.keys import block_ends, gather_block, has_null, seek_block
from tektite.kernels.seek.search import gallop_rows

# The words of a rectangle: the side whose run is the inner one, the outer run, the inner run.
INNER_SIDE, OUTER, OUTER_END, INNER, INNER_END = range(5)
RECTANGLE = 5
# The most rectangles that what is left of a cut one becomes in a chunk.
CUT = 3
SIDE_A = 0
SIDE_B = 1

# The state, all 0 at first. DONE is 1 after the last rectangle. PAIR is the pair of rows objects, SMALL_ROW and LARGE_ROW are the
# next rows of its smaller and its larger side. A rectangle that the limit cut goes on at row CUT_AT of the inner run, in row
# CUT_OUTER of the outer run; it is written when CUT_OUTER is CUT_OUTER_END.
DONE, PAIR, SMALL_ROW, LARGE_ROW, CUT_SIDE, CUT_OUTER, CUT_OUTER_END, CUT_START, CUT_END, CUT_AT = range(10)
JOIN_STATE = 10


class JoinShape(NamedTuple):
    """The numbers of columns of a join of the sides a and b: of the key, of data and of times of each side, and of the output's
    times; whether keys with a NULL match.
    """

    kc: int
    nd_a: int
    nd_b: int
    nt_a: int
    nt_b: int
    nt: int
    nulls_match: bool


class KeyBlock(NamedTuple):
    """Scratch memory: a block of keys of the smaller side, the rows where they begin there, and those where they begin and end in
    the larger side; words for the search of the ends.
    """

    keys: int
    firsts: int
    places: int
    ends: int
    work: int


@inlined
def list_rectangles(delta, other, shape, spec, limit, block, state):
    """The next rectangles of all pairs of a rows object of `delta`, side a, and one of `other`, side b. Returns (rectangles,
    segments, number of segments, rows). A *segment* is what one pair of rows objects has: the number of the pair, and its first
    rectangle. One more entry of `segments` says where the last one ends. `spec` lists the columns that will be copied, `block` is
    scratch memory.
    """
    pairs = len(delta) * len(other)
    pair = state[PAIR]
    rectangles = np.empty(RECTANGLE * 32, np.int64)
    used = 0
    rows = 0
    segments = np.empty(2 * (pairs - pair) + 2, np.int64)
    n_segments = 0
    while pair < pairs and rows < limit:
        before = used
        if state[CUT_OUTER] < state[CUT_OUTER_END]:
            rectangles = room(rectangles, RECTANGLE * used, RECTANGLE * CUT)
            used, rows = _go_on_with_cut(address_of(rectangles), used, rows, limit, state)
        small = delta[pair // len(other)]
        large = other[pair % len(other)]
        small_side = SIDE_A
        if count(small) > count(large):
            small, large = large, small
            small_side = SIDE_B
        rectangles, used, rows = _find_rectangles(
            small, large, small_side, shape, spec, limit, block, rectangles, used, rows, state
        )
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
    return rectangles, segments, n_segments, rows


@inlined
def _find_rectangles(small, large, small_side, shape, spec, limit, block, rectangles, used, rows, state):
    """List rectangles of the rows from the state's on, until there are `limit` rows, one side ends, or a rectangle is cut.
    Returns the rectangles, how many they are, and their rows.
    """
    kc = shape.kc
    small_rows = count(small)
    large_rows = count(large)
    small_row = state[SMALL_ROW]
    large_row = state[LARGE_ROW]
    while rows < limit and small_row < small_rows and large_row < large_rows:
        # Keys of the smaller side that lie before all that is left of the larger one need not be sought one by one.
        small_row = gallop_rows(small, small_rows, small_row, large, large_row, kc)
        many = min(gather_block(small, small_row, kc, block.keys, block.firsts), limit)
        if many == 0:
            break
        seek_block(large, large_row, block.keys, many, kc, block.places)
        if load(block.places, many - 1) - load(block.places, 0) > 8 * many:
            # The rows found lie far apart, and are copied when all rectangles are known.
            if small_side == SIDE_B:
                _prefetch_columns(large, spec, 0, kc, shape.nd_a, block.places, many)
            else:
                _prefetch_columns(large, spec, shape.nd_a, kc, shape.nd_b, block.places, many)
        block_ends(large, block.keys, many, kc, block.places, block.ends, block.work)
        # A key has one rectangle. They are written by address: of an array, Numba would count the references for each of them.
        rectangles = room(rectangles, RECTANGLE * used, RECTANGLE * many)
        listed = address_of(rectangles)
        j = 0
        while j < many and rows < limit:
            large_row = load(block.places, j)
            end = load(block.ends, j)
            small_row = load(block.firsts, j + 1)
            if end > large_row and (shape.nulls_match or not has_null(block.keys, j, kc)):
                start = load(block.firsts, j)
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
                    _put_rectangle(listed, used, inner_side, outer, outer_end, start, stop)
                    rows += size
                else:
                    rows += _cut_rectangle(listed, used, limit - rows, inner_side, outer, outer_end, start, stop, state)
                    limit = rows  # the chunk is full
                used += 1
            large_row = end
            j += 1
    state[SMALL_ROW] = small_row
    state[LARGE_ROW] = large_row
    return rectangles, used, rows


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
def _put_rectangle(rectangles, used, inner_side, outer, outer_end, start, end):
    """Write rectangle number `used` to the rectangles at an address."""
    at = rectangles + 8 * RECTANGLE * used
    store(at, INNER_SIDE, inner_side)
    store(at, OUTER, outer)
    store(at, OUTER_END, outer_end)
    store(at, INNER, start)
    store(at, INNER_END, end)


@inner
def _cut_rectangle(rectangles, used, left, inner_side, outer, outer_end, start, end, state):
    """List the first rows, `left` at most, of a rectangle that has more, and leave the rest in the state. Returns how many rows
    these are.
    """
    whole = left // (end - start)
    state[CUT_SIDE] = inner_side
    state[CUT_OUTER] = outer + whole
    state[CUT_OUTER_END] = outer_end
    state[CUT_START] = start
    state[CUT_END] = end
    state[CUT_AT] = start
    if whole > 0:
        _put_rectangle(rectangles, used, inner_side, outer, outer + whole, start, end)
        return whole * (end - start)
    state[CUT_AT] = start + left
    _put_rectangle(rectangles, used, inner_side, outer, outer + 1, start, start + left)
    return left


@inner
def _go_on_with_cut(rectangles, used, rows, limit, state):
    """List what is left of the rectangle that the last chunk's limit cut, as far as this chunk's limit allows: CUT rectangles at
    most, the rest of a row, whole rows and the beginning of one.
    """
    while state[CUT_OUTER] < state[CUT_OUTER_END] and rows < limit:
        left = limit - rows
        outer = state[CUT_OUTER]
        start = state[CUT_START]
        end = state[CUT_END]
        at = state[CUT_AT]
        if at > start or left < end - start:
            take = min(left, end - at)
            _put_rectangle(rectangles, used, state[CUT_SIDE], outer, outer + 1, at, at + take)
            rows += take
            state[CUT_AT] = at + take
            if at + take == end:
                state[CUT_OUTER] += 1
                state[CUT_AT] = start
        else:
            take = min(left // (end - start), state[CUT_OUTER_END] - outer)
            _put_rectangle(rectangles, used, state[CUT_SIDE], outer, outer + take, start, end)
            rows += take * (end - start)
            state[CUT_OUTER] += take
        used += 1
    return used, rows
