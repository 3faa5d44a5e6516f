"""Negations of anything, nested to any depth, mean the same in both syntaxes, and what trying all values says."""

from __future__ import annotations

import os
import random

import pytest
from datalog_formulas import RELATIONS, VALUES, Formula, RandomFormula, edn, holds, textbook

import tektite as tk

FORMULAS = int(os.environ.get("TEKTITE_GOALS", "600"))
TOGETHER = 10
COLUMNS = {1: {"x": tk.Int}, 2: {"x": tk.Int, "y": tk.Int}}


@pytest.mark.parametrize("seed", range(FORMULAS // TOGETHER))
def test_nested_negations_agree_with_trying_all_values(seed: int) -> None:
    check(seed)


def check(seed: int) -> None:
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
    with tk.Engine() as engine:
        facts = {}
        for name, width in RELATIONS.items():
            rows = {tuple(rng.choice(VALUES) for _ in range(width)) for _ in range(rng.randint(0, 3**width))}
            facts[name] = rows
            engine.input(name, COLUMNS[width], semantics="set").insert(sorted(rows))
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
