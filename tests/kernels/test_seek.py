"""Seeking a block of keys finds the same rows as NumPy's binary search, however the keys and the rows are spread."""

from __future__ import annotations

import numpy as np
import pytest

from tektite.kernels.layout.rows import head_of_array
from tektite.kernels.operators.join import JOIN_STATE, join
from tests.support.kernel_rows import Rows
from tests.support.nightly import by_day_or_night
from tests.support.rows_twin import read

SPREADS = {
    "even": lambda r, n: r.integers(0, 10**7, n),
    "all words": lambda r, n: r.integers(-(2**63) + 1, 2**63 - 1, n),
    "runs of equal words": lambda r, n: r.integers(0, n // 50, n),
    "steep": lambda r, n: (r.random(n) ** 6 * 2**60).astype(np.int64),
    "even with a cluster": lambda r, n: np.concatenate(
        [r.integers(0, 10**9, n - n // 40), 5 * 10**8 + np.arange(n // 40)]
    ),
    "two words": lambda r, n: r.integers(0, 2, n) * 2**40,
}


@pytest.mark.parametrize("spread", SPREADS)
@pytest.mark.parametrize("few", [1, 17, 300, 2000])
def test_all_pairs_are_found_in_a_large_batch(spread: str, few: int) -> None:
    random = np.random.default_rng(few)
    n = 20_000
    large = np.zeros((3, n), np.int64)
    large[0] = np.sort(SPREADS[spread](random, n))
    large[2] = 1
    hits = random.choice(large[0], few // 2)
    others = np.concatenate([hits, hits[: few // 4] + 1, random.integers(-(2**63) + 1, 2**63 - 1, few)])
    keys = np.unique(others)[:few] if few > 1 else large[0][n // 3 : n // 3 + 1]
    small = np.zeros((3, len(keys)), np.int64)
    small[0], small[2] = keys, 1
    a, b = head_of_array(small, len(keys)), head_of_array(large, n)
    state = np.zeros(JOIN_STATE, np.int64)
    _, head = join(
        np.array([a[1]]), np.array([b[1]]), 1, 1, 1, 1, 1, 1, np.array([0]), 0, 10**7, 0, state
    )  # fmt: skip
    left, right = np.searchsorted(large[0], keys, "left"), np.searchsorted(large[0], keys, "right")
    assert head[0] == (right - left).sum()
    assert state[0] == 1


def test_words_at_both_ends_are_found() -> None:
    rows = [(k * 1000, 0, 1) for k in range(5000)]
    large = Rows(rows, 3, False)
    small = Rows([(-1, 0, 1), (0, 0, 1), (4_999_000, 0, 1), (4_999_001, 0, 1)], 3, False)
    state = np.zeros(JOIN_STATE, np.int64)
    buf, head = join(
        np.array([small.at]), np.array([large.at]), 1, 1, 1, 1, 1, 1, np.array([0]), 0, 10, 0, state
    )  # fmt: skip
    assert head[0] == 2 and list(buf[:2]) == [0, 4_999_000]


@pytest.mark.parametrize("first", [1, 5, 40, 700, 20_000])
@pytest.mark.parametrize("few", [1, 17, 2000, 9000])
def test_all_pairs_are_found_by_two_and_three_columns(first: int, few: int) -> None:
    """`first` is how many words the first column has: groups from thousands of rows down to one."""
    random = np.random.default_rng(first + few)
    n = by_day_or_night(8_000, 20_000)
    for columns in (2, 3):
        data = np.stack([random.integers(0, first, n), *(random.integers(0, 300, n) for _ in range(columns - 1))])
        data = np.ascontiguousarray(data[:, np.lexsort(data[::-1])])
        large = np.concatenate([data, np.zeros((1, n), np.int64), np.ones((1, n), np.int64)])
        hits = data[:, random.choice(n, few // 2 + 1)]
        near = hits + random.integers(-1, 2, hits.shape)
        keys = np.unique(np.concatenate([hits, near], axis=1), axis=1)
        small = np.concatenate([keys, np.zeros((1, keys.shape[1]), np.int64), np.ones((1, keys.shape[1]), np.int64)])
        small = np.ascontiguousarray(small)
        a, b = head_of_array(small, small.shape[1]), head_of_array(large, n)
        state = np.zeros(JOIN_STATE, np.int64)
        _, head = join(
            np.array([a[1]]), np.array([b[1]]), columns, columns, columns, 1, 1, 1, np.array([0]), 0, 10**7, 0, state
        )  # fmt: skip
        found, counts = np.unique(data, axis=1, return_counts=True)
        there = dict(zip(map(tuple, found.T.tolist()), counts.tolist(), strict=True))
        assert head[0] == sum(there.get(tuple(key), 0) for key in keys.T.tolist())


@pytest.mark.parametrize("columns", [1, 2])
@pytest.mark.parametrize(
    "again", [(), (1,), (255,), (256,), (257,), (254, 255, 256), (300, 512), tuple(range(200, 600))]
)
def test_keys_that_repeat_are_one_key_wherever_a_block_ends(columns: int, again: tuple[int, ...]) -> None:
    """`again` are the rows of the smaller side whose key is that of the row before. A block has 256 keys."""
    number, rows = 0, []
    for row in range(700):
        number += row not in again
        rows.append((number // 7, number)[2 - columns :] + (row, 0, 1))
    many = [(k // 7, k)[2 - columns :] + (k, 0, 1) for k in range(900)]
    small, large = Rows(rows, columns + 3, False), Rows(many, columns + 3, False)
    state = np.zeros(JOIN_STATE, np.int64)
    _, head = join(
        np.array([small.at]), np.array([large.at]), columns, columns + 1, columns + 1, 1, 1, 1,
        np.array([columns - 1, columns, 2 * columns + 1]), 0, 10**7, 0, state,
    )  # fmt: skip
    assert [row[:3] for row in read(head)] == [(row[columns - 1], row[columns], row[columns - 1]) for row in rows]
