"""Greedy colouring and matching: nodes or edges are taken in their order.

What the algorithm decides of a node or an edge depends on lesser ones alone, so that the equations have one solution, and a loop
comes to it: after round n, the n least of every chain of decisions are right for good.

A maximum matching is not here. It is found by augmenting paths, each of which undoes choices of the last; which maximum comes out
depends on the order of changes, and no equation over the present edges has it as its only solution.
"""

from __future__ import annotations

import tektite as tk
from tektite.graph.graph import Graph, takes_graph


@takes_graph
def colouring(graph: Graph) -> tk.Collection:
    """(node, colour): neighbours have different colours, which are numbers from 0 on. Each node has the least that no lesser
    neighbour has. Directions of edges, and loops from a node to itself, do not count.

    One change of an edge costs the nodes whose colour changes, and their edges: a chain of greater and greater neighbours at
    most.

    >>> import tektite as tk
    >>> from tektite import graph
    >>> engine = tk.Engine()
    >>> borders = graph.Graph.create(engine, "borders", tk.String, directed=False)
    >>> view = engine.install("colours", graph.colouring(borders))
    >>> _ = borders.add_edges([("be", "de"), ("be", "fr"), ("be", "nl"), ("de", "fr"), ("de", "nl")])
    >>> sorted(view.rows())
    [('be', 0), ('de', 1), ('fr', 2), ('nl', 2)]
    """
    zero = graph.nodes.select("node", colour=tk.lit(0))

    def step(colours: tk.Collection) -> tk.Collection:
        lesser = colours.select("node", "colour", lesser="node")
        taken = graph.step(lesser, direction="both").filter(tk.col("lesser") < tk.col("node"))
        taken = taken.select("node", "colour").distinct()
        # The least free colour is 0, or the one behind a colour that is taken.
        possible = zero.concat(taken.select("node", colour=tk.col("colour") + 1))
        return possible.join(taken, on=["node", "colour"], how="anti").min("colour", by="node")

    return zero.iterate(step, name="colouring")


@takes_graph
def maximal_matching(graph: Graph) -> tk.Collection:
    """(src, dst): edges without a common end, to which no further one can be added: those that are taken when edges are
    looked at by (src, dst) and each is taken whose ends are free. Loops from a node to itself are left out. It has at least
    half as many edges as a maximum matching, for which there is no such equation.

    One change of an edge costs the edges that join or leave the matching in some round, and the edges of their ends.

    >>> import tektite as tk
    >>> from tektite import graph
    >>> engine = tk.Engine()
    >>> dances = graph.Graph.create(engine, "dances", tk.String, directed=False)
    >>> view = engine.install("pairs", graph.maximal_matching(dances))
    >>> _ = dances.add_edges([("ann", "bob"), ("ann", "cid"), ("bob", "dan"), ("cid", "dan")])
    >>> sorted(view.rows())
    [('ann', 'bob'), ('cid', 'dan')]
    """
    edges = graph.edges.filter(tk.col("src") != tk.col("dst")).select("src", "dst")
    no_later = (tk.col("src") < tk.col("a")) | ((tk.col("src") == tk.col("a")) & (tk.col("dst") <= tk.col("b")))

    def step(taken: tk.Collection) -> tk.Collection:
        ends = taken.select(node="src", a="src", b="dst").concat(taken.select(node="dst", a="src", b="dst"))
        # An edge is taken unless a lesser one is taken at one of its ends: the least taken edge of each end decides.
        first = ends.bottom_k(1, by=["a", "b"], per="node")
        kept = (
            edges.join(first, left_on="src", right_on="node", how="left")
            .filter(tk.col("a").is_null() | no_later)
            .select("src", "dst")
        )
        kept = kept.join(first, left_on="dst", right_on="node", how="left").filter(tk.col("a").is_null() | no_later)
        return kept.select("src", "dst")

    return edges.iterate(step, name="matching")
