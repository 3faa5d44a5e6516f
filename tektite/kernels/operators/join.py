"""All pairs of rows with equal keys, with times at their least upper bound and diffs multiplied, in bounded chunks.

A call first lists *rectangles* of pairs (see rectangles.py) until it has `limit` rows. Then it writes the output column by
column. A column that must be one word, because it is constant in all rows objects that take part, is not written.

Short names, for the sides a (`delta`) and b (`other`): `kc` is the number of key columns; `nd_a` and `nd_b` are the numbers of
data columns; `nt_a`, `nt_b` and `nt` are the numbers of time columns of the sides and of the output; `lo` is the least epoch.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tektite.kernels.compile import inlined, inner, kernel
from tektite.kernels.layout.columns import all_same, copy_words, fill_words
from tektite.kernels.layout.memory import load, read, store
from tektite.kernels.layout.pages import address_of
from tektite.kernels.layout.rows import address, new_head, place_columns, set_constant, set_stored, step_of
from tektite.kernels.layout.scratch import keep, scratch
from tektite.kernels.operators.pairs import write_maxima, write_products
from tektite.kernels.operators.rectangles import (
    INNER,
    INNER_END,
    INNER_SIDE,
    JOIN_STATE,
    OUTER,
    OUTER_END,
    RECTANGLE,
    SIDE_A,
    SIDE_B,
    JoinShape,
    KeyBlock,
    list_rectangles,
)
from tektite.kernels.operators.wide import product_overflows
from tektite.kernels.seek.keys import BLOCK, ENDS_WORK
from tektite.values.words import NULL

__all__ = ["JOIN_STATE", "join"]

# A flag: keys with a NULL match.
_MATCH_NULLS = 1


class FoundPairs(NamedTuple):
    """Addresses of the rows objects of both sides, of `spec`, of the segments and the rectangles (see rectangles.py), and of a
    word 0, which stands for a column that a side lacks. The numbers of `other`'s rows objects, of `spec`'s columns and of
    segments. Functions take addresses: of arrays, Numba would count the references at every call.
    """

    delta: int
    other: int
    others: int
    spec: int
    outputs: int
    segments: int
    many: int
    rectangles: int
    zero: int


@inner
def _segment(found, s):
    """Segment s: the rows objects of side a and of side b, its first rectangle, and the end of its rectangles."""
    pair = load(found.segments, 2 * s)
    a = load(found.delta, pair // found.others)
    b = load(found.other, pair % found.others)
    return a, b, load(found.segments, 2 * s + 1), load(found.segments, 2 * s + 3)


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
    shape = JoinShape(kc, nd_a, nd_b, nt_a, nt_b, nt, flags & _MATCH_NULLS != 0)
    # `zero` stands for a column that a side lacks.
    memory, (keys, firsts, places, ends, work, zero) = scratch((BLOCK * kc, BLOCK + 1, BLOCK, BLOCK, ENDS_WORK, 1))
    block = KeyBlock(keys, firsts, places, ends, work)
    rectangles, segments, n_segments, rows = list_rectangles(delta, other, shape, spec, limit, block, state)
    outputs = len(spec)
    width = outputs + nt + 1
    head = new_head(rows, width)
    if rows == 0:
        keep(memory)
        return np.empty(0, np.int64), head
    store(zero, 0, 0)
    found = FoundPairs(
        address_of(delta), address_of(other), len(other), address_of(spec), outputs, address_of(segments), n_segments,
        address_of(rectangles), zero,
    )  # fmt: skip
    for c in range(width):
        constant, word, wrong = _one_word(found, c, shape, lo)
        if wrong:
            head[0] = -1
        if constant:
            set_constant(head, c, word)
        else:
            set_stored(head, c, 0)
    buf = place_columns(head, rows)
    for c in range(width):
        if head[4 + 3 * c] == 0:
            continue
        out = head[3 + 3 * c]
        wrong = _write_column(found, c, shape, lo, out)
        if wrong:
            head[0] = -1
        elif c >= outputs and all_same(out, rows):
            set_constant(head, c, load(out, 0))
    keep(memory)
    keep(segments)
    keep(rectangles)
    return buf, head


@inner
def _parts_of(found, c, shape):
    """The columns of side a and of side b that make output column c; -1 where a side has no part in it."""
    t = c - found.outputs
    if t < 0:
        column = load(found.spec, c)
        if column < shape.nd_a:
            return column, -1
        return -1, column - shape.nd_a
    if t == shape.nt:
        return shape.nd_a + shape.nt_a, shape.nd_b + shape.nt_b
    return shape.nd_a + t if t < shape.nt_a else -1, shape.nd_b + t if t < shape.nt_b else -1


@inner
def _column_at(head, column, zero):
    """The address and the step of a column; those of a constant 0 if there is none (-1)."""
    if column < 0:
        return zero, 0
    return address(head, column), step_of(head, column)


@inlined
def _one_word(found, c, shape, lo):
    """Whether output column c must be one word, because its parts are constant in all segments, and the word; whether a product
    of diffs overflows.
    """
    column_a, column_b = _parts_of(found, c, shape)
    outputs = found.outputs
    word = 0
    for s in range(found.many):
        a, b, _, _ = _segment(found, s)
        x, x_step = _column_at(a, column_a, found.zero)
        y, y_step = _column_at(b, column_b, found.zero)
        if x_step != 0 or y_step != 0:
            return False, 0, False
        x = load(x, 0)
        y = load(y, 0)
        if c == outputs + shape.nt:
            here = x * y
            if product_overflows(x, y):
                return True, here, True
        elif c >= outputs:
            here = max(max(x, y), lo if c == outputs else 0)
        else:
            here = x if column_a >= 0 else y
        if s > 0 and here != word:
            return False, 0, False
        word = here
    return True, word, False


@inlined
def _write_column(found, c, shape, lo, out):
    """Write output column c of all rectangles to the address `out`. Returns whether a product of diffs overflows."""
    column_a, column_b = _parts_of(found, c, shape)
    outputs = found.outputs
    rectangles = found.rectangles
    wrong = False
    for s in range(found.many):
        a, b, first, last = _segment(found, s)
        x, x_step = _column_at(a, column_a, found.zero)
        y, y_step = _column_at(b, column_b, found.zero)
        if c == outputs + shape.nt:
            out, bad = _write_diffs(rectangles, first, last, x, x_step, y, y_step, NULL, out)
            wrong |= bad
        elif c >= outputs:
            out, _ = _write_times(rectangles, first, last, x, x_step, y, y_step, lo if c == outputs else 0, out)
        elif column_a >= 0:
            out = _copy_side(rectangles, first, last, SIDE_A, x, x_step, out)
        else:
            out = _copy_side(rectangles, first, last, SIDE_B, y, y_step, out)
    return wrong


@inner
def _copy_side(rectangles, first, last, side, at, by, out):
    """Write one data column of `side` for rectangles first..last to the address `out`. Returns the address behind it."""
    for q in range(first, last):
        w = RECTANGLE * q
        start = load(rectangles, w + INNER)
        end = load(rectangles, w + INNER_END)
        if load(rectangles, w + INNER_SIDE) == side and by != 0:
            for _ in range(load(rectangles, w + OUTER), load(rectangles, w + OUTER_END)):
                copy_words(at, by, start, end, out, 8)
                out += 8 * (end - start)
        else:
            turn = by if load(rectangles, w + INNER_SIDE) != side else 0
            for r in range(load(rectangles, w + OUTER), load(rectangles, w + OUTER_END)):
                fill_words(out, 8, 0, end - start, read(at, turn, r))
                out += 8 * (end - start)
    return out


def _rectangle_writer_of(write_pairs: Any) -> Any:
    """A function that writes a column of rectangles first..last, of which both sides have a part, to the address `out`: that of
    side a is at `a`, that of side b at `b`; outer words count as at least `floor`. Returns the address behind it, and whether a
    word overflows.
    """

    @inner
    def write(rectangles, first, last, a, a_step, b, b_step, floor, out):
        wrong = False
        for q in range(first, last):
            w = RECTANGLE * q
            outer, outer_step, run, run_step = b, b_step, a, a_step
            if load(rectangles, w + INNER_SIDE) == SIDE_B:
                outer, outer_step, run, run_step = a, a_step, b, b_step
            start = load(rectangles, w + INNER)
            size = load(rectangles, w + INNER_END) - start
            for r in range(load(rectangles, w + OUTER), load(rectangles, w + OUTER_END)):
                word = max(read(outer, outer_step, r), floor)
                wrong |= write_pairs(word, run, run_step, start, size, out)
                out += 8 * size
        return out, wrong

    return write


_write_times = _rectangle_writer_of(write_maxima)
_write_diffs = _rectangle_writer_of(write_products)
