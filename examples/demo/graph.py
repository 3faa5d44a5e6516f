"""A random graph and the stream of its changes: the same in every process that starts from the same seed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.int64]


class Graph:
    """Directed edges, row 0 their sources and row 1 their targets, as they are at the moment.

    A node is drawn as nodes * u² for u uniform in [0, 1): a few hubs, many nodes with an edge or two.
    """

    def __init__(self, nodes: int, edges: int, seed: int) -> None:
        self.nodes = nodes
        self.seed = seed
        self._random = np.random.default_rng(seed)
        self.edges = self._draw(2 * edges, self._random).reshape(2, edges)

    def _draw(self, count: int, random: np.random.Generator) -> Words:
        return (self.nodes * random.random(count) ** 2).astype(np.int64)

    def change(self, changes: int) -> tuple[Words, Words]:
        """Replace half as many edges as there are changes: those that go and those that come."""
        half = max(changes // 2, 1)
        places = self._random.integers(0, self.edges.shape[1], half)
        places = np.unique(places)
        removed = self.edges[:, places]
        inserted = self._draw(2 * len(places), self._random).reshape(2, -1)
        self.edges[:, places] = inserted
        return removed, inserted

    def pick(self, count: int, number: int) -> Words:
        """Nodes to ask about, different ones for each number; hubs more often, as people ask about them more often."""
        return np.unique(self._draw(count, np.random.default_rng((self.seed, number))))


def as_columns(edges: Words) -> dict[str, Words]:
    """Edges as an input takes them."""
    return {"src": edges[0], "dst": edges[1]}
