"""Conjunctions whose matches are only counted: they count what they would list, while rows come and go."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tektite as tk
from tests.support.executors import examples, make_engine

pytestmark = pytest.mark.executors("stages")

TRIANGLE = (("a", "b"), ("b", "c"), ("a", "c"))
SQUARE = (("a", "b"), ("b", "c"), ("c", "d"), ("d", "a"))
BOOK = (("a", "b"), ("b", "c"), ("a", "c"), ("a", "d"), ("b", "d"))
SHAPES = [
    TRIANGLE,
    SQUARE,
    BOOK,
    (("a", "b"), ("b", "a"), ("a", "c"), ("b", "c")),
    (("a", "b"), ("b", None), ("a", "b")),
]


def graph(engine: tk.Engine, name: str = "edges") -> tk.Table:
    return engine.create_table(name, {"src": tk.Int, "dst": tk.Int}, checked=False)


def tally(view: tk.View) -> Counter[Any]:
    """The rows of a view of groups and their counts: without groups of none."""
    return Counter({tuple(row[:-1]): row[-1] for row in view.rows() if row[-1]})


@settings(max_examples=examples(25))
@given(seed=st.integers(0, 2**32 - 1))
def test_counts_are_those_of_the_listed_matches(seed: int) -> None:
    rng = random.Random(seed)
    engine = make_engine(rng.choice([1, 2]), autocommit=False)
    tables = [graph(engine, f"edges {at}") for at in range(rng.choice([1, 1, 2]))]
    shape = rng.choice(SHAPES)
    clauses = [(rng.choice(tables), terms) for terms in shape]
    where = [tk.col("a") != tk.col("b")] if rng.random() < 0.2 else []
    variables = sorted({term for terms in shape for term in terms if term is not None})
    by = rng.sample(variables, rng.randint(0, 2))
    nodes = [None, *range(rng.choice([4, 8, 60]))]
    scale = rng.choice([1, 1, 2**40])

    def install() -> list[tk.View]:
        found = tk.match(*clauses, where=where, joins="hector")
        listed = tk.match(*clauses, where=where, joins="binary")
        counted = found.group_by(*by).agg(many=tk.count()) if by else found.count()
        return [engine.install("counted", counted), engine.install("listed", listed.select(*variables))]

    views = install() if rng.random() < 0.5 else []
    held: list[list[tuple[Any, Any]]] = [[] for _ in tables]
    for _ in range(4):
        first = engine.next_epoch
        for rows, table in zip(held, tables, strict=True):
            for epoch in range(first, first + rng.choice([1, 3])):
                for _ in range(rng.choice([3, 30])):
                    gone = rows.pop(rng.randrange(len(rows))) if rows and rng.random() < 0.4 else None
                    new = tuple(None if word is None else word * scale for word in rng.choices(nodes, k=2))
                    table.update([new if gone is None else gone], diffs=[1 if gone is None else -1], times=[epoch])
                    if gone is None:
                        rows.append(new)
        engine.advance(to=first + 3)
        views = views or install()
        engine.settle()
        counted, listed = views
        wanted = Counter(tuple(row[variables.index(v)] for v in by) for row in listed.rows())
        assert tally(counted) == wanted
    engine.close()


@pytest.mark.parametrize("workers", [1, 2])
def test_a_large_graph_with_hubs(workers: int) -> None:
    """Runs of thousands of neighbours in several batches, whose words are scanned, leapt over and looked up in tables of bits."""
    rng = np.random.default_rng(5)
    engine = make_engine(workers, autocommit=False)
    edges = graph(engine)
    clauses = [(edges, terms) for terms in TRIANGLE]
    total = engine.install("total", tk.match(*clauses, joins="hector").count())
    per_node = engine.install("per node", tk.match(*clauses, joins="hector").group_by("a").agg(many=tk.count()))
    matrix = np.zeros((1_000, 1_000), np.int64)
    for step in range(3):
        src = np.concatenate([rng.integers(0, 1_000, 4_000), np.full(900, step), rng.integers(0, 5, 900)])
        dst = np.concatenate([rng.integers(0, 1_000, 4_900), rng.integers(0, 1_000, 900)])
        edges.insert({"src": src, "dst": dst})
        np.add.at(matrix, (src, dst), 1)
        gone = rng.integers(0, len(src), 500)
        gone = np.unique(gone)
        edges.remove({"src": src[gone], "dst": dst[gone]})
        np.subtract.at(matrix, (src[gone], dst[gone]), 1)
        engine.advance()
        engine.settle()
        wanted = ((matrix.astype(np.float64) @ matrix) * matrix).sum(axis=1).astype(np.int64)
        assert total.rows() == [(int(wanted.sum()),)]
        assert tally(per_node) == Counter({(int(a),): int(wanted[a]) for a in np.flatnonzero(wanted)})
    engine.close()


def test_explain_says_what_is_counted() -> None:
    engine = make_engine()
    edges = graph(engine)
    found = tk.match(*[(edges, terms) for terms in TRIANGLE], joins="hector")
    counted = engine.install("counted", found.count()).explain()
    assert counted.count("    count ") == 3
    assert "extend to" not in counted
    listed = engine.install("listed", found).explain()
    assert listed.count("    extend to ") == 3
    grouped = engine.install("grouped", found.group_by("a").agg(many=tk.count())).explain()
    assert grouped.count("    count ") == 2  # changes of (b, c) have to find a


@pytest.mark.executors("spark")
def test_sql_counts_matches_of_a_cycle() -> None:
    engine = make_engine()
    engine.sql("CREATE TABLE e (src int, dst int)")
    view = engine.sql(
        "CREATE MATERIALIZED VIEW many AS SELECT count(*) FROM e x, e y, e z"
        " WHERE x.dst = y.src AND x.src = z.src AND y.dst = z.dst"
    ).view
    engine.sql("INSERT INTO e VALUES (1, 2), (2, 3), (1, 3), (1, 3), (3, 4)")
    assert view.rows() == [(2,)]
    engine.sql("DELETE FROM e WHERE src = 2")
    assert view.rows() == [(0,)]
