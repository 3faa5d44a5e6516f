"""Epochs of few rows step in C, and give what the general path gives: the same programs run with each, epoch by epoch."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

import tektite as tk
from tektite.dataflow import flow, join, reduce
from tektite.dataflow.arrange import ArrangeNode, ChangesNode
from tektite.dataflow.away import LONG
from tektite.dataflow.join import JoinNode
from tektite.engine import engine_core, table
from tektite.engine.core import core_of
from tektite.errors import TektiteError

SWITCHES: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "all": lambda patch: None,
    "no small writes": lambda patch: patch.setattr(table, "write_few", lambda *_: NotImplemented),
    "no small epochs": lambda patch: patch.setattr(engine_core, "small_epoch", lambda *_: None),
    "no small reductions": lambda patch: patch.setattr(reduce, "reduce_few", lambda *_: False),
    "no small arrangements": lambda patch: patch.setattr(ArrangeNode, "run", ArrangeNode._run),
    "no small joins": lambda patch: patch.setattr(JoinNode, "run", JoinNode._run),
    "no whole sweeps": lambda patch: patch.setattr(flow, "_sweep", lambda *_: None),
}


def general(patch: pytest.MonkeyPatch) -> None:
    """Nothing steps in C."""
    for switch in SWITCHES.values():
        switch(patch)


class Program:
    """Tables of every kind that a small epoch takes or leaves, and views over them; what each call did, and what views hold."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.engine = tk.Engine(autocommit=False, workers=self.random.choice([1, 1, 2]))
        create = self.engine.create_table
        self.tables = {
            "checked": create("checked", {"k": tk.Int, "v": tk.Int}, order_by="k"),
            "trusted": create("trusted", {"k": tk.Int, "v": tk.Int}, checked=False),
            "unique": create("unique", {"k": tk.Int, "v": tk.Int}, primary_key="k"),
            "latest": create("latest", {"k": tk.Int, "v": tk.Int}, mode="upsert", primary_key="k"),
            "passing": create("passing", {"k": tk.Int, "v": tk.Int}, mode="stream"),
        }
        checked, trusted, latest, passing = (self.tables[n] for n in ("checked", "trusted", "latest", "passing"))
        self.heard: list[Any] = []
        views = {
            "counts": checked.count(by="k"),
            "sums": trusted.group_by("k").agg(total=tk.sum("v"), top=tk.max("v")),
            "kinds": checked.select("k").distinct(),
            "joined": checked.join(trusted.select("k", w="v"), on="k"),
            "few": checked.filter(tk.col("k") == 1).select(twice=tk.col("v") * 2),
            "with latest": latest.select("k", x="v").join(checked, on="k").count(by="x"),
            "fails": checked.select("k", inverse=12 // tk.col("v")).group_by("k").agg(tk.sum("inverse")),
            "reached": checked.select(node="k")
            .distinct()
            .iterate(
                lambda found: (
                    found.join(trusted, left_on="node", right_on="k").select(node="v").concat(found).distinct()
                )
            ),
            "came by": passing.count(by="k"),
        }
        self.views = {name: self.engine.create_view(name, made) for name, made in views.items()}
        self.views["changes"] = self.engine.install(
            "changes",
            trusted.max("v", by="k"),
            keep=False,
            on_change=self._hear,
        )

    def _hear(self, rows: pa.Table) -> None:
        self.heard.append(sorted(rows.to_pylist(), key=str))

    def step(self) -> Iterator[Any]:
        """Write something, close an epoch or several, and give what that did."""
        choice = self.random
        names = choice.choice([["checked", "trusted", "passing"], list(self.tables)])
        for _ in range(choice.randrange(4)):
            name = choice.choice(names)
            rows = [(choice.randrange(4), choice.randrange(5)) for _ in range(choice.choice([1, 1, 2, 7, 70, 1500]))]
            kind = choice.choice(
                ["insert", "insert", "insert", "remove", "remove", "late" if len(names) > 3 else "remove"]
            )
            try:
                if kind == "late" and name != "passing":
                    self.tables[name].insert(rows[:1], time=core_of(self.tables[name]).low + choice.randrange(3))
                elif kind == "remove" and name not in ("passing", "trusted"):
                    self.tables[name].remove(rows[:1])
                else:
                    self.tables[name].insert(rows)
            except TektiteError as error:
                yield type(error), str(error)
        try:
            if choice.random() < 0.2:
                yield self.tables["trusted"].advance()
            yield self.engine.advance()
        except TektiteError as error:
            yield type(error), str(error)
            for each in self.tables.values():
                each.rollback()
        self.engine.settle()  # a slow machine may end turns early
        for name, view in self.views.items():
            if name != "changes":
                try:
                    yield name, view.time, sorted(Counter(view.rows()).items())
                except TektiteError as error:
                    yield name, type(error), str(error)
        yield list(self.heard)
        inputs = [core_of(each) for each in self.tables.values()]
        yield [(each.low, each.writes, each.changed, each.trace.minted) for each in inputs]
        yield self.engine.next_epoch, core_of(self.engine).changes


def outcome(seed: int, switch: Callable[[pytest.MonkeyPatch], None]) -> list[Any]:
    """What a program does with some steps in C or none."""
    with pytest.MonkeyPatch.context() as patch:
        switch(patch)
        program = Program(seed)
        with program.engine:
            return [list(program.step()) for _ in range(25)]


def test_programs_take_the_steps_in_c(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: Counter[str] = Counter()

    def counted(module: Any, name: str) -> None:
        there = getattr(module, name)

        def call(*arguments: Any) -> Any:
            found = there(*arguments)
            taken[name] += bool(found is not NotImplemented and (found or name == "write_few"))
            return found

        monkeypatch.setattr(module, name, call)

    steps = ((table, "write_few"), (engine_core, "small_epoch"), (reduce, "reduce_few"), (flow, "_sweep"))
    for module, name in steps:
        counted(module, name)
    runs = counted_runs(monkeypatch)
    outcome(0, SWITCHES["all"])
    assert min(taken[name] for _, name in steps) > 9, taken
    assert min(runs[f"{kind.__name__}.run"] - runs[f"{kind.__name__}._run"] for kind in (ArrangeNode, JoinNode)) > 9, (
        runs
    )


def counted_runs(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often nodes run from here on, and how often the general path does that."""
    runs: Counter[str] = Counter()

    def counted(kind: Any, name: str) -> None:
        there = getattr(kind, name)

        def run(self: Any, moment: Any) -> None:
            runs[f"{kind.__name__}.{name}"] += 1
            there(self, moment)

        monkeypatch.setattr(kind, name, run)

    for kind in (ArrangeNode, JoinNode):
        counted(kind, "_run")
        counted(kind, "run")
    return runs


@pytest.mark.parametrize("seed", range(3))
def test_each_step_in_c_does_what_the_general_path_does(seed: int) -> None:
    wanted = outcome(seed, general)
    for name, switch in SWITCHES.items():
        assert outcome(seed, switch) == wanted, name


def test_a_row_with_many_partners_is_joined_piece_by_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(join, "PIECE", 16)
    runs = counted_runs(monkeypatch)
    with tk.Engine(autocommit=False) as engine:
        many = engine.create_table("many", {"k": tk.Int, "v": tk.Int})
        few = engine.create_table("few", {"k": tk.Int, "w": tk.Int})
        view = engine.install("pairs", few.join(many, on="k"))
        many.insert([(1, v) for v in range(500)])
        engine.advance()
        engine.finish(view)
        runs.clear()
        few.insert([(1, 7)])
        engine.advance()
        engine.finish(view)
        assert sorted(view.rows()) == [(1, 7, v) for v in range(500)]
        assert runs["JoinNode._run"] > 1  # the first piece is made in C, and the general path goes on
        few.remove([(1, 7)])
        many.insert([(1, 500)])
        engine.advance()
        engine.finish(view)
        assert view.rows() == []


def test_a_product_of_multiplicities_that_does_not_fit_fails_the_view() -> None:
    with tk.Engine(autocommit=False) as engine:
        left = engine.create_table("left", {"k": tk.Int})
        right = engine.create_table("right", {"k": tk.Int})
        view = engine.install("pairs", left.join(right, on="k"), keep=False)
        left.update([(1,)], diffs=[2**40])
        engine.advance()
        right.update([(1,)], diffs=[2**40])
        engine.advance()
        assert "a product of multiplicities does not fit into 64 bits" in str(view.failure)


def test_a_sum_in_an_arrangement_that_does_not_fit_fails_the_view() -> None:
    with tk.Engine(autocommit=False) as engine:
        t = engine.create_table("t", {"k": tk.Int, "v": tk.Int}, checked=False)
        other = engine.create_table("other", {"k": tk.Int})
        view = engine.install("pairs", t.select(k=tk.col("k") + 1).join(other, on="k"), keep=False)
        for _ in range(80):
            t.update([(1, v) for v in range(1000)], diffs=[2**48] * 1000)
        engine.advance()
        assert "a multiplicity or a sum does not fit into 64 bits" in str(view.failure)


def forbid(patch: pytest.MonkeyPatch, kind: type, name: str) -> None:
    """Let nobody call a method."""

    def call(*_: Any) -> None:
        raise AssertionError(f"{name} is called")

    patch.setattr(kind, name, call)


def test_a_join_with_a_side_that_has_no_rows_yet_lets_go_of_no_lock_however_many_the_other_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine = tk.Engine(autocommit=False)
    index = engine.create_table("index", {"k": tk.Int, "v": tk.Int}, order_by="k")
    wanted = engine.create_table("wanted", {"k": tk.Int}, mode="stream")
    index.insert([(k, 2 * k) for k in range(LONG)])
    engine.advance()
    for left, right in [(wanted, index), (index, wanted)]:
        with monkeypatch.context() as patch:
            forbid(patch, JoinNode, "_run")
            view = engine.create_view("joined", left.join(right, on="k"))
            wanted.insert([(7,)])
            index.insert([(7, 1)])
            engine.advance()
            assert sorted(view.rows()) == [(7, 1), (7, 14)]
        view.drop()
        index.remove([(7, 1)])
        engine.advance()


def test_few_changes_of_an_arrangement_are_sent_on_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = tk.Engine(memory_limit="1 GiB")
    numbers = engine.create_table("numbers", {"n": tk.Int})
    view = engine.create_view("even", numbers.filter(tk.col("n") % 2 == 0))
    forbid(monkeypatch, ChangesNode, "work_out")
    numbers.insert([(1,), (2,), (4,)])
    numbers.remove([(2,)])
    assert view.rows() == [(4,)]
