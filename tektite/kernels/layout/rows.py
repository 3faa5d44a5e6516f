"""The physical layout of updates: a *head* that describes columns of words, and the memory of these columns.

Columns come in the order data (key columns first), times (epoch, round, ...), diffs (multiplicity first).
A head is a one-dimensional int64 array:

    head[0]          number of rows
    head[1]          the head's own address
    head[2]          number of columns
    head[3 + 3j]     address of column j
    head[4 + 3j]     step of column j: the bytes that each row takes, 8, 4, 2 or 1 if it is stored, 0 if it is constant
    head[5 + 3j]     the value of a constant column (its address then points here)

Row i of column j is `read(address, step, i)`, however the column is stored. Kernels take heads by address, so a whole trace
is one small array of addresses. Selecting, permuting and dropping columns, entering and leaving a scope, and negating
constant diffs write a new head and copy no row.

Narrow columns (a step below 8) are for batches that are kept. Rows in transit between operators are stored in whole words. At
least seven more bytes after a narrow column must be readable.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tektite.kernels.compile import inner, kernel
from tektite.kernels.layout.memory import load, read, store, store1, store2, store4
from tektite.kernels.layout.pages import address_of, empty_words

# From this many rows on, columns of batches are stored as narrow as their words allow. Fewer are not worth the trouble.
NARROW_FROM = 2048


@inner
def count(head):
    """Number of rows of the rows object whose head is at address `head`."""
    return load(head, 0)


@inner
def address(head, column):
    """The address of a column."""
    return load(head, 3 + 3 * column)


@inner
def step_of(head, column):
    """The step of a column: the bytes that a row takes, or 0 if it is constant."""
    return load(head, 4 + 3 * column)


@inner
def value(head, column, row):
    """The word at (row, column)."""
    base = 3 + 3 * column
    return read(load(head, base), load(head, base + 1), row)


@inner
def new_head(rows, columns):
    """A head whose columns are all constant 0; the caller fills in the rest."""
    head = np.empty(3 + 3 * columns, np.int64)
    at = address_of(head)
    head[0] = rows
    head[1] = at
    head[2] = columns
    for j in range(columns):
        head[3 + 3 * j] = at + 8 * (5 + 3 * j)
        head[4 + 3 * j] = 0
        head[5 + 3 * j] = 0
    return head


@inner
def set_constant(head, column, word):
    """Make a column constant."""
    head[3 + 3 * column] = head[1] + 8 * (5 + 3 * column)
    head[4 + 3 * column] = 0
    head[5 + 3 * column] = word


@inner
def set_stored(head, column, where, bytes_a_row=8):
    """Make a column the stored one at the address `where`."""
    head[3 + 3 * column] = where
    head[4 + 3 * column] = bytes_a_row


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
def fitting_columns(head):
    """Move the stored columns of a head with rows to memory of their own, no wider than they need. A column of one repeated word
    becomes a constant. Returns the memory.
    """
    rows = head[0]
    columns = head[2]
    steps = np.zeros(columns, np.int64)
    total = 0
    for j in range(columns):
        if head[4 + 3 * j] != 0:
            least, most = range_of(head[3 + 3 * j], head[4 + 3 * j], rows)
            if least == most:
                set_constant(head, j, least)
            else:
                steps[j] = fitting_step(least, most) if rows >= NARROW_FROM else 8
                total += column_bytes(rows, steps[j])
    memory = empty_columns(total)
    at = address_of(memory)
    for j in range(columns):
        if steps[j] != 0:
            copy_words(head[3 + 3 * j], head[4 + 3 * j], 0, rows, at, steps[j])
            set_stored(head, j, at, steps[j])
            at += column_bytes(rows, steps[j])
    return memory


@inner
def copy_column(source, column, head, target):
    """Make column `target` of `head` the same memory as `column` of the rows at address `source`."""
    if step_of(source, column) == 0:
        set_constant(head, target, load(source, 5 + 3 * column))
    else:
        set_stored(head, target, address(source, column), step_of(source, column))


@kernel("int64[::1](int64, int64[::1])")
def select_columns(source, spec):
    """A head over the same rows with other columns. `spec` has the number of columns, an entry for each, and then values of
    constants. An entry j >= 0 takes column j. A negative entry makes a constant and counts from the end of `spec`: -1 is its last
    value, -2 the one before.
    """
    columns = spec[0]
    head = new_head(count(source), columns)
    for j in range(columns):
        pick = spec[1 + j]
        if pick >= 0:
            copy_column(source, pick, head, j)
        else:
            set_constant(head, j, spec[len(spec) + pick])
    return head


@kernel("int64[::1](int64, int64, int64)")
def slice_rows(source, start, stop):
    """A head over rows start..stop of the same memory."""
    columns = load(source, 2)
    head = new_head(stop - start, columns)
    for j in range(columns):
        if step_of(source, j) == 0:
            set_constant(head, j, load(source, 5 + 3 * j))
        else:
            set_stored(head, j, address(source, j) + step_of(source, j) * start, step_of(source, j))
    return head


@kernel("int64[::1](int64[:, ::1], int64)")
def head_of_array(columns, rows):
    """A head over the first `rows` entries of each row of a C-contiguous (columns x capacity) array."""
    width, capacity = columns.shape
    head = new_head(rows, width)
    at = address_of(columns)
    for j in range(width):
        set_stored(head, j, at + 8 * capacity * j)
    return head


@kernel("void(int64, int64[:, ::1])")
def copy_out(source, target):
    """Write every column of the rows at `source` into the rows of a (columns x capacity) array."""
    rows = count(source)
    out = address_of(target)
    for j in range(load(source, 2)):
        copy_words(address(source, j), step_of(source, j), 0, rows, out + 8 * target.shape[1] * j, 8)
