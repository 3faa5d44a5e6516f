"""Kernels of the tests of scratch memory and of writers of columns. They are built as the engine's own are."""

from __future__ import annotations

import numpy as np

from tektite.kernels.compile import kernel
from tektite.kernels.layout.memory import load, read, store
from tektite.kernels.layout.pages import address_of
from tektite.kernels.layout.rows import copy_words, fill_words, writer_of
from tektite.kernels.layout.scratch import keep, scratch

write_measured = writer_of(load, measured=True)


@kernel("Tuple((int64, int64, int64, int64))(int64, int64, int64)")
def parts_of(first, second, third):
    """Fill three parts, the last one first, and read all of them: whether each part has its own, and the words of the whole."""
    array, (a, b, c) = scratch((first, second, third))
    for part, size in ((c, third), (b, second), (a, first)):
        for i in range(size):
            store(part, i, part)
    right = 1
    for part, size in ((a, first), (b, second), (c, third)):
        for i in range(size):
            if load(part, i) != part:
                right = 0
    keep(array)
    return right, len(array), b - a, c - b


@kernel("Tuple((int64, int64[::1]))(int64[::1], int64, int64, int64)")
def through(words, step, start, stop):
    """Words as they come back from a column of this step: written, copied from row `start` to row `stop`, and measured."""
    rows = len(words)
    array, (column, copied) = scratch((rows + 1, rows + 1))
    bits = write_measured(column, step, rows, address_of(words))
    fill_words(copied, 8, 0, rows + 1, 7)
    copy_words(column, step, start, stop, copied, 8)
    found = np.empty(rows, np.int64)
    for i in range(rows):
        found[i] = read(copied, 8, i)
    keep(array)
    return bits, found


@kernel("int64[:, ::1](int64, int64[:, ::1])")
def transposed(repeats, matrix):
    """A matrix with rows and columns exchanged, its columns repeated."""
    found = np.empty((matrix.shape[1], repeats * matrix.shape[0]), np.int64)
    for i in range(found.shape[0]):
        for j in range(found.shape[1]):
            found[i, j] = matrix[j % matrix.shape[0], i]
    return found


@kernel("int64[::1](int64)")
def words_for(number):
    """So many words: more than there is memory is an error."""
    return np.empty(number, np.int64)
