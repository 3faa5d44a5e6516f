"""One node with a tenth of all edges: how evenly workers share the work of 2-hop counts, triangles and degrees.

Beside seconds, which other programs disturb, this measures the processor time of each worker. `balance` is the processor time of
all workers, divided by that of the busiest one at each step: the number of workers if all have the same to do, 1 if one has all.
`speedup` compares processor time on the longest way (what one worker after another has to wait for) with that of one worker.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import tektite as tk
from benchmarks.conjunctions import rmat_edges
from benchmarks.measure import Laps, Others
from benchmarks.plots import Record, figure
from benchmarks.workloads import Words, bfs_edges
from tektite.engine.core import core_of
from tektite.runtime.threads import Threads

NAME = "skew"
DESCRIPTION = "2-hop counts, triangles and degrees of graphs with hubs: seconds, and how evenly workers share the work"

TASKS = ("2-hop count", "2-hop by end", "2-hop by middle", "triangles", "degree")


def run(
    graphs: Sequence[str] = ("hub", "rmat"),
    tasks: Sequence[str] = TASKS,
    nodes: int = 200_000,
    edges: int = 400_000,
    scale: int = 15,
    workers: Sequence[int] = (1, 2),
    epochs: int = 20,
    batch: int = 1_000,
    check: bool = True,
) -> Iterator[dict[str, Any]]:
    """For each graph, task and number of workers a record of the first answer, and one of `epochs` epochs of `batch` new edges.
    A hub graph has random edges, a tenth of which begin, and a tenth of which end, at node 0. An R-MAT graph has 2**scale nodes.
    """
    for kind in graphs:
        src, dst = (
            hub_edges(nodes, edges + epochs * batch) if kind == "hub" else rmat_edges(edges + epochs * batch, scale)
        )
        for task in tasks:
            alone: dict[str, float] = {}
            answers = []
            for count in workers:
                found = Shared(count)
                table = found.engine.create_table(
                    "edges", {"src": tk.Int, "dst": tk.Int}, order_by=["src", "dst"], shard_by="src", checked=False
                )
                found.write(table, src[:edges], dst[:edges])
                others, laps = Others(), Laps()
                found.reset()
                with laps.lap():
                    view = found.engine.install(task, BUILD[task](table))
                    found.engine.settle()
                yield found.record(kind, task, "first", count, alone) | laps.total() | others.figures()
                others, laps = Others(), Laps()
                found.reset()
                for epoch in range(epochs):
                    part = slice(edges + epoch * batch, edges + (epoch + 1) * batch)
                    with laps.lap():
                        found.write(table, src[part], dst[part])
                        found.engine.finish(view)
                yield found.record(kind, task, "epochs", count, alone) | laps.figures(epochs * batch) | others.figures()
                answers.append(sorted(view.rows()))
                found.engine.close()
            if check and any(answer != answers[0] for answer in answers):
                raise AssertionError(f"{task} of the {kind} graph depends on the number of workers")


def hub_edges(nodes: int, edges: int) -> tuple[Words, Words]:
    """Random edges; node 0 has a tenth of all sources and a tenth of all targets."""
    src, dst = bfs_edges(nodes, 0, edges)
    places = np.arange(edges)
    return np.where(places % 10 == 3, 0, src), np.where(places % 10 == 7, 0, dst)


def two_hops(edges: tk.Collection) -> tk.Collection:
    return edges.join(edges.select(middle="src", end="dst"), left_on="dst", right_on="middle")


BUILD: dict[str, Callable[[tk.Table], tk.Collection]] = {
    "2-hop count": lambda edges: two_hops(edges).count(),
    "2-hop by end": lambda edges: two_hops(edges).count(by="end"),
    "2-hop by middle": lambda edges: two_hops(edges).count(by="dst"),
    "triangles": lambda edges: tk.match((edges, ("a", "b")), (edges, ("b", "c")), (edges, ("a", "c")), find=[]).count(),
    "degree": lambda edges: edges.count(by="src"),
}


class TimedThreads(Threads):
    """Threads that say how much processor time each worker took, and how much the busiest one of each step."""

    def __init__(self, workers: int) -> None:
        super().__init__(workers)
        self.reset()

    def reset(self) -> None:
        self.all_workers = self.longest = 0.0
        self.began = time.process_time()

    def map(self, work: Any, shards: int, rows: int) -> Any:
        taken = [0.0] * shards

        def timed(shard: int, outbox: Any) -> None:
            start = time.thread_time()
            try:
                work(shard, outbox)
            finally:
                taken[shard] = time.thread_time() - start

        found = super().map(timed, shards, rows)
        self.all_workers += sum(taken)
        self.longest += max(taken) if rows >= 8192 else sum(taken)
        return found

    def spread(self, tasks: Sequence[Callable[[], None]]) -> None:
        taken = [0.0] * len(tasks)

        def timed(at: int) -> Callable[[], None]:
            def task() -> None:
                start = time.thread_time()
                try:
                    tasks[at]()
                finally:
                    taken[at] = time.thread_time() - start

            return task

        super().spread([timed(at) for at in range(len(tasks))])
        self.all_workers += sum(taken)
        self.longest += max([*taken, sum(taken) / self.workers])


class Shared:
    """An engine whose workers' processor time is measured."""

    def __init__(self, workers: int) -> None:
        self.engine = tk.Engine(workers, autocommit=False)
        self.timed = TimedThreads(workers)
        core_of(self.engine).run_on(lambda before: self.timed)

    def write(self, table: tk.Table, src: Words, dst: Words) -> None:
        table.insert(np.stack([src, dst], axis=1))
        self.engine.advance()

    def reset(self) -> None:
        self.timed.reset()

    def record(self, kind: str, task: str, phase: str, workers: int, alone: dict[str, float]) -> dict[str, Any]:
        timed = self.timed
        cpu = time.process_time() - timed.began
        longest = cpu - timed.all_workers + timed.longest
        first = alone.setdefault(phase, cpu)
        return {
            "graph": kind, "task": task, "phase": phase, "of_workers": workers,
            "balance": round(timed.all_workers / timed.longest, 2) if timed.longest else 1.0,
            "longest_s": longest, "speedup": round(first / longest, 2),
        }  # fmt: skip


def plot(records: list[Record], path: Path) -> None:
    """Bars of the speed-ups by the longest way."""
    with figure(path, 1, "Work on graphs with hubs: what several workers gain", (12.0, 5.0)) as (axes,):
        found = [one for one in records if one["of_workers"] > 1]
        names = [f"{one['graph']}, {one['task']},\n{one['phase']}" for one in found]
        axes.barh(range(len(found)), [one["speedup"] for one in found])
        axes.set_yticks(range(len(found)), names, fontsize=7)
        axes.axvline(1.5, color="grey", linestyle=":")
        axes.set_xlabel("processor time of one worker / that of the longest way of several")
