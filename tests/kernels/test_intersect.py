"""Finding and intersecting candidates gives what nested loops give, whatever the batches, shards, steps and limits."""

from __future__ import annotations

import random
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tektite.kernels.operators.intersect import intersect
from tektite.kernels.seek.candidates import find_candidates, numbered_keys
from tektite.kernels.seek.route import route
from tests.support.kernel_rows import Row, Rows, consolidate, read, table
from tests.support.nightly import by_day_or_night

NULL = -(2**63)
seeds = given(seed=st.integers(0, 2**32 - 1))


def some_rows(rng: random.Random, data: int, times: int, most: int, words: list[int]) -> list[Row]:
    """Sorted, consolidated updates over these words."""
    rows = [
        tuple(rng.choice(words) for _ in range(data))
        + tuple(rng.randrange(3) for _ in range(times))
        + (rng.choice([1, 2, -1]),)
        for _ in range(rng.randrange(most))
    ]
    return consolidate(rows)


def split(part: list[Row], width: int, sharded_by: int, shards: int) -> list[list[Row]]:
    """Rows by the shard that owns them."""
    rows = Rows(part, width)
    buf, head, offsets = route(rows.at, np.arange(sharded_by, dtype=np.int64), shards)
    routed = read(head)
    del buf
    return [routed[offsets[s] : offsets[s + 1]] for s in range(shards)]


class Extender:
    """An arrangement in some shards, and what the kernels are told about it."""

    def __init__(
        self, key: list[int], equal: int, extra: int, times: int, complete: bool, optional: bool,
        parts: list[list[Row]], shards: int, sharded_by: int,
    ) -> None:  # fmt: skip
        self.key, self.equal, self.times, self.complete, self.optional = key, equal, times, complete, optional
        self.width = len(key) + equal + extra
        self.parts = parts
        self.sharded_by = sharded_by
        split_parts = [split(part, self.width + times + 1, sharded_by, shards) for part in parts]
        by_shard = [[p[s] for p in split_parts if p[s]] for s in range(shards)]
        self.held = [Rows(part, self.width + times + 1) for shard in by_shard for part in shard]
        self.table = table(self.held)
        self.first_of = np.cumsum([0, *map(len, by_shard)], dtype=np.int64)

    def find(self, prefix: Rows, number: int) -> list[int]:
        """What `intersect` takes."""
        rows, kc = prefix.at, len(self.key)
        if number and kc:
            buf, head = numbered_keys(rows, np.array(self.key, np.int64))
            self.ordered = Rows(sorted(read(head)), kc + 3)
            rows = self.ordered.at
            del buf
        slots = int(np.diff(self.first_of).max()) if kc else len(self.table)
        self.found = find_candidates(rows, kc, number, self.table, self.first_of, self.sharded_by, slots)
        at = int(self.found.ctypes.data)
        return [at, slots, kc, self.equal, self.width, self.times, int(self.complete), int(self.optional)]


def agree(
    rng: random.Random, prefix: list[Row], nd: int, nt: int, extenders: list[Extender], limits: list[int]
) -> None:
    """The kernel gives, in pieces, what nested loops give."""
    lo = rng.choice([0, 1])
    given_rows = Rows(prefix, nd + nt + 1)
    shapes = np.array([word for at, e in enumerate(extenders) for word in e.find(given_rows, at)], np.int64)
    state, spec, found = np.zeros(16, np.int64), rng.sample(range(nd), rng.randint(0, nd)), []
    while state[0] < len(prefix) * len(extenders):
        buf, head = intersect(given_rows.at, nd, nt, shapes, np.array(spec, np.int64), lo, rng.choice(limits), state)
        assert head[0] >= 0
        found += read(head)
        del buf
    wanted = (row for one in prefix for row in extended(one, nd, nt, lo, spec, extenders))
    assert consolidate(found) == consolidate(wanted)


@settings(max_examples=by_day_or_night(80, 400))
@seeds
def test_words_that_all_extenders_allow_come_with_the_product_of_their_rows(seed: int) -> None:
    rng = random.Random(seed)
    nd, nt = rng.choice([1, 2]), rng.choice([1, 2])
    words = rng.choice([[0, 1, 2], [0, 1, 2, 300, 70_000, 2**40, NULL], [NULL, 5], [-3, 2**62, 2**63 - 1]])
    shards = rng.choice([1, 1, 2, 3])
    extenders = []
    for number in range(rng.choice([2, 2, 3])):
        key = list(range(rng.randint(1, nd))) if number == 0 else rng.sample(range(nd), rng.randint(0, nd))
        equal, extra, times, complete = (
            rng.choice([1, 1, 1, 2]),
            rng.choice([0, 1]),
            rng.randint(1, nt),
            rng.random() < 0.7,
        )
        width = len(key) + equal + extra
        parts = [p for _ in range(rng.randint(1, 4)) if (p := some_rows(rng, width, times, 12, words))]
        parts = parts or [[(*[0] * (width + times), 1)]]
        sharded_by = rng.randint(0, len(key)) if key else 1
        extenders.append(Extender(key, equal, extra, times, complete, False, parts, shards, sharded_by))
    agree(rng, some_rows(rng, nd, nt, 12, words), nd, nt, extenders, [1, 4, 100])


@settings(max_examples=by_day_or_night(30, 150))
@seeds
def test_extenders_agree_whether_their_words_are_filtered_or_sought(seed: int) -> None:
    rng = random.Random(seed)
    nd, nt = 2, rng.choice([1, 2])
    scale = rng.choice([1, 70_000, 2**45])
    keys, most = [NULL, 0, 1, scale], rng.choice([5, 40, 300])

    def updates(count: int, data: int, times: int, words: list[int], equal: int = 1) -> list[Row]:
        rows: list[Any] = []
        for _ in range(count):
            word = rng.choice(words)
            again = [word if rng.random() < 0.7 else rng.choice(words) for _ in range(equal - 1)]
            rows.append((*(rng.choice(keys) for _ in range(data - 1)), word, *again, *(rng.randrange(3) for _ in range(times)),
                         rng.choice([1, 2, -1])))  # fmt: skip
        return consolidate(rows)

    extenders = []
    for key in ([0], [1], [1])[: rng.choice([2, 2, 3])]:
        times, equal, complete = rng.randint(1, nt), rng.choice([1, 1, 2]), rng.random() < 0.8
        words = [NULL, *(scale * w for w in range(rng.choice([3, 150])))]
        parts = [updates(rng.randrange(1, most), 2, times, words, equal) for _ in range(rng.randint(1, 4))]
        shards = rng.choice([1, 2])
        extenders.append(Extender(key, equal, 0, times, complete, False, [p for p in parts if p], shards, 1))
    agree(rng, updates(rng.randrange(40), nd, nt, keys), nd, nt, extenders, [1, 50, 10_000])


@pytest.mark.parametrize(("held", "found"), [([5], [5, 5]), ([1, 2, 3, 4, 5, 6, 7], [5, 6, 5, 6])])
def test_an_optional_extender_proposes_where_it_has_fewest_and_checks_nothing(
    held: list[int], found: list[int]
) -> None:
    prefix = Rows([(1, 0, 1), (2, 0, 1)], 3)
    two = [(key, word, 0, 1) for key in (1, 2) for word in (5, 6)]
    keyed = Extender([0], 1, 0, 1, True, False, [two], 1, 1)
    small = Extender([], 1, 0, 1, False, True, [[(word, 0, 1) for word in held]], 1, 1)
    shapes = np.array([*keyed.find(prefix, 0), *small.find(prefix, 1)], np.int64)
    buf, head = intersect(prefix.at, 1, 1, shapes, np.empty(0, np.int64), 0, 100, np.zeros(16, np.int64))
    assert [row[0] for row in read(head)] == found
    del buf


def extended(row: Row, nd: int, nt: int, lo: int, spec: list[int], extenders: list[Extender]) -> list[Row]:
    """One row with every word, by nested loops."""
    out = []
    for word in {other[len(e.key)] for e in extenders for part in e.parts for other in part} - {NULL}:
        choices = []
        for e in extenders:
            wanted = (*(row[c] for c in e.key), *[word] * e.equal)
            rows = [r for part in e.parts for r in part if r[: len(wanted)] == wanted and NULL not in wanted]
            stamps = [((*r[e.width : e.width + e.times], *[0] * (nt - e.times)), r[-1]) for r in rows]
            choices.append(stamps if e.complete else stamps[:1] and [((0,) * nt, 1)])
        for combination in product(*choices):
            time = [max(ts) for ts in zip(row[nd : nd + nt], *(t for t, _ in combination), strict=True)]
            time[0] = max(time[0], lo)
            diff = row[-1]
            for _, factor in combination:
                diff *= factor
            out.append((*(row[c] for c in spec), word, *time, diff))
    return out
