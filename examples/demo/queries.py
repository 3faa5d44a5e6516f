"""The queries that arrive and leave, and when.

Each kind is a function from the edges and the nodes that are asked about to a collection. Nothing in it knows
whether its edges are shared.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import tektite as tk
from tektite import Collection, col, lit


@dataclass(frozen=True)
class Kind:
    """A kind of query, and about how many nodes it asks."""

    name: str
    nodes: int
    build: Callable[[Collection, Collection], Collection]


@dataclass(frozen=True)
class Query:
    """One query, by its name, with the epochs at which it arrives and leaves."""

    name: str
    kind: int
    number: int
    arrives: int
    leaves: int


def step(found: Collection, edges: Collection, start: str = "src", end: str = "dst") -> Collection:
    """One hop on from each pair (node, at)."""
    return found.join(edges, on=("at", start)).select("node", at=end)


def followers(edges: Collection, nodes: Collection) -> Collection:
    """How many edges lead to each node."""
    return nodes.join(edges, on=("node", "dst")).count(by="node")


def mutual(edges: Collection, nodes: Collection) -> Collection:
    """How many of its neighbours have an edge back to the node."""
    near = step(nodes.select("node", at="node"), edges).distinct()
    return near.join(edges, on=[("at", "src"), ("node", "dst")]).count(by="node")


def two_hops_out(edges: Collection, nodes: Collection) -> Collection:
    """How many nodes each node gets to in two steps."""
    near = step(nodes.select("node", at="node"), edges)
    return step(near, edges).distinct().count(by="node")


def two_hops_in(edges: Collection, nodes: Collection) -> Collection:
    """From how many nodes each node can be got to in two steps."""
    near = step(nodes.select("node", at="node"), edges, "dst", "src")
    return step(near, edges, "dst", "src").distinct().count(by="node")


def three_hops(edges: Collection, nodes: Collection) -> Collection:
    """How many nodes lie within three steps of each node."""
    one = step(nodes.select("node", at="node"), edges).distinct()
    two = step(one, edges).distinct()
    return one.concat(two, step(two, edges)).distinct().count(by="node")


def triangles(edges: Collection, nodes: Collection) -> Collection:
    """How many triangles node → a → b, node → b each node begins."""
    two = step(step(nodes.select("node", at="node"), edges), edges)
    return two.join(edges, on=[("node", "src"), ("at", "dst")]).count(by="node")


def common_neighbours(edges: Collection, nodes: Collection) -> Collection:
    """How many neighbours each two of the nodes have in common."""
    near = step(nodes.select("node", at="node"), edges).distinct()
    pairs = near.join(near.select("at", other="node"), on="at").filter(col("node") < col("other"))
    return pairs.count(by=["node", "other"])


def distances(edges: Collection, nodes: Collection) -> Collection:
    """How many nodes lie at each distance from the nearest of the nodes: a loop over the whole graph."""
    start = nodes.select("node", distance=lit(0))

    def further(found: Collection) -> Collection:
        longer = found.join(edges, on=("node", "src")).select(node="dst", distance=col("distance") + 1)
        return longer.concat(start).min("distance", by="node")

    return start.iterate(further, name="distances").count(by="distance")


def top_targets(edges: Collection, nodes: Collection) -> Collection:
    """The ten nodes that most edges lead to."""
    return edges.count(by="dst").top(10, order_by="count", descending=True)


KINDS = (
    Kind("two hops out", 8, two_hops_out),
    Kind("triangles", 32, triangles),
    Kind("followers", 32, followers),
    Kind("common neighbours", 32, common_neighbours),
    Kind("distances", 1, distances),
    Kind("two hops in", 8, two_hops_in),
    Kind("three hops", 2, three_hops),
    Kind("mutual edges", 32, mutual),
    Kind("top ten in-degree", 0, top_targets),
)


def schedule(queries: int, epochs: int) -> list[Query]:
    """Queries of all kinds in turn: the last arrives after four fifths of the epochs, each stays for half of them."""
    found = []
    for number in range(queries):
        kind = number % len(KINDS)
        arrives = number * epochs * 4 // (5 * queries)
        found.append(
            Query(f"{KINDS[kind].name} #{number // len(KINDS) + 1}", kind, number, arrives, arrives + epochs // 2)
        )
    return found


def install(engine: tk.Engine, query: Query, edges: Collection, nodes: Collection) -> tk.View:
    """Install a query over some edges."""
    return engine.install(query.name, KINDS[query.kind].build(edges, nodes))
