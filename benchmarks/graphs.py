"""Graphs of the Datalog experiments: trees, grids and random graphs, from a name such as tree-11, grid-150 or gnp-1000-0.01.

Nodes of trees and grids are numbered so that edges lead from lower to higher numbers. The draws are those of
`benchmarks.workloads.r`, so that every run and every system gets the same edges.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from benchmarks.workloads import r

Edges = NDArray[np.int64]
Search = Callable[[Any, Any], int]
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
    """How many pairs of nodes a path leads between: a search from every node."""
    starts, targets = _adjacency(edges)
    return int(_compiled(_reached_pairs)(starts, targets))


def same_generation_size(edges: Edges) -> int:
    """How many pairs of nodes are of the same generation: a search among the pairs, each marked in a table of bits."""
    starts, targets = _adjacency(edges)
    return int(_compiled(_same_generation_pairs)(starts, targets))


def _adjacency(edges: Edges) -> tuple[Edges, Edges]:
    """Where each node's targets begin, and the targets of all nodes."""
    order = np.lexsort((edges[:, 1], edges[:, 0]))
    starts = np.searchsorted(edges[order, 0], np.arange(int(edges.max()) + 2))
    return starts.astype(np.int64), np.ascontiguousarray(edges[order, 1])


@cache
def _compiled(search: Search) -> Search:
    compiled: Any = numba.njit
    found: Search = compiled(search)
    return found


def _reached_pairs(starts: Any, targets: Any) -> int:
    nodes = len(starts) - 1
    seen = np.full(nodes, -1, np.int64)
    stack = np.empty(nodes, np.int64)
    pairs = 0
    for source in range(nodes):
        stack[0] = source
        height = 1
        while height > 0:
            height -= 1
            node = stack[height]
            for e in range(starts[node], starts[node + 1]):
                target = targets[e]
                if seen[target] != source:
                    seen[target] = source
                    pairs += 1
                    stack[height] = target
                    height += 1
    return pairs


def _same_generation_pairs(starts: Any, targets: Any) -> int:
    nodes = len(starts) - 1
    seen = np.zeros((nodes * nodes + 63) // 64, np.uint64)
    stack = np.empty(1 << 20, np.int64)
    height = 0
    pairs = 0
    for root in range(nodes):
        stack[0] = -root - 1  # the first rule: different children of one node
        height = 1
        while height > 0:
            height -= 1
            first = stack[height] < 0
            a = root if first else stack[height] // nodes
            b = root if first else stack[height] % nodes
            for i in range(starts[a], starts[a + 1]):
                for k in range(starts[b], starts[b + 1]):
                    pair = targets[i] * nodes + targets[k]
                    if first and i == k:
                        continue
                    bit = np.uint64(1) << np.uint64(pair & 63)
                    if seen[pair >> 6] & bit == 0:
                        seen[pair >> 6] |= bit
                        pairs += 1
                        if height == len(stack):
                            stack = np.concatenate((stack, np.empty_like(stack)))
                        stack[height] = pair
                        height += 1
    return pairs
