"""Results of a reduction that are kept for readers, and computed again from its input while nobody reads them.

Where the input has a row or a few for each group, and a group's result is a sum over them, merging results costs as much as the
reduction itself: each change is two rows, of more columns. So the results' trace sleeps once as many updates as it has rows were
minted since it was last read. Computing results again then costs less than what merging them would have cost.

Results are those of the last epoch that the dataflow has answered. While a sweep runs, they are computed from what the node had
consumed before, and what is minted is kept until the sweep ends: who wakes the trace in between finds both. A transaction that
reads an earlier epoch keeps the trace awake.
"""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING

from tektite.dataflow.flow import LastClosed
from tektite.trace.batch_memory import FEW_ROWS
from tektite.trace.chunk import Chunk
from tektite.trace.key_ranges import key_ranges, rows_of_word

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tektite.dataflow.reduce import BuiltinReduce
    from tektite.trace.batch import Batch
    from tektite.trace.records import Version
    from tektite.trace.result_trace import ResultTrace

LEAST = 1 << 16
"""Updates that are minted between two looks whether the trace may sleep. Merging fewer costs next to nothing."""

_remembering = Lock()
"""Held by a thread that remembers what it has minted: other threads mint on other shards."""


class KeptResults:
    """The results of a built-in reduction of the outermost scope, whose input has no columns beside the key."""

    # There is one for each of ten thousand small views that count.
    __slots__ = ("_before", "_minted", "look_at", "node", "trace")

    def __init__(self, node: BuiltinReduce, trace: ResultTrace) -> None:
        self.node = node
        self.trace = trace
        self.begin()

    def begin(self) -> None:
        """Start without history."""
        self.trace.recomputation = self
        self.look_at = LEAST
        """How many updates will be minted when it is looked whether the trace may sleep."""
        self._forget()

    def _forget(self) -> None:
        """No sweep runs that the trace sleeps in."""
        self._before: Sequence[Version] = ()
        """While the trace sleeps and a sweep runs: what each shard had consumed before."""
        self._minted: tuple[tuple[int, Batch], ...] = ()
        """What was minted since then, with the shards."""
        self.trace.on_mint = None

    def _remember(self, shard: int, batch: Batch) -> None:
        with _remembering:
            self._minted += ((shard, batch),)

    def consider(self) -> None:
        """Let the trace sleep if nobody has read it for long. Called by the node when it has run, while nobody else works."""
        trace, flow = self.trace, self.node.flow
        self.look_at = trace.minted + LEAST
        if (
            trace.recomputation is self
            and trace.spines is not None
            and not trace.handles
            and len(trace.holds) == 1
            and not self._reads_earlier()
            and flow.limit is None
            and trace.minted - trace.read >= trace.rows
            and flow.reached > flow.first
        ):
            # This sweep's changes are minted already. Until it ends, whoever reads finds the batches that were there.
            flow.on_swept += (self._sleep,)

    def _sleep(self) -> None:
        trace, flow = self.trace, self.node.flow
        flow.on_swept = tuple([each for each in flow.on_swept if each != self._sleep])
        if trace.recomputation is self and not trace.handles and len(trace.holds) == 1 and not self._reads_earlier():
            flow.on_swept += (self._swept,)
            trace.sleep()

    def _reads_earlier(self) -> bool:
        """Whether a transaction reads the results of an epoch that is not the last one."""
        for hold in self.trace.holds:
            frontier = hold.frontier
            if not isinstance(frontier, LastClosed) or frontier.is_pinned:
                return True
        return False

    def prepare(self) -> None:
        """Remember what was consumed so far, before the node takes more in a sweep, if the trace sleeps."""
        node, reader = self.node, self.node.reader
        if self._before or not self.trace.is_asleep:
            return
        memory, rows = node.flow.memory, reader.handle.queued
        if self._reads_earlier() or (
            # Of so many changes, the node takes several parts. Between two of them, results are those of no version.
            memory is not None and rows > FEW_ROWS and rows > memory.piece_rows(sum(reader.trace.shape))
        ):
            self.trace.wake()
        else:
            old = reader.handle.old
            self._before = (old(0),) if node.shards == 1 else [old(shard) for shard in range(node.shards)]
            self.trace.on_mint = self._remember

    def _swept(self) -> None:
        self._forget()

    def woken(self) -> None:
        """The trace keeps batches again."""
        flow = self.node.flow
        flow.on_swept = tuple([each for each in flow.on_swept if each not in (self._swept, self._sleep)])
        self._forget()

    def minted(self, shard: int) -> list[Batch]:
        """The batches that the running sweep has minted on a shard."""
        return [batch for number, batch in self._minted if number == shard]

    def held_batches(self) -> list[Batch]:
        """The batches that it keeps in order to compute results from them; others keep the rest."""
        return [
            *[batch for version in self._before for batch in version.batches],
            *[batch for _, batch in self._minted],
        ]

    @property
    def rows(self) -> int:
        """At least as many as there are results."""
        return self.node.reader.trace.rows

    def results(self, shard: int, lead: int | None = None) -> list[Chunk]:
        """The results of a shard as of the last epoch that was answered; or what of them begins with a word."""
        node, flow = self.node, self.node.flow
        version = self._before[shard] if self._before else node.reader.handle.old(shard)
        chunks = [Chunk.of_batch(batch) for batch in version.batches] if lead is None else rows_of_word(version, lead)
        if not chunks:
            return []
        epoch = flow.low - 1
        if flow.memory is None:
            return [node.evaluate(chunks, epoch)]
        most = flow.memory.piece_rows(2 * sum(node.reader.trace.shape))
        parts = key_ranges(chunks, node.key, most) if sum([chunk.n for chunk in chunks]) > most else [chunks]
        return [flow.memory.placed(node.evaluate(part, epoch)) for part in parts]
