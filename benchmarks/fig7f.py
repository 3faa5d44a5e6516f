"""Figure 7f of *Shared Arrangements*: a join that is installed takes time by its own keys, not by the arrangement's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.join import installs
from benchmarks.maintained import Joined
from benchmarks.plots import Record, draw_ccdf, figure, plural, short

NAME = "fig7f"
DESCRIPTION = "join proportionality: install, run and complete joins of 1 to 64k keys with an arrangement that is there"


def run(
    keys: int = 10_000_000,
    sizes: Sequence[int] = (1, 4, 16, 64, 256, 1_024, 4_096, 16_384, 65_536),
    repetitions: int = 201,
) -> Iterator[dict[str, Any]]:
    """A record for each number of keys joined."""
    computation = Joined(keys)
    for size in sizes:
        yield {"joined": size} | installs(computation, size, repetitions, check=True)
    computation.close()


def plot(records: list[Record], path: Path) -> None:
    with figure(path, 1, f"Figure 7f: joins with an arrangement of {short(records[0]['keys'])} keys") as (axes,):
        draw_ccdf(axes, records, lambda r: plural(r["joined"], "key"), "queries")
