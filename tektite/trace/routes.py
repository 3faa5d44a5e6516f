"""Routes: which readers of a trace want a new batch, found by an index of what they filter by.

Thousands of views may filter one collection, each by another constant. A reader that says by which words of which column it
filters gets the batches that have such words, and only these rows of a large batch. So a batch costs what the readers that want
it cost.

Promise: of every batch, a reader gets all rows that its guard admits, once, in the batch's order. It may get others.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from tektite.kernels.seek.intervals import greatest_tree, owners_of_rows, owners_touched, rows_by_owner
from tektite.trace.batch import Batch
from tektite.trace.chunk import Chunk

if TYPE_CHECKING:
    from tektite.trace.trace import Handle
    from tektite.values.words import Words

Intervals = tuple[tuple[int, int], ...]
"""First and last words, in order, without overlaps."""

WHOLE = 64
"""Batches of at most so many rows are not divided: a reader filters them faster than its rows are copied."""
COPIES = 4
"""A batch is divided if its readers get at most so many times its rows together. Otherwise each of them gets all of it."""
FEW_READERS = 16
"""Fewer readers than this filter a large batch faster than it is divided."""


class Routes:
    """The guarded readers of one trace, by column."""

    __slots__ = ("_columns",)

    def __init__(self) -> None:
        self._columns: dict[int, ColumnRoutes] = {}

    def add(self, handle: Handle, column: int, intervals: Intervals) -> None:
        """Give a reader what has words of some intervals in a column."""
        found = self._columns.get(column)
        if found is None:
            found = self._columns[column] = ColumnRoutes(column)
        found.add(handle, intervals)

    def remove(self, handle: Handle, column: int) -> None:
        """Forget a reader. May be repeated."""
        found = self._columns.get(column)
        if found is not None:
            found.remove(handle)
            if not found.places:
                del self._columns[column]

    def __bool__(self) -> bool:
        return bool(self._columns)

    def wanted(self, batch: Batch) -> list[tuple[Handle, Batch]]:
        """Who gets a batch, and what of it."""
        return [found for routes in self._columns.values() for found in routes.wanted(batch)]


class ColumnRoutes:
    """The readers that are guarded by one column. Their intervals are sorted by first word. Each has the number of its reader."""

    __slots__ = ("_first", "_free", "_last", "_owners", "_readers", "_tree", "column", "places")

    def __init__(self, column: int) -> None:
        self.column = column
        self.places: dict[Handle, int] = {}
        """The number of each reader."""
        self._readers: list[Handle | None] = []
        self._free: list[int] = []
        self._first: Words = np.empty(0, np.int64)
        self._last: Words = np.empty(0, np.int64)
        self._owners: Words = np.empty(0, np.int64)
        self._tree: Words | None = None

    def add(self, handle: Handle, intervals: Intervals) -> None:
        """Add a reader."""
        number = self._free.pop() if self._free else len(self._readers)
        first, last = np.array(intervals, np.int64).reshape(-1, 2).T
        at = np.searchsorted(self._first, first)
        self._first = np.insert(self._first, at, first)
        self._last = np.insert(self._last, at, last)
        self._owners = np.insert(self._owners, at, number)
        self._tree = None
        if number == len(self._readers):
            self._readers.append(handle)
        else:
            self._readers[number] = handle
        self.places[handle] = number

    def remove(self, handle: Handle) -> None:
        """Remove a reader. May be repeated."""
        number = self.places.pop(handle, None)
        if number is not None:
            others = self._owners != number
            self._first, self._last, self._owners = self._first[others], self._last[others], self._owners[others]
            self._tree = None
            self._readers[number] = None
            self._free.append(number)

    def wanted(self, batch: Batch) -> Iterator[tuple[Handle, Batch]]:
        """Who gets a batch, and what of it."""
        small = batch.n <= WHOLE
        readers = self._readers
        if not small and len(self.places) < FEW_READERS:
            yield from [(handle, batch) for handle in self.places]
            return
        first, last, owners = self._first, self._last, self._owners
        tree = self._tree
        if tree is None:
            tree = self._tree = greatest_tree(last)
        pairs, owner, row = owners_of_rows(batch.at, self.column, first, tree, owners, COPIES * max(batch.n, WHOLE))
        if small or pairs < 0:
            if pairs < 0:
                owner = owners_touched(batch.at, self.column, first, last, owners, len(readers))
            else:
                owner = owner[:pairs]
            for number in dict.fromkeys(owner.tolist()):
                if (handle := readers[number]) is not None:
                    yield handle, batch
            return
        buf, head, found, offsets = rows_by_owner(batch.at, owner, row, pairs, len(readers))
        divided = Chunk(head, (batch.memory, buf))
        starts = offsets.tolist()
        for number, start, stop in zip(found.tolist(), starts, starts[1:], strict=False):
            if (handle := readers[number]) is not None:
                part = divided.slice(start, stop)
                yield handle, Batch(part.head, part.memory, batch.lower, batch.upper, batch.since)
