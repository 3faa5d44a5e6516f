"""Random conjunctions agree with brute force at every epoch, with every strategy, however the work is cut and batched."""

from __future__ import annotations

import random
from typing import Any

import pytest

import tektite as tk
from tektite.dataflow import pipeline_actions, pipelines
from tests.support.brute import Bag, Brute, bag
from tests.support.conjunctions import random_match
from tests.support.executors import make_engine
from tests.support.nightly import few_of
from tests.support.row_changes import row_changes

pytestmark = pytest.mark.executors

STRATEGIES = ("binary", "delta", "hector")
each_strategy = pytest.mark.parametrize("strategy", STRATEGIES)


class Random:
    """A random conjunction over random inputs on one engine, and what its inputs hold."""

    def __init__(self, seed: int, strategy: str, workers: int, wide: bool = False, turn: float = 0.05) -> None:
        rng = random.Random(seed)
        self.engine = make_engine(workers=workers, turn=turn)
        self.inputs = [
            self.engine.create_table("a", {"x": tk.Int, "y": tk.Int}),
            self.engine.create_table("b", {"x": tk.Int, "y": tk.Int}, order_by=["y"]),
            self.engine.create_table("c", {"x": tk.Int, "y": tk.Int, "z": tk.Int}),
            self.engine.create_table("d", {"x": tk.Int}),
        ]
        derived = self.inputs[0].select(x="y", y=(tk.col("x") + 1) % 4)
        pool: list[tk.Collection] = [*self.inputs, self.inputs[0], derived, self.inputs[1].distinct()]
        if wide:
            pool = [self.inputs[0], self.inputs[2], self.inputs[2]]
        self.clauses, self.options = random_match(rng, pool, wide=wide)
        loop = rng.random() < 0.3
        self.view = self.engine.install("view", self.collection(strategy, self.options, loop))
        # Equal variables become one on the way to a plan; brute force gets a plan in which they have not.
        where = [~(p.args[0] != p.args[1]) if p.op == "eq" else p for p in self.options.get("where", ())]
        self.reference = self.collection(strategy, {**self.options, "where": where}, loop).operator
        self.contents: dict[Any, Bag] = {source: {} for source in self.inputs}

    def collection(self, strategy: str, options: dict[str, Any], loop: bool) -> tk.Collection:
        """The conjunction, or one inside a loop whose variable stands in for the first clause."""
        if not loop:
            return tk.match(*self.clauses, **options, joins=strategy)
        first, terms = self.clauses[0]
        names = first.schema.names

        def body(variable: tk.Collection) -> tk.Collection:
            inner = tk.match((variable, terms), *self.clauses[1:], **options, joins=strategy)
            found = inner.schema.names
            shifted = {
                name: (tk.col(found[at % len(found)]) + 1) % 4 if found else tk.lit(at) for at, name in enumerate(names)
            }
            return inner.select(**shifted).concat(first).distinct()

        return first.distinct().iterate(body, max_rounds=200)

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


def follow(case: Random, seed: int, epochs: int, read: float = 1.0) -> None:
    """Change the inputs for some epochs, several of them in one sweep, and compare the view whenever it is read, and its
    changes added up to every epoch, with what brute force makes of the inputs.
    """
    rng = random.Random(-seed)
    changes = row_changes(case.view)
    expected: list[Bag] = []
    seen: Bag = {}
    epoch = told = 0
    while epoch < epochs:
        sweep = rng.choice([1, 1, 2, 4])
        for e in range(epoch, epoch + sweep):
            case.change(rng, e)
            expected.append(Brute(case.contents).value(case.reference))
        epoch += sweep
        case.engine.advance(to=epoch)
        if rng.random() >= read:
            continue
        found = list(changes)
        for e in range(told, epoch):
            seen = bag([*seen.items(), *((change.row, change.diff) for change in found if change.time == e)])
            assert seen == expected[e]
        told = epoch
        assert case.view.multiplicities() == expected[-1]
    assert case.view.multiplicities() == expected[-1]
    case.engine.close()


@pytest.mark.executors(stages=[f"{strategy}-{seed}" for strategy in STRATEGIES for seed in (0, 24)], spark=["delta-21"])
@pytest.mark.parametrize("seed", few_of(range(60), *range(0, 60, 3)))
@each_strategy
def test_random_conjunction_equals_brute_force_at_every_epoch(strategy: str, seed: int) -> None:
    follow(Random(seed, strategy, 1 + seed % 3), seed, 10)


@pytest.mark.executors(stages=[f"{strategy}-{seed}" for strategy in STRATEGIES for seed in (0, 18)])
@pytest.mark.parametrize("seed", few_of(range(30), *range(0, 30, 3)))
@each_strategy
def test_random_conjunction_of_wide_clauses(strategy: str, seed: int) -> None:
    follow(Random(seed, strategy, 1 + seed % 3, wide=True), seed, 6)


@pytest.mark.executors(stages=["delta-0", "delta-12", "hector-6"], spark=["hector-6"])
@pytest.mark.parametrize("seed", few_of(range(30), *range(0, 30, 3)))
@pytest.mark.parametrize("strategy", ["delta", "hector"])
def test_pieces_of_any_size_come_to_the_same(strategy: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline_actions, "PIECE", 3)
    monkeypatch.setattr(pipelines, "PIECE", 3)
    monkeypatch.setattr(pipelines, "SLICE", 2)
    monkeypatch.setattr(pipelines, "PIECES_PER_RUN", 1)
    follow(Random(seed, strategy, 1 + seed % 3, wide=seed % 2 == 0), seed, 6)


@pytest.mark.executors(stages=["delta-0", "delta-8", "hector-6", "hector-14"])
@pytest.mark.parametrize("seed", few_of(range(20), *range(0, 20, 2)))
@pytest.mark.parametrize("strategy", ["delta", "hector"])
def test_traces_may_run_ahead_of_a_conjunction_that_is_suspended(
    strategy: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline_actions, "PIECE", 2)
    monkeypatch.setattr(pipelines, "PIECES_PER_RUN", 1)
    case = Random(seed, strategy, 1 + seed % 2, turn=0.0)
    case.engine.install("beside", case.inputs[0].join(case.inputs[1], on="y"))
    follow(case, seed, 20, read=0.2)
