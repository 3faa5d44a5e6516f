"""Stored columns: how narrow a column may be, and writing words to it.

A column is an address and a step (see memory.py). A stored column has a step of 8, 4, 2 or 1 bytes. Words that are written to it
must fit. At least seven more bytes behind a narrow column must be readable.
"""

from __future__ import annotations

from typing import Any

from tektite.kernels.compile import inner
from tektite.kernels.layout.memory import load, read, store, store1, store2, store4
from tektite.kernels.layout.pages import empty_words

# From this many rows on, columns of batches are stored as narrow as their words allow. Fewer are not worth the trouble.
NARROW_FROM = 2048


@inner
def fitting_step(least, most):
    """The narrowest step of a column whose words lie between these two."""
    if -(1 << 31) <= least and most < 1 << 31:
        if -(1 << 15) <= least and most < 1 << 15:
            return 1 if -(1 << 7) <= least and most < 1 << 7 else 2
        return 4
    return 8


@inner
def column_bytes(rows, bytes_a_row):
    """The bytes that a column takes in a buffer. Each column begins at a whole word."""
    return (rows * bytes_a_row + 7) >> 3 << 3


@inner
def empty_columns(total):
    """A buffer for columns that take `total` bytes together, with seven readable bytes behind them."""
    return empty_words((total >> 3) + 1 if total > 0 else 0)


@inner
def put(at, bytes_a_row, row, word):
    """Write a word, which must fit, to a row of a stored column."""
    if bytes_a_row == 8:
        store(at, row, word)
    elif bytes_a_row == 4:
        store4(at, row, word)
    elif bytes_a_row == 2:
        store2(at, row, word)
    else:
        store1(at, row, word)


def writer_of(word_at: Any, measured: bool = False) -> Any:
    """A function (target, step, many, source) that writes the words `word_at(source, row)`, for rows 0..many-1, to the front of
    a stored column. It chooses the width of the store once, not for each word.

    The words must fit the column. A `measured` writer is for words that may not: it returns the bits that its words need beside
    their signs, and what it wrote is of use if these fit. Any word fits a step of 8, for which it returns 0.
    """

    @inner
    def write(target, step, many, source):
        bits = 0
        if step == 8:
            for row in range(many):
                store(target, row, word_at(source, row))
        elif step == 4:
            for row in range(many):
                word = word_at(source, row)
                if measured:
                    bits |= word ^ (word >> 63)
                store4(target, row, word)
        elif step == 2:
            for row in range(many):
                word = word_at(source, row)
                if measured:
                    bits |= word ^ (word >> 63)
                store2(target, row, word)
        else:
            for row in range(many):
                word = word_at(source, row)
                if measured:
                    bits |= word ^ (word >> 63)
                store1(target, row, word)
        return bits

    return write


@inner
def _narrow_word(source, row):
    at, step = source
    return read(at, step, row)


@inner
def _same_word(word, row):
    return word


_write_whole = writer_of(load)
_write_narrow = writer_of(_narrow_word)
_write_same = writer_of(_same_word)


@inner
def copy_words(source, from_step, start, stop, target, to_step):
    """Write rows start..stop of a column, whose words must fit, to the front of another, stored one."""
    if from_step == 8:
        _write_whole(target, to_step, stop - start, source + 8 * start)
    else:
        _write_narrow(target, to_step, stop - start, (source + from_step * start, from_step))


@inner
def fill_words(target, step, start, stop, word):
    """Write a word, which must fit, to rows start..stop of a stored column."""
    _write_same(target + step * start, step, stop - start, word)


@inner
def range_of(at, step, rows):
    """The least and the greatest word of the first `rows` >= 1 rows of a column."""
    least = read(at, step, 0)
    most = least
    if step == 8:
        for i in range(1, rows):
            word = load(at, i)
            least = min(least, word)
            most = max(most, word)
    elif step != 0:
        for i in range(1, rows):
            word = read(at, step, i)
            least = min(least, word)
            most = max(most, word)
    return least, most


@inner
def all_same(at, rows):
    """Whether a stored column of `rows` >= 1 whole words is one word repeated."""
    word = load(at, 0)
    if load(at, rows - 1) != word:
        return False
    for i in range(rows):
        if load(at, i) != word:
            return False
    return True
