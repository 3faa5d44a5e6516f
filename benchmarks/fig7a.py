"""Figure 7a of *Shared Arrangements*: the latency of an arrangement under falling load, open loop."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.maintained import Counts, all_count_keys
from benchmarks.measure import Others
from benchmarks.open_loop import figures, offer
from benchmarks.plots import Record, draw_ccdf, figure, short

NAME = "fig7a"
DESCRIPTION = "an arrangement of `keys` keys under an open-loop load of `rate` updates/s, both halved again and again"


def run(
    keys: int = 10_000_000, rate: int = 1_000_000, halvings: int = 5, duration: float = 8.0
) -> Iterator[dict[str, Any]]:
    """A record for each load, the heaviest first."""
    for halving in range(halvings + 1):
        size, load = keys >> halving, rate >> halving
        computation = Counts(size, view=False)
        computation.load(all_count_keys(size, 0, size))
        offer(computation, load, 1.0)
        others = Others()
        yield {"keys": size, "rate": load} | figures(offer(computation, load, duration), others)
        computation.check()
        computation.close()


def plot(records: list[Record], path: Path) -> None:
    with figure(path, 1, "Figure 7a: varying load, one worker, open loop") as (axes,):
        draw_ccdf(axes, records, lambda r: f"{short(r['keys'])} keys, {short(r['rate'])} updates/s", "updates")
