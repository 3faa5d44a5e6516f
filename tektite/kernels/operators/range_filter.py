"""Rows on one side of a bound of their key: the differences when bounds move, as runs of rows.

At each key and time, added and removed bounds give a row's multiplicity a factor, the *coefficient*: the sum of the diffs of
the bounds that the row passes. It is a step function of the value, and 0 outside the range between a removed and an added
bound. Rows are sorted by (key, value), so each step is one run of rows in each batch, found by searching for its ends.
`segments` lists the runs whose coefficient is not 0; `emit_segments` writes them in bounded chunks. Work is proportional to
the bounds, the batches and the emitted rows, and logarithmic in the size of a group.

A segment is the words (head, first row, end, coefficient, time...).
"""

from __future__ import annotations

import numpy as np

from tektite.kernels.compile import inner, kernel
from tektite.kernels.layout.columns import all_same, copy_words, fill_words
from tektite.kernels.layout.memory import GREATEST, load
from tektite.kernels.layout.records import compare_records, room, sort_records
from tektite.kernels.layout.rows import (
    address,
    count,
    new_head,
    place_columns,
    set_constant,
    set_stored,
    step_of,
    value,
)
from tektite.kernels.layout.scratch import keep
from tektite.kernels.operators.pairs import write_maxima, write_products
from tektite.kernels.operators.sources import (
    end_row,
    first_row,
    head_of,
    new_sources,
    next_keys,
    seek_sources,
    set_source,
    set_start,
    start_of,
)
from tektite.kernels.operators.wide import product_overflows, sum_overflows
from tektite.kernels.seek.keys import has_null
from tektite.kernels.seek.search import gallop_from, gallop_word
from tektite.values.words import NULL

# Flags of a comparison. ABOVE: rows pass from the bound upwards, not up to it. BEHIND: the step lies behind the rows
# that equal the bound, not before them. FLOATS: words are those of floats, of which -0.0 and 0.0 are equal.
ABOVE = 1
BEHIND = 2
FLOATS = 4

# What the caller keeps between calls: whether all keys were looked at, the segment to go on with, whether a coefficient
# did not fit a word; then a cursor for each batch that names keys.
DONE = 0
NEXT = 1
OVERFLOWN = 2
CURSORS = 3

# Segments of one list. They are a fraction of the rows that they stand for unless bounds move by single rows.
_MANY = 1 << 14


@inner
def _collect_bounds(sources, first, last, j, bound_at, nd, times, nt, lo, flags, list_):
    """The bounds of key j that are not NULL, as records (time, bound, diff) sorted by time and bound; how many."""
    stride = nt + 2
    many = 0
    for s in range(first, last):
        head = head_of(sources, s)
        for i in range(first_row(sources, s, j), end_row(sources, s, j)):
            word = value(head, bound_at, i)
            if word == NULL:
                continue
            if flags & FLOATS != 0 and (word == 0 or word == -1):
                # Rows that equal one zero equal the other: the step goes before both or behind both.
                word = 0 if flags & BEHIND != 0 else -1
            list_ = room(list_, many * stride, stride)
            at = many * stride
            list_[at] = max(value(head, nd, i), lo)
            for t in range(1, nt):
                list_[at + t] = value(head, nd + t, i) if t < times else 0
            list_[at + nt] = word
            list_[at + nt + 1] = value(head, nd + times, i)
            many += 1
    if many > 1:
        sort_records(list_, many, stride, nt + 1)
    return list_, many


@inner
def _add_segments(head, column, start, end, list_, first, last, nt, flags, found, used):
    """Add the segments that bounds first..last, which are of one time, give among rows start..end of one key.

    Returns the list, its length and whether a coefficient did not fit.
    """
    stride = nt + 2
    at = address(head, column)
    by = step_of(head, column)
    wrong = False
    coefficient = 0
    place = start
    if flags & ABOVE == 0:
        for b in range(first, last):
            diff = list_[b * stride + nt + 1]
            wrong |= sum_overflows(coefficient, diff)
            coefficient += diff
        if coefficient != 0:
            # NULL is the least word and passes no bound.
            place = gallop_word(at, by, end, start, NULL + 1)
    step = end - start
    for b in range(first, last + 1):
        following = end
        if b < last:
            word = list_[b * stride + nt]
            if flags & BEHIND == 0:
                following = gallop_from(at, by, end, place, max(step, 1), word)
            elif word != GREATEST:
                following = gallop_from(at, by, end, place, max(step, 1), word + 1)
            step = 1
        if coefficient != 0 and following > place:
            found = room(found, used, nt + 4)
            found[used] = head
            found[used + 1] = place
            found[used + 2] = following
            found[used + 3] = coefficient
            for t in range(nt):
                found[used + 4 + t] = list_[first * stride + t]
            used += nt + 4
        place = following
        if b < last:
            diff = list_[b * stride + nt + 1]
            if flags & ABOVE == 0:
                coefficient -= diff
            else:
                wrong |= sum_overflows(coefficient, diff)
                coefficient += diff
    return found, used, wrong


@kernel("int64[::1](int64[::1], int64[::1], int64, int64, int64, int64, int64, int64, int64, int64, int64, int64[::1])")
def segments(named, sought, by_bounds, kc, bound_at, nd, times, nt, flags, lo, limit, state):
    """The segments of some further keys: those of the batches `named`, sought in the batches `sought`.

    One of the two holds bounds (`named`, if by_bounds is 1), with the bound in column `bound_at`, `nd` data and `times`
    time columns; the other rows, with the value in column `kc` behind the key. Keys are taken until their segments have
    `limit` rows or are very many. Times have `nt` columns, the epoch at least `lo`. `state`, all 0 at first, has length
    CURSORS + len(named); state[DONE] is 1 after the last key.
    """
    n_named = len(named)
    n_sought = len(sought)
    n_all = n_named + n_sought
    none = np.int64(0)
    memory, sources, _ = new_sources(n_all, kc, none, none)
    for s in range(n_sought):
        set_source(sources, s, sought[s], none, none, False)
    for s in range(n_named):
        set_source(sources, n_sought + s, named[s], none, none, False)
        set_start(sources, n_sought + s, state[CURSORS + s])
    first_bounds = 0
    last_bounds = n_sought
    first_rows = n_sought
    last_rows = n_all
    if by_bounds == 1:
        first_bounds = n_sought
        last_bounds = n_all
        first_rows = 0
        last_rows = n_sought
    found = np.empty(16 * (nt + 4), np.int64)
    list_ = np.empty(16 * (nt + 2), np.int64)
    used = 0
    rows = 0
    wrong = False
    state[DONE] = 0
    state[NEXT] = 0
    while rows < limit and used < _MANY * (nt + 4):
        many = next_keys(sources, n_sought, n_named)
        if many == 0:
            state[DONE] = 1
            break
        seek_sources(sources, 0, n_sought, many)
        for j in range(many):
            if has_null(sources.keys, j, kc):
                continue
            present = False
            for s in range(first_rows, last_rows):
                present |= end_row(sources, s, j) > first_row(sources, s, j)
            if not present:
                continue
            list_, n = _collect_bounds(sources, first_bounds, last_bounds, j, bound_at, nd, times, nt, lo, flags, list_)
            b = 0
            while b < n:
                last = b + 1
                while last < n and compare_records(list_, b * (nt + 2), list_, last * (nt + 2), nt) == 0:
                    last += 1
                for s in range(first_rows, last_rows):
                    start = first_row(sources, s, j)
                    stop = end_row(sources, s, j)
                    if stop > start:
                        before = used
                        found, used, bad = _add_segments(
                            head_of(sources, s), kc, start, stop, list_, b, last, nt, flags, found, used
                        )
                        wrong |= bad
                        for w in range(before, used, nt + 4):
                            rows += found[w + 2] - found[w + 1]
                b = last
    complete = True
    for s in range(n_named):
        state[CURSORS + s] = start_of(sources, n_sought + s)
        complete &= state[CURSORS + s] >= count(named[s])
    if complete:
        state[DONE] = 1
    if wrong:
        state[OVERFLOWN] = 1
    keep(memory)
    return found[:used].copy()


@inner
def _copy_data(found, first, last, stride, column, out):
    """Write a data column of segments first..last."""
    for q in range(first, last):
        w = q * stride
        head = found[w]
        start = found[w + 1]
        size = found[w + 2] - start
        copy_words(address(head, column), step_of(head, column), start, start + size, out, 8)
        out += 8 * size


@inner
def _write_times(found, first, last, stride, t, column, out):
    """Write time column `t`: the greater of a segment's and its rows' own in `column`; -1 if they have none."""
    for q in range(first, last):
        w = q * stride
        head = found[w]
        start = found[w + 1]
        size = found[w + 2] - start
        if column < 0:
            fill_words(out, 8, 0, size, found[w + 4 + t])
        else:
            write_maxima(found[w + 4 + t], address(head, column), step_of(head, column), start, size, out)
        out += 8 * size


@inner
def _write_diffs(found, first, last, stride, column, out):
    """Write the rows' diffs times their segments' coefficients; whether one does not fit a word."""
    wrong = False
    for q in range(first, last):
        w = q * stride
        head = found[w]
        start = found[w + 1]
        size = found[w + 2] - start
        wrong |= write_products(found[w + 3], address(head, column), step_of(head, column), start, size, out)
        out += 8 * size
    return wrong


@inner
def _one_word(found, first, last, stride, c, spec, nd, times, nt):
    """Whether output column `c` is one word by construction, and the word."""
    outputs = len(spec)
    word = 0
    for q in range(first, last):
        w = q * stride
        head = found[w]
        column = nd + times
        if c < outputs:
            column = spec[c]
        elif c < outputs + nt:
            column = nd + c - outputs if c - outputs < times else -1
        here = 0
        if column >= 0:
            if step_of(head, column) != 0:
                return False, 0
            here = load(address(head, column), 0)
        if c >= outputs:
            if c < outputs + nt:
                here = max(here, found[w + 4 + c - outputs])
            elif product_overflows(here, found[w + 3]):
                return False, 0  # writing the column will find it again
            else:
                here *= found[w + 3]
        if q == first:
            word = here
        elif word != here:
            return False, 0
    return True, word


@kernel("Tuple((int64[::1], int64[::1]))(int64[::1], int64[::1], int64, int64, int64, int64, int64[::1])")
def emit_segments(found, spec, nd, times, nt, limit, state):
    """The next at most `limit` >= 1 rows of the segments `found`: data columns as `spec` lists them, times, diff.

    The rows have `nd` data and `times` time columns; missing times are 0. state[NEXT] is the segment to go on with: the
    caller has them all when it reaches the end. The rest of a segment that is cut is kept in `found`.
    The number of rows is -1 if a product of diffs does not fit a word.
    """
    stride = nt + 4
    many = len(found) // stride
    first = state[NEXT]
    last = first
    rows = 0
    stop = -1
    while last < many and rows < limit:
        w = last * stride
        size = found[w + 2] - found[w + 1]
        if size > limit - rows:
            stop = found[w + 2]
            size = limit - rows
            found[w + 2] = found[w + 1] + size
        rows += size
        last += 1
    outputs = len(spec)
    width = outputs + nt + 1
    head = new_head(rows, width)
    for c in range(width):
        constant, word = _one_word(found, first, last, stride, c, spec, nd, times, nt)
        if constant:
            set_constant(head, c, word)
        else:
            set_stored(head, c, 0)
    buf = place_columns(head, rows)
    for c in range(width):
        if head[4 + 3 * c] == 0:
            continue
        out = head[3 + 3 * c]
        if c < outputs:
            _copy_data(found, first, last, stride, spec[c], out)
            continue
        t = c - outputs
        if t < nt:
            _write_times(found, first, last, stride, t, nd + t if t < times else -1, out)
        elif _write_diffs(found, first, last, stride, nd + times, out):
            head[0] = -1
        if all_same(out, rows):
            set_constant(head, c, load(out, 0))
    state[NEXT] = last
    if stop >= 0:
        w = (last - 1) * stride
        found[w + 1] = found[w + 2]
        found[w + 2] = stop
        state[NEXT] = last - 1
    return buf, head
