"""Two workers beside one, in turns, so that whatever else the machine does meets both: the speed-up of each task.

The first task is not ours: hashing bytes, which needs no memory to speak of and no word between the threads. Its speed-up is
what the machine allows at that moment; where two processors turn out to share a core, it shows here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.maintained import Counts, Joined, all_count_keys, turns
from benchmarks.measure import Laps, Others, memory
from benchmarks.plots import Record, draw_bars, figure, plural, short

NAME = "workers"
DESCRIPTION = "count (load and epochs of B) and join (Q keys at once) with several workers, in turns"


def run(
    K: int = 4_000_000,
    N: int = 4_000_000,
    workers: Sequence[int] = (1, 2),
    B: Sequence[int] = (100_000, 1_000_000),
    Q: Sequence[int] = (100_000, 1_000_000),
    rounds: int = 11,
    loads: int = 6,
    check: bool = True,
) -> Iterator[dict[str, Any]]:
    """A record for each task and number of workers; `speedup` compares medians with the first number's."""
    others = Others()
    with ThreadPoolExecutor(max(workers)) as pool:
        laps = in_turns(workers, rounds, lambda count, _: hash_bytes(pool, count))
    yield from records("hash bytes", HASHED, laps, others)
    keys = all_count_keys(K, 0, N)
    counts: dict[int, Counts] = {}

    laps = {count: Laps() for count in workers}
    others = Others()
    for turn, count in turns(workers, loads + 1):
        if count in counts:
            counts.pop(count).close()
        counts[count] = Counts(K, count)
        # The first turn is not counted: it takes memory from the system that the others use again.
        with laps[count].lap() if turn else nullcontext():
            counts[count].load(keys)
    yield from records("count load", N, laps, others)
    for size in B:
        others = Others()
        work = {count: counts[count].epochs(size, rounds) for count in workers}
        laps = in_turns(workers, rounds, lambda count, i, work=work: counts[count].update(*work[count][i]))  # type: ignore[misc]
        yield from records("count", size, laps, others)
    for computation in counts.values():
        if check:
            computation.check()
        computation.close()
    counts.clear()
    joins = {count: Joined(K, count) for count in workers}
    for size in Q:
        others = Others()
        laps = {count: Laps() for count in workers}
        for _, count in turns(workers, rounds):
            wanted = joins[count].keys(size)
            with laps[count].lap():
                view = joins[count].install(wanted)
            if check:
                joins[count].check(view, wanted)
            view.drop()
        yield from records("join", size, laps, others)
    for joined in joins.values():
        joined.close()


HASHED = 1 << 25
"""Bytes that the machine's own speed-up is measured with: some 20 ms of one processor, from the second-level cache."""


def hash_bytes(pool: ThreadPoolExecutor, workers: int) -> None:
    """Hash HASHED bytes, each thread its share."""
    block = bytes(1 << 16)

    def share() -> None:
        digest = hashlib.sha256()
        for _ in range(HASHED // len(block) // workers):
            digest.update(block)

    for done in [pool.submit(share) for _ in range(workers)]:
        done.result()


def in_turns(workers: Sequence[int], rounds: int, work: Callable[[int, int], None]) -> dict[int, Laps]:
    """Time `work(workers, round)` of each number of workers in turns."""
    laps = {count: Laps() for count in workers}
    for i, count in turns(workers, rounds):
        with laps[count].lap():
            work(count, i)
    return laps


def records(task: str, size: int, laps: dict[int, Laps], others: Others) -> Iterator[dict[str, Any]]:
    """What a task took with each number of workers."""
    base = median(next(iter(laps.values())).seconds)
    for count, found in laps.items():
        typical = median(found.seconds)
        yield {
            "task": task,
            "size": size,
            "workers": count,
            "seconds": typical,
            "cpu_seconds": median(found.cpu),
            "updates_per_s": size / typical,
            "speedup": base / typical,
            **memory(),
            **others.figures(),
        }


def plot(records: list[Record], path: Path) -> None:
    """The throughput of each task."""
    tasks = list(dict.fromkeys((record["task"], record["size"]) for record in records))
    counts = list(dict.fromkeys(record["workers"] for record in records))
    found = {(r["task"], r["size"], r["workers"]): r["updates_per_s"] / 1e6 for r in records}
    with figure(path, 1, "one process, several workers, in turns") as (axes,):
        series = {plural(count): [found[(*task, count)] for task in tasks] for count in counts}
        draw_bars(
            axes, [f"{task}\n{short(size)}" for task, size in tasks], series, "million updates per second", log=False
        )
