"""`python -m examples.demo`: queries arrive and leave while a graph changes; each is kept up to date twice, over shared
indexes and over its own.

The two sides take turns, one at a time and each first in every other turn, so that neither is measured while the other
works. The schedule is counted in epochs and the random numbers come from a seed: only durations differ between runs.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType

from rich.console import Console

from examples.demo.display import Lines, Screen, loading_note, summary
from examples.demo.picture import draw
from examples.demo.queries import Query, schedule
from examples.demo.record import Record, Settings
from examples.demo.sides import SIDES, Remote, Turn
from tektite.kernels.ready import ensure_compiled

PATIENCE = 1.5
"""How many times the seconds asked for a run may take on a machine that cannot keep up, before it ends early."""


def arguments(words: list[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m examples.demo",
        description="Keeps many queries over one changing graph up to date, over shared indexes and, beside that, over "
        "indexes of their own. Shows how long installing and updating takes and how much memory; writes a picture.",
    )
    add = parser.add_argument
    add("--nodes", type=positive, default=200_000, help="nodes of the graph (default: 200,000)")
    add("--edges", type=positive, default=1_000_000, help="edges of the graph (default: 1,000,000)")
    add("--seconds", type=positive, default=60, help="how long changes stream in (default: 60)")
    add("--rate", type=positive, default=20, help="epochs a second (default: 20)")
    add("--changes", type=positive, default=20, help="edges that come and go in an epoch (default: 20)")
    add("--queries", type=positive, default=36, help="queries that arrive in all (default: 36)")
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

    def __init__(self, options: argparse.Namespace, record: Record, on_event: Callable[[], None]) -> None:
        self.options = options
        self.record = record
        self.on_event = on_event
        self.stopping = False
        # Started while Ctrl-C is ignored, the processes ignore it from their first moment on.
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        self.sides = {side: Remote(side, options.nodes, options.edges, options.seed, options.changes) for side in SIDES}
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

    def both(self, operation: str, query: Query | None = None) -> dict[str, Turn]:
        """An operation on one side, then on the other; who begins alternates."""
        self._turns += 1
        order = SIDES if self._turns % 2 else SIDES[::-1]
        return {side: self.sides[side].do(operation, query) for side in order}

    def stream(self) -> None:
        """The whole run, from an empty graph to the last comparison."""
        record, options = self.record, self.options
        record.state = "two processes start, draw the graph and load it"
        self.on_event()
        for side in self.sides.values():
            side.ask("load")
        turns = {name: side.wait() for name, side in self.sides.items()}
        record.begin(turns)
        self.on_event()
        coming = schedule(options.queries, record.settings.epochs)
        present: list[Query] = []
        for epoch in range(record.settings.epochs):
            if self.stopping or record.elapsed > PATIENCE * options.seconds:
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
            record.updated(self.both("update"))
            self.on_event()
            time.sleep(max(0.0, (epoch + 1) / options.rate - record.elapsed))
        record.state = "comparing the answers of both sides"
        self.on_event()
        for query in present:
            record.answered(query, self.both("answer", query))


def main(words: list[str] | None = None) -> int:
    """Run the demonstration; 0 if both sides gave the same answers."""
    options = arguments(words)
    ensure_compiled()
    console = Console()
    plain = options.plain or not console.is_terminal
    settings = Settings(
        options.nodes, options.edges, options.changes, options.rate, options.seconds * options.rate, options.queries
    )
    record = Record(settings)
    display = (Lines if plain else Screen)(record, console)
    run = Run(options, record, display.event)
    try:
        with display.live():
            run.stream()
    finally:
        run.close()
    console.print(summary(record))
    console.print(loading_note(record.sides), highlight=False)
    if record.epoch < settings.epochs:
        why = "ended by Ctrl-C" if run.stopping else "the machine did not keep up with the stream"
        print(f"{record.epoch:,} of {settings.epochs:,} epochs: {why}.")
    draw(record, options.out)
    print(f"Picture: {options.out}")
    return 1 if record.differing else 0


if __name__ == "__main__":
    sys.exit(main())
