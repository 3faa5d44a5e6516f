"""Build: any number of chunks of updates in any order become one sorted, consolidated rows object.

Promise: the result is sorted by data columns, then time columns (signed); no two rows agree in both; no row's diffs are
all zero; each diff is the exact sum of its inputs, or the row count is -1 because a sum does not fit 64 bits; columns that
are constant are not stored and stored ones take exactly as much room as they need.

How: what varies in a row is packed into as few bits as its ranges allow. If key and diffs fit one word together, those words
are sorted and everything is unpacked from them. Otherwise words of (leading key bits, row number) are sorted, ties are settled
by the next bits, and rows are gathered.
"""

from __future__ import annotations

import numpy as np

from tektite.kernels.compile import inner, kernel
from tektite.kernels.memory import load, store
from tektite.kernels.pages import empty_words
from tektite.kernels.radix import bit_length, sort_words
from tektite.kernels.rows import address, count, mask, new_head, set_constant, set_stored, value

_NULL = -(2**63)
_MAX = 2**63 - 1
# Up to this many rows, moving whole rows by insertion is cheaper than looking at columns.
_FEW = 32
# Rows packed and unpacked at a time, so that a block of words stays in the first-level cache between columns.
_BLOCK = 1024
# Rows gathered at a time.
_GATHERED = 128
# Rows that agree in the bits sorted so far and are no more than this are told apart by insertion.
_TIED = 16


@inner
def carry(left, right, total):
    """What `left + right`, computed as the wrapped `total`, owes to the word above: -1, 0 or 1."""
    if ((left ^ total) & (right ^ total)) >= 0:
        return 0
    return 1 if left >= 0 else -1


@inner
def overflow_head(columns):
    """What stands for a result with a sum that does not fit a word."""
    return np.empty(0, np.int64), new_head(-1, columns)


@kernel("Tuple((int64[::1], int64[::1]))(int64[::1], int64, int64, int64, int64)")
def build(table, nd, nt, nf, lo):
    """Sort and consolidate the chunks whose head addresses `table` lists, epochs below `lo` counting as `lo`.

    Returns (buf, head); head[0] is -1 if a diff overflows.
    """
    rows = 0
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
            stored = mask(head, j)
            for i in range(here):
                cells[(begin + i) * columns + j] = load(at, i & stored)
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
                head[4 + 3 * j] = -1
                stored_columns += 1
                break
    buf = np.empty(stored_columns * kept, np.int64)
    at = buf.ctypes.data
    for j in range(columns):
        if head[4 + 3 * j] != 0:
            set_stored(head, j, at)
            for k in range(kept):
                store(at, k, cells[order[k] * columns + j])
            at += 8 * kept
    return buf, head


@inner
def _ranges(table, nd, keys, columns, lo, low, bits, nullable):
    """For each column: its least word, the bits that its range needs, and whether NULL is set apart.

    NULL lies 2**63 below everything else; were it not taken as "one less than the least", a single one would cost 64 bits.
    """
    for j in range(columns):
        least = _MAX
        most = _NULL
        for c in range(len(table)):
            head = table[c]
            here = count(head)
            at = address(head, j)
            if mask(head, j) == 0:
                here = min(here, 1)
            for i in range(here):
                word = load(at, i)
                least = min(least, word)
                most = max(most, word)
        if j == nd:
            least = max(least, lo)
            most = max(most, lo)
        nullable[j] = 0
        if least == _NULL and most != _NULL and j < keys:
            least = _MAX
            for c in range(len(table)):
                head = table[c]
                here = count(head)
                at = address(head, j)
                if mask(head, j) == 0:
                    here = min(here, 1)
                for i in range(here):
                    word = load(at, i)
                    least = min(least, _MAX if word == _NULL else word)
            if j == nd:
                least = max(least, lo)
            least -= 1
            nullable[j] = 1
        low[j] = least
        bits[j] = bit_length(np.uint64(most) - np.uint64(least))


@inner
def _encode(word, low, nullable, floor):
    word = max(word, floor)
    if nullable and word == _NULL:
        return np.uint64(0)
    return np.uint64(word - low)


@inner
def _decode(code, low, nullable):
    if nullable and code == np.uint64(0):
        return np.int64(_NULL)
    return np.int64(code) + low


@inner
def _build_many(table, nd, nt, nf, lo, rows):
    columns = nd + nt + nf
    keys = nd + nt
    low = np.empty(columns, np.int64)
    bits = np.empty(columns, np.int64)
    nullable = np.empty(columns, np.int64)
    _ranges(table, nd, keys, columns, lo, low, bits, nullable)
    key_bits = 0
    diff_bits = 0
    for j in range(columns):
        if j < keys:
            key_bits += bits[j]
        else:
            diff_bits += bits[j]
    if key_bits + diff_bits <= 64:
        return _build_packed(table, nd, keys, columns, lo, rows, low, bits, nullable, diff_bits)
    return _build_gathered(table, nd, keys, columns, lo, rows, low, bits, nullable, key_bits)


# ---------------------------------------------------------------------------------------------------------------------
# Key and diffs in one word.


@inner
def _build_packed(table, nd, keys, columns, lo, rows, low, bits, nullable, diff_bits):
    shift = np.empty(columns, np.int64)
    used = 0
    for j in range(columns - 1, -1, -1):
        shift[j] = used
        used += bits[j]
    words = empty_words(rows).view(np.uint64)
    if not _pack(table, nd, columns, lo, low, bits, nullable, shift, diff_bits, words):
        words = _sorted(words, empty_words(rows).view(np.uint64), rows, diff_bits)
    if diff_bits == 64:
        clear = np.uint64(0)
    else:
        clear = (~np.uint64(0) >> np.uint64(diff_bits)) << np.uint64(diff_bits)
    if _is_consolidated(words, rows, keys, columns, low, bits, shift, clear):
        return _unpack(words, rows, columns, low, bits, nullable, shift)
    return _fold_packed(words, rows, keys, columns, low, bits, nullable, shift, clear)


@inner
def _sorted(words, spare, rows, low):
    if sort_words(words.ctypes.data, spare.ctypes.data, rows, low) == words.ctypes.data:
        return words
    return spare


@inner
def _field(bits):
    """A mask of `bits` (1 to 64) low bits."""
    return ~np.uint64(0) >> np.uint64(64 - bits)


@inner
def _pack(table, nd, columns, lo, low, bits, nullable, shift, ignored, words):
    """Fill `words`; returns whether they came sorted, bits below `ignored` aside."""
    begin = 0
    is_sorted = True
    last = np.uint64(0)
    drop = np.uint64(min(ignored, 63))
    for c in range(len(table)):
        head = table[c]
        here = count(head)
        for block in range(0, here, _BLOCK):
            size = min(_BLOCK, here - block)
            base = begin + block
            fresh = True
            for j in range(columns):
                if bits[j] == 0:
                    continue
                least = low[j]
                by = np.uint64(shift[j])
                floor = lo if j == nd else _NULL
                at = address(head, j)
                if mask(head, j) == 0:
                    code = _encode(load(at, 0), least, nullable[j], floor) << by
                    if fresh:
                        for i in range(size):
                            words[base + i] = code
                    else:
                        for i in range(size):
                            words[base + i] |= code
                elif nullable[j] or j == nd:
                    if fresh:
                        for i in range(size):
                            words[base + i] = np.uint64(0)
                    for i in range(size):
                        words[base + i] |= _encode(load(at, block + i), least, nullable[j], floor) << by
                elif fresh:
                    for i in range(size):
                        words[base + i] = np.uint64(load(at, block + i) - least) << by
                else:
                    for i in range(size):
                        words[base + i] |= np.uint64(load(at, block + i) - least) << by
                fresh = False
            if fresh:
                for i in range(size):
                    words[base + i] = np.uint64(0)
            if is_sorted:
                for i in range(base, base + size):
                    word = words[i] >> drop
                    if word < last:
                        is_sorted = False
                        break
                    last = word
        begin += here
    return is_sorted or ignored == 64


@inner
def _is_consolidated(words, rows, keys, columns, low, bits, shift, clear):
    """Whether sorted words hold no two equal keys and no row without a diff."""
    same = False
    for i in range(1, rows):
        same |= ((words[i] ^ words[i - 1]) & clear) == np.uint64(0)
    if same:
        return False
    for j in range(keys, columns):
        if bits[j] == 0 and low[j] != 0:
            return True
    for i in range(rows):
        some = False
        for j in range(keys, columns):
            if bits[j] != 0 and np.int64((words[i] >> np.uint64(shift[j])) & _field(bits[j])) + low[j] != 0:
                some = True
                break
        if not some:
            return False
    return True


@inner
def _unpack_column(words, rows, low, bits, nullable, shift, at):
    by = np.uint64(shift)
    field = _field(bits)
    if nullable:
        for i in range(rows):
            store(at, i, _decode((words[i] >> by) & field, low, nullable))
    else:
        for i in range(rows):
            store(at, i, np.int64((words[i] >> by) & field) + low)


@inner
def _unpack(words, rows, columns, low, bits, nullable, shift):
    """Columns from words that need no folding: what varied before still does."""
    varying = 0
    for j in range(columns):
        varying += bits[j] != 0
    head = new_head(rows, columns)
    buf = empty_words(varying * rows)
    at = buf.ctypes.data
    for j in range(columns):
        if bits[j] == 0:
            set_constant(head, j, low[j])
        else:
            set_stored(head, j, at)
            _unpack_column(words, rows, low[j], bits[j], nullable[j], shift[j], at)
            at += 8 * rows
    return buf, head


@inner
def _fold_packed(words, rows, keys, columns, low, bits, nullable, shift, clear):
    """Sum the diffs of equal keys in place, then unpack what is left."""
    diffs = columns - keys
    sums = empty_words(diffs * rows)
    kept = 0
    i = 0
    while i < rows:
        key = words[i] & clear
        end = i + 1
        while end < rows and words[end] & clear == key:
            end += 1
        some = False
        for d in range(diffs):
            j = keys + d
            if bits[j] == 0:
                total, above = _times(low[j], end - i)
            else:
                by = np.uint64(shift[j])
                field = _field(bits[j])
                total = np.int64((words[i] >> by) & field) + low[j]
                above = 0
                for k in range(i + 1, end):
                    word = np.int64((words[k] >> by) & field) + low[j]
                    grown = total + word
                    above += carry(total, word, grown)
                    total = grown
            if above != 0:
                return overflow_head(columns)
            sums[d * rows + kept] = total
            some = some or total != 0
        words[kept] = key
        if some:
            kept += 1
        i = end
    head = new_head(kept, columns)
    if kept == 0:
        return np.empty(0, np.int64), head
    differ = np.uint64(0)
    for i in range(1, kept):
        differ |= words[i] ^ words[0]
    stored_columns = 0
    for j in range(columns):
        if j < keys:
            word = low[j]
            varies = False
            if bits[j] != 0:
                varies = (differ >> np.uint64(shift[j])) & _field(bits[j]) != np.uint64(0)
                word = _decode((words[0] >> np.uint64(shift[j])) & _field(bits[j]), low[j], nullable[j])
        else:
            start = (j - keys) * rows
            word = sums[start]
            varies = False
            for i in range(start + 1, start + kept):
                if sums[i] != word:
                    varies = True
                    break
        set_constant(head, j, word)
        if varies:
            head[4 + 3 * j] = -1
            stored_columns += 1
    buf = empty_words(stored_columns * kept)
    at = buf.ctypes.data
    for j in range(columns):
        if head[4 + 3 * j] != 0:
            set_stored(head, j, at)
            if j < keys:
                _unpack_column(words, kept, low[j], bits[j], nullable[j], shift[j], at)
            else:
                start = (j - keys) * rows
                for i in range(kept):
                    store(at, i, sums[start + i])
            at += 8 * kept
    return buf, head


@inner
def _times(word, factor):
    """word * factor (factor >= 1), and a non-zero second value if that does not fit."""
    if -(1 << 31) <= word < (1 << 31) and factor < (1 << 31):
        return word * factor, 0
    size = np.uint64(word) if word >= 0 else ~np.uint64(word) + np.uint64(1)
    limit = np.uint64(_MAX) if word >= 0 else np.uint64(_MAX) + np.uint64(1)
    return word * factor, np.int64(size > limit // np.uint64(factor))


# ---------------------------------------------------------------------------------------------------------------------
# More than a word of key and diffs: sort row numbers. Each row is laid out as one bit string of its key columns, cut into
# words and followed by the diffs that vary, so that a gather meets one place in memory per row.


@inner
def _build_gathered(table, nd, keys, columns, lo, rows, low, bits, nullable, key_bits):
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
    cells = cell_room.ctypes.data
    _lay_out(table, nd, keys, columns, lo, low, bits, nullable, offset, stride, key_words, cells)
    order_room = empty_words(rows)
    order = order_room.ctypes.data
    _order_rows(cells, rows, stride, key_words, key_bits, order)
    buf, head = _fold_gathered(cells, rows, stride, keys, columns, low, bits, nullable, offset, order)
    cell_room[0] = 0  # both are read by address up to here
    order_room[0] = 0
    return buf, head


@inner
def _or(cells, place, bits):
    store(cells, place, load(cells, place) | np.int64(bits))


@inner
def _lay_out(table, nd, keys, columns, lo, low, bits, nullable, offset, stride, key_words, cells):
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
                stored = mask(head, j)
                if j >= keys:
                    spot = base + offset[j]
                    for i in range(size):
                        store(cells, spot + i * stride, load(at, (block + i) & stored))
                    continue
                least = low[j]
                floor = lo if j == nd else _NULL
                spot = base + (offset[j] >> 6)
                room = 64 - (offset[j] & 63)
                if width <= room:
                    by = np.uint64(room - width)
                    for i in range(size):
                        code = _encode(load(at, (block + i) & stored), least, nullable[j], floor)
                        _or(cells, spot + i * stride, code << by)
                else:
                    over = np.uint64(width - room)
                    by = np.uint64(64 - (width - room))
                    for i in range(size):
                        code = _encode(load(at, (block + i) & stored), least, nullable[j], floor)
                        _or(cells, spot + i * stride, code >> over)
                        _or(cells, spot + i * stride + 1, code << by)
        begin += here


@inner
def _field_of(cells, row, offset, width):
    """The `width` bits at bit `offset` of the row's bit string."""
    spot = row + (offset >> 6)
    room = 64 - (offset & 63)
    if width <= room:
        return (np.uint64(load(cells, spot)) >> np.uint64(room - width)) & _field(width)
    over = width - room
    leading = np.uint64(load(cells, spot)) << np.uint64(over)
    return (leading | (np.uint64(load(cells, spot + 1)) >> np.uint64(64 - over))) & _field(width)


# Marks, in the sign bit of an ordered row number, a row whose key equals that of the row before it.
_SAME = -(2**63)


@inner
def _order_rows(cells, rows, stride, key_words, key_bits, order):
    """The row numbers in order, the sign bit set if a row's key equals that of the row before it."""
    number_bits = bit_length(np.uint64(rows - 1))
    step = 64 - number_bits
    number = _field(number_bits)
    shift = np.uint64(number_bits)
    word_room = empty_words(rows)
    spare_room = empty_words(rows)
    words = word_room.ctypes.data
    spare = spare_room.ctypes.data
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
            row = load(order, start + i) & _MAX
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
    word_room[0] = 0  # both are read by address up to here
    spare_room[0] = 0


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

    Rows come in blocks: fetching a block's cells is one simple loop, so that its cache misses overlap.
    """
    repeats = 0
    for i in range(rows):
        repeats |= load(order, i)
    stored_columns = 0
    for j in range(columns):
        stored_columns += bits[j] != 0 or (repeats < 0 and j >= keys)
    room = empty_words(stored_columns * rows)
    target = np.zeros(columns, np.int64)
    at = room.ctypes.data
    for j in range(columns):
        if bits[j] != 0 or (repeats < 0 and j >= keys):
            target[j] = at
            at += 8 * rows
    block_room = np.empty(_GATHERED * stride + 1, np.int64)
    block = block_room.ctypes.data
    above = np.zeros(columns, np.int64)
    kept = -1  # the row being written
    for begin in range(0, rows, _GATHERED):
        size = min(_GATHERED, rows - begin)
        mixed = 0
        for i in range(size):
            row = load(order, begin + i)
            mixed |= row
            row = (row & _MAX) * stride
            for x in range(stride):
                store(block, i * stride + x, load(cells, row + x))
        if mixed >= 0 and (kept < 0 or _is_kept(target, kept, keys, columns, low)):
            # Every row of the block has a key of its own.
            for j in range(columns):
                if target[j] != 0:
                    _write_block(block, size, stride, j < keys, low[j], bits[j], nullable[j], offset[j], target[j], kept + 1)
            if _none_empty(target, kept + 1, kept + size, keys, columns, low):
                kept += size
                continue
        for i in range(size):
            cell = i * stride
            if load(order, begin + i) >= 0:
                for j in range(keys, columns):
                    if above[j] != 0:
                        return overflow_head(columns)
                if kept < 0 or _is_kept(target, kept, keys, columns, low):
                    kept += 1
                for j in range(columns):
                    if bits[j] != 0:
                        _write_block(
                            block + 8 * cell, 1, stride, j < keys, low[j], bits[j], nullable[j], offset[j], target[j], kept
                        )
                    elif target[j] != 0:
                        store(target[j], kept, low[j])
            else:
                for j in range(keys, columns):
                    word = low[j] if bits[j] == 0 else load(block, cell + offset[j])
                    left = load(target[j], kept)
                    total = left + word
                    above[j] += carry(left, word, total)
                    store(target[j], kept, total)
    for j in range(keys, columns):
        if above[j] != 0:
            return overflow_head(columns)
    if _is_kept(target, kept, keys, columns, low):
        kept += 1
    head = new_head(kept, columns)
    block_room[0] = 0  # its address was in use up to here
    if kept == 0:
        return np.empty(0, np.int64), head
    for j in range(columns):
        if target[j] != 0:
            set_stored(head, j, target[j])
        else:
            set_constant(head, j, low[j])
    if kept == rows:
        return room, head
    return _drop_constants(room, head)


@inner
def _is_kept(target, row, keys, columns, low):
    """Whether the row has a diff."""
    for j in range(keys, columns):
        if (low[j] if target[j] == 0 else load(target[j], row)) != 0:
            return True
    return False


@inner
def _none_empty(target, start, last, keys, columns, low):
    """Whether all rows from start to last have a diff."""
    for j in range(keys, columns):
        if target[j] == 0 and low[j] != 0:
            return True
    for row in range(start, last + 1):
        if not _is_kept(target, row, keys, columns, low):
            return False
    return True


@inner
def _write_block(block, size, stride, is_key, low, bits, nullable, offset, target, start):
    """One column of gathered rows to target[start:]."""
    if not is_key:
        if bits == 0:
            for i in range(size):
                store(target, start + i, low)
        else:
            for i in range(size):
                store(target, start + i, load(block, i * stride + offset))
        return
    for i in range(size):
        store(target, start + i, _decode(_field_of(block, i * stride, offset, bits), low, nullable))


@inner
def _drop_constants(buf, head):
    """The same rows in a buffer of their size, without columns that summing has left constant."""
    rows = head[0]
    stored_columns = 0
    for j in range(head[2]):
        if head[4 + 3 * j] == 0:
            continue
        at = head[3 + 3 * j]
        word = load(at, 0)
        varies = False
        for i in range(1, rows):
            if load(at, i) != word:
                varies = True
                break
        if varies:
            stored_columns += 1
        else:
            set_constant(head, j, word)
    if stored_columns * rows == len(buf):
        return buf, head
    lean = empty_words(stored_columns * rows)
    target = lean.ctypes.data
    for j in range(head[2]):
        if head[4 + 3 * j] != 0:
            at = head[3 + 3 * j]
            for i in range(rows):
                store(target, i, load(at, i))
            set_stored(head, j, target)
            target += 8 * rows
    return lean, head
