"""Figure 7c of *Shared Arrangements*: keys and load that grow with the workers, open loop."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.maintained import Counts, all_count_keys, turns
from benchmarks.measure import Others
from benchmarks.open_loop import figures, offer
from benchmarks.plots import Record, draw_ccdf, figure, plural, short

NAME = "fig7c"
DESCRIPTION = "weak scaling: keys and open-loop load for each worker stay the same, with one worker and with two"


def run(
    keys: int = 5_000_000,
    rate: int = 500_000,
    workers: Sequence[int] = (1, 2),
    duration: float = 5.0,
    rounds: int = 3,
) -> Iterator[dict[str, Any]]:
    """A record for each number of workers; `keys` and `rate` are those of one worker."""
    computations = {count: Counts(keys * count, count, view=False) for count in workers}
    for count, computation in computations.items():
        computation.load(all_count_keys(keys * count, 0, keys * count))
    latencies: dict[int, list[float]] = {count: [] for count in workers}
    others = Others()
    for turn, count in turns(workers, rounds + 1):
        found = offer(computations[count], rate * count, duration if turn else 1.0)
        if turn:
            latencies[count] += found
    for count in workers:
        yield {"workers": count} | figures(latencies[count], others)
    for computation in computations.values():
        computation.check()
        computation.close()


def plot(records: list[Record], path: Path) -> None:
    keys, rate = records[0]["keys"], records[0]["rate"]
    with figure(path, 1, f"Figure 7c: weak scaling, {short(keys)} keys and {short(rate)} updates/s a worker") as (
        axes,
    ):
        draw_ccdf(axes, records, lambda r: plural(r["workers"]), "updates")
