"""Neighbours, degrees, and neighbourhoods of k hops."""

from __future__ import annotations

import tektite as tk
from tektite.graph.graph import Direction, Graph, takes_graph
from tektite.graph.paths import bfs


@takes_graph
def neighbours(graph: Graph, direction: Direction = "out") -> tk.Collection:
    """(node, neighbour): the pairs of nodes that an edge leads between. In an undirected graph each edge gives two pairs.

    It is kept in no index of its own. One change of an edge costs one or two rows.

    >>> import tektite as tk
    >>> from tektite import graph
    >>> engine = tk.Engine()
    >>> friends = graph.Graph.create(engine, "friends", tk.String, directed=False)
    >>> view = engine.install("neighbours", graph.neighbours(friends))
    >>> _ = friends.add_edges([("bob", "ann")])
    >>> sorted(view.rows())
    [('ann', 'bob'), ('bob', 'ann')]
    """
    check_direction(direction)
    along = graph.edges.select(node="src", neighbour="dst")
    against = graph.edges.select(node="dst", neighbour="src")
    if graph.directed and direction != "both":
        return along if direction == "out" else against
    both = along.concat(against)
    return both if not graph.directed and not graph.self_loops else both.distinct()


@takes_graph
def degree(graph: Graph, direction: Direction = "out") -> tk.Collection:
    """(node, degree): how many edges begin at each node (out), end there (in), or either (both, and always in an undirected
    graph). A node without edges has 0. A loop from a node to itself counts at both ends.

    One change of an edge costs two rows, whatever the degrees are.

    >>> import tektite as tk
    >>> from tektite import graph
    >>> engine = tk.Engine()
    >>> web = graph.Graph.create(engine, "web")
    >>> view = engine.install("degrees", graph.degree(web))
    >>> _ = web.add_edges([(1, 2), (1, 3)])
    >>> sorted(view.rows())
    [(1, 2), (2, 0), (3, 0)]
    >>> _ = web.remove_edges([(1, 3)])
    >>> sorted(view.rows())
    [(1, 1), (2, 0)]
    """
    check_direction(direction)
    ends = []
    if direction != "in" or not graph.directed:
        ends.append(graph.edges.select(node="src", degree=tk.lit(1)))
    if direction != "out" or not graph.directed:
        ends.append(graph.edges.select(node="dst", degree=tk.lit(1)))
    return graph.nodes.select("node", degree=tk.lit(0)).concat(*ends).group_by("node").agg(degree=tk.sum("degree"))


@takes_graph
def k_hop(graph: Graph, sources: tk.Collection, k: int, direction: Direction = "out") -> tk.Collection:
    """(source, node, distance): the nodes within `k` edges of each source, the source itself at distance 0.

    One change of an edge costs the part of the neighbourhoods that it lies in, and a new source costs its own neighbourhood.

    >>> import tektite as tk
    >>> from tektite import graph
    >>> engine = tk.Engine()
    >>> web = graph.Graph.create(engine, "web")
    >>> asked = engine.create_table("asked", {"node": tk.Int}, mode="set")
    >>> view = engine.install("near", graph.k_hop(web, asked, 2))
    >>> _ = web.add_edges([(1, 2), (2, 3), (3, 4)]), asked.insert([(1,)])
    >>> sorted(view.rows())
    [(1, 1, 0), (1, 2, 1), (1, 3, 2)]
    """
    if isinstance(k, bool) or not isinstance(k, int) or k < 0:
        raise tk.IncorrectError(f"k_hop: k is a number of edges from 0 on, not {k!r}")
    return bfs(graph, sources, direction=direction, each=True, most=k)


def check_direction(direction: str) -> None:
    """Raise if this is no direction."""
    if direction not in ("out", "in", "both"):
        raise tk.IncorrectError(f"direction is out, in or both, not {direction!r}")
