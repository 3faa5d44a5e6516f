"""Build: makes one sorted, consolidated rows object of any number of chunks of updates, in any order.

Promises:

* The result is sorted by data columns, then time columns (signed). No two rows agree in both.
* No row's diffs are all zero. Each diff is the exact sum of its inputs; if a sum does not fit 64 bits, the row count is -1.
* Constant columns are not stored. Columns of many rows are as narrow as their ranges allow.

How: the varying parts of a row are packed into as few bits as their ranges allow. If key and diffs fit one word together,
these words are sorted and unpacked. Otherwise words of (leading key bits, row number) are sorted, ties are broken by the next
bits, and rows are gathered.

Short names: rows have `nd` data, `nt` time and `nf` diff columns, and their first `keys` = nd + nt columns are compared; `lo` is
the least epoch.
"""

from __future__ import annotations

import numpy as np

from tektite.kernels.compile import inner, kernel
from tektite.kernels.layout.codes import column_ranges
from tektite.kernels.layout.memory import read, store
from tektite.kernels.layout.pages import address_of
from tektite.kernels.layout.rows import address, count, new_head, set_constant, set_stored, step_of, value
from tektite.kernels.operators.sums import carry, overflow_head
from tektite.kernels.sort.gathered import build_gathered
from tektite.kernels.sort.packed import build_packed

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
    """Insertion sort of whole rows."""
    columns = nd + nt + nf
    keys = nd + nt
    cells = np.empty(rows * columns + rows, np.int64)
    order = cells[rows * columns :]
    begin = 0
    for c in range(len(table)):
        head = table[c]
        here = count(head)
        for j in range(columns):
            at = address(head, j)
            bytes_a_row = step_of(head, j)
            for i in range(here):
                cells[(begin + i) * columns + j] = read(at, bytes_a_row, i)
        begin += here
    for row in range(rows):
        epoch = row * columns + nd
        cells[epoch] = max(cells[epoch], lo)
        place = row
        while place > 0:
            other = order[place - 1]
            less = False
            for j in range(keys):
                x = cells[row * columns + j]
                y = cells[other * columns + j]
                if x != y:
                    less = x < y
                    break
            if not less:
                break
            order[place] = other
            place -= 1
        order[place] = row
    kept = 0
    i = 0
    while i < rows:
        row = order[i] * columns
        end = i + 1
        while end < rows:
            other = order[end] * columns
            same = True
            for j in range(keys):
                if cells[row + j] != cells[other + j]:
                    same = False
                    break
            if not same:
                break
            end += 1
        some = False
        for j in range(keys, columns):
            total = cells[row + j]
            above = 0
            for k in range(i + 1, end):
                word = cells[order[k] * columns + j]
                grown = total + word
                above += carry(total, word, grown)
                total = grown
            if above != 0:
                return overflow_head(columns)
            cells[row + j] = total
            some = some or total != 0
        if some:
            order[kept] = order[i]
            kept += 1
        i = end
    head = new_head(kept, columns)
    if kept == 0:
        return np.empty(0, np.int64), head
    stored_columns = 0
    first = order[0] * columns
    for j in range(columns):
        word = cells[first + j]
        set_constant(head, j, word)
        for k in range(1, kept):
            if cells[order[k] * columns + j] != word:
                head[4 + 3 * j] = 8
                stored_columns += 1
                break
    buf = np.empty(stored_columns * kept, np.int64)
    at = address_of(buf)
    for j in range(columns):
        if head[4 + 3 * j] != 0:
            set_stored(head, j, at)
            for k in range(kept):
                store(at, k, cells[order[k] * columns + j])
            at += 8 * kept
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
    return build_gathered(table, nd, keys, columns, lo, rows, low, bits, nullable, key_bits)
