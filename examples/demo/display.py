"""What a run looks like while it goes on: a screen in a terminal, lines where there is none; then the summary."""

from __future__ import annotations

import math
import time
from contextlib import AbstractContextManager, nullcontext

from rich.console import Console, Group, RenderableType
from rich.layout import Layout
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from benchmarks.tpch.sides import NOT_SHARED, SHARED
from examples.demo.record import Record, mebibytes, milliseconds, quantile, ratio
from examples.demo.sides import SIDES

STYLES = {SHARED: "bold cyan", NOT_SHARED: "bold dark_orange"}
BARS = "▁▂▃▄▅▆▇█"


class Screen:
    """The live display. Rich asks for it several times a second, from a thread of its own."""

    def __init__(self, record: Record, console: Console) -> None:
        self.record = record
        self.console = console

    def live(self) -> AbstractContextManager[object]:
        """Show it for the duration of a `with` block."""
        return Live(self, console=self.console, screen=True, refresh_per_second=5)

    def event(self) -> None:
        """Nothing to do: the screen looks at the record by itself."""

    def __rich__(self) -> RenderableType:
        size = self.console.size
        wide = max(40, min(60, size.width * 11 // 20))
        layout = Layout()
        layout.split_column(Layout(self._head(), size=6), Layout(name="body"), Layout(self._foot(), size=4))
        layout["body"].split_row(
            Layout(self._queries(size.height - 6 - 4 - 3), size=wide), Layout(self._figures(size.width - wide - 4))
        )
        return layout

    def _head(self) -> RenderableType:
        record, what = self.record, self.record.settings
        line = Table.grid(expand=True, padding=(0, 1))
        line.add_column(ratio=1)
        line.add_column(justify="right")
        if record.total:
            line.add_row(ProgressBar(record.total, record.done), f"{record.done} of {record.total} tasks")
        else:
            line.add_row(
                ProgressBar(what.epochs, record.epoch),
                f"epoch {record.epoch:,} of {what.epochs:,}, {record.elapsed:.0f} s",
            )
        about = f"TPC-H at scale factor {what.scale:g} on Spark; each epoch brings {what.changes:,} lineitems"
        legend = Text.assemble(
            ("shared", STYLES[SHARED]), ": one index of a relation for all; ",
            ("not shared", STYLES[NOT_SHARED]), ": each query keeps its own", no_wrap=True,
        )  # fmt: skip
        body = Group(Text(about), legend, line, Text(record.state, style="dim"))
        return Panel(body, title="Tektite: standing queries that share their indexes")

    def _queries(self, room: int) -> RenderableType:
        active = list(self.record.active.items())
        table = Table(expand=True, box=None, pad_edge=False)
        table.add_column("query", no_wrap=True, overflow="ellipsis", ratio=1)
        for side in SIDES:
            table.add_column(side, justify="right", style=STYLES[side], no_wrap=True)
        table.add_column("", justify="right", no_wrap=True)
        hidden = len(active) - room + 1 if len(active) > room else 0
        for name, seconds in reversed(active[hidden:]):
            table.add_row(name, *(milliseconds(s).removesuffix(" ms") for s in seconds), ratio(*seconds))
        if hidden:
            table.add_row(Text(f"and {hidden} more", style="dim"), "", "", "")
        return Panel(table, title=f"{len(active)} queries: ms to the first answer")

    def _figures(self, width: int) -> RenderableType:
        sides = self.record.sides
        recent = {side: sides[side].latencies[-width:] for side in SIDES}
        seen = [s for values in recent.values() for s in values]
        low, high = min(seen, default=1e-4), max(seen, default=1e-1)
        parts: list[RenderableType] = []
        for side in SIDES:
            median = milliseconds(quantile(sides[side].latencies[-100:], 0.5)) if recent[side] else "-"
            parts.append(Text(f"{side}: median {median}", style=STYLES[side]))
            parts.append(Text(sparkline(recent[side], low, high), style=STYLES[side], no_wrap=True))
        through = sides[SHARED].through[-100:]
        if through:
            parts.append(
                Text(f"from file to durable epoch through Spark: {milliseconds(quantile(through, 0.5))}", "dim")
            )
        latency = Panel(Group(*parts), title="latency of an epoch, log scale")
        most = max((max(found.indexed, default=0) for found in sides.values()), default=0) or 1
        memory = Table.grid(expand=True)
        for side in SIDES:
            found = sides[side]
            now, process = (found.indexed[-1], found.resident[-1]) if found.times else (0, 0)
            memory.add_row(Text(f"{side}: {mebibytes(now)} ({mebibytes(process)})", STYLES[side], no_wrap=True))
            memory.add_row(ProgressBar(most, now, complete_style=STYLES[side], finished_style=STYLES[side]))
        return Group(latency, Panel(memory, title="indexes (whole process)"))

    def _foot(self) -> RenderableType:
        last = self.record.events[-1] if self.record.events else ""
        verdict = Text(self.record.verdict, style="bold red" if self.record.differing else "green")
        return Panel(Group(Text(last, no_wrap=True, overflow="ellipsis"), verdict))


class Lines:
    """The plain display: a line for each event, and one every few seconds."""

    EVERY = 5.0

    def __init__(self, record: Record, console: Console) -> None:
        self.record = record
        self.console = console
        self._state = ""
        self._events = 0
        self._last = time.monotonic()

    def live(self) -> AbstractContextManager[object]:
        """Nothing to set up."""
        return nullcontext()

    def event(self) -> None:
        """Print what is new."""
        record = self.record
        if record.state != self._state:
            self._state = record.state
            self._print(f"{record.elapsed:6.1f} s  {record.state}")
        while record.events:
            self._print(f"{record.elapsed:6.1f} s  {record.events.popleft()}")
        if record.epoch and time.monotonic() - self._last > self.EVERY:
            self._last = time.monotonic()
            latency = ", ".join(f"{s} {milliseconds(quantile(record.sides[s].latencies[-100:], 0.5))}" for s in SIDES)
            memory = ", ".join(f"{s} {mebibytes(record.sides[s].indexed[-1])}" for s in SIDES)
            self._print(f"{record.elapsed:6.1f} s  epoch {record.epoch}, {len(record.active)} queries; "
                        f"median latency of an epoch: {latency}; indexes: {memory}")  # fmt: skip

    def _print(self, line: str) -> None:
        print(line, flush=True)


def sparkline(values: list[float], low: float, high: float) -> str:
    """Values as bars on a logarithmic scale from `low` to `high`.

    >>> sparkline([1.0, 10.0, 100.0], 1.0, 100.0)
    '▁▅█'
    """
    span = math.log(high / low) if high > low else 1.0
    return "".join(BARS[min(int(math.log(max(v, low) / low) / span * len(BARS)), len(BARS) - 1)] for v in values)


def summary(record: Record) -> RenderableType:
    """The figures of the whole run, side by side."""
    table = Table(title="Sharing indexes, and not sharing them", caption=record.verdict, title_justify="left")
    table.add_column("")
    for side in SIDES:
        table.add_column(side, justify="right", style=STYLES[side])
    table.add_column("not shared / shared", justify="right")
    shared, apart = record.sides[SHARED], record.sides[NOT_SHARED]
    for text, share in (("median", 0.5), ("99%", 0.99)):
        _row(table, f"first answer of a query, {text}", shared.installs, apart.installs, share)
    for text, share in (("median", 0.5), ("99%", 0.99)):
        _row(table, f"latency of an epoch, {text}", shared.latencies, apart.latencies, share)
    _row(table, "work for an epoch, median", shared.work, apart.work, 0.5)
    indexed = [max(side.indexed, default=0) for side in (shared, apart)]
    resident = [max(side.resident, default=0) for side in (shared, apart)]
    for what, peaks in (("indexes", indexed), ("process", resident)):
        table.add_row(f"memory of the {what}, peak", *map(mebibytes, peaks), ratio(*peaks))
    return table


def _row(table: Table, text: str, shared: list[float], apart: list[float], share: float) -> None:
    found = quantile(shared, share), quantile(apart, share)
    table.add_row(text, *map(milliseconds, found), ratio(*found))


def notes(record: Record) -> str:
    """What no query's figure includes: the load, the way through Spark, and Spark's own memory."""
    found = record.sides[SHARED]
    through = f"{milliseconds(quantile(found.through, 0.5))} (99%: {milliseconds(quantile(found.through, 0.99))})"
    return (
        f"Spark loaded and indexed the seven keyed relations in {found.load:.1f} s, before any query; on the other side, each "
        f"query does. From a file of {record.settings.changes:,} lineitems to the durable epoch, through Spark: {through}. "
        f"Spark's own processes took up to {mebibytes(max(found.spark, default=0))}."
    )
