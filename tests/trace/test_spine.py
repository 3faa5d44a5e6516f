"""A spine holds what was inserted, in few batches, without stalling, and in no more memory than its readers need."""

from __future__ import annotations

import gc
import math
import random
import weakref
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tektite.kernels.layout.rows import head_of_array
from tektite.kernels.merge.state import TAKEN_A, TAKEN_B
from tektite.kernels.sort.build import build
from tektite.trace.batch import Batch
from tektite.trace.merge import DiffOverflow
from tektite.trace.records import Version
from tektite.trace.spine import WAITING, Spine
from tektite.values.words import Words
from tests.support.nightly import by_day_or_night
from tests.support.rows_twin import LEAST, MOST, Row, Rows, consolidate, read


def make_batch(rows: Sequence[Row], shape: tuple[int, int, int], lower: int, upper: int) -> Batch:
    """A batch of all updates of epochs lower to upper (excluded)."""
    made = Rows(rows, sum(shape))
    buf, head = build(np.array([made.at], np.int64), *shape, LEAST)
    rest = (0,) * (shape[1] - 1)
    return Batch(head, buf, ((lower, *rest),), ((upper, *rest),), ((0, *rest),))


class Held:
    """A reader whose frontier is the only element of a list."""

    def __init__(self, held: list[Words]) -> None:
        self.held = held

    def frontier(self) -> Words:
        return self.held[0]


class Feed:
    """A spine for (key, value) at one epoch per batch, and everything that went in."""

    def __init__(self, effort: str = "default") -> None:
        self.epoch = 0
        self.held = np.zeros((1, 1), np.int64)
        self.spine = Spine((2, 1, 1), effort, self)
        self.history: list[Row] = []

    def frontier(self) -> Words:
        return self.held

    def insert(self, data: Iterable[tuple[int, int, int]]) -> None:
        rows = [(key, value, self.epoch, diff) for key, value, diff in data]
        self.history += rows
        self.spine.insert(make_batch(rows, (2, 1, 1), self.epoch, self.epoch + 1))
        self.epoch += 1

    def follow(self) -> None:
        """Readers need no time before the current epoch."""
        self.held = np.array([[self.epoch]], np.int64)

    def check(self) -> None:
        floor = int(self.held[0, 0])

        def now(rows: Iterable[Row]) -> list[Row] | None:
            return consolidate([(key, value, max(epoch, floor), diff) for key, value, epoch, diff in rows], 3)

        assert now(contents(self.spine.version)) == now(self.history)
        check_order(self.spine.version)


def contents(version: Version) -> list[Row]:
    return [row for batch in version.batches for row in read(batch.head)]


def check_order(version: Version) -> None:
    """Batches are sorted, described one after the other, none is empty, and the table lists them."""
    for batch in version.batches:
        rows = read(batch.head)
        assert rows == sorted(rows)
        assert batch.n == len(rows) > 0
    for older, newer in zip(version.batches, version.batches[1:], strict=False):
        assert older.upper <= newer.lower
    assert version.table.tolist() == [batch.at for batch in version.batches]
    assert version.rows == sum(batch.n for batch in version.batches)


def fresh_rows(generator: random.Random, size: int) -> list[tuple[int, int, int]]:
    return [(generator.randrange(10**6), generator.randrange(10), 1) for _ in range(size)]


@settings(max_examples=by_day_or_night(15, 60), deadline=None)
@given(
    st.sampled_from(["default", "lazy", "eager"]),
    st.lists(
        st.tuples(st.sampled_from([0, 1, 1, 2, 30, 64, 500, 3000, 9000]), st.booleans(), st.integers(0, 20)),
        max_size=30,
    ),
    st.integers(0, 2**32),
)
def test_a_spine_holds_what_was_inserted(effort: str, steps: list[tuple[int, bool, int]], seed: int) -> None:
    generator = random.Random(seed)
    feed = Feed(effort)
    for size, follows, rest in steps:
        feed.insert((generator.randrange(max(size, 10)), 0, generator.choice([1, 1, -1])) for _ in range(size))
        if follows:
            feed.follow()
        if rest > 17:
            feed.spine.idle(1000)
    feed.check()
    feed.spine.compact_now()
    feed.check()
    assert feed.spine.batches <= 1
    assert feed.spine.upper == (((feed.epoch,),) if steps else ())


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 3), st.integers(0, 2**32))
def test_any_number_of_time_columns(nt: int, seed: int) -> None:
    """Rounds are sorted again when the epochs before them are compacted, across antichains of several elements."""
    generator = random.Random(seed)
    held = [np.zeros((1, nt), np.int64)]
    spine = Spine((1, nt, 2), "default", Held(held))
    history: list[Row] = []
    for epoch in range(40):
        rows = [
            (
                generator.randrange(40),
                epoch,
                *(generator.randrange(3) for _ in range(nt - 1)),
                generator.choice([1, -1]),
                2,
            )
            for _ in range(generator.choice([1, 5, 300]))
        ]
        history += rows
        spine.insert(make_batch(rows, (1, nt, 2), epoch, epoch + 1))
        if epoch % 7 == 6:
            late = epoch - generator.randrange(5)
            antichain = [(late + 1, *[0] * (nt - 1))] + ([(late, *[1] * (nt - 1))] if nt > 1 else [])
            held[0] = np.array(antichain, np.int64)
    floor = held[0].min(axis=0).tolist()

    def now(rows: Iterable[Row]) -> list[Row] | None:
        clamped = [(row[0], *map(max, row[1 : 1 + nt], floor), *row[1 + nt :]) for row in rows]
        return consolidate(clamped, 1 + nt)

    assert now(contents(spine.version)) == now(history)
    check_order(spine.version)
    spine.compact_now()
    assert contents(spine.version) == now(history)


def sizes(kind: str) -> list[int]:
    generator = random.Random(5)
    return {
        "constant 1": [1] * 3000,
        "constant 100": [100] * 400,
        "growing": [1 + i * i // 8 for i in range(200)],
        "doubling": [2**i for i in range(16)],
        "shrinking": [1 + i * i // 8 for i in reversed(range(200))],
        "halving": [2**i for i in reversed(range(16))],
        "big small big": [20_000, 1] * 12,
        "big then many small": [50_000] + [3] * 2000,
        "saw": [2 ** (i % 12) for i in range(300)],
        "ruler": [((i & -i) * 30) for i in range(1, 300)],
        "random": [int(2 ** (generator.random() * 13)) for _ in range(200)],
    }[kind]


KINDS = "constant 1,constant 100,growing,doubling,shrinking,halving,big small big,big then many small,saw,ruler,random"


@pytest.mark.parametrize("effort", ["default", "lazy", "eager"])
@pytest.mark.parametrize("kind", KINDS.split(","))
@pytest.mark.parametrize("cancelling", [False, True])
def test_batches_stay_logarithmically_many(kind: str, effort: str, cancelling: bool) -> None:
    generator = np.random.default_rng(3)
    held = [np.zeros((1, 1), np.int64)]
    forced: list[int] = []

    class CountingSpine(Spine):
        def _enforce_bound(self) -> None:
            open_before = self.open_merges
            super()._enforce_bound()
            forced.append(open_before - self.open_merges)

    spine = CountingSpine((1, 1, 1), effort, Held(held))
    inserted = 0
    for epoch, size in enumerate(sizes(kind)):
        keys = generator.integers(0, 5000 if cancelling else 2**60, size)
        signs = generator.choice([-1, 1], size) if cancelling else np.ones(size, np.int64)
        columns = np.ascontiguousarray([keys, np.full(size, epoch), signs])
        chunk = head_of_array(columns, size)
        buf, head = build(np.array([chunk[1]], np.int64), 1, 1, 1, 0)
        held[0] = np.array([[epoch]], np.int64)
        spine.insert(Batch(head, buf, ((epoch,),), ((epoch + 1,),), ((0,),)))
        inserted += size
        rows = sum(batch.n for batch in spine.version.batches)
        assert spine.batches <= 6 + WAITING + 3 * math.log2(1 + rows / 32)
        if effort == "eager":
            assert spine.open_merges == 0
    if effort == "default":
        assert sum(forced) == 0, "the bound holds without finishing merges on the spot"
    if not cancelling:
        assert spine.rows == inserted


def test_a_small_insertion_does_not_complete_a_large_merge() -> None:
    feed = Feed()
    generator = random.Random(1)
    feed.insert(fresh_rows(generator, 60_000))
    feed.insert(fresh_rows(generator, 60_000))
    assert feed.spine.open_merges == 1
    merge = feed.spine._open[0]
    progress = []
    for _ in range(300):
        feed.insert(fresh_rows(generator, 1))
        progress.append(int(merge.state[TAKEN_A] + merge.state[TAKEN_B]))
    steps = np.diff(progress)
    effort = 8
    assert steps.max() <= 256 + effort
    assert progress[-1] == pytest.approx(effort * 300, abs=256)
    for _ in range(7):
        feed.insert(fresh_rows(generator, 5000))
    assert merge not in feed.spine._open
    feed.check()


def test_a_collection_of_steady_size_keeps_a_steady_size() -> None:
    feed = Feed()
    generator = random.Random(2)
    present = [(i, 0) for i in range(1000)]
    feed.insert((key, value, 1) for key, value in present)
    most_rows = most_bytes = 0
    for _ in range(10_000):
        gone = present.pop(generator.randrange(len(present)))
        come = (generator.randrange(10**6), 1)
        present.append(come)
        feed.insert([(*gone, -1), (*come, 1)])
        feed.follow()
        feed.history.clear()
        most_rows = max(most_rows, feed.spine.rows)
        most_bytes = max(most_bytes, feed.spine.bytes)
    assert most_rows <= 4 * 1000
    assert most_bytes <= 4 * 1000 * 3 * 8
    feed.spine.compact_now()
    assert [row[:2] for row in contents(feed.spine.version)] == sorted(set(present))


def test_memory_comes_back_at_rest_when_a_hold_is_dropped() -> None:
    feed = Feed()
    for turn in range(6000):
        feed.insert([(turn % 50, 0, 1 if turn // 50 % 2 == 0 else -1), (7, 1, 1)])
    assert feed.spine.rows > 10_000
    feed.follow()
    turns = 0
    while feed.spine.idle(1000):
        turns += 1
        assert turns < 1000
    feed.check()
    assert feed.spine.rows <= 200
    assert not feed.spine.idle(1000)


def test_rest_reduces_the_number_of_batches_and_then_ends() -> None:
    feed = Feed()
    generator = random.Random(2)
    for size in (20_000, 5000, 2000, 900, 300, 100, 30):
        feed.insert(fresh_rows(generator, size))
    turns = 0
    while feed.spine.idle(5000):
        turns += 1
        assert turns < 200
    assert feed.spine.batches <= 3
    feed.check()


def test_what_a_sweep_took_back_is_gone_when_it_is_over() -> None:
    feed = Feed()
    for rows in (5_000, 3_000, 100):
        feed.insert([(key, rows, 1) for key in range(rows)])
    feed.spine.rest()
    for rows in (5_000, 3_000, 100):
        feed.insert([(key, rows, -1) for key in range(rows)])
    feed.follow()
    feed.spine.rest()
    assert feed.spine.rows == 0
    feed.check()


def test_a_sweep_that_rewrote_little_leaves_its_merges_to_be_paid_for() -> None:
    feed = Feed()
    feed.insert([(key, 0, 1) for key in range(20_000)])
    feed.spine.rest()
    feed.insert([(key, 0, -1) for key in range(5_000)])
    feed.follow()
    before = feed.spine.version
    feed.spine.rest()
    assert feed.spine.version is before
    feed.check()


def test_a_frontier_that_creeps_on_does_not_rewrite_a_batch_each_time() -> None:
    feed = Feed()
    feed.insert([])
    rows = [(i, 0, i % 1000, 1) for i in range(5000)]
    feed.spine.insert(make_batch(rows, (2, 1, 1), 1, 1001))
    rewritten = 0
    for floor in range(1001):
        feed.held = np.array([[floor]], np.int64)
        before = feed.spine.version.batches[0]
        while feed.spine.idle(100_000):
            pass
        rewritten += feed.spine.version.batches[0] is not before
    assert 1 <= rewritten <= 12
    assert not feed.spine.version.batches[0].varies_in(2)
    assert feed.spine.version.batches[0].since == ((999,),) or feed.spine.version.batches[0].since == ((1000,),)


def test_a_version_stays_as_it_was() -> None:
    feed = Feed()
    generator = random.Random(4)
    pinned: list[tuple[Version, list[Row]]] = []
    for turn in range(400):
        feed.insert(fresh_rows(generator, generator.choice([1, 40, 2000])) if turn % 3 else fresh_rows(generator, 1))
        feed.follow()
        if turn % 50 == 0:
            version = feed.spine.version
            assert feed.spine.version is version
            pinned.append((version, contents(version)))
    feed.spine.compact_now()
    for version, rows in pinned:
        assert contents(version) == rows


def test_an_empty_batch_only_moves_the_upper_frontier() -> None:
    feed = Feed()
    feed.insert([(1, 1, 1)])
    before = feed.spine.version
    feed.insert([])
    assert feed.spine.version is before
    assert feed.spine.upper == ((2,),)


def test_a_merged_batch_says_what_it_covers() -> None:
    feed = Feed()
    for _ in range(WAITING + 1):
        feed.insert([(feed.epoch, 1, 1)])
        feed.follow()
    (batch,) = feed.spine.version.batches
    assert (batch.lower, batch.upper, batch.since) == (((0,),), ((WAITING + 1,),), ((WAITING,),))


def test_small_batches_wait_to_be_merged_together() -> None:
    feed = Feed()
    for epoch in range(3 * WAITING):
        feed.insert([(epoch, 1, 1)])
        assert feed.spine.batches <= WAITING + 1
    assert sorted(contents(feed.spine.version)) == sorted(feed.history)
    feed.insert([(3 * WAITING, 1, 1)])
    feed.spine.join_waiting()
    assert feed.spine.batches == 1
    assert sorted(contents(feed.spine.version)) == sorted(feed.history)
    feed.insert([(row, 2, 1) for row in range(64)])
    assert feed.spine.batches == 1
    assert sorted(contents(feed.spine.version)) == sorted(feed.history)


@pytest.mark.parametrize("size", [1, 3000])
def test_an_overflow_is_an_error_and_loses_no_update(size: int) -> None:
    feed = Feed()
    rows = [(i, 0, MOST) for i in range(size)]
    feed.insert(rows)
    insertions: list[Callable[[], object]] = [lambda: feed.insert(rows), lambda: feed.spine.idle(10_000)]
    feed.follow()
    with pytest.raises(DiffOverflow):
        for insertion in insertions:
            insertion()
    assert sorted(contents(feed.spine.version)) == sorted(feed.history)


def test_addresses_of_a_version_keep_its_batches_in_memory() -> None:
    batch = make_batch([(1, 0, 1), (2, 0, 1)], (1, 1, 1), 0, 1)
    memory = weakref.ref(batch.memory)
    table = Version((batch,)).table
    del batch
    gc.collect()
    assert memory() is not None
    del table
    gc.collect()
    assert memory() is None
