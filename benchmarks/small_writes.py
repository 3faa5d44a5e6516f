"""What the layers above an epoch cost: a row is inserted and its epoch closed, by the public interface and by what lies below."""

from __future__ import annotations

import time
import timeit
from collections.abc import Callable, Iterator
from typing import Any

import tektite as tk
from tektite.engine.core import core_of

NAME = "small_writes"
DESCRIPTION = "microseconds of an epoch of one row: by insert and advance, by insert, by a transaction, and the floor"


def run(rows: int = 1000, rounds: int = 200, epochs: int = 50) -> Iterator[dict[str, Any]]:
    """A record for each path. Paths take turns, so that what else the machine does hits all alike; each has the best of its
    `rounds` turns of `epochs` epochs. `above_floor` is what it costs more than writing to the write set and closing the epoch.
    """
    paths = {name: make(rows) for name, make in PATHS.items()}
    seconds: dict[str, list[float]] = {name: [] for name in paths}
    for _ in range(rounds):
        for name, step in paths.items():
            began = time.perf_counter()
            for _ in range(epochs):
                step()
            seconds[name].append((time.perf_counter() - began) / epochs)
    floor = min(seconds["floor"])
    yield {"path": "session layer alone", "microseconds": round(layer_alone() * 1e6, 2)}
    for name, found in seconds.items():
        microseconds, above = min(found) * 1e6, (min(found) - floor) * 1e6
        yield {"path": name, "microseconds": round(microseconds, 2), "above_floor": round(above, 2)}


def layer_alone(calls: int = 20_000) -> float:
    """Processor seconds that `insert` and `advance` spend on finding the session, its transaction and its write set."""
    engine = tk.Engine(autocommit=False)
    core = core_of(engine)

    def calls_of_an_epoch() -> None:
        core.write(lambda into: None)
        core.check_no_transaction()

    return min(timeit.repeat(calls_of_an_epoch, timer=time.thread_time, number=calls)) / calls


def filled(rows: int, autocommit: bool) -> tuple[tk.Engine, tk.Table]:
    """An engine with a table of some rows, and a view over it."""
    engine = tk.Engine(autocommit=autocommit)
    table = engine.create_table("t", {"k": tk.Int, "v": tk.Int})
    engine.install("counts", table.count(by="k"), keep=False)
    table.insert([(k, 0) for k in range(rows)])
    if not autocommit:
        engine.advance()
    return engine, table


def floor(rows: int) -> Callable[[], object]:
    """The write set and the clock alone: no session is asked for."""
    engine, table = filled(rows, False)
    core, below = core_of(engine), core_of(table)

    def step() -> None:
        with core.lock.held:
            below.write([(1, 1)], None, 1, "insert", core.writes)
            core.commit(core.writes)

    return step


def advanced(rows: int) -> Callable[[], object]:
    """`insert`, then `advance`, in an engine that does not commit by itself."""
    engine, table = filled(rows, False)
    return lambda: (table.insert([(1, 1)]), engine.advance())


def committed(rows: int) -> Callable[[], object]:
    """`insert` in an engine that commits by itself."""
    _, table = filled(rows, True)
    return lambda: table.insert([(1, 1)])


def transacted(rows: int) -> Callable[[], object]:
    """`insert` in a transaction."""
    engine, table = filled(rows, True)

    def step() -> None:
        with engine.transaction():
            table.insert([(1, 1)])

    return step


PATHS: dict[str, Callable[[int], Callable[[], object]]] = {
    "floor": floor, "insert and advance": advanced, "insert": committed, "transaction": transacted,
}  # fmt: skip
