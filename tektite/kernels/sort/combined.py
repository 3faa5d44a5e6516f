"""Combine: adds up the diffs of equal rows without sorting them.

A join in a loop makes the same row many times. A hash table finds equal rows at a quarter of the price of sorting them, and what
is left is sorted once, when all rows are there. Two kinds of rows are left alone: those whose key and diffs fit one word, since
they are sorted as fast; and many rows, if some of them suggest that few are equal.

Each row that is kept is one stretch of *cells*: the words of its key that vary, then its diffs. An entry of the table holds the
number of such a row below 32 bits of its hash, and 0 where it is free.
"""

from __future__ import annotations

import numpy as np

from tektite.kernels.compile import inner, kernel
from tektite.kernels.layout.codes import column_ranges
from tektite.kernels.layout.memory import load, read, store
from tektite.kernels.layout.pages import address_of, empty_words, prefetch
from tektite.kernels.layout.rows import address, count, new_head, place_columns, set_constant, set_stored, step_of
from tektite.kernels.layout.scratch import keep, scratch
from tektite.kernels.operators.sums import carry, overflow_head
from tektite.kernels.seek.route import SEED, mix
from tektite.values.words import NULL

# Rows looked up at a time: their words and hashes stay in the first-level cache, and memory fetches many entries at once.
_BLOCK = 256
# Entries of the first table: enough for few rows, and cheap to clear.
_ENTRIES = 1 << 12
# More rows would need longer numbers.
_MOST = 1 << 31
_NUMBER = (1 << 32) - 1
# What a head says in place of a number of rows if sorting them costs as little, and if few of them are equal.
SORT_INSTEAD = -2
FEW_EQUAL = -3
# From so many rows on, one of some is looked at first. If each row were there twice, one of 64 of these would be met again. If
# half as many are, adding up is worth while. Asking costs about two percent of the work of adding up.
_ASK_FROM = 1 << 16
_ONE_OF = 32
_MET_AGAIN = 128


@inner
def _new_table(size):
    """A table without rows."""
    return np.zeros(size, np.int64)


@inner
def _larger_table(room, size, larger):
    """The same entries in a table of `larger` places."""
    made = _new_table(larger)
    source = address_of(room)
    target = address_of(made)
    for i in range(size):
        entry = load(source, i)
        if entry != 0:
            place = np.int64(np.uint64(entry) >> np.uint64(32)) & (larger - 1)
            while load(target, place) != 0:
                place = (place + 1) & (larger - 1)
            store(target, place, entry)
    keep(room)
    return made


@inner
def _many_are_equal(table, nd, keys, lo, rows):
    """Whether rows that are chosen by number suggest that many rows have equal keys. A frequent key is met often, too."""
    asked = rows // _ONE_OF
    size = np.int64(_ENTRIES)
    while size < 2 * asked:
        size *= 2
    room = _new_table(size)
    entries = address_of(room)
    met = np.int64(0)
    c = 0
    begin = np.int64(0)
    for k in range(asked):
        row = _ONE_OF * k + np.int64(mix(np.uint64(SEED), k) >> np.uint64(32)) % _ONE_OF
        while row >= begin + count(table[c]):
            begin += count(table[c])
            c += 1
        head = table[c]
        found = np.uint64(SEED)
        for j in range(keys):
            word = read(address(head, j), step_of(head, j), row - begin)
            found = mix(found, max(word, lo if j == nd else NULL))
        mark = np.int64(found | np.uint64(1))
        place = np.int64(found >> np.uint64(32)) & (size - 1)
        while load(entries, place) != 0 and load(entries, place) != mark:
            place = (place + 1) & (size - 1)
        met += 1 if load(entries, place) == mark else 0
        store(entries, place, mark)
    keep(room)
    return _MET_AGAIN * met >= asked


@kernel("Tuple((int64[::1], int64[::1]))(int64[::1], int64, int64, int64, int64)")
def combine(table, nd, nt, nf, lo):
    """The rows of the chunks whose head addresses `table` lists, each once with the sum of its diffs, in no order. Epochs below
    `lo` count as `lo`, and rows whose diffs add up to zero are left out.

    Returns (buf, head); head[0] is -1 if a sum does not fit a word on its way, SORT_INSTEAD if rows fit one word, and FEW_EQUAL
    if few of many rows seem to be equal.
    """
    keys = nd + nt
    columns = keys + nf
    rows = np.int64(0)
    for c in range(len(table)):
        rows += count(table[c])
    if rows >= _ASK_FROM and not _many_are_equal(table, nd, keys, lo, rows):
        return np.empty(0, np.int64), new_head(FEW_EQUAL, columns)
    low = np.empty(columns, np.int64)
    bits = np.empty(columns, np.int64)
    nullable = np.empty(columns, np.int64)
    total_bits = np.int64(0)
    if rows > 0:
        column_ranges(table, nd, keys, columns, lo, low, bits, nullable)
        for j in range(columns):
            total_bits += bits[j]
    if total_bits <= 64 or rows >= _MOST:
        return np.empty(0, np.int64), new_head(SORT_INSTEAD, columns)
    varying = np.empty(keys, np.int64)
    width = 0
    for j in range(keys):
        if bits[j] != 0:
            varying[width] = j
            width += 1
    stride = width + nf
    cell_room = empty_words(rows * stride)
    cells = address_of(cell_room)
    many = _look_up(table, nd, keys, columns, lo, varying, width, stride, cells)
    if many < 0:
        keep(cell_room)
        return overflow_head(columns)
    buf, head = _columns_of(cells, many, varying, width, stride, keys, columns, low)
    keep(cell_room)
    return buf, head


@inner
def _look_up(table, nd, keys, columns, lo, varying, width, stride, cells):
    """Add each row to that of its key, or begin one. Returns how many keys there are; -1 if a sum does not fit a word."""
    size = np.int64(_ENTRIES)
    room = _new_table(size)
    many = np.int64(0)
    nf = columns - keys
    block_room, (words, hashes) = scratch((_BLOCK * stride, _BLOCK))
    seed = np.int64(SEED)
    fits = True
    for c in range(len(table)):
        head = table[c]
        here = count(head)
        for block in range(0, here, _BLOCK):
            some = min(_BLOCK, here - block)
            while 2 * (many + some) > size:
                room = _larger_table(room, size, 4 * size)
                size *= 4
            entries = address_of(room)
            for i in range(some):
                store(hashes, i, seed)
            for v in range(stride):
                j = varying[v] if v < width else keys + v - width
                at = address(head, j)
                by = step_of(head, j)
                to = words + 8 * _BLOCK * v
                floor = lo if j == nd else NULL
                for i in range(some):
                    store(to, i, max(read(at, by, block + i), floor))
                if v < width:
                    for i in range(some):
                        store(hashes, i, np.int64(mix(np.uint64(load(hashes, i)), load(to, i))))
            for i in range(some):
                prefetch(entries + 8 * (np.int64(np.uint64(load(hashes, i)) >> np.uint64(32)) & (size - 1)))
            for i in range(some):
                entry = load(entries, np.int64(np.uint64(load(hashes, i)) >> np.uint64(32)) & (size - 1))
                prefetch(cells + 8 * stride * ((entry & _NUMBER) - 1))
            for i in range(some):
                mark = np.int64(np.uint64(load(hashes, i)) >> np.uint64(32))
                place = mark & (size - 1)
                entry = load(entries, place)
                while entry != 0:
                    if np.int64(np.uint64(entry) >> np.uint64(32)) == mark:
                        cell = cells + 8 * stride * ((entry & _NUMBER) - 1)
                        differ = np.int64(0)
                        for v in range(width):
                            differ |= load(cell, v) ^ load(words, _BLOCK * v + i)
                        if differ == 0:
                            break
                    place = (place + 1) & (size - 1)
                    entry = load(entries, place)
                if entry == 0:
                    cell = cells + 8 * stride * many
                    for v in range(stride):
                        store(cell, v, load(words, _BLOCK * v + i))
                    many += 1
                    store(entries, place, np.int64(np.uint64(mark) << np.uint64(32)) | many)
                    continue
                cell = cells + 8 * stride * ((entry & _NUMBER) - 1)
                for v in range(width, stride):
                    left = load(cell, v)
                    right = load(words, _BLOCK * v + i)
                    fits &= carry(left, right, left + right) == 0
                    store(cell, v, left + right)
    keep(room)
    keep(block_room)
    return many if fits else np.int64(-1)


@inner
def _columns_of(cells, many, varying, width, stride, keys, columns, low):
    """Columns of the rows that have a diff."""
    kept = np.int64(0)
    for i in range(many):
        some = np.int64(0)
        for v in range(width, stride):
            some |= load(cells, i * stride + v)
        if some != 0:
            if kept < i:
                for v in range(stride):
                    store(cells, kept * stride + v, load(cells, i * stride + v))
            kept += 1
    head = new_head(kept, columns)
    if kept == 0:
        return np.empty(0, np.int64), head
    for j in range(keys):
        set_constant(head, j, low[j])
    for v in range(stride):
        word = load(cells, v)
        j = varying[v] if v < width else keys + v - width
        set_constant(head, j, word)
        for i in range(1, kept):
            if load(cells, i * stride + v) != word:
                set_stored(head, j, 0)
                break
    buf = place_columns(head, kept)
    for v in range(stride):
        j = varying[v] if v < width else keys + v - width
        if head[4 + 3 * j] != 0:
            at = head[3 + 3 * j]
            for i in range(kept):
                store(at, i, load(cells, i * stride + v))
    return buf, head
