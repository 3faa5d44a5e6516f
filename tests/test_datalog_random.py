"""Random Datalog programs agree with naive evaluation, at every epoch, while facts come and go."""

from __future__ import annotations

import random

import pytest
from datalog_programs import BASE, VALUES, RandomProgram
from datalog_twin import evaluate

import tektite as tk
from tektite.datalog.textbook import parse_program

COLUMNS = {1: {"x": tk.Int}, 2: {"x": tk.Int, "y": tk.Int}}


@pytest.mark.parametrize("seed", range(300))
def test_random_programs_agree_with_naive_evaluation(seed: int) -> None:
    program = RandomProgram(seed)
    rng = random.Random(seed)
    text = parse_program(program.text)
    with tk.Engine(workers=1 + seed % 2) as engine:
        inputs = {name: engine.input(name, COLUMNS[n], semantics="set") for name, n in BASE.items()}
        views = dict(zip(program.predicates, engine.datalog(program.text).views(*program.predicates), strict=True))
        facts: dict[str, set[tuple[int, ...]]] = {name: set() for name in BASE}
        for _ in range(4):
            for name, table in inputs.items():
                for _ in range(rng.randint(0, 4)):
                    row = tuple(rng.choice(VALUES) for _ in range(BASE[name]))
                    if row in facts[name]:
                        table.remove([row])
                        facts[name].remove(row)
                    else:
                        table.insert([row])
                        facts[name].add(row)
            engine.advance()
            expected = evaluate(text, facts)
            for name, view in views.items():
                assert sorted(view.rows()) == sorted(expected[name]), f"{name} in\n{program.text}\nfacts {facts}"
