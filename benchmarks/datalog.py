"""Appendix D of *Shared Arrangements*: transitive closure and same generation, evaluated in full on trees, grids and G(n, p).

Each evaluation has a process of its own, so that its peak memory is its own. With `anchor=` (the program that
`cargo build --release` makes of benchmarks/anchor), differential-dataflow evaluates the same edges right after it.
"""

from __future__ import annotations

import json
import resource
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

import tektite as tk
from benchmarks.graphs import Edges, closure_size, graph, same_generation_graph, same_generation_size
from benchmarks.maintained import WrongAnswer
from benchmarks.measure import Laps, Others, memory, reset_peak
from benchmarks.plots import ANCHOR, Record, draw_bars, figure, plural
from tektite.engine.core import core_of

NAME = "datalog"
DESCRIPTION = (
    "tc and sg in full on a graph, beside differential-dataflow; then epochs that take an edge out and put it back"
)

RULES = {
    "tc": "tc(x, y) :- edge(x, y).  tc(x, z) :- tc(x, y), edge(y, z).",
    "sg": "sg(x, y) :- edge(p, x), edge(p, y), x != y.  sg(x, y) :- edge(a, x), sg(a, b), edge(b, y).",
}
SIZES = {"tc": closure_size, "sg": same_generation_size}


def run(
    programs: Sequence[str] = ("tc", "sg"),
    graphs: Sequence[str] = ("tree-8", "grid-50", "gnp-1000-0.01"),
    workers: Sequence[int] = (1, 2),
    swaps: int = 3,
    check: bool = True,
    anchor: str = "",
    limit_gib: int = 0,
) -> Iterator[dict[str, Any]]:
    """A record for each first answer and one for the epochs after it. The anchor may take `limit_gib` of memory, 0 for any."""
    for wanted in graphs:
        for program in programs:
            name = same_generation_graph(wanted) if program == "sg" else wanted
            edges = graph(name)
            for count in workers:
                # Started anew and used once: what is measured shares its memory with nothing.
                with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as alone:
                    ours = alone.submit(evaluate, program, name, count, swaps, check).result()
                other = beside(anchor, program, edges, count, limit_gib) if anchor else {}
                for record in ours:
                    yield {"program": program, "graph": name, "workers": count} | compared(record, other)


def evaluate(program: str, name: str, workers: int, swaps: int, check: bool) -> list[dict[str, Any]]:
    """The records of one program on one graph."""
    # Kernels are loaded by a run that does not count.
    measured(program, graph("gnp-50-0.05"), workers, 1, check=False)
    return measured(program, graph(name), workers, swaps, check)


def measured(program: str, edges: Edges, workers: int, swaps: int, check: bool) -> list[dict[str, Any]]:
    """Evaluate a program on a graph, then take some edges out and put them back, one epoch each."""
    records = []
    with tk.Engine(workers, autocommit=False) as engine:
        table = engine.create_table("edge", {"x": tk.Int, "y": tk.Int}, mode="set")
        engine.datalog(RULES[program])
        view = engine.view(program)
        reset_peak()
        base = memory()["rss_mib"]
        others, laps = Others(), Laps()
        with laps.lap():
            table.insert(edges)
            engine.advance()
            engine.settle()
        facts = core_of(view).trace.rows
        records.append(
            {"phase": "first", "facts": facts} | laps.total() | {"base_mib": base} | memory() | others.figures()
        )
        chosen = np.unique(np.linspace(0, len(edges) - 1, swaps, dtype=np.int64)).tolist()
        others, laps = Others(), Laps()
        for at in chosen:
            for change in (table.remove, table.insert):
                change(edges[at : at + 1])
                with laps.lap():
                    engine.advance()
                    engine.settle()
        if swaps:
            phase: dict[str, Any] = {"phase": "epochs"}
            records.append(phase | laps.figures() | memory() | others.figures())
        if check:
            compare(engine, program, table, edges)
    return records


def compare(engine: tk.Engine, program: str, table: tk.Table, edges: Edges) -> None:
    """Compare the number of facts with one found by a search: for all edges, for all but one, and for all again."""
    total = engine.install("total", engine.view(program).group_by([]).agg(facts=tk.count()))
    gone = slice(len(edges) // 3, len(edges) // 3 + 1)
    steps: list[tuple[Callable[..., object] | None, Edges]] = [
        (None, edges),
        (table.remove, np.delete(edges, gone, axis=0)),
        (table.insert, edges),
    ]
    for change, left in steps:
        if change is not None:
            change(edges[gone])
            engine.advance()
            engine.settle()
        ((found,),) = total.rows()
        expected = SIZES[program](left)
        if found != expected:
            raise WrongAnswer(f"{program} has {found} facts instead of {expected}, with {len(left)} edges")


# ---------------------------------------------------------------------- differential-dataflow


def beside(anchor: str, program: str, edges: Edges, workers: int, limit_gib: int) -> dict[str, dict[str, Any]]:
    """What the anchor reaches with the same edges, by phase; nothing if it takes more memory than it may."""

    def limited() -> None:
        if limit_gib:
            resource.setrlimit(resource.RLIMIT_AS, (limit_gib << 30, limit_gib << 30))

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "edges"
        np.savetxt(path, edges, fmt="%d")
        done = subprocess.run([anchor, program, path, str(workers)], stdout=subprocess.PIPE, preexec_fn=limited)
    lines = [json.loads(line) for line in done.stdout.decode().splitlines()]
    return {line["phase"]: line for line in lines}


def compared(record: dict[str, Any], other: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Our record with the anchor's figures, and ours as a multiple of them."""
    phase = other.get(record["phase"])
    if phase is None:
        return record
    if phase.get("facts", 0) != record.get("facts", 0):
        raise WrongAnswer(f"the anchor has {phase['facts']} facts, we have {record['facts']}")
    found = record.copy()
    for key in ("seconds", "cpu_seconds", "peak_mib", "p50_us"):
        if phase.get(key) and key in record:
            found[f"anchor_{key}"] = phase[key]
            found[f"{key}_ratio"] = round(record[key] / phase[key], 2)
    return found


# ---------------------------------------------------------------------- drawing


def plot(records: list[Record], path: Path) -> None:
    """Seconds to the first answer and memory for it, and the median of an epoch of one edge, beside the anchor's."""
    drawn = (
        ("first", "seconds to the first answer", "seconds", 1.0),
        ("first", "peak memory (MiB)", "peak_mib", 1.0),
        ("epochs", "median time of an epoch of one edge (ms)", "p50_us", 1e3),
    )
    names = list(dict.fromkeys(f"{r['program']}\n{r['graph']}" for r in records))
    counts = list(dict.fromkeys(r["workers"] for r in records))
    width = max(7.6, 1.1 * len(names) * len(counts))
    with figure(path, len(drawn), "tc and sg: full evaluation, then one edge at a time", (3 * width, 5.2)) as axes:
        for place, (phase, unit, key, scale) in zip(axes, drawn, strict=True):
            series: dict[str, list[float | None]] = {}
            for count in counts:
                found = {
                    f"{r['program']}\n{r['graph']}": r for r in records if (r["phase"], r["workers"]) == (phase, count)
                }
                for label, name in ((plural(count), key), (f"{ANCHOR}, {plural(count)}", f"anchor_{key}")):
                    values = [found.get(n, {}).get(name) for n in names]
                    if any(value is not None for value in values):
                        series[label] = [None if value is None else value / scale for value in values]
            if series:
                draw_bars(place, names, series, unit)
            place.tick_params(axis="x", labelsize=7)
