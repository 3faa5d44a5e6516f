"""Shard: one shard of some dataflows, in a process that may have no other.

In each stage,

1. rows are delivered to the buffers of its nodes,
2. it runs the nodes of the stage, and
3. rows that wait for later stages or other shards are collected. Nothing is left waiting.

Promise: its results depend only on its traces, its handles and the delivered rows, not on the order of delivery. `log` and
`minted` record what it did in a stage, in order. Repeating them from the same state leads to the same state. A shard may live
for one stage or for many.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tektite.dataflow.failures import explained
from tektite.dataflow.flow import Dataflow
from tektite.dataflow.graph import Moment, Outbox
from tektite.dataflow.node import Node
from tektite.errors import TektiteError, public_name
from tektite.runtime.shipment import Address
from tektite.runtime.stages import Graph, Stages
from tektite.trace.batch import Batch
from tektite.trace.chunk import Chunk
from tektite.trace.spine import BatchShape

LogEntry = tuple[Any, ...]
"""One action of a shard: ("ran", node), or ("mint", trace, position in `minted`)."""

ShardFailure = tuple[int, str, str]
"""The number of a dataflow that failed, and the class and text of its error."""

Outgoing = tuple[Address, int, Chunk, BatchShape]
"""Where rows wait, the position of their chunk there, the rows, and their shape."""


class OneShard:
    """The workers of a process that has only one shard."""

    has_all_shards = False

    def __init__(self, shard: int) -> None:
        self.shard = shard

    def map(self, work: Callable[[int, Outbox], None], shards: int, rows: int) -> list[Outbox]:
        """Run the work of the only shard."""
        outbox: Outbox = []
        work(self.shard, outbox)
        return [outbox]

    def spread(self, tasks: Sequence[Callable[[], None]]) -> None:
        """Run tasks one after the other."""
        for task in tasks:
            task()


class Shard:
    """One shard of the dataflows of a graph."""

    def __init__(self, graph: Graph, shard: int) -> None:
        self.graph = graph
        self.shard = shard
        self.failed: set[int] = set()
        self.failures: list[ShardFailure] = []
        self.log: list[LogEntry] = []
        self.minted: list[tuple[int, Batch]] = []
        self._numbers = {id(node): number for number, node in enumerate(graph.nodes)}

    def begin(self, stages: Stages, decisions: Mapping[int, Any]) -> None:
        """Prepare for the stages of a part of a sweep."""
        self.stages = stages
        for number in stages.first:
            self.graph.nodes[number].act_as(self.shard, decisions[number])

    def record(self) -> None:
        """Record all batches minted from now on."""
        for number, trace in enumerate(self.graph.traces):
            trace.on_mint = self._recorder(number)

    def _recorder(self, number: int) -> Callable[[int, Batch], None]:
        def note(shard: int, batch: Batch) -> None:
            self.log.append(("mint", number, len(self.minted)))
            self.minted.append((number, batch))

        return note

    def run(self, stage: int) -> None:
        """Run the nodes of a stage and record what they do. If one dataflow fails, the others continue."""
        self.log, self.minted, self.failures = [], [], []
        for number, flow in enumerate(self.graph.flows):
            if number not in self.failed:
                try:
                    self._run_flow(flow, stage)
                except Exception as error:
                    self._fail(number, error)

    def _run_flow(self, flow: Dataflow, stage: int) -> None:
        graph, stages = self.graph, self.stages
        scope = graph.scopes[stages.scopes[graph.number[id(flow)]]]
        moment, level = stages.at(stage)
        for number, first in stages.first.items():
            node = graph.nodes[number]
            if first == level and node.flow is flow and any(reader.handle.waiting() for reader in node.reads):
                scope.schedule(node.position, moment)
        while (found := scope.next(moment[:-1])) is not None:
            member, at = found
            if at != moment:
                break  # later rounds wait for their stages
            active = self._numbers.get(id(member))  # None for a nested scope, which belongs to another part
            if active is not None and stages.active(active, stage):
                self.log.append(("ran", active))
                graph.nodes[active].run(moment)

    def collect(self) -> Iterator[Outgoing]:
        """Remove and return all waiting rows, whichever shard they are for."""
        for number, node in enumerate(self.graph.nodes):
            flow = self.graph.number[id(node.flow)]
            if flow not in self.failed:
                try:
                    yield from _collected(number, node)
                except TektiteError as error:  # a sum that does not fit
                    self._fail(flow, error)

    def _fail(self, number: int, error: Exception) -> None:
        """Record that a dataflow has failed in this shard."""
        found = explained(error, self.graph.flows[number].name)
        self.failures.append((number, public_name(found), Exception.__str__(found)))
        self.failed.add(number)


def _collected(number: int, node: Node) -> Iterator[Outgoing]:
    for place, buffer in enumerate(node.buffers):
        for moment in buffer.moments():
            for shard in range(len(buffer.waiting(moment))):
                address = Address(number, place, moment, shard)
                for part, chunk in enumerate(buffer.gathered(moment, shard)):
                    if chunk.n:
                        yield address, part, chunk, buffer.shape
        buffer.clear()


def deliver(graph: Graph, address: Address, chunk: Chunk) -> None:
    """Put rows into the buffer that they are addressed to, and schedule its node."""
    node = graph.nodes[address.node]
    moment: Moment = address.moment
    node.buffers[address.buffer].put(address.shard, chunk, moment)
    node.scope.schedule(node.position, moment)
