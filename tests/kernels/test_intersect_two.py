"""The intersection of two arrangements gives what nested loops give, row by row or counted, whatever the runs of words are."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tektite.kernels.operators.intersect_two import intersect_two
from tests.kernels.test_intersect import NULL, Extender, extended
from tests.support.kernel_rows import Row, Rows, consolidate, read
from tests.support.nightly import by_day_or_night

seeds = given(seed=st.integers(0, 2**32 - 1))


def found_by_kernel(
    prefix: list[Row], nd: int, nt: int, extenders: list[Extender], spec: list[int], counted: bool, lo: int, limit: int
) -> list[Row]:
    """What the kernel gives, piece by piece."""
    given_rows = Rows(prefix, nd + nt + 1)
    shapes = np.array([word for at, e in enumerate(extenders) for word in e.find(given_rows, at)], np.int64)
    state, columns, found = np.zeros(16, np.int64), np.array(spec, np.int64), []
    while state[0] < 2 * len(prefix):
        buf, head = intersect_two(given_rows.at, nd, nt, shapes, columns, int(counted), lo, limit, state)
        assert head[0] >= 0
        found += read(head)
        del buf
    return found


def agree(rng: random.Random, prefix: list[Row], nd: int, nt: int, extenders: list[Extender]) -> None:
    """The kernel gives what nested loops give; counted, the same without the word, and no row with a diff of 0."""
    lo, spec, limit = rng.choice([0, 1]), rng.sample(range(nd), rng.randint(0, nd)), rng.choice([1, 50, 10_000])
    wanted = [row for one in prefix for row in extended(one, nd, nt, lo, spec, extenders)]
    listed = found_by_kernel(prefix, nd, nt, extenders, spec, False, lo, limit)
    assert consolidate(listed) == consolidate(wanted)
    counted = found_by_kernel(prefix, nd, nt, extenders, spec, True, lo, limit)
    assert all(row[-1] for row in counted)
    at = len(spec)
    assert consolidate(counted) == consolidate([row[:at] + row[at + 1 :] for row in wanted])


@settings(max_examples=by_day_or_night(60, 300))
@seeds
def test_small_runs(seed: int) -> None:
    rng = random.Random(seed)
    nd, nt = rng.choice([1, 2]), rng.choice([1, 2])
    words = rng.choice([[0, 1, 2], [0, 1, 2, 300, 70_000, 2**40, NULL], [NULL, 5], [-3, 2**62, 2**63 - 1]])
    shards = rng.choice([1, 1, 2, 3])
    extenders = []
    for number in range(2):
        key = list(range(rng.randint(1, nd))) if number == 0 else rng.sample(range(nd), rng.randint(1, nd))
        extra, times = rng.choice([0, 0, 1]), rng.randint(1, nt)
        width = len(key) + 1 + extra
        parts = [p for _ in range(rng.randint(1, 4)) if (p := updates(rng, 12, width, times, words, words))]
        parts = parts or [[(*[0] * (width + times), 1)]]
        extenders.append(Extender(key, 1, extra, times, True, False, parts, shards, rng.randint(0, len(key))))
    agree(rng, updates(rng, 12, nd, nt, words, words), nd, nt, extenders)


@settings(max_examples=by_day_or_night(60, 300))
@seeds
def test_runs_of_many_lengths_steps_and_spans(seed: int) -> None:
    """Long runs are scanned, leapt over or put into tables of bits; with one time and diff they are counted as a whole."""
    rng = random.Random(seed)
    nt, scale, shards = rng.choice([1, 2]), rng.choice([1, 1, 50, 70_000, 2**45, 2**53]), rng.choice([1, 2])
    keys = [NULL, 0, 1, scale]
    extenders = []
    for key in (0, 1):
        times, most = rng.randint(1, nt), rng.choice([5, 60, 300])
        words = [NULL, *(scale * word for word in range(rng.choice([3, 100, 600])))]
        parts = []
        for _ in range(rng.randint(1, 3)):
            plain = rng.random() < 0.7
            parts.append(updates(rng, rng.choice([2, most, 4 * most]), 2, times, keys, words, plain))
        extenders.append(
            Extender(
                [key], 1, 0, times, True, False, [p for p in parts if p] or [[(0,) * (2 + times) + (1,)]], shards, 1
            )
        )
    agree(rng, updates(rng, rng.choice([3, 40]), 2, nt, keys, keys), 2, nt, extenders)


def updates(
    rng: random.Random, most: int, data: int, times: int, keys: list[int], words: list[int], plain: bool = False
) -> list[Row]:
    """Sorted, consolidated updates; `plain` ones have one time and one diff, and come once."""
    same = (*(rng.randrange(3) for _ in range(times)), rng.choice([1, 2, -1]))
    rows: list[Any] = []
    for _ in range(rng.randrange(1, most + 1)):
        last = same if plain else (*(rng.randrange(3) for _ in range(times)), rng.choice([1, 2, -1]))
        rows.append((*(rng.choice(keys) for _ in range(data - 1)), rng.choice(words), *last))
    return sorted(set(rows)) if plain else consolidate(rows)


@pytest.mark.parametrize("counted", [False, True])
def test_products_of_diffs_that_fit_no_word_are_told(counted: bool) -> None:
    prefix = Rows([(1, 0, 2**31)], 3)
    extenders = [Extender([0], 1, 0, 1, True, False, [[(1, 5, 0, 2**31)]], 1, 1) for _ in range(2)]
    shapes = np.array([word for at, e in enumerate(extenders) for word in e.find(prefix, at)], np.int64)
    spec = np.empty(0, np.int64)
    _, head = intersect_two(prefix.at, 1, 1, shapes, spec, int(counted), 0, 100, np.zeros(16, np.int64))
    assert head[0] == -1


def test_diffs_that_add_up_beyond_a_word_are_rows_of_their_own() -> None:
    prefix = [(1, 0, 2**61), (2, 0, 2**61), (3, 0, 2**61), (4, 0, 2**61), (5, 0, 2**61)]
    held = [(key, 7, 0, 1) for key in range(1, 6)]
    extenders = [Extender([0], 1, 0, 1, True, False, [held], 1, 1) for _ in range(2)]
    found = found_by_kernel(prefix, 1, 1, extenders, [], True, 0, 100)
    assert found == [(0, 3 * 2**61), (0, 2 * 2**61)]


@pytest.mark.parametrize("scale", [1, 1000])
def test_the_words_of_a_run_are_one_record_however_large_their_diffs(scale: int) -> None:
    """Of a run in a table of bits, too, which spans its words or does not: there is no room for a record of each word."""
    words = [scale * word for word in range(8000)]
    prefix = Rows([(1, key, 0, 2**30) for key in range(3)], 4)
    extenders = [
        Extender([0], 1, 0, 1, True, False, [[(1, word, 0, 2**16) for word in words]], 1, 1),
        Extender([1], 1, 0, 1, True, False, [[(key, word, 0, 2**16) for key in range(3) for word in words[1:]]], 1, 1),
    ]
    shapes = np.array([word for at, e in enumerate(extenders) for word in e.find(prefix, at)], np.int64)
    spec = np.empty(0, np.int64)
    _, head = intersect_two(prefix.at, 2, 1, shapes, spec, 1, 0, 10_000, np.zeros(16, np.int64))
    assert head[0] == -1
