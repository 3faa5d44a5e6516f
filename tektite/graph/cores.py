"""k-cores: what is left of a graph when nodes with few neighbours are removed again and again."""

from __future__ import annotations

import tektite as tk
from tektite.graph.graph import Graph, takes_graph


@takes_graph
def k_core(graph: Graph, k: int) -> tk.Collection:
    """(node): the nodes of the largest part of the graph in which each has at least `k` edges, whatever their directions.
    Loops from a node to itself do not count.

    One change of an edge costs the edges that leave or join the core in some round. A change that holds a large core together may
    cost all of it.

    >>> import tektite as tk
    >>> from tektite import graph
    >>> engine = tk.Engine()
    >>> friends = graph.Graph.create(engine, "friends", directed=False)
    >>> view = engine.install("core", graph.k_core(friends, 2))
    >>> _ = friends.add_edges([(1, 2), (2, 3), (3, 1), (3, 4), (4, 5)])
    >>> sorted(view.rows())
    [(1,), (2,), (3,)]
    >>> _ = friends.add_edges([(5, 3)])
    >>> sorted(view.rows())
    [(1,), (2,), (3,), (4,), (5,)]
    """
    if isinstance(k, bool) or not isinstance(k, int) or k < 1:
        raise tk.IncorrectError(f"k_core: k is a number of edges from 1 on, not {k!r}")
    pairs = graph.edges.filter(tk.col("src") != tk.col("dst")).select("src", "dst")
    # An edge there and back is two edges between the same nodes.
    pairs = pairs.concat(pairs.select(src="dst", dst="src"))

    def many(kept: tk.Collection) -> tk.Collection:
        return kept.count(by="src").filter(tk.col("count") >= k).select(node="src")

    def step(kept: tk.Collection) -> tk.Collection:
        nodes = many(kept)
        from_core = pairs.join(nodes, left_on="src", right_on="node", how="semi")
        return from_core.join(nodes, left_on="dst", right_on="node", how="semi")

    return many(pairs.iterate(step, name="k_core"))
