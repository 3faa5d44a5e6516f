"""Weakly and strongly connected components."""

from __future__ import annotations

from collections.abc import Callable

import tektite as tk
from tektite.graph.graph import Graph, takes_graph

ROUNDS_APART = 256
"""Rounds between labels of k bits and of k + 1: more than most labels travel. A round in which nothing happens costs nothing."""
MOST_ROUNDS = 64 * ROUNDS_APART + 100_000
"""Rounds after which labels that still travel are an error: those in which labels enter, and as many as any loop has."""


@takes_graph
def wcc(graph: Graph) -> tk.Collection:
    """(node, component): for each node the least node that it is connected with, whatever the directions of edges.

    One change of an edge costs the nodes whose least label changes in some round, and their edges: few, unless a component
    that is joined or split has its least node on the other side.

    >>> import tektite as tk
    >>> from tektite import graph
    >>> engine = tk.Engine()
    >>> web = graph.Graph.create(engine, "web")
    >>> view = engine.install("components", graph.wcc(web))
    >>> _ = web.add_edges([(2, 1), (2, 3), (4, 5)])
    >>> sorted(view.rows())
    [(1, 1), (2, 1), (3, 1), (4, 4), (5, 4)]
    >>> _ = web.remove_edges([(2, 1)])
    >>> sorted(view.rows())
    [(2, 2), (3, 2), (4, 4), (5, 4)]
    """
    own = graph.nodes.select("node", component="node")
    return _least(own, lambda labels: graph.step(labels, direction="both"), "wcc")


@takes_graph
def scc(graph: Graph) -> tk.Collection:
    """(node, component): for each node the least node that it reaches and that reaches it. A node on no cycle is its own
    component.

    A loop that holds two loops: each of its rounds drops the edges between nodes to which different least nodes lead,
    forwards and then backwards, until only edges within components are left. One change of an edge costs the labels that
    change in some round of some round. In an undirected graph the components are those of `wcc`.

    >>> import tektite as tk
    >>> from tektite import graph
    >>> engine = tk.Engine()
    >>> web = graph.Graph.create(engine, "web")
    >>> view = engine.install("components", graph.scc(web))
    >>> _ = web.add_edges([(1, 2), (2, 3), (3, 2), (3, 4)])
    >>> sorted(view.rows())
    [(1, 1), (2, 2), (3, 2), (4, 4)]
    >>> _ = web.add_edges([(4, 1)])
    >>> sorted(view.rows())
    [(1, 1), (2, 1), (3, 1), (4, 1)]
    """
    if not graph.directed:
        return wcc(graph)
    forward = graph.edges.select("src", "dst")
    backward = forward.select(src="dst", dst="src")

    def trim(kept: tk.Collection) -> tk.Collection:
        return _within(_within(kept, forward), backward)

    inner = forward.iterate(trim, name="scc")
    own = graph.nodes.select(n="node", label="node")
    # Within a component every node reaches every other, so labels that go forwards come to all of it.
    labels = _least(own, lambda labels: _moved(labels, inner), "scc labels")
    return labels.select(node="n", component="label")


def _least(own: tk.Collection, step: Callable[[tk.Collection], tk.Collection], name: str) -> tk.Collection:
    """(node, label): for each node the least label that comes to it by steps. `own` are labels to begin with.

    Labels of k bits enter in round k * ROUNDS_APART, so that a label goes nowhere that a much smaller one has gone.
    """
    node, label = own.schema.names
    with tk.Loop(name, max_rounds=MOST_ROUNDS) as loop:
        moved = loop.variable("moved", schema=own.schema)
        if own.schema.types[1] == tk.Int:
            own = loop.enter(own, at=tk.col(label).log(2).cast(tk.Int) * ROUNDS_APART)
        labels = moved.concat(own).min(label, by=node)
        moved.set(step(labels))
        return loop.leave(labels)


def _moved(labels: tk.Collection, edges: tk.Collection) -> tk.Collection:
    return labels.join(edges, left_on="n", right_on="src").select(n="dst", label="label")


def _within(kept: tk.Collection, edges: tk.Collection) -> tk.Collection:
    """The edges whose ends get the same least label along those that are kept, turned around."""
    own = edges.select(n="dst", label="dst").distinct()
    labels = _least(own, lambda labels: _moved(labels, kept), "labels")
    both = edges.join(labels, left_on="src", right_on="n").join(labels, left_on="dst", right_on="n")
    return both.filter(tk.col("label") == tk.col("label_right")).select(src="dst", dst="src")
