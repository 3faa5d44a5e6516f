"""What it costs that somebody looks at an engine: batches of updates with and without a view over system relations."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

import tektite as tk

NAME = "watched"
DESCRIPTION = "updates a second of a count, alone and while a view over system relations is kept up to date"


def run(keys: int = 100_000, batch: int = 1000, seconds: float = 1.0, rounds: int = 7) -> Iterator[dict[str, Any]]:
    """A record for each way, with the median of its `rounds`, which take turns; `ratio` is to the engine that nobody watches.
    Rates are by processor time, which includes the thread that looks.
    """
    engines = {name: prepared(keys, name == "watched") for name in ("alone", "watched")}
    found: dict[str, list[float]] = {name: [] for name in engines}
    for _ in range(rounds):
        for name, (table, draw) in engines.items():
            began, done = time.process_time(), 0
            while (spent := time.process_time() - began) < seconds:
                table.insert({"k": draw.integers(0, keys, batch)})
                done += batch
            found[name].append(done / spent)
    alone = float(np.median(found["alone"]))
    for name, rates in found.items():
        rate = float(np.median(rates))
        yield {"engine": name, "updates_per_second": round(rate), "ratio": round(rate / alone, 3)}


def prepared(keys: int, watched: bool) -> tuple[tk.Table, np.random.Generator]:
    """An engine that counts, and a table to write to."""
    engine = tk.Engine()
    table = engine.create_table("t", {"k": tk.Int})
    engine.create_view("counts", table.count(by="k"))
    table.insert({"k": np.arange(keys)})
    if watched:
        names = ("views", "indexes", "operators", "work", "memory", "sweeps")
        for name in names:
            engine.create_view(f"watched_{name}", engine.table(f"system.{name}"))
    return table, np.random.default_rng(7)
