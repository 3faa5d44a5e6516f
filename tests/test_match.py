"""Conjunctions: what they mean, with every strategy, while their collections change."""

from __future__ import annotations

import datetime
import random
from typing import Any

import pytest
from brute import Bag, Brute, bag
from conjunctions import random_match

import tektite as tk

STRATEGIES = ("binary", "delta", "hector")
each_strategy = pytest.mark.parametrize("strategy", STRATEGIES)


def graph(engine: tk.Engine, name: str = "edges") -> tk.Input:
    return engine.input(name, src=tk.Int, dst=tk.Int)


def answer(engine: tk.Engine, collection: tk.Collection) -> list[tuple[Any, ...]]:
    return sorted(engine.install("answer", collection).rows())


@each_strategy
def test_triangles(strategy: str) -> None:
    engine = tk.Engine()
    edges = graph(engine)
    found = tk.match((edges, ("a", "b")), (edges, ("b", "c")), (edges, ("c", "a")), strategy=strategy)
    view = engine.install("triangles", found)
    edges.insert([(1, 2), (2, 3), (3, 1), (3, 4)])
    engine.advance()
    assert sorted(view.rows()) == [(1, 2, 3), (2, 3, 1), (3, 1, 2)]
    edges.remove([(2, 3)])
    engine.advance()
    assert view.rows() == []


@each_strategy
def test_ignored_columns_add_up_and_multiplicities_multiply(strategy: str) -> None:
    engine = tk.Engine()
    edges, other = graph(engine), graph(engine, "other")
    edges.insert([(1, 2), (1, 2), (1, 3)])
    other.insert([(1, 7), (1, 8)])
    engine.advance()
    assert answer(engine, tk.match((edges, ("a", None)), (other, ("a", None)), strategy=strategy)) == [(1,)] * 6


@each_strategy
def test_literals_and_repeated_variables_select_rows(strategy: str) -> None:
    engine = tk.Engine()
    edges = graph(engine)
    edges.insert([(1, 1), (1, 2), (2, 2), (2, 3), (3, 1)])
    engine.advance()
    found = tk.match((edges, ("a", "a")), (edges, ("a", tk.lit(2))), strategy=strategy)
    assert answer(engine, found) == [(1,), (2,)]


@each_strategy
def test_literals_of_any_type(strategy: str) -> None:
    engine = tk.Engine()
    facts = engine.input("facts", name=tk.String, day=tk.Date, price=tk.Decimal(10, 2), ok=tk.Bool, id=tk.Int)
    day = datetime.date(2024, 5, 1)
    facts.insert(
        [("tea", day, 3, True, 1), ("tea", day, 4, True, 2), ("salt", day, 3, True, 3), ("tea", day, 3, False, 4)]
    )
    engine.advance()
    terms = (tk.lit("tea"), tk.lit(day), tk.lit(3), tk.lit(True), "id")
    assert answer(engine, tk.match((facts, terms), (facts, (None, None, None, None, "id")), strategy=strategy)) == [
        (1,)
    ]


@each_strategy
def test_clauses_that_share_nothing_are_multiplied(strategy: str) -> None:
    engine = tk.Engine()
    edges, other = graph(engine), graph(engine, "other")
    edges.insert([(1, 2), (3, 4)])
    other.insert([(5, 6)])
    engine.advance()
    found = tk.match((edges, ("a", "b")), (other, ("c", "d")), strategy=strategy)
    assert answer(engine, found) == [(1, 2, 5, 6), (3, 4, 5, 6)]


@each_strategy
def test_null_matches_nothing_but_is_kept_where_nothing_is_compared(strategy: str) -> None:
    engine = tk.Engine()
    edges = graph(engine)
    edges.insert([(1, None), (None, 2), (1, 3), (3, None), (None, None)])
    engine.advance()
    hops = tk.match((edges, ("a", "b")), (edges, ("b", "c")), strategy=strategy)
    assert answer(engine, hops) == [(1, 3, None)]
    engine.drop("answer")
    assert answer(engine, tk.match((edges, ("a", "a")), strategy=strategy)) == []


@each_strategy
def test_without_keeps_what_has_no_match(strategy: str) -> None:
    engine = tk.Engine()
    edges, blocked = graph(engine), graph(engine, "blocked")
    hops = tk.match(
        (edges, ("a", "b")),
        (edges, ("b", "c")),
        without=[(blocked, ("a", "c")), (blocked, ("b", None))],
        strategy=strategy,
    )
    view = engine.install("hops", hops)
    edges.insert([(1, 2), (2, 3), (2, 4), (4, 5)])
    blocked.insert([(1, 3), (1, 3)])
    engine.advance()
    assert sorted(view.rows()) == [(1, 2, 4), (2, 4, 5)]
    blocked.remove([(1, 3)])
    blocked.insert([(4, 9)])
    engine.advance()
    assert sorted(view.rows()) == [(1, 2, 4)]
    blocked.remove([(1, 3)])
    engine.advance()
    assert sorted(view.rows()) == [(1, 2, 3), (1, 2, 4)]


@each_strategy
def test_floats_are_compared_as_numbers_and_kept_as_first_written(strategy: str) -> None:
    engine = tk.Engine()
    left = engine.input("left", x=tk.Float, n=tk.Int)
    right = engine.input("right", x=tk.Float, y=tk.Float)
    left.insert([(-0.0, 1), (float("nan"), 2), (1.5, 3), (None, 4)])
    right.insert([(0.0, 0.0), (float("nan"), 1.0), (1.5, 1.5), (None, None)])
    engine.advance()
    for order in ([0, 1], [1, 0]):
        found = tk.match((left, ("x", "n")), (right, ("x", None)), strategy=strategy, order=order)
        assert [str(row) for row in sorted(engine.install("answer", found).rows(), key=lambda row: row[1])] == [
            "(-0.0, 1)",
            "(nan, 2)",
            "(1.5, 3)",
        ]
        engine.drop("answer")
    assert answer(engine, tk.match((right, ("x", "x")), (left, ("x", "n")), strategy=strategy)) == [(0.0, 1), (1.5, 3)]
    engine.drop("answer")
    assert answer(engine, tk.match((left, (tk.lit(0.0), "n")), strategy=strategy)) == [(1,)]
    engine.drop("answer")
    found = tk.match(
        (left, ("x", "n")), without=[(right, (None, "x"))], find=["n"], strategy=strategy, order=["n", "x"]
    )
    assert answer(engine, found) == [(2,), (4,)]


@each_strategy
def test_transitive_closure_by_a_conjunction_of_a_loop(strategy: str) -> None:
    engine = tk.Engine()
    edges = graph(engine)

    def step(reach: tk.Collection) -> tk.Collection:
        longer = tk.match((reach, ("a", "b")), (reach, ("b", "c")), find=["a", "c"], strategy=strategy)
        return longer.concat(edges).distinct()

    view = engine.install("reach", edges.iterate(step))
    edges.insert([(i, i + 1) for i in range(9)])
    engine.advance()
    assert sorted(view.rows()) == [(i, j) for i in range(10) for j in range(i + 1, 10)]
    edges.remove([(4, 5)])
    engine.advance()
    assert sorted(view.rows()) == [(i, j) for i in range(10) for j in range(i + 1, 10) if (i < 5) == (j < 5)]


class Random:
    """A random conjunction over random inputs on one engine, and what its inputs hold."""

    def __init__(self, seed: int, strategy: str, workers: int) -> None:
        rng = random.Random(seed)
        self.engine = tk.Engine(workers=workers)
        self.inputs = [
            self.engine.input("a", x=tk.Int, y=tk.Int),
            self.engine.input("b", x=tk.Int, y=tk.Int, key=["y"]),
            self.engine.input("c", x=tk.Int, y=tk.Int, z=tk.Int),
            self.engine.input("d", x=tk.Int),
        ]
        derived = self.inputs[0].select(x="y", y=(tk.col("x") + 1) % 4)
        pool: list[tk.Collection] = [*self.inputs, self.inputs[0], derived, self.inputs[1].distinct()]
        self.clauses, self.options = random_match(rng, pool)
        self.collection = tk.match(*self.clauses, **self.options, strategy=strategy)
        self.view = self.engine.install("view", self.looped() if rng.random() < 0.3 else self.collection)
        self.contents: dict[Any, Bag] = {source: {} for source in self.inputs}

    def looped(self) -> tk.Collection:
        """The conjunction inside a loop whose variable stands in for the first clause."""
        first, terms = self.clauses[0]
        strategy = self.collection.operator.strategy  # type: ignore[attr-defined]
        names = first.schema.names

        def body(variable: tk.Collection) -> tk.Collection:
            inner = tk.match((variable, terms), *self.clauses[1:], **self.options, strategy=strategy)
            found = inner.schema.names
            shifted = {
                name: (tk.col(found[at % len(found)]) + 1) % 4 if found else tk.lit(at) for at, name in enumerate(names)
            }
            return inner.select(**shifted).concat(first).distinct()

        return first.distinct().iterate(body, limit=200)

    def change(self, rng: random.Random, epoch: int) -> None:
        """Insert and remove a few rows of every input at an epoch."""
        for source in self.inputs:
            there = self.contents[source]
            for _ in range(rng.choice([0, 1, 3, 6])):
                row = tuple(None if rng.random() < 0.06 else rng.randrange(4) for _ in source.schema.names)
                diff = rng.choice([1, 1, 2])
                if there and rng.random() < 0.5:
                    row = rng.choice(sorted(there, key=repr))
                    diff = -rng.randint(1, there[row])
                source.update([row], times=[epoch], diffs=[diff])
                there = bag([*there.items(), (row, diff)])
            self.contents[source] = there


@pytest.mark.parametrize("seed", range(60))
@each_strategy
def test_random_conjunction_equals_brute_force_at_every_epoch(strategy: str, seed: int) -> None:
    workers = 1 + seed % 3
    case = Random(seed, strategy, workers)
    rng = random.Random(-seed)
    changes = case.view.changes()
    expected: list[Bag] = []
    seen: Bag = {}
    epoch = 0
    while epoch < 10:
        sweep = rng.choice([1, 1, 2, 4])
        for e in range(epoch, epoch + sweep):
            case.change(rng, e)
            expected.append(Brute(case.contents).value(case.view.definition))
        epoch += sweep
        case.engine.advance(to=epoch)
        for change in sorted(changes, key=lambda c: c.time):
            seen = bag([*seen.items(), (change.row, change.diff)])
        assert case.view.multiplicities() == expected[-1]
        assert seen == expected[-1]
    case.engine.close()


@pytest.mark.parametrize(
    ("build", "error", "text"),
    [
        (lambda e, f: tk.match(), tk.IncorrectError, "at least one clause"),
        (
            lambda e, f: tk.match((e, ("a",))),
            tk.IncorrectError,
            "clause 0 has 1 terms, but edges has 2 columns: src, dst",
        ),
        (lambda e, f: tk.match(e), tk.IncorrectError, "must be a collection and its terms"),
        (lambda e, f: tk.match((e, "ab")), tk.IncorrectError, "a list of terms"),
        (
            lambda e, f: tk.match((e, ("a", "b")), (f, ("b", None))),
            tk.IncorrectError,
            r"variable 'b' is int in clause 0 \(edges.dst\) and string in clause 1 \(people.name\)",
        ),
        (
            lambda e, f: tk.match((e, ("a", tk.lit("x")))),
            tk.IncorrectError,
            "clause 0, column 'dst' is int, but the literal",
        ),
        (lambda e, f: tk.match((e, ("a", tk.col("x")))), tk.IncorrectError, "put conditions into where"),
        (lambda e, f: tk.match((e, ("a", "b")), find=["aa"]), tk.NotFoundError, "no variable 'aa'"),
        (lambda e, f: tk.match((e, ("a", "b")), find=["a", "a"]), tk.IncorrectError, "twice"),
        (lambda e, f: tk.match((e, ("a", "b")), where=[tk.col("z") > 1]), tk.NotFoundError, "no variable 'z'"),
        (lambda e, f: tk.match((e, ("a", "b")), where=[tk.col("a") + 1]), tk.IncorrectError, "where needs a bool"),
        (
            lambda e, f: tk.match((e, ("a", "b")), without=[(e, ("a", "c"))]),
            tk.IncorrectError,
            "variable 'c' of without",
        ),
        (lambda e, f: tk.match((e, ("a", "b")), strategy="fast"), tk.IncorrectError, "strategy is one of"),
        (lambda e, f: tk.match((e, ("a", "b")), order=[1]), tk.IncorrectError, "order lists every clause"),
    ],
)
def test_mistakes_are_named(build: Any, error: type[tk.TektiteError], text: str) -> None:
    engine = tk.Engine()
    edges, people = graph(engine), engine.input("people", name=tk.String, age=tk.Int)
    with pytest.raises(error, match=text):
        build(edges, people)


def test_explain_names_strategy_order_and_arrangements() -> None:
    engine = tk.Engine()
    edges = graph(engine)
    hops = tk.match((edges, ("a", "b")), (edges, ("b", "c")), strategy="binary")
    text = hops.explain()
    assert "strategy binary" in text
    assert "edges(a, b), edges(b, c)" in text
    assert "edges by (dst): shared, made for this query" in text
    assert len(engine.arrangements()) == 1
    engine.install("hops", hops)
    assert "edges by (dst): shared, there already" in hops.explain()
    assert all(info.readers in ((), ("edges by (dst)", "hops"), ("hops",)) for info in engine.arrangements())
