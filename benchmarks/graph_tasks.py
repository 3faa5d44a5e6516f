"""Figures 11 and 14 to 16 of *Shared Arrangements*: index, reach, sssp and wcc on an R-MAT graph, then kept up to date.

A first answer is measured from edges in memory to the view being current, with the indexes that it needs. Then each epoch
adds `swaps` edges and removes as many. `recompute` is the first answer once more, for what an epoch saves. scc and pagerank have
no counterpart in the other programs.

With `anchor=FILE`, the program of benchmarks/anchor, differential-dataflow and single-threaded code over hash maps do the same
before. With `graphx=true`, GraphX on Spark computes reach and wcc, which are what it has of these. The paper's graph has 4.8M
nodes and 68M edges: `--param scale=22 --param edges=68_000_000`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import tektite as tk
from benchmarks.anchors import run_anchor, with_anchor
from benchmarks.conjunctions import rmat_edges
from benchmarks.measure import Laps, Others, ccdf, memory
from benchmarks.on_spark.graphx import GRAPHX, by_graphx
from benchmarks.plots import Record, draw_bars, draw_ccdf, figure, short
from benchmarks.workloads import Words
from tektite import graph

NAME = "graph_tasks"
DESCRIPTION = (
    "index, reach, sssp, wcc, scc and pagerank of an R-MAT graph: the first answer, then epochs of changed edges"
)

TASKS = ("index", "reach", "sssp", "wcc", "scc", "pagerank")
BESIDE = ("index", "reach", "sssp", "wcc")
"""Tasks that the other program has."""


def run(
    scale: int = 16,
    edges: int = 1_000_000,
    tasks: Sequence[str] = TASKS,
    workers: Sequence[int] = (1, 2),
    swaps: int = 1_000,
    epochs: int = 20,
    anchor: str = "",
    graphx: bool = False,
    java_memory: str = "4g",
    check: bool = True,
) -> Iterator[dict[str, Any]]:
    """For each task and number of workers a record of the first answer, and one of the epochs."""
    src, dst = rmat_edges(edges + swaps * epochs, scale)
    by_spark = {}
    if graphx:
        by_spark = by_graphx(
            src[:edges], dst[:edges], [task for task in tasks if task in GRAPHX], max(workers), java_memory
        )
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "edges"
        if anchor:
            np.stack([src, dst], axis=1).astype("<u4").tofile(file)
        for task in tasks:
            plain = run_anchor(anchor, "graph", str(file), f"plain-{task}", 1, edges, 0, 0) if task in BESIDE else []
            for count in workers:
                other = (
                    run_anchor(anchor, "graph", str(file), task, count, edges, swaps, epochs) if task in BESIDE else []
                )
                for record in measured(task, count, src, dst, edges, swaps, epochs):
                    found = with_anchor(record, other, "phase")
                    if record["phase"] == "first" and plain:
                        found |= {"plain_seconds": plain[0]["seconds"], "plain_cpu_seconds": plain[0]["cpu_seconds"]}
                    if record["phase"] == "first" and task in by_spark:
                        taken, rows = by_spark[task]
                        found |= {"graphx_seconds": taken, "of_graphx": taken / record["seconds"]}
                        if check and rows != record["rows"]:
                            raise AssertionError(f"{task}: {record['rows']} rows, and {rows} by GraphX")
                    if check and other and task != "index":
                        wanted = next(one["rows"] for one in other if one["phase"] == record["phase"])
                        if wanted != record["rows"]:
                            raise AssertionError(f"{task}: {record['rows']} rows, and {wanted} by the other program")
                    yield found


def measured(
    task: str, workers: int, src: Words, dst: Words, loaded: int, swaps: int, epochs: int
) -> Iterator[dict[str, Any]]:
    """The records of one task."""
    about = {"task": task, "of_workers": workers}
    engine = tk.Engine(workers, autocommit=False)
    weights = weights_of(src, dst)
    table = engine.create_table(
        "edges",
        {"src": tk.Int, "dst": tk.Int, "weight": tk.Int},
        order_by=["src", "dst"],
        shard_by="src",
        checked=False,
    )
    roots = engine.create_table("roots", {"node": tk.Int}, mode="set")
    roots.insert([(0,)])
    columns = np.stack([src, dst, weights], axis=1)
    found = graph.Graph(table, weight="weight", merge=False)
    others, laps = Others(), Laps()
    with laps.lap():
        table.insert(columns[:loaded])
        engine.advance()
        view = None if task == "index" else engine.install(task, BUILD[task](found, roots))
        engine.settle()
    rows = loaded if view is None else len(view)
    yield about | {"phase": "first", "rows": rows} | laps.total(loaded) | memory() | others.figures()
    others, laps = Others(), Laps()
    for epoch in range(epochs):
        at = epoch * swaps
        with laps.lap():
            table.insert(columns[loaded + at : loaded + at + swaps])
            table.remove(columns[at : at + swaps])
            engine.advance()
            engine.settle()
    rows = loaded if view is None else len(view)
    record: dict[str, Any] = (
        about | {"phase": "epochs", "rows": rows, "swaps": swaps} | laps.figures(2 * swaps * epochs)
    )
    if view is not None:
        again = Laps()
        with again.lap():
            engine.install("again", BUILD[task](found, roots))
            engine.settle()
        record |= {"recompute_s": again.seconds[0], "of_recompute": again.cpu[0] / (record["cpu_p50_us"] / 1e6)}
    yield record | memory() | others.figures() | {"ccdf": ccdf(laps.seconds)}
    engine.close()


def weights_of(src: Words, dst: Words) -> Words:
    """The weight of each edge, 1 to 10: a function of its ends, in 32 bits, as in benchmarks/anchor."""
    return ((src * 31 + dst * 17) & 0xFFFFFFFF) % 10 + 1


BUILD: dict[str, Callable[[graph.Graph, tk.Collection], tk.Collection]] = {
    "reach": graph.reach,
    "sssp": graph.sssp,
    "wcc": lambda found, roots: graph.wcc(found),
    "scc": lambda found, roots: graph.scc(found),
    "pagerank": lambda found, roots: graph.pagerank(found, tolerance=0.001),
}


def plot(records: list[Record], path: Path) -> None:
    """First answers beside those of other programs, and the latencies of epochs."""
    first = [one for one in records if one["phase"] == "first"]
    title = f"index, reach, sssp, wcc: R-MAT, {short(records[0]['edges'])} edges"
    with figure(path, 2, title) as (left, right):
        names = [f"{one['task']}, {one['of_workers']}" for one in first]
        bars = {
            "tektite": [one["seconds"] for one in first],
            "differential-dataflow": [one.get("anchor_seconds") for one in first],
            "hash maps": [one.get("plain_seconds") for one in first],
            "GraphX": [one.get("graphx_seconds") for one in first],
        }
        draw_bars(left, names, bars, "seconds", log=True)
        epochs = [one for one in records if one["phase"] == "epochs"]
        draw_ccdf(right, epochs, lambda one: f"{one['task']}, {one['of_workers']}", "epochs")
