"""Graph: dataflows that run together, their nodes and traces by number, and the stage that each node runs in.

The stage of a node is the number of exchanges on the longest way to it, over all dataflows together: in a stage a shard needs
nothing from other shards but what the stages before have sent. Promise: numbers and stages depend on the dataflows alone, and
whoever rebuilds the graph from a parcel has the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tektite.dataflow.actions import Action
from tektite.dataflow.flow import Dataflow
from tektite.dataflow.graph import Node, Scope
from tektite.dataflow.output import Inspect
from tektite.dataflow.pipelines import Pipelines
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


@dataclass
class Stages:
    """When nodes run, by their numbers: a node runs in the stages from `first` to `last`; one without runs in none."""

    first: dict[int, int] = field(default_factory=dict)
    last: dict[int, int] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """How many stages there are."""
        return max(self.last.values(), default=-1) + 1

    def active(self, node: int, stage: int) -> bool:
        """Whether a node runs in a stage."""
        return node in self.first and self.first[node] <= stage <= self.last[node]


def outermost(graph: Graph) -> Stages:
    """The stages of the nodes that no loop has to run before: those of the outermost scopes that nothing comes to out of a
    loop. What shows changes to a function of the driver's runs in the driver.
    """
    stages = Stages()
    after = followers(graph)
    waiting = {number for number, node in enumerate(graph.nodes) if node.scope.depth}
    found = list(waiting)
    while found:
        new = {target for target, _ in after[found.pop()]} - waiting
        waiting |= new
        found += new
    ready = [0] * len(graph.nodes)
    for number, node in enumerate(
        graph.nodes
    ):  # in an outermost scope, nodes come behind those they get something from
        if number in waiting or isinstance(node, Inspect):
            continue
        stages.first[number] = ready[number]
        stages.last[number] = last = ready[number] + hops(node)
        for target, step in after[number]:
            ready[target] = max(ready[target], last + step)
    return stages


def followers(graph: Graph) -> list[list[tuple[int, int]]]:
    """For each node those that get something from it, and by how many exchanges: along an edge, or out of its trace."""
    readers: dict[int, list[int]] = {}
    for number, node in enumerate(graph.nodes):
        for reader in node.reads:
            readers.setdefault(id(reader.trace), []).append(number)
    return [
        [(graph.number[id(edge.target)], int(edge.target.routes)) for edge in node.port.edges]
        + [(reader, 0) for reader in readers.get(id(node.mints), ())]
        for node in graph.nodes
    ]


def actions_of(node: Pipelines) -> list[Action]:
    """The actions of a conjunction in an order that follows from how it is made."""
    found: list[Action] = []

    def visit(action: Action) -> None:
        if not any(action is known for known in found):
            found.append(action)
            for branch in action.branches:
                if branch.target is not None:
                    visit(branch.target)

    for source in node.sources:
        visit(source)
    return found


def hops(node: Node) -> int:
    """The exchanges that rows make inside a node."""
    if not isinstance(node, Pipelines):
        return 0
    known: dict[int, int] = {}

    def ahead(action: Action) -> int:
        if id(action) not in known:
            targets = [branch.target for branch in action.branches if branch.target is not None]
            known[id(action)] = max((ahead(t) + (not t.lookup.settled) for t in targets), default=0)
        return known[id(action)]

    return max((ahead(source) for source in node.sources), default=0)
