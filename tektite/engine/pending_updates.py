"""Updates of an input that wait for their epoch to close.

Promise: memory follows the number of distinct updates (row and time), up to a bound, not how many were offered; and one
chunk does not stand for one row for long.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING

from tektite.dataflow.arrange import consolidate
from tektite.errors import IncorrectError
from tektite.kernels.operators.upsert import resolve
from tektite.kernels.ready import calls
from tektite.trace.batch_memory import BatchMemory
from tektite.trace.chunk import Chunk
from tektite.trace.key_ranges import key_ranges
from tektite.trace.records import Version

MOST_ROWS = 1 << 22
"""Rows that stay as they came. From there on it is worth a sort to see what cancels."""

SMALL_ROWS = 1 << 10
MOST_SMALL = 1 << 10
"""Chunks of fewer rows than the former that may pile up before they become one."""


if TYPE_CHECKING:

    class PendingRecord:
        """The attributes of `PendingUpdates`; see native/writes.c."""

else:
    PendingRecord = calls().PendingRecord


class PendingUpdates(PendingRecord):
    """Chunks of updates of one shape, each with the latest epoch that it holds, in order of arrival. A call that an exception
    ends has added its chunk or not; whatever else it did changes no contents.
    """

    __slots__ = ()

    _allowed: int
    """Rows up to which there is no new look at what cancels, if that is more than `MOST_ROWS`."""
    _counted: tuple[int, int]
    _memory: BatchMemory | None
    _small: int
    chunks: list[tuple[Chunk, int]]
    """The chunks, each with its latest epoch."""
    shape: tuple[int, int, int]

    def __init__(
        self,
        shape: tuple[int, int, int],
        chunks: Iterable[tuple[Chunk, int]] = (),
        memory: BatchMemory | None = None,
    ) -> None:
        self.shape = shape
        self._memory = memory
        self.chunks = list(chunks)
        self._counted = (0, 0)
        self._small = self._allowed = 0
        if self.chunks:
            self._small = sum([1 for _ in takewhile(lambda each: each[0].n < SMALL_ROWS, reversed(self.chunks))])
            self._allowed = 2 * self.rows

    def __iter__(self) -> Iterator[tuple[Chunk, int]]:
        return iter(self.chunks)

    @property
    def rows(self) -> int:
        """Updates that wait, those that cancel each other counted once they are found out."""
        chunks, rows = self._counted
        if chunks != len(self.chunks):
            for chunk, _ in self.chunks[chunks:] if chunks else self.chunks:
                rows += chunk.n
            self._counted = len(self.chunks), rows
        return rows

    @property
    def bytes(self) -> int:
        """About what the updates take."""
        return sum([chunk.bytes for chunk, _ in self.chunks])

    def add(self, chunk: Chunk, last: int) -> None:
        """Add a chunk whose latest epoch is `last`."""
        self.chunks.append((chunk, last))
        self._small = self._small + 1 if chunk.n < SMALL_ROWS else 0
        if self._small >= MOST_SMALL:
            self._gather(self._small)
            self._small = 0
        if len(self.chunks) > 1 and (rows := self.rows) > MOST_ROWS and rows > self._allowed:
            self._gather(len(self.chunks))
            # What has hardly shrunk is looked at again when there is several times as much.
            self._allowed = (4 if 2 * self.rows > rows else 2) * self.rows

    def _gather(self, many: int) -> None:
        """Make one sorted, consolidated chunk of the newest ones, if there is memory for it. A sum that does not fit stays for
        closing to report.
        """
        newest = self.chunks[-many:]
        try:
            built = consolidate([chunk for chunk, _ in newest], self.shape, 0, self._memory)
        except (IncorrectError, MemoryError):
            return
        self._counted = (0, 0)
        self.chunks[-many:] = [(built, max(last for _, last in newest))] if built.n else []


def net_changes(
    operations: Sequence[Chunk], keys: int, values: int, held: Version, memory: BatchMemory | None = None
) -> list[Chunk]:
    """The changes that operations on a set or upsert input (see `arriving_operations`) make to its rows, whatever their order."""
    shape = (keys + 3 + values, 1, 1)
    ordered = consolidate([*operations], shape, 0, memory)
    most = ordered.n if memory is None else memory.piece_rows(sum(shape))
    parts = [ordered] if ordered.n <= most else [part for (part,) in key_ranges([ordered], keys, most)]
    changes = []
    for part in parts:
        buf, head = resolve(part.at, keys, values, held.table)
        found = Chunk(head, buf)
        if len(parts) > 1 and memory is not None:
            found = memory.placed(consolidate([found], (keys + values, 1, 1), 0))
        changes.append(found)
    return changes
