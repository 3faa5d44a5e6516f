"""What the benchmarks of joins with many clauses maintain: attributes that are joined on their subject, and a graph whose
triangles are counted. Each strategy has an engine of its own; a method puts one epoch through and returns when the view is
current.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np

import tektite as tk
from benchmarks.workloads import Words, r
from tektite.engine.core import core_of
from tektite.query.match import Joins

SUBJECT_SEED, CHOICE_SEED, RMAT_SEED = 11, 12, 13


class Attributes:
    """A star: `arity` attributes of the same subjects, one value each, joined on the subject. With `declared`, the engine
    is told that each subject has one value; `order` is the order in which clauses are joined.
    """

    def __init__(
        self, arity: int, subjects: int, strategy: str, declared: bool = False, order: Sequence[int] | None = None
    ) -> None:
        self.engine = tk.Engine(autocommit=False)
        options = (
            {"mode": "upsert", "primary_key": "subject"} if declared else {"checked": False, "order_by": "subject"}
        )
        self.parts = [
            self.engine.create_table(f"attribute{at}", {"subject": tk.Int, "value": tk.Int}, **options)
            for at in range(arity)
        ]
        clauses = [(part, ("subject", f"v{at}")) for at, part in enumerate(self.parts)]
        found = tk.match(*clauses, joins=cast(Joins, strategy), order=order)
        self.view = self.engine.install("star", found, keep=False)
        self.declared = declared
        self.subjects = subjects
        self.values = [value_of(at, np.arange(subjects)) for at in range(arity)]

    def load(self) -> None:
        """Insert every attribute of every subject, in one epoch."""
        for part, values in zip(self.parts, self.values, strict=True):
            part.insert({"subject": np.arange(self.subjects), "value": values})
        self.engine.advance()
        self.engine.settle()

    def insert(self, start: int, stop: int) -> None:
        """Insert every attribute of some subjects."""
        for part, values in zip(self.parts, self.values, strict=True):
            part.insert({"subject": np.arange(start, stop), "value": values[start:stop]})
        self.engine.advance()
        self.engine.settle()

    def change(self, epoch: int, size: int) -> None:
        """Give `size` values to subjects and attributes that are chosen at random."""
        drawn = r(CHOICE_SEED, np.arange(2 * epoch * size, 2 * (epoch + 1) * size, dtype=np.uint64))
        chosen = (drawn[:size] % np.uint64(self.subjects)).astype(np.int64)
        attribute = (drawn[size:] % np.uint64(len(self.parts))).astype(np.int64)
        for at, part in enumerate(self.parts):
            subjects = np.unique(chosen[attribute == at])
            new = value_of(at, subjects + (epoch + 1) * self.subjects)
            if self.declared:
                part.insert({"subject": subjects, "value": new})
            else:
                part.remove({"subject": subjects, "value": self.values[at][subjects]})
                part.insert({"subject": subjects, "value": new})
            self.values[at][subjects] = new
        self.engine.advance()
        self.engine.settle()

    def held(self) -> dict[str, int]:
        """Tuples in the arrangements of the attributes, and in those that only this query has."""
        base = sum(info.rows for info in self.engine.indexes() if info.name != "star")
        return {"base_tuples": base, "own_tuples": sum(trace.rows for trace in core_of(self.view).flow.traces)}

    def close(self) -> None:
        self.engine.close()


def value_of(attribute: int, numbers: Words) -> Words:
    """The value with a number, of an attribute: some 10,000 different ones."""
    drawn = r(SUBJECT_SEED + attribute, numbers.astype(np.uint64))
    return (drawn % np.uint64(10_000)).astype(np.int64)


class Triangles:
    """The triangles (a, b), (b, c), (a, c) of a growing graph, counted."""

    def __init__(self, strategy: str, order: Sequence[int] | None, workers: int = 1, installed: bool = True) -> None:
        self.engine = tk.Engine(workers, autocommit=False)
        self.strategy, self.order = strategy, order
        self.edges = self.engine.create_table("edges", {"src": tk.Int, "dst": tk.Int}, checked=False)
        if installed:
            self.install()

    def install(self) -> None:
        """Keep the triangles of what is there, and of what will come, counted."""
        clauses = [(self.edges, ("a", "b")), (self.edges, ("b", "c")), (self.edges, ("a", "c"))]
        found = tk.match(*clauses, joins=cast(Joins, self.strategy), order=self.order)
        self.view = self.engine.install("triangles", found.count())
        self.engine.settle()

    def insert(self, src: Words, dst: Words) -> None:
        """Add some edges."""
        self.edges.insert({"src": src, "dst": dst})
        self.engine.advance()
        self.engine.settle()

    def count(self) -> int:
        rows = self.view.rows()
        return int(rows[0][0]) if rows else 0

    def close(self) -> None:
        self.engine.close()


BLOCK = 1 << 20
"""Edges that are drawn at once: what is made on the way takes little memory beside the edges."""


def rmat_edges(edges: int, scale: int) -> tuple[Words, Words]:
    """Different edges of an R-MAT graph with 2**scale nodes (0.57, 0.19, 0.19, 0.05), in random order."""
    found: Words = np.empty(0, np.int64)
    drawn = 0
    while len(found) < edges:
        more = drawn + max((edges - len(found)) * 5 // 4, 1024)
        blocks = [_drawn_edges(start, min(start + BLOCK, more), scale) for start in range(drawn, more, BLOCK)]
        drawn = more
        # Each edge once, where it first came.
        both = np.concatenate([found, *blocks])
        found = both[np.sort(np.unique(both, return_index=True)[1])]
    return found[:edges] >> scale, found[:edges] & ((1 << scale) - 1)


def _drawn_edges(start: int, stop: int, scale: int) -> Words:
    """Edges number start..stop as they are drawn, some of them equal: both ends in one word."""
    places = np.arange(start, stop, dtype=np.uint64) * np.uint64(scale)
    src, dst = np.zeros(stop - start, np.int64), np.zeros(stop - start, np.int64)
    for level in range(scale):
        at = (r(RMAT_SEED, places + np.uint64(level)) >> np.uint64(11)).astype(np.float64) / 2**53
        src = 2 * src + (at >= 0.76)
        dst = 2 * dst + (((at >= 0.57) & (at < 0.76)) | (at >= 0.95))
    return (src << scale) | dst


def count_triangles(src: Words, dst: Words) -> int:
    """The number of (a, b), (b, c), (a, c), from scratch."""
    from duckdb import connect

    database = connect()
    database.register("given", {"src": src, "dst": dst})
    database.execute("CREATE TABLE edges AS SELECT * FROM given")
    found = database.execute(
        "SELECT count(*) FROM edges x JOIN edges y ON x.dst = y.src JOIN edges z ON z.src = x.src AND z.dst = y.dst"
    ).fetchone()
    return int(found[0]) if found else 0
