"""Counting, proposing and intersecting candidates give what nested loops give, whatever the batches, steps and limits."""

from __future__ import annotations

import random
from itertools import product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_rows import Row, Rows, consolidate, read, table

from tektite.kernels.extend import count_candidates, nominate, propose
from tektite.kernels.intersect import find_ranges, intersect, numbered_keys
from tektite.kernels.intersect_two import intersect_two

NULL = -(2**63)
seeds = given(seed=st.integers(0, 2**32 - 1))


def some_rows(rng: random.Random, data: int, times: int, most: int) -> list[Row]:
    """Sorted, consolidated updates over few words, some of them large or NULL."""
    words = rng.choice([[0, 1, 2], [0, 1, 2, 300, 70_000, 2**40, NULL], [NULL, 5], [-3, 2**62, 2**63 - 1]])
    rows = [
        tuple(rng.choice(words) for _ in range(data))
        + tuple(rng.randrange(3) for _ in range(times))
        + (rng.choice([1, 2, -1]),)
        for _ in range(rng.randrange(most))
    ]
    return consolidate(rows)


def batches(rng: random.Random, data: int, times: int) -> list[list[Row]]:
    return [part for _ in range(rng.randrange(4)) if (part := some_rows(rng, data, times, 12))]


@settings(max_examples=150)
@seeds
def test_candidates_are_counted_and_the_fewest_noted(seed: int) -> None:
    rng = random.Random(seed)
    kc, rest = rng.choice([1, 2]), rng.choice([0, 1])
    prefix = [
        (*row[: kc + rest], rng.choice([2, 1 << 62]), 7, *row[kc + rest :]) for row in some_rows(rng, kc + rest, 1, 12)
    ]
    parts = batches(rng, kc + 1, 1)
    held, given_rows = [Rows(part, kc + 3) for part in parts], Rows(prefix, kc + rest + 4)
    counts = count_candidates(given_rows.at, table(held), kc)
    wanted = [
        0 if NULL in row[:kc] else sum(other[:kc] == row[:kc] for part in parts for other in part) for row in prefix
    ]
    assert counts.tolist() == wanted
    nd = kc + rest + 2
    _, head = nominate(given_rows.at, counts, nd, 3)
    expected = []
    for row, count in zip(prefix, wanted, strict=True):
        if count:
            fewest, whose = (count, 3) if count < row[nd - 2] else row[nd - 2 : nd]
            expected.append((*row[: nd - 2], fewest, whose, *row[nd:]))
    assert read(head) == expected
    _, head = nominate(given_rows.at, counts, nd, -1)
    assert read(head) == [row for row, count in zip(prefix, wanted, strict=True) if count]


@settings(max_examples=150)
@seeds
def test_every_different_word_is_proposed_once(seed: int) -> None:
    rng = random.Random(seed)
    kc, rest = rng.choice([1, 2]), rng.choice([0, 1])
    nd = kc + rest
    prefix, parts = some_rows(rng, nd, 1, 12), batches(rng, kc + 2, 1)
    held, given_rows = [Rows(part, kc + 4) for part in parts], Rows(prefix, nd + 2)
    state = np.zeros(16, np.int64)
    found: list[Row] = []
    while state[0] < len(prefix):
        buf, head = propose(given_rows.at, table(held), kc, nd, rng.choice([1, 3, 100]), state)
        found += read(head)
        del buf
    wanted = []
    for row in prefix:
        words = sorted({other[kc] for part in parts for other in part if other[:kc] == row[:kc]})
        wanted += [(*row[:nd], word, *row[nd:]) for word in words if NULL not in row[:kc]]
    assert sorted(found) == sorted(wanted)


@settings(max_examples=300)
@seeds
def test_words_that_all_extenders_allow_come_with_the_product_of_their_rows(seed: int) -> None:
    rng = random.Random(seed)
    nd, nt, lo = rng.choice([1, 2]), rng.choice([1, 2]), rng.choice([0, 1])
    prefix = some_rows(rng, nd, nt, 12)
    given_rows = Rows(prefix, nd + nt + 1)
    shapes, tables, kept, twins = [], [], [], []
    total = 0
    for number in range(rng.choice([2, 2, 3])):
        key = list(range(rng.randint(1, nd))) if number == 0 else rng.sample(range(nd), rng.randint(0, nd))
        extra, times, complete = rng.choice([0, 1]), rng.randint(1, nt), rng.random() < 0.7
        width = len(key) + 1 + extra
        parts = batches(rng, width, times) or [[(*[0] * (width + times), 1)]]
        held = [Rows(part, width + times + 1) for part in parts]
        kept.append(held)
        tables.append((key, table(held)))
        shapes += [total, len(held), len(key), width, times, int(complete)]
        total += len(held)
        twins.append((key, width, times, complete, parts))
    ranges = np.empty(2 * total * len(prefix), np.int64)
    for number, ((key, heads), first) in enumerate(zip(tables, shapes[::6], strict=True)):
        rows, kc = given_rows.at, len(key)
        if number and kc:
            buf, head = numbered_keys(rows, np.array(key, np.int64))
            ordered = Rows(sorted(read(head)), kc + 3)
            rows = ordered.at
            del buf
        find_ranges(rows, kc, heads, first, number, ranges, total)
    state, spec, found = np.zeros(16, np.int64), rng.sample(range(nd), rng.randint(0, nd)), []
    everything = np.concatenate([heads for _, heads in tables])
    while state[0] < len(prefix):
        buf, head = intersect(
            given_rows.at, nd, nt, np.array(shapes, np.int64), everything, ranges, np.array(spec, np.int64), lo,
            rng.choice([1, 4, 100]), state,
        )  # fmt: skip
        assert head[0] >= 0
        found += read(head)
        del buf
    assert consolidate(found) == consolidate(row for one in prefix for row in extended(one, nd, nt, lo, spec, twins))


@settings(max_examples=100)
@seeds
def test_two_extenders_agree_whether_their_words_are_hashed_or_sought(seed: int) -> None:
    rng = random.Random(seed)
    nd, nt, lo = 2, rng.choice([1, 2]), rng.choice([0, 1])
    scale = rng.choice([1, 70_000, 2**45])
    keys, most = [NULL, 0, 1, scale], rng.choice([5, 40, 300])

    def updates(count: int, data: int, times: int, words: list[int]) -> list[Row]:
        rows = [
            (*(rng.choice(keys) for _ in range(data - 1)), rng.choice(words), *(rng.randrange(3) for _ in range(times)),
             rng.choice([1, 2, -1]))
            for _ in range(count)
        ]  # fmt: skip
        return consolidate(rows)

    prefix = updates(rng.randrange(40), nd, nt, keys)
    given_rows = Rows(prefix, nd + nt + 1)
    shapes, heads, twins, kept, total = [], [], [], [], 0
    for key in ([0], [1]):
        extra, times = rng.choice([0, 1]), rng.randint(1, nt)
        width = 2 + extra
        words = [NULL, *(scale * w for w in range(rng.choice([3, 150])))]
        parts = []
        for _ in range(rng.randint(1, 4)):
            rows = updates(rng.randrange(1, most), 2, times, words)
            parts.append(consolidate((*r[:2], *[rng.randrange(2)] * extra, *r[2:]) for r in rows))
        parts = [part for part in parts if part]
        held = [Rows(part, width + times + 1) for part in parts]
        kept.append(held)
        heads.append(table(held))
        shapes += [total, len(held), 1, width, times, 1]
        total += len(held)
        twins.append((key, width, times, True, parts))
    ranges = np.empty(2 * total * len(prefix), np.int64)
    find_ranges(given_rows.at, 1, heads[0], 0, 0, ranges, total)
    _, head = numbered_keys(given_rows.at, np.array([1], np.int64))
    ordered = Rows(sorted(read(head)), 4)
    find_ranges(ordered.at, 1, heads[1], shapes[6], 1, ranges, total)
    state, found = np.zeros(16, np.int64), []
    while state[0] < 2 * len(prefix):
        buf, head = intersect_two(
            given_rows.at, nd, nt, np.array(shapes, np.int64), np.concatenate(heads), ranges, ordered.at, 1,
            np.array([1, 0], np.int64), lo, rng.choice([1, 50, 10_000]), state,
        )  # fmt: skip
        assert head[0] >= 0
        found += read(head)
        del buf
    assert consolidate(found) == consolidate(row for one in prefix for row in extended(one, nd, nt, lo, [1, 0], twins))


def extended(row: Row, nd: int, nt: int, lo: int, spec: list[int], extenders: list) -> list[Row]:
    """One row with every word, by nested loops."""
    out = []
    for word in {other[len(key)] for key, _, _, _, parts in extenders for part in parts for other in part} - {NULL}:
        choices = []
        for key, width, times, complete, parts in extenders:
            wanted = (*(row[c] for c in key), word)
            rows = [r for part in parts for r in part if r[: len(wanted)] == wanted and NULL not in wanted]
            stamps = [((*r[width : width + times], *[0] * (nt - times)), r[-1]) for r in rows]
            choices.append(stamps if complete else stamps[:1] and [((0,) * nt, 1)])
        for combination in product(*choices):
            time = [max(ts) for ts in zip(row[nd : nd + nt], *(t for t, _ in combination), strict=True)]
            time[0] = max(time[0], lo)
            diff = row[-1]
            for _, factor in combination:
                diff *= factor
            out.append((*(row[c] for c in spec), word, *time, diff))
    return out
