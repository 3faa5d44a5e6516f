"""Faults of the coordinator and the threads."""

from __future__ import annotations

from typing import Any

import tektite as tk
from tests.house.mutations.dataflow import workers_exchange_by_key
from tests.house.mutations.fault import Fault, nothing


def a_reader_waits_until_its_view_is_current() -> None:
    """A turn of no time ends before anything is done: who asks for rows has the rest done."""
    with tk.Engine(turn=0.0) as engine:
        a = engine.input("a", x=tk.Int)
        first = engine.install("first", a.count(by="x"))
        second = engine.install("second", first.count(by="count", name="n"))
        for n in range(3):
            a.insert([(n,)])
            engine.advance()
            assert second.rows() == [(1, n + 1)]


def sources_run_before_their_readers() -> None:
    with tk.Engine() as engine:
        a = engine.input("a", x=tk.Int)
        first = engine.install("first", a.count(by="x"))
        second = engine.install("second", first.count())
        a.insert([(1,)])
        engine.advance()
        assert second.low == engine.epoch


def a_view_that_is_dropped_is_dropped() -> None:
    with tk.Engine() as engine:
        a = engine.input("a", x=tk.Int)
        seen: list[Any] = []
        view = engine.install("n", a.inspect(lambda table: seen.append(table.num_rows)).count())
        a.insert([(1,)])
        engine.advance()
        view.drop()
        seen.clear()
        a.insert([(2,)])
        engine.advance()
        assert seen == []


def every_shard_of_much_work_is_done() -> None:
    with tk.Engine(workers=2) as engine:
        a = engine.input("a", x=tk.Int)
        view = engine.install("n", a.select(x=tk.col("x") % 7).count(by="x"))
        a.insert([(n,) for n in range(21_000)])
        engine.advance()
        assert sorted(view.rows()) == [(x, 3000) for x in range(7)]


def one_shard_forgotten(there: Any) -> Any:
    def broken(self: Any, work: Any, shards: int, rows: int) -> Any:
        return there(self, lambda shard, outbox: work(shard, outbox) if shard < shards - 1 else None, shards, rows)

    return broken


def in_front(there: Any) -> Any:
    def broken(self: Any, flow: Any) -> None:
        there(self, flow)
        self.flows.insert(0, self.flows.pop())

    return broken


COORDINATOR = "tektite.runtime.coordinator Coordinator"
FAULTS = [
    Fault("nothing is finished", f"{COORDINATOR}.finish", nothing, a_reader_waits_until_its_view_is_current),
    Fault("what a view reads gets no time", f"{COORDINATOR}._upstream", lambda there: lambda self, flow: [flow],
          a_reader_waits_until_its_view_is_current),
    Fault("readers run before their sources", f"{COORDINATOR}.add", in_front, sources_run_before_their_readers),
    Fault("dropped dataflows go on", f"{COORDINATOR}.remove", nothing, a_view_that_is_dropped_is_dropped),
    Fault("the last shard does nothing", "tektite.runtime.threads Threads.map", one_shard_forgotten,
          every_shard_of_much_work_is_done),
    Fault("the last shard does nothing", "tektite.runtime.threads Threads.map", one_shard_forgotten, workers_exchange_by_key),
]  # fmt: skip
