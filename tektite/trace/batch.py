"""A batch: an immutable, sorted, consolidated set of updates.

Promise: it holds exactly the updates of its collection at times in advance of `lower` and not in advance of `upper`. It is
correct for readers that ask about times in advance of `since`; earlier times may have been replaced by representatives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tektite.trace.chunk import Chunk, column_spec
from tektite.trace.records import BatchRecord
from tektite.trace.times import Frontier

if TYPE_CHECKING:
    from tektite.values.words import Words

LATEST = 2**63 - 1


class Batch(BatchRecord):
    """The head of its rows, what keeps their memory alive, and its frontiers."""

    __slots__ = ("_net",)

    _net: int

    def __init__(self, head: Words, memory: Any, lower: Frontier, upper: Frontier, since: Frontier | Words) -> None:
        super().__init__(head, memory)
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

    def net(self, column: int) -> int:
        """The sum of a column: of the diffs, it is how many rows the updates add up to. It is computed once."""
        try:
            return self._net
        except AttributeError:
            if self.varies_in(column):
                (words,) = Chunk.of_batch(self).select(column_spec([column])).to_array()
                self._net = int(words.sum())
            else:
                self._net = self.n * int(self.head[5 + 3 * column])
            return self._net

    def latest_epoch(self) -> int:
        """No update of the batch has a later epoch: it would be in advance of an element of `upper` whose rounds are 0."""
        return min((time[0] - 1 for time in self.upper if not any(time[1:])), default=LATEST)

    def varies_in(self, column: int) -> bool:
        """Whether the column is stored, so that its words may differ."""
        return bool(self.head[4 + 3 * column])

    def __repr__(self) -> str:
        return f"Batch({self.n} rows, {self.lower} to {self.upper}, since {self.since})"


Batch.makes()
