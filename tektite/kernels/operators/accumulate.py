"""Accumulators: turns rows into keys whose diff columns are summed by linear aggregates.

Each aggregated column contributes diff columns beside the multiplicity m: COUNT_PRESENT m where the value is not NULL;
SUM_INT two limbs, (size mod 2**32)·m and (size div 2**32)·m with the value's sign, that are summed independently: the sum is
lo + hi·2**32. So a small value has a small limb, which a large m may multiply. NULL contributes nothing.

Floats are summed as limbs (see limbs.py) that belong to bins. A diff column for each bin would be mostly zeros, so rows
with floats are *exploded* into several: the data columns become (key..., slot), and one more diff column is the limb.
Slot 0 has all other diffs; slot 1 + LIMBS * f + bin has, with every other diff 0, the limbs of a bin of float column f.
"""

from __future__ import annotations

import numpy as np

from tektite.kernels.compile import inner, kernel
from tektite.kernels.layout.columns import copy_words
from tektite.kernels.layout.memory import GREATEST, load, read, store
from tektite.kernels.layout.pages import address_of, empty_words
from tektite.kernels.layout.rows import address, copy_column, count, new_head, set_stored, step_of, value
from tektite.kernels.operators.limbs import LIMBS, limbs_of
from tektite.values.words import NULL

COUNT_PRESENT = 1
SUM_INT = 2

_LOW = 0xFFFFFFFF
_FEW = 2**30


@inner
def halves(value):
    """The low and the high limb of an integer: both have its sign. NULL is zero."""
    if value == NULL:
        return 0, 0
    if value < 0:
        return -(-value & _LOW), -(-value >> 32)
    return value & _LOW, value >> 32


@inner
def too_large(limb, m):
    """Whether a limb (below 2**32 in size) times a multiplicity may not fit a word."""
    if -_FEW <= m <= _FEW or limb == 0:
        return False
    return m < -GREATEST or (m if m >= 0 else -m) > GREATEST // (limb if limb >= 0 else -limb)


@inner
def accumulated_head(rows, times, spec):
    """A head for rows with accumulators, and the numbers of key columns, of pairs and of diff columns that `spec` says (see
    `accumulate`).
    """
    keys = spec[0]
    pairs = (len(spec) - 1 - keys) // 2
    diffs = 1
    for p in range(pairs):
        diffs += 2 if spec[1 + keys + 2 * p] == SUM_INT else 1
    return new_head(rows, keys + times + diffs), keys, pairs, diffs


@kernel("Tuple((int64[::1], int64[::1]))(int64, int64, int64, int64[::1])")
def accumulate(source, data, times, spec):
    """`spec` is the number of key columns, the key columns, then pairs (kind, data column). The result has the key
    columns, the times, the multiplicity, and the diff columns of each pair. The row count is -1 on overflow.
    """
    rows = count(source)
    head, keys, pairs, diffs = accumulated_head(rows, times, spec)
    for j in range(keys):
        copy_column(source, spec[1 + j], head, j)
    for j in range(times):
        copy_column(source, data + j, head, keys + j)
    multiplicity = data + times
    copy_column(source, multiplicity, head, keys + times)
    buf = empty_words((diffs - 1) * rows)
    at = address_of(buf)
    m_at = address(source, multiplicity)
    m_step = step_of(source, multiplicity)
    target = keys + times + 1
    used = 0
    overflow = False
    for p in range(pairs):
        kind = spec[1 + keys + 2 * p]
        column = spec[2 + keys + 2 * p]
        v_at = address(source, column)
        v_step = step_of(source, column)
        out = at + 8 * used * rows
        if kind == COUNT_PRESENT:
            if v_step == 0 and load(v_at, 0) != NULL:
                copy_column(source, multiplicity, head, target)
            else:
                for i in range(rows):
                    present = read(v_at, v_step, i) != NULL
                    store(out, i, read(m_at, m_step, i) if present else 0)
                set_stored(head, target, out)
            used += 1
            target += 1
        else:
            high = out + 8 * rows
            for i in range(rows):
                low, upper = halves(read(v_at, v_step, i))
                m = read(m_at, m_step, i)
                if too_large(low, m) or too_large(upper, m):
                    overflow = True
                store(out, i, low * m)
                store(high, i, upper * m)
            set_stored(head, target, out)
            set_stored(head, target + 1, high)
            used += 2
            target += 2
    if overflow:
        head[0] = -1
    return buf, head


@kernel("Tuple((int64[::1], int64[::1]))(int64, int64, int64, int64, int64[::1])")
def explode(accumulated, keys, times, source, columns):
    """Rows with accumulators, and behind them the limbs of those float columns of `source` that `columns` lists. The two
    have the same rows. The row count is -1 on overflow.
    """
    rows = count(accumulated)
    width = load(accumulated, 2)
    multiplicity = keys + times
    capacity = rows * (1 + 3 * len(columns))
    origin = np.empty(capacity, np.int64)
    # The columns besides slot and limb are written behind the two, when it is known how many rows there are.
    buf = empty_words(capacity * (width + 2))
    slots = address_of(buf)
    limbs = slots + 8 * capacity
    for i in range(rows):
        store(slots, i, 0)
        store(limbs, i, 0)
        origin[i] = i
    total = rows
    overflow = False
    for f in range(len(columns)):
        for i in range(rows):
            word = value(source, columns[f], i)
            if word == NULL:
                continue
            m = value(accumulated, multiplicity, i)
            slot, low, middle, high = limbs_of(word)
            slot += 1 + LIMBS * f
            for limb in (low, middle, high):
                if limb != 0:
                    if too_large(limb, m):
                        overflow = True
                    store(slots, total, slot)
                    store(limbs, total, limb * m)
                    origin[total] = i
                    total += 1
                slot += 1
    head = new_head(total, width + 2)
    set_stored(head, keys, slots)
    set_stored(head, width + 1, limbs)
    for c in range(width):
        target = c if c < keys else c + 1
        at = address(accumulated, c)
        out = slots + 8 * capacity * (2 + c)
        if c < multiplicity:
            if step_of(accumulated, c) == 0:
                copy_column(accumulated, c, head, target)
                continue
            by = step_of(accumulated, c)
            for i in range(total):
                store(out, i, read(at, by, origin[i]))
        else:
            copy_words(at, step_of(accumulated, c), 0, rows, out, 8)
            for i in range(rows, total):
                store(out, i, 0)
        set_stored(head, target, out)
    if overflow:
        head[0] = -1
    return buf, head
