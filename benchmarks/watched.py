"""What it costs that somebody looks at an engine: the same work with and without views over system relations.

| workload | an epoch |
|---|---|
| count | 1,000 updates of a count of 100,000 keys |
| fig12 | 10,000 rows of all relations that a TPC-H query reads, for some of the queries of Figure 12 |

Two engines take turns. Rates are by processor time, which includes the thread that looks.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import tektite as tk
from benchmarks.tpch.maintained import Encoded, Relations
from benchmarks.tpch.queries import query, read_by
from tektite.engine.core import core_of

NAME = "watched"
DESCRIPTION = (
    "updates a second of a count and of TPC-H queries, alone and while views over system relations are kept up to date"
)

WATCHED = ("views", "tables", "indexes", "operators", "work", "memory", "sweeps", "epochs")
"""The relations that somebody looks at: those of a console."""
Step = Callable[[], int]
"""Does some work; how many updates that were."""


def run(
    seconds: float = 1.0,
    rounds: int = 7,
    keys: int = 100_000,
    batch: int = 1000,
    scale: float = 0.05,
    queries: Sequence[int] = (1, 3, 9, 18),
) -> Iterator[dict[str, Any]]:
    """A record for each workload and way, with the median of its `rounds`; `ratio` is to the engine that nobody watches."""
    makers: dict[str, Callable[[bool], Step]] = {"count": lambda watched: count(keys, batch, watched)}
    if queries:
        makers["fig12"] = lambda watched: tpch(scale, queries, watched)
    for workload, make in makers.items():
        steps = {name: make(name == "watched") for name in ("alone", "watched")}
        found: dict[str, list[float]] = {name: [] for name in steps}
        for turn in range(rounds):
            for name in list(steps)[:: 1 if turn % 2 else -1]:
                began, done = time.process_time(), 0
                while (spent := time.process_time() - began) < seconds:
                    done += steps[name]()
                found[name].append(done / spent)
        ratios = [watched / alone for watched, alone in zip(found["watched"], found["alone"], strict=True)]
        for name, rates in found.items():
            ratio = 1.0 if name == "alone" else float(np.median(ratios))
            yield {"workload": workload, "engine": name, "updates_per_second": round(float(np.median(rates))),
                   "ratio": round(ratio, 3)}  # fmt: skip


def count(keys: int, batch: int, watched: bool) -> Step:
    """An engine that counts, and what updates it."""
    engine = tk.Engine()
    table = engine.create_table("t", {"k": tk.Int})
    engine.create_view("counts", table.count(by="k"))
    table.insert({"k": np.arange(keys)})
    watch(engine, watched)
    draw = np.random.default_rng(7)

    def step() -> int:
        table.insert({"k": draw.integers(0, keys, batch)})
        return batch

    return step


def tpch(scale: float, queries: Sequence[int], watched: bool) -> Step:
    """An engine that keeps TPC-H queries, and what loads their relations: over and over, taking back what was loaded before."""
    engine = tk.Engine()
    encoded = Encoded(engine, scale, read_by(queries))
    relations = Relations(engine, encoded, read_by(queries), read_by(queries))
    for number in queries:
        relations.install(query(number, scale))
    watch(engine, watched)
    parts = list(encoded.batches(read_by(queries), max(round(encoded.rows(read_by(queries)) / 10_000), 1)))
    place = 0

    def step() -> int:
        nonlocal place
        part, diff = parts[place % len(parts)], 1 if place // len(parts) % 2 == 0 else -1
        place += 1
        for name, words in part.items():
            core_of(relations.inputs[name]).update_words(words, np.full(words.shape[1], diff))
        engine.advance()
        engine.settle()
        return sum(words.shape[1] for words in part.values())

    return step


def watch(engine: tk.Engine, watched: bool) -> None:
    """Let somebody look, or nobody."""
    for name in WATCHED if watched else ():
        engine.create_view(f"watched_{name}", engine.table(f"system.{name}"))
