"""Two workers beside one, in turns, so that whatever else the machine does meets both: the speed-up of each task.

A turn is several laps of one number of workers, as an engine that runs alone would do them; the lap that finds the caches full of
the other's data is not counted.

The first two tasks are not ours, and need no word between the threads: hashing bytes, which needs no memory to speak of, and
reading words from all over the memory. Their speed-ups are what the machine allows at that moment; where two processors turn out
to share a core, or their way to the memory, it shows here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.maintained import Counts, Joined, all_count_keys, turns
from benchmarks.measure import Laps, Others, memory
from benchmarks.plots import Record, draw_bars, figure, plural, short
from benchmarks.workloads import count_keys

NAME = "workers"
DESCRIPTION = "count (load and epochs of B) and join (Q keys at once) with several workers, in turns"


def run(
    K: int = 4_000_000,
    N: int = 4_000_000,
    workers: Sequence[int] = (1, 2),
    B: Sequence[int] = (100_000, 1_000_000),
    Q: Sequence[int] = (100_000, 1_000_000),
    rounds: int = 4,
    loads: int = 2,
    check: bool = True,
) -> Iterator[dict[str, Any]]:
    """A record for each task and number of workers; `speedup` compares medians with the first number's."""
    with ThreadPoolExecutor(max(workers)) as pool:
        others = Others()
        laps = in_turns(workers, rounds, lambda count: hash_bytes(pool, count))
        yield from records("hash bytes", HASHED, laps, others)
        others = Others()
        far = FarReads(4 * K)
        laps = in_turns(workers, rounds, lambda count: far.read(pool, count))
        yield from records("read words", READ, laps, others)
    keys = all_count_keys(K, 0, N)
    counts: dict[int, Counts] = {}
    others = Others()
    laps = {count: Laps() for count in workers}
    for count, counted in turns_of_laps(workers, loads):
        if count in counts:
            counts.pop(count).close()
        counts[count] = Counts(K, count)
        with laps[count].lap() if counted else nullcontext():
            counts[count].load(keys)
    yield from records("count load", N, laps, others)
    for size in B:
        others = Others()
        laps = {count: Laps() for count in workers}
        for count, counted in turns_of_laps(workers, rounds):
            ((changed, diffs),) = counts[count].epochs(size, 1)
            with laps[count].lap() if counted else nullcontext():
                counts[count].update(changed, diffs)
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
        for count, counted in turns_of_laps(workers, rounds):
            wanted = joins[count].keys(size)
            with laps[count].lap() if counted else nullcontext():
                view = joins[count].install(wanted)
            if check and not counted:
                joins[count].check(view, wanted)
            view.drop()
        yield from records("join", size, laps, others)
    for joined in joins.values():
        joined.close()


LAPS = 5
"""Laps of a turn that are counted."""

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


READ = 1 << 21
"""Words that are read from all over the memory."""


class FarReads:
    """READ words at places all over a column of `words`, read into memory that is there already."""

    def __init__(self, words: int) -> None:
        self.words = np.ones(words, np.int64)
        self.places = count_keys(words, 0, READ)
        self.found = np.ones(READ, np.int64)

    def read(self, pool: ThreadPoolExecutor, workers: int) -> None:
        """Read them, each thread its share of the places."""

        def share(part: slice) -> None:
            self.words.take(self.places[part], out=self.found[part], mode="clip")

        cuts = [READ * at // workers for at in range(workers + 1)]
        for done in [pool.submit(share, slice(start, stop)) for start, stop in pairwise(cuts)]:
            done.result()


def turns_of_laps(workers: Sequence[int], rounds: int) -> Iterator[tuple[int, bool]]:
    """(number of workers, whether the lap counts): each number in its turn LAPS times, after one that warms the caches."""
    for _, count in turns(workers, rounds):
        for lap in range(LAPS + 1):
            yield count, lap > 0


def in_turns(workers: Sequence[int], rounds: int, work: Callable[[int], None]) -> dict[int, Laps]:
    """Time `work(workers)` of each number of workers in turns."""
    laps = {count: Laps() for count in workers}
    for count, counted in turns_of_laps(workers, rounds):
        with laps[count].lap() if counted else nullcontext():
            work(count)
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
    """How many times as fast as the first number of workers the others are, task by task."""
    tasks = list(dict.fromkeys((record["task"], record["size"]) for record in records))
    first, *others = dict.fromkeys(record["workers"] for record in records)
    found = {(r["task"], r["size"], r["workers"]): r["speedup"] for r in records}
    with figure(path, 1, "one process, several workers, in turns; the first two tasks show the machine") as (axes,):
        series = {plural(count): [found[(*task, count)] for task in tasks] for count in others or [first]}
        names = [f"{task}\n{short(size)}" for task, size in tasks]
        draw_bars(axes, names, series, f"times as fast as {plural(first)}", log=False)
