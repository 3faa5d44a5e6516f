"""Faults of the coordinator and the threads, and of what nodes say to executors whose shards are elsewhere."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa

import tektite as tk
from tektite.dataflow.away import LONG
from tektite.engine.core import core_of
from tests.house.mutations.dataflow import workers_exchange_by_key
from tests.house.mutations.fault import Fault, nothing, returning
from tests.house.mutations.spark import sweeps_in_stages_are_right
from tests.support.stages import staged


def a_reader_waits_until_its_view_is_current() -> None:
    """A turn of no time ends before anything is done: who asks for rows has the rest done."""
    with tk.Engine(turn=0.0, autocommit=False) as engine:
        a = engine.create_table("a", {"x": tk.Int})
        first = engine.install("first", a.count(by="x"))
        second = engine.install("second", first.count(by="count", name="n"))
        for n in range(3):
            a.insert([(n,)])
            engine.advance()
            assert second.rows() == [(1, n + 1)]


def a_writer_leaves_what_is_large_to_others() -> None:
    with tk.Engine(turn=10.0) as engine:
        a = engine.create_table("a", {"x": tk.Int})
        view = engine.install("view", a.count(by="x"))
        core_of(engine).coordinator.on_left = lambda: None
        a.insert(pa.table({"x": range(LONG)}))
        assert not view.current
        assert len(view.rows()) == LONG


def sources_run_before_their_readers() -> None:
    with tk.Engine(autocommit=False) as engine:
        a = engine.create_table("a", {"x": tk.Int})
        first = engine.install("first", a.count(by="x"))
        second = engine.install("second", first.count())
        a.insert([(1,)])
        engine.advance()
        assert second.time + 1 == engine.next_epoch


def a_view_that_is_dropped_is_dropped() -> None:
    with tk.Engine(autocommit=False) as engine:
        a = engine.create_table("a", {"x": tk.Int})
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
    with tk.Engine(workers=2, autocommit=False) as engine:
        a = engine.create_table("a", {"x": tk.Int})
        view = engine.install("n", a.select(x=tk.col("x") % 7).count(by="x"))
        a.insert([(n,) for n in range(21_000)])
        engine.advance()
        assert sorted(view.rows()) == [(x, 3000) for x in range(7)]


def loops_in_stages_are_right() -> None:
    """Distances in a graph that changes, which a reduce reads back round by round."""
    pick = random.Random(1)
    rows = [(pick.randrange(9), pick.randrange(9)) for _ in range(14)]
    with tempfile.TemporaryDirectory() as folder, staged(Path(folder), workers=2, turn=60.0) as engine:
        edges = engine.create_table("edges", {"src": tk.Int, "dst": tk.Int})
        start = edges.select(node="src", far=0).filter(tk.col("node") == 0).distinct()

        def step(found: tk.Collection) -> tk.Collection:
            further = found.join(edges, left_on="node", right_on="src").select(node="dst", far=tk.col("far") + 1)
            return further.concat(start).min("far", by="node")

        view = engine.install("far", start.iterate(step, max_rounds=30))
        there: list[tuple[int, int]] = []
        for epoch in range(3):
            gone = there[:epoch]
            new = rows[epoch::3] if epoch else [(0, 1), *rows[::3]]
            edges.insert(new)
            edges.remove(gone)
            there = there[epoch:] + new
            engine.advance()
            assert dict(view.rows()) == distances(there), epoch


def distances(edges: list[tuple[int, int]]) -> dict[int, int]:
    """How many edges each node is from node 0."""
    found = {0: 0} if any(src == 0 for src, _ in edges) else {}
    for far in range(len(edges)):
        for src, dst in edges:
            if found.get(src) == far:
                found.setdefault(dst, far + 1)
    return found


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
    Fault("nothing is finished", f"{COORDINATOR}.finish", returning(True), a_reader_waits_until_its_view_is_current),
    Fault("what a view reads gets no time", f"{COORDINATOR}._upstream", lambda there: lambda self, flow: [flow],
          a_reader_waits_until_its_view_is_current),
    Fault("a writer works on everything", f"{COORDINATOR}._is_left", returning(False), a_writer_leaves_what_is_large_to_others),
    Fault("readers run before their sources", f"{COORDINATOR}.add", in_front, sources_run_before_their_readers),
    Fault("dropped dataflows go on", f"{COORDINATOR}.remove", nothing, a_view_that_is_dropped_is_dropped),
    Fault("the last shard does nothing", "tektite.runtime.threads Threads.map", one_shard_forgotten,
          every_shard_of_much_work_is_done),
    Fault("own results stay behind", "tektite.dataflow.reduce ReduceNode.consults", returning(()), loops_in_stages_are_right),
    Fault("rows are not collected", "tektite.runtime.shard _collected", returning(()), loops_in_stages_are_right),
    Fault("arranging needs no exchange", "tektite.runtime.stages followers",
          lambda there: lambda graph: [[(target, 0) for target, _ in found] for found in there(graph)],
          sweeps_in_stages_are_right),
    Fault("the last shard does nothing", "tektite.runtime.threads Threads.map", one_shard_forgotten, workers_exchange_by_key),
]  # fmt: skip
