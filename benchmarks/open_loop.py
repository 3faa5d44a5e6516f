"""An open-loop harness: updates are due at fixed times, whether or not those before them have been handled.

Time is cut into ticks of a millisecond; each tick's updates are one epoch. Whenever the engine is free, all ticks that
are due go in together, as one physical batch of several logical times. A tick's latency runs from when it was due to
when the engine was done with it, so a stall counts for everything that had to wait for it.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from benchmarks.maintained import Counts
from benchmarks.measure import Others, ccdf, memory, percentile
from benchmarks.workloads import Words, count_keys

TICK = 1e-3


def updates_of(computation: Counts, total: int) -> tuple[Words, Words]:
    """(keys, diffs) of the next updates: new records and the oldest ones in turns."""
    first = computation.swapped
    pairs = total // 2
    keys = np.empty(2 * pairs, np.int64)
    keys[0::2] = count_keys(computation.keys, computation.loaded + first, computation.loaded + first + pairs)
    keys[1::2] = count_keys(computation.keys, first, first + pairs)
    computation.swapped += pairs
    return keys, np.tile(np.array([1, -1], np.int64), pairs)


def paced(ticks: int, tick: float, handle: Callable[[int, int], None]) -> list[float]:
    """Call `handle(first, end)` for `ticks` ticks of `tick` seconds, with all that are due at a time; each tick.s latency."""
    latencies = np.empty(ticks)
    done = 0
    start = time.perf_counter()
    while done < ticks:
        # A tick is due at its end, when the last of its updates exists.
        due = min(int((time.perf_counter() - start) / tick), ticks)
        if due == done:
            time.sleep(max(start + (done + 1) * tick - time.perf_counter(), 0.0))
            continue
        handle(done, due)
        latencies[done:due] = time.perf_counter() - (start + np.arange(done + 1, due + 1) * tick)
        done = due
    return latencies.tolist()


def offer(computation: Counts, rate: int, seconds: float) -> list[float]:
    """Offer `rate` updates a second for some seconds; the latency of each tick, in seconds."""
    per_tick = max(round(rate * TICK) // 2 * 2, 2)
    ticks = round(rate * seconds) // per_tick
    keys, diffs = updates_of(computation, ticks * per_tick)
    engine, records = computation.engine, computation.records
    base = engine.next_epoch
    epochs = np.repeat(np.arange(ticks, dtype=np.int64), per_tick) + base

    def handle(first: int, end: int) -> None:
        part = slice(first * per_tick, end * per_tick)
        records.update(keys[part], times=epochs[part], diffs=diffs[part])
        engine.advance(to=base + end)
        if computation.view is not None:
            engine.finish(computation.view)

    return paced(ticks, per_tick / rate, handle)


def figures(latencies: list[float], others: Others) -> dict[str, object]:
    """The figures of a record."""
    ordered = sorted(latencies)
    return {
        "p50_us": percentile(ordered, 0.5) * 1e6,
        "p99_us": percentile(ordered, 0.99) * 1e6,
        "max_us": ordered[-1] * 1e6,
        **memory(),
        **others.figures(),
        "ccdf": ccdf(latencies),
    }
