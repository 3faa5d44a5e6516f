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

Narrow columns (a step below 8, see columns.py) are for batches that are kept. Rows in transit between operators are stored in
whole words.
"""

from __future__ import annotations

import numpy as np

from tektite.kernels.compile import inner, kernel
from tektite.kernels.layout.columns import (
    NARROW_FROM,
    column_bytes,
    copy_words,
    empty_columns,
    fitting_step,
    range_of,
)
from tektite.kernels.layout.memory import load, read
from tektite.kernels.layout.pages import address_of, empty_words


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
def place_columns(head, rows):
    """Give the stored columns of a head memory for so many rows of whole words. Returns the memory."""
    stored = 0
    for j in range(head[2]):
        if head[4 + 3 * j] != 0:
            stored += 1
    memory = empty_words(stored * rows)
    at = address_of(memory)
    for j in range(head[2]):
        if head[4 + 3 * j] != 0:
            set_stored(head, j, at)
            at += 8 * rows
    return memory


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


@inner
def same_rows(source):
    """A head over the same rows and memory."""
    columns = load(source, 2)
    head = new_head(count(source), columns)
    for j in range(columns):
        copy_column(source, j, head, j)
    return head


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
