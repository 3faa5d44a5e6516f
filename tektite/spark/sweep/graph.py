"""Graph: dataflows that run together, their nodes and traces by number, and the stage that each node runs in.

The level of a node is the number of exchanges on the longest way to it, over all dataflows together, at one moment: in a stage a
shard needs nothing from other shards but what the stages before have sent. Promise: numbers depend on the dataflows alone, and
whoever rebuilds the graph from a parcel has the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tektite.dataflow.flow import Dataflow
from tektite.dataflow.graph import Moment, Node, Scope
from tektite.dataflow.loop import Variable
from tektite.dataflow.output import Inspect
from tektite.dataflow.pipeline_actions import Action
from tektite.dataflow.pipelines import Pipelines, actions_from
from tektite.trace.trace import Trace


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
        scopes = [scope for flow in flows for scope in _scopes(flow.root)]
        nodes = [member for scope in scopes for member in scope.body if isinstance(member, Node)]
        traces: dict[int, Trace] = {}
        for node in nodes:
            found = [reader.trace for reader in node.reads] + ([] if node.mints is None else [node.mints])
            traces |= {id(trace): trace for trace in found}
        return Graph(flows, scopes, nodes, list(traces.values()))


def _scopes(scope: Scope) -> Iterator[Scope]:
    yield scope
    for member in scope.body:
        if isinstance(member, Scope):
            yield from _scopes(member)


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
        """The stage behind `stage` in which a node runs what waits for it at a moment; None if the job has none."""
        if node not in self.first or moment not in self.moments:
            return None
        begin = self.levels * self.moments.index(moment)
        due = max(begin + self.first[node], stage + 1)
        return due if due <= begin + self.last[node] else None


def stages_of(graph: Graph, scopes: Sequence[Scope], moments: Sequence[Moment], position: int = 0) -> Stages:
    """The stages of one scope of each dataflow, from its node at `position` on, without what a scope nested in it has to run
    before. What shows changes to a function of the driver's runs in the driver, and so does a conjunction that reads several
    shards at once, with what comes behind it.
    """
    after = followers(graph)
    found = [
        number
        for number, node in enumerate(graph.nodes)
        if any(scope in scopes and (scope is not node.scope or reads_all_shards(node)) for scope in enclosing(node))
        and position_within(node, scopes) >= position
    ]
    within = {
        number
        for number, node in enumerate(graph.nodes)
        if node.scope in scopes
        and node.position >= position
        and not isinstance(node, Inspect)
        and not reads_all_shards(node)
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
            last[number] = ready[number] + hops(node)
            for target, step in after[number]:
                ready[target] = max(ready[target], last[number] + step)
    return Stages(tuple(graph.number[id(scope)] for scope in scopes), tuple(moments), first, last)


def enclosing(node: Node) -> Iterator[Scope]:
    """The scopes that a node is in, from the innermost outwards."""
    scope: Scope | None = node.scope
    while scope is not None:
        yield scope
        scope = scope.parent


def position_within(node: Node, scopes: Sequence[Scope]) -> int:
    """The place, in one of some scopes, of what a node is or is in."""
    member: Node | Scope = node
    for scope in enclosing(node):
        if scope in scopes:
            break
        member = scope
    return member.position


def reads_all_shards(node: Node) -> bool:
    """Whether a node can run only where all shards are."""
    return isinstance(node, Pipelines) and node.reads_all_shards


def followers(graph: Graph) -> list[list[tuple[int, int]]]:
    """For each node those that get something from it at the same moment, and by how many exchanges: along an edge, or out of its
    trace. What feeds back is for the next round.
    """
    readers: dict[int, list[int]] = {}
    for number, node in enumerate(graph.nodes):
        for reader in node.reads:
            readers.setdefault(id(reader.trace), []).append(number)
    return [
        [
            (graph.number[id(edge.target)], int(edge.target.routes))
            for edge in node.port.edges
            if not isinstance(edge.target, Variable)
        ]
        + [(reader, 0) for reader in readers.get(id(node.mints), ())]
        for node in graph.nodes
    ]


def actions_of(node: Pipelines) -> list[Action]:
    """The actions of a conjunction in an order that follows from how it is made."""
    return [action for source in node.sources for action in actions_from(source)]


def hops(node: Node) -> int:
    """The exchanges that rows make inside a node."""
    if not isinstance(node, Pipelines):
        return 0
    ways = [list(actions_from(source))[1:] for source in node.sources]
    return max((sum(not action.lookup.settled for action in way) for way in ways), default=0)
