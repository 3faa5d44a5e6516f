"""Topological levels, and whether a graph has a cycle."""

from __future__ import annotations

import tektite as tk
from tektite.graph.graph import Graph, takes_graph


@takes_graph
def levels(graph: Graph) -> tk.Collection:
    """(node, level): the greatest number of edges of a path that ends at the node: every edge leads to a greater level. Nodes
    on a cycle, and those that one leads to, have no level and are left out.

    Tasks of one level can run together once those of all lesser levels are done. One change of an edge costs the nodes whose
    level changes in some round, and their edges.

    >>> import tektite as tk
    >>> from tektite import graph
    >>> engine = tk.Engine()
    >>> tasks = graph.Graph.create(engine, "tasks", tk.String)
    >>> view = engine.install("levels", graph.levels(tasks))
    >>> _ = tasks.add_edges([("parse", "bind"), ("bind", "run"), ("parse", "run")])
    >>> sorted(view.rows())
    [('bind', 1), ('parse', 0), ('run', 2)]
    >>> _ = tasks.add_edges([("run", "bind")])
    >>> sorted(view.rows())
    [('parse', 0)]
    """
    _check_directed(graph, "levels")
    edges, cyclic = graph.edges.select("src", "dst"), _behind_cycles(graph)
    start = graph.nodes.join(cyclic, on="node", how="anti").select("node", level=tk.lit(0))
    inner = edges.join(cyclic, left_on="dst", right_on="node", how="anti")

    def step(found: tk.Collection) -> tk.Collection:
        moved = found.join(inner, left_on="node", right_on="src").select(node="dst", level=tk.col("level") + 1)
        return moved.concat(start).max("level", by="node")

    return start.iterate(step, name="levels")


@takes_graph
def acyclic(graph: Graph) -> tk.Collection:
    """(acyclic): one row that says whether no path leads from a node back to it.

    One change of an edge costs the edges that leave or join the part of the graph that cycles lead to.

    >>> import tektite as tk
    >>> from tektite import graph
    >>> engine = tk.Engine()
    >>> tasks = graph.Graph.create(engine, "tasks")
    >>> view = engine.install("acyclic", graph.acyclic(tasks))
    >>> _ = tasks.add_edges([(1, 2), (2, 3)])
    >>> view.rows()
    [(True,)]
    >>> _ = tasks.add_edges([(3, 1)])
    >>> view.rows()
    [(False,)]
    """
    _check_directed(graph, "acyclic")
    return _behind_cycles(graph).agg(acyclic=tk.count() == 0)


def _behind_cycles(graph: Graph) -> tk.Collection:
    """(node): the nodes that lie on a cycle or behind one. Those that no kept edge leads to are dropped until none is left."""
    edges = graph.edges.select("src", "dst")
    ends = edges.select(node="dst").distinct()

    def step(kept: tk.Collection) -> tk.Collection:
        return kept.join(edges, left_on="node", right_on="src").select(node="dst").distinct()

    return ends.iterate(step, name="behind cycles")


def _check_directed(graph: Graph, verb: str) -> None:
    if not graph.directed:
        raise tk.IncorrectError(f"{verb}: graph {graph.name!r} is undirected; levels need directed edges")
