"""Tektite on Spark beside Spark itself, in one run, in turns: every row of the issue's table, with its bar."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.on_spark.common import IN_DRIVER, Place, opened
from benchmarks.on_spark.epochs import changes, loop, smallest
from benchmarks.on_spark.growth import growth
from benchmarks.on_spark.installs import installs
from benchmarks.on_spark.loads import loads
from benchmarks.on_spark.streams import streams
from benchmarks.plots import Record, draw_bars, figure, short

NAME = "spark"
DESCRIPTION = "loads, epochs, loops, installs and streams on Spark, each beside what Spark alone takes for the same"
PHASES = ("load", "install", "epoch", "changes", "loop", "stream", "growth")


def run(
    SF: float = 0.1,
    state: int = 1_000_000,
    shards: int = 2,
    batch: Sequence[int] = (100_000, 1_000_000),
    batches: int = 4,
    changed: Sequence[int] = (1_000, 10_000, 100_000),
    edges: int = 1_000_000,
    repetitions: int = 3,
    growing: Sequence[int] = (1, 2, 4),
    scales: Sequence[float] = (0.1, 0.3),
    cluster: bool = True,
    job_rows: int = IN_DRIVER,
    phases: Sequence[str] = PHASES,
) -> Iterator[dict[str, Any]]:
    """A record for each thing measured; `times` says how long we take as a multiple of Spark's time.

    Sweeps of `job_rows` rows or more run as Spark jobs, smaller ones in the driver, as all do where it is left out.
    """
    folder = Path(tempfile.mkdtemp(prefix="tektite-spark-"))
    try:
        if set(phases) - {"growth"}:
            with opened() as spark:
                place = Place(spark, folder, shards, job_rows)
                if "load" in phases:
                    yield from loads(place, SF, repetitions)
                if "install" in phases:
                    yield from installs(place, SF, repetitions)
                if "epoch" in phases:
                    yield from smallest(place, state)
                if "changes" in phases:
                    yield from changes(place, SF, tuple(changed), repetitions)
                if "loop" in phases:
                    yield from loop(place, edges // 5, edges, 50)
                if "stream" in phases:
                    for size in batch:
                        yield from streams(place, size, batches, repetitions)
        if "growth" in phases:
            yield from growth(folder, growing, scales, cluster)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def bars(record: Record) -> Iterator[tuple[str, float, float]]:
    """What a record says about the issue's table: (what, measured as a multiple of its bar, the bar); 1 or less is met."""
    match record["phase"]:
        case "load":
            yield f"load, SF {record['SF']:g}", record["times"], 2.0
        case "install":
            most = 1 / 2 if record["query"] == "over history" else 1 / 10
            yield f"install, {record['query']}", record["times"], most
        case "epoch":
            yield f"smallest epoch, {record['until']}", record["times"], 2.0
        case "changes":
            yield f"{short(record['changes'])} changes, 10 joins", record["seconds"] / record["bar_seconds"], 1.0
        case "loop":
            yield f"loop, {record['until']}", record["times"], 3.0
        case "stream" if not record["way"].startswith("structured"):
            most = 1 / 3 if record["way"] == "follow" else 1 / 5
            yield (
                f"{record['query']}, {record['way']},\n{short(record['batch'])} a batch",
                1 / record["times_sparks_rate"],
                most,
            )


def plot(records: list[Record], path: Path) -> None:
    """Each row as a multiple of its bar, and how loads and epochs grow."""
    rows = [found for record in records for found in bars(record)]
    grown = [record for record in records if record["phase"] == "growth"]
    epochs = [record for record in records if record["phase"] == "changes"]
    with figure(path, 3, "Tektite on Spark beside Spark alone", (19, 5.6)) as (left, middle, right):
        share = [times / most for _, times, most in rows]
        colours = ["C2" if value <= 1 else "C3" for value in share]
        placed = left.barh([what for what, _, _ in rows], share, color=colours)
        left.bar_label(placed, labels=[f"{times:.3g}x of {most:.3g}x" for _, times, most in rows], fontsize=7)
        left.axvline(1, color="black", linewidth=1)
        left.set_xscale("log")
        left.set_xlabel("time taken, as a share of the bar (left of the line: met)")
        left.tick_params(axis="y", labelsize=7)
        left.invert_yaxis()
        left.set_xlim(right=20 * max([1, *share]))  # room for the labels
        for count in dict.fromkeys(record["shards"] for record in grown):
            found = sorted((r["rows"], r["seconds"]) for r in grown if r["shards"] == count)
            label = f"{count} executor{'s' * (count > 1)} of one shard"
            middle.plot(*zip(*found, strict=True), marker="o", label=label)
        middle.set(xlabel="rows of all tables", ylabel="seconds to load them, durable", title="loads")
        if grown:
            middle.set(xlim=0, ylim=0)
            middle.legend(fontsize=8)
        names = [f"{record['changes']:,}" for record in epochs]
        parts = {"all of it": "seconds", "kernels": "kernel_seconds", "around them": "around_seconds"}
        parts |= {"bare chain of exchanges": "chain_seconds"}
        if epochs:
            draw_bars(right, names, {label: [r[key] for r in epochs] for label, key in parts.items()}, "seconds")
        right.set(xlabel="changes of lineitem in an epoch", title="epochs under 10 join queries")
