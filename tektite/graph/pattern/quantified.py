"""Edges with a quantifier, such as `->*` and `-[e IS Knows]->{1,3}`: pairs of nodes, each once, that a walk of so many edges
leads between.

The edges that must be there are steps of the dataflow. Any number of edges is a loop, which starts at the nodes that the
pattern allows at one end, not at all nodes.
"""

from __future__ import annotations

import tektite as tk
from tektite.graph.pattern.syntax import Quantifier


def walked(starts: tk.Collection, edges: tk.Collection, quantifier: Quantifier) -> tk.Collection:
    """(start, end): `starts` has the column start, `edges` src and dst."""

    def step(pairs: tk.Collection) -> tk.Collection:
        return pairs.join(edges, left_on="end", right_on="src").select("start", end="dst")

    reached = starts.select("start", end="start").distinct()
    for _ in range(quantifier.least):
        reached = step(reached).distinct()
    if quantifier.most is None:
        first = reached
        return first.iterate(lambda pairs: step(pairs).concat(first).distinct(), name="pattern")
    ends = [reached]
    for _ in range(quantifier.most - quantifier.least):
        ends.append(step(ends[-1]).distinct())
    return ends[0].concat(*ends[1:]).distinct() if len(ends) > 1 else reached
