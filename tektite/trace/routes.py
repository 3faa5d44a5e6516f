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
                self._columns.pop(column, None)

    def __bool__(self) -> bool:
        return bool(self._columns)

    def wanted(self, batch: Batch) -> list[tuple[Handle, Batch]]:
        """The handles that get a batch, each with its part of it."""
        return [found for routes in self._columns.values() for found in routes.wanted(batch)]


class SortedIntervals:
    """Intervals sorted by first word, each with the number of its reader. Immutable, so that a change is one assignment, which
    no interrupt divides.
    """

    __slots__ = ("_tree", "first", "last", "owners")

    def __init__(self, first: Words, last: Words, owners: Words) -> None:
        self.first = first
        self.last = last
        self.owners = owners
        self._tree: Words | None = None

    @property
    def tree(self) -> Words:
        """The tree over the last words, made when it is first needed."""
        found = self._tree
        if found is None:
            found = self._tree = greatest_tree(self.last)
        return found


NONE = SortedIntervals(*np.empty((3, 0), np.int64))


class ColumnRoutes:
    """The readers that are guarded by one column."""

    __slots__ = ("_free", "_intervals", "_readers", "column", "places")

    def __init__(self, column: int) -> None:
        self.column = column
        self.places: dict[Handle, int] = {}
        """The number of each reader."""
        self._readers: list[Handle | None] = []
        self._free: list[int] = []
        self._intervals = NONE

    def add(self, handle: Handle, intervals: Intervals) -> None:
        """Add a reader. What an interrupt leaves of it is removed as a whole one is."""
        if self._free:
            number = self._free.pop()
        else:
            number = len(self._readers)
            self._readers.append(None)
        self.places[handle] = number
        self._readers[number] = handle
        first, last = np.array(intervals, np.int64).reshape(-1, 2).T
        there = self._intervals
        at = np.searchsorted(there.first, first)
        self._intervals = SortedIntervals(
            np.insert(there.first, at, first), np.insert(there.last, at, last), np.insert(there.owners, at, number)
        )

    def remove(self, handle: Handle) -> None:
        """Remove a reader. May be repeated, also after an interrupt."""
        number = self.places.get(handle)
        if number is None:
            return
        there = self._intervals
        others = there.owners != number
        self._intervals = SortedIntervals(there.first[others], there.last[others], there.owners[others])
        self._readers[number] = None
        del self.places[handle]
        self._free.append(number)  # last: a number that is free has no reader

    def wanted(self, batch: Batch) -> Iterator[tuple[Handle, Batch]]:
        """The handles that get a batch, each with its part of it."""
        small = batch.n <= WHOLE
        readers = self._readers
        if not small and len(self.places) < FEW_READERS:
            yield from [(handle, batch) for handle in self.places]
            return
        there = self._intervals
        most = COPIES * max(batch.n, WHOLE)
        pairs, owner, row = owners_of_rows(batch.at, self.column, there.first, there.tree, there.owners, most)
        if small or pairs < 0:
            if pairs < 0:
                owner = owners_touched(batch.at, self.column, there.first, there.last, there.owners, len(readers))
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
