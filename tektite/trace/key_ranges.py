"""Cuts sorted rows into ranges of whole keys, so that work on many keys can be done a bounded part at a time; finds one key's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tektite.kernels.seek.stretch import row_bounds
from tektite.trace.chunk import Chunk
from tektite.trace.records import Version

Key = tuple[int, ...]


def key_at(chunk: Chunk, row: int, keys: int) -> Key:
    """The first `keys` words of a row."""
    return tuple(chunk.slice(row, row + 1).to_array()[:keys, 0].tolist())


def rows_before(chunk: Chunk, key: Key) -> int:
    """The number of rows of a sorted chunk that have a smaller key."""
    low, high = 0, chunk.n
    while low < high:
        middle = (low + high) // 2
        if key_at(chunk, middle, len(key)) < key:
            low = middle + 1
        else:
            high = middle
    return low


def rows_of_word(version: Version, word: int) -> list[Chunk]:
    """The rows of a version whose first column is a word, of each batch that has some."""
    words = np.array([word], np.int64)
    starts, stops = np.empty((2, len(version.table)), np.int64)
    row_bounds(version.table, words, 0, starts)
    row_bounds(version.table, words, 1, stops)
    return [
        Chunk(batch.head, batch.memory).slice(int(start), int(stop))
        for batch, start, stop in zip(version.batches, starts, stops, strict=True)
        if stop > start
    ]


def key_ranges(chunks: Sequence[Chunk], keys: int, rows: int) -> Iterator[list[Chunk]]:
    """The rows of sorted chunks in ranges of keys, in order: those with a key in the range, of each chunk that has some. The
    largest chunk has about `rows` rows in each range. All rows of a key are in one range.

    >>> import numpy as np
    >>> numbers = Chunk.of_array(np.array([[1, 1, 2, 3, 3, 3, 4], [0, 1, 0, 0, 1, 2, 0]]))
    >>> [[part.to_array()[0].tolist() for part in parts] for parts in key_ranges([numbers], 1, 2)]
    [[[1, 1]], [[2]], [[3, 3, 3]], [[4]]]
    """
    largest = max(chunks, key=lambda chunk: chunk.n)
    starts = [0] * len(chunks)
    while any([start < chunk.n for start, chunk in zip(starts, chunks, strict=True)]):
        place = starts[chunks.index(largest)] + rows
        stops = [chunk.n for chunk in chunks]
        if place < largest.n:
            key = key_at(largest, place, keys)
            if keys and rows_before(largest, key) <= starts[chunks.index(largest)]:
                key = _next_key(key)
            if keys:
                stops = [rows_before(chunk, key) for chunk in chunks]
        parts = [
            chunk.slice(start, stop) for chunk, start, stop in zip(chunks, starts, stops, strict=True) if stop > start
        ]
        starts = stops
        if parts:
            yield parts


def _next_key(key: Key) -> Key:
    """The least key behind all rows of a key: no row has a word between the last one and the next."""
    return (*key[:-1], key[-1] + 1)
