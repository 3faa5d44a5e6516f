"""Build for rows whose key and diffs take more than a word: sorts row numbers, then gathers.

Each row is one bit string of its key columns, cut into words and followed by the varying diffs, so that a gather touches one
place in memory per row. Words of (leading key bits, row number) are sorted. The next bits order rows that agree in these.
"""

from __future__ import annotations

import numpy as np

from tektite.kernels.compile import inner
from tektite.kernels.layout.codes import code_step, decode, encode, low_bits
from tektite.kernels.layout.columns import column_bytes, copy_words, empty_columns, put
from tektite.kernels.layout.memory import GREATEST, load, read, store
from tektite.kernels.layout.pages import address_of, empty_words, prefetch
from tektite.kernels.layout.rows import address, count, fitting_columns, new_head, set_constant, set_stored, step_of
from tektite.kernels.layout.scratch import keep, scratch
from tektite.kernels.operators.sums import carry, overflow_head
from tektite.kernels.sort.radix import bit_length, sort_words
from tektite.values.words import NULL

# Rows laid out at a time, so that a block of cells stays in the cache between columns.
_BLOCK = 1024
# Rows gathered at a time.
_GATHERED = 128
# Up to this many rows that agree in the bits sorted so far are sorted by insertion.
_TIED = 16
# Marks, in the sign bit of an ordered row number, a row whose key equals that of the row before it.
_SAME = -(2**63)


@inner
def build_gathered(table, nd, keys, columns, lo, rows, low, bits, nullable, key_bits):
    """Sort and consolidate the rows of all chunks. `low`, `bits` and `nullable` describe the codes of columns (see codes.py);
    those of a key take `key_bits` together.
    """
    offset = np.empty(columns, np.int64)
    used = 0
    for j in range(keys):
        offset[j] = used
        used += bits[j]
    key_words = (key_bits + 63) // 64
    stride = key_words
    for j in range(keys, columns):
        offset[j] = stride
        stride += bits[j] != 0
    cell_room = empty_words(rows * stride)
    cells = address_of(cell_room)
    _lay_out(table, nd, keys, columns, lo, low, bits, nullable, offset, stride, key_words, cells)
    order_room = empty_words(rows)
    order = address_of(order_room)
    _order_rows(cells, rows, stride, key_words, key_bits, order)
    buf, head = _fold_gathered(cells, rows, stride, keys, columns, low, bits, nullable, offset, order)
    keep(cell_room)
    keep(order_room)
    return buf, head


@inner
def _or(cells, place, bits):
    """Set bits of a cell."""
    store(cells, place, load(cells, place) | np.int64(bits))


@inner
def _lay_out(table, nd, keys, columns, lo, low, bits, nullable, offset, stride, key_words, cells):
    """Write each row as `stride` cells: the bit string of its key, in which column j begins at bit offset[j], then its diffs."""
    begin = 0
    for c in range(len(table)):
        head = table[c]
        here = count(head)
        for block in range(0, here, _BLOCK):
            size = min(_BLOCK, here - block)
            base = (begin + block) * stride
            for i in range(size):
                for g in range(key_words):
                    store(cells, base + i * stride + g, 0)
            for j in range(columns):
                width = bits[j]
                if width == 0:
                    continue
                at = address(head, j)
                by_bytes = step_of(head, j)
                if j >= keys:
                    spot = base + offset[j]
                    for i in range(size):
                        store(cells, spot + i * stride, read(at, by_bytes, block + i))
                    continue
                least = low[j]
                floor = lo if j == nd else NULL
                spot = base + (offset[j] >> 6)
                room = 64 - (offset[j] & 63)
                if width <= room:
                    by = np.uint64(room - width)
                    for i in range(size):
                        code = encode(read(at, by_bytes, block + i), least, nullable[j], floor)
                        _or(cells, spot + i * stride, code << by)
                else:
                    over = np.uint64(width - room)
                    by = np.uint64(64 - (width - room))
                    for i in range(size):
                        code = encode(read(at, by_bytes, block + i), least, nullable[j], floor)
                        _or(cells, spot + i * stride, code >> over)
                        _or(cells, spot + i * stride + 1, code << by)
        begin += here


@inner
def _field_of(cells, row, offset, width):
    """The `width` bits at bit `offset` of the row's bit string."""
    spot = row + (offset >> 6)
    room = 64 - (offset & 63)
    if width <= room:
        return (np.uint64(load(cells, spot)) >> np.uint64(room - width)) & low_bits(width)
    over = width - room
    leading = np.uint64(load(cells, spot)) << np.uint64(over)
    return (leading | (np.uint64(load(cells, spot + 1)) >> np.uint64(64 - over))) & low_bits(width)


@inner
def _order_rows(cells, rows, stride, key_words, key_bits, order):
    """Write the row numbers in order. The sign bit is set if a row's key equals that of the row before it."""
    number_bits = bit_length(np.uint64(rows - 1))
    step = 64 - number_bits
    number = low_bits(number_bits)
    shift = np.uint64(number_bits)
    word_room = empty_words(rows)
    spare_room = empty_words(rows)
    words = address_of(word_room)
    spare = address_of(spare_room)
    # Ranges of rows that agree in all bits before `position`: disjoint, and longer than those settled on the spot.
    pending = np.empty(3 * (rows // _TIED + 2), np.int64)
    pending[0] = 0
    pending[1] = rows
    pending[2] = 0
    depth = 1
    for i in range(rows):
        store(order, i, i)
    while depth > 0:
        depth -= 1
        start = pending[3 * depth]
        stop = pending[3 * depth + 1]
        position = pending[3 * depth + 2]
        length = stop - start
        width = min(step, key_bits - position)
        is_sorted = True
        last = np.uint64(0)
        for i in range(length):
            row = load(order, start + i) & GREATEST
            word = np.uint64(0)
            if width > 0:
                word = _field_of(cells, row * stride, position, width)
            is_sorted &= word >= last
            last = word
            store(words, i, np.int64((word << shift) | np.uint64(row)))
        if not is_sorted and sort_words(words, spare, length, number_bits) != words:
            words, spare = spare, words
        position += width
        tied = _SAME if position >= key_bits else 0
        begin = 0
        last = np.uint64(load(words, 0)) >> shift
        store(order, start, np.int64(np.uint64(load(words, 0)) & number))
        for i in range(1, length + 1):
            if i < length:
                word = np.uint64(load(words, i))
                same = word >> shift == last
                store(order, start + i, np.int64(word & number) | (tied if same else 0))
                if same:
                    continue
                last = word >> shift
            if tied == 0 and i - begin > 1:
                if i - begin > _TIED:
                    pending[3 * depth] = start + begin
                    pending[3 * depth + 1] = start + i
                    pending[3 * depth + 2] = position
                    depth += 1
                else:
                    _settle_ties(cells, stride, position >> 6, key_words, order, start + begin, start + i)
            begin = i
    keep(word_room)
    keep(spare_room)


@inner
def _settle_ties(cells, stride, word, key_words, order, start, stop):
    """Insertion sort of few row numbers by the words of their keys from `word` on."""
    for i in range(start + 1, stop):
        row = load(order, i)
        place = i
        while place > start:
            other = load(order, place - 1)
            less = False
            for g in range(word, key_words):
                x = np.uint64(load(cells, row * stride + g))
                y = np.uint64(load(cells, other * stride + g))
                if x != y:
                    less = x < y
                    break
            if not less:
                break
            store(order, place, other)
            place -= 1
        store(order, place, row)
    for i in range(stop - 1, start, -1):
        same = True
        for g in range(word, key_words):
            if load(cells, load(order, i) * stride + g) != load(cells, load(order, i - 1) * stride + g):
                same = False
                break
        if same:
            store(order, i, load(order, i) | _SAME)


@inner
def _fold_gathered(cells, rows, stride, keys, columns, low, bits, nullable, offset, order):
    """Gather the rows in order, sum the diffs of equal keys, and write columns.

    Rows are gathered in blocks. The cells of the next block are prefetched meanwhile.
    """
    repeats = 0
    for i in range(rows):
        repeats |= load(order, i)
    # Sums of diffs are narrowed at the end, when they are known.
    steps = np.zeros(columns, np.int64)
    total_bytes = 0
    for j in range(columns):
        if j >= keys and repeats < 0:
            steps[j] = 8
        elif bits[j] != 0:
            steps[j] = code_step(rows, low[j], bits[j], nullable[j])
        total_bytes += column_bytes(rows, steps[j])
    room = empty_columns(total_bytes)
    target = np.zeros(columns, np.int64)
    at = address_of(room)
    for j in range(columns):
        if steps[j] != 0:
            target[j] = at
            at += column_bytes(rows, steps[j])
    block_room, (block, column_room) = scratch((_GATHERED * stride, _GATHERED))
    above = np.zeros(columns, np.int64)
    kept = np.int64(-1)  # the row being written
    for begin in range(0, rows, _GATHERED):
        size = min(_GATHERED, rows - begin)
        mixed = 0
        for i in range(begin + _GATHERED, min(begin + 2 * _GATHERED, rows)):
            row = (load(order, i) & GREATEST) * stride
            prefetch(cells + 8 * row)
            prefetch(cells + 8 * (row + stride - 1))
        for i in range(size):
            row = load(order, begin + i)
            mixed |= row
            row = (row & GREATEST) * stride
            for x in range(stride):
                store(block, i * stride + x, load(cells, row + x))
        for j in range(columns):
            if target[j] != 0:
                _write_block(
                    block, size, stride, j < keys, low[j], bits[j], nullable[j], offset[j], target[j], steps[j], kept + 1,
                    column_room,
                )  # fmt: skip
        if mixed >= 0 and _none_empty(target, steps, kept, kept + size, keys, columns, low):
            kept += size  # every row of the block has a key of its own
            continue
        first = kept + 1
        for i in range(size):
            row = first + i
            if load(order, begin + i) < 0:
                for j in range(keys, columns):
                    left = load(target[j], kept)
                    word = load(target[j], row)
                    total = left + word
                    above[j] += carry(left, word, total)
                    store(target[j], kept, total)
                continue
            for j in range(keys, columns):
                if above[j] != 0:
                    return overflow_head(columns)
            if kept < 0 or _is_kept(target, steps, kept, keys, columns, low):
                kept += 1
            if kept != row:
                for j in range(columns):
                    if target[j] != 0:
                        put(target[j], steps[j], kept, read(target[j], steps[j], row))
    for j in range(keys, columns):
        if above[j] != 0:
            return overflow_head(columns)
    if _is_kept(target, steps, kept, keys, columns, low):
        kept += 1
    head = new_head(kept, columns)
    keep(block_room)
    if kept == 0:
        return np.empty(0, np.int64), head
    for j in range(columns):
        if target[j] != 0:
            set_stored(head, j, target[j], steps[j])
        else:
            set_constant(head, j, low[j])
    if kept == rows:
        return room, head
    lean = fitting_columns(head)
    keep(room)
    return lean, head


@inner
def _is_kept(target, steps, row, keys, columns, low):
    """Whether the row has a diff."""
    for j in range(keys, columns):
        if (low[j] if target[j] == 0 else read(target[j], steps[j], row)) != 0:
            return True
    return False


@inner
def _none_empty(target, steps, start, last, keys, columns, low):
    """Whether all rows from start (or 0) to last have a diff."""
    for j in range(keys, columns):
        if target[j] == 0 and low[j] != 0:
            return True
    for row in range(max(start, 0), last + 1):
        if not _is_kept(target, steps, row, keys, columns, low):
            return False
    return True


@inner
def _write_block(block, size, stride, is_key, low, bits, nullable, offset, target, bytes_a_row, start, words):
    """One column of gathered rows to rows `start` and on of the column at `target`; `words` is room for a block."""
    if is_key:
        for i in range(size):
            store(words, i, decode(_field_of(block, i * stride, offset, bits), low, nullable))
    elif bits == 0:
        for i in range(size):
            store(words, i, low)
    else:
        for i in range(size):
            store(words, i, load(block, i * stride + offset))
    copy_words(words, 8, 0, size, target + bytes_a_row * start, bytes_a_row)
