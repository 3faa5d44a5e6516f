"""Rows as bytes between processes: they arrive as they left, narrow or not, whatever they were cut from."""

from __future__ import annotations

import numpy as np
import pytest

from tektite.dataflow.arrange import consolidate
from tektite.runtime.wire import pack_rows, unpack_rows
from tektite.trace.chunk import Chunk, column_spec
from tektite.values.words import NULL


def columns(rows: int) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    draw = np.random.default_rng(rows)
    ranges = [(-100, 100), (-(2**15), 2**15), (0, 2**31), (NULL, 2**62), (7, 8), (NULL, NULL + 1)]
    return np.stack([draw.integers(low, high, rows) for low, high in ranges])


@pytest.mark.parametrize("rows", [0, 1, 2, 7, 8, 1_000])
def test_rows_arrive_as_they_left(rows: int) -> None:
    words = columns(rows)
    assert np.array_equal(unpack_rows(pack_rows(Chunk.of_array(words))).to_array(), words)


def test_a_part_of_rows_in_another_order_of_columns_arrives() -> None:
    words = columns(50)
    chunk = Chunk.of_array(words).select(column_spec([3, 0, -1, 4], (2**40,))).slice(10, 35)
    arrived = unpack_rows(pack_rows(chunk)).to_array()
    expected = np.stack([words[3], words[0], np.full(50, 2**40), words[4]])[:, 10:35]
    assert np.array_equal(arrived, expected)


def test_kernels_read_narrow_rows_where_they_arrived() -> None:
    words = columns(5_000)
    shaped = column_spec([0, 1, 2, -1, 4], (3,))
    plain = consolidate([Chunk.of_array(words).select(shaped)], (3, 1, 1), 3)
    parts = [Chunk.of_array(words).slice(start, start + 1_000) for start in range(0, 5_000, 1_000)]
    arrived = consolidate([unpack_rows(pack_rows(part)).select(shaped) for part in parts], (3, 1, 1), 3)
    assert np.array_equal(arrived.to_array(), plain.to_array())


def test_bytes_follow_the_range_of_the_words() -> None:
    small = np.arange(10_000, dtype=np.int64).reshape(1, -1) % 100
    assert len(pack_rows(Chunk.of_array(small))) < 11_000
    assert len(pack_rows(Chunk.of_array(small + 2**40))) > 80_000
