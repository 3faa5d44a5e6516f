"""Figure 7b of *Shared Arrangements*: the same load on an arrangement with more workers, open loop."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.maintained import Counts, all_count_keys, turns
from benchmarks.measure import Others
from benchmarks.open_loop import figures, offer
from benchmarks.plots import Record, draw_ccdf, figure, plural, short

NAME = "fig7b"
DESCRIPTION = "strong scaling: an arrangement under the same open-loop load with one worker and with two, in turns"


def run(
    keys: int = 10_000_000,
    rate: int = 1_000_000,
    workers: Sequence[int] = (1, 2),
    duration: float = 5.0,
    rounds: int = 3,
) -> Iterator[dict[str, Any]]:
    """A record for each number of workers."""
    computations = {count: Counts(keys, count, view=False) for count in workers}
    loaded = all_count_keys(keys, 0, keys)
    for computation in computations.values():
        computation.load(loaded)
    yield from ({"workers": count} | found for count, found in in_turns(computations, rate, duration, rounds).items())
    for computation in computations.values():
        computation.check()
        computation.close()


def in_turns(computations: dict[Any, Counts], rate: int, duration: float, rounds: int) -> dict[Any, dict[str, Any]]:
    """The figures of several computations under the same load, each given it several times, in turns."""
    latencies: dict[Any, list[float]] = {name: [] for name in computations}
    others = Others()
    for turn, name in turns(computations, rounds + 1):
        # The first turn only brings the arrangement into the state that the load keeps it in.
        found = offer(computations[name], rate, duration if turn else 1.0)
        if turn:
            latencies[name] += found
    return {name: figures(found, others) for name, found in latencies.items()}


def plot(records: list[Record], path: Path) -> None:
    keys, rate = records[0]["keys"], records[0]["rate"]
    with figure(path, 1, f"Figure 7b: strong scaling, {short(keys)} keys, {short(rate)} updates/s") as (axes,):
        draw_ccdf(axes, records, lambda r: plural(r["workers"]), "updates")
