"""Faults of plans: conjunctions, what plans say of their rows, what they share."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import tektite as tk
from tests.house.mutations.fault import Fault, altered, being, returning


def conjunction(strategy: str, **options: Any) -> tuple[tk.Engine, tk.Table, tk.View]:
    """A triangle of edges, and one that is not closed."""
    engine = tk.Engine(autocommit=False)
    edges = engine.create_table("edges", {"src": tk.Int, "dst": tk.Int})
    clauses = [(edges, ("a", "b")), (edges, ("b", "c")), (edges, ("c", "a"))]
    view = engine.install("view", tk.match(*clauses, joins=strategy, **options))
    edges.insert([(1, 2), (2, 3), (3, 1), (3, 4)])
    engine.advance()
    return engine, edges, view


def a_clause_that_shares_nothing_waits() -> None:
    with tk.Engine(autocommit=False) as engine:
        a, b, c = (engine.create_table(name, {"x": tk.Int, "y": tk.Int}) for name in "abc")
        plan = tk.match((a, ("p", "q")), (b, ("r", "s")), (c, ("q", "r")), joins="binary").explain()
        assert "join a(p, q), c(q, r), b(r, s)" in plan, plan


def a_cycle_is_followed_variable_by_variable() -> None:
    with tk.Engine(autocommit=False) as engine:
        edges = engine.create_table("edges", {"src": tk.Int, "dst": tk.Int})
        plan = tk.match((edges, ("a", "b")), (edges, ("b", "c")), (edges, ("c", "a"))).explain()
        assert "hector" in plan, plan


def only_what_nothing_needs_is_counted() -> None:
    with tk.Engine(autocommit=False) as engine:
        edges = engine.create_table("edges", {"src": tk.Int, "dst": tk.Int})
        clauses = [(edges, ("a", "b")), (edges, ("b", "c")), (edges, ("a", "c"))]
        ends = tk.match(*clauses, where=[tk.col("b") < tk.col("c")], joins="hector").group_by("a").agg(n=tk.count())
        view = engine.install("view", ends)
        edges.insert([(1, 2), (2, 3), (1, 3), (1, 0), (2, 0)])
        engine.advance()
        assert view.rows() == [(1, 1)]


def conditions_hold_in_every_strategy() -> None:
    for strategy in ("binary", "delta", "hector"):
        engine, _, view = conjunction(strategy, where=[tk.col("a") < tk.col("c")])
        with engine:
            assert sorted(view.rows()) == [(1, 2, 3)], strategy


def constants_select_rows() -> None:
    with tk.Engine(autocommit=False) as engine:
        edges = engine.create_table("edges", {"src": tk.Int, "dst": tk.Int})
        view = engine.install("view", tk.match((edges, (1, "b")), (edges, ("b", "c"))))
        edges.insert([(1, 2), (2, 3), (3, 1)])
        engine.advance()
        assert view.multiplicities() == {(2, 3): 1}


def a_negated_clause_takes_away_once() -> None:
    with tk.Engine(autocommit=False) as engine:
        a, b = engine.create_table("a", {"x": tk.Int}), engine.create_table("b", {"x": tk.Int, "y": tk.Int})
        view = engine.install("view", tk.match((a, ("x",)), without=[(b, ("x", None))]))
        a.insert([(1,), (2,)])
        b.insert([(1, 1), (1, 2)])
        engine.advance()
        assert view.multiplicities() == {(2,): 1}


def a_bag_takes_away_once() -> None:
    with tk.Engine(autocommit=False) as engine:
        a, b = engine.create_table("a", {"x": tk.Int}), engine.create_table("b", {"x": tk.Int})
        view = engine.install("view", tk.match((a, ("x",)), without=[(b, ("x",))], joins="binary"))
        a.insert([(1,), (2,)])
        b.insert([(1,), (1,)])
        engine.advance()
        assert view.multiplicities() == {(2,): 1}


def projections_that_differ_are_not_shared() -> None:
    with tk.Engine(autocommit=False) as engine:
        a = engine.create_table("a", {"x": tk.Int, "y": tk.Int})
        one = engine.install("one", a.select(n="x").index_by("n").count(by="n"))
        two = engine.install("two", a.select(n="y").index_by("n").count(by="n"))
        a.insert([(1, 2)])
        engine.advance()
        assert (one.rows(), two.rows()) == ([(1, 1)], [(2, 1)])


def a_filter_over_an_arrangement_filters() -> None:
    with tk.Engine(autocommit=False) as engine:
        a, b = engine.create_table("a", {"x": tk.Int, "y": tk.Int}), engine.create_table("b", {"x": tk.Int})
        kept = a.index_by("x").filter(tk.col("y") > 1)
        view = engine.install("view", tk.match((kept, ("x", "y")), (b, ("x",)), (b, ("y",)), order=[0, 1, 2]))
        a.insert([(1, 1), (1, 2)])
        b.insert([(1,), (2,)])
        engine.advance()
        assert view.multiplicities() == {(1, 2): 1}


CONJUNCTIONS = "tektite.plan.conjunctions"
FAULTS = [
    Fault("clauses are joined as they are written", f"{CONJUNCTIONS}.order connected",
          being(lambda bound, clauses, left, where, exact: list(left)), a_clause_that_shares_nothing_waits),
    Fault("every conjunction is a tree", f"{CONJUNCTIONS}.strategy is_cyclic", returning(False),
          a_cycle_is_followed_variable_by_variable),
    Fault("every variable is counted that two relations have", f"{CONJUNCTIONS}.pipelines _Planner._counted",
          being(lambda self, steps: [replace(step, action=replace(step.action, counted=True)) for step in steps]),
          only_what_nothing_needs_is_counted),
    Fault("predicates are never due", f"{CONJUNCTIONS}.clauses take_due",
          lambda there: lambda waiting, bound: there(waiting, bound) and [], conditions_hold_in_every_strategy),
    Fault("constants select nothing", f"{CONJUNCTIONS}.clauses conditions", returning([]), constants_select_rows),
    Fault("a negated clause excludes as often as it matches", f"{CONJUNCTIONS}.clauses keys_of",
          altered(lambda keys: getattr(keys, "input", keys)), a_negated_clause_takes_away_once),
    Fault("every relation is a set", "tektite.plan.unique unique_columns", lambda there: lambda operator: (0,),
          a_bag_takes_away_once),
    Fault("projections are all the same", "tektite.plan.algebra Project.parameters", returning(()),
          projections_that_differ_are_not_shared),
    Fault("filters over arrangements are lost", "tektite.plan.look_through look_through",
          altered(lambda found: (*found[:2], None)), a_filter_over_an_arrangement_filters),
]  # fmt: skip
