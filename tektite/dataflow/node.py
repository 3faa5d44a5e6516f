"""Node: what every operator is, and all that an executor knows of it.

An executor runs nodes without knowing which they are. It may run a whole dataflow in this process, all shards beside each other,
or give copies of its nodes to processes that have one shard each. For that a node says

========================  ==============================================================================================
what it reads             `reads` (handles on arrangements, with their queues and versions) and `consults` (traces whose
                          versions it reads without a handle)
what it makes             `port`, whose edges lead to other nodes, and `mints`, the trace that it alone adds to
what waits for it         `buffers`: rows by moment and shard, which can be taken and put
where stages are cut      `routes`, `hops`, `for_next_round` and `engine_only`
whether it is at rest     `busy`
how a copy is made        `ship`, then `act_as` with what `decide` has decided for all shards
how a copy is followed    `replay`, which takes from the handles what a run has taken elsewhere
========================  ==============================================================================================

Promise to operators: a node runs at a moment when everything that other nodes have for it at that moment is there, and never
again at an earlier one. What is asked of them: all that lasts beyond a moment is in a trace; all that waits is in `reads` or
`buffers`; work on a shard touches that shard's part alone and depends on nothing else, so that it can be done twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from tektite.dataflow.graph import Moment, Outbox, Port, Scope
from tektite.trace.chunk import Chunk

if TYPE_CHECKING:
    from tektite.dataflow.arrange import ArrangementReader
    from tektite.trace.spine import Shape
    from tektite.trace.trace import Trace


class Waiting(Protocol):
    """Rows that wait for a node in one place of it, by moment and shard. A copy of it in another process begins empty."""

    shape: Shape
    """The data, time and diff columns of the rows."""

    def moments(self) -> list[Moment]:
        """The moments at which something waits, in order."""

    def waiting(self, moment: Moment) -> Sequence[Sequence[Chunk]]:
        """What waits at a moment, per shard; it stays where it is."""

    def gathered(self, moment: Moment, shard: int) -> Sequence[Chunk]:
        """What waits at a moment for a shard, in as few chunks and in as certain an order as can be."""

    def put(self, shard: int, chunk: Chunk, moment: Moment) -> None:
        """Let rows wait that were `gathered` or `waiting` elsewhere."""

    def forget(self, moment: Moment) -> None:
        """Let nothing wait at a moment: others have run it."""

    def clear(self) -> None:
        """Let nothing wait."""


class Node:
    """An operator. Its state is kept per shard; a shard's work touches no other shard's state."""

    mints: Trace | None = None
    """The trace that the node alone adds to, if there is one."""
    routes = False
    """Whether what comes in goes to the shard of its key: a stage ends before the node."""
    hops = 0
    """How many more exchanges rows make inside the node: it runs in so many more stages."""
    for_next_round = False
    """Whether what comes in at a round is for the next one."""
    engine_only = False
    """Whether it runs in the engine's own process alone: because it needs all shards at once, or something that cannot travel.
    What comes behind it runs there too.
    """

    def __init__(self, scope: Scope, shards: int, name: str) -> None:
        self.scope = scope
        self.flow = scope.flow
        self.shards = shards
        self.name = name
        self.port = Port()
        self.reads: list[ArrangementReader] = []
        """Its handles on arrangements. A `ArrangementReader` enters itself here."""
        self.buffers: list[Waiting] = []
        """Where rows wait for it. A `Buffer` enters itself here; their order is part of what the node is."""
        self.position = -1
        scope.add(self)

    @property
    def times(self) -> int:
        """Number of time columns in this node's scope."""
        return self.scope.depth + 1

    # ------------------------------------------------------------------ work

    def exchange(self, shard: int, chunk: Chunk, moment: Moment, outbox: Outbox) -> None:
        """Address a chunk that comes in at `shard`; nodes that need their input by key route it."""
        outbox.append((self, shard, chunk, moment))

    def receive(self, shard: int, chunk: Chunk, moment: Moment) -> None:
        """Take in a chunk, and make sure that the agenda knows."""
        raise NotImplementedError(f"{self.name} takes no chunks")

    def run(self, moment: Moment) -> None:
        """Do everything that waits at `moment`, or a bounded part of it and schedule the rest."""
        raise NotImplementedError

    @property
    def busy(self) -> bool:
        """Whether it has stopped in the middle of its work, with rows that are in no buffer."""
        return False

    def clear(self) -> None:
        """Forget what waits here, and what is half done."""
        for buffer in self.buffers:
            buffer.clear()

    def begin(self) -> None:
        """Begin anew with the histories of what it reads, as if it had just been made. Nothing waits here."""
        if self.mints is not None:
            self.mints.begin()
            self.flow.traces.append(self.mints)
        for reader in self.reads:
            reader.begin()

    def each_shard(self, work: Callable[[int, Outbox], None], rows: int) -> None:
        """Run `work` on every shard that this process has, then deliver what it emitted, in the order of shards."""
        if self.shards == 1:
            alone: Outbox = []
            work(0, alone)
            outboxes = [alone]
        else:
            outboxes = self.flow.workers.map(work, self.shards, rows)
        for outbox in outboxes:
            for target, shard, chunk, moment in outbox:
                target.receive(shard, chunk, moment)
        full = self.flow.full_buffers
        while full:
            full.pop().consolidate()

    # ------------------------------------------------------------------ copies that are one shard

    def consults(self) -> Sequence[Trace]:
        """The traces whose versions it reads beside those of `reads`."""
        return ()

    def ship(self) -> dict[str, Any]:
        """The attributes of a copy in another process; it is made without its constructor. Other nodes, scopes, dataflows, traces
        and handles among them become their copies, and buffers begin empty.
        """
        assert not self.busy, f"{self.name} is in the middle of its work"
        return dict(self.__dict__)

    def decide(self, is_known: Callable[[Trace], bool]) -> Any:
        """What all shards have to decide alike before a part of a sweep, as plain values; None if there is nothing.
        `is_known` says of a trace that all it will get in this part waits in its handles already.
        """
        return None

    def act_as(self, shard: int, decision: Any) -> None:
        """Be one shard of several, in a process that has no other, and follow what was decided. Said before each part."""

    def replay(self, shard: int, moment: Moment) -> None:
        """Take what a run at `moment` has taken on a shard, elsewhere or before, without doing its work again."""
        for reader in self.reads:
            reader.take(shard)
