"""Figures 3 and 4 of the thesis: what joins of growing arity hold, and how long they take, join at a time and by delta."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from benchmarks.conjunctions import Attributes
from benchmarks.maintained import turns
from benchmarks.measure import Laps, Others, ccdf, memory
from benchmarks.plots import Record, draw_bars, figure

NAME = "arity"
DESCRIPTION = "star joins of 2 to 7 attributes: tuples held beside the attributes' own indexes, and latency of changes"


def run(
    subjects: int = 100_000,
    batch: int = 1_000,
    epochs: int = 40,
    rounds: int = 4,
    arities: Sequence[int] = (2, 3, 4, 5, 6, 7),
    strategies: Sequence[str] = ("binary", "delta", "hector"),
) -> Iterator[dict[str, Any]]:
    """A record for each arity and strategy. Epochs change `batch` values of random subjects and attributes."""
    for arity in arities:
        computations = {strategy: Attributes(arity, subjects, strategy) for strategy in strategies}
        laps = {strategy: Laps() for strategy in strategies}
        for computation in computations.values():
            computation.load()
        others = Others()
        for turn, strategy in turns(strategies, rounds + 1):
            for epoch in range(turn * epochs, (turn + 1) * epochs):
                with laps[strategy].lap() if turn else nullcontext():
                    computations[strategy].change(epoch, batch)
        for strategy, found in laps.items():
            yield (
                {"arity": arity, "strategy": strategy}
                | computations[strategy].held()
                | found.figures(batch * len(found.seconds))
                | memory()
                | others.figures()
                | {"ccdf": ccdf(found.seconds)}
            )
        for computation in computations.values():
            computation.close()


def plot(records: list[Record], path: Path) -> None:
    arities = sorted({record["arity"] for record in records})
    strategies = list(dict.fromkeys(record["strategy"] for record in records))
    found = {(record["arity"], record["strategy"]): record for record in records}
    with figure(path, 2, "Thesis, figures 3 and 4: star joins of growing arity") as (left, right):
        names = [str(arity) for arity in arities]
        held = {s: [found[a, s]["own_tuples"] for a in arities] for s in strategies}
        draw_bars(left, names, held, "tuples held beside the base relations", log=False)
        latency = {s: [found[a, s]["p50_us"] / 1e3 for a in arities] for s in strategies}
        draw_bars(right, names, latency, "median latency of an epoch (ms)", log=False)
        for axes in (left, right):
            axes.set_xlabel("attributes joined")
