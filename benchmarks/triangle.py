"""Figures 6 and 7 of the thesis: the triangles of a skewed graph while it grows, with every order of the clauses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations
from pathlib import Path
from typing import Any

from benchmarks.conjunctions import Triangles, count_triangles, rmat_edges
from benchmarks.maintained import turns
from benchmarks.measure import MIB, Laps, Others, ccdf, memory
from benchmarks.plots import Record, draw_ccdf, figure

NAME = "triangle"
DESCRIPTION = "triangles of an R-MAT edge stream, counted: hector, delta and join at a time, all clause orders"


def run(
    edges: int = 10_000_000,
    scale: int = 21,
    batch: int = 10_000,
    workers: int = 1,
    seconds: float = 120.0,
    mib: int = 2_048,
    check: bool = True,
    strategies: Sequence[str] = ("hector", "binary", "delta"),
) -> Iterator[dict[str, Any]]:
    """A record for each strategy and clause order. Who has taken `seconds` of processor time or holds more than `mib` stops
    there: `edges_done` says how far it came, and `common_seconds` what it took for as many edges as the slowest one did.
    """
    src, dst = rmat_edges(edges, scale)
    orders = {f"{s} {''.join(map(str, o))}": (s, o) for s in strategies for o in permutations(range(3))}
    computations = {name: Triangles(strategy, order, workers) for name, (strategy, order) in orders.items()}
    laps = {name: Laps() for name in orders}
    going = set(orders)
    others = Others()
    counts: dict[str, int] = {}
    held_mib: dict[str, float] = {}
    for epoch, name in turns(orders, -(-edges // batch)):
        if name not in going:
            continue
        start = epoch * batch
        with laps[name].lap():
            computations[name].insert(src[start : start + batch], dst[start : start + batch])
        held = computations[name].engine.bytes
        last = start + batch >= edges
        if last or sum(laps[name].cpu) > seconds or held > mib * MIB:
            going.discard(name)
            counts[name] = computations[name].count()
            done = min(start + batch, edges)
            if check and done <= 2_000_000 and counts[name] != count_triangles(src[:done], dst[:done]):
                raise AssertionError(f"{name}: {counts[name]} triangles among {done} edges is wrong")
            computations[name].close()
            held_mib[name] = held / MIB
            del computations[name]
    common = min(len(found.seconds) for found in laps.values())
    for name, found in laps.items():
        done = min(len(found.seconds) * batch, edges)
        yield (
            {"strategy": name, "edges_done": done, "triangles": counts[name]}
            | {
                "common_edges": common * batch,
                "common_cpu_seconds": sum(found.cpu[:common]),
                "held_mib": held_mib[name],
            }
            | found.figures(done)
            | memory()
            | others.figures()
            | {"ccdf": ccdf(found.seconds)}
        )


def plot(records: list[Record], path: Path) -> None:
    title = f"Thesis, figures 6 and 7: triangles of an R-MAT graph, epochs of {records[0]['batch']} edges"
    with figure(path, 1, title) as (axes,):
        draw_ccdf(axes, records, lambda r: f"{r['strategy']} ({r['edges_done']:,} edges)", "epochs")
