"""Label propagation."""

from __future__ import annotations

import tektite as tk
from tektite.graph.graph import Graph, takes_graph


@takes_graph
def label_propagation(graph: Graph, rounds: int = 5) -> tk.Collection:
    """(node, label): communities. A node begins as its own label. In each of `rounds` rounds, all nodes at once take the
    label that most of their neighbours have, the least of several; a node without neighbours keeps its own. Directions of
    edges do not count.

    Labels may never settle (two neighbours swap theirs for ever), so the number of rounds is given. Every round's labels are
    kept: one change of an edge costs the nodes whose label changes in some round, and their edges.

    >>> import tektite as tk
    >>> from tektite import graph
    >>> engine = tk.Engine()
    >>> friends = graph.Graph.create(engine, "friends", directed=False)
    >>> view = engine.install("labels", graph.label_propagation(friends, rounds=3))
    >>> _ = friends.add_edges([(1, 2), (2, 3), (3, 1), (4, 5), (5, 6), (6, 4), (3, 4)])
    >>> sorted(view.rows())
    [(1, 1), (2, 1), (3, 1), (4, 3), (5, 3), (6, 3)]
    """
    if isinstance(rounds, bool) or not isinstance(rounds, int) or rounds < 1:
        raise tk.IncorrectError(f"label_propagation: rounds is a number from 1 on, not {rounds!r}")
    own = graph.nodes.select("node", label="node", round=tk.lit(0))
    ends = graph.edges.select(node="src").concat(graph.edges.select(node="dst")).distinct()
    alone = graph.nodes.join(ends, on="node", how="anti").select("node", label="node", round=tk.lit(rounds))

    def step(labels: tk.Collection) -> tk.Collection:
        # A round's labels depend on those of the round before alone, so that the loop settles.
        before = labels.filter(tk.col("round") < rounds).with_columns(round=tk.col("round") + 1)
        votes = graph.step(before, direction="both").count(by=["node", "round", "label"], name="votes")
        most = votes.max("votes", by=["node", "round"]).join(votes, on=["node", "round", "votes"])
        chosen = most.select("node", "round", "label").min("label", by=["node", "round"])
        return chosen.select("node", "label", "round").concat(own)

    found = own.iterate(step, name="label propagation")
    return found.filter(tk.col("round") == rounds).concat(alone).select("node", "label")
