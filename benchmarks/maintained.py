"""The standing computations that several benchmarks measure: a count per key, a shared index to join with, distances.

Each is an engine with its inputs and one view, loaded in one epoch, with a method that puts one epoch through. A method
returns when the view is current: its time covers input, computation and output.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar, cast

import numpy as np

import tektite as tk
from benchmarks.workloads import (
    VALUE_SEED,
    Words,
    bfs_edges,
    bfs_epoch,
    count_epoch,
    count_keys,
    join_epochs,
    join_keys,
    r,
)
from tektite.engine.engine import Merging

Work = TypeVar("Work")
Name = TypeVar("Name")

BLOCK = 1 << 20
"""Rows generated at a time: a generator's temporaries stay small beside what is measured."""


LEAST, MOST = 101, 20_000
"""How many epochs a closed loop runs: as many as a 99th percentile needs, and not more than its plot can use."""


def closed_loop(make: Callable[[int], list[Work]], size: int, seconds: float) -> Iterator[Work]:
    """Epochs of one size for about `seconds`. `make` makes a number of them, which is even, so that single updates
    come in pairs. They are made in blocks, so that making them is not between two that are measured.
    """
    block = max(min(2_000, 1_000_000 // size), 2)
    done, start = 0, time.perf_counter()
    while done < LEAST or (done < MOST and time.perf_counter() - start < seconds):
        for work in make(block // 2 * 2):
            yield work
            done += 1


def turns(names: Iterable[Name], rounds: int) -> Iterator[tuple[int, Name]]:
    """(round, name) in an order that favours nobody: every other round runs backwards, because whoever comes first in
    a round may pay for what all use, such as memory that the system hands out for the first time.

    >>> list(turns("ab", 2))
    [(0, 'a'), (0, 'b'), (1, 'b'), (1, 'a')]
    """
    ordered = list(names)
    for round in range(rounds):
        for name in reversed(ordered) if round % 2 else ordered:
            yield round, name


class WrongAnswer(Exception):
    """A benchmark found that what it measured is not right."""


def all_count_keys(keys: int, start: int, stop: int) -> Words:
    """`count_keys` without temporaries of the result's size."""
    found = np.empty(stop - start, np.int64)
    for at in range(start, stop, BLOCK):
        end = min(at + BLOCK, stop)
        found[at - start : end - start] = count_keys(keys, at, end)
    return found


class Counts:
    """**count**: how many records each key has. `view=False` maintains the arrangement of the records alone;
    with `history=False` not even that: batches are formed and forgotten. With `keep=False` the counts come out as
    changes alone and removals are trusted, which is what differential-dataflow's count does.
    """

    def __init__(
        self,
        keys: int,
        workers: int = 1,
        merging: str = "default",
        view: bool = True,
        history: bool = True,
        keep: bool = True,
    ) -> None:
        self.keys = keys
        self.engine = tk.Engine(workers, merging=cast(Merging, merging), autocommit=False)
        self.keep = keep
        self.records = self.engine.create_table(
            "records", {"k": tk.Int}, mode="stream" if not history else "bag", checked=keep
        )
        self.view: tk.View | None = None
        if not history:
            self.view = self.engine.install("batches", self.records, keep=False)
        elif view:
            self.view = self.engine.install("counts", self.records.count(by="k"), keep=keep)
        self.loaded = 0
        self.swapped = 0

    def load(self, keys: Words) -> None:
        """Insert the first records; `keys` are theirs."""
        self.records.insert(keys)
        self._finish()
        self.loaded = len(keys)

    def epochs(self, size: int, count: int) -> list[tuple[Words, Words]]:
        """(keys, diffs) of the next epochs: each inserts size / 2 new records and removes the oldest ones."""
        found = [count_epoch(self.keys, self.loaded, size, epoch, self.swapped) for epoch in range(count)]
        self.swapped += size * count // 2
        return found

    def update(self, keys: Words, diffs: Words) -> None:
        """Put one epoch through."""
        self.records.update(keys, diffs=diffs)
        self._finish()

    def _finish(self) -> None:
        self.engine.advance()
        if self.view is not None:
            self.engine.finish(self.view)

    def check(self) -> None:
        """Compare the whole answer with a recount; without a view, the one that the arrangement's history gives."""
        view = self.view or self.engine.install("check", self.records.count(by="k"))
        expected = np.bincount(all_count_keys(self.keys, self.swapped, self.swapped + self.loaded), minlength=self.keys)
        table = view.snapshot()
        if view is not self.view:
            view.drop()
        got = np.zeros(self.keys, np.int64)
        got[table["k"].to_numpy()] = table["count"].to_numpy()
        if table.num_rows != np.count_nonzero(expected) or not np.array_equal(got, expected):
            raise WrongAnswer(f"the counts add up to {got.sum()} instead of {expected.sum()}, or belong to other keys")

    def close(self) -> None:
        """Stop the engine."""
        self.engine.close()


class Joined:
    """**join**: an index of `rows` rows with some small epochs on top; queries come and go."""

    def __init__(self, rows: int, workers: int = 1, merging: str = "default") -> None:
        self.rows = rows
        self.engine = tk.Engine(workers, merging=cast(Merging, merging), autocommit=False)
        self.index = self.engine.create_table("index", {"k": tk.Int, "v": tk.Int}, order_by="k")
        # A stream: the keys of earlier queries are not kept for later ones.
        self.wanted = self.engine.create_table("wanted", {"k": tk.Int}, mode="stream")
        self.asked = 0
        for keys, values in join_epochs(rows):
            self.index.insert(np.stack([keys, values], axis=1))
            self.engine.advance()
        self.engine.settle()

    def keys(self, size: int) -> Words:
        """The keys of the next query."""
        start = self.asked
        self.asked += size
        return join_keys(self.rows, start, self.asked)

    def install(self, keys: Words) -> tk.View:
        """Build and install a query, give it its keys, and have its output complete."""
        view = self.engine.install("query", self.wanted.join(self.index, on="k"))
        self.wanted.insert(keys)
        self.engine.advance()
        self.engine.finish(view)
        return view

    def check(self, view: tk.View, keys: Words) -> None:
        """Compare a query's answer with what the index holds for its keys."""
        table = view.snapshot()
        got = np.stack([table["k"].to_numpy(), table["v"].to_numpy()])
        expected = np.stack([np.sort(keys), _values(np.sort(keys))])
        if got.shape != expected.shape or not np.array_equal(got[:, np.lexsort(got[::-1])], expected):
            raise WrongAnswer(f"the join of {len(keys)} keys has {got.shape[1]} rows, or wrong ones")

    def close(self) -> None:
        """Stop the engine."""
        self.engine.close()


def _values(keys: Words) -> Words:
    return r(VALUE_SEED, keys.astype(np.uint64)).view(np.int64)


class Distances:
    """**bfs**: the distance of every node that can be reached from node 0."""

    def __init__(self, nodes: int, workers: int = 1, merging: str = "default") -> None:
        self.nodes = nodes
        self.engine = tk.Engine(workers, merging=cast(Merging, merging), autocommit=False)
        self.edges = self.engine.create_table("edges", {"src": tk.Int, "dst": tk.Int}, order_by="src")
        self.roots = self.engine.create_table("roots", {"node": tk.Int})
        start = self.roots.with_columns(distance=tk.lit(0))

        def step(reached: tk.Collection) -> tk.Collection:
            further = reached.join(self.edges, left_on="node", right_on="src")
            longer = further.select(node="dst", distance=tk.col("distance") + 1)
            return longer.concat(start).min("distance", by="node")

        self.view = self.engine.install("distances", start.iterate(step, name="bfs"))
        self.roots.insert([(0,)])
        self.engine.advance()
        self.loaded = 0
        self.swapped = 0

    def load(self, edges: Words) -> None:
        """Insert the first edges, an array of (src, dst)."""
        self.loaded = len(edges)
        self.update(edges, np.ones(len(edges), np.int64))

    def epochs(self, swaps: int, count: int) -> list[tuple[Words, Words]]:
        """(edges, diffs) of the next epochs: each inserts and removes `swaps` edges."""
        found = []
        for epoch in range(count):
            src, dst, diffs = bfs_epoch(self.nodes, self.loaded, swaps, epoch, self.swapped)
            found.append((np.stack([src, dst], axis=1), diffs))
        self.swapped += swaps * count
        return found

    def update(self, edges: Words, diffs: Words) -> None:
        """Put one epoch through."""
        self.edges.update(edges, diffs=diffs)
        self.engine.advance()
        self.engine.finish(self.view)

    def check(self) -> None:
        """Compare the whole answer with a breadth-first search over the edges that are there."""
        expected = distances(self.nodes, *bfs_edges(self.nodes, self.swapped, self.swapped + self.loaded))
        table = self.view.snapshot()
        got = np.full(self.nodes, -1, np.int64)
        got[table["node"].to_numpy()] = table["distance"].to_numpy()
        if table.num_rows != np.count_nonzero(expected >= 0) or not np.array_equal(got, expected):
            raise WrongAnswer(f"{np.count_nonzero(got != expected)} of {self.nodes} distances are wrong")

    def close(self) -> None:
        """Stop the engine."""
        self.engine.close()


def edge_array(nodes: int, stop: int) -> Words:
    """The first edges as an array of (src, dst), made without temporaries of its size."""
    found = np.empty((stop, 2), np.int64)
    for at in range(0, stop, BLOCK):
        end = min(at + BLOCK, stop)
        found[at:end, 0], found[at:end, 1] = bfs_edges(nodes, at, end)
    return found


def distances(nodes: int, src: Words, dst: Words) -> Words:
    """How far each node is from node 0; -1 where there is no way.

    >>> distances(4, np.array([0, 1, 3]), np.array([1, 2, 0])).tolist()
    [0, 1, 2, -1]
    """
    order = np.argsort(src, kind="stable")
    targets = dst[order]
    starts = np.searchsorted(src[order], np.arange(nodes + 1))
    found = np.full(nodes, -1, np.int64)
    found[0] = 0
    front = np.zeros(1, np.int64)
    distance = 0
    while len(front):
        distance += 1
        counts = starts[front + 1] - starts[front]
        begins = np.repeat(starts[front] - np.concatenate([[0], np.cumsum(counts)[:-1]]), counts)
        reached = np.unique(targets[begins + np.arange(counts.sum())])
        front = reached[found[reached] < 0]
        found[front] = distance
    return found
