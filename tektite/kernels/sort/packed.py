"""Build for rows whose key and diffs fit one word together: sorts these words and unpacks them.

If there are about as many rows as possible keys, as in a round that reaches the nodes of a graph over and over, rows are not
sorted: their diffs are added up in a table with an entry for each key.
"""

from __future__ import annotations

import numpy as np

from tektite.kernels.compile import inner
from tektite.kernels.layout.codes import code_step, decode, encode, low_bits
from tektite.kernels.layout.columns import (
    NARROW_FROM,
    column_bytes,
    copy_words,
    empty_columns,
    fitting_step,
    range_of,
    writer_of,
)
from tektite.kernels.layout.memory import load, read, store
from tektite.kernels.layout.pages import address_of, empty_words
from tektite.kernels.layout.rows import address, count, new_head, set_constant, set_stored, step_of
from tektite.kernels.layout.scratch import keep
from tektite.kernels.operators.sums import carry, overflow_head, times
from tektite.kernels.sort.radix import sort_words
from tektite.values.words import NULL

# Rows packed at a time, so that a block of words stays in the first-level cache between columns.
_BLOCK = 1024
# A table of sums has at most this many places, which the last-level cache holds, and so many for each row: clearing and reading
# four places takes about half as long as sorting a row.
_MOST_PLACES = 1 << 20
_PLACES_A_ROW = 4


@inner
def build_packed(table, nd, keys, columns, lo, rows, low, bits, nullable, diff_bits):
    """Sort and consolidate the rows of all chunks. `low`, `bits` and `nullable` describe the codes of columns (see codes.py);
    those of the diffs take `diff_bits` together, the lowest of a word.
    """
    shift = np.empty(columns, np.int64)
    used = 0
    for j in range(columns - 1, -1, -1):
        shift[j] = used
        used += bits[j]
    words = empty_words(rows).view(np.uint64)
    spare = words
    if not _pack(table, nd, columns, lo, low, bits, nullable, shift, diff_bits, words):
        spare = empty_words(rows).view(np.uint64)
        if columns == keys + 1 and _is_dense(rows, used - diff_bits, low[keys], diff_bits):
            kept = _add_up(words, spare.view(np.int64), rows, used - diff_bits, low[keys], diff_bits)
            return _unpack_sums(words, spare.view(np.int64), rows, kept, keys, columns, low, bits, nullable, shift)
        from_bit = _sorted_below(words, rows, keys, bits, shift, diff_bits)
        if sort_words(address_of(words), address_of(spare), rows, from_bit) != address_of(words):
            words, spare = spare, words
    if diff_bits == 64:
        clear = np.uint64(0)
    else:
        clear = (~np.uint64(0) >> np.uint64(diff_bits)) << np.uint64(diff_bits)
    if _is_consolidated(words, rows, keys, columns, low, bits, shift, clear):
        return _unpack(words, rows, columns, low, bits, nullable, shift)
    # What sorting left over has room for the sums, if each row has one.
    if columns != keys + 1 or address_of(spare) == address_of(words):
        spare = empty_words((columns - keys) * rows).view(np.uint64)
    return _fold_packed(words, spare.view(np.int64), rows, keys, columns, low, bits, nullable, shift, clear)


@inner
def _pack(table, nd, columns, lo, low, bits, nullable, shift, ignored, words):
    """Fill `words`. Returns whether they are sorted already, leaving aside bits below `ignored`."""
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
                floor = lo if j == nd else NULL
                at = address(head, j)
                by_bytes = step_of(head, j)
                if by_bytes == 0:
                    code = encode(load(at, 0), least, nullable[j], floor) << by
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
                        words[base + i] |= encode(read(at, by_bytes, block + i), least, nullable[j], floor) << by
                elif by_bytes != 8:
                    if fresh:
                        for i in range(size):
                            words[base + i] = np.uint64(0)
                    for i in range(size):
                        words[base + i] |= np.uint64(read(at, by_bytes, block + i) - least) << by
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
def _sorted_below(words, rows, keys, bits, shift, diff_bits):
    """The bit from which on words have to be sorted, by a sort that keeps the order of words that agree from there on. Rows that
    are in order but for a later column that became the first one, as where an index is made from another one, have to be sorted
    by that column only.
    """
    first = 0
    while first < keys and bits[first] == 0:
        first += 1
    second = first + 1
    while second < keys and bits[second] == 0:
        second += 1
    if second >= keys:
        return diff_bits
    above = np.uint64(shift[first])
    below = np.uint64(shift[second])
    middle = low_bits(bits[second])
    under = low_bits(shift[second]) if shift[second] > 0 else np.uint64(0)
    by = np.uint64(bits[first])
    drop = np.uint64(diff_bits)
    last = np.uint64(0)
    for i in range(rows):
        word = words[i]
        turned = (((word >> below) & middle) << (below + by)) | ((word >> above) << below) | (word & under)
        turned >>= drop
        if turned < last:
            return diff_bits
        last = turned
    return shift[first]


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
            if bits[j] != 0 and np.int64((words[i] >> np.uint64(shift[j])) & low_bits(bits[j])) + low[j] != 0:
                some = True
                break
        if not some:
            return False
    return True


@inner
def _field(source, row):
    """The word of a column in packed word number `row`."""
    words, shift, mask, low = source
    return np.int64((np.uint64(load(words, row)) >> shift) & mask) + low


_write_fields = writer_of(_field)


@inner
def _unpack_column(words, rows, low, bits, nullable, shift, at, bytes_a_row):
    """Write the words of a column, which lies at bit `shift` of the packed words, to the stored column at `at`."""
    by = np.uint64(shift)
    field = low_bits(bits)
    if nullable:
        for i in range(rows):
            store(at, i, decode((words[i] >> by) & field, low, nullable))
    else:
        _write_fields(at, bytes_a_row, rows, (address_of(words), by, field, low))


@inner
def _unpack(words, rows, columns, low, bits, nullable, shift):
    """Columns from consolidated words: the columns that varied still do."""
    head = new_head(rows, columns)
    total = 0
    for j in range(columns):
        if bits[j] != 0:
            total += column_bytes(rows, code_step(rows, low[j], bits[j], nullable[j]))
    buf = empty_columns(total)
    at = address_of(buf)
    for j in range(columns):
        if bits[j] == 0:
            set_constant(head, j, low[j])
        else:
            bytes_a_row = code_step(rows, low[j], bits[j], nullable[j])
            set_stored(head, j, at, bytes_a_row)
            _unpack_column(words, rows, low[j], bits[j], nullable[j], shift[j], at, bytes_a_row)
            at += column_bytes(rows, bytes_a_row)
    return buf, head


@inner
def _is_dense(rows, key_bits, low, diff_bits):
    """Whether a table with a place for each possible key pays, and no sum in it can overflow."""
    if key_bits >= 32 or 1 << key_bits > min(_MOST_PLACES, _PLACES_A_ROW * rows):
        return False
    return diff_bits < 24 and _is_modest(rows, low)


@inner
def _is_modest(rows, diff):
    """Whether the sum of so many diffs of about this size fits a word."""
    return -(1 << 24) < diff < 1 << 24 and rows < 1 << 36


@inner
def _add_up(words, sums, rows, key_bits, low, diff_bits):
    """Replace `words` by those of the keys whose diffs do not add up to zero, in order, and write the sums; returns how many."""
    places = 1 << key_bits
    room = np.zeros(places, np.int64)
    table = address_of(room)
    by = np.uint64(diff_bits)
    if diff_bits == 0:
        for i in range(rows):
            place = np.int64(words[i])
            store(table, place, load(table, place) + low)
    else:
        field = low_bits(diff_bits)
        for i in range(rows):
            place = np.int64(words[i] >> by)
            store(table, place, load(table, place) + np.int64(words[i] & field) + low)
    kept = 0
    place = 0
    while place < places and kept < rows:
        total = load(table, place)
        words[kept] = np.uint64(place) << by
        sums[kept] = total
        kept += 1 if total != 0 else 0
        place += 1
    keep(room)
    return kept


@inner
def _fold_packed(words, sums, rows, keys, columns, low, bits, nullable, shift, clear):
    """Sum the diffs of equal keys in place, then unpack what is left. `sums` has room for the diffs of all rows."""
    diffs = columns - keys
    if diffs == 1 and bits[keys] == 0 and low[keys] != 0 and _is_modest(rows, low[keys]):
        kept = _fold_equal(words, sums, rows, low[keys])
        return _unpack_sums(words, sums, rows, kept, keys, columns, low, bits, nullable, shift)
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
                total, above = times(low[j], end - i)
            else:
                by = np.uint64(shift[j])
                field = low_bits(bits[j])
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
    return _unpack_sums(words, sums, rows, kept, keys, columns, low, bits, nullable, shift)


@inner
def _fold_equal(words, sums, rows, diff):
    """Keep one of equal words, whose rows all have the same diff, and write the sums; returns how many. There is no branch: the
    processor could not predict which words are equal.
    """
    kept = 0
    last = words[0]
    for i in range(rows):
        word = words[i]
        kept += 1 if word != last else 0
        last = word
        words[kept] = word
        sums[kept] = i + 1
    kept += 1
    before = 0
    for k in range(kept):
        end = sums[k]
        sums[k] = diff * (end - before)
        before = end
    return kept


@inner
def _unpack_sums(words, sums, rows, kept, keys, columns, low, bits, nullable, shift):
    """Columns from `kept` words that differ in their keys, and their diffs, of which there is room for `rows` each."""
    head = new_head(kept, columns)
    if kept == 0:
        return np.empty(0, np.int64), head
    differ = np.uint64(0)
    for i in range(1, kept):
        differ |= words[i] ^ words[0]
    total = 0
    for j in range(columns):
        bytes_a_row = 8
        if j < keys:
            word = low[j]
            varies = False
            bytes_a_row = code_step(kept, low[j], bits[j], nullable[j])
            if bits[j] != 0:
                varies = (differ >> np.uint64(shift[j])) & low_bits(bits[j]) != np.uint64(0)
                word = decode((words[0] >> np.uint64(shift[j])) & low_bits(bits[j]), low[j], nullable[j])
        else:
            start = (j - keys) * rows
            word = sums[start]
            least, most = range_of(address_of(sums) + 8 * start, 8, kept)
            varies = least < most
            if kept >= NARROW_FROM:
                bytes_a_row = fitting_step(least, most)
        set_constant(head, j, word)
        if varies:
            head[4 + 3 * j] = bytes_a_row
            total += column_bytes(kept, bytes_a_row)
    buf = empty_columns(total)
    at = address_of(buf)
    for j in range(columns):
        bytes_a_row = head[4 + 3 * j]
        if bytes_a_row != 0:
            set_stored(head, j, at, bytes_a_row)
            if j < keys:
                _unpack_column(words, kept, low[j], bits[j], nullable[j], shift[j], at, bytes_a_row)
            else:
                copy_words(address_of(sums) + 8 * (j - keys) * rows, 8, 0, kept, at, bytes_a_row)
            at += column_bytes(kept, bytes_a_row)
    keep(sums)
    return buf, head
