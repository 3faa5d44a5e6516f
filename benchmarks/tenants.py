"""Figure 9 of the thesis (3DF §10.7): clients that come at a steady rate and ask the same query with other constants.

Each second of the experiment 500 measurements of devices arrive, and ten clients more. An epoch closes each second; its latency
is how long closing it takes, until what changed is ready for every client. Seconds are not waited for.

| strategy | a client is |
|---|---|
| nothing shared | a dataflow over tables and indexes of its own |
| arrangements shared | a dataflow over the indexes that all share |
| data plane | a row of an argument table: one dataflow for all, its answers routed (SUBSCRIBE) |
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import tektite as tk
from benchmarks.measure import Others, memory, percentile
from benchmarks.plots import Record, figure
from tektite.engine.core import core_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NAME = "tenants"
DESCRIPTION = "thesis Fig. 9: ten new clients a second ask one query with other constants, over 500 tuples a second"

NOTHING, ARRANGEMENTS, DATA_PLANE = STRATEGIES = ("nothing shared", "arrangements shared", "data plane")
TABLES = (
    "CREATE TABLE speeds{0} (device int PRIMARY KEY, speed int) WITH (mode = upsert);"
    "CREATE TABLE devices{0} (id int PRIMARY KEY, place varchar)"
)
QUERY = "SELECT d.place, s.speed FROM speeds{0} s JOIN devices{0} d ON d.id = s.device WHERE s.device = {1}"
STOP = 1.0
"""Seconds of processor time from which on a strategy has lost: epochs last one second."""


def run(
    strategies: Sequence[str] = STRATEGIES,
    clients: int = 10_000,
    arrivals: int = 10,
    tuples: int = 500,
    devices: int = 1000,
    seed: int = 1,
) -> Iterator[dict[str, Any]]:
    """A record for each thousand clients of each strategy, or a tenth of all, whichever is less; with the epochs in between."""
    for strategy in strategies:
        chance = random.Random(seed)
        side: Side = {NOTHING: Alone, ARRANGEMENTS: Apart, DATA_PLANE: Together}[strategy](devices)
        others, part, began = Others(), max(min(1000, clients // 10), arrivals), 0
        epochs: list[tuple[int, float]] = []
        cpu: list[float] = []
        for there in range(0, clients, arrivals):
            for number in range(there, there + arrivals):
                side.add(number, chance.randrange(devices))
            rows = [(chance.randrange(devices), chance.randrange(200)) for _ in range(tuples)]
            start, before = time.perf_counter(), time.process_time()
            side.close_epoch(list(dict(rows).items()))
            cpu.append(time.process_time() - before)
            epochs.append((there + arrivals, time.perf_counter() - start))
            has_lost = cpu[-1] > STOP
            if there + arrivals - began >= part or has_lost:
                began = there + arrivals
                taken = sorted(seconds for many, seconds in epochs if many > began - part)
                used = sorted(cpu[-len(taken) :])
                yield {
                    "strategy": strategy, "clients": began, "p50_us": percentile(taken, 0.5) * 1e6,
                    "p99_us": percentile(taken, 0.99) * 1e6, "max_us": taken[-1] * 1e6,
                    "cpu_p50_us": percentile(used, 0.5) * 1e6, "cpu_p99_us": percentile(used, 0.99) * 1e6,
                    "changes": side.told(),
                    "epochs": [
                        (many, round(seconds * 1e3, 3), round(busy * 1e3, 3))
                        for (many, seconds), busy in zip(epochs, cpu, strict=True)
                        if many > began - part
                    ],
                    **memory(), **others.figures(),
                }  # fmt: skip
            if has_lost:
                break
        side.engine.close()


class Side(Protocol):
    """One strategy."""

    engine: tk.Engine

    def add(self, number: int, device: int) -> None:
        """Let a client come, who asks for a device."""

    def close_epoch(self, rows: list[tuple[int, int]]) -> None:
        """Insert measurements, and bring every client's answer up to date."""

    def told(self) -> int:
        """How many changes were ready for clients since the last call."""


def places(devices: int) -> list[tuple[int, str]]:
    return [(number, f"place {number % 97}") for number in range(devices)]


class Apart:
    """A dataflow for each client, over shared arrangements."""

    def __init__(self, devices: int) -> None:
        self.engine = tk.Engine()
        self.engine.sql(TABLES.format(""))
        self.engine.table("devices").insert(places(devices))
        self.subscriptions: list[Any] = []

    def add(self, number: int, device: int) -> None:
        view = self.engine.sql(f"CREATE MATERIALIZED VIEW client_{number} AS {QUERY.format('', device)}").view
        assert view is not None
        self.subscriptions.append(view.subscribe())

    def close_epoch(self, rows: list[tuple[int, int]]) -> None:
        self.engine.table("speeds").insert(rows)
        self.finish()

    def finish(self) -> None:
        core = core_of(self.engine)
        for view in list(core.views.values()):
            core.finish(view)

    def told(self) -> int:
        return sum(subscription.table().num_rows for subscription in self.subscriptions)


class Alone(Apart):
    """A dataflow for each client, over tables and indexes of its own."""

    def __init__(self, devices: int) -> None:
        super().__init__(devices)
        self._devices = devices
        self._tables: list[Any] = []
        self._speeds: dict[int, int] = {}

    def add(self, number: int, device: int) -> None:
        self.engine.sql(TABLES.format(f"_{number}"))
        self.engine.table(f"devices_{number}").insert(places(self._devices))
        if self._speeds:
            self.engine.table(f"speeds_{number}").insert(list(self._speeds.items()))
        text = QUERY.format(f"_{number}", device)
        view = self.engine.sql(f"CREATE MATERIALIZED VIEW client_{number} AS {text}").view
        assert view is not None
        self.subscriptions.append(view.subscribe())
        self._tables.append(self.engine.table(f"speeds_{number}"))

    def close_epoch(self, rows: list[tuple[int, int]]) -> None:
        self._speeds.update(rows)
        with self.engine.transaction():
            for table in self._tables:
                table.insert(rows)
        self.finish()


class Together(Apart):
    """One dataflow for all clients."""

    def add(self, number: int, device: int) -> None:
        found = self.engine.sql(f"SUBSCRIBE ({QUERY.format('', device)})").subscription
        assert found is not None
        self.subscriptions.append(found)


def plot(records: Sequence[Record], path: Path) -> None:
    """The latency of each epoch over the number of clients, as in the thesis; and its processor time, which other programs do not
    change.
    """
    title = "Closing an epoch of 500 tuples, with ten clients more each second"
    with figure(path, 2, title, (12, 4.8)) as both:
        draw(both[0], records, 1, "latency of an epoch (ms)")
        draw(both[1], records, 2, "processor time of an epoch (ms)")


def draw(axes: Axes, records: Sequence[Record], place: int, what: str) -> None:
    """One figure of each epoch, for each strategy."""
    for number, strategy in enumerate(dict.fromkeys(record["strategy"] for record in records)):
        points = [point for record in records if record["strategy"] == strategy for point in record["epochs"]]
        axes.plot(
            [point[0] for point in points],
            [point[place] for point in points],
            ".",
            markersize=2,
            color=f"C{number}",
            label=strategy,
        )
    axes.axhline(100, color="grey", linewidth=0.8, linestyle=":")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("clients")
    axes.set_ylabel(what)
    axes.grid(True, which="major", alpha=0.3)
    axes.legend(markerscale=6)
