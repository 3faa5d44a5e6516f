"""Faults of Datalog: strata, safety, normal form, magic, records, choices."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

import tektite as tk
from tektite.datalog.syntax import ir
from tektite.datalog.syntax.textbook import parse_program
from tests.house.mutations.fault import Fault, altered, misled, nothing, returning
from tests.support.datalog_twin import evaluate

EDGES = [(1, 2), (2, 3), (3, 1), (4, 5), (5, 5)]
PROGRAM = """
    tc(x, y) :- edge(x, y).
    tc(x, z) :- tc(x, y), edge(y, z).
    apart(x, y) :- edge(x, _), edge(_, y), !tc(x, y).
    degree(x, n) :- edge(x, _), n = count : { edge(x, _) }.
    either(x) :- edge(x, 2); edge(x, 5), x != 5.
    equal(x, y) :- edge(x, z), edge(w, y), z = w.
    lonely(x) :- edge(x, y), !(edge(y, z), z != x).
"""


def graph(text: str) -> tk.Engine:
    engine = tk.Engine(autocommit=False)
    engine.create_table("edge", {"x": tk.Int, "y": tk.Int}, mode="set").insert(EDGES)
    engine.advance()
    engine.datalog(text)
    return engine


def programs_agree_with_naive_evaluation() -> None:
    with graph(PROGRAM) as engine:
        facts: dict[str, set[Any]] = {"edge": set(EDGES)}
        rng = random.Random(1)
        predicates = ("tc", "apart", "degree", "either", "equal", "lonely")
        places = ("?, ?", "?, ?", "?, ?", "?", "?, ?", "?")
        views = {name: engine.query(f"{name}({asked})") for name, asked in zip(predicates, places, strict=True)}
        for _ in range(4):
            expected = evaluate(parse_program(PROGRAM), facts)
            for name, view in views.items():
                assert sorted(view.rows()) == sorted(expected[name]), name
            row = (rng.randrange(1, 6), rng.randrange(1, 6))
            (engine.table("edge").remove if row in facts["edge"] else engine.table("edge").insert)([row])
            facts["edge"] ^= {row}
            engine.advance()


def goals_are_the_full_answer_filtered() -> None:
    with graph(PROGRAM) as engine:
        full = engine.query("tc(?, ?)").rows()
        for start in range(1, 6):
            assert sorted(engine.query(f"tc({start}, ?)", strategy="goal").rows()) == sorted(
                r for r in full if r[0] == start
            )
            assert sorted(engine.query(f"apart({start}, ?)").rows()) == sorted(
                row for row in engine.query("apart(?, ?)").rows() if row[0] == start
            )


def equal_variables_are_one() -> None:
    """They make a join, and no product that is filtered."""
    with graph("q(x) :- edge(x, _).") as engine:
        program = engine.datalog("p(x, y) :- edge(x, z), edge(w, y), z = w.")
        assert "join edge(x, z), edge(z, y)" in program.explain("p", joins=True)


def a_negation_of_itself_is_refused() -> None:
    with tk.Engine(autocommit=False) as engine:
        engine.create_table("node", {"x": tk.Int})
        with pytest.raises(tk.IncorrectError, match="depends on"):
            engine.datalog("win(x) :- node(x), !win(x).")


def a_variable_without_values_is_refused() -> None:
    with tk.Engine(autocommit=False) as engine:
        engine.create_table("node", {"x": tk.Int})
        with pytest.raises(tk.IncorrectError, match="not bound"):
            engine.datalog("p(x, y) :- node(x), !node(y).").view("p")


def a_least_value_cannot_get_worse() -> None:
    with tk.Engine(autocommit=False) as engine:
        engine.create_table("edge", {"x": tk.Int, "y": tk.Int, "c": tk.Int})
        with pytest.raises(tk.UnsupportedError):
            engine.datalog("d(y, min(c)) :- edge(1, y, c). d(y, min(c)) :- d(x, e), edge(x, y, f), c = f - e.").view(
                "d"
            )


def shortest_paths() -> None:
    with tk.Engine(autocommit=False) as engine:
        engine.create_table("edge", {"x": tk.Int, "y": tk.Int, "c": tk.Int}, mode="set").insert(
            [(1, 2, 5), (2, 3, 1), (1, 3, 9)]
        )
        engine.advance()
        program = engine.datalog("d(y, min(c)) :- edge(1, y, c). d(y, min(c)) :- d(x, e), edge(x, y, f), c = e + f.")
        assert sorted(program.view("d").rows()) == [(2, 5), (3, 6)]


def facts_are_counted_once() -> None:
    with tk.Engine(autocommit=False) as engine:
        engine.create_table("edge", {"x": tk.Int, "y": tk.Int}).insert([(1, 2), (1, 2), (1, 3)])
        engine.advance()
        assert engine.datalog("start(x) :- edge(x, y).").view("start").multiplicities() == {(1,): 1}


def records_and_choices_are_as_in_souffle() -> None:
    text = """
        .type T = One { x: number } | Two { x: number, y: number }
        .decl t(t: T)   .decl best(x: number, y: number) choice-domain x   .decl same(x: number, y: number) eqrel
        t($Two(x, y)) :- edge(x, y).   t($One(x)) :- edge(x, 5).
        two(x, y) :- t($Two(x, y)).
        best(1, x) :- edge(x, _).   best(x, y) :- best(_, x), edge(x, y).
        same(x, y) :- edge(x, y).
        some(x) :- x = range(1, 10, 4).
        most(x, y) :- edge(x, y).   most(a, b) <= most(c, d) :- a <= c, b <= d.
    """
    with graph(text) as engine:
        assert sorted(engine.view("two").rows()) == EDGES
        assert sorted(engine.view("best").rows()) == [(1, 1)]
        assert len(engine.view("same").rows()) == 13
        assert sorted(engine.view("some").rows()) == [(1,), (5,), (9,)]
        assert engine.view("most").rows() == [(5, 5)]


RULES = "tektite.datalog.rules"
FAULTS = [
    Fault("negations may lead back to themselves", f"{RULES}.strata check", nothing, a_negation_of_itself_is_refused),
    Fault("nothing is recursive", f"{RULES}.strata is_recursive", returning(False), programs_agree_with_naive_evaluation),
    Fault("variables need no values", f"{RULES}.safety check", nothing, a_variable_without_values_is_refused),
    Fault("least values may get worse", f"{RULES}.monotone check", nothing, a_least_value_cannot_get_worse),
    Fault("of alternatives the first counts", f"{RULES}.normal_form Normaliser.alternatives", altered(lambda found: found[:1]),
          programs_agree_with_naive_evaluation),
    Fault("a group is negated by its first part", f"{RULES}.normal_form Normaliser._guarded",
          altered(lambda body: body[:1]), programs_agree_with_naive_evaluation),
    Fault("equal variables are not joined", f"{RULES}.unify equated",
          returning(None), equal_variables_are_one),
    Fault("goals pass on what they do not", f"{RULES}.magic passes_on", returning(True), goals_are_the_full_answer_filtered),
    Fault("rules say nothing twice", "tektite.datalog.evaluate.evaluation Evaluation.is_set", returning(True),
          facts_are_counted_once),
    Fault("the least is the greatest", "tektite.datalog.evaluate.evaluation improve",
          misled(lambda every, columns, kind: (every, columns, "max")), shortest_paths),
    Fault("records have no fields", "tektite.expr.record_text fields_of", returning([]), records_and_choices_are_as_in_souffle),
    Fault("every candidate is chosen", "tektite.datalog.evaluate.kept_rows least_of",
          misled(lambda rows, domain: (rows, rows.schema.names[:-1])), records_and_choices_are_as_in_souffle),
    Fault("equivalence takes one step", "tektite.datalog.evaluate.program with_closures",
          altered(lambda text: replace(text, rules=text.rules[:-2])), records_and_choices_are_as_in_souffle),
    Fault("nothing is subsumed", f"{RULES}.subsumption removal",
          altered(lambda rule: replace(rule, body=(*rule.body, ir.Comparison("=", ir.Constant(0), ir.Constant(1))))),
          records_and_choices_are_as_in_souffle),
]  # fmt: skip
