"""What a run has shown so far: for each number of queries, what every side took, and whether the answers agree."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from benchmarks.maintained import WrongAnswer
from benchmarks.tpch.answers import check_rows
from benchmarks.tpch.sides import SHARED
from examples.demo.queries import Panel
from examples.demo.sides import ENGINES, SIDES, SPARK, Note, Rows, Turn

MIB = 1 << 20
SPARK_ROUNDS = 1e-6
"""Spark SQL rounds averages and quotients of decimals to six places."""


@dataclass
class Measured:
    """One side at one number of queries: seconds to first answers and to be current after each change; memory at the end."""

    firsts: list[float] = field(default_factory=list)
    currents: list[float] = field(default_factory=list)
    indexed: int = 0
    resident: int = 0
    answered: int = 0
    """How many queries the last change was waited for; 0 is all of them."""

    @property
    def is_more(self) -> bool:
        """Whether a change takes longer than what was waited for."""
        return self.answered > 0

    @property
    def first(self) -> float:
        """Seconds to a first answer: the median."""
        return quantile(self.firsts, 0.5)

    @property
    def current(self) -> float:
        """Seconds to be current after a change: the median."""
        return quantile(self.currents, 0.5)


@dataclass
class Step:
    """Everything that was measured at one number of queries."""

    queries: int
    sides: dict[str, Measured] = field(default_factory=lambda: {side: Measured() for side in SIDES})

    def each(self, side: str) -> float:
        """Seconds of a change for each query."""
        found = self.sides[side]
        return found.current / (found.answered or self.queries)


@dataclass
class Settings:
    """What the run is about."""

    scale: float
    queries: int
    epochs: int
    changes: int
    history: int = 0


class Record:
    """The state that displays, summary and picture are drawn from."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.steps: list[Step] = []
        self.load: dict[str, float] = {}
        self.through: list[float] = []
        """Seconds of each change from the file to the durable epoch, through Spark."""
        self.spark = 0
        """The most that Spark's own processes took."""
        self.active: dict[Panel, tuple[float, ...]] = {}
        self.epoch = 0
        self.compared = 0
        self.differing: list[str] = []
        self.events: deque[str] = deque(maxlen=50)
        self.state = "starting"
        self.done = self.total = 0
        self.console = ""
        """Where the console is, once it is there."""
        self._start = time.monotonic()

    @property
    def elapsed(self) -> float:
        """Seconds since the run began."""
        return time.monotonic() - self._start

    @property
    def step(self) -> Step:
        """The present step."""
        return self.steps[-1]

    def note(self, note: Note) -> None:
        """A side says what it does."""
        self.state, self.done, self.total = note.text, note.done, note.total
        self.console = note.console or self.console

    def loaded(self, turns: dict[str, Turn]) -> None:
        """The relations are loaded."""
        self.total = 0
        self.load = {side: turn.seconds for side, turn in turns.items()}
        self.note(Note("queries arrive and leave; Ctrl-C ends it with the summary so far"))

    def begin(self, queries: int) -> None:
        """From here on there are so many queries."""
        self.steps.append(Step(queries))

    def _remember(self, turns: dict[str, Turn]) -> None:
        for side, turn in turns.items():
            found = self.step.sides[side]
            found.indexed, found.resident = turn.indexed, turn.resident
            self.spark = max(self.spark, turn.spark)
        if self.spark:
            self.step.sides[SPARK].resident = turns[SHARED].spark if SHARED in turns else self.spark

    def installed(self, panel: Panel, turns: dict[str, Turn]) -> None:
        """A query has arrived."""
        for side, turn in turns.items():
            self.step.sides[side].firsts.append(turn.seconds)
        self.active[panel] = tuple(turns[side].seconds for side in ENGINES)
        took = ", ".join(f"{side} {milliseconds(turns[side].seconds)}" for side in ENGINES)
        how = ", prepared" if panel.is_prepared else ""
        self.events.append(f"+ {len(self.active)}: {panel.name}{how} arrives; first answer: {took}")
        self._remember(turns)

    def left(self, panel: Panel, turns: dict[str, Turn]) -> None:
        """A query has left."""
        del self.active[panel]
        self.events.append(f"- {panel.name} leaves")
        self._remember(turns)

    def updated(self, turns: dict[str, Turn]) -> None:
        """A change has been taken in by every query."""
        for side, turn in turns.items():
            self.step.sides[side].currents.append(turn.seconds)
        self.through.append(turns[SHARED].through)
        self.epoch += 1
        self._remember(turns)

    def recomputed(self, panels: Sequence[Panel], turn: Turn, answers: dict[str, Turn]) -> None:
        """Spark SQL has computed all answers anew; the others said theirs."""
        found = self.step.sides[SPARK]
        found.firsts += turn.each
        found.currents.append(turn.seconds)
        many = len(panels) - turn.answers.count(None)
        found.answered = many if many < len(panels) else 0
        for at, panel in enumerate(panels):
            self._compare(panel, [turn.answers[at], *[answers[side].answers[at] for side in ENGINES]])
        self.events.append(f"  Spark SQL computed {many} answers anew in {turn.seconds:.1f} s; {self.verdict}")

    def _compare(self, panel: Panel, answers: Sequence[Rows | None]) -> None:
        """Compare the answers of all sides, as far as they have given one."""
        first, *others = [rows for rows in answers if rows is not None]
        self.compared += 1
        for rows in others:
            try:
                check_rows(rows, first, panel.query, SPARK_ROUNDS)
            except WrongAnswer as error:
                self.differing.append(f"{panel.key} ({error})")

    @property
    def verdict(self) -> str:
        """Whether the answers agree, in words."""
        if self.differing:
            return f"ANSWERS DIFFER for {', '.join(self.differing[:5])}"
        if not self.compared:
            return "answers of all sides are compared whenever Spark SQL has computed them"
        return f"{self.compared} answers compared: all the same on all sides"


def quantile(values: Sequence[float], share: float) -> float:
    """The least value that at least `share` of the values do not exceed: one that was measured. NaN without values.

    >>> quantile([3.0, 1.0, 2.0, 4.0], 0.5)
    2.0
    """
    return float(np.quantile(values, share, method="inverted_cdf")) if len(values) else float("nan")


def milliseconds(seconds: float) -> str:
    """A duration for people, always in milliseconds; `-` for none.

    >>> milliseconds(0.0000123), milliseconds(0.00123), milliseconds(0.0456), milliseconds(12.3), milliseconds(float("nan"))
    ('0.01 ms', '1.23 ms', '45.6 ms', '12,300 ms', '-')
    """
    number = seconds * 1000
    if number != number:
        return "-"
    return f"{number:.2f} ms" if number < 10 else f"{number:.1f} ms" if number < 100 else f"{number:,.0f} ms"


def mebibytes(count: float) -> str:
    """Memory for people."""
    return f"{count / MIB:,.0f} MiB" if count else "-"


def ratio(ours: float, others: float) -> str:
    """How many times as much another side takes.

    >>> ratio(2.0, 3.0), ratio(1.0, 250.0), ratio(1.0, float("nan"))
    ('1.5x', '250x', '-')
    """
    times = others / ours if ours else float("nan")
    return "-" if times != times else f"{times:.0f}x" if times >= 10 else f"{times:.1f}x"
