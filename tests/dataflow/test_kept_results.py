"""Kept results that nobody reads are not merged: whoever reads them finds what recomputation gives, in every way of reading."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import tektite as tk
from tektite.dataflow import kept_results
from tektite.dataflow.reduce import KernelQuestion
from tektite.engine.core import core_of
from tektite.trace.result_trace import ResultTrace
from tests.support.nightly import by_day_or_night
from tests.support.stages import in_stages

Rows = Counter[tuple[Any, ...]]


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Traces of few rows may sleep, too."""
    monkeypatch.setattr(kept_results, "LEAST", 1)


def trace_of(view: tk.View) -> ResultTrace:
    trace = core_of(view).trace
    assert isinstance(trace, ResultTrace)
    return trace


def counted(rows: Rows) -> Rows:
    return Counter([(k, n) for k, n in Counter({k: 0 for k, _ in rows} | summed(rows, lambda k, v: 1)).items() if n])


def summed(rows: Rows, what: Any) -> dict[Any, int]:
    found: Counter[Any] = Counter()
    for (k, v), n in rows.items():
        found[k] += n * what(k, v)
    return dict(found)


def totals(rows: Rows) -> Rows:
    numbers, sums = summed(rows, lambda k, v: 1), summed(rows, lambda k, v: v)
    return Counter([(k, sums[k], numbers[k]) for k in numbers])


QUERIES: dict[str, tuple[Any, Any]] = {
    "counts": (lambda t: t.count(by="k"), counted),
    "totals": (lambda t: t.group_by("k").agg(total=tk.sum("v"), number=tk.count()), totals),
    "kinds": (lambda t: t.select("k").distinct(), lambda rows: Counter({(k,) for k, _ in rows})),
    "pairs": (lambda t: t.count(by=["k", "v"]), lambda rows: Counter([(k, v, n) for (k, v), n in rows.items()])),
    "all": (lambda t: t.select("k").count(), lambda rows: Counter([(rows.total(),)] if rows else [])),
}


class Program:
    """A table, views of it, and what they hold by recomputation."""

    def __init__(self, seed: int, workers: int) -> None:
        self.random = random.Random(seed)
        self.engine = tk.Engine(workers, autocommit=False)
        self.table = self.engine.create_table("t", {"k": tk.Int, "v": tk.Int})
        self.views = {name: self.engine.create_view(name, made(self.table)) for name, (made, _) in QUERIES.items()}
        self.rows: Rows = Counter()
        self.followed: dict[str, tuple[tk.Subscription, Rows]] = {}
        self.slept = 0

    def step(self) -> None:
        """Close an epoch of some changes; then read one of the views in one way, or none."""
        choice = self.random
        for _ in range(choice.choice([1, 1, 3, 40])):
            if self.rows and choice.random() < 0.45:
                row = choice.choice(list(self.rows))
                self.rows -= Counter([row])
                self.table.remove([row])
            else:
                row = (choice.randrange(30), choice.randrange(3))
                self.rows[row] += 1
                self.table.insert([row])
        if choice.random() < 0.1:  # more than are reduced in one call
            more = [(choice.randrange(2000), 7) for _ in range(3000)]
            self.rows.update(more)
            self.table.insert(more)
        self.engine.advance()
        self.engine.settle()
        self.slept += sum([trace_of(view).is_asleep for view in self.views.values()])
        if choice.random() < 0.3:
            name = choice.choice(list(self.views))
            choice.choice([self.read, self.look_up, self.size, self.hold, self.transaction, self.follow, self.join])(
                name
            )
        for name, (subscription, seen) in self.followed.items():
            while (found := subscription.poll(0)) is not None:
                for row in found.table.to_pylist():
                    *values, diff = row.values()
                    seen[tuple(values)] += diff
            assert +seen == self.expected(name), name

    def expected(self, name: str) -> Rows:
        found: Rows = QUERIES[name][1](self.rows)
        return found

    def read(self, name: str) -> None:
        assert Counter(self.views[name].rows()) == self.expected(name), name

    def look_up(self, name: str) -> None:
        key = self.random.randrange(32)
        if name != "all":
            found = Counter([row for row in self.expected(name).elements() if row[0] == key])
            assert Counter(self.views[name].lookup(key)) == found, name

    def size(self, name: str) -> None:
        assert len(self.views[name]) == self.expected(name).total()

    def hold(self, name: str) -> None:
        before = self.expected(name)
        with self.engine.hold(self.views[name]) as held:
            for _ in range(3):
                self.change()
            assert Counter(self.views[name].rows(held.at)) == before, name
            self.read(name)

    def transaction(self, name: str) -> None:
        before = self.expected(name)
        session = self.engine.session()
        session.sql("BEGIN")
        for _ in range(self.random.randrange(3)):
            self.change()
            found = session.sql(f'SELECT * FROM "{name}"').rows()
            assert Counter(found) == before, name
        session.sql("COMMIT")
        self.read(name)

    def change(self) -> None:
        row = (self.random.randrange(30), 1)
        self.rows[row] += 1
        self.table.insert([row])
        self.engine.advance()

    def follow(self, name: str) -> None:
        if len(self.followed) < 2 and name not in self.followed:
            self.followed[name] = self.views[name].subscribe(snapshot=True), Counter()

    def join(self, name: str) -> None:
        if name == "all":
            return
        number = self.engine.install("number", self.views[name].count())
        self.change()
        assert number.rows() == [(self.expected(name).total(),)]
        number.drop()


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_every_way_of_reading_finds_what_recomputation_gives(workers: int) -> None:
    slept = 0
    for seed in range(by_day_or_night(2, 40)):
        program = Program(10 * seed + workers, workers)
        for _ in range(60):
            program.step()
        for name in program.views:
            program.read(name)
        slept += program.slept
        program.engine.close()
    assert slept > 100


def test_who_reads_while_a_sweep_runs_finds_the_answer_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = tk.Engine(1, autocommit=False)
    table = engine.create_table("t", {"k": tk.Int, "v": tk.Int})
    view = engine.create_view("totals", table.group_by("k").agg(total=tk.sum("v")))
    found: list[Any] = []

    def answer(self: KernelQuestion, there: Any = KernelQuestion.answer) -> None:
        there(self)
        if trace_of(view).is_asleep and not found:
            core = core_of(view)
            found.extend([core.decode(core.words(None, False, 3)).to_pylist(), core.words(None, False).shape[1]])

    for number in range(4):
        table.insert([(k, 1) for k in range(20_000 + number)])
        engine.advance()
        engine.finish(view)
    assert trace_of(view).is_asleep
    monkeypatch.setattr(KernelQuestion, "answer", answer)
    table.insert([(k, 10) for k in range(30_000)])
    engine.advance()
    engine.finish(view)
    assert found == [[{"k": 3, "total": 4}], 20_003]
    assert Counter(view.rows()) == Counter(
        [(k, 10 + sum([k < 20_000 + number for number in range(4)])) for k in range(30_000)]
    )


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("turns", range(3))
def test_who_holds_results_while_a_sweep_is_suspended_loses_none(turns: int, workers: int) -> None:
    """A group's sum does not fit, so that a node runs behind the one that mints."""
    engine = tk.Engine(workers, autocommit=False, turn=1e-9)
    table = engine.create_table("t", {"k": tk.Int, "v": tk.Int})
    view = engine.create_view("totals", table.group_by("k").agg(total=tk.sum("v")))
    for _ in range(4):
        table.insert([(k, k) for k in range(20)])
        engine.advance()
        engine.settle()
    assert trace_of(view).is_asleep
    table.insert([(99, 2**62)] * 3 + [(k, 1) for k in range(20)])
    engine.advance()
    table.insert([(k, 1) for k in range(10)])
    engine.advance()
    for _ in range(turns):
        engine.run()
    with engine.hold(view) as held:
        assert held.at == 3
        engine.settle()
        assert view.error is not None
        table.remove([(99, 2**62)] * 3)
        engine.advance()
        assert sorted(view.rows()) == [(k, 4 * k + 1 + (k < 10)) for k in range(20)]
        assert sorted(view.rows(held.at)) == [(k, 4 * k) for k in range(20)]


def test_sweeps_that_run_elsewhere_leave_results_asleep(tmp_path: Path) -> None:
    engine = tk.Engine(2, autocommit=False, storage=tmp_path)
    table = engine.create_table("t", {"k": tk.Int})
    view = engine.create_view("counts", table.count(by="k"))

    def write() -> None:
        table.insert([(k,) for k in range(100)])
        engine.advance()
        engine.finish(view)

    for _ in range(4):
        write()
    assert trace_of(view).is_asleep
    in_stages(engine)
    for _ in range(3):
        write()
    assert trace_of(view).is_asleep
    assert view.lookup(7) == [(7, 7)] and Counter(view.rows()) == Counter([(k, 7) for k in range(100)])
    assert not trace_of(view).is_asleep
    write()
    assert Counter(view.rows()) == Counter([(k, 8) for k in range(100)])


def test_a_group_that_fails_while_nobody_reads_is_an_error_until_it_is_gone() -> None:
    engine = tk.Engine(autocommit=False)
    table = engine.create_table("t", {"k": tk.Int, "v": tk.Int})
    view = engine.create_view("totals", table.group_by("k").agg(total=tk.sum("v")))
    for _ in range(4):
        table.insert([(1, 2**62)])
        engine.advance()
        engine.finish(view)
    assert trace_of(view).is_asleep
    with pytest.raises(tk.IncorrectError, match="does not fit"):
        view.rows()
    table.remove([(1, 2**62)] * 3)
    engine.advance()
    assert view.rows() == [(1, 2**62)]


def test_results_sleep_when_nobody_has_read_them_for_as_many_updates_as_they_have_rows() -> None:
    engine = tk.Engine(autocommit=False)
    table = engine.create_table("t", {"k": tk.Int})
    view = engine.create_view("counts", table.count(by="k"))
    table.insert([(k,) for k in range(100)])
    engine.advance()
    engine.finish(view)

    def write(rows: int) -> bool:
        table.insert([(k,) for k in range(rows)])
        engine.advance()
        engine.finish(view)
        return trace_of(view).is_asleep

    assert len(view.rows()) == 100
    sleeps = [write(20) for _ in range(12)]
    assert sleeps == sorted(sleeps) and sleeps.index(True) > 1
    assert trace_of(view).bytes == 0
    assert view.lookup(3) == [(3, 13)] and trace_of(view).is_asleep
    assert len(view.rows()) == 100 and not trace_of(view).is_asleep
    with view.subscribe(snapshot=False):
        assert not any([write(100) for _ in range(4)])
    assert write(100)


def test_a_trace_whose_operator_goes_keeps_its_batches() -> None:
    engine = tk.Engine(autocommit=False)
    table = engine.create_table("t", {"k": tk.Int})
    view = engine.create_view("counts", table.count(by="k"))
    for _ in range(4):
        table.insert([(k,) for k in range(10)])
        engine.advance()
        engine.finish(view)
    trace = trace_of(view)
    assert trace.is_asleep
    trace.keep_batches()
    assert not trace.is_asleep
    for _ in range(4):
        table.insert([(k,) for k in range(10)])
        engine.advance()
        engine.finish(view)
    assert not trace.is_asleep and Counter(view.rows()) == Counter([(k, 8) for k in range(10)])
