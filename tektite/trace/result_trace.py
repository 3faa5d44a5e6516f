"""ResultTrace: the trace of results that can be computed again from what their operator has read.

Its batches need not be kept while nobody reads them: it *sleeps*, keeps nothing, and what is minted costs nothing. Whoever asks
for a version wakes it, and finds what it would have found otherwise. Rows that begin with one value are computed while it sleeps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from tektite.trace.batch import Batch
from tektite.trace.records import Version
from tektite.trace.times import Frontier
from tektite.trace.trace import Hold, Trace

if TYPE_CHECKING:
    from tektite.trace.chunk import Chunk


class Recomputation(Protocol):
    """Computes results again."""

    @property
    def rows(self) -> int:
        """At least as many as there are results."""

    def results(self, shard: int, lead: int | None = None) -> list[Chunk]:
        """Sorted, consolidated chunks: the sum of all batches that were minted on a shard up to the end of the last sweep; or
        the rows of it that begin with the word `lead`.
        """

    def minted(self, shard: int) -> list[Batch]:
        """The batches minted on a shard since then."""

    def held_batches(self) -> list[Batch]:
        """The batches that it keeps in order to compute results."""

    def woken(self) -> None:
        """The trace keeps batches from here on."""


class ResultTrace(Trace):
    """A trace that may sleep once it has a `recomputation`."""

    __slots__ = ("read", "recomputation")

    recomputation: Recomputation | None
    read: int
    """The updates that were minted when it was last read."""

    def begin(self) -> None:
        super().begin()
        self.recomputation = None
        self.read = 0

    @property
    def is_asleep(self) -> bool:
        """Whether it keeps no batches, though somebody may read it."""
        return self.spines is None and self.recomputation is not None and bool(self.holds)

    @property
    def _asleep(self) -> Recomputation | None:
        """The computation of its results, if it sleeps."""
        return self.recomputation if self.spines is None and self.holds else None

    def sleep(self) -> None:
        """Keep no batches until somebody reads. Only who holds the trace for readers to come may hold it, and nobody reads it."""
        self.spines = None

    def wake(self) -> None:
        """Keep batches from here on, unless it does."""
        self.read = self.minted
        again = self._asleep
        if again is None:
            return
        spines = self._new_spines()
        for shard, spine in enumerate(spines):
            minted = again.minted(shard)
            upper = minted[0].lower if minted else self.uppers[shard]
            spine.restore(self._batches(upper, again.results(shard)))
            spine.upper = upper
            for batch in minted:
                spine.insert(batch)
        self.spines = spines
        again.woken()

    def _batches(self, upper: Frontier, chunks: list[Chunk]) -> list[Batch]:
        lower, since = ((0,),), self.since()
        return [Batch(chunk.head, chunk.memory, lower, upper, since) for chunk in chunks if chunk.n]

    def keep_batches(self) -> None:
        self.wake()
        if self.recomputation is not None:
            again, self.recomputation = self.recomputation, None
            again.woken()

    def version(self, shard: int) -> Version:
        self.wake()
        return super().version(shard)

    def version_of_lead(self, shard: int, lead: int) -> Version:
        again = self._asleep
        if again is None:
            return super().version(shard)
        return Version(tuple(self._batches(self.uppers[shard], again.results(shard, lead))))

    def add_hold(self, hold: Hold) -> None:
        self.wake()
        super().add_hold(hold)

    def held_batches(self) -> list[Batch]:
        again = self._asleep
        return super().held_batches() if again is None else again.held_batches()

    @property
    def rows(self) -> int:
        again = self._asleep
        return super().rows if again is None else again.rows

    @property
    def count(self) -> int:
        self.wake()
        return super().count
