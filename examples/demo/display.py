"""What a run looks like while it goes on: a screen in a terminal, lines where there is none; then the summary."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

from rich.console import Console, Group, RenderableType
from rich.layout import Layout
from rich.live import Live
from rich.panel import Panel as Frame
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from benchmarks.tpch.sides import NOT_SHARED, SHARED
from examples.demo.record import Measured, Record, Step, mebibytes, milliseconds, quantile, ratio
from examples.demo.sides import ENGINES, SIDES, SPARK

STYLES = {SHARED: "bold cyan", NOT_SHARED: "bold dark_orange", SPARK: "bold magenta"}
FIGURES: tuple[tuple[str, Callable[[Measured], float], Callable[[float], str]], ...] = (
    ("first answer", lambda found: found.first, milliseconds),
    ("current after a change", lambda found: found.current, milliseconds),
    ("memory, process", lambda found: found.resident, mebibytes),
    ("memory, indexes", lambda found: found.indexed, mebibytes),
)
"""What the table says of each side: a title, the figure, and how it is written."""


class Screen:
    """The live display. Rich asks for it several times a second, from a thread of its own."""

    def __init__(self, record: Record, console: Console) -> None:
        self.record = record
        self.console = console

    def live(self) -> AbstractContextManager[object]:
        """Show it for the duration of a `with` block."""
        return Live(self, console=self.console, screen=True, refresh_per_second=4)

    def event(self) -> None:
        """Nothing to do: the screen looks at the record by itself."""

    def __rich__(self) -> RenderableType:
        layout = Layout()
        layout.split_column(
            Layout(self._head(), size=7), Layout(figures(self.record), name="table"),
            Layout(self._queries(max(self.console.size.height - 40, 6)), size=max(self.console.size.height - 36, 9)),
        )  # fmt: skip
        return layout

    def _head(self) -> RenderableType:
        record, what = self.record, self.record.settings
        line = Table.grid(expand=True, padding=(0, 1))
        line.add_column(ratio=1)
        line.add_column(justify="right")
        done, total = (record.done, record.total) if record.total else (record.epoch, what.epochs)
        line.add_row(ProgressBar(total, done), f"change {record.epoch} of {what.epochs}, {record.elapsed:.0f} s")
        return Frame(
            Group(Text(about(record)), Text(f"console: {record.console}" if record.console else ""), line,
                  Text(record.state, style="dim"),
                  Text(record.verdict, style="bold red" if record.differing else "green")),
            title="Tektite: standing queries that share their indexes",
        )  # fmt: skip

    def _queries(self, room: int) -> RenderableType:
        events = list(self.record.events)[-room:]
        text = Text("\n".join(reversed(events)), no_wrap=True, overflow="ellipsis")
        return Frame(text, title=f"{len(self.record.active)} queries")


class Lines:
    """The plain display: a line for each event, of which arrivals beyond some are told in numbers."""

    EVERY = 5.0

    def __init__(self, record: Record, console: Console) -> None:
        self.record = record
        self.console = console
        self._state = ""
        self._last = 0.0

    def live(self) -> AbstractContextManager[object]:
        """Nothing to set up."""
        return nullcontext()

    def event(self) -> None:
        """Print what is new."""
        record = self.record
        if record.state != self._state:
            self._state = record.state
            self._print(record.state)
        while record.events:
            said = record.events.popleft()
            if len(record.active) <= 5 or said.startswith(" ") or time.monotonic() - self._last > self.EVERY:
                self._print(said)
        if record.steps and record.step.sides[SHARED].currents and time.monotonic() - self._last > self.EVERY:
            latency = ", ".join(f"{s} {milliseconds(record.step.sides[s].current)}" for s in ENGINES)
            memory = ", ".join(f"{s} {mebibytes(record.step.sides[s].resident)}" for s in ENGINES)
            self._print(
                f"change {record.epoch}, {len(record.active)} queries; current after: {latency}; process: {memory}"
            )

    def _print(self, line: str) -> None:
        self._last = time.monotonic()
        print(f"{self.record.elapsed:6.1f} s  {line}", flush=True)


def about(record: Record) -> str:
    """What is going on."""
    what = record.settings
    return (
        f"TPC-H at scale factor {what.scale:g}: up to {what.queries} standing queries over all relations; lineitem has "
        f"{what.history:,} rows and streams in through Spark, {what.changes:,} rows a change"
    )


def figures(record: Record) -> Table:
    """The table: each figure by the number of queries, side by side."""
    table = Table(title="What a query, a change and memory cost", title_justify="left")
    table.add_column("")
    table.add_column("queries", justify="right")
    for side in SIDES:
        table.add_column(side, justify="right", style=STYLES[side])
    for side in SIDES[1:]:
        table.add_column(f"{side} / {SHARED}", justify="right")
    for title, figure, written in FIGURES:
        for at, step in enumerate(record.steps):
            found = [figure(step.sides[side]) for side in SIDES]
            is_more = step.sides[SPARK].is_more and title.startswith("current")
            _row(table, title if not at else "", step, found, written, at == len(record.steps) - 1, is_more)
    for at, step in enumerate(record.steps):
        each = [step.each(side) for side in SIDES]
        _row(table, "a change, for each query" if not at else "", step, each, milliseconds, False, False)
    return table


def _row(
    table: Table,
    title: str,
    step: Step,
    found: list[float],
    written: Callable[[float], str],
    ends_section: bool,
    is_more: bool,
) -> None:
    """A line of the table; `is_more` says that Spark SQL takes more than that."""
    others = [ratio(found[0], other or float("nan")) for other in found[1:]]
    more = "> " if is_more else ""
    cells = [*map(written, found[:-1]), more + written(found[-1]), *others[:-1], more + others[-1]]
    table.add_row(title, str(step.queries), *cells, end_section=ends_section)


def summary(record: Record) -> RenderableType:
    """The figures of the whole run."""
    table = figures(record)
    table.caption = record.verdict
    return table


def notes(record: Record) -> str:
    """How the figures are to be read, and what none of them includes."""
    through = f"{milliseconds(quantile(record.through, 0.5))} (99%: {milliseconds(quantile(record.through, 0.99))})"
    return (
        "First answers and changes are medians. Shared: a change is also written to a storage, by which Spark's "
        "tasks load; few queries do not make up for that. Not shared: there is no storage, and each query loads and "
        "indexes its relations for itself. Spark SQL: "
        "computes all answers anew over cached relations, as many at a time as there are cores; its memory is that of Spark's "
        f"processes, which also load and stream for the first side. Spark loaded and indexed the relations in "
        f"{record.load.get(SHARED, 0):.1f} s, before any query. From a file of {record.settings.changes:,} lineitems to the "
        f"durable epoch, through Spark: {through}."
    )
