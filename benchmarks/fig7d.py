"""Figure 7d of *Shared Arrangements*: how much each part of an arrangement handles, with more workers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.maintained import Counts, all_count_keys, turns
from benchmarks.measure import Laps, Others, memory
from benchmarks.plots import Record, draw_bars, figure, plural, short

NAME = "fig7d"
DESCRIPTION = "throughput of forming batches, of maintaining the trace as well, and of a count beside, closed loop"

PARTS: dict[str, dict[str, Any]] = {
    "batch formation": {"view": False, "history": False},
    "trace maintenance": {"view": False, "history": True},
    "count": {"view": True, "history": True},
}


def run(
    keys: int = 2_000_000,
    batch: int = 10_000,
    workers: Sequence[int] = (1, 2),
    epochs: int = 60,
    rounds: int = 3,
) -> Iterator[dict[str, Any]]:
    """A record for each part and number of workers. Epochs are of `batch` updates a worker."""
    for part, options in PARTS.items():
        computations = {count: Counts(keys, count, **options) for count in workers}
        loaded = all_count_keys(keys, 0, keys)
        laps = {count: Laps() for count in workers}
        for computation in computations.values():
            computation.load(loaded)
        others = Others()
        for turn, count in turns(workers, rounds + 1):
            for work in computations[count].epochs(batch * count, epochs):
                with laps[count].lap() if turn else nullcontext():
                    computations[count].update(*work)
        for count, found in laps.items():
            rate = batch * count * len(found.seconds) / sum(found.seconds)
            figures = found.figures(batch * count * len(found.seconds))
            yield {"part": part, "workers": count, "typical_per_s": batch * count / median(found.seconds)} | figures | {
                "updates_per_s": rate, **memory(), **others.figures(),
            }  # fmt: skip
        for computation in computations.values():
            if options["history"]:
                computation.check()
            computation.close()


def plot(records: list[Record], path: Path) -> None:
    found = {(r["part"], r["workers"]): r["updates_per_s"] / 1e6 for r in records}
    counts = list(dict.fromkeys(r["workers"] for r in records))
    keys, batch = records[0]["keys"], records[0]["batch"]
    title = f"Figure 7d: throughput of the parts, {short(keys)} keys, epochs of {short(batch)} a worker"
    with figure(path, 1, title) as (axes,):
        series = {plural(count): [found[part, count] for part in PARTS] for count in counts}
        draw_bars(axes, list(PARTS), series, "million updates per second")
