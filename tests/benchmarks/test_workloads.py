"""The vectorised workload generators make exactly the records that the definition gives in plain Python."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import workloads

MASK = (1 << 64) - 1


def r(seed: int, i: int) -> int:
    """splitmix64 as a function of a counter, in unbounded integers cut to 64 bits."""
    z = (seed + (i + 1) * 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def signed(word: int) -> int:
    return word - (1 << 64) if word >> 63 else word


def test_r_continues_the_published_sequence() -> None:
    # The first outputs of splitmix64 seeded with 1234567, as its test vectors give them.
    expected = [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]
    assert workloads.r(1234567, np.arange(5, dtype=np.uint64)).tolist() == expected


@given(st.integers(0, MASK), st.lists(st.integers(0, MASK), max_size=20))
def test_r_agrees_with_the_scalar_definition(seed: int, indices: list[int]) -> None:
    assert workloads.r(seed, np.array(indices, dtype=np.uint64)).tolist() == [r(seed, i) for i in indices]


def test_count_loads_the_keys_of_the_records() -> None:
    assert workloads.count_keys(97, 5, 25).tolist() == [r(1, i) % 97 for i in range(5, 25)]


@pytest.mark.parametrize("size", [2, 10, 1000])
def test_count_epochs_insert_new_records_and_remove_the_oldest(size: int) -> None:
    keys, records, half = 97, 5000, size // 2
    for epoch in range(3):
        got, diffs = workloads.count_epoch(keys, records, size, epoch)
        j = range(epoch * half, (epoch + 1) * half)
        assert got.tolist() == [r(1, records + i) % keys for i in j] + [r(1, i) % keys for i in j]
        assert diffs.tolist() == [1] * half + [-1] * half


def test_count_epochs_of_one_update_alternate() -> None:
    epochs = [workloads.count_epoch(97, 5000, 1, epoch) for epoch in range(4)]
    assert [key for keys, _ in epochs for key in keys.tolist()] == [r(1, i) % 97 for i in (5000, 0, 5001, 1)]
    assert [diff for _, diffs in epochs for diff in diffs.tolist()] == [1, -1, 1, -1]


def test_count_epoch_of_an_odd_size_is_refused() -> None:
    with pytest.raises(ValueError, match="an epoch of 3 updates"):
        workloads.count_epoch(97, 5000, 3, 0)


def test_join_epochs_make_up_all_rows_with_small_ones_last() -> None:
    epochs = list(workloads.join_epochs(1000, small=5, size=10))
    assert [len(keys) for keys, _ in epochs] == [950, 10, 10, 10, 10, 10]
    assert [key for keys, _ in epochs for key in keys.tolist()] == list(range(1000))
    assert [value for _, values in epochs for value in values.tolist()] == [signed(r(3, i)) for i in range(1000)]


def test_join_keys_are_existing_ones() -> None:
    assert workloads.join_keys(97, 3, 9).tolist() == [r(7, n) % 97 for n in range(3, 9)]


def test_bfs_edges_are_pairs_of_consecutive_draws() -> None:
    src, dst = workloads.bfs_edges(50, 4, 12)
    assert list(zip(src.tolist(), dst.tolist(), strict=True)) == [
        (r(2, 2 * i) % 50, r(2, 2 * i + 1) % 50) for i in range(4, 12)
    ]


def test_bfs_epochs_swap_the_oldest_edges_for_new_ones() -> None:
    src, dst, diffs = workloads.bfs_epoch(50, 200, swaps=3, epoch=2)
    numbers = [206, 207, 208, 6, 7, 8]
    assert src.tolist() == [r(2, 2 * i) % 50 for i in numbers]
    assert dst.tolist() == [r(2, 2 * i + 1) % 50 for i in numbers]
    assert diffs.tolist() == [1, 1, 1, -1, -1, -1]
