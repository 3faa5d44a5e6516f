"""The count per key of a changing collection, maintained: loading it, then epochs of some updates in a closed loop."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.anchors import beside, run_anchor, with_anchor
from benchmarks.maintained import Counts, all_count_keys, closed_loop
from benchmarks.measure import Laps, Others, ccdf, memory, reset_peak
from benchmarks.plots import ANCHOR, Record, draw_bars, draw_ccdf, figure, short

NAME = "count"
DESCRIPTION = "load N records of K keys and maintain the count per key, then epochs of B updates in a closed loop"


def run(
    K: int = 10_000_000,
    N: int = 10_000_000,
    B: Sequence[int] = (1, 10, 1_000, 10_000, 100_000),
    duration: float = 8.0,
    merging: str = "default",
    keep: bool = False,
    check: bool = True,
    anchor: str = "",
) -> Iterator[dict[str, Any]]:
    """A record for the process before it has data (`base_mib`), one for the load, one for each size of epochs.

    Without `keep` the counts come out as changes and removals are trusted, as in the anchor; with it the result is kept
    for snapshots too, removals are checked, and the answer is compared with a recount at the end. With `anchor`, the program of
    benchmarks/anchor, differential-dataflow does the same first.
    """
    other = run_anchor(anchor, "count", K, N, round(duration), *B)
    laps = Laps()
    with laps.lap():
        start_up()
    computation = Counts(K, merging=merging, keep=keep)
    yield {"phase": "start", "seconds": laps.seconds[0], "base_mib": memory()["rss_mib"]}
    keys = all_count_keys(K, 0, N)
    reset_peak()
    others, laps = Others(), Laps()
    with laps.lap():
        computation.load(keys)
    del keys
    yield with_anchor({"phase": "load"} | laps.total(N) | memory() | others.figures(), other, "phase")
    for size in B:
        reset_peak()
        others, laps = Others(), Laps()
        for work in closed_loop(partial(computation.epochs, size), size, duration):
            with laps.lap():
                computation.update(*work)
        figures = laps.figures(size * len(laps.seconds))
        record = {"phase": "epochs", "B": size, "epochs": len(laps.seconds)} | figures | memory() | others.figures()
        yield with_anchor(record | {"ccdf": ccdf(laps.seconds)}, other, "phase", "B")
    if check and keep:
        computation.check()
    computation.close()


def start_up() -> None:
    """Let a small computation use every kernel once, so that loading compiled code from its cache is measured apart."""
    small = Counts(1_000)
    small.load(all_count_keys(1_000, 0, 20_000))
    for size in (1, 10, 1_000, 10_000):
        for work in small.epochs(size, 10):
            small.update(*work)
    small.close()


def plot(records: list[Record], path: Path) -> None:
    """Latencies and throughputs of all sizes beside the anchor's."""
    epochs = [record for record in records if record["phase"] == "epochs"]
    timed = [record for record in records if "updates_per_s" in record]
    K, N = records[0]["K"], records[0]["N"]
    with figure(path, 2, f"count: {short(N)} records of {short(K)} keys, closed loop, one worker") as (left, right):
        draw_ccdf(left, epochs, lambda r: f"epochs of {short(r['B'])}", "epochs", anchors=True)
        names = ["load" if r["phase"] == "load" else short(r["B"]) for r in timed]
        ours = [record["updates_per_s"] for record in timed]
        theirs = [beside(record).get(ANCHOR, {}).get("updates_per_s") for record in timed]
        draw_bars(right, names, {"tektite": ours, ANCHOR: theirs}, "updates per second")
        right.set_xlabel("updates an epoch")
