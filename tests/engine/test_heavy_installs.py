"""A heavy installation holds nobody up: between any two of its steps others read, write, install, drop and close."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pytest

import tektite as tk
from tektite.dataflow.away import LONG
from tektite.engine.core import core_of
from tests.support.patience import until
from tests.support.stops import SECONDS, Stop

MANY = LONG + 5000

HEAVY = {
    "index": "SELECT v + 1 AS w, k FROM big WHERE v <> 3",
    "groups": "SELECT k, count(*) AS n, sum(v) AS s FROM big GROUP BY k",
    "distinct": "SELECT DISTINCT v, k FROM big",
    "join": "SELECT big.k, v, w FROM big JOIN other ON big.k = other.k",
    "three": "SELECT a.k, a.v, b.w, c.v AS x FROM big a JOIN other b ON a.k = b.k JOIN big c ON b.w = c.k",
    "outer": "SELECT big.k, v, w FROM big LEFT JOIN other ON big.k = other.k AND w > 5",
    "window": "SELECT k, v, row_number() OVER (PARTITION BY v % 5 ORDER BY k, v) AS r FROM big",
    "function": "SELECT k % 7 AS m, string_agg(v::text, ',' ORDER BY v) AS t FROM big WHERE v < 9 GROUP BY k % 7",
    "loop": """
        WITH RECURSIVE reached(k) AS (
            SELECT k FROM big UNION SELECT k + 100000 AS k FROM reached WHERE k < 150000
        ) SELECT k FROM reached
    """,
}
"""Queries whose installation is away now and then: together they have every operator that is."""


def numbers(first: int, many: int) -> pa.Table:
    return pa.table({"k": range(first, first + many), "v": [n * 7 % 1000 for n in range(many)]})


class World:
    """A large table, one to join it with, and a small one with a view."""

    def __init__(self, workers: int) -> None:
        self.engine = engine = tk.Engine(workers=workers)
        self.big = engine.create_table("big", {"k": tk.Int, "v": tk.Int})
        self.other = engine.create_table("other", {"k": tk.Int, "w": tk.Int})
        self.small = engine.create_table("small", {"k": tk.Int})
        self.count = engine.install("count", self.small.count(by="k"))
        self.big.insert(numbers(0, MANY))
        self.other.insert(pa.table({"k": range(MANY), "w": [n % 100 for n in range(MANY)]}))

    def anew(self, query: str) -> Counter[Any]:
        """What a query gives in an engine of its own, with nobody beside it."""
        with tk.Engine() as engine:
            for table in (self.big, self.other):
                engine.create_table(table.name, dict(table.schema)).insert(table.to_arrow())
            return Counter(engine.sql(query).rows())


@pytest.fixture
def stop(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stop]:
    made = Stop(monkeypatch)
    yield made
    made.go_on()


def each_stop(stop: Stop, query: str, workers: int, error: type[BaseException] | None = None) -> Iterator[
    tuple[World, Future[Any]]
]:  # fmt: skip
    """Worlds in which another thread installs a query, and has stopped at the first point, at the second, ..."""
    at = 0
    while True:
        world = World(workers)
        with ThreadPoolExecutor(1) as threads:
            stop.set(at, error)

            def install(world: World = world) -> Counter[Any]:
                view = world.engine.sql(f"CREATE MATERIALIZED VIEW heavy AS {query}").view
                assert view is not None
                return Counter(view.rows())

            installing = threads.submit(install)
            installing.add_done_callback(lambda _: stop.reached.set())
            try:
                assert stop.reached.wait(SECONDS)
                if stop.at >= 0:  # it has not come so far
                    stop.go_on()
                    assert installing.result(SECONDS) == world.anew(query)
                    assert at
                    return
                yield world, installing
            finally:
                stop.go_on()
        world.engine.close()
        at += 1


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("query", HEAVY)
def test_others_read_write_and_install_at_every_stop(stop: Stop, query: str, workers: int) -> None:
    for world, installing in each_stop(stop, HEAVY[query], workers):
        engine = world.engine
        world.small.insert([(1,), (1,), (2,)])
        assert sorted(world.count.rows()) == [(1, 2), (2, 1)]
        world.big.insert([(3, 4), (MANY + 1, 4)])
        world.big.remove([(1, 7)])
        made = engine.install("made", world.other.filter(tk.col("k") < 3).count())
        assert made.rows() == [(3,)]
        made.drop()
        assert not engine.run()
        stop.go_on()
        installing.result(SECONDS)
        assert Counter(engine.view("heavy").rows()) == world.anew(HEAVY[query])


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("query", HEAVY)
def test_it_can_be_dropped_and_installed_again_at_every_stop(stop: Stop, query: str, workers: int) -> None:
    for world, installing in each_stop(stop, HEAVY[query], workers):
        engine = world.engine
        engine.drop("heavy")
        stop.go_on()
        assert installing.exception(SECONDS) is None or isinstance(installing.exception(), tk.TektiteError)
        left = sorted(info.name for info in engine.indexes() if not info.name.startswith("__"))
        assert left == ["big", "count", "other", "small"]
        world.big.remove([(1, 7)])
        again = engine.sql(f"CREATE MATERIALIZED VIEW heavy AS {HEAVY[query]}").view
        assert again is not None
        assert Counter(again.rows()) == world.anew(HEAVY[query])


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("query", ["groups", "three", "window", "loop"])
def test_the_engine_can_be_closed_at_every_stop(stop: Stop, query: str, workers: int) -> None:
    for world, installing in each_stop(stop, HEAVY[query], workers):
        closing = threading.Thread(target=world.engine.close)
        closing.start()
        until(lambda: core_of(world.engine).is_closed)  # noqa: B023
        stop.go_on()
        closing.join(SECONDS)
        assert not closing.is_alive()
        assert isinstance(installing.exception(SECONDS), tk.TektiteError)


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
@pytest.mark.parametrize("query", HEAVY)
def test_an_interrupt_at_any_stop_fails_the_view_alone(stop: Stop, query: str, error: type[BaseException]) -> None:
    for world, installing in each_stop(stop, HEAVY[query], 1, error):
        assert installing.exception(SECONDS) is not None
        stop.go_on()
        engine = world.engine
        world.big.insert([(3, 4)])
        if "heavy" in engine.views:
            assert engine.view("heavy").failure is not None
            engine.drop("heavy")
        again = engine.sql(f"CREATE MATERIALIZED VIEW heavy AS {HEAVY[query]}").view
        assert again is not None
        assert Counter(again.rows()) == world.anew(HEAVY[query])


@pytest.mark.parametrize("workers", [1, 2])
def test_rows_that_fail_meanwhile_are_errors_of_the_view(stop: Stop, workers: int) -> None:
    query = "SELECT k, v + 9223372036854774809 AS q FROM big"  # which is too large where v is 999
    stops = 0
    for at in range(SECONDS):
        world = World(workers)
        with world.engine as engine, ThreadPoolExecutor(1) as threads:
            stop.set(at)
            installing = threads.submit(engine.sql, f"CREATE MATERIALIZED VIEW heavy AS {query}")
            installing.add_done_callback(lambda _: stop.reached.set())
            assert stop.reached.wait(SECONDS)
            stops += stop.at < 0
            world.big.insert([(MANY + 1, 999)])
            stop.go_on()
            installing.result(SECONDS)
            with pytest.raises(tk.IncorrectError, match="found 999"):
                engine.view("heavy").rows()
            engine.sql("DELETE FROM big WHERE v = 999")
            assert Counter(engine.view("heavy").rows()) == world.anew(query)
        if stops <= at:
            break
    assert stops
