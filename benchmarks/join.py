"""New queries that join some keys with an index that is there already, for several sizes of the index."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.anchors import beside, run_anchor, with_anchor
from benchmarks.maintained import Joined
from benchmarks.measure import Laps, Others, ccdf, memory, percentile, reset_peak
from benchmarks.plots import ANCHOR, Record, draw_ccdf, figure, plural, short

NAME = "join"
DESCRIPTION = (
    "install a query that joins Q keys with an arrangement of K rows, until its output is complete; drop it again"
)


def run(
    K: Sequence[int] = (100_000, 1_000_000, 10_000_000),
    Q: Sequence[int] = (1, 10, 1_000, 100_000),
    repetitions: int = 101,
    check: bool = True,
    anchor: str = "",
) -> Iterator[dict[str, Any]]:
    """A record for each size of the arrangement and number of keys. With `anchor`, the program of benchmarks/anchor,
    differential-dataflow installs the queries of one key first.
    """
    for rows in K:
        other = run_anchor(anchor, "join", rows, repetitions)
        reset_peak()
        computation = Joined(rows)
        yield {"K": rows, "phase": "load"} | memory()
        for size in Q:
            reset_peak()
            record = {"K": rows, "phase": "install", "Q": size} | installs(computation, size, repetitions, check)
            yield with_anchor(record, other, "phase", "K", "Q")
        computation.close()
        del computation


def installs(computation: Joined, size: int, repetitions: int, check: bool) -> dict[str, Any]:
    """The figures of installing a query of `size` keys again and again; `drop_us` is the median of dropping it."""
    others, laps, drops = Others(), Laps(), Laps()
    for repetition in range(repetitions):
        keys = computation.keys(size)
        with laps.lap():
            view = computation.install(keys)
        if check and repetition in (0, repetitions - 1):
            computation.check(view, keys)
        with drops.lap():
            view.drop()
    drop = {"drop_us": percentile(sorted(drops.seconds), 0.5) * 1e6}
    return laps.figures() | drop | memory() | others.figures() | {"ccdf": ccdf(laps.seconds)}


def plot(records: list[Record], path: Path) -> None:
    """The distributions at the largest arrangement, and the medians over the sizes of the arrangement."""
    timed = [record for record in records if record["phase"] == "install"]
    largest = max(record["K"] for record in timed)
    sizes = sorted({record["Q"] for record in timed})
    with figure(path, 2, "join: install a query on an existing arrangement, until its output is complete") as (
        left,
        right,
    ):
        at_largest = [record for record in timed if record["K"] == largest]
        draw_ccdf(left, at_largest, lambda r: plural(r["Q"], "key"), "queries", anchors=True)
        left.set_title(f"{short(largest)} rows arranged", fontsize=10)
        for number, size in enumerate(sizes):
            points = [(record["K"], record["p50_us"] / 1e3) for record in timed if record["Q"] == size]
            right.plot(*zip(*points, strict=True), marker="o", color=f"C{number}", label=plural(size, "key"))
            for record in timed:
                anchor = beside(record).get(ANCHOR, {}).get("p50_us") if record["Q"] == size else None
                if anchor:
                    right.plot([record["K"]], [anchor / 1e3], marker="x", markersize=7, color=f"C{number}")
        right.plot([], [], color="grey", linestyle="", marker="x", label=ANCHOR)
        right.set_xscale("log")
        right.set_yscale("log")
        right.set_xlabel("rows in the arrangement")
        right.set_ylabel("median time to install and complete (ms)")
        right.grid(True, alpha=0.3)
        right.legend(fontsize=8)
