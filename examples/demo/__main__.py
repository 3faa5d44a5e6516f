"""`python -m examples.demo`: a hundred and ten standing TPC-H queries, which arrive and leave while lineitem streams in through
Spark; once over shared indexes, once each over its own, and computed anew by Spark SQL.

The sides take turns, one at a time, so that none is measured while another works. The schedule is counted in changes and the
random numbers come from a seed: only durations differ between runs.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType

from rich.console import Console

from benchmarks.tpch.data import folder
from benchmarks.tpch.sides import SHARED, SMALL
from examples.demo.display import Lines, Screen, about, notes, summary
from examples.demo.picture import draw, verdict
from examples.demo.queries import Panel, arrivals, steps
from examples.demo.record import Record, Settings
from examples.demo.relations import cut
from examples.demo.sides import ENGINES, Argument, Note, Remote, Turn
from tektite.kernels.ready import ensure_compiled

NEXT = """
Your turn. A server for everybody's psql, drivers, web pages and BI tools, with a console:

    .venv/bin/tektite serve --storage shop.tektite
    psql 'host=127.0.0.1 port=5433 user=me dbname=tektite'        # or open http://127.0.0.1:5434/ in a browser

docs/how-to/server.md says more; docs/first-query.md begins with Python.
"""
COMPUTED = (1, 5, 22)
"""The numbers of queries at which Spark SQL computes all answers anew; and it does at the end."""
WARM = 22
"""From so many queries on, what is loaded and compiled once is loaded before anything is measured."""
CHURN = 5
"""From so many queries on, one leaves and another arrives between two changes."""


def arguments(words: list[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m examples.demo",
        description="Loads TPC-H with Spark and keeps more and more queries up to date while lineitem streams in: over shared "
        "indexes, each over indexes of its own, and by Spark SQL, which computes the answers anew. Shows how long a first answer "
        "and a change take and how much memory; writes a picture.",
    )
    add = parser.add_argument
    add("--scale", type=float, default=0.05, help="TPC-H scale factor (default: 0.05)")
    add("--queries", type=positive, default=110, help="how many queries there are in the end (default: 110)")
    add("--changes", type=positive, default=1000, help="lineitems that each change brings (default: 1000)")
    add("--epochs", type=positive, default=6, help="changes at each number of queries (default: 6)")
    add("--seed", type=int, default=1, help="where the random numbers start (default: 1)")
    add("--plain", action="store_true", help="print lines instead of a live screen, as without a terminal")
    add("--out", type=Path, default=Path("out/demo.png"), help="where the picture goes (default: out/demo.png)")
    return parser.parse_args(words)


def positive(text: str) -> int:
    """A positive number, for argparse."""
    number = int(text.replace(",", "").replace("_", ""))
    if number < 1:
        raise ValueError
    return number


class Run:
    """One run: the schedule, the sides, and the record of what they did."""

    def __init__(self, options: argparse.Namespace, record: Record, work: Path, on_event: Callable[[], None]) -> None:
        self.options = options
        self.record = record
        self.on_event = on_event
        self.stopping = False
        # Started while Ctrl-C is ignored, the processes ignore it from their first moment on.
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        is_warm = options.queries >= WARM
        self.sides = {
            side: Remote(side, options.scale, work / "parts", work, options.changes, is_warm) for side in ENGINES
        }
        signal.signal(signal.SIGINT, self._interrupt)
        self._before = before
        self._turns = 0
        self._coming = arrivals(options.scale, options.seed)
        self._present: list[Panel] = []

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        """The first Ctrl-C ends the stream between two changes; the second one ends everything."""
        self.stopping = True
        signal.signal(signal.SIGINT, signal.default_int_handler)

    def close(self) -> None:
        """End the processes."""
        for side in self.sides.values():
            side.close()
        signal.signal(signal.SIGINT, self._before)

    def both(self, operation: str, argument: Argument = None) -> dict[str, Turn]:
        """An operation on one engine, then on the other; who begins alternates."""
        self._turns += 1
        order = ENGINES if self._turns % 2 else ENGINES[::-1]
        return {side: self.sides[side].do(operation, argument) for side in order}

    def note(self, note: Note) -> None:
        """A side says what it does."""
        self.record.note(note)
        self.on_event()

    def stream(self) -> None:
        """The whole run, from empty engines to the last comparison."""
        record, options = self.record, self.options
        self.note(Note("two processes start and load kernels"))
        turns = {}
        for name, side in self.sides.items():  # one behind the other: the load's seconds are shown
            side.ask("load")
            turns[name] = side.wait(self.note)
        record.loaded(turns)
        self.on_event()
        for queries in steps(options.queries):
            record.begin(queries)
            while len(self._present) < queries and not self.stopping:
                self._arrive()
            for epoch in range(options.epochs):
                if self.stopping:
                    break
                if epoch and queries >= CHURN:
                    self._leave()
                    self._arrive()
                record.updated(self.both("update", record.epoch))
                self.on_event()
            if self.stopping or queries in COMPUTED or queries == options.queries:
                self._compare()
            if self.stopping:
                break

    def _arrive(self) -> None:
        panel = next(self._coming)
        self.record.installed(panel, self.both("install", panel))
        self._present.append(panel)
        self.on_event()

    def _leave(self) -> None:
        panel = self._present.pop(0)
        self.record.left(panel, self.both("drop", panel))
        self.on_event()

    def _compare(self) -> None:
        """Compute all answers anew, and compare those of the three sides."""
        panels = tuple(self._present)
        self.note(Note(f"Spark SQL computes {len(panels)} answers anew"))
        computed = self.sides[SHARED].do("recompute", panels)
        self.record.recomputed(panels, computed, self.both("answer", panels))
        self.on_event()


def main(words: list[str] | None = None) -> int:
    """Run the demonstration; 0 if all sides gave the same answers."""
    options = arguments(words)
    began = time.monotonic()
    ensure_compiled()
    console = Console()
    plain = options.plain or not console.is_terminal
    if not console.is_terminal:
        console = Console(width=110)
    with tempfile.TemporaryDirectory(prefix="tektite-demo-") as made:
        work = Path(made)
        print(f"TPC-H data, made once by tpchgen-cli: {folder(options.scale)}", flush=True)
        folder(SMALL)
        epochs = len(steps(options.queries)) * options.epochs
        history = cut(options.scale, epochs, options.changes, work / "parts")
        record = Record(Settings(options.scale, options.queries, epochs, options.changes, history))
        print(about(record), flush=True)
        display = (Lines if plain else Screen)(record, console)
        run = Run(options, record, work, display.event)
        try:
            with display.live():
                run.stream()
        finally:
            run.close()
    console.print(summary(record))
    console.print(notes(record), highlight=False)
    if run.stopping:
        print(f"{record.epoch:,} of {epochs:,} changes: ended by Ctrl-C.")
    draw(record, options.out)
    print(f"\n{verdict(record)}.")
    print(f"Picture: {options.out}, after {time.monotonic() - began:.0f} s")
    print(NEXT)
    return 1 if record.differing else 0


if __name__ == "__main__":
    sys.exit(main())
