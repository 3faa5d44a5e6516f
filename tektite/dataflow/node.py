"""Node: the contract between operators and executors.

An executor runs nodes without knowing which operators they are. It runs a dataflow in this process, with all shards, or gives
copies of the nodes to processes that have one shard each. For that, a node says

========================  ==============================================================================================
what it reads             `reads` (handles on arrangements, with their queues and versions) and `consults` (traces whose
                          versions it reads without a handle)
what it produces          `port`, whose edges lead to other nodes, and `mints`, the trace that only it appends to
where its errors go       `errors`, and `errors` of the steps on its edges
what waits for it         `buffers`: rows by moment and shard
where stages end          `routes`, `hops`, `for_next_round` and `engine_only`
whether it is suspended   `busy`
how a copy is made        `ship`, then `act_as` with what `decide` decided for all shards
how to follow a copy      `replay`, which takes from the handles what the copy's run has taken
========================  ==============================================================================================

Executors promise: a node runs at a moment once everything that other nodes send it at that moment has arrived. Afterwards it does
not run at an earlier moment.

Operators promise:

* All state that outlives a moment is in a trace.
* All rows that wait are in `reads` or `buffers`.
* Work on a shard uses and changes only that shard's state, so that it can be repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from tektite.dataflow.graph import Moment, Outbox, Port, Scope
from tektite.trace.chunk import Chunk

if TYPE_CHECKING:
    from tektite.dataflow.arrange import ArrangementReader
    from tektite.dataflow.errors import ErrorOrigin
    from tektite.trace.spine import BatchShape
    from tektite.trace.trace import Trace


class Waiting(Protocol):
    """A buffer of a node: rows by moment and shard. A copy in another process starts empty."""

    shape: BatchShape
    """The data, time and diff columns of the rows."""

    @property
    def bytes(self) -> int:
        """About what its rows take."""

    def moments(self) -> list[Moment]:
        """The moments for which there are rows, in order."""

    def waiting(self, moment: Moment) -> Sequence[Sequence[Chunk]]:
        """The chunks of a moment, by shard. They stay in the buffer."""

    def gathered(self, moment: Moment, shard: int) -> Sequence[Chunk]:
        """The rows of a moment and shard, in as few chunks as possible and in an order that does not depend on their arrival."""

    def put(self, shard: int, chunk: Chunk, moment: Moment) -> None:
        """Add rows that were `gathered` or `waiting` in another process."""

    def forget(self, moment: Moment) -> None:
        """Drop the rows of a moment, because another process has run it."""

    def clear(self) -> None:
        """Drop all rows."""


class Node:
    """An operator. Its state is divided into shards. Work on one shard does not touch the state of others."""

    errors: ErrorOrigin | None = None
    """Where the errors of its groups go, if it has any."""
    mints: Trace | None = None
    """The trace that only this node appends to, if it has one."""
    routes = False
    """Whether input goes to the shard of its key, so that a stage ends before this node."""
    hops = 0
    """The number of exchanges inside the node. It runs in that many further stages."""
    for_next_round = False
    """Whether input of a round is processed in the next round."""
    engine_only = False
    """Whether it can run only in the engine's process, because it needs all shards at once or something that cannot be sent.
    Nodes that depend on it run there too.
    """

    def __init__(self, scope: Scope, shards: int, name: str) -> None:
        self.scope = scope
        self.times: int = scope.depth + 1
        """The number of time columns in its scope."""
        self.flow = scope.flow
        self.shards = shards
        self.name = name
        self.port = Port()
        self.reads: tuple[ArrangementReader, ...] = ()
        """Its handles on arrangements. An `ArrangementReader` adds itself."""
        self.buffers: tuple[Waiting, ...] = ()
        """Its buffers. A `Buffer` adds itself. Copies of the node have the same buffers in the same order."""
        self.position = -1
        if self.flow.purpose is not None:
            self.flow.note_purpose(self, self.flow.purpose)
        scope.add(self)

    def choose_rows(self) -> None:
        """Ask the arrangements of other dataflows only for rows that are not filtered out at once. Called when the whole graph is
        connected.
        """

    # ------------------------------------------------------------------ work

    def exchange(self, shard: int, chunk: Chunk, moment: Moment, outbox: Outbox) -> None:
        """Address a chunk that comes from `shard`. Nodes that need their input by key send each row to the shard of its key."""
        outbox.append((self, shard, chunk, moment))

    def receive(self, shard: int, chunk: Chunk, moment: Moment) -> None:
        """Buffer a chunk and schedule the node."""
        raise NotImplementedError(f"{self.name} takes no chunks")

    def run(self, moment: Moment) -> None:
        """Process everything that waits at `moment`, or a bounded part of it, and schedule the rest."""
        raise NotImplementedError

    @property
    def busy(self) -> bool:
        """Whether it was suspended with rows that are in no buffer."""
        return False

    def clear(self) -> None:
        """Drop waiting rows and unfinished work."""
        for buffer in self.buffers:
            buffer.clear()

    def begin(self) -> None:
        """Start again with the full history of what it reads, as a node that was just made. Requires that nothing waits."""
        if self.mints is not None:
            self.mints.begin()
            self.flow.traces += (self.mints,)
        for reader in self.reads:
            reader.begin()

    def call_out(self, work: Callable[[int], None], rows: int) -> None:
        """Run `work` on every shard of this process, while others use the engine. It changes nothing that others see."""
        self.flow.call_out(lambda: self._each(work, rows))

    def call_function(self, work: Callable[[int], None], rows: int) -> bool:
        """The same for `work` that calls a function of a user's. Returns whether it was done; an interrupt may end it."""
        return self.flow.call_function(lambda: self._each(work, rows))

    def _each(self, work: Callable[[int], None], rows: int) -> None:
        if self.shards == 1:
            work(0)
        else:
            self.flow.workers.map(lambda shard, _: work(shard), self.shards, rows)

    def each_shard(self, work: Callable[[int, Outbox], None], rows: int) -> None:
        """Run `work` on every shard of this process, then deliver what it emitted, in the order of shards. `rows` estimates the
        work; where there is one shard, nobody asks for it.
        """
        if self.shards == 1:
            alone: Outbox = []
            work(0, alone)
            self.deliver([alone])
        else:
            self.deliver(self.flow.workers.map(work, self.shards, rows))

    def deliver(self, outboxes: list[Outbox]) -> None:
        """Give nodes what a run emitted, in the order of shards."""
        journal = self.flow.journal
        if journal is not None and journal.work is not None:
            journal.work.count_rows(self, outboxes)
        for outbox in outboxes:
            for target, shard, chunk, moment in outbox:
                target.receive(shard, chunk, moment)
        while full := self.flow.full_buffers:
            self.flow.full_buffers = ()
            for buffer in full:
                buffer.consolidate()

    def mint_into(self, trace: Trace) -> None:
        """Append to another trace from here on: one that holds what the node's own trace would hold. No sweep runs. May be
        repeated.
        """
        raise NotImplementedError(f"{self.name} mints nothing")

    # ------------------------------------------------------------------ copies with one shard

    def consults(self) -> Sequence[Trace]:
        """The traces whose versions it reads without a handle in `reads`."""
        return ()

    def ship(self) -> dict[str, Any]:
        """The attributes of a copy in another process, which is made without its constructor. Nodes, scopes, dataflows, traces
        and handles among them are replaced by their copies. Buffers start empty.
        """
        assert not self.busy, f"{self.name} is suspended"
        return dict(self.__dict__)

    def decide(self, is_known: Callable[[Trace], bool]) -> Any:
        """A decision for a part of a sweep that all shards must share, as plain values; None if there is none. `is_known` tells
        whether everything that a trace will get in this part is already queued in its handles.
        """
        return None

    def act_as(self, shard: int, decision: Any) -> None:
        """Act as one shard of several, in a process that has no other, and follow a decision. Called before each part."""

    def replay(self, shard: int, moment: Moment) -> None:
        """Take from the handles what a run at `moment` has taken on a shard in another process, without its work."""
        for reader in self.reads:
            reader.take(shard)
