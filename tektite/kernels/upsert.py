"""Inputs with set and upsert semantics: operations in order of arrival become updates; and the check of bag inputs."""

from __future__ import annotations

import numpy as np

from tektite.kernels.compile import inner, kernel
from tektite.kernels.rows import count, new_head, set_stored, value


@inner
def compare_rows(a, i, b, k, columns):
    """Order of two rows by their first columns."""
    for j in range(columns):
        x = value(a, j, i)
        y = value(b, j, k)
        if x != y:
            return -1 if x < y else 1
    return 0


@inner
def lower_bound(rows, other, k, columns):
    """The first row of `rows` that is not before row k of `other`."""
    low = 0
    high = count(rows)
    while low < high:
        middle = (low + high) >> 1
        if compare_rows(rows, middle, other, k, columns) < 0:
            low = middle + 1
        else:
            high = middle
    return low


@inner
def current_row(table, ops, k, keys, data):
    """(batch, row) of the value that the key of ops' row k has: its row with a positive multiplicity; (-1, -1) if none."""
    for b in range(len(table)):
        rows = table[b]
        n = count(rows)
        i = lower_bound(rows, ops, k, keys)
        while i < n and compare_rows(rows, i, ops, k, keys) == 0:
            total = 0
            for c in range(len(table)):
                j = lower_bound(table[c], rows, i, data)
                while j < count(table[c]) and compare_rows(table[c], j, rows, i, data) == 0:
                    total += value(table[c], data + 1, j)
                    j += 1
            if total > 0:
                return b, i
            i += 1
    return -1, -1


@kernel("Tuple((int64[::1], int64[::1]))(int64, int64, int64, int64[::1])")
def resolve(ops, keys, values, table):
    """Updates that bring a keyed collection from what `table` holds to what the operations say.

    `ops` is sorted by key, epoch and arrival; its columns are the key, epoch, arrival, 1 to put or 0 to remove, and the
    value. At each epoch the last operation on a key counts; it retracts the value that the key had before.
    The result has key, value, epoch, diff.
    """
    n = count(ops)
    data = keys + values
    buf = np.empty((data + 2) * 2 * n, np.int64)
    out = 0
    stride = 2 * n
    i = 0
    while i < n:
        batch, row = current_row(table, ops, i, keys, data)
        have = -2 if batch >= 0 else -1
        j = i
        while j < n and compare_rows(ops, j, ops, i, keys) == 0:
            epoch = value(ops, keys, j)
            while j + 1 < n and compare_rows(ops, j + 1, ops, i, keys) == 0 and value(ops, keys, j + 1) == epoch:
                j += 1
            want = j if value(ops, keys + 2, j) != 0 else -1
            same = have == want
            if have != -1 and want != -1:
                same = True
                for c in range(values):
                    old = value(table[batch], keys + c, row) if have == -2 else value(ops, keys + 3 + c, have)
                    if old != value(ops, keys + 3 + c, want):
                        same = False
            if not same:
                if have != -1:
                    for c in range(keys):
                        buf[c * stride + out] = value(ops, c, i)
                    for c in range(values):
                        old = value(table[batch], keys + c, row) if have == -2 else value(ops, keys + 3 + c, have)
                        buf[(keys + c) * stride + out] = old
                    buf[data * stride + out] = epoch
                    buf[(data + 1) * stride + out] = -1
                    out += 1
                if want != -1:
                    for c in range(keys):
                        buf[c * stride + out] = value(ops, c, i)
                    for c in range(values):
                        buf[(keys + c) * stride + out] = value(ops, keys + 3 + c, want)
                    buf[data * stride + out] = epoch
                    buf[(data + 1) * stride + out] = 1
                    out += 1
            have = want if not same or want == -1 else have
            j += 1
        i = j
    head = new_head(out, data + 2)
    for c in range(data + 2):
        set_stored(head, c, buf.ctypes.data + 8 * c * stride)
    return buf, head


@kernel("int64(int64, int64, int64[::1])")
def first_negative(batch, data, table):
    """The first row of a sorted batch (epochs ascending within equal data) whose multiplicity, together with what `table`
    holds, is negative at its epoch; -1 if there is none. Only data with a negative diff is looked up.
    """
    n = count(batch)
    i = 0
    while i < n:
        j = i + 1
        least = value(batch, data + 1, i)
        total = least
        at = i
        while j < n and compare_rows(batch, j, batch, i, data) == 0:
            total += value(batch, data + 1, j)
            if total < least:
                least = total
                at = j
            j += 1
        if least < 0:
            held = 0
            for b in range(len(table)):
                k = lower_bound(table[b], batch, i, data)
                m = count(table[b])
                while k < m and compare_rows(table[b], k, batch, i, data) == 0:
                    held += value(table[b], data + 1, k)
                    k += 1
            if held + least < 0:
                return at
        i = j
    return -1
