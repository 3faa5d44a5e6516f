"""Inputs with set and upsert semantics: operations in order of arrival become updates; and checks of what inputs gain."""

from __future__ import annotations

import numpy as np

from tektite.kernels.compile import inner, kernel
from tektite.kernels.memory import load, read, store
from tektite.kernels.pages import address_of
from tektite.kernels.rows import address, count, new_head, set_stored, step_of, value
from tektite.kernels.seek import compare_key, compare_rows, seek_block


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
        set_stored(head, c, address_of(buf) + 8 * c * stride)
    return buf, head


@kernel("int64(int64, int64, int64[::1])")
def first_negative(batch, data, table):
    """A row of a sorted batch (epochs ascending within equal data) whose multiplicity, together with what `table`
    holds, is negative at its epoch; -1 if there is none. Only data with a negative diff is looked up, in blocks of keys
    so that the searches overlap their cache misses.
    """
    n = count(batch)
    diffs = address(batch, data + 1)
    by = step_of(batch, data + 1)
    removes = False
    for i in range(n):
        removes |= read(diffs, by, i) < 0
    if not removes:
        return -1
    frame = np.empty(256 * (data + 4) + len(table), np.int64)
    keys = address_of(frame)
    found = keys + 8 * 256 * data
    rows = found + 8 * 256
    least = rows + 8 * 256
    held = least + 8 * 256
    starts = held + 8 * 256
    for b in range(len(table)):
        store(starts, b, 0)
    bad = -1
    i = 0
    while i < n and bad < 0:
        many = 0
        while i < n and many < 256:
            j = i + 1
            total = value(batch, data + 1, i)
            lowest = total
            at = i
            while j < n and compare_rows(batch, j, batch, i, data) == 0:
                total += value(batch, data + 1, j)
                if total < lowest:
                    lowest = total
                    at = j
                j += 1
            if lowest < 0:
                for c in range(data):
                    store(keys, c * 256 + many, value(batch, c, i))
                store(rows, many, at)
                store(least, many, lowest)
                store(held, many, 0)
                many += 1
            i = j
        if many == 0:
            continue
        for b in range(len(table)):
            head = table[b]
            size = count(head)
            seek_block(head, load(starts, b), keys, many, data, found)
            for j in range(many):
                k = load(found, j)
                while k < size and compare_key(head, k, keys, j, data) == 0:
                    store(held, j, load(held, j) + value(head, data + 1, k))
                    k += 1
            store(starts, b, load(found, many - 1))
        for j in range(many):
            if bad < 0 and load(held, j) + load(least, j) < 0:
                bad = load(rows, j)
    frame[0] = 0  # keeps the frame alive up to here
    return bad


@inner
def highest_total(batch, start, stop, data):
    """The greatest multiplicity that rows start..stop together reach, epoch by epoch, from 0 on."""
    many = stop - start
    if many == 1:
        return value(batch, data + 1, start)
    epochs = np.empty(many, np.int64)
    for i in range(many):
        epochs[i] = value(batch, data, start + i)
    order = np.argsort(epochs)
    highest = -(2**62)
    total = 0
    for i in range(many):
        total += value(batch, data + 1, start + order[i])
        if (i + 1 == many or epochs[order[i + 1]] != epochs[order[i]]) and total > highest:
            highest = total
    return highest


@kernel("int64(int64, int64, int64, int64[::1])")
def first_repeated(batch, keys, data, table):
    """A row of a sorted batch whose first `keys` columns another row has at the same time, together with what `table` holds,
    in which no two rows have the same; -1 if there is none. Keys that the batch adds no row to are not looked up. Batches of
    the table whose keys all lie before or behind those of a block are passed over, so that nothing is searched for while
    rows come in the order of their keys.
    """
    n = count(batch)
    frame = np.empty(256 * (keys + 3) + len(table), np.int64)
    block = address_of(frame)
    found = block + 8 * 256 * keys
    rows = found + 8 * 256
    held = rows + 8 * 256
    starts = held + 8 * 256
    for b in range(len(table)):
        store(starts, b, 0)
    bad = -1
    i = 0
    while i < n and bad < 0:
        many = 0
        while i < n and many < 256 and bad < 0:
            j = i + 1
            while j < n and compare_rows(batch, j, batch, i, keys) == 0:
                j += 1
            highest = highest_total(batch, i, j, data)
            if highest > 1:
                bad = i
            elif highest == 1:
                for c in range(keys):
                    store(block, c * 256 + many, value(batch, c, i))
                store(rows, many, i)
                store(held, many, 0)
                many += 1
            i = j
        if many == 0 or bad >= 0:
            continue
        for b in range(len(table)):
            head = table[b]
            size = count(head)
            if (
                size == 0
                or compare_key(head, 0, block, many - 1, keys) > 0
                or compare_key(head, size - 1, block, 0, keys) < 0
            ):
                continue
            seek_block(head, load(starts, b), block, many, keys, found)
            for j in range(many):
                k = load(found, j)
                while k < size and compare_key(head, k, block, j, keys) == 0:
                    store(held, j, load(held, j) + value(head, data + 1, k))
                    k += 1
            store(starts, b, load(found, many - 1))
        for j in range(many):
            if bad < 0 and load(held, j) > 0:
                bad = load(rows, j)
    frame[0] = 0  # keeps the frame alive up to here
    return bad
