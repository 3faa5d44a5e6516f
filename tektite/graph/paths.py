"""Reachability, breadth-first search and shortest paths, from all sources together or from each of them."""

from __future__ import annotations

import tektite as tk
from tektite.graph.graph import Direction, Graph, takes_graph


@takes_graph
def reach(graph: Graph, sources: tk.Collection, *, direction: Direction = "out", each: bool = False) -> tk.Collection:
    """(node): the nodes that a path leads to from some source, sources included; with `each`, (source, node).

    `sources` is a collection whose first column is a node. One change of an edge costs the nodes that become reachable, or whose
    least number of edges from a source changes, and their edges.

    >>> import tektite as tk
    >>> from tektite import graph
    >>> engine = tk.Engine()
    >>> web = graph.Graph.create(engine, "web")
    >>> roots = engine.create_table("roots", {"node": tk.Int}, mode="set")
    >>> view = engine.install("reached", graph.reach(web, roots))
    >>> _ = web.add_edges([(1, 2), (2, 3), (4, 5)]), roots.insert([(1,)])
    >>> sorted(view.rows())
    [(1,), (2,), (3,)]
    >>> _ = web.remove_edges([(2, 3)])
    >>> sorted(view.rows())
    [(1,), (2,)]
    """
    start = _start(graph, sources, each, "reach")

    def step(reached: tk.Collection) -> tk.Collection:
        moved = graph.step(reached, direction=direction)
        return moved.concat(start).distinct()

    return start.iterate(step, name="reach")


@takes_graph
def bfs(
    graph: Graph,
    sources: tk.Collection,
    *,
    direction: Direction = "out",
    each: bool = False,
    most: int | None = None,
) -> tk.Collection:
    """(node, distance): the least number of edges to each node from its nearest source; with `each`, (source, node, distance)
    from every source. With `most`, only up to this distance.

    One change of an edge costs the nodes whose distance changes, and their edges.

    >>> import tektite as tk
    >>> from tektite import graph
    >>> engine = tk.Engine()
    >>> web = graph.Graph.create(engine, "web")
    >>> roots = engine.create_table("roots", {"node": tk.Int}, mode="set")
    >>> view = engine.install("distances", graph.bfs(web, roots))
    >>> _ = web.add_edges([(1, 2), (2, 3), (1, 3)]), roots.insert([(1,)])
    >>> sorted(view.rows())
    [(1, 0), (2, 1), (3, 1)]
    >>> _ = web.remove_edges([(1, 3)])
    >>> sorted(view.rows())
    [(1, 0), (2, 1), (3, 2)]
    """
    start = _start(graph, sources, each, "bfs").with_columns(distance=tk.lit(0))
    keys = [name for name in start.schema.names if name != "distance"]

    def step(nodes: tk.Collection) -> tk.Collection:
        near = nodes if most is None else nodes.filter(tk.col("distance") < most)
        moved = graph.step(near, direction=direction).select(*keys, distance=tk.col("distance") + 1)
        return moved.concat(start).min("distance", by=keys)

    return start.iterate(step, name="bfs")


@takes_graph
def sssp(graph: Graph, sources: tk.Collection, *, direction: Direction = "out", each: bool = False) -> tk.Collection:
    """(node, distance): the least sum of weights of a path to each node from its nearest source; with `each`, (source, node,
    distance) from every source.

    Weights are 0 or more: while an edge that is less is used, reading the result raises an error that names it. One change of an
    edge costs the nodes whose distance changes in some round, and their edges.

    >>> import tektite as tk
    >>> from tektite import graph
    >>> engine = tk.Engine()
    >>> roads = graph.Graph.create(engine, "roads", tk.String, weight=tk.Int, directed=False)
    >>> start = engine.create_table("start", {"town": tk.String}, mode="set")
    >>> view = engine.install("distances", graph.sssp(roads, start))
    >>> _ = roads.add_edges([("Bonn", "Koblenz", 60), ("Koblenz", "Trier", 110), ("Bonn", "Trier", 145)])
    >>> _ = start.insert([("Trier",)])
    >>> sorted(view.rows())
    [('Bonn', 145), ('Koblenz', 110), ('Trier', 0)]
    >>> _ = roads.add_edges([("Bonn", "Trier", 200)])
    >>> sorted(view.rows())
    [('Bonn', 170), ('Koblenz', 110), ('Trier', 0)]
    """
    if not graph.weighted:
        raise tk.IncorrectError(
            f"sssp: graph {graph.name!r} has no weights; name their column with weight=, or use bfs, which counts edges"
        )
    weight = graph.edges.schema.types[graph.edges.schema.index("weight")]
    start = _start(graph, sources, each, "sssp").with_columns(distance=tk.lit(0, weight))
    keys = [name for name in start.schema.names if name != "distance"]
    # An error is a row as others are: it goes when the edge goes, and it is there only if the edge is used.
    negative = tk.lit("negative weight").cast(weight)
    longer = tk.when(tk.col("weight") < 0).then(negative).otherwise(tk.col("distance") + tk.col("weight"))

    def step(nodes: tk.Collection) -> tk.Collection:
        moved = graph.step(nodes, direction=direction, weight=True).select(*keys, distance=longer.cast(weight))
        return moved.concat(start).min("distance", by=keys)

    return start.iterate(step, name="sssp")


def _start(graph: Graph, sources: tk.Collection, each: bool, verb: str) -> tk.Collection:
    """The sources that are nodes, each in its own row; with `each`, beside their name as a source."""
    given = graph.checked_sources(sources, verb)
    there = given.join(graph.nodes, on="node", how="semi")
    return there.select(source="node", node="node") if each else there
