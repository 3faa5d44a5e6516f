"""Who works on a dataflow that is not finished: whoever wants its answer, and no writer beside them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

import tektite as tk
from tektite.dataflow.away import LONG
from tektite.dataflow.flow import Dataflow
from tektite.engine import finishing, notices
from tektite.engine.core import core_of
from tektite.engine.lock import EngineLock
from tests.support.stops import SECONDS, Stop

MANY = 2 * LONG
LOOP = """
    WITH RECURSIVE up(n) AS (SELECT x AS n FROM big WHERE x < 10 UNION SELECT n + 1 AS n FROM up WHERE n < 300)
    SELECT count(*) AS many FROM up
"""
"""A query of many small rounds: its turns end between two of them."""


class Workers:
    """The threads that have worked on dataflows, by name."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.found: dict[str, set[str]] = {}
        there = Dataflow.work

        def work(flow: Dataflow, deadline: float) -> bool:
            self.found.setdefault(flow.name, set()).add(threading.current_thread().name)
            return there(flow, deadline)

        monkeypatch.setattr(Dataflow, "work", work)


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch) -> Workers:
    return Workers(monkeypatch)


@pytest.fixture
def engine() -> Iterator[tk.Engine]:
    with tk.Engine(turn=0.0) as made:
        made.create_table("big", {"x": tk.Int}).insert(pa.table({"x": range(MANY)}))
        made.create_table("small", {"k": tk.Int})
        made.install("count", made.table("small").count(by="k"))
        yield made


def test_a_writer_leaves_a_view_to_the_thread_that_reads_it(
    engine: tk.Engine, workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    paused, goes_on = threading.Event(), threading.Event()
    there = EngineLock.let_others

    def let_others(lock: EngineLock) -> None:
        if threading.current_thread().name.startswith("reader"):
            lock.without(lambda: (paused.set(), goes_on.wait(SECONDS)))
        else:
            there(lock)

    monkeypatch.setattr(EngineLock, "let_others", let_others)
    view = engine.sql(f"CREATE MATERIALIZED VIEW heavy AS {LOOP}").view
    assert view is not None and not view.current
    with ThreadPoolExecutor(1, "reader") as threads:
        reading = threads.submit(view.rows)
        assert paused.wait(SECONDS)
        workers.found.clear()
        engine.table("small").insert([(1,)])
        engine.table("big").insert([(5,)])
        assert engine.view("count").rows() == [(1, 1)]
        assert "heavy" not in workers.found and "count" in workers.found
        core_of(engine).coordinator.turn = SECONDS
        goes_on.set()
        assert reading.result(SECONDS) == [(301,)]
    assert all([name.startswith("reader") for name in workers.found["heavy"]])
    assert view.current  # with what was written while nobody else worked on it


def test_a_reader_who_gives_up_goes_on_with_what_writers_have_left_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    paused, goes_on, is_late = threading.Event(), threading.Event(), threading.Event()
    there = EngineLock.let_others

    def let_others(lock: EngineLock) -> None:
        if threading.current_thread().name.startswith("reader"):
            lock.without(lambda: (paused.set(), goes_on.wait(SECONDS)))
        else:
            there(lock)

    def is_over(deadline: float | None) -> bool:
        return deadline is not None and is_late.is_set()

    told: list[pa.Table] = []
    with tk.Engine() as engine:
        coordinator = core_of(engine).coordinator
        numbers = engine.create_table("numbers", {"x": tk.Int, "y": tk.Int})
        numbers.insert([(n, n % 3) for n in range(5)])
        pairs = engine.install("pairs", numbers.join(numbers, on="y").group_by("x").agg(total=tk.sum("x_right")))
        engine.install("light", pairs.filter(tk.col("x") >= 0), on_change=told.append)
        engine.settle()
        coordinator.turn = 1e-9
        numbers.insert([(8, 1)])
        view = engine.sql(f"CREATE MATERIALIZED VIEW heavy AS {LOOP.replace('big', 'pairs')}").view
        assert view is not None and not view.current and not pairs.current
        told.clear()
        with ThreadPoolExecutor(1, "reader") as threads, monkeypatch.context() as patch:
            patch.setattr(EngineLock, "let_others", let_others)
            for module in (finishing, notices):
                patch.setattr(module, "is_over", is_over)
            reading = threads.submit(lambda: view.rows(at=engine.time, timeout=SECONDS))
            assert paused.wait(SECONDS)
            coordinator.turn = SECONDS
            numbers.insert([(9, 2)])
            assert not told
            is_late.set()
            goes_on.set()
            reading.exception(SECONDS)  # or an answer, if that was finished meanwhile
        assert told and engine.view("light").current


def test_a_writer_goes_on_with_what_nobody_finishes(engine: tk.Engine, workers: Workers) -> None:
    view = engine.sql(f"CREATE MATERIALIZED VIEW heavy AS {LOOP}").view
    assert view is not None and not view.current
    workers.found.clear()
    engine.table("small").insert([(1,)])
    assert "heavy" in workers.found


def test_what_is_left_is_finished_by_who_is_told(engine: tk.Engine, workers: Workers) -> None:
    left = threading.Event()
    core = core_of(engine)
    core.coordinator.on_left = left.set
    view = engine.sql(f"CREATE MATERIALIZED VIEW heavy AS {LOOP}").view
    assert view is not None and not view.current
    assert left.is_set()
    left.clear()
    workers.found.clear()
    engine.table("small").insert([(1,)])
    assert left.is_set() and "heavy" not in workers.found
    with ThreadPoolExecutor(1, "finisher") as threads:
        while threads.submit(core.finish_left, 0.001).result(SECONDS):
            pass
    assert view.current and workers.found["heavy"] == {"finisher_0"}
    assert view.rows() == [(301,)]


def test_many_new_rows_are_left_and_few_are_not(engine: tk.Engine, workers: Workers) -> None:
    left = threading.Event()
    core = core_of(engine)
    core.coordinator.turn = SECONDS
    view = engine.install("largest", engine.table("big").group_by().agg(largest=tk.max("x")))
    assert view.rows() == [(MANY - 1,)]
    core.coordinator.on_left = left.set
    workers.found.clear()
    engine.table("big").insert(pa.table({"x": range(MANY, MANY + LONG)}))
    assert left.is_set() and "largest" not in workers.found
    assert not core.finish_left(SECONDS)
    left.clear()
    engine.table("big").insert([(9 * MANY,)])
    assert not left.is_set()
    assert view.current and view.rows() == [(9 * MANY,)]


@pytest.mark.parametrize("closing", [False, True])
def test_a_sweep_that_is_away_keeps_what_waits_until_it_is_back(monkeypatch: pytest.MonkeyPatch, closing: bool) -> None:
    stop = Stop(monkeypatch)
    cleared: list[str] = []
    with tk.Engine() as engine, ThreadPoolExecutor(1) as threads:
        big = engine.create_table("big", {"k": tk.Int, "v": tk.Int})
        big.insert(pa.table({"k": range(MANY), "v": range(MANY)}))
        stop.set(1)
        installing = threads.submit(lambda: engine.install("heavy", big.select("v", n=tk.col("k") + 1)).rows())
        assert stop.reached.wait(SECONDS)
        root = core_of(engine.view("heavy")).flow.root
        clear = type(root).clear
        monkeypatch.setattr(
            type(root), "clear", lambda scope: (cleared.append(threading.current_thread().name), clear(scope))
        )
        if closing:
            engine.close()
        else:
            engine.drop("heavy")
        assert not cleared
        stop.go_on()
        assert isinstance(installing.exception(SECONDS), tk.TektiteError)
        assert cleared and threading.current_thread().name not in cleared


def test_what_unique_forbids_is_refused_while_many_rows_are_on_their_way(monkeypatch: pytest.MonkeyPatch) -> None:
    stop = Stop(monkeypatch)
    for at in range(SECONDS):
        with tk.Engine() as engine, ThreadPoolExecutor(1) as threads:
            engine.sql("CREATE TABLE t (k bigint PRIMARY KEY, x bigint UNIQUE)")
            table = engine.table("t")
            engine.install("sums", table.select(m=tk.col("x") % 7, x="x").group_by("m").agg(tk.sum("x")))
            table.insert([(-1, -1)])
            stop.set(at)
            loading = threads.submit(table.insert, pa.table({"k": range(MANY), "x": range(MANY)}))
            loading.add_done_callback(lambda _: stop.reached.set())
            assert stop.reached.wait(SECONDS)  # the rows are there, and their consequences are on their way
            is_over = stop.at >= 0
            try:
                for x in (-1, 5, MANY - 1):
                    with pytest.raises(tk.ConflictError, match="there would be two rows"):
                        table.insert([(2 * MANY, x)])
                table.insert([(2 * MANY, 2 * MANY)])
            finally:
                stop.go_on()
            loading.result(SECONDS)
            assert engine.sql("SELECT count(*), count(DISTINCT x) FROM t").rows() == [(MANY + 2, MANY + 2)]
        if is_over:
            assert at
            return
