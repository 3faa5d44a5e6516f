"""Build for rows with wide columns of which each word occurs many times, such as hashes: sorts codes of one word a row.

Rows of two hashes take 128 bits. But in a round of a loop a hundred thousand rows may have ten thousand different words. A hash
table finds these, and sorting them gives each its rank, from 1 on. Ranks in place of words make a row short enough to be sorted
as one word (see packed.py). At the end words take the places of their ranks again.

The table has two words for each place: a word, and the number of it, in the order in which words are first met, plus one; 0 where
the place is free.
"""

from __future__ import annotations

import numpy as np

from tektite.kernels.compile import inner
from tektite.kernels.layout.memory import LEAST, load, load4, read, store, store4
from tektite.kernels.layout.pages import address_of, empty_words, prefetch
from tektite.kernels.layout.rows import address, count, step_of
from tektite.kernels.layout.scratch import keep
from tektite.kernels.seek.route import SEED, mix
from tektite.kernels.sort.packed import build_packed
from tektite.kernels.sort.radix import bit_length, sort_words

# Fewer rows are not worth a table.
_FROM = 4096
# With fewer rows for each word, coding costs more than it saves.
_ROWS_A_WORD = 4
_MET_BEFORE = 36
# Narrower columns are left as they are.
_WIDE = 32
# Places of the first table.
_PLACES = 1 << 12
# Rows looked up at a time: memory fetches many places at once.
_BLOCK = 256


@inner
def may_be_coded(rows, nd, columns, bits):
    """Whether rows may fit one word if the words of wide data columns are replaced by codes."""
    if rows < _FROM or rows >= 1 << 31:
        return False
    most = bit_length(np.uint64(rows // _ROWS_A_WORD))
    total = np.int64(0)
    for j in range(columns):
        total += min(bits[j], most) if j < nd and bits[j] > _WIDE else bits[j]
    return total <= 64


@inner
def build_coded(table, nd, keys, columns, lo, rows, low, bits, nullable):
    """Sort and consolidate the rows of all chunks. `low`, `bits` and `nullable` describe the codes of columns (see codes.py).
    Returns (done, buf, head); if it is not done, some column has too many different words.
    """
    wide = np.empty(nd, np.int64)
    many = 0
    for j in range(nd):
        if bits[j] > _WIDE:
            wide[many] = j
            many += 1
    size = 3 + 3 * columns
    heads = _copied_heads(table, columns, size)
    listed = np.empty(many, np.int64)
    code_room = empty_words(many * ((rows + 1) // 2) + 1)  # a read of four bytes takes four more along
    word_room = empty_words(many * (rows // _ROWS_A_WORD + _BLOCK))
    at_codes = address_of(code_room)
    at_words = address_of(word_room)
    for v in range(many):
        j = wide[v]
        found = np.int64(-1)
        if _repeats(table, rows, j):
            found = _code_column(table, heads, size, j, at_codes, at_words, rows // _ROWS_A_WORD)
        if found < 0:
            keep(heads)
            keep(code_room)
            keep(word_room)
            return False, np.empty(0, np.int64), np.empty(0, np.int64)
        listed[v] = at_words
        low[j] = 0
        bits[j] = bit_length(np.uint64(found))
        nullable[j] = 1  # ranks begin with 1, and get eight bytes each
        at_codes += 8 * ((rows + 1) // 2)
        at_words += 8 * (rows // _ROWS_A_WORD + _BLOCK)
    total = np.int64(0)
    diff_bits = np.int64(0)
    for j in range(columns):
        total += bits[j]
        if j >= keys:
            diff_bits += bits[j]
    if total > 64:
        keep(heads)
        keep(code_room)
        keep(word_room)
        return False, np.empty(0, np.int64), np.empty(0, np.int64)
    coded = np.empty(len(table), np.int64)
    for c in range(len(table)):
        coded[c] = address_of(heads) + 8 * size * c
    buf, head = build_packed(coded, nd, keys, columns, lo, rows, low, bits, nullable, diff_bits)
    if head[0] > 0:
        for v in range(many):
            j = wide[v]
            words = listed[v]
            if head[4 + 3 * j] == 0:
                head[5 + 3 * j] = load(words, head[5 + 3 * j] - 1)
                continue
            at = head[3 + 3 * j]
            for i in range(head[0]):
                store(at, i, load(words, load(at, i) - 1))
    keep(heads)
    keep(code_room)
    keep(word_room)
    return True, buf, head


@inner
def _copied_heads(table, columns, size):
    """A copy of the heads of all chunks, `size` words each."""
    heads = np.empty(len(table) * size, np.int64)
    for c in range(len(table)):
        source = table[c]
        at = c * size
        own = address_of(heads) + 8 * at
        heads[at] = count(source)
        heads[at + 1] = own
        heads[at + 2] = columns
        for j in range(columns):
            heads[at + 3 + 3 * j] = address(source, j)
            heads[at + 4 + 3 * j] = step_of(source, j)
            heads[at + 5 + 3 * j] = load(source, 5 + 3 * j)
    return heads


@inner
def _place_of(word, size):
    """Where the search for a word begins."""
    return np.int64(mix(SEED, word) & np.uint64(size - 1))


@inner
def _larger_table(room, size, larger):
    """The same words in a table of `larger` places."""
    made = np.zeros(2 * larger, np.int64)
    source = address_of(room)
    target = address_of(made)
    for i in range(size):
        if load(source, 2 * i + 1) != 0:
            place = _place_of(load(source, 2 * i), larger)
            while load(target, 2 * place + 1) != 0:
                place = (place + 1) & (larger - 1)
            store(target, 2 * place, load(source, 2 * i))
            store(target, 2 * place + 1, load(source, 2 * i + 1))
    keep(room)
    return made


@inner
def _number_of(places, size, word, many):
    """The number of a word plus one. A new word gets the number `many`."""
    place = _place_of(word, size)
    number = load(places, 2 * place + 1)
    while number != 0 and load(places, 2 * place) != word:
        place = (place + 1) & (size - 1)
        number = load(places, 2 * place + 1)
    if number == 0:
        number = many + 1
        store(places, 2 * place, word)
        store(places, 2 * place + 1, number)
    return number


@inner
def _repeats(table, rows, j):
    """Whether a few words of a column, of rows chosen by hash, suggest that its words repeat. Of four times the square root of
    the rows, 40 are expected to have been met before if each word occurs five times, and 8 if all differ: rows met twice.
    """
    asked = np.int64(4.0 * np.sqrt(rows))
    size = np.int64(64)
    while size < 2 * asked:
        size *= 2
    room = np.zeros(2 * size, np.int64)
    many = np.int64(0)
    for k in range(asked):
        row = np.int64((mix(SEED, k) >> np.uint64(1)) % np.uint64(rows))
        c = 0
        while row >= count(table[c]):
            row -= count(table[c])
            c += 1
        word = read(address(table[c], j), step_of(table[c], j), row)
        if _number_of(address_of(room), size, word, many) > many:
            many += 1
    keep(room)
    return asked - many >= _MET_BEFORE


@inner
def _code_column(table, heads, size_of_head, j, codes, words, most):
    """Write the ranks of the words of column j to `codes`, four bytes each, let the copied heads refer to them, and list the
    words in order at `words`. Returns how many words there are; -1 if more than `most`.
    """
    size = np.int64(_PLACES)
    room = np.zeros(2 * size, np.int64)
    many = np.int64(0)
    begin = np.int64(0)
    for c in range(len(table)):
        head = table[c]
        here = count(head)
        at_head = c * size_of_head
        at = address(head, j)
        if here == 0:
            continue
        if many > most:
            keep(room)
            return np.int64(-1)
        if 2 * (many + _BLOCK) > size:
            room = _larger_table(room, size, 4 * size)
            size *= 4
        if step_of(head, j) != 8:
            # A column of one word, since others of wide words take eight bytes a row. Narrow ones are rare, and not coded.
            if step_of(head, j) != 0:
                keep(room)
                return np.int64(-1)
            word = load(at, 0)
            number = _number_of(address_of(room), size, word, many)
            if number > many:
                store(words, many, word)
                many += 1
            heads[at_head + 5 + 3 * j] = number
            heads[at_head + 3 + 3 * j] = address_of(heads) + 8 * (at_head + 5 + 3 * j)
            continue
        heads[at_head + 3 + 3 * j] = codes + 4 * begin
        heads[at_head + 4 + 3 * j] = 4
        last = np.int64(0)
        number = np.int64(0)
        for block in range(0, here, _BLOCK):
            some = min(_BLOCK, here - block)
            if many > most:
                keep(room)
                return np.int64(-1)
            if 2 * (many + _BLOCK) > size:
                room = _larger_table(room, size, 4 * size)
                size *= 4
            places = address_of(room)
            for i in range(block, block + some):
                prefetch(places + 16 * _place_of(load(at, i), size))
            for i in range(block, block + some):
                word = load(at, i)
                if number == 0 or word != last:
                    number = _number_of(places, size, word, many)
                    last = word
                    if number > many:
                        store(words, many, word)
                        many += 1
                store4(codes, begin + i, number)
        begin += here
    if many > most:
        keep(room)
        return np.int64(-1)
    _rank(address_of(room), size, words, many, table, heads, size_of_head, j, codes, begin)
    keep(room)
    return many


@inner
def _rank(places, size, words, many, table, heads, size_of_head, j, codes, begin):
    """Sort the words, and replace numbers by ranks."""
    spare_room = empty_words(many)
    spare = address_of(spare_room)
    for i in range(many):
        store(words, i, load(words, i) ^ LEAST)
    if sort_words(words, spare, many, 0) != words:
        for i in range(many):
            store(words, i, load(spare, i))
    for i in range(many):
        word = load(words, i) ^ LEAST
        store(words, i, word)
        store(spare, _number_of(places, size, word, many) - 1, i + 1)
    for i in range(begin):
        store4(codes, i, load(spare, load4(codes, i) - 1))
    for c in range(len(table)):
        at = c * size_of_head
        if heads[at] > 0 and heads[at + 4 + 3 * j] == 0:
            heads[at + 5 + 3 * j] = load(spare, heads[at + 5 + 3 * j] - 1)
    keep(spare_room)
