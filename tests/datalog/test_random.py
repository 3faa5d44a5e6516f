"""Random Datalog programs, in both syntaxes, agree with naive evaluation at every epoch, while facts come and go."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

import pytest

import tektite as tk
from tektite.datalog.syntax import ir
from tektite.datalog.syntax.textbook import parse_program
from tests.support.datalog_edn import program_in_edn, query_in_edn
from tests.support.datalog_programs import BASE, VALUES, RandomProgram
from tests.support.datalog_twin import Facts, evaluate, every
from tests.support.executors import make_engine
from tests.support.nightly import few_of

pytestmark = pytest.mark.executors

COLUMNS = {1: {"x": tk.Int}, 2: {"x": tk.Int, "y": tk.Int}}


def changing(engine: tk.Engine, rng: random.Random, epochs: int = 4) -> Iterator[Facts]:
    """Insert and remove facts of the base relations; the facts at the end of each epoch."""
    facts: Facts = {name: set() for name in BASE}
    for _ in range(epochs):
        for name in BASE:
            table = engine.table(name)
            for _ in range(rng.randint(0, 4)):
                row = tuple(rng.choice(VALUES) for _ in range(BASE[name]))
                (table.remove if row in facts[name] else table.insert)([row])
                facts[name] ^= {row}
        engine.advance()
        yield facts


@pytest.mark.executors(stages=range(0, 60, 15), spark=[0])
@pytest.mark.parametrize("seed", few_of(range(300), *range(60)))
def test_random_programs_agree_with_naive_evaluation(seed: int) -> None:
    program = RandomProgram(seed)
    text = parse_program(program.text)
    with make_engine(workers=1 + seed % 2) as engine:
        for name, n in BASE.items():
            engine.create_table(name, COLUMNS[n], mode="set")
        views = dict(zip(program.predicates, engine.datalog(program.text).views(*program.predicates), strict=True))
        for facts in changing(engine, random.Random(seed)):
            expected = evaluate(text, facts)
            for name, view in views.items():
                assert sorted(view.rows()) == sorted(expected[name]), f"{name} in\n{program.text}\nfacts {facts}"


@pytest.mark.executors(stages=range(1000, 1040, 20))
@pytest.mark.parametrize("seed", few_of(range(1000, 1200), *range(1000, 1040)))
def test_random_programs_in_edn_agree_with_naive_evaluation_of_the_textbook_text(seed: int) -> None:
    program = RandomProgram(seed, nested=False)
    text = parse_program(program.text)
    written = program_in_edn(text, BASE)
    with make_engine(workers=1 + seed % 2) as engine:
        for name, n in BASE.items():
            engine.attribute(name, tk.Int if n == 2 else None)
        views = dict(zip(program.predicates, engine.datalog(written).views(*program.predicates), strict=True))
        for facts in changing(engine, random.Random(seed)):
            expected = evaluate(text, facts)
            for name, view in views.items():
                assert sorted(view.rows()) == sorted(expected[name]), f"{name} in\n{written}\nfacts {facts}"


@pytest.mark.executors(stages=range(2000, 2030, 15), spark=[2022])
@pytest.mark.parametrize("seed", few_of(range(2000, 2100), *range(2000, 2030)))
def test_random_queries_in_edn_find_a_row_as_often_as_their_clauses_hold(seed: int) -> None:
    program = RandomProgram(seed, layers=1, nested=False)
    rng = random.Random(seed)
    text = parse_program(program.text)
    body = program.body([*BASE, *program.predicates], [*BASE, *program.predicates])[0]
    (asked,) = parse_program(f"asked(0) :- {', '.join(body)}.").rules
    shown = ir.named(ir.body_variables(asked.body))
    shown = tuple(rng.sample(shown, rng.randint(1, len(shown))))
    with make_engine(workers=1 + seed % 2) as engine:
        for name, n in BASE.items():
            engine.attribute(name, tk.Int if n == 2 else None)
        engine.datalog(program_in_edn(text, BASE))
        query = engine.query(query_in_edn(shown, asked.body, BASE))
        for facts in changing(engine, rng):
            everything = evaluate(text, facts)
            wanted = Counter(tuple(b[v] for v in shown) for b in every(asked.body, {}, everything))
            assert query.multiplicities() == wanted, f"{shown} of {asked}\nwhere {program.text}\nfacts {facts}"
