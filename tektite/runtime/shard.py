"""Shard: one shard of some dataflows, in a process that need not have any other.

Rows are delivered to the buffers of its nodes, it runs the nodes of a stage, and what then waits at nodes of other stages, or for
other shards, is collected. Promise: what it does depends on its traces, its handles and what was delivered, and on nothing else;
the order in which rows of one node were delivered does not change what they come to. It takes note of what it did in a stage, in
the order in which it did it (`log`, `minted`); whoever takes and mints the same from the same state is where it is. It may live
for one stage or for many: after `collect` nothing waits in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tektite.dataflow.flow import Dataflow, explained
from tektite.dataflow.graph import Moment, Outbox
from tektite.dataflow.node import Node
from tektite.errors import TektiteError
from tektite.runtime.shipment import Address
from tektite.runtime.stages import Graph, Stages
from tektite.storage.batchfile import Shape
from tektite.trace.batch import Batch
from tektite.trace.chunk import Chunk

Entry = tuple[Any, ...]
"""What a shard did: ("ran", node), or ("mint", trace, place in `minted`)."""

Failure = tuple[int, str, str]
"""A dataflow that failed, by its number, with the error's class and text."""

Outgoing = tuple[Address, int, Chunk, Shape]
"""Rows, where they wait, the place of the chunk among those that wait there, and their columns."""


class OneShard:
    """The workers of a process that has one shard of several."""

    def __init__(self, shard: int) -> None:
        self.shard = shard

    def map(self, work: Callable[[int, Outbox], None], shards: int, rows: int) -> list[Outbox]:
        """The outbox of the one shard."""
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
        self.failures: list[Failure] = []
        self.log: list[Entry] = []
        self.minted: list[tuple[int, Batch]] = []
        self._numbers = {id(node): number for number, node in enumerate(graph.nodes)}

    def begin(self, stages: Stages, decisions: Mapping[int, Any]) -> None:
        """Be ready for the stages of a part of a sweep."""
        self.stages = stages
        for number in stages.first:
            self.graph.nodes[number].act_as(self.shard, decisions[number])

    def record(self) -> None:
        """Take note of what is minted from here on."""
        for number, trace in enumerate(self.graph.traces):
            trace.on_mint = self._recorder(number)

    def _recorder(self, number: int) -> Callable[[int, Batch], None]:
        def note(shard: int, batch: Batch) -> None:
            self.log.append(("mint", number, len(self.minted)))
            self.minted.append((number, batch))

        return note

    def run(self, stage: int) -> None:
        """Run the nodes of a stage, taking note of what they do. A dataflow that fails in it fails alone."""
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
                break  # what later rounds have to do waits for their stages
            active = self._numbers.get(id(member))  # None for a scope inside, which is for another part
            if active is not None and stages.active(active, stage):
                self.log.append(("ran", active))
                graph.nodes[active].run(moment)

    def collect(self) -> Iterator[Outgoing]:
        """Take everything that waits, whichever shard it is for."""
        for number, node in enumerate(self.graph.nodes):
            flow = self.graph.number[id(node.flow)]
            if flow not in self.failed:
                try:
                    yield from _collected(number, node)
                except TektiteError as error:  # a sum that does not fit
                    self._fail(flow, error)

    def _fail(self, number: int, error: Exception) -> None:
        """A dataflow has failed in this shard; the others go on."""
        found = explained(error, self.graph.flows[number].name)
        self.failures.append((number, type(found).__name__, Exception.__str__(found)))
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
    """Let rows wait where they are addressed to."""
    node = graph.nodes[address.node]
    moment: Moment = address.moment
    node.buffers[address.buffer].put(address.shard, chunk, moment)
    node.scope.schedule(node.position, moment)
