"""Accumulators: rows become keys whose diff columns hold what linear aggregates sum up.

Each aggregated column contributes diff columns beside the multiplicity m: COUNT_PRESENT m where the value is not NULL;
SUM_INT two limbs, (value mod 2**32)·m and (value div 2**32)·m, that are summed independently: the sum is lo + hi·2**32.
NULL contributes nothing.
"""

from __future__ import annotations

import numpy as np

from tektite.kernels.compile import kernel
from tektite.kernels.memory import load, store
from tektite.kernels.rows import address, copy_column, count, mask, new_head, set_stored

COUNT_PRESENT = 1
SUM_INT = 2

_NULL = -(2**63)
_LOW = 0xFFFFFFFF


@kernel("Tuple((int64[::1], int64[::1]))(int64, int64, int64, int64[::1])")
def accumulate(source, data, times, spec):
    """`spec` is the number of key columns, the key columns, then pairs (kind, data column). The result has the key
    columns, the times, the multiplicity, and the diff columns of each pair. The row count is -1 on overflow.
    """
    rows = count(source)
    keys = spec[0]
    pairs = (len(spec) - 1 - keys) // 2
    diffs = 1
    for p in range(pairs):
        diffs += 2 if spec[1 + keys + 2 * p] == SUM_INT else 1
    head = new_head(rows, keys + times + diffs)
    for j in range(keys):
        copy_column(source, spec[1 + j], head, j)
    for j in range(times):
        copy_column(source, data + j, head, keys + j)
    multiplicity = data + times
    copy_column(source, multiplicity, head, keys + times)
    buf = np.empty((diffs - 1) * rows, np.int64)
    at = buf.ctypes.data
    m_at = address(source, multiplicity)
    m_mask = mask(source, multiplicity)
    target = keys + times + 1
    used = 0
    overflow = False
    for p in range(pairs):
        kind = spec[1 + keys + 2 * p]
        column = spec[2 + keys + 2 * p]
        v_at = address(source, column)
        v_mask = mask(source, column)
        out = at + 8 * used * rows
        if kind == COUNT_PRESENT:
            if v_mask == 0 and load(v_at, 0) != _NULL:
                copy_column(source, multiplicity, head, target)
            else:
                for i in range(rows):
                    present = load(v_at, i & v_mask) != _NULL
                    store(out, i, load(m_at, i & m_mask) if present else 0)
                set_stored(head, target, out)
            used += 1
            target += 1
        else:
            high = out + 8 * rows
            for i in range(rows):
                value = load(v_at, i & v_mask)
                m = load(m_at, i & m_mask)
                if value == _NULL:
                    value = 0
                if m > 2**30 or m < -(2**30):
                    overflow = True
                store(out, i, (value & _LOW) * m)
                store(high, i, (value >> 32) * m)
            set_stored(head, target, out)
            set_stored(head, target + 1, high)
            used += 2
            target += 2
    if overflow:
        head[0] = -1
    return buf, head
