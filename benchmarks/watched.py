"""What it costs that somebody looks at an engine: the same work with and without views over system relations.

| workload | an epoch |
|---|---|
| count | 1,000 updates of a count of 100,000 keys |
| fig12 | 10,000 rows of all relations that a TPC-H query reads, for some of the queries of Figure 12 |

Three engines take turns: one that nobody watches, one with views over system relations, and one in which a user of few rights
subscribes to them. Rates are by processor time, which includes the thread that looks.
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
ENGINES = ("alone", "watched", "user")
"""Who looks: nobody, a superuser, a user of few rights."""
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
    makers: dict[str, Callable[[str], Step]] = {"count": lambda by: count(keys, batch, by)}
    if queries:
        makers["fig12"] = lambda by: tpch(scale, queries, by)
    for workload, make in makers.items():
        steps = {name: make(name) for name in ENGINES}
        found: dict[str, list[float]] = {name: [] for name in steps}
        for turn in range(rounds):
            for name in list(steps)[:: 1 if turn % 2 else -1]:
                began, done = time.process_time(), 0
                while (spent := time.process_time() - began) < seconds:
                    done += steps[name]()
                found[name].append(done / spent)
        for name, rates in found.items():
            ratio = float(np.median([rate / alone for rate, alone in zip(rates, found["alone"], strict=True)]))
            yield {"workload": workload, "engine": name, "updates_per_second": round(float(np.median(rates))),
                   "ratio": round(ratio, 3)}  # fmt: skip


def count(keys: int, batch: int, by: str) -> Step:
    """An engine that counts, and what updates it."""
    engine = tk.Engine()
    table = engine.create_table("t", {"k": tk.Int})
    engine.create_view("counts", table.count(by="k"))
    table.insert({"k": np.arange(keys)})
    page = watch(engine, by)
    draw = np.random.default_rng(7)

    def step() -> int:
        table.insert({"k": draw.integers(0, keys, batch)})
        page.look()
        return batch

    return step


def tpch(scale: float, queries: Sequence[int], by: str) -> Step:
    """An engine that keeps TPC-H queries, and what loads their relations: over and over, taking back what was loaded before."""
    engine = tk.Engine()
    encoded = Encoded(engine, scale, read_by(queries))
    relations = Relations(engine, encoded, read_by(queries), read_by(queries))
    for number in queries:
        relations.install(query(number, scale))
    page = watch(engine, by)
    parts = list(encoded.batches(read_by(queries), max(round(encoded.rows(read_by(queries)) / 10_000), 1)))
    for part in parts:
        for words in part.values():
            core_of(engine).dictionary.pin(words)  # the texts of rows that were taken back and are loaded again
    place = 0

    def step() -> int:
        nonlocal place
        part, diff = parts[place % len(parts)], 1 if place // len(parts) % 2 == 0 else -1
        place += 1
        for name, words in part.items():
            core_of(relations.inputs[name]).update_words(words, np.full(words.shape[1], diff))
        engine.advance()
        engine.settle()
        page.look()
        if engine.failures:
            raise RuntimeError(f"a query does not do its work: {engine.failures}")
        return sum(words.shape[1] for words in part.values())

    return step


class Page:
    """Somebody who looks at a page: takes what has changed a few times a second, of processor time as the rates are."""

    PAUSE = 0.25

    def __init__(self, subscriptions: Sequence[tk.Subscription]) -> None:
        self._subscriptions = subscriptions
        self._looked = time.process_time()

    def look(self) -> None:
        """Take the changes, if it is time."""
        if self._subscriptions and time.process_time() - self._looked > self.PAUSE:
            self._looked = time.process_time()
            for subscription in self._subscriptions:
                for _ in subscription.changes():
                    pass


def watch(engine: tk.Engine, by: str) -> Page:
    """Let somebody look, or nobody."""
    if by != "user":
        for name in WATCHED if by == "watched" else ():
            engine.create_view(f"watched_{name}", engine.table(f"system.{name}"))
        return Page([])
    shown = ", ".join(sorted(engine.views)[:2])
    engine.sql(f"CREATE USER ann; GRANT SELECT ON {shown} TO ann")
    session = engine.session()
    session.sql("SET ROLE ann")
    found = [session.sql(f"SUBSCRIBE (SELECT * FROM system.{name})").subscription for name in WATCHED]
    return Page([subscription for subscription in found if subscription is not None])
