"""Chunks: rows that kernels make, with heads that become arrays when somebody asks for them."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

from tektite.kernels.layout.rows import head_of_array, slice_rows
from tektite.kernels.sort.build import build
from tektite.trace.addresses import addresses
from tektite.trace.batch import Batch
from tektite.trace.chunk import Chunk, Consolidated, column_spec, returning_chunks
from tektite.values.words import Words

ROWS = np.array([[3, 1, 2], [7, 7, 7], [1, 1, 1]], np.int64)
built = returning_chunks(build, rows=Consolidated)


def test_rows_of_a_kernel_have_the_head_that_the_kernel_made() -> None:
    chunk = built(addresses([Chunk.of_array(ROWS)]), 1, 1, 1, 0)
    assert type(chunk) is Consolidated
    assert (chunk.n, chunk.width) == (3, 3)
    assert chunk.head[:3].tolist() == [chunk.n, chunk.at, chunk.width]
    assert chunk.head is chunk.head
    assert chunk.head.ctypes.data == chunk.at
    assert chunk.to_array().tolist() == [[1, 2, 3], [7, 7, 7], [1, 1, 1]]


def test_rows_stay_in_memory_as_long_as_something_made_of_them() -> None:
    def some(number: int) -> Chunk:
        words = np.array([[number, number + 1], [0, 0], [1, 1]], np.int64)
        found = built(addresses([Chunk.of_array(words)]), 1, 1, 1, 0)
        batch = Batch.of(found, ((0,),), ((1,),), ((0,),))
        return Chunk.of_batch(batch).slice(1, 2).select(column_spec([0, 0, 1, 2]))

    parts = [some(number) for number in range(1000)]
    gc.collect()
    assert [part.to_array()[:2, 0].tolist() for part in parts] == [[number + 1] * 2 for number in range(1000)]


def test_a_head_outlives_its_rows() -> None:
    heads = [built(addresses([Chunk.of_array(ROWS + number)]), 1, 1, 1, 0).head for number in range(100)]
    gc.collect()
    assert all([head[1] == head.ctypes.data and head[0] == 3 for head in heads])


def test_a_batch_of_rows_has_their_head_and_their_memory() -> None:
    class Owner:
        pass

    owner = Owner()
    chunk = Chunk(head_of_array(ROWS, 3), owner)
    batch = Batch.of(chunk, ((0,),), ((1,),), ((0,),))
    assert batch.head is chunk.head
    assert batch.memory is owner
    again = Chunk.of_batch(batch)
    gone = weakref.ref(owner)
    del owner, chunk, batch
    assert again.memory is gone()
    del again
    assert gone() is None


def test_constants_are_those_of_columns_that_are_stored_once() -> None:
    chunk = Chunk.of_array(ROWS).select(column_spec([0, -1, -2], (5, 6)))
    assert chunk.constants(1, 2) == (5, 6)
    assert chunk.constants(0, 2) is None
    assert chunk.constants(3, 0) == ()
    with pytest.raises(IndexError):
        chunk.constants(2, 2)
    with pytest.raises(IndexError):
        chunk.constants(-1, 1)


@pytest.mark.parametrize(
    "head", [None, ROWS, np.zeros(2, np.int64), np.zeros(9, np.int32), np.zeros(18, np.int64)[::2]]
)
def test_what_is_no_head_is_refused(head: Words) -> None:
    with pytest.raises(TypeError, match="a head is a contiguous array"):
        Chunk(head, None)


def test_rows_do_not_change() -> None:
    chunk = Chunk(head_of_array(ROWS, 3), ROWS)
    with pytest.raises(TypeError):
        chunk.__init__(head_of_array(ROWS, 2), ROWS)  # type: ignore[misc]
    with pytest.raises(TypeError):
        chunk.memory = None
    with pytest.raises(TypeError):
        chunk.share(Chunk.of_array(ROWS))
    with pytest.raises(TypeError):
        Chunk.__new__(Chunk).share(Chunk.__new__(Chunk))
    assert chunk.to_array().tolist() == ROWS.tolist()


def test_a_kernel_returns_rows_only_where_it_makes_some() -> None:
    with pytest.raises(ValueError, match="returns v, which is not r"):
        returning_chunks(slice_rows, "r")
    with pytest.raises(TypeError):
        returning_chunks(len)
    with pytest.raises(TypeError, match="derived from Rows"):
        returning_chunks(slice_rows, "h", int)  # type: ignore[arg-type]
