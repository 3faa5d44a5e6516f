"""The workloads that other systems were measured with, exactly: the same records in the same order.

Everything is drawn from `r(seed, i)`, splitmix64 as a function of a counter, so that any range of any stream can be
made without the part before it, on any machine, in any language.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.int64]

COUNT_SEED, EDGE_SEED, VALUE_SEED, QUERY_SEED = 1, 2, 3, 7


def r(seed: int, indices: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The random 64-bit numbers at the given places of stream `seed`."""
    z = np.uint64(seed) + (indices + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def _range(start: int, stop: int) -> NDArray[np.uint64]:
    return np.arange(start, stop, dtype=np.uint64)


def _below(limit: int, words: NDArray[np.uint64]) -> Words:
    return (words % np.uint64(limit)).astype(np.int64)


def swap_range(size: int, epoch: int, first: int = 0) -> tuple[range, range]:
    """Which j are inserted (as record N + j) and which removed in an epoch of `size` updates, half of them each way.

    Epochs of one update alternate: an insert, then the removal that belongs to it. Epoch 0 begins with j = `first`.
    """
    if size == 1:
        j = range(first + epoch // 2, first + epoch // 2 + 1)
        return (j, range(0)) if epoch % 2 == 0 else (range(0), j)
    if size % 2:
        raise ValueError(f"an epoch of {size} updates: need 1 or an even number, half of them inserts, half removals")
    j = range(first + epoch * size // 2, first + (epoch + 1) * size // 2)
    return j, j


def count_keys(keys: int, start: int, stop: int) -> Words:
    """**count**: the keys of records start..stop, out of `keys` different ones."""
    return _below(keys, r(COUNT_SEED, _range(start, stop)))


def count_epoch(keys: int, records: int, size: int, epoch: int, first: int = 0) -> tuple[Words, Words]:
    """**count**: (keys, diffs) of one epoch of `size` updates after `records` records were loaded, of which the first
    `first` have been swapped for others already.
    """
    inserted, removed = swap_range(size, epoch, first)
    added = count_keys(keys, records + inserted.start, records + inserted.stop) if inserted else _EMPTY
    gone = count_keys(keys, removed.start, removed.stop) if removed else _EMPTY
    return np.concatenate([added, gone]), _diffs(len(added), len(gone))


def join_rows(start: int, stop: int) -> tuple[Words, Words]:
    """**join**: rows (i, r(3, i)) for start <= i < stop; the 64 bits are read as a signed word."""
    return np.arange(start, stop, dtype=np.int64), r(VALUE_SEED, _range(start, stop)).view(np.int64)


def join_epochs(rows: int, small: int = 50, size: int = 100) -> Iterator[tuple[Words, Words]]:
    """**join**: all `rows` rows: a big epoch, then `small` epochs of `size` rows, so that they are not one batch."""
    bulk = rows - small * size
    if bulk < 0:
        raise ValueError(f"{rows} rows are fewer than the {small} small epochs of {size} rows need")
    yield join_rows(0, bulk)
    for start in range(bulk, rows, size):
        yield join_rows(start, start + size)


def join_keys(rows: int, start: int, stop: int) -> Words:
    """**join**: the query keys number start..stop, each below `rows`."""
    return _below(rows, r(QUERY_SEED, _range(start, stop)))


def bfs_edges(nodes: int, start: int, stop: int) -> tuple[Words, Words]:
    """**bfs**: edges number start..stop as (src, dst), each below `nodes`."""
    ends = _below(nodes, r(EDGE_SEED, _range(2 * start, 2 * stop)))
    return np.ascontiguousarray(ends[0::2]), np.ascontiguousarray(ends[1::2])


def bfs_epoch(nodes: int, edges: int, swaps: int, epoch: int, first: int = 0) -> tuple[Words, Words, Words]:
    """**bfs**: (src, dst, diffs) of one epoch that inserts `swaps` edges and removes the `swaps` oldest, when the first
    `first` have been swapped for others before epoch 0.
    """
    start, stop = first + epoch * swaps, first + (epoch + 1) * swaps
    added, gone = bfs_edges(nodes, edges + start, edges + stop), bfs_edges(nodes, start, stop)
    src, dst = (np.concatenate(pair) for pair in zip(added, gone, strict=True))
    return src, dst, _diffs(swaps, swaps)


_EMPTY = np.empty(0, np.int64)


def _diffs(inserts: int, removals: int) -> Words:
    return np.repeat(np.array([1, -1], np.int64), [inserts, removals])
