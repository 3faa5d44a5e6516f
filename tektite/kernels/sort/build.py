"""Build: makes one sorted, consolidated rows object of any number of chunks of updates, in any order.

Promises:

* The result is sorted by data columns, then time columns (signed). No two rows agree in both.
* No row's diffs are all zero. Each diff is the exact sum of its inputs; if a sum does not fit 64 bits, the row count is -1.
* Constant columns are not stored. Columns of many rows are as narrow as their ranges allow.

How: the varying parts of a row are packed into as few bits as their ranges allow. If key and diffs fit one word together,
these words are sorted and unpacked. The same is done if wide columns repeat their words, with ranks in place of these. Otherwise
words of (leading key bits, row number) are sorted, ties are broken by the next bits, and rows are gathered.

Short names: rows have `nd` data, `nt` time and `nf` diff columns, and their first `keys` = nd + nt columns are compared; `lo` is
the least epoch.
"""

from __future__ import annotations

import numpy as np

from tektite.kernels.compile import inlined, inner, kernel
from tektite.kernels.layout.codes import column_ranges
from tektite.kernels.layout.memory import load, read, store
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
from tektite.kernels.layout.scratch import keep, scratch
from tektite.kernels.operators.sums import carry, overflow_head
from tektite.kernels.sort.coded import build_coded, may_be_coded
from tektite.kernels.sort.gathered import build_gathered
from tektite.kernels.sort.packed import build_packed
from tektite.values.words import NULL

# Up to this many rows, moving whole rows by insertion is cheaper than looking at columns.
_FEW = 32


@kernel("Tuple((int64[::1], int64[::1]))(int64[::1], int64, int64, int64, int64)")
def build(table, nd, nt, nf, lo):
    """Sort and consolidate the chunks whose head addresses `table` lists, epochs below `lo` counting as `lo`.

    Returns (buf, head); head[0] is -1 if a diff overflows.
    """
    rows = np.int64(0)  # not a literal, for which all that follows would be compiled once more
    for c in range(len(table)):
        rows += count(table[c])
    if rows == 0:
        return np.empty(0, np.int64), new_head(0, nd + nt + nf)
    if rows == 1:
        return _build_one(table, nd, nt, nf, lo)
    if rows <= _FEW:
        return _build_few(table, nd, nt, nf, lo, rows)
    return _build_many(table, nd, nt, nf, lo, rows)


@inner
def _build_one(table, nd, nt, nf, lo):
    """A single row is all constants."""
    columns = nd + nt + nf
    head = new_head(1, columns)
    for c in range(len(table)):
        at = table[c]
        if count(at) == 1:
            some = False
            for j in range(columns):
                word = value(at, j, 0)
                if j == nd:
                    word = max(word, lo)
                elif j >= nd + nt and word != 0:
                    some = True
                set_constant(head, j, word)
            if not some:
                head[0] = 0
    return np.empty(0, np.int64), head


@inner
def _build_few(table, nd, nt, nf, lo, rows):
    """Insertion sort of whole rows, which lie one behind the other as `cells`. `order` lists the cells where they begin."""
    columns = nd + nt + nf
    keys = nd + nt
    memory, (cells, order) = scratch((rows * columns, rows))
    _copy_cells(table, nd, columns, lo, cells)
    for i in range(rows):
        place = i
        while place > 0 and _compare_cells(cells, i * columns, load(order, place - 1), keys) < 0:
            store(order, place, load(order, place - 1))
            place -= 1
        store(order, place, i * columns)
    kept = _sum_equal(cells, order, rows, keys, columns)
    if kept < 0:
        keep(memory)
        return overflow_head(columns)
    buf, head = _columns_of_cells(cells, order, kept, columns)
    keep(memory)
    return buf, head


@inlined
def _copy_cells(table, nd, columns, lo, cells):
    """Copy the rows of all chunks to `cells`."""
    begin = 0
    for c in range(len(table)):
        head = table[c]
        rows = count(head)
        for j in range(columns):
            at = address(head, j)
            by = step_of(head, j)
            floor = lo if j == nd else NULL
            for i in range(rows):
                store(cells, (begin + i) * columns + j, max(read(at, by, i), floor))
        begin += rows


@inlined
def _compare_cells(cells, x, y, keys):
    """-1, 0 or 1 as the row that begins at cell x is before, equal to or after that at y in the first `keys` columns."""
    for j in range(keys):
        left = load(cells, x + j)
        right = load(cells, y + j)
        if left != right:
            return -1 if left < right else 1
    return 0


@inlined
def _sum_equal(cells, order, rows, keys, columns):
    """Sum the diffs of rows with equal keys into the first of them. Moves those that have a diff then to the front of the order.
    Returns how many these are, or -1 if a sum does not fit a word.
    """
    kept = 0
    i = 0
    while i < rows:
        row = load(order, i)
        end = i + 1
        while end < rows and _compare_cells(cells, row, load(order, end), keys) == 0:
            end += 1
        some = False
        for j in range(keys, columns):
            total = load(cells, row + j)
            above = 0
            for k in range(i + 1, end):
                word = load(cells, load(order, k) + j)
                grown = total + word
                above += carry(total, word, grown)
                total = grown
            if above != 0:
                return -1
            store(cells, row + j, total)
            some = some or total != 0
        if some:
            store(order, kept, row)
            kept += 1
        i = end
    return kept


@inlined
def _columns_of_cells(cells, order, kept, columns):
    """The first `kept` rows of an order as columns, constant ones not stored."""
    head = new_head(kept, columns)
    if kept == 0:
        return np.empty(0, np.int64), head
    for j in range(columns):
        word = load(cells, load(order, 0) + j)
        set_constant(head, j, word)
        for k in range(1, kept):
            if load(cells, load(order, k) + j) != word:
                set_stored(head, j, 0)
                break
    buf = place_columns(head, kept)
    for j in range(columns):
        if head[4 + 3 * j] != 0:
            at = head[3 + 3 * j]
            for k in range(kept):
                store(at, k, load(cells, load(order, k) + j))
    return buf, head


@inner
def _build_many(table, nd, nt, nf, lo, rows):
    """Pack key and diffs into one word where they fit, else sort row numbers."""
    columns = nd + nt + nf
    keys = nd + nt
    low = np.empty(columns, np.int64)
    bits = np.empty(columns, np.int64)
    nullable = np.empty(columns, np.int64)
    column_ranges(table, nd, keys, columns, lo, low, bits, nullable)
    key_bits = np.int64(0)
    diff_bits = np.int64(0)
    for j in range(columns):
        if j < keys:
            key_bits += bits[j]
        else:
            diff_bits += bits[j]
    if key_bits + diff_bits <= 64:
        return build_packed(table, nd, keys, columns, lo, rows, low, bits, nullable, diff_bits)
    if may_be_coded(rows, nd, columns, bits):
        whole = low.copy(), bits.copy(), nullable.copy()
        done, buf, head = build_coded(table, nd, keys, columns, lo, rows, low, bits, nullable)
        if done:
            return buf, head
        low, bits, nullable = whole
    return build_gathered(table, nd, keys, columns, lo, rows, low, bits, nullable, key_bits)
