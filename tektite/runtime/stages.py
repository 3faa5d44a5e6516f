"""Stages: numbers the nodes and traces of dataflows that run together, and finds the stage of each node.

The level of a node is the number of exchanges on the longest path to it at one moment, over all dataflows together. In a stage, a
shard needs nothing from other shards but what they sent in earlier stages. Promise: numbers depend only on the dataflows. A graph
unpacked from a shipment has the same numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tektite.dataflow.flow import Dataflow
from tektite.dataflow.graph import Moment, Scope
from tektite.dataflow.node import Node
from tektite.trace.trace import Handle, Trace


class Graph:
    """Dataflows, sources before readers, and everything in them that has a number."""

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
        """Number everything in some dataflows."""
        scopes = [scope for flow in flows for scope in flow.root.scopes()]
        nodes = [node for scope in scopes for node in scope.nodes]
        traces: dict[int, Trace] = {}
        for node in nodes:
            own = () if node.mints is None else (node.mints,)
            found = (*(reader.trace for reader in node.reads), *own, *node.consults())
            traces |= {id(trace): trace for trace in found}
        return Graph(flows, scopes, nodes, list(traces.values()))

    def handles(self) -> list[Handle]:
        """The handles of all nodes, in the order of the nodes."""
        return [reader.handle for node in self.nodes for reader in node.reads]


@dataclass(frozen=True)
class Stages:
    """The assignment of nodes to stages. A stage is one level of one moment, in one scope of each dataflow. At each moment a
    node runs from level `first[number]` to level `last[number]`. A node without levels runs in no stage.
    """

    scopes: tuple[int, ...]
    moments: tuple[Moment, ...]
    first: dict[int, int]
    last: dict[int, int]

    @property
    def levels(self) -> int:
        """The number of stages of one moment."""
        return max(self.last.values(), default=-1) + 1

    @property
    def count(self) -> int:
        """The number of stages."""
        return self.levels * len(self.moments)

    def at(self, stage: int) -> tuple[Moment, int]:
        """The moment and the level of a stage."""
        number, level = divmod(stage, self.levels)
        return self.moments[number], level

    def active(self, node: int, stage: int) -> bool:
        """Whether a node runs in a stage."""
        return node in self.first and self.first[node] <= stage % self.levels <= self.last[node]

    def due(self, node: int, moment: Moment, stage: int) -> int | None:
        """The stage after `stage` in which a node processes rows of a moment; None if there is none."""
        if node not in self.first or moment not in self.moments:
            return None
        begin = self.levels * self.moments.index(moment)
        due = max(begin + self.first[node], stage + 1)
        return due if due <= begin + self.last[node] else None


def stages_of(graph: Graph, scopes: Sequence[Scope], moments: Sequence[Moment], position: int = 0) -> Stages:
    """The stages of one scope of each dataflow, from its node at `position` on. Nodes that depend on a nested scope or on a node
    that runs only in the engine run in no stage.
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
    for number, node in enumerate(graph.nodes):  # in a scope, nodes come after those they depend on
        if number in within - late:
            first[number] = ready[number]
            last[number] = ready[number] + node.hops
            for target, step in after[number]:
                ready[target] = max(ready[target], last[number] + step)
    return Stages(tuple(graph.number[id(scope)] for scope in scopes), tuple(moments), first, last)


def position_within(node: Node, scopes: Sequence[Scope]) -> int:
    """The position of a node, or of the nested scope that it is in, within one of some scopes."""
    member: Node | Scope = node
    for scope in node.scope.enclosing():
        if scope in scopes:
            break
        member = scope
    return member.position


def followers(graph: Graph) -> list[list[tuple[int, int]]]:
    """For each node the nodes that depend on it at the same moment, through an edge or its trace, and the number of exchanges
    between them. Edges into the next round do not count.
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
        + [(graph.number[id(target)], 0) for target in error_nodes(node)]
        for node in graph.nodes
    ]


def error_nodes(node: Node) -> list[Node]:
    """The nodes that receive the errors of a node and of the steps on its edges."""
    origins = [node.errors, *[step.errors for edge in node.port.edges for step in edge.steps]]
    return [origin.node for origin in origins if origin is not None]


def waiting_rows(graph: Graph, stages: Stages) -> int:
    """The number of rows that wait for the nodes of some stages at the first moment. Batches of later epochs belong to later
    sweeps and do not count.
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
    """The decisions that nodes of some stages make for all shards, by number."""
    made = {id(node.mints) for node in graph.nodes if node.mints is not None}
    return {number: graph.nodes[number].decide(lambda trace: id(trace) not in made) for number in stages.first}
