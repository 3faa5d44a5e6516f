"""Who gets which rows of a batch: against looking at every reader's intervals and every row."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tektite.dataflow.arrange import consolidate
from tektite.trace import routes
from tektite.trace.batch import Batch
from tektite.trace.chunk import Chunk
from tektite.trace.routes import Intervals
from tektite.trace.trace import Handle, Trace
from tektite.values.words import NULL
from tests.support.nightly import by_day_or_night
from tests.trace.test_handles import content

Row = tuple[int, ...]


def random_intervals(rng: random.Random, wide: int) -> Intervals:
    """Up to three intervals of words 0..99 or NULL, in order, apart from each other."""
    ends = sorted(rng.sample(range(100), 2 * rng.randrange(4)))
    found = [(first, min(last, first + wide)) for first, last in zip(ends[::2], ends[1::2], strict=True)]
    if rng.random() < 0.1:
        found.insert(0, (NULL, NULL))
    return tuple(found)


def random_words(rng: random.Random, rows: int) -> list[Row]:
    return [(rng.randrange(1000), NULL if rng.random() < 0.1 else rng.randrange(100)) for _ in range(rows)]


def mint(trace: Trace, rows: list[Row], epoch: int) -> None:
    """Mint rows as the batch of an epoch. Columns of more than 2048 rows are narrow."""
    columns = np.array([[*row, epoch, 1] for row in rows], np.int64).T.copy()
    built = consolidate([Chunk.of_array(columns)], trace.shape, 0)
    trace.mint(0, built, ((epoch + 1,),))


def rows_of(batches: tuple[Batch, ...]) -> list[Row]:
    arrays = [Chunk(batch.head, batch.memory).to_array() for batch in batches]
    return [tuple(row) for array in arrays for row in array.T.tolist()]


@settings(max_examples=by_day_or_night(15, 60), deadline=None)
@given(seed=st.integers(0, 2**48))
def test_every_reader_gets_the_rows_that_its_guard_admits(seed: int) -> None:
    rng = random.Random(seed)
    trace = Trace(2, 1, 1, 1, "default")
    everything = Handle(trace, None)
    guards: dict[Handle, tuple[int, Intervals]] = {}
    for epoch in range(4):
        for _ in range(rng.choice([1, 3, 40])):
            handle = Handle(trace, None)
            handle.take(0)
            guards[handle] = rng.randrange(2), random_intervals(rng, rng.choice([0, 3, 100]))
            handle.guard(*guards[handle])
        for handle in rng.sample(list(guards), rng.randrange(len(guards))):
            handle.drop()
            del guards[handle]
        mint(trace, random_words(rng, rng.choice([1, 5, 200, 3000])), epoch)
        _, whole, _ = everything.take(0)
        expected = rows_of(whole)
        for handle, (column, intervals) in guards.items():
            _, delta, _ = handle.take(0)
            got = rows_of(delta)
            wanted = [row for row in expected if any(first <= row[column] <= last for first, last in intervals)]
            admitted, taken = set(wanted), set(got)
            assert [row for row in got if row in admitted] == wanted
            assert got == [row for row in expected if row in taken]
            if len(expected) <= routes.WHOLE:
                assert bool(got) == bool(wanted)


def test_a_reader_is_woken_only_for_its_rows() -> None:
    trace = Trace(1, 1, 1, 1, "default")
    woken: list[int] = []
    readers = []
    for number in range(40):
        handle = Handle(trace, None, lambda number=number: woken.append(number))  # type: ignore[misc]
        handle.guard(0, ((number, number),))
        readers.append(handle)
    mint(trace, [(3,), (7,)], 0)
    assert woken == [3, 7]
    assert [number for number, handle in enumerate(readers) if handle.waiting()] == [3, 7]


def test_a_large_batch_is_divided() -> None:
    trace = Trace(1, 1, 1, 1, "default")
    readers = [Handle(trace, None) for _ in range(routes.FEW_READERS)]
    for number, handle in enumerate(readers):
        handle.guard(0, ((10 * number, 10 * number + 1),))
    mint(trace, [(word,) for word in range(1000)], 0)
    for number, handle in enumerate(readers):
        _, delta, _ = handle.take(0)
        assert [row[0] for row in rows_of(delta)] == [10 * number, 10 * number + 1]


def test_where_most_readers_want_most_rows_each_gets_the_batch_itself() -> None:
    trace = Trace(1, 1, 1, 1, "default")
    readers = [Handle(trace, None) for _ in range(50)]
    for number, handle in enumerate(readers):
        handle.guard(0, ((number, 10**6),))
    nothing = Handle(trace, None)
    nothing.guard(0, ((-5, -1),))
    mint(trace, [(word,) for word in range(1000)], 0)
    assert len({id(handle.queues[0][0]) for handle in readers}) == 1
    assert not nothing.waiting()


@pytest.mark.parametrize("interrupted", [False, True])
def test_a_prepared_batch_goes_to_the_same_readers_once(interrupted: bool) -> None:
    trace = Trace(1, 1, 1, 1, "default")
    one, other = Handle(trace, None), Handle(trace, None)
    one.guard(0, ((1, 1),))
    other.guard(0, ((2, 2),))
    rows = consolidate([Chunk.of_array(np.array([[1], [0], [1]], np.int64))], (1, 1, 1), 0)
    mint = trace.prepare(0, [rows], ((1,),))
    mint.apply()
    if interrupted:
        mint.apply()
    assert content(one.take(0)[1]) == {(1, 0): 1}
    assert not other.waiting()


def test_a_reader_of_versions_starts_from_what_others_have_read_meanwhile() -> None:
    trace = Trace(1, 1, 1, 1, "eager")
    handle = Handle(trace, lambda: ((0,),))
    handle.guard(0, ((5, 5),))
    mint(trace, [(1,)], 0)
    mint(trace, [(5,)], 1)
    mint(trace, [(2,)], 2)
    old, delta, new = handle.take(0)
    assert content(old) == {(1, 0): 1}
    assert content(delta) == {(5, 1): 1}
    assert content(new) == {(1, 0): 1, (5, 1): 1, (2, 2): 1}
