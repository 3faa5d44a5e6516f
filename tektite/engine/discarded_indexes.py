"""DiscardedIndexes: which indexes of tables and views queries made, and left to nobody, how often.

An index that is made for a query goes with its last reader. Queries that are answered once, one after the other, make it anew
each time. The counts of a table or view go with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple
from weakref import WeakKeyDictionary

from tektite.plan.algebra import ColumnNumbers, Readable


class DiscardedIndex(NamedTuple):
    """A count of the dropped indexes of a table or view by the same columns."""

    times: int
    """How often one was dropped."""
    rows: int
    """How many rows they had in all."""
    bytes: int
    """The bytes of the last one."""


class DiscardedIndexes:
    """Counts indexes that were dropped, by what they were of and by which columns."""

    def __init__(self) -> None:
        self._counts: WeakKeyDictionary[Readable, dict[ColumnNumbers, DiscardedIndex]] = WeakKeyDictionary()

    def __iter__(self) -> Iterator[tuple[Readable, ColumnNumbers, DiscardedIndex]]:
        for readable, by in self._counts.items():
            for columns, found in by.items():
                yield readable, columns, found

    def add(self, readable: Readable, columns: ColumnNumbers, rows: int, size: int) -> None:
        """One more was dropped.

        >>> class Sales:
        ...     pass
        >>> sales, discarded = Sales(), DiscardedIndexes()
        >>> discarded.add(sales, (1,), 10, 800)
        >>> discarded.add(sales, (1,), 12, 900)
        >>> [(columns, found) for _, columns, found in discarded]
        [((1,), DiscardedIndex(times=2, rows=22, bytes=900))]
        """
        by = self._counts.setdefault(readable, {})
        known = by.get(columns, DiscardedIndex(0, 0, 0))
        by[columns] = DiscardedIndex(known.times + 1, known.rows + rows, size)
