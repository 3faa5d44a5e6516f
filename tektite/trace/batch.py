"""A batch: an immutable, sorted, consolidated set of updates.

Promise: it holds exactly the updates of its collection at times in advance of `lower` and not in advance of `upper`. It is
correct for readers that ask about times in advance of `since`; earlier times may have been replaced by representatives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tektite.trace.times import Frontier
from tektite.values.words import Words

if TYPE_CHECKING:
    from tektite.trace.chunk import Chunk

LATEST = 2**63 - 1


class Batch:
    """The head of its rows, what keeps their memory alive, and its frontiers."""

    __slots__ = ("_since", "at", "head", "memory", "lower", "n", "upper")

    head: Words
    memory: Any
    n: int
    at: int
    lower: Frontier
    upper: Frontier

    def __init__(
        self,
        head: Words,
        memory: Any,
        lower: Frontier,
        upper: Frontier,
        since: Frontier | Words,
        *,
        rows: Chunk | None = None,
    ) -> None:
        """`rows` are the same, if the caller has them: they know what would be read from the head."""
        self.head = head
        self.memory = memory
        if rows is None:
            self.n, self.at = head[:2].tolist()
        else:
            self.n, self.at = rows.n, rows.at
        self.lower = lower
        self.upper = upper
        self._since: Frontier | Words = since

    @property
    def since(self) -> Frontier:
        """The frontier from which on the batch distinguishes times. Given as an array, it becomes tuples on demand."""
        if not isinstance(self._since, tuple):
            self._since = tuple(map(tuple, self._since.tolist()))
        return self._since

    @property
    def bytes(self) -> int:
        """Memory of head and stored columns."""
        return self.head.nbytes + self.n * int(self.head[4::3].sum())

    def latest_epoch(self) -> int:
        """No update of the batch has a later epoch: it would be in advance of an element of `upper` whose rounds are 0."""
        return min((time[0] - 1 for time in self.upper if not any(time[1:])), default=LATEST)

    def varies_in(self, column: int) -> bool:
        """Whether the column is stored, so that its words may differ."""
        return bool(self.head[4 + 3 * column])

    def __repr__(self) -> str:
        return f"Batch({self.n} rows, {self.lower} to {self.upper}, since {self.since})"
