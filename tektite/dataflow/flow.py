"""Dataflow: one installed graph of operators, swept over intervals of epochs.

A sweep takes from every source exactly the updates of the epochs low ≤ e < high, all that are available when it starts,
and runs the agenda until it is empty. It can be suspended between nodes and resumed. Updates from before `low`
count as happening at `low`: that is what makes an installation on compacted history correct from its first answer on.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Protocol

from tektite.dataflow.graph import Outbox, Scope, run_agenda
from tektite.dataflow.journal import Journal, Sweep
from tektite.errors import FaultError, TektiteError
from tektite.trace.times import Frontier

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tektite.dataflow.arrange import Buffer, Reader
    from tektite.trace.trace import Handle, Hold, Trace


class Workers(Protocol):
    """Run the work of nodes on the shards that this process has."""

    def map(self, work: Callable[[int, Outbox], None], shards: int, rows: int) -> list[Outbox]:
        """Run `work` on each of these shards, of `shards` in all; their outboxes, in order. `rows` is how much there is to do,
        for choosing a way.
        """

    def spread(self, tasks: Sequence[Callable[[], None]]) -> None:
        """Run tasks that are large and do not depend on each other."""


class Part(Protocol):
    """A part of a sweep that other processes run: no node of the dataflow runs here until it has ended."""

    def ended(self, flow: Dataflow, deadline: float) -> bool:
        """Wait for its end until the deadline; whether it has come, and the dataflow's turn with it."""

    def apply(self, flow: Dataflow) -> None:
        """Bring a dataflow to the state that the part left it in, or raise what failed."""

    def following(self, flow: Dataflow) -> Part | None:
        """The next part of the dataflow's sweep, if that is not for this process either."""


class Source(Protocol):
    """What a dataflow reads: something that closes epochs. It has answers for the epochs first ≤ e < low."""

    @property
    def name(self) -> str:
        """What errors call it."""

    @property
    def first(self) -> int:
        """The first epoch that it answers for."""

    @property
    def flow(self) -> Dataflow | None:
        """The dataflow that makes it; None for an input."""

    @property
    def low(self) -> int:
        """The first epoch that is not closed."""

    @property
    def closed(self) -> bool:
        """Whether it has ended for good."""

    @property
    def failure(self) -> TektiteError | None:
        """Why it has stopped, if it has."""


def last_closed(source: Source) -> Callable[[], Frontier]:
    """The hold that lets a newcomer be answered at once: the last epoch that the source has closed."""
    return lambda: ((max(source.low - 1, 0),),)


class Dataflow:
    """A graph of operators with the interval of epochs that it has consumed and is consuming."""

    def __init__(self, name: str, workers: Workers, shards: int, effort: str) -> None:
        self.name = name
        self.workers = workers
        self.shards = shards
        self.effort = effort
        self.root = Scope(self)
        self.sources: list[Source] = []
        self.imports: list[Reader] = []
        self.handles: list[Handle] = []
        self.traces: list[Trace] = []
        self.full_buffers: list[Buffer] = []
        """Buffers of its nodes that took in so much that it is worth consolidating them."""
        self.holds: list[Hold] = []
        self.on_swept: list[Callable[[], None]] = []
        self.on_failed: list[Callable[[], None]] = []
        self.away: Part | None = None
        self.journal: Journal | None = None
        self.failure: TektiteError | None = None
        self._at_rest()

    def _at_rest(self) -> None:
        """No sweep runs, and there was none."""
        self.first = 0
        self.low = 0
        self.high = 0
        self.running = False
        self.sweep: Sweep | None = None
        self.closed = False
        self.rounds = 0

    @property
    def flow(self) -> Dataflow:
        """The dataflow itself, as what makes the arrangement that others read."""
        return self

    def read(self, source: Source) -> None:
        """Note that the dataflow depends on `source`."""
        if source not in self.sources:
            self.sources.append(source)

    def settle_start(self) -> None:
        """Choose the as-of of the first sweep: the last epoch that the most advanced source has closed, and none that
        a source has no answer for because it waits for its own first sweep.
        """
        self.first = max((max(source.low - 1, source.first) for source in self.sources), default=0)
        self.low = self.high = self.first

    def available(self, ahead: Mapping[Dataflow | None, int] | None = None) -> int:
        """The epoch up to which every source has been closed. A source that ended for good holds nobody up. Some dataflows
        may be `ahead`, about to be swept up to the epochs given.
        """
        if ahead:
            lows = [(ahead.get(source.flow, source.low), source.closed) for source in self.sources]
            return min([low for low, closed in lows if not closed] or [max(low for low, _ in lows)])
        going = [source.low for source in self.sources if not source.closed]
        return min(going) if going else max((source.low for source in self.sources), default=0)

    def work(self, deadline: float) -> bool:
        """Run, or go on with, sweeps of everything available until the deadline. Whether the dataflow is then current."""
        try:
            while self.failure is None:
                resumed = self.running
                sent = self.away is not None
                if not resumed and not self.begin():
                    break
                if not self._go_on(deadline):
                    return False
                self._end()
                if not resumed:  # the sweep took everything there was
                    break
                if (
                    sent or time.perf_counter() > deadline
                ):  # whoever sent the last sweep away decides on the next one too
                    return self.failure is not None or self.available() <= self.low
        except BaseException as error:
            # Half a node's work may be done: after an interrupt, too, the dataflow cannot go on.
            self.fail(error)
            if not isinstance(error, Exception):
                raise
        return True

    def _go_on(self, deadline: float) -> bool:
        """Do what waits, or wait for those who do it; whether nothing is left to do."""
        while self.away is not None:
            if not self.away.ended(self, deadline):
                return False
            away, self.away = self.away, None
            away.apply(self)
            if not self.running:  # the part could not be run: the sweep has not begun
                return False
            self.away = away.following(self)
        return run_agenda(self.root, deadline)

    def leave(self, away: Part, high: int) -> None:
        """Let others run a sweep up to `high`, or what comes next of the one that has begun."""
        self.away = away
        self.high = high
        self.running = True
        self._note()

    def queued(self) -> int:
        """How many changes of its sources wait for it."""
        return sum([batch.n for reader in self.imports for queue in reader.handle.queues for batch in queue])

    def _note(self) -> None:
        """Take down that a sweep has begun."""
        if self.journal is not None and self.sweep is None:
            self.sweep = Sweep(self.name, self.low, self.high, self.queued())

    def begin(self) -> bool:
        """Start a sweep, if there is anything to sweep."""
        high = self.available()
        for source in self.sources:
            if source.failure is not None:
                raise FaultError(f"it reads {source.name!r}, which failed: {source.failure}", self.name)
        if high <= self.low:
            self.closed = all(source.closed for source in self.sources)
            return False
        self.high = high
        self.running = True
        self._note()
        for reader in self.imports:
            reader.wake()
        return True

    def _end(self) -> None:
        self.running = False
        self.low = self.high
        self.closed = all(source.closed for source in self.sources)
        self.root.rest()
        if self.rounds:
            for trace in self.traces:
                trace.rest()
        if self.sweep is not None and self.journal is not None:
            sweep, self.sweep = self.sweep, None
            self.journal.ended(sweep)
        for callback in self.on_swept:
            callback()

    def fail(self, error: BaseException) -> None:
        """Stop for good, letting go of everything held; the error is what users of the result will see."""
        self.failure = explained(error, self.name)
        self.running = False
        self.drop()
        for callback in self.on_failed:
            callback()

    def drop(self) -> None:
        """Release every handle, every hold and all that waits. May be repeated."""
        self.let_go()
        self.root.clear()

    def let_go(self) -> None:
        """Release every handle and every hold. A dataflow that was being built may have nodes that are not whole."""
        self.away = None
        for handle in self.handles:
            handle.drop()
        self.handles.clear()
        for hold in self.holds:
            hold.drop()
        self.holds.clear()
        self.traces.clear()
        self.full_buffers.clear()

    def empty(self) -> None:
        """Keep nothing but the graph of a dataflow that was dropped, for `begin_anew`."""
        self.on_swept.clear()
        self.on_failed.clear()
        self._at_rest()
        for node in self.root.nodes:
            for reader in node.reads:
                reader.handle.forget()

    def begin_anew(self, name: str) -> None:
        """Begin as another dataflow, with the graph of this one. It was dropped and emptied before, and has no loop."""
        self.name = name
        assert not self.root.nested
        for node in self.root.nodes:
            node.begin()

    def ship(self) -> dict[str, Any]:
        """The attributes of a copy in another process; what else a dataflow has, a copy does without."""
        kept = ("name", "shards", "effort", "first", "low", "high", "running", "rounds", "root")
        return {name: getattr(self, name) for name in kept}


def explained(error: BaseException, name: str) -> TektiteError:
    """What users of a dataflow see of an error in it."""
    if isinstance(error, FaultError):
        return error
    if isinstance(error, TektiteError):
        found: TektiteError = type(error)(f"view {name!r}: {error}")
    else:
        found = FaultError(f"{type(error).__name__}: {error}", name)
    found.__cause__ = error
    return found
