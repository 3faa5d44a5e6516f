"""Whatever ends a call (Ctrl-C, no memory) at whatever line: what it was to change has changed as a whole, or not at all.

One scenario has three inputs, joins and a storage. Each test runs a call once to count the lines it takes, then again and
again, each time on an engine of its own, with an exception at one of them. A line more or less makes another point, so that
some hundreds, spread evenly, are tried in `make test`, and some thousands in `make soak`.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tektite as tk
from tektite.engine.core import core_of
from tektite.engine.epochs import PreparedInput
from tests.support.fault_injection import Injector
from tests.support.nightly import NIGHTLY, size

POINTS = size("TEKTITE_INTERRUPTS", 12)
"""Lines at which each call is interrupted in each setting."""

ERRORS = (KeyboardInterrupt, MemoryError)

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


class World:
    """An engine with inputs of all kinds, views over them, and what they should hold."""

    def __init__(self, folder: Path | None, workers: int = 1) -> None:
        self.folder = folder
        self.workers = workers
        self.held: dict[str, Counter[tuple[int, ...]]] = {name: Counter() for name in ("a", "b", "c")}
        self.newest: tuple[int, int] | None = None
        """The row of b that the next write removes."""
        self.open()
        self.view("joined", self.a.join(self.b, on="k").count(by="k"))
        for k in range(5):
            self.view(f"few {k}", self.a.filter(tk.col("k") == k))
        self.view("mapped", self.a.map_batches(lambda batch: batch, k=tk.Int, v=tk.Int))
        for epoch in range(3):
            self.write(epoch)
            self.engine.advance()

    def open(self) -> None:
        """Begin, or begin again with what is stored."""
        self.engine = tk.Engine(self.workers, storage=self.folder, autocommit=False)
        self.a = self.engine.create_table("a", {"k": tk.Int, "v": tk.Int})
        self.b = self.engine.create_table("b", {"k": tk.Int, "w": tk.Int}, order_by="k")
        self.c = self.engine.create_table("c", {"k": tk.Int, "x": tk.Int}, mode="upsert", primary_key="k")

    def view(self, name: str, collection: tk.Collection) -> tk.View:
        """A view that a failed one of the same name does not stand in the way of."""
        if name in self.engine.views:
            self.engine.drop(name)
        return self.engine.install(name, collection)

    def write(self, epoch: int) -> None:
        """Write to all inputs, and note what they hold afterwards."""
        k = epoch % 5
        rows = [(k, epoch), (k, epoch + 1)]
        self.a.insert(rows)
        self.held["a"].update(rows)
        self.b.insert([(k, epoch)])
        self.held["b"].update([(k, epoch)])
        if self.newest is not None:
            self.b.remove([self.newest])
            self.held["b"].subtract([self.newest])
        self.newest = (k, epoch)
        self.c.insert([(k, epoch)])
        self.held["c"] = Counter({row: n for row, n in self.held["c"].items() if row[0] != k} | {(k, epoch): 1})

    def found(self) -> dict[str, Counter[tuple[int, ...]]]:
        """What the inputs hold."""
        held = {}
        for name in ("a", "b", "c"):
            self.engine.settle()
            held[name] = Counter(self.view(f"all {name}", self.engine.table(name)).rows())
        return held

    def check(self, *, reopen: bool) -> None:
        """Compare what the engine holds with what it should, going on, and again when it is reopened."""
        wanted = {name: +rows for name, rows in self.held.items()}
        assert self.found() == wanted
        lows = {source.low for source in core_of(self.engine).inputs.values() if not source.closed}
        assert lows == {self.engine.next_epoch}
        self.write(7)
        self.engine.advance()
        wanted = {name: +rows for name, rows in self.held.items()}
        assert self.found() == wanted
        for k in range(5):
            self.check_filter(k)
        if "mapped" in self.engine.views and self.engine.view("mapped").failure is None:
            assert Counter(self.engine.view("mapped").rows()) == +self.held["a"]
        if reopen and self.folder is not None:
            epoch = self.engine.next_epoch
            self.engine.close()
            self.open()
            assert self.engine.next_epoch == epoch
            assert self.found() == wanted

    def check_filter(self, k: int) -> None:
        """Compare a view that filters input a. One that lacked memory says that it failed."""
        name = f"few {k}"
        if name in self.engine.views and self.engine.view(name).failure is None:
            wanted = Counter({row: n for row, n in (+self.held["a"]).items() if row[0] == k})
            assert Counter(self.engine.view(name).rows()) == wanted


Setting = tuple[bool, int]
SETTINGS: list[Setting] = [(False, 1), (True, 1), (True, 2)]


def points(lines: int) -> Iterator[int]:
    """Numbers of lines, spread evenly."""
    step = max(1.0, lines / POINTS)
    place = 1.0
    while place <= lines:
        yield int(place)
        place += step


def each_point(
    folder: Path, setting: Setting, error: type[BaseException], act: Callable[[World], Callable[[], Any]]
) -> Iterator[tuple[World, str]]:
    """Worlds in which what `act` prepares was ended at some line, and where that was."""
    stored, workers = setting
    injector = Injector()
    world = World(folder / "count" if stored else None, workers)
    injector.call(act(world))
    lines = injector.lines
    world.engine.close()
    assert lines > 20
    for at in points(lines):
        place = folder / str(at)
        world = World(place if stored else None, workers)
        injector.call(act(world), at, error)
        yield world, injector.where
        world.engine.close()
        shutil.rmtree(place, ignore_errors=True)


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("setting", SETTINGS)
def test_an_epoch_is_all_or_nothing(tmp_path: Path, setting: Setting, error: type[BaseException]) -> None:
    def act(world: World) -> Callable[[], Any]:
        world.write(5)
        return world.engine.advance

    for world, where in each_point(tmp_path, setting, error, act):
        before = world.engine.next_epoch
        try:
            if before == 3:  # it did not happen: everything still waits
                assert [world.a.pending, world.b.pending, world.c.pending] == [2, 2, 1]
            else:
                assert [world.a.pending, world.b.pending, world.c.pending] == [0, 0, 0]
            world.engine.advance()
            world.check(reopen=True)
        except BaseException as found:
            raise AssertionError(f"interrupted at {where}, then at epoch {before}") from found


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("setting", SETTINGS[:2])
def test_a_statement_is_all_or_nothing(tmp_path: Path, setting: Setting, error: type[BaseException]) -> None:
    def act(world: World) -> Callable[[], Any]:
        world.engine.sql("SELECT 1")
        return lambda: world.engine.sql("BEGIN; INSERT INTO a VALUES (9, 9); INSERT INTO b VALUES (9, 9); COMMIT")

    for world, where in each_point(tmp_path, setting, error, act):
        try:
            found = world.found()
            happened = [(9, 9) in found[name] for name in ("a", "b")]
            assert happened in ([True, True], [False, False])
            if happened[0]:
                world.held["a"].update([(9, 9)])
                world.held["b"].update([(9, 9)])
            world.check(reopen=True)
        except BaseException as found:
            raise AssertionError(f"interrupted at {where}") from found


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("setting", SETTINGS)
def test_a_view_is_installed_or_not(tmp_path: Path, setting: Setting, error: type[BaseException]) -> None:
    def act(world: World) -> Callable[[], Any]:
        query = world.c.join(world.a, on="k").join(world.b, on="k").count(by="v")
        return lambda: world.engine.install("new", query)

    for world, where in each_point(tmp_path, setting, error, act):
        try:
            if "new" in world.engine.views:
                world.engine.drop("new")
            world.engine.install("new", world.c.join(world.a, on="k").join(world.b, on="k").count(by="v")).rows()
            world.engine.drop("new")
            world.engine.drop("joined")
            for name in world.engine.views:
                world.engine.drop(name)
            names = [info.name for info in world.engine.indexes()]
            assert sorted(names) == ["a", "b", "c"], names
            world.check(reopen=True)
        except BaseException as found:
            raise AssertionError(f"interrupted at {where}") from found


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("name", ["joined", "few 0", "d"])
def test_a_drop_can_be_repeated(tmp_path: Path, setting: Setting, error: type[BaseException], name: str) -> None:
    def act(world: World) -> Callable[[], Any]:
        world.engine.create_table("d", {"x": tk.Int})
        return lambda: world.engine.drop(name)

    for world, where in each_point(tmp_path, setting, error, act):
        try:
            if name in (*world.engine.views, *world.engine.tables):
                world.engine.drop(name)
            with pytest.raises(tk.NotFoundError):
                world.engine.drop(name)
            world.engine.create_table(name, {"y": tk.Float})
            world.engine.drop(name)
            world.check(reopen=True)
            assert name not in world.engine.tables
        except BaseException as found:
            raise AssertionError(f"interrupted at {where}") from found


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("setting", SETTINGS)
def test_an_input_is_declared_or_not(tmp_path: Path, setting: Setting, error: type[BaseException]) -> None:
    def act(world: World) -> Callable[[], Any]:
        return lambda: world.engine.create_table("d", {"x": tk.Int})

    for world, where in each_point(tmp_path, setting, error, act):
        try:
            if "d" not in world.engine.tables:
                world.engine.create_table("d", {"x": tk.Int})
            world.engine.table("d").insert([(1,)])
            world.engine.advance()
            assert world.view("all d", world.engine.table("d")).rows() == [(1,)]
            world.check(reopen=True)
        except BaseException as found:
            raise AssertionError(f"interrupted at {where}") from found


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("call", ["sync", "close"])
def test_sync_and_close_can_be_repeated(tmp_path: Path, error: type[BaseException], call: str) -> None:
    def act(world: World) -> Callable[[], Any]:
        world.write(5)
        world.engine.advance()
        return world.engine.sync if call == "sync" else world.engine.close

    for world, where in each_point(tmp_path, (True, 1), error, act):
        try:
            if call == "sync":
                world.engine.sync()
                assert world.engine.durable == world.engine.next_epoch
                world.check(reopen=True)
            else:
                world.engine.close()
                world.open()
                world.check(reopen=False)
        except BaseException as found:
            raise AssertionError(f"interrupted at {where}") from found


def test_a_view_whose_first_sweep_is_interrupted_is_not_there() -> None:
    def interrupted(_: pa.Table) -> pa.Table:
        raise KeyboardInterrupt

    with tk.Engine() as engine:
        source = engine.create_table("t", {"x": tk.Int})
        source.insert([(1,)])
        with pytest.raises(KeyboardInterrupt):
            engine.install("v", source.map_batches(interrupted, x=tk.Int).count(by="x"))
        assert "v" not in engine.views
        assert engine.install("v", source.count(by="x")).rows() == [(1, 1)]


def test_a_change_that_cannot_be_applied_breaks_the_engine_loudly(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(None)
    joined = world.engine.view("joined")
    world.write(5)
    monkeypatch.setattr(PreparedInput, "apply", broken)
    with pytest.raises(tk.FaultError, match=r"the engine is broken.*MemoryError: no memory left"):
        world.engine.advance()
    monkeypatch.undo()
    calls: list[Callable[[], object]] = [
        world.engine.advance, lambda: world.engine.view("joined"), joined.rows, lambda: world.a.insert([(1, 1)])
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(tk.FaultError, match="the engine is broken"):
            call()
    world.engine.close()


def broken(*_: object) -> None:
    raise MemoryError("no memory left")


def test_the_child_of_a_fork_refuses_to_use_the_engine_and_leaves_the_storage_alone(tmp_path: Path) -> None:
    program = """
import os, sys, tektite as tk
engine = tk.Engine(storage=sys.argv[1], autocommit=False)
numbers = engine.create_table("numbers", {"n": tk.Int})
numbers.insert([(1,)])
engine.advance()
child = os.fork()
if not child:
    for call in (engine.advance, engine.sync, engine.close):
        try:
            call()
        except tk.ConflictError as error:
            print(error, flush=True)
    sys.exit()
assert os.waitpid(child, 0)[1] == 0
numbers.insert([(2,)])
engine.advance()
engine.close()
with tk.Engine(storage=sys.argv[1], autocommit=False) as engine:
    print(sorted(engine.install("all", engine.table("numbers")).rows()))
"""
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("this engine belongs to process") == 3 and "fork" in done.stdout
    assert done.stdout.endswith("[(1,), (2,)]\n")


def test_no_signal_tears_an_epoch(tmp_path: Path) -> None:
    """Signals come when they come, also where no line begins."""
    world = World(tmp_path / "storage")
    ended = time.monotonic() + (60.0 if NIGHTLY else 3.0)
    interrupts = epoch = 0

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        while time.monotonic() < ended or interrupts <= 10:
            epoch += 1
            world.write(epoch)
            visible = world.engine.next_epoch
            try:
                signal.setitimer(signal.ITIMER_REAL, 1e-5 * (1 + epoch % 60))
                world.engine.advance()
                signal.setitimer(signal.ITIMER_REAL, 0)
            except (KeyboardInterrupt, SystemError):  # the latter, if Numba was about to call a kernel
                interrupts += 1
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
            if world.engine.next_epoch == visible:
                world.engine.advance()
    finally:
        signal.signal(signal.SIGALRM, before)
    world.check(reopen=True)
    world.engine.close()


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("door", ["engine", "session"])
def test_a_transaction_is_over_when_its_block_is_left_by_whatever_way(door: str, error: type[BaseException]) -> None:
    def run(world: World, session: tk.Session) -> None:
        with session.transaction() if door == "session" else world.engine.transaction():
            world.a.insert([(9, 9)])

    injector = Injector(("blocks.py", "engine/session.py", "engine/epoch_methods.py"))
    world = World(None)
    with closing(world.engine):
        session = world.engine.session()
        injector.call(lambda: run(world, session))
        lines = injector.lines
        assert lines > 20
        for at in range(1, lines + 1):
            before = Counter(world.a.rows())
            injector.call(lambda: run(world, session), at, error)
            assert core_of(world.engine).sessions.current() is not session, injector.where
            assert session.open_transaction is None, injector.where
            assert core_of(world.engine).sessions.transaction is None, injector.where
            assert not core_of(world.engine).sessions.over, injector.where
            found = Counter(world.a.rows())
            assert found in (before, before + Counter([(9, 9)])), injector.where
            injector.call(lambda: run(world, session))
            assert Counter(world.a.rows()) == found + Counter([(9, 9)]), injector.where


@pytest.mark.parametrize("error", ERRORS)
def test_a_table_is_created_with_its_rows_or_not(error: type[BaseException]) -> None:
    injector = Injector(("sql/statements/create.py", "sql/statements/transactions.py", "engine"))
    with tk.Engine() as engine:
        engine.create_table("t", {"x": int}).insert([(1,), (2,)])
        run = partial(engine.sql, "CREATE TABLE made AS SELECT x + 1 AS y FROM t")
        injector.call(run)
        engine.drop("made")
        for at in range(1, injector.lines + 1, max(1, injector.lines // (4 * POINTS))):
            injector.call(run, at, error)
            if "made" in engine.tables:
                assert sorted(engine.table("made").rows()) == [(2,), (3,)], injector.where
                engine.drop("made")


@pytest.mark.parametrize("error", ERRORS)
def test_values_whose_first_execution_is_interrupted_are_answered_by_the_next(error: type[BaseException]) -> None:
    injector = Injector(("sql/statements", "engine"))
    with tk.Engine() as engine:
        table = engine.create_table("t", {"k": int, "x": int})
        table.insert([(k, 10 * k) for k in range(1000)])
        engine.sql("PREPARE of AS SELECT x FROM t WHERE k = $1")
        engine.sql("EXECUTE of(0)")
        injector.call(lambda: engine.sql("EXECUTE of(1)"))
        lines = injector.lines
        assert lines > 20
        for k, at in enumerate(range(1, lines + 1, max(1, lines // (4 * POINTS))), 2):
            injector.call(partial(engine.sql, f"EXECUTE of({k})"), at, error)
            assert engine.sql(f"EXECUTE of({k})").rows() == [(10 * k,)], injector.where
            table.insert([(k, -k)])
            assert sorted(engine.sql(f"EXECUTE of({k})").rows()) == [(-k,), (10 * k,)], injector.where


@pytest.mark.parametrize("error", ERRORS)
def test_an_index_of_sql_is_created_and_dropped_whole(error: type[BaseException]) -> None:
    injector = Injector(
        ("sql/statements/create.py", "sql/statements/drop.py", "engine/installation.py", "engine/lock.py")
    )
    with tk.Engine() as engine:
        engine.create_table("t", {"x": int, "y": int}).insert([(1, 2), (2, 2)])
        create, drop = partial(engine.sql, "CREATE INDEX i ON t (y)"), partial(engine.sql, "DROP INDEX i")
        for call in (create, drop):

            def prepare(call: Callable[[], object] = call) -> None:
                engine.sql("DROP INDEX IF EXISTS i")
                if call is drop:
                    create()

            prepare()
            injector.call(call)
            for at in range(1, injector.lines + 1):
                prepare()
                injector.call(call, at, error)
                engine.sql("CREATE INDEX IF NOT EXISTS i ON t (y)")
                assert engine.sql("SELECT count(*) FROM t WHERE y = 2").rows() == [(2,)], injector.where
        engine.sql("DROP INDEX IF EXISTS i; DROP TABLE t")


@pytest.mark.parametrize("error", ERRORS)
def test_a_query_whose_answer_is_interrupted_leaves_nothing_behind(error: type[BaseException]) -> None:
    injector = Injector(("engine/collect.py", "engine/installation.py", "engine/lock.py", "engine/engine_core.py"))
    with tk.Engine() as engine:
        table = engine.create_table("t", {"x": int})
        table.insert([(1,), (2,)])

        def run() -> None:
            table.count(by="x").filter(tk.col("x") > 1).collect()

        injector.call(run)
        for at in range(1, injector.lines + 1):
            injector.call(run, at, error)
            assert not core_of(engine).views, injector.where


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("of", ["a table", "a query"])
def test_an_index_whose_making_is_interrupted_is_not_there(of: str, error: type[BaseException]) -> None:
    injector = Injector(("engine", "runtime", "dataflow/flow.py"))
    with tk.Engine() as engine:
        table = engine.create_table("t", {"x": int, "y": int})
        table.insert([(n, n % 3) for n in range(20)])

        def run() -> tk.Index:
            collection = table if of == "a table" else table.filter(tk.col("x") > 3)
            return engine.create_index(collection, by="y")

        made: list[tk.Index] = []
        injector.call(lambda: made.append(run()))
        made.pop().drop()
        there = [info.name for info in engine.indexes()]
        for at in range(1, injector.lines + 1):
            injector.call(lambda: made.append(run()), at, error)
            if made:
                made.pop().drop()
            engine.install("v", table.count(by="y"))  # cleans up
            engine.drop("v")
            assert [info.name for info in engine.indexes()] == there, injector.where


@pytest.mark.parametrize("error", ERRORS)
def test_nobody_asks_for_arguments_once_the_block_is_left_by_whatever_way(error: type[BaseException]) -> None:
    with tk.Engine() as engine:
        table = engine.create_table("t", {"x": int})
        query = tk.ArgumentQuery(engine, "of x", {"x": int}, lambda asked: asked.join(table, on="x"))

        def run() -> None:
            with query.asked(1):
                pass

        injector = Injector(("blocks.py", "engine/argument_query.py"))
        injector.call(run)
        for at in range(1, injector.lines + 1):
            injector.call(run, at, error)
            assert query.arguments.rows() == [], injector.where
