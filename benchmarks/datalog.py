"""Appendix D of *Shared Arrangements*: transitive closure and same generation, evaluated in full on trees, grids and G(n, p)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import tektite as tk
from benchmarks.anchors import beside
from benchmarks.graphs import Edges, closure_size, graph, same_generation_graph, same_generation_size
from benchmarks.maintained import WrongAnswer
from benchmarks.measure import Laps, Others, memory, reset_peak
from benchmarks.plots import ANCHOR, Record, draw_bars, figure

NAME = "datalog"
DESCRIPTION = "tc and sg in full on a graph, then epochs that take an edge out and put it back"

RULES = {
    "tc": "tc(x, y) :- edge(x, y).  tc(x, z) :- tc(x, y), edge(y, z).",
    "sg": "sg(x, y) :- edge(p, x), edge(p, y), x != y.  sg(x, y) :- edge(a, x), sg(a, b), edge(b, y).",
}
MATRIX = 2_000
"""Nodes up to which same generation is checked: it takes products of matrices of that size."""


def run(
    programs: Sequence[str] = ("tc", "sg"),
    graphs: Sequence[str] = ("tree-8", "grid-50", "gnp-1000-0.01"),
    workers: Sequence[int] = (1,),
    swaps: int = 10,
    check: bool = True,
) -> Iterator[dict[str, Any]]:
    """A record for each first answer and one for the epochs after it."""
    start_up()
    for wanted in graphs:
        for program in programs:
            name = same_generation_graph(wanted) if program == "sg" else wanted
            edges = graph(name)
            for count in workers:
                for record in evaluate(program, edges, count, swaps, check):
                    yield {"program": program, "graph": name, "workers": count} | record


def start_up() -> None:
    """Use every kernel once, so that loading compiled code is not measured."""
    for program in RULES:
        for _ in evaluate(program, graph("gnp-50-0.05"), 1, 1, check=False):
            pass


def evaluate(program: str, edges: Edges, workers: int, swaps: int, check: bool) -> Iterator[dict[str, Any]]:
    """Evaluate a program on a graph, then take some edges out and put them back, one epoch each."""
    with tk.Engine(workers) as engine:
        table = engine.input("edge", x=tk.Int, y=tk.Int, semantics="set")
        engine.datalog(RULES[program])
        view = engine.view(program)
        reset_peak()
        others, laps = Others(), Laps()
        with laps.lap():
            table.insert(edges)
            engine.advance()
            engine.settle()
        facts = view.trace.rows
        yield {"phase": "first", "facts": facts} | laps.total() | memory() | others.figures()
        if check:
            compare(program, edges, facts)
        others, laps = Others(), Laps()
        for at in np.linspace(0, len(edges) - 1, swaps, dtype=np.int64) if swaps else []:
            for change in (table.remove, table.insert):
                change(edges[at : at + 1])
                with laps.lap():
                    engine.advance()
                    engine.settle()
        if swaps:
            yield {"phase": "epochs"} | laps.figures() | memory() | others.figures()
        engine.idle(1 << 40)
        if view.snapshot().num_rows != facts:
            raise WrongAnswer(f"{program}: {view.snapshot().num_rows} facts after {swaps} swaps instead of {facts}")


def compare(program: str, edges: Edges, facts: int) -> None:
    """Compare the number of facts with one that was found in another way."""
    if program == "tc":
        expected = closure_size(edges)
    elif int(edges.max()) < MATRIX:
        expected = same_generation_size(edges)
    else:
        return
    if facts != expected:
        raise WrongAnswer(f"{program} has {facts} facts instead of {expected}")


def plot(records: list[Record], path: Path) -> None:
    """Seconds to the first answer, and the median of an epoch of one edge."""
    first = [record for record in records if record["phase"] == "first"]
    epochs = [record for record in records if record["phase"] == "epochs"]
    with figure(path, 2 if epochs else 1, "tc and sg: full evaluation, then one edge at a time") as axes:
        for place, found, unit, key, scale in (
            (0, first, "seconds to the first answer", "seconds", 1.0),
            (1, epochs, "median time of an epoch of one edge (ms)", "p50_us", 1e3),
        ):
            if not found:
                continue
            names = list(dict.fromkeys(f"{r['program']} {r['graph']}" for r in found))
            series: dict[str, list[float | None]] = {}
            for count in dict.fromkeys(r["workers"] for r in found):
                by_name = {f"{r['program']} {r['graph']}": r for r in found if r["workers"] == count}
                label = f"{count} worker{'s' if count > 1 else ''}"
                series[label] = [by_name[n][key] / scale if n in by_name else None for n in names]
                other = [beside(by_name[n]).get(ANCHOR, {}).get(key) if n in by_name else None for n in names]
                if any(other):
                    series[f"{ANCHOR}, {label}"] = [None if o is None else o / scale for o in other]
            draw_bars(axes[place], names, series, unit)
