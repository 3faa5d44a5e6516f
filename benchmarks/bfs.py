"""Distances from one node of a random graph, maintained by a loop while edges are swapped for others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.anchors import beside, run_anchor, with_anchor
from benchmarks.maintained import Distances, closed_loop, edge_array
from benchmarks.measure import Laps, Others, ccdf, memory, reset_peak
from benchmarks.plots import ANCHOR, Record, draw_bars, draw_ccdf, figure, plural, short

NAME = "bfs"
DESCRIPTION = "distances from node 0 in a random graph of n nodes and m edges, then epochs of S swapped edges"


def run(
    n: int = 1_000_000,
    m: int = 10_000_000,
    S: Sequence[int] = (1, 10, 1_000),
    duration: float = 8.0,
    merging: str = "default",
    check: bool = True,
    anchor: str = "",
) -> Iterator[dict[str, Any]]:
    """A record for the process before it has data (`base_mib`), one for the first answer, one for each size. With `anchor`, the
    program of benchmarks/anchor, differential-dataflow does the same first.
    """
    other = run_anchor(anchor, "bfs", n, m, round(duration), *S)
    laps = Laps()
    with laps.lap():
        start_up()
    computation = Distances(n, merging=merging)
    yield {"phase": "start", "seconds": laps.seconds[0], "base_mib": memory()["rss_mib"]}
    edges = edge_array(n, m)
    reset_peak()
    others, laps = Others(), Laps()
    with laps.lap():
        computation.load(edges)
    del edges
    yield with_anchor({"phase": "first"} | laps.total() | memory() | others.figures(), other, "phase")
    for swaps in S:
        reset_peak()
        others, laps = Others(), Laps()
        for work in closed_loop(partial(computation.epochs, swaps), 2 * swaps, duration):
            with laps.lap():
                computation.update(*work)
        figures = laps.figures(2 * swaps * len(laps.seconds))
        record = {"phase": "epochs", "S": swaps, "epochs": len(laps.seconds)} | figures | memory() | others.figures()
        yield with_anchor(record | {"ccdf": ccdf(laps.seconds)}, other, "phase", "S")
    if check:
        computation.check()
    computation.close()


def start_up() -> None:
    """Let a small computation use every kernel once, so that loading compiled code from its cache is measured apart."""
    small = Distances(1_000)
    small.load(edge_array(1_000, 20_000))
    for swaps in (1, 10, 1_000):
        for work in small.epochs(swaps, 10):
            small.update(*work)
    small.close()


def plot(records: list[Record], path: Path) -> None:
    """Latencies of the epochs, and the first answer beside the anchor's."""
    epochs = [record for record in records if record["phase"] == "epochs"]
    first = [record for record in records if record["phase"] == "first"]
    n, m = records[0]["n"], records[0]["m"]
    with figure(path, 2, f"bfs: distances in a graph of {short(n)} nodes and {short(m)} edges") as (left, right):
        draw_ccdf(left, epochs, lambda r: plural(r["S"], "edge") + " swapped", "epochs", anchors=True)
        ours = [record["seconds"] for record in first]
        theirs = [beside(record).get(ANCHOR, {}).get("seconds") for record in first]
        draw_bars(right, ["first answer"], {"tektite": ours, ANCHOR: theirs}, "seconds", log=False)
