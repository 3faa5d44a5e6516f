"""Negations of anything, nested to any depth, mean the same in both syntaxes, and what trying all values says."""

from __future__ import annotations

import random

import pytest

import tektite as tk
from tests.support.datalog_formulas import RELATIONS, VALUES, Formula, RandomFormula, edn, holds, textbook
from tests.support.executors import make_engine
from tests.support.nightly import SEED, size

FORMULAS = size("TEKTITE_GOALS", 300) // 10
"""A formula is written as three rules and asked for in four ways."""
TOGETHER = 5

pytestmark = pytest.mark.executors

COLUMNS = {1: {"x": tk.Int}, 2: {"x": tk.Int, "y": tk.Int}}


@pytest.mark.executors(stages=[SEED, SEED + 5])
@pytest.mark.parametrize("seed", range(SEED, SEED + FORMULAS // TOGETHER))
def test_nested_negations_agree_with_trying_all_values(seed: int) -> None:
    rng = random.Random(seed)
    formulas: list[Formula] = []
    for _ in range(TOGETHER):
        made = RandomFormula(rng)
        formulas.append(("and", tuple(made.formula(["X", "Y"], rng.randint(1, 3)) for _ in range(2))))
    rules = []
    for number, (_, parts) in enumerate(formulas):
        body = ["a(X, Y)", *(textbook(part, rng) for part in parts)]
        rng.shuffle(body)
        rules.append(f"t{number}(X, Y) :- {', '.join(body)}.")
    patterns = [f"[(e{n} ?X ?Y) (a ?X ?Y) {' '.join(map(edn, parts))}]" for n, (_, parts) in enumerate(formulas)]
    with make_engine() as engine:
        facts = {}
        for name, width in RELATIONS.items():
            rows = {tuple(rng.choice(VALUES) for _ in range(width)) for _ in range(rng.randint(0, 3**width))}
            facts[name] = rows
            engine.create_table(name, COLUMNS[width], mode="set").insert(sorted(rows))
        engine.advance()
        written, read = engine.datalog("\n".join(rules)), engine.datalog("\n".join(patterns))
        for number, formula in enumerate(formulas):
            wanted = sorted((x, y) for x, y in facts["a"] if holds(formula, {"X": x, "Y": y}, facts))
            shown = f"\n{rules[number]}\n{patterns[number]}\n{facts}"
            assert sorted(written[f"t{number}"].rows()) == wanted, shown
            assert sorted(read[f"e{number}"].rows()) == wanted, shown
            found = engine.query(f"[:find ?X ?Y :where (a ?X ?Y) {' '.join(map(edn, formula[1]))}]")
            assert sorted(found.multiplicities().items()) == [(row, 1) for row in wanted], shown
            for strategy in ("goal", "full"):
                goal = engine.query(f"t{number}(1, ?)", strategy=strategy)
                assert sorted(goal.rows()) == [row for row in wanted if row[0] == 1], shown


BODIES = {
    "!((b(x); d(x)))": [3, 4],
    "!(((b(x)); ((d(x)))))": [3, 4],
    "!(b(x), d(x))": [1, 2, 3, 4],
    "!!b(x)": [1],
    "!(!b(x))": [1],
    "!!(b(x); d(x))": [1, 2],
    "!!!((b(x); d(x)))": [3, 4],
    "!((!b(x)), (!d(x)))": [1, 2],
    "!((b(x); d(x)), x < 2)": [2, 3, 4],
    "!(b(y), y > x), !(d(y), y < x)": [],
    "!(y = x + 1, (b(y); d(y)))": [2, 3],
}


@pytest.mark.parametrize(("body", "wanted"), BODIES.items())
def test_anything_in_parentheses_is_negated(body: str, wanted: list[int]) -> None:
    with make_engine() as engine:
        program = engine.datalog(f"""
            a(1).  a(2).  a(3).  a(4).  b(1).  b(5).  d(2).
            r(x) :- {body}, a(x).
            many(count()) :- a(x), ({body}).
        """)
        assert sorted(program["r"].rows()) == [(x,) for x in wanted]
        assert program["many"].rows() == [(len(wanted),)] * bool(wanted)
        assert sorted(engine.query("r(3)").rows()) == [(x,) for x in wanted if x == 3]


def test_alternatives_in_parentheses_count_with_what_the_rest_binds() -> None:
    with make_engine() as engine:
        engine.create_table("a", {"x": tk.Int, "y": tk.Int}, mode="set").insert([(1, 1), (1, 2), (2, 3)])
        engine.create_table("c", {"x": tk.Int}, mode="set").insert([(1,), (3,)])
        engine.advance()
        program = engine.datalog("n(count()) :- a(x, y), ((c(x); c(y)), x < 9).")
        assert program["n"].rows() == [(3,)]
        found = engine.query("[:find ?x ?y :where (or (a ?x ?y) (a ?x ?y)) (and (or (c ?x) [(= ?y 3)]) [(< ?x 9)])]")
        assert sorted(found.rows()) == [(1, 1), (1, 2), (2, 3)]
