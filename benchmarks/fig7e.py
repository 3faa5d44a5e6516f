"""Figure 7e of *Shared Arrangements*: eager, default and lazy merging under the same load, open loop."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.fig7b import in_turns
from benchmarks.maintained import Counts, all_count_keys
from benchmarks.plots import Record, draw_ccdf, figure, plural, short

NAME = "fig7e"
DESCRIPTION = "eager, default and lazy merging of an arrangement under the same open-loop load, in turns"


def run(
    keys: int = 5_000_000,
    rate: int = 500_000,
    workers: Sequence[int] = (1, 2),
    merging: Sequence[str] = ("eager", "default", "lazy"),
    duration: float = 5.0,
    rounds: int = 3,
) -> Iterator[dict[str, Any]]:
    """A record for each number of workers and way to merge."""
    loaded = all_count_keys(keys, 0, keys)
    for count in workers:
        computations = {effort: Counts(keys, count, effort, view=False) for effort in merging}
        for computation in computations.values():
            computation.load(loaded)
        for effort, found in in_turns(computations, rate, duration, rounds).items():
            yield {"workers": count, "merging": effort} | found
        for computation in computations.values():
            computation.check()
            computation.close()


def plot(records: list[Record], path: Path) -> None:
    keys, rate = records[0]["keys"], records[0]["rate"]
    counts = list(dict.fromkeys(record["workers"] for record in records))
    title = f"Figure 7e: amortised merging, {short(keys)} keys, {short(rate)} updates/s"
    with figure(path, len(counts), title) as places:
        for axes, count in zip(places, counts, strict=True):
            draw_ccdf(axes, [r for r in records if r["workers"] == count], lambda r: str(r["merging"]), "updates")
            axes.set_title(plural(count), fontsize=10)
