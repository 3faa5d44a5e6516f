"""Stages: dataflows that run together, their nodes and traces by number, and the stage that each node runs in.

The level of a node is the number of exchanges on the longest way to it, over all dataflows together, at one moment: in a stage a
shard needs nothing from other shards but what the stages before have sent. Promise: numbers depend on the dataflows alone, and
whoever rebuilds the graph from a shipment has the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tektite.dataflow.flow import Dataflow
from tektite.dataflow.graph import Moment, Scope
from tektite.dataflow.node import Node
from tektite.trace.trace import Handle, Trace


class Graph:
    """Dataflows, sources before readers, with everything in them that has a number."""

    def __init__(
        self, flows: Sequence[Dataflow], scopes: Sequence[Scope], nodes: Sequence[Node], traces: Sequence[Trace]
    ) -> None:
        self.flows = list(flows)
        self.scopes = list(scopes)
        self.nodes = list(nodes)
        self.traces = list(traces)
        self.number = {
            id(thing): number
            for things in (self.flows, self.scopes, self.nodes, self.traces)
            for number, thing in enumerate(things)
        }

    @staticmethod
    def of(flows: Sequence[Dataflow]) -> Graph:
        """The graph of some dataflows."""
        scopes = [scope for flow in flows for scope in flow.root.scopes()]
        nodes = [node for scope in scopes for node in scope.nodes]
        traces: dict[int, Trace] = {}
        for node in nodes:
            own = () if node.mints is None else (node.mints,)
            found = (*(reader.trace for reader in node.reads), *own, *node.consults())
            traces |= {id(trace): trace for trace in found}
        return Graph(flows, scopes, nodes, list(traces.values()))

    def handles(self) -> list[Handle]:
        """The handles of all nodes, in the order of these."""
        return [reader.handle for node in self.nodes for reader in node.reads]


@dataclass(frozen=True)
class Stages:
    """When nodes run. In each of some moments, of one scope of each dataflow, nodes run at their levels, by number: from `first`
    to `last`; a node without runs in no stage. A stage is a level of a moment.
    """

    scopes: tuple[int, ...]
    moments: tuple[Moment, ...]
    first: dict[int, int]
    last: dict[int, int]

    @property
    def levels(self) -> int:
        """Stages of one moment."""
        return max(self.last.values(), default=-1) + 1

    @property
    def count(self) -> int:
        """How many stages there are."""
        return self.levels * len(self.moments)

    def at(self, stage: int) -> tuple[Moment, int]:
        """The moment and the level of a stage."""
        number, level = divmod(stage, self.levels)
        return self.moments[number], level

    def active(self, node: int, stage: int) -> bool:
        """Whether a node runs in a stage."""
        return node in self.first and self.first[node] <= stage % self.levels <= self.last[node]

    def due(self, node: int, moment: Moment, stage: int) -> int | None:
        """The stage behind `stage` in which a node runs what waits for it at a moment; None if there is none."""
        if node not in self.first or moment not in self.moments:
            return None
        begin = self.levels * self.moments.index(moment)
        due = max(begin + self.first[node], stage + 1)
        return due if due <= begin + self.last[node] else None


def stages_of(graph: Graph, scopes: Sequence[Scope], moments: Sequence[Moment], position: int = 0) -> Stages:
    """The stages of one scope of each dataflow, from its node at `position` on, without what a scope nested in it has to run
    before. A node that runs only in the engine runs in no stage, and neither does what comes behind it.
    """
    after = followers(graph)
    found = [
        number
        for number, node in enumerate(graph.nodes)
        if any(scope in scopes and (scope is not node.scope or node.engine_only) for scope in node.scope.enclosing())
        and position_within(node, scopes) >= position
    ]
    within = {
        number
        for number, node in enumerate(graph.nodes)
        if node.scope in scopes and node.position >= position and not node.engine_only
    }
    late = set(found)
    while found:
        new = {target for target, _ in after[found.pop()] if target in within} - late
        late |= new
        found += new
    ready = [0] * len(graph.nodes)
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for number, node in enumerate(graph.nodes):  # in a scope, nodes come behind those they get something from
        if number in within - late:
            first[number] = ready[number]
            last[number] = ready[number] + node.hops
            for target, step in after[number]:
                ready[target] = max(ready[target], last[number] + step)
    return Stages(tuple(graph.number[id(scope)] for scope in scopes), tuple(moments), first, last)


def position_within(node: Node, scopes: Sequence[Scope]) -> int:
    """The place, in one of some scopes, of what a node is or is in."""
    member: Node | Scope = node
    for scope in node.scope.enclosing():
        if scope in scopes:
            break
        member = scope
    return member.position


def followers(graph: Graph) -> list[list[tuple[int, int]]]:
    """For each node those that get something from it at the same moment, and by how many exchanges: along an edge, or out of its
    trace. What is for the next round is not among it.
    """
    readers: dict[int, list[int]] = {}
    for number, node in enumerate(graph.nodes):
        for reader in node.reads:
            readers.setdefault(id(reader.trace), []).append(number)
    return [
        [
            (graph.number[id(edge.target)], int(edge.target.routes))
            for edge in node.port.edges
            if not edge.target.for_next_round
        ]
        + [(reader, 0) for reader in readers.get(id(node.mints), ())]
        for node in graph.nodes
    ]


def waiting_rows(graph: Graph, stages: Stages) -> int:
    """How many rows wait for the nodes of some stages at the first moment. What other dataflows have made of later epochs is for
    later sweeps.
    """
    rows = 0
    moment = stages.moments[0] if stages.moments else ()
    for number in stages.first:
        node = graph.nodes[number]
        high = node.flow.high
        rows += sum(
            batch.n
            for reader in node.reads
            for queue in reader.handle.queues
            for batch in queue
            if not reader.imported or batch.lower[0][0] < high
        )
        rows += sum(chunk.n for buffer in node.buffers for chunks in buffer.waiting(moment) for chunk in chunks)
    return rows


def decisions(graph: Graph, stages: Stages) -> dict[int, object]:
    """What the nodes of some stages have to decide alike in all shards, by number."""
    made = {id(node.mints) for node in graph.nodes if node.mints is not None}
    return {number: graph.nodes[number].decide(lambda trace: id(trace) not in made) for number in stages.first}
