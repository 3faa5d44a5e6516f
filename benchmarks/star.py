"""Figure 8b of the thesis: a star join of posts across four one-to-one attributes, ingested in small batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.conjunctions import Attributes
from benchmarks.maintained import turns
from benchmarks.measure import Laps, Others, ccdf, memory
from benchmarks.plots import Record, draw_ccdf, figure

NAME = "star"
DESCRIPTION = "four one-to-one attributes joined on their subject while they are ingested, by each strategy"


def run(
    subjects: int = 1_000_000,
    batch: int = 10_000,
    arity: int = 4,
    declared: bool = True,
    strategies: Sequence[str] = ("binary", "binary backwards", "delta", "hector"),
) -> Iterator[dict[str, Any]]:
    """A record for each strategy. An epoch brings `batch` tuples: all attributes of some subjects."""
    computations = {
        name: Attributes(
            arity, subjects, name.split()[0], declared, list(reversed(range(arity))) if "backwards" in name else None
        )
        for name in strategies
    }
    laps = {name: Laps() for name in strategies}
    others = Others()
    size = batch // arity
    for epoch, name in turns(strategies, subjects // size):
        with laps[name].lap():
            computations[name].insert(epoch * size, (epoch + 1) * size)
    for name, found in laps.items():
        yield (
            {"strategy": name}
            | computations[name].held()
            | found.figures(batch * len(found.seconds))
            | memory()
            | (others.figures() | {"ccdf": ccdf(found.seconds)})
        )
        computations[name].close()


def plot(records: list[Record], path: Path) -> None:
    with figure(path, 1, "Thesis, figure 8b: star join of one-to-one attributes") as (axes,):
        draw_ccdf(axes, records, lambda record: str(record["strategy"]), "epochs")
