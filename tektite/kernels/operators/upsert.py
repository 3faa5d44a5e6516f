"""Set and upsert semantics of inputs: turns operations into updates, and checks constraints of inserted rows."""

from __future__ import annotations

import numpy as np

from tektite.kernels.compile import inner, kernel
from tektite.kernels.layout.memory import load, read, store
from tektite.kernels.layout.pages import address_of
from tektite.kernels.layout.rows import address, count, new_head, set_stored, step_of, value
from tektite.kernels.layout.scratch import keep, scratch
from tektite.kernels.seek.keys import BLOCK, compare_key, gather_block, seek_block
from tektite.kernels.seek.search import compare_rows, gallop_rows

# With more rows of a key than these, the sum of one is searched for instead of compared with all others.
_FEW = 16


@inner
def current_row(table, places, block, j, keys, data):
    """(batch, row) of the value that key j of a block has: its row with a positive multiplicity; (-1, -1) if none. In each
    batch, the rows of the key, if there are any, begin at the j-th of BLOCK places.
    """
    several = 0
    batch = -1
    row = -1
    for b in range(len(table)):
        head = table[b]
        i = load(places, b * BLOCK + j)
        while i < count(head) and several <= _FEW and compare_key(head, i, block, j, keys) == 0:
            several += 1
            batch = b
            row = i
            i += 1
    if several == 0:
        return -1, -1
    if several == 1:
        if value(table[batch], data + 1, row) > 0:
            return batch, row
        return -1, -1
    for b in range(len(table)):
        head = table[b]
        i = load(places, b * BLOCK + j)
        while i < count(head) and compare_key(head, i, block, j, keys) == 0:
            total = 0
            for c in range(len(table)):
                k = load(places, c * BLOCK + j)
                if several <= _FEW:
                    while k < count(table[c]) and compare_rows(table[c], k, head, i, data) < 0:
                        k += 1
                else:
                    k = gallop_rows(table[c], count(table[c]), k, head, i, data)
                while k < count(table[c]) and compare_rows(table[c], k, head, i, data) == 0:
                    total += value(table[c], data + 1, k)
                    k += 1
            if total > 0:
                return b, i
            i += 1
    return -1, -1


@inner
def put_row(buf, stride, out, ops, k, keys, source, i, first, values, epoch, diff):
    """Write an update: the key of ops' row k, the value in row i of `source` from column `first` on, an epoch and a diff."""
    for c in range(keys):
        store(buf, c * stride + out, value(ops, c, k))
    for c in range(values):
        store(buf, (keys + c) * stride + out, value(source, first + c, i))
    store(buf, (keys + values) * stride + out, epoch)
    store(buf, (keys + values + 1) * stride + out, diff)


@kernel("Tuple((int64[::1], int64[::1]))(int64, int64, int64, int64[::1])")
def resolve(ops, keys, values, table):
    """Updates that bring a keyed collection from what `table` holds to what the operations say.

    `ops` is sorted by key, epoch and arrival; its columns are the key, epoch, arrival, 1 to put or 0 to remove, and the
    value. At each epoch the last operation on a key counts; it retracts the value that the key had before.
    The result has key, value, epoch, diff. Keys are looked up in blocks, so that the cache misses of searches overlap.
    """
    n = count(ops)
    data = keys + values
    made = np.empty((data + 2) * 2 * n, np.int64)
    buf = address_of(made)
    out = 0
    stride = 2 * n
    memory, (block, firsts, places, starts) = scratch((BLOCK * keys, BLOCK + 1, BLOCK * len(table), len(table)))
    for b in range(len(table)):
        store(starts, b, 0)
    i = 0
    while i < n:
        many = gather_block(ops, i, keys, block, firsts)
        for b in range(len(table)):
            here = places + 8 * BLOCK * b
            seek_block(table[b], load(starts, b), block, many, keys, here)
            store(starts, b, load(here, many - 1))
        for q in range(many):
            i = load(firsts, q)
            end = load(firsts, q + 1)
            # The value that the key has: `row` of the rows at `source`, from column `first` on; none if there is no source.
            source = 0
            batch, row = current_row(table, places, block, q, keys, data)
            first = keys
            if batch >= 0:
                source = table[batch]
            j = i
            while j < end:
                epoch = value(ops, keys, j)
                while j + 1 < end and value(ops, keys, j + 1) == epoch:
                    j += 1
                puts = value(ops, keys + 2, j) != 0
                same = puts == (source != 0)
                if puts and source != 0:
                    for c in range(values):
                        same &= value(source, first + c, row) == value(ops, keys + 3 + c, j)
                if not same:
                    if source != 0:
                        put_row(buf, stride, out, ops, i, keys, source, row, first, values, epoch, -1)
                        out += 1
                        source = 0
                    if puts:
                        put_row(buf, stride, out, ops, i, keys, ops, j, keys + 3, values, epoch, 1)
                        out += 1
                        source = ops
                        row = j
                        first = keys + 3
                j += 1
            i = end
    keep(memory)
    head = new_head(out, data + 2)
    for c in range(data + 2):
        set_stored(head, c, buf + 8 * c * stride)
    return made, head


@inner
def _add_held(head, size, block, many, data, found, held):
    """Add up the multiplicities of the rows that have the keys of a block, of one column; they begin at `found`."""
    at = address(head, 0)
    by = step_of(head, 0)
    diffs = address(head, data + 1)
    diff_by = step_of(head, data + 1)
    for j in range(many):
        word = load(block, j)
        k = load(found, j)
        while k < size and read(at, by, k) == word:
            store(held, j, load(held, j) + read(diffs, diff_by, k))
            k += 1


@inner
def count_held(table, starts, block, many, keys, data, found, held):
    """Write to `held` how many rows the batches of a table have with each of `many` ascending keys. Batches whose keys all lie
    before or behind those of the block are skipped. `starts` has the row of each batch to seek from, and is moved on to where the
    last key was found.
    """
    for j in range(many):
        store(held, j, 0)
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
        if keys == 1:
            _add_held(head, size, block, many, data, found, held)
        else:
            for j in range(many):
                k = load(found, j)
                while k < size and compare_key(head, k, block, j, keys) == 0:
                    store(held, j, load(held, j) + value(head, data + 1, k))
                    k += 1
        store(starts, b, load(found, many - 1))


@kernel("int64(int64, int64, int64[::1])")
def first_negative(batch, data, table):
    """A row of a sorted batch (epochs ascending within equal data) whose multiplicity, together with that in `table`, is
    negative at its epoch; -1 if there is none. Only data with a negative diff is looked up, in blocks, so that the cache misses
    of searches overlap.
    """
    n = count(batch)
    diffs = address(batch, data + 1)
    by = step_of(batch, data + 1)
    first = address(batch, 0)
    first_by = step_of(batch, 0)
    removes = False
    for i in range(n):
        removes |= read(diffs, by, i) < 0
    if not removes:
        return -1
    memory, (keys, found, rows, least, held, starts) = scratch((BLOCK * data, BLOCK, BLOCK, BLOCK, BLOCK, len(table)))
    for b in range(len(table)):
        store(starts, b, 0)
    bad = -1
    i = 0
    while i < n and bad < 0:
        many = 0
        while i < n and many < BLOCK:
            j = i + 1
            total = read(diffs, by, i)
            lowest = total
            at = i
            while (
                j < n
                and (data == 0 or read(first, first_by, j) == read(first, first_by, i))
                and compare_rows(batch, j, batch, i, data) == 0
            ):
                total += read(diffs, by, j)
                if total < lowest:
                    lowest = total
                    at = j
                j += 1
            if lowest < 0:
                for c in range(data):
                    store(keys, c * BLOCK + many, value(batch, c, i))
                store(rows, many, at)
                store(least, many, lowest)
                many += 1
            i = j
        if many == 0:
            continue
        count_held(table, starts, keys, many, data, data, found, held)
        for j in range(many):
            if bad < 0 and load(held, j) + load(least, j) < 0:
                bad = load(rows, j)
    keep(memory)
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
    """A row of a sorted batch whose key, the first `keys` columns, another row of the batch or of `table` has at the same time;
    -1 if there is none. No two rows of `table` have the same key. Keys that the batch adds no row to are not looked up, and
    while rows come in the order of their keys nothing is searched for.
    """
    n = count(batch)
    memory, (block, found, rows, held, starts) = scratch((BLOCK * keys, BLOCK, BLOCK, BLOCK, len(table)))
    for b in range(len(table)):
        store(starts, b, 0)
    bad = -1
    i = 0
    while i < n and bad < 0:
        many = 0
        while i < n and many < BLOCK and bad < 0:
            j = i + 1
            while j < n and compare_rows(batch, j, batch, i, keys) == 0:
                j += 1
            highest = highest_total(batch, i, j, data)
            if highest > 1:
                bad = i
            elif highest == 1:
                for c in range(keys):
                    store(block, c * BLOCK + many, value(batch, c, i))
                store(rows, many, i)
                many += 1
            i = j
        if many == 0 or bad >= 0:
            continue
        count_held(table, starts, block, many, keys, data, found, held)
        for j in range(many):
            if bad < 0 and load(held, j) > 0:
                bad = load(rows, j)
    keep(memory)
    return bad
