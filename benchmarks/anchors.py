"""What other systems reached on the same workloads, to set a record beside.

An anchor applies to every record of its benchmark that has all of its parameters. They are named as in the definition
of the workloads: K, N and B of count, K and Q of join, n, m and S of bfs; `phase` tells the first answer from later
epochs. The figures (anchors.json) were taken on 2 cores of an AMD EPYC with 24 GiB, quiet, as medians of three runs,
each system with one worker: on another machine they tell the class, not the last percent. Two numbers are a range
that was seen.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any


@cache
def anchors() -> list[dict[str, Any]]:
    """All anchors, as anchors.json has them."""
    found: list[dict[str, Any]] = json.loads(Path(__file__).with_name("anchors.json").read_text())
    return found


def beside(record: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """The figures of each system that was measured with this record's parameters; of a range, its better end.

    >>> beside({"benchmark": "join", "K": 10_000_000, "Q": 1})["differential-dataflow 0.23"]["p50_us"]
    35
    """
    systems: dict[str, dict[str, float]] = {}
    for anchor in anchors():
        if anchor["benchmark"] != record["benchmark"]:
            continue
        if any(record.get(name) != value for name, value in anchor["parameters"].items()):
            continue
        for name, figure in anchor["figures"].items():
            systems.setdefault(anchor["system"], {})[name] = min(figure) if isinstance(figure, list) else figure
    return systems


def comparisons(record: Mapping[str, Any]) -> list[str]:
    """For each system with a figure for this record, its figures and ours as a multiple of them.

    >>> comparisons({"benchmark": "join", "K": 10_000_000, "Q": 1, "p50_us": 70.0})
    ['differential-dataflow 0.23: p50_us 35 (2.00x)']
    """
    lines = []
    for system, figures in beside(record).items():
        texts = [f"{name} {best:,} ({record[name] / best:.2f}x)" for name, best in figures.items() if name in record]
        if texts:
            lines.append(f"{system}: {', '.join(texts)}")
    return lines


def run_anchor(anchor: str, *arguments: str | int) -> list[dict[str, Any]]:
    """The records of differential-dataflow in this very run: of the program `anchor`, which `cargo build --release` makes of
    benchmarks/anchor. None where there is no program.
    """
    if not anchor:
        return []
    shown = subprocess.check_output([anchor, *map(str, arguments)], text=True)
    return [json.loads(line) for line in shown.splitlines()]


def with_anchor(record: Mapping[str, Any], found: Sequence[Mapping[str, Any]], *same: str) -> dict[str, Any]:
    """A record, with the figures of the anchor's record that has the same of some names, and ours as multiples of them.

    >>> ours = {"phase": "epochs", "B": 1, "p50_us": 30.0}
    >>> with_anchor(ours, [{"phase": "epochs", "B": 1, "p50_us": 20.0}], "phase", "B")
    {'phase': 'epochs', 'B': 1, 'p50_us': 30.0, 'anchor_p50_us': 20.0, 'p50_us_ratio': 1.5}
    """
    more: dict[str, Any] = {}
    for other in found:
        if all([record.get(name) == other.get(name) for name in same]):
            for name in ("seconds", "cpu_seconds", "p50_us", "p99_us"):
                if name in record and other.get(name):
                    more[f"anchor_{name}"] = other[name]
                    more[f"{name}_ratio"] = round(record[name] / other[name], 2)
    return {**record, **more}
