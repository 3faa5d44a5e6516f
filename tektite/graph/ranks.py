"""PageRank in exact integers: equal answers for equal graphs, whatever the order of changes and the number of workers.

A rank is a number of units of `tolerance`. The equations are those of PageRank with every edge's share rounded down to a
whole unit. Rounding down keeps them monotone: from zero, ranks only grow, round by round, to the least solution, which is
exact. It lies below the real one, by at most (edges / (1 - damping)) units in all.
"""

from __future__ import annotations

from fractions import Fraction

import tektite as tk
from tektite.graph.graph import Graph, takes_graph


@takes_graph
def pagerank(graph: Graph, damping: float = 0.85, tolerance: float = 1e-6) -> tk.Collection:
    """(node, rank): how often a random walk is at each node, which follows an edge with probability `damping` and otherwise
    begins again anywhere. Ranks are 1 on average where every node has an edge; divide them by their sum for probabilities.

    rank = (1 - damping) + damping * (sum over edges to the node of the source's rank / the source's number of edges), where
    each term is rounded down to a multiple of `tolerance`. Divided by the sum, this is the rank of systems that let a walk
    jump anywhere from a node without edges, such as NetworkX, up to edges * tolerance / (1 - damping) over all nodes
    together.

    There is no term for the number of nodes, so that one change of an edge costs the nodes whose rank changes by a unit in some
    round: those near it. It converges in about log(tolerance) / log(damping) rounds.

    >>> import tektite as tk
    >>> from tektite import graph
    >>> engine = tk.Engine()
    >>> web = graph.Graph.create(engine, "web")
    >>> view = engine.install("ranks", graph.pagerank(web, tolerance=0.001))
    >>> _ = web.add_edges([(1, 2), (2, 1), (3, 1)])
    >>> sorted(view.rows())
    [(1, 1.454), (2, 1.385), (3, 0.15)]
    """
    share, units = _damping(damping), _units(tolerance)
    start = graph.nodes.select("node", rank=tk.lit(int((1 - share) * units)))
    found = _ranks(graph, start, ["node"], share)
    return found.select("node", rank=tk.col("rank").cast(tk.Float) / float(units))


@takes_graph
def personalised_pagerank(
    graph: Graph, sources: tk.Collection, damping: float = 0.85, tolerance: float = 1e-6
) -> tk.Collection:
    """(source, node, rank): how often a random walk is at each node that follows an edge with probability `damping` and otherwise
    begins again at the source. One answer for each node of `sources`, from one dataflow.

    Ranks of a source add up to at most 1; what is less than `tolerance` is left out, so that a source costs at most 1 /
    (tolerance * (1 - damping)) nodes, however large the graph is. Rounding is that of `pagerank`. One change of an edge costs
    the sources whose walks come by it.

    >>> import tektite as tk
    >>> from tektite import graph
    >>> engine = tk.Engine()
    >>> web = graph.Graph.create(engine, "web")
    >>> asked = engine.create_table("asked", {"node": tk.Int}, mode="set")
    >>> view = engine.install("ranks", graph.personalised_pagerank(web, asked, tolerance=0.001))
    >>> _ = web.add_edges([(1, 2), (2, 1), (3, 1)]), asked.insert([(3,)])
    >>> sorted(view.rows())
    [(3, 1, 0.454), (3, 2, 0.385), (3, 3, 0.15)]
    """
    share, units = _damping(damping), _units(tolerance)
    there = graph.checked_sources(sources, "personalised_pagerank").join(graph.nodes, on="node", how="semi")
    start = there.select(source="node", node="node", rank=tk.lit(int((1 - share) * units)))
    found = _ranks(graph, start, ["source", "node"], share)
    return found.select("source", "node", rank=tk.col("rank").cast(tk.Float) / float(units))


def _ranks(graph: Graph, start: tk.Collection, keys: list[str], damping: Fraction) -> tk.Collection:
    """The least solution of: the rank of a key is that of the start, and the shares that neighbours pass on."""
    steps = graph.edges.select(node="src")
    if not graph.directed:
        steps = steps.concat(graph.edges.filter(tk.col("src") != tk.col("dst")).select(node="dst"))
    degrees = steps.count(by="node", name="edges")
    part = tk.col("rank") * damping.numerator // (tk.col("edges") * damping.denominator)

    def step(ranks: tk.Collection) -> tk.Collection:
        # A share is computed once for each node, and moved along all its edges.
        shares = ranks.join(degrees, on="node").select(*keys, rank=part).filter(tk.col("rank") > 0)
        moved = graph.step(shares)
        return moved.concat(start).group_by(keys).agg(rank=tk.sum("rank"))

    return start.iterate(step, name="pagerank")


def _damping(damping: float) -> Fraction:
    if isinstance(damping, bool) or not isinstance(damping, int | float) or not 0 <= damping < 1:
        raise tk.IncorrectError(f"pagerank: damping is a number from 0 to less than 1, not {damping!r}")
    return Fraction(damping).limit_denominator(1000)


def _units(tolerance: float) -> int:
    if isinstance(tolerance, bool) or not isinstance(tolerance, int | float) or not 1e-9 <= tolerance <= 0.1:
        raise tk.IncorrectError(f"pagerank: tolerance is a number from 1e-9 to 0.1, not {tolerance!r}")
    return round(1 / tolerance)
