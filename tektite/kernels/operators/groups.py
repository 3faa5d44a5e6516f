"""Accumulators of few groups: sums rows of one key and time by hashing, before sorting.

If keys repeat often, a row costs a look-up in a small hash table, and one row a group is left to sort. If they do not, the
attempt is abandoned after a few rows.
"""

from __future__ import annotations

import numpy as np

from tektite.kernels.compile import inner, kernel
from tektite.kernels.layout.memory import load, load4, read, store
from tektite.kernels.layout.pages import address_of
from tektite.kernels.layout.rows import address, copy_column, count, set_stored, step_of, value
from tektite.kernels.layout.scratch import keep, scratch
from tektite.kernels.operators.accumulate import COUNT_PRESENT, accumulated_head, halves
from tektite.kernels.seek.numbering import number_rows
from tektite.kernels.seek.route import new_parts
from tektite.values.words import NULL

NOT_WORTH_IT = -2

# Limbs are below 2**32, so that this many of them, multiplicities counted, add up to less than 2**63.
_SAFE = 2**31


@inner
def _sums_fit(rows, at, by):
    """Whether sums of limbs times the multiplicities of so many rows, which are in the column at `at`, surely fit a word."""
    most = np.int64(0)
    for i in range(rows if by != 0 else min(rows, 1)):
        m = read(at, by, i)
        most = max(most, m if m >= 0 else -m)
        if most > _SAFE:
            return False
    return most * rows < _SAFE


@kernel("Tuple((int64[::1], int64[::1]))(int64, int64, int64, int64[::1])")
def accumulate_groups(source, data, times, spec):
    """What `accumulate` gives, with the rows of each key and time added up, keys in the order of their first rows.

    The row count is NOT_WORTH_IT where more than every second row has a key of its own, or a sum may not fit.
    """
    rows = count(source)
    head, keys, pairs, diffs = accumulated_head(rows, times, spec)
    m_at = address(source, data + times)
    m_step = step_of(source, data + times)
    if not _sums_fit(rows, m_at, m_step):
        head[0] = NOT_WORTH_IT
        return np.empty(0, np.int64), head

    # The columns that tell rows apart, and where they go.
    memory, (columns, targets, firsts) = scratch((2 * (keys + times), keys + times, rows))
    varying = 0
    for j in range(keys + times):
        column = spec[1 + j] if j < keys else data + j - keys
        copy_column(source, column, head, j)
        if step_of(source, column) != 0:
            store(columns, 2 * varying, address(source, column))
            store(columns, 2 * varying + 1, step_of(source, column))
            store(targets, varying, j)
            varying += 1
    parts = new_parts(rows)
    group = address_of(parts)
    groups = number_rows(columns, varying, rows, group, firsts, True)
    if groups < 0 or 2 * groups > rows:
        head[0] = NOT_WORTH_IT
        keep(parts)
        keep(memory)
        return np.empty(0, np.int64), head

    head[0] = groups
    buf = np.zeros((varying + diffs) * groups, np.int64)
    at = address_of(buf)
    for k in range(varying):
        for g in range(groups):
            store(at, g, read(load(columns, 2 * k), load(columns, 2 * k + 1), load(firsts, g)))
        set_stored(head, load(targets, k), at)
        at += 8 * groups
    for i in range(rows):
        _add(at, load4(group, i), read(m_at, m_step, i))
    target = keys + times
    set_stored(head, target, at)
    counts = at
    for p in range(pairs):
        at += 8 * groups
        target += 1
        kind = spec[1 + keys + 2 * p]
        column = spec[2 + keys + 2 * p]
        v_at = address(source, column)
        v_step = step_of(source, column)
        if kind == COUNT_PRESENT:
            if v_step == 0 and value(source, column, 0) != NULL:
                set_stored(head, target, counts)
                continue
            for i in range(rows):
                m = read(m_at, m_step, i)
                _add(at, load4(group, i), m if read(v_at, v_step, i) != NULL else 0)
            set_stored(head, target, at)
        else:
            high = at + 8 * groups
            for i in range(rows):
                m = read(m_at, m_step, i)
                low, upper = halves(read(v_at, v_step, i))
                g = load4(group, i)
                _add(at, g, low * m)
                _add(high, g, upper * m)
            set_stored(head, target, at)
            set_stored(head, target + 1, high)
            at = high
            target += 1
    keep(parts)
    keep(memory)
    return buf, head


@inner
def _add(sums, g, word):
    """Add a word to the sum of group g."""
    store(sums, g, load(sums, g) + word)
