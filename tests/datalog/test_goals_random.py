"""Random goals of random programs equal naive evaluation after every epoch, by every strategy and every way to join.

TEKTITE_GOALS sets how many goals there are (300), TEKTITE_SEED where the seeds start.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import pytest

import tektite as tk
from tektite.datalog.syntax.textbook import parse_program
from tests.support.datalog_twin import Facts, evaluate
from tests.support.executors import make_engine
from tests.support.goal_programs import BASE, VALUES, GoalProgram
from tests.support.nightly import SEED, size

GOALS = size("TEKTITE_GOALS", 300)
Rounds = tuple[tuple[int, int], ...]
ROUNDS: Rounds = ((2, 4), (4, 4), (0, 6))
"""In each epoch, goals that are asked before it and stay for a while, and goals that are asked after it and go."""
FEW_ROUNDS: Rounds = ((1, 1), (0, 1))
TOGETHER = sum(map(sum, ROUNDS))
"""Goals of one program."""
STRATEGIES = ("auto", "goal", "goal", "full")
JOINS = ("auto", "auto", "binary", "delta", "hector")
COLUMNS = {1: {"x": tk.Int}, 2: {"x": tk.Int, "y": tk.Int}}

pytestmark = pytest.mark.executors

Row = tuple[Any, ...]


def answers(terms: tuple[str, ...], row: Row, given: dict[str, set[int]]) -> bool:
    """Whether a fact is an answer of a goal."""
    bound: dict[str, Any] = {}
    for term, value in zip(terms, row, strict=True):
        if term in ("?", "_"):
            continue
        if term.isdigit():
            if int(term) != value:
                return False
        elif bound.setdefault(term, value) != value or (term[0] == "$" and value not in given[term[1:]]):
            return False
    return True


# How a goal is rewritten and joined does not depend on the executor: a few are asked on the others.
@pytest.mark.executors(stages=[SEED, SEED + 1], spark=[SEED])
@pytest.mark.parametrize("seed", range(SEED, SEED + -(-GOALS // TOGETHER)))
def test_goals_equal_naive_evaluation_after_every_epoch(seed: int, executor: str) -> None:
    Trial(seed).run(FEW_ROUNDS if executor == "spark" else ROUNDS)


@dataclass(eq=False)
class Asked:
    """A goal and its query; `given` are the values of its arguments."""

    predicate: str
    terms: tuple[str, ...]
    query: tk.Query
    given: dict[str, set[int]]
    shown: str


class Trial:
    """One engine, one program, and goals that come while facts and arguments change."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.program = GoalProgram(seed)
        self.rules = parse_program(self.program.text)
        self.facts: Facts = {}
        self.counts: dict[Row, int] = {}
        self.asked: list[Asked] = []

    def run(self, rounds: Rounds) -> None:
        # An index that one goal leaves behind changes how the next is answered, so that some goals are asked alone.
        if self.program.small:
            for _ in range(sum(map(sum, rounds)) // 2):
                with self.engine() as engine:
                    self.change(engine)
                    engine.advance()
                    self.asked = [self.ask(engine) for _ in range(2)]
                    self.check_all()
                    self.change(engine)
                    engine.advance()
                    self.check_all()
            return
        with self.engine() as engine:
            for kept in self.program.predicates:
                if self.rng.random() < 0.1:
                    engine.view(kept)
            for standing, passing in rounds:
                self.asked += [self.ask(engine) for _ in range(standing)]
                self.change(engine)
                engine.advance()
                everything = self.check_all()
                for _ in range(passing):
                    asked = self.ask(engine)
                    self.check(asked, everything)
                    asked.query.drop()
                self.forget()
            for name in self.program.predicates:
                found = sorted(engine.view(name).rows())
                assert found == sorted(everything[name]), f"view {name} of\n{self.program.text}\n{self.facts}"

    def engine(self) -> tk.Engine:
        """An engine with the program, and nothing given yet."""
        rng = self.rng
        self.facts = {name: set() for name in BASE}
        self.counts = {}
        self.asked = []
        engine = make_engine(workers=1 + rng.randrange(2))
        for name, width in BASE.items():
            engine.create_table(name, COLUMNS[width], mode="bag" if name == "bag" else "set")
        share = {name: rng.random() < 0.5 for name in self.program.predicates if rng.random() < 0.05}
        engine.datalog(self.program.text, share=share, joins=rng.choice(JOINS))
        return engine

    def check_all(self) -> Facts:
        everything = evaluate(self.rules, self.facts)
        for asked in self.asked:
            self.check(asked, everything)
        return everything

    def ask(self, engine: tk.Engine) -> Asked:
        name, terms = self.program.goal()
        names = dict.fromkeys(term[1:] for term in terms if term.startswith("$"))
        given = {name: {self.rng.choice(VALUES) for _ in range(self.rng.randint(1, 2))} for name in names}
        how = {"strategy": self.rng.choice(STRATEGIES), "joins": self.rng.choice(JOINS)}
        goal = f"{name}({', '.join(terms)})"
        return Asked(name, terms, engine.query(goal, **how, **given), given, f"{goal} {how} {given}")

    def forget(self) -> None:
        """Drop some queries, so that others find fewer indexes there already."""
        for asked in list(self.asked):
            if self.rng.random() < 0.5:
                asked.query.drop()
                self.asked.remove(asked)

    def change(self, engine: tk.Engine) -> None:
        rng = self.rng
        for name, width in BASE.items():
            table = engine.table(name)
            for _ in range(rng.randint(0, 2) if self.facts[name] else rng.randint(3, 6)):
                row = tuple(rng.choice(VALUES) for _ in range(width))
                if name == "bag":
                    number = rng.choice((-1, 1, 1, 2)) if self.counts.get(row) else 1
                    self.counts[row] = self.counts.get(row, 0) + number
                    (table.insert if number > 0 else table.remove)([row] * abs(number))
                    self.facts[name] = {row for row, count in self.counts.items() if count}
                else:
                    (table.remove if row in self.facts[name] else table.insert)([row])
                    self.facts[name] ^= {row}
        for asked in self.asked:
            for name, values in asked.given.items():
                if rng.random() < 0.5:
                    value = rng.choice(VALUES)
                    (asked.query.remove if value in values else asked.query.insert)(**{name: value})
                    values ^= {value}

    def check(self, asked: Asked, everything: Facts) -> None:
        wanted = sorted(row for row in everything[asked.predicate] if answers(asked.terms, row, asked.given))
        found = sorted(asked.query.rows())
        shown = f"{asked.shown} of\n{self.program.text}\n{asked.query.explain()}\nfacts {self.facts}"
        assert found == wanted, shown
