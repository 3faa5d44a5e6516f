"""Scratch memory and writers of columns, in small functions that are compiled for these tests."""

from __future__ import annotations

import numpy as np
import pytest

from tektite.kernels.compile import inner
from tektite.kernels.layout.columns import copy_words, fill_words, writer_of
from tektite.kernels.layout.memory import load, read, store
from tektite.kernels.layout.pages import address_of
from tektite.kernels.layout.scratch import keep, scratch

write_measured = writer_of(load, measured=True)


@inner
def parts_of(first, second, third):
    """Fill three parts, the last one first, and read all of them: what each part has, and the words of the whole."""
    array, (a, b, c) = scratch((first, second, third))
    for part, size in ((c, third), (b, second), (a, first)):
        for i in range(size):
            store(part, i, part)
    right = True
    for part, size in ((a, first), (b, second), (c, third)):
        for i in range(size):
            right &= load(part, i) == part
    keep(array)
    return right, len(array), b - a, c - b


@inner
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


@pytest.mark.parametrize(("first", "second"), [(1, 1), (5, 0), (0, 3), (300, 7)])
def test_parts_lie_one_behind_the_other(first: int, second: int) -> None:
    assert parts_of(first, second, 4) == (True, first + second + 4, 8 * first, 8 * second)


@pytest.mark.parametrize("step", [1, 2, 4, 8])
def test_a_column_gives_back_what_fits_it(step: int) -> None:
    most = 2 ** (8 * step - 1) - 1
    words = np.array([0, -1, most, -most - 1, 5, -6, most // 3], np.int64)
    bits, found = through(words, step, 1, 6)
    assert bits <= most
    assert found.tolist() == [*words[1:6].tolist(), 7, 7]


@pytest.mark.parametrize("step", [1, 2, 4])
@pytest.mark.parametrize("sign", [1, -1])
def test_a_measured_writer_says_what_does_not_fit(step: int, sign: int) -> None:
    most = 2 ** (8 * step - 1) - 1
    words = np.array([3, sign * (most + 2), 1], np.int64)
    bits, _ = through(words, step, 0, 1)
    assert bits > most
