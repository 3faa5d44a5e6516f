"""Graphs of the Datalog experiments: trees, grids and random graphs, from a name such as tree-11, grid-150 or gnp-1000-0.01.

Nodes of trees and grids are numbered so that edges lead from lower to higher numbers. The draws are those of
`benchmarks.workloads.r`, so that every run and every system gets the same edges.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from benchmarks.workloads import r

Edges = NDArray[np.int64]
SEED = 11
FEWEST, MOST = 2, 6
"""Children of an inner node of a tree, as in the data sets of the Datalog systems that the papers compare with."""


def graph(name: str) -> Edges:
    """The edges of a graph by its name, as an array of (from, to).

    >>> graph("grid-1").tolist()
    [[0, 1], [0, 2], [1, 3], [2, 3]]
    """
    kind, *sizes = name.split("-")
    if kind == "tree":
        return tree(int(sizes[0]))
    if kind == "grid":
        return grid(int(sizes[0]))
    if kind == "gnp":
        return random_graph(int(sizes[0]), float(sizes[1]))
    raise ValueError(f"no graph is called {name!r}: tree-HEIGHT, grid-SIDE or gnp-NODES-SHARE")


def tree(height: int) -> Edges:
    """A tree of some height, whose inner nodes have 2 to 6 children each."""
    level = np.zeros(1, np.int64)
    nodes, drawn = 1, 0
    parts = []
    for _ in range(height):
        draws = r(SEED, np.arange(drawn, drawn + len(level), dtype=np.uint64))
        children = (draws % np.uint64(MOST - FEWEST + 1)).astype(np.int64) + FEWEST
        drawn += len(level)
        below = np.arange(nodes, nodes + int(children.sum()), dtype=np.int64)
        parts.append(np.stack([np.repeat(level, children), below], axis=1))
        nodes += len(below)
        level = below
    return np.concatenate(parts) if parts else np.empty((0, 2), np.int64)


def grid(side: int) -> Edges:
    """A square of (side + 1) x (side + 1) nodes, with an edge to the right and one down from each."""
    width = side + 1
    numbers = np.arange(width * width, dtype=np.int64).reshape(width, width)
    right = np.stack([numbers[:, :-1].ravel(), numbers[:, 1:].ravel()], axis=1)
    down = np.stack([numbers[:-1].ravel(), numbers[1:].ravel()], axis=1)
    both = np.concatenate([right, down])
    return both[np.lexsort((both[:, 1], both[:, 0]))]


def random_graph(nodes: int, share: float) -> Edges:
    """Each ordered pair of different nodes is an edge with probability `share`."""
    parts = []
    limit = np.uint64(share * 2.0**64)
    for node in range(nodes):
        draws = r(SEED + 1, np.arange(node * nodes, (node + 1) * nodes, dtype=np.uint64))
        targets = np.flatnonzero(draws < limit)
        targets = targets[targets != node].astype(np.int64)
        parts.append(np.stack([np.full(len(targets), node, np.int64), targets], axis=1))
    return np.concatenate(parts)


def same_generation_graph(name: str, most: int = 50_000_000) -> str:
    """The graph itself, or for a tree whose generations have too many pairs the highest one for which they do not.

    >>> same_generation_graph("tree-11"), same_generation_graph("grid-150")
    ('tree-6', 'grid-150')
    """
    kind, *sizes = name.split("-")
    if kind != "tree":
        return name
    height = int(sizes[0])
    level, nodes, drawn, pairs = 1, 1, 0, 0
    for depth in range(height):
        draws = r(SEED, np.arange(drawn, drawn + level, dtype=np.uint64))
        drawn += level
        level = int((draws % np.uint64(MOST - FEWEST + 1)).sum()) + FEWEST * level
        nodes += level
        pairs += level * (level - 1)
        if pairs > most:
            return f"tree-{depth}"
    return name


def closure_size(edges: Edges) -> int:
    """How many pairs of nodes a path leads between, by rows of bits."""
    nodes = int(edges.max()) + 1
    reached = np.zeros((nodes, (nodes + 7) // 8), np.uint8)
    order = np.lexsort((edges[:, 1], edges[:, 0]))
    sources, targets = edges[order, 0], edges[order, 1]
    starts = np.searchsorted(sources, np.arange(nodes + 1))
    changed = True
    while changed:
        changed = False
        for node in range(nodes - 1, -1, -1):
            near = targets[starts[node] : starts[node + 1]]
            if len(near) == 0:
                continue
            row = np.bitwise_or.reduce(reached[near], axis=0)
            np.bitwise_or.at(row, near >> 3, (1 << (near & 7)).astype(np.uint8))
            if (row & ~reached[node]).any():
                reached[node] |= row
                changed = True
    return int(np.unpackbits(reached).sum())


def same_generation_size(edges: Edges) -> int:
    """How many pairs of nodes are of the same generation, by products of matrices: for graphs of a few thousand nodes."""
    nodes = int(edges.max()) + 1
    matrix = np.zeros((nodes, nodes), np.float32)
    matrix[edges[:, 0], edges[:, 1]] = 1
    found = (matrix.T @ matrix) > 0
    np.fill_diagonal(found, False)
    while True:
        further = found | ((matrix.T @ found.astype(np.float32) @ matrix) > 0)
        if (further == found).all():
            return int(found.sum())
        found = further
