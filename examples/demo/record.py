"""What a run has shown so far: every measurement of both sides, and whether their answers agree.

An epoch's latency counts from when its rows arrive, at a steady rate, to when every query has taken them in. While
a side installs a query, epochs wait. The sides take turns on one machine, so each has a clock of its own, which only
its own work moves: latencies are what they were if it had been alone, and if the rows had come encoded.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from examples.demo.queries import Query
from examples.demo.sides import SIDES, Note, Turn

MIB = 1 << 20


@dataclass
class Measurements:
    """One side's measurements: seconds of each installation; of each epoch, work, latency and the whole way through Spark;
    memory as time went by.
    """

    load: float = 0.0
    installs: list[float] = field(default_factory=list)
    work: list[float] = field(default_factory=list)
    latencies: list[float] = field(default_factory=list)
    through: list[float] = field(default_factory=list)
    clock: float = 0.0
    times: list[float] = field(default_factory=list)
    indexed: list[int] = field(default_factory=list)
    resident: list[int] = field(default_factory=list)
    spark: list[int] = field(default_factory=list)

    def spend(self, arrival: float, seconds: float) -> float:
        """Move the clock by some work that could not begin before `arrival`; how long after that it was done.

        >>> side = Measurements()
        >>> [side.spend(arrival, 1.0) for arrival in (0.0, 0.25, 5.0)]
        [1.0, 1.75, 1.0]
        """
        self.clock = max(self.clock, arrival) + seconds
        return self.clock - arrival


@dataclass
class Settings:
    """What the run is about."""

    scale: float
    rate: float
    epochs: int
    lineitems: int = 0

    @property
    def changes(self) -> int:
        """How many lineitems come in an epoch."""
        return self.lineitems // self.epochs


class Record:
    """The state that displays, summary and picture are drawn from."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.sides = {side: Measurements() for side in SIDES}
        self.active: dict[str, tuple[float, ...]] = {}
        self.epoch = 0
        self.compared = 0
        self.differing: list[str] = []
        self.events: deque[str] = deque(maxlen=50)
        self.state = "starting"
        self.done = self.total = 0
        self._start = time.monotonic()

    @property
    def arrival(self) -> float:
        """When the changes of the epoch to come arrive."""
        return self.epoch / self.settings.rate

    @property
    def elapsed(self) -> float:
        """Seconds since the stream began."""
        return time.monotonic() - self._start

    def begin(self, turns: dict[str, Turn]) -> None:
        """The relations are loaded, and the stream begins."""
        self._start = time.monotonic()
        self.done = self.total = 0
        self.state = "queries arrive and leave; Ctrl-C ends it with the summary so far"
        for side, turn in turns.items():
            self.sides[side].load = turn.seconds
        self.remember(turns)

    def note(self, note: Note) -> None:
        """A side says what it does before the stream begins."""
        self.state, self.done, self.total = note.text, note.done, note.total

    def remember(self, turns: dict[str, Turn]) -> None:
        """Note the memory of both sides."""
        for side, turn in turns.items():
            found = self.sides[side]
            found.times.append(self.elapsed)
            found.indexed.append(turn.indexed)
            found.resident.append(turn.resident)
            found.spark.append(turn.spark)

    def installed(self, query: Query, turns: dict[str, Turn]) -> None:
        """A query has arrived."""
        for side, turn in turns.items():
            self.sides[side].installs.append(turn.seconds)
            self.sides[side].spend(self.arrival, turn.seconds)
        self.active[query.name] = tuple(turns[side].seconds for side in SIDES)
        took = ", ".join(f"{side} {milliseconds(turns[side].seconds)}" for side in SIDES)
        self.events.append(f"+ {query.name} arrives; first answer: {took}")
        self.remember(turns)

    def left(self, query: Query, turns: dict[str, Turn]) -> None:
        """A query has left."""
        for side, turn in turns.items():
            self.sides[side].spend(self.arrival, turn.seconds)
        del self.active[query.name]
        self.events.append(f"- {query.name} leaves")
        self.remember(turns)

    def updated(self, turns: dict[str, Turn]) -> None:
        """An epoch has been closed and every query answered for it."""
        for side, turn in turns.items():
            self.sides[side].work.append(turn.seconds)
            self.sides[side].through.append(turn.through)
            self.sides[side].latencies.append(self.sides[side].spend(self.arrival, turn.seconds))
        self.epoch += 1
        self.remember(turns)

    def answered(self, query: Query, turns: dict[str, Turn]) -> None:
        """Both sides have been asked for the same answer."""
        self.compared += 1
        if len({turn.answer for turn in turns.values()}) > 1:
            self.differing.append(query.name)

    @property
    def verdict(self) -> str:
        """Whether the answers agree, in words."""
        if self.differing:
            return f"ANSWERS DIFFER for {', '.join(sorted(set(self.differing)))}"
        if not self.compared:
            return "answers of both sides are compared when a query leaves, and at the end"
        return f"{self.compared} answers compared: all the same on both sides"


def quantile(values: Sequence[float], share: float) -> float:
    """The least value that at least `share` of the values do not exceed: one that was measured. NaN without values.

    >>> quantile([3.0, 1.0, 2.0, 4.0], 0.5)
    2.0
    """
    return float(np.quantile(values, share, method="inverted_cdf")) if len(values) else float("nan")


def milliseconds(seconds: float) -> str:
    """A duration for people, always in milliseconds.

    >>> milliseconds(0.0000123), milliseconds(0.00123), milliseconds(0.0456), milliseconds(12.3)
    ('0.01 ms', '1.23 ms', '45.6 ms', '12,300 ms')
    """
    number = seconds * 1000
    return f"{number:.2f} ms" if number < 10 else f"{number:.1f} ms" if number < 100 else f"{number:,.0f} ms"


def mebibytes(count: float) -> str:
    """Memory for people."""
    return f"{count / MIB:,.0f} MiB"


def ratio(shared: float, not_shared: float) -> str:
    """How many times as much the side without sharing takes.

    >>> ratio(2.0, 3.0), ratio(1.0, 250.0)
    ('1.5x', '250x')
    """
    times = not_shared / shared if shared else float("nan")
    return f"{times:.0f}x" if times >= 10 else f"{times:.1f}x"
