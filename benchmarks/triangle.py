"""Figures 6 and 7 of the thesis: the triangles of a skewed graph while it grows, with every order of the clauses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
    history: int = 0,
    strategies: Sequence[str] = ("hector", "binary", "delta"),
    orders: Sequence[str] = ("012", "021", "102", "120", "201", "210"),
) -> Iterator[dict[str, Any]]:
    """A record for each strategy and clause order. Whoever but Hector has taken `seconds` of processor time, or holds more than
    `mib`, stops there: `edges_done` says how far it came, `as_far_cpu_seconds` what it took and `hector_cpu_seconds` what the
    slowest order of Hector took for as many edges. The first `history` edges are there before the view is installed.
    """
    src, dst = rmat_edges(edges, scale)
    names = {
        f"{s} {str(o).zfill(3)}": (s, [int(place) for place in str(o).zfill(3)]) for s in strategies for o in orders
    }
    computations: dict[str, Triangles] = {}
    installs: dict[str, Laps] = {}
    for name, (strategy, order) in names.items():
        computations[name] = computation = Triangles(strategy, order, workers, installed=not history)
        installs[name] = Laps()
        if history:
            computation.insert(src[:history], dst[:history])
            with installs[name].lap():
                computation.install()
    laps = {name: Laps() for name in names}
    going = set(names)
    others = Others()
    counts: dict[str, int] = {}
    held_mib: dict[str, float] = {}
    for epoch, name in turns(names, -(-(edges - history) // batch)):
        if name not in going:
            continue
        start = history + epoch * batch
        with laps[name].lap():
            computations[name].insert(src[start : start + batch], dst[start : start + batch])
        held = computations[name].engine.bytes
        last = start + batch >= edges
        cut = names[name][0] != "hector" and (sum(laps[name].cpu) > seconds or held > mib * MIB)
        if last or cut:
            going.discard(name)
            counts[name] = computations[name].count()
            done = min(start + batch, edges)
            if check and done <= 2_000_000 and counts[name] != count_triangles(src[:done], dst[:done]):
                raise AssertionError(f"{name}: {counts[name]} triangles among {done} edges is wrong")
            computations[name].close()
            held_mib[name] = held / MIB
            del computations[name]
    for name, found in laps.items():
        done = min(history + len(found.seconds) * batch, edges)
        hector = [sum(laps[other].cpu[: len(found.cpu)]) for other in names if names[other][0] == "hector"]
        yield (
            {"strategy": name, "edges_done": done, "triangles": counts[name]}
            | {
                "as_far_cpu_seconds": sum(found.cpu),
                "hector_cpu_seconds": max(hector, default=0.0),
                "held_mib": held_mib[name],
            }
            | {f"install_{what}": taken for what, taken in installs[name].total().items() if history}
            | found.figures(done - history)
            | memory()
            | others.figures()
            | {"ccdf": ccdf(found.seconds)}
        )


def plot(records: list[Record], path: Path) -> None:
    title = f"Thesis, figures 6 and 7: triangles of an R-MAT graph, epochs of {records[0]['batch']} edges"
    with figure(path, 1, title) as (axes,):
        draw_ccdf(
            axes,
            records,
            lambda r: f"{r['strategy']} ({r['edges_done']:,} edges)",
            "epochs",
        )
