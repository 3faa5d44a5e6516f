"""Triangles and clustering coefficients, by worst-case optimal joins."""

from __future__ import annotations

import tektite as tk
from tektite.graph.graph import Graph, takes_graph


@takes_graph
def triangles(graph: Graph) -> tk.Collection:
    """(a, b, c): three nodes with an edge between any two, whatever the directions of edges; each triangle once, a < b < c.

    Maintained by worst-case optimal joins: one change of an edge costs the smaller of its ends' numbers of neighbours, and
    nothing is kept but indexes of edges.

    >>> import tektite as tk
    >>> from tektite import graph
    >>> engine = tk.Engine()
    >>> friends = graph.Graph.create(engine, "friends", directed=False)
    >>> view = engine.install("triangles", graph.triangles(friends))
    >>> _ = friends.add_edges([(1, 2), (3, 2), (3, 1), (3, 4), (2, 4)])
    >>> sorted(view.rows())
    [(1, 2, 3), (2, 3, 4)]
    """
    pairs = _low_to_high(graph)
    return tk.match((pairs, ("a", "b")), (pairs, ("b", "c")), (pairs, ("a", "c")), find=["a", "b", "c"], joins="hector")


@takes_graph
def clustering(graph: Graph) -> tk.Collection:
    """(node, triangles, clustering): how many triangles each node is part of, and which share of the pairs of its neighbours are
    neighbours themselves: 0 where there are fewer than two. Directions of edges do not count.

    One change of an edge costs what `triangles` costs, and the rows of the nodes of these triangles.

    >>> import tektite as tk
    >>> from tektite import graph
    >>> engine = tk.Engine()
    >>> friends = graph.Graph.create(engine, "friends", directed=False)
    >>> view = engine.install("clustering", graph.clustering(friends))
    >>> _ = friends.add_edges([(1, 2), (2, 3), (3, 1), (3, 4)])
    >>> [(node, many, round(share, 3)) for node, many, share in sorted(view.rows())]
    [(1, 1, 1.0), (2, 1, 1.0), (3, 1, 0.333), (4, 0, 0.0)]
    """
    found, edges = triangles(graph), _low_to_high(graph)
    corners = [found.select(node=corner, t=tk.lit(1), d=tk.lit(0)) for corner in ("a", "b", "c")]
    ends = [edges.select(node=end, t=tk.lit(0), d=tk.lit(1)) for end in ("src", "dst")]
    own = graph.nodes.select("node", t=tk.lit(0), d=tk.lit(0))
    sums = own.concat(*corners, *ends).group_by("node").agg(triangles=tk.sum("t"), degree=tk.sum("d"))
    pairs = tk.col("degree") * (tk.col("degree") - 1)
    share = tk.when(pairs > 0).then(2.0 * tk.col("triangles").cast(tk.Float) / pairs.cast(tk.Float)).otherwise(0.0)
    return sums.select("node", "triangles", clustering=share)


def _low_to_high(graph: Graph) -> tk.Collection:
    """Each pair of neighbours once, from the lesser to the greater."""
    if not graph.directed and not graph.self_loops:
        return graph.edges.select("src", "dst")
    src, dst = tk.col("src"), tk.col("dst")
    pairs = graph.edges.filter(src != dst).select(src=tk.least(src, dst), dst=tk.greatest(src, dst)).distinct()
    return pairs.index_by("src", title=f"pairs of {graph.name}")
