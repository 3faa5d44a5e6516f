"""Merging stored batches: few of them stay, each row is written seldom, and the rows are those that were merged."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tektite.dataflow.arrange import consolidate
from tektite.storage.compaction import FAN, due_run, level
from tektite.trace.batch import Batch
from tektite.trace.chunk import Chunk
from tektite.trace.merge import merge_all

SHAPE = (2, 1, 1)


def settle(sizes: list[int], shrink: float = 1.0) -> int:
    """Merge while something is due; rows written."""
    written = 0
    while (run := due_run(sizes)) is not None:
        total = sum(sizes[run[0] : run[1]])
        written += total
        sizes[run[0] : run[1]] = [max(int(total * shrink), 1)]
    return written


@given(st.lists(st.integers(1, 100_000), max_size=200), st.sampled_from([1.0, 0.9, 0.3]))
def test_batches_stay_fewer_than_the_fan_a_level(arrivals: list[int], shrink: float) -> None:
    sizes: list[int] = []
    for rows in arrivals:
        sizes.append(rows)
        settle(sizes, shrink)
        assert due_run(sizes) is None
        levels = level(max(sizes)) + 1
        assert len(sizes) < FAN * levels


@pytest.mark.parametrize("seed", range(4))
def test_each_row_is_written_a_logarithmic_number_of_times(seed: int) -> None:
    rng = random.Random(seed)
    sizes: list[int] = []
    inserted = written = 0
    for _ in range(5000):
        rows = rng.choice([1, 1, 10, 100]) if seed % 2 else 1
        inserted += rows
        sizes.append(rows)
        written += rows + settle(sizes)
    assert sum(sizes) == inserted
    assert written <= inserted * (FAN + math.log(inserted, FAN))


def batch_of(rng: np.random.Generator, rows: int, low: int, high: int) -> Batch:
    columns = np.vstack(
        [rng.integers(0, 5, rows), rng.integers(0, 5, rows), rng.integers(low, high, rows), rng.integers(-2, 3, rows)]
    )
    chunk = consolidate([Chunk.of_array(columns)], SHAPE, 0)
    return Batch(chunk.head, chunk.memory, ((low,),), ((high,),), ((low,),))


@pytest.mark.parametrize("seed", range(20))
def test_merged_batch_holds_the_same_rows_at_their_representatives(seed: int) -> None:
    rng = np.random.default_rng(seed)
    bounds = np.cumsum(rng.integers(1, 4, 7)).tolist()
    batches = [
        batch_of(rng, int(rng.choice([0, 1, 30])), low, high) for low, high in zip(bounds, bounds[1:], strict=False)
    ]
    since = int(rng.integers(0, bounds[-1]))
    whole = merge_all(batches, SHAPE, ((since,),))
    expected: dict[tuple[int, ...], int] = {}
    for batch in batches:
        for *data, time, diff in Chunk(batch.head, batch.memory).to_array().T.tolist():
            key = (*data, max(time, since))
            expected[key] = expected.get(key, 0) + diff
    found = Chunk(whole.head, whole.memory).to_array()
    assert [tuple(row) for row in found[:3].T.tolist()] == sorted(key for key, diff in expected.items() if diff)
    assert found[3].tolist() == [expected[tuple(row)] for row in found[:3].T.tolist()]
    assert (whole.lower, whole.upper, whole.since) == (batches[0].lower, batches[-1].upper, ((since,),))


def test_single_batch_is_merged_with_nothing() -> None:
    batch = batch_of(np.random.default_rng(0), 30, 0, 4)
    assert merge_all([batch], SHAPE, ((0,),)).n == batch.n
