"""Scratch memory and writers of columns, in small kernels that are built for these tests."""

from __future__ import annotations

import numpy as np
import pytest

from tests.kernels.probes import parts_of, through


@pytest.mark.parametrize(("first", "second"), [(1, 1), (5, 0), (0, 3), (300, 7)])
def test_parts_lie_one_behind_the_other(first: int, second: int) -> None:
    assert parts_of(first, second, 4) == (1, first + second + 4, 8 * first, 8 * second)


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
