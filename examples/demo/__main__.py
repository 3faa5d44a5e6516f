"""`python -m examples.demo`: TPC-H queries arrive and leave while lineitem streams in; each is kept up to date twice, over
shared indexes that Spark has loaded and over its own.

The two sides take turns, one at a time and each first in every other turn, so that neither is measured while the other
works. The schedule is counted in epochs and the random numbers come from a seed: only durations differ between runs.
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
from benchmarks.tpch.sides import SMALL
from examples.demo.display import Lines, Screen, notes, summary
from examples.demo.picture import draw
from examples.demo.queries import Query, schedule
from examples.demo.record import Record, Settings
from examples.demo.relations import cut
from examples.demo.sides import SIDES, Note, Remote, Turn
from tektite.kernels.ready import ensure_compiled


def arguments(words: list[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m examples.demo",
        description="Loads TPC-H with Spark and keeps its queries up to date while lineitem streams in, over shared indexes "
        "and, beside that, over indexes of their own. Shows how long installing and updating takes and how much memory; "
        "writes a picture.",
    )
    add = parser.add_argument
    add("--scale", type=float, default=0.1, help="TPC-H scale factor (default: 0.1)")
    add("--epochs", type=positive, default=60, help="in how many parts lineitem comes (default: 60)")
    add(
        "--rate", type=positive, default=2, help="epochs that arrive in a second of either side's own time (default: 2)"
    )
    add("--queries", type=positive, default=22, help="how many of the 22 queries arrive (default: 22)")
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
    """One run: the schedule, the two sides, and the record of what they did."""

    def __init__(self, options: argparse.Namespace, record: Record, work: Path, on_event: Callable[[], None]) -> None:
        self.options = options
        self.record = record
        self.on_event = on_event
        self.stopping = False
        # Started while Ctrl-C is ignored, the processes ignore it from their first moment on.
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        self.sides = {side: Remote(side, options.scale, work / "parts", work) for side in SIDES}
        signal.signal(signal.SIGINT, self._interrupt)
        self._before = before
        self._turns = 0

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        """The first Ctrl-C ends the stream between two epochs; the second one ends everything."""
        self.stopping = True
        signal.signal(signal.SIGINT, signal.default_int_handler)

    def close(self) -> None:
        """End the processes."""
        for side in self.sides.values():
            side.close()
        signal.signal(signal.SIGINT, self._before)

    def both(self, operation: str, argument: Query | int | None = None) -> dict[str, Turn]:
        """An operation on one side, then on the other; who begins alternates."""
        self._turns += 1
        order = SIDES if self._turns % 2 else SIDES[::-1]
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
        record.begin(turns)
        self.on_event()
        coming = schedule(options.queries, record.settings.epochs, options.seed)
        present: list[Query] = []
        for epoch in range(record.settings.epochs):
            if self.stopping:
                break
            for query in [q for q in present if q.leaves <= epoch]:
                record.answered(query, self.both("answer", query))
                record.left(query, self.both("drop", query))
                present.remove(query)
                self.on_event()
            while coming and coming[0].arrives <= epoch and not self.stopping:
                query = coming.pop(0)
                record.installed(query, self.both("install", query))
                present.append(query)
                self.on_event()
            record.updated(self.both("update", epoch))
            self.on_event()
        record.state = "comparing the answers of both sides"
        self.on_event()
        for query in present:
            record.answered(query, self.both("answer", query))


def main(words: list[str] | None = None) -> int:
    """Run the demonstration; 0 if both sides gave the same answers."""
    options = arguments(words)
    began = time.monotonic()
    ensure_compiled()
    console = Console()
    plain = options.plain or not console.is_terminal
    with tempfile.TemporaryDirectory(prefix="tektite-demo-") as made:
        work = Path(made)
        print(
            f"TPC-H data at scale factor {options.scale:g}, made once by tpchgen-cli: {folder(options.scale)}",
            flush=True,
        )
        folder(SMALL)
        settings = Settings(
            options.scale, options.rate, options.epochs, cut(options.scale, options.epochs, work / "parts")
        )
        record = Record(settings)
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
        print(f"{record.epoch:,} of {settings.epochs:,} epochs: ended by Ctrl-C.")
    draw(record, options.out)
    print(f"Picture: {options.out}, after {time.monotonic() - began:.0f} s")
    print("Next: `tektite serve` offers an engine to everybody's psql, drivers and BI tools; see docs/how-to/server.md")
    return 1 if record.differing else 0


if __name__ == "__main__":
    sys.exit(main())
