"""Accumulators of few groups: sums rows of one key and time by hashing, before sorting.

If keys repeat often, a row costs a look-up in a small hash table, and one row a group is left to sort. If they do not, the
attempt is abandoned after a few rows.
"""

from __future__ import annotations

import numpy as np

from tektite.kernels.compile import kernel
from tektite.kernels.layout.memory import load, read, store
from tektite.kernels.layout.pages import address_of
from tektite.kernels.layout.rows import address, copy_column, count, set_stored, step_of, value
from tektite.kernels.operators.accumulate import COUNT_PRESENT, accumulated_head, halves
from tektite.kernels.seek.route import mix
from tektite.values.words import NULL

NOT_WORTH_IT = -2

# After so many rows the attempt is abandoned if three quarters of them had a key of their own: enough to see thousands of groups.
_SAMPLE = 4096
# Limbs are below 2**32, so that this many of them, multiplicities counted, add up to less than 2**63.
_SAFE = 2**31


@kernel("Tuple((int64[::1], int64[::1]))(int64, int64, int64, int64[::1])")
def accumulate_groups(source, data, times, spec):
    """What `accumulate` gives, with the rows of each key and time added up, keys in the order of their first rows.

    The row count is NOT_WORTH_IT where more than every second row has a key of its own, or a sum may not fit.
    """
    rows = count(source)
    head, keys, pairs, diffs = accumulated_head(rows, times, spec)
    multiplicity = data + times
    m_at = address(source, multiplicity)
    m_step = step_of(source, multiplicity)
    most = np.int64(0)
    for i in range(rows if m_step != 0 else min(rows, 1)):
        m = read(m_at, m_step, i)
        most = max(most, m if m >= 0 else -m)
        if most > _SAFE:
            break
    if most * rows >= _SAFE:
        head[0] = NOT_WORTH_IT
        return np.empty(0, np.int64), head

    # The columns that tell rows apart, and where they go.
    ats = np.empty(keys + times, np.int64)
    steps = np.empty(keys + times, np.int64)
    targets = np.empty(keys + times, np.int64)
    varying = 0
    for j in range(keys + times):
        column = spec[1 + j] if j < keys else data + j - keys
        copy_column(source, column, head, j)
        if step_of(source, column) != 0:
            ats[varying] = address(source, column)
            steps[varying] = step_of(source, column)
            targets[varying] = j
            varying += 1

    group = np.empty(rows, np.int32)
    firsts = np.empty(rows, np.int64)
    size = np.int64(1024)
    table = np.full(size, np.int32(-1), np.int32)
    groups = np.int64(0)
    last = np.int64(-1)
    for i in range(rows):
        if i == _SAMPLE and 4 * groups > 3 * i:
            head[0] = NOT_WORTH_IT
            return np.empty(0, np.int64), head
        if last >= 0:
            same = True
            for k in range(varying):
                if read(ats[k], steps[k], i) != read(ats[k], steps[k], firsts[last]):
                    same = False
                    break
            if same:
                group[i] = last
                continue
        hashed = np.uint64(0x9E3779B97F4A7C15)
        for k in range(varying):
            hashed = mix(hashed, read(ats[k], steps[k], i))
        slot = np.int64(hashed & np.uint64(size - 1))
        found = np.int64(table[slot])
        while found >= 0:
            same = True
            for k in range(varying):
                if read(ats[k], steps[k], i) != read(ats[k], steps[k], firsts[found]):
                    same = False
                    break
            if same:
                break
            slot = (slot + 1) & (size - 1)
            found = np.int64(table[slot])
        if found < 0:
            found = groups
            table[slot] = found
            firsts[found] = i
            groups += 1
            if 2 * groups > size:
                size *= 4
                table = np.full(size, np.int32(-1), np.int32)
                for g in range(groups):
                    hashed = np.uint64(0x9E3779B97F4A7C15)
                    for k in range(varying):
                        hashed = mix(hashed, read(ats[k], steps[k], firsts[g]))
                    slot = np.int64(hashed & np.uint64(size - 1))
                    while table[slot] >= 0:
                        slot = (slot + 1) & (size - 1)
                    table[slot] = g
        group[i] = found
        last = found
    if 2 * groups > rows:
        head[0] = NOT_WORTH_IT
        return np.empty(0, np.int64), head

    head[0] = groups
    buf = np.zeros((varying + diffs) * groups, np.int64)
    at = address_of(buf)
    for k in range(varying):
        for g in range(groups):
            store(at, g, read(ats[k], steps[k], firsts[g]))
        set_stored(head, targets[k], at)
        at += 8 * groups
    for i in range(rows):
        g = np.int64(group[i])
        store(at, g, load(at, g) + read(m_at, m_step, i))
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
                g = np.int64(group[i])
                m = read(m_at, m_step, i)
                store(at, g, load(at, g) + (m if read(v_at, v_step, i) != NULL else 0))
            set_stored(head, target, at)
        else:
            high = at + 8 * groups
            for i in range(rows):
                g = np.int64(group[i])
                m = read(m_at, m_step, i)
                low, upper = halves(read(v_at, v_step, i))
                store(at, g, load(at, g) + low * m)
                store(high, g, load(high, g) + upper * m)
            set_stored(head, target, at)
            set_stored(head, target + 1, high)
            at = high
            target += 1
    return buf, head
