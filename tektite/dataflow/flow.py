"""Dataflow: one installed graph of operators, and its sweeps over intervals of epochs.

A sweep takes from every source exactly the updates of the epochs low ≤ e < high: all epochs that the sources have closed when it
starts. It runs the agenda until it is empty, and can be suspended between nodes. Updates from before `low` count as updates at
`low`, so a query installed on compacted history is correct from its first answer on.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Protocol

from tektite.dataflow.away import Absence, SweepAbandoned
from tektite.dataflow.failures import UNEXPLAINED, KeepsTooMuch, explained, interrupt_of
from tektite.dataflow.graph import LinearStep, Outbox, Scope, run_agenda
from tektite.dataflow.interrupts import (
    InterruptibleCall,
    interruptible,
    keep_interrupt,
    sweep_block,
)
from tektite.dataflow.journal import Journal, Sweep
from tektite.errors import FaultError, TektiteError
from tektite.kernels.ready import calls
from tektite.trace.batch_memory import in_units
from tektite.trace.times import Frontier
from tektite.trace.trace import Hold
from tektite.values.shared_values import shared

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tektite.dataflow.arrange import ArrangementReader, Buffer
    from tektite.dataflow.errors import ErrorSource
    from tektite.dataflow.node import Node
    from tektite.trace.batch_memory import BatchMemory
    from tektite.trace.trace import Handle, Trace
    from tektite.values.words import Words


_sweep: Any = calls().sweep


class Workers(Protocol):
    """Runs the work of nodes on the shards of this process."""

    @property
    def has_all_shards(self) -> bool:
        """Whether all shards are in this process, so that they may do each other's work."""

    def map(self, work: Callable[[int, Outbox], None], shards: int, rows: int) -> list[Outbox]:
        """Run `work` on each of this process's shards, of `shards` in all. Returns their outboxes, in order. `rows`
        estimates the work, so that little of it need not be spread.
        """

    def spread(self, tasks: Sequence[Callable[[], None]]) -> None:
        """Run large tasks that do not depend on each other."""


class SweepPart(Protocol):
    """A part of a sweep that other processes run. Until it has ended, no node of the dataflow runs here."""

    def ended(self, flow: Dataflow, deadline: float) -> bool:
        """Wait until the deadline. Returns whether the part has ended and `apply` may be called for this dataflow."""

    def apply(self, flow: Dataflow) -> None:
        """Bring a dataflow to the state that the part left it in, or raise its error."""

    def next_part(self, flow: Dataflow) -> SweepPart | None:
        """The next part of the dataflow's sweep, if other processes run that as well."""


class Dependent(Protocol):
    """Somebody who is told when a dataflow fails."""

    def flow_failed(self) -> None:
        """The dataflow has failed. May be called again."""


class EpochSource(Protocol):
    """An input or dataflow that another dataflow reads. It closes epochs and has answers for the epochs first ≤ e < low."""

    @property
    def name(self) -> str:
        """Its name in errors."""

    @property
    def first(self) -> int:
        """The first epoch that it has an answer for."""

    @property
    def flow(self) -> Dataflow | None:
        """The dataflow that computes it; None for an input."""

    @property
    def low(self) -> int:
        """The first epoch that is not closed."""

    @property
    def closed(self) -> bool:
        """Whether it will never change again."""

    @property
    def failure(self) -> TektiteError | None:
        """The error that stopped it, if one did."""


class LastClosed:
    """The frontier of a hold on the last epoch that the source has closed, so that a new query is answered at once; or on an
    `earliest` one, while somebody reads that.
    """

    __slots__ = ("_earliest", "_source")

    def __init__(self, source: EpochSource, earliest: Callable[[], int | None] = lambda: None) -> None:
        self._source = source
        self._earliest = earliest

    @property
    def is_pinned(self) -> bool:
        """Whether somebody reads an `earliest` epoch."""
        return self._earliest() is not None

    def __call__(self) -> Frontier:
        low, first = max(self._source.low - 1, 0), self._earliest()
        return ((low if first is None or low < first else max(first, 0),),)


if TYPE_CHECKING:

    class FlowRecord:
        """The attributes of a dataflow, see native/traces.h; and what each epoch asks of it, see native/agenda.c."""

        @property
        def low(self) -> int:
            """The first epoch that it has not answered. One that is asleep has nothing to do, so its answers hold as far as its
            sources are closed: no sweep is needed for that.
            """

        def wake(self) -> None:
            """Note that there is something to do."""

        def rest(self) -> bool:
            """Fall asleep if there is nothing to do. Returns whether it sleeps. A failed one does once `fail` has run whole."""

else:
    FlowRecord = calls().FlowRecord


class Dataflow(FlowRecord):
    """A graph of operators. It has consumed the epochs before `low`; while it is running, it consumes those before `high`."""

    # There may be ten thousand. A dict of so many attributes would be a tenth of a small view, and lists take twice what tuples
    # do.
    __slots__ = ("__weakref__",)

    def __init__(
        self, name: str, workers: Workers, shards: int, effort: str, memory: BatchMemory | None = None
    ) -> None:
        self.name = name
        self.workers = workers
        self.shards = shards
        self.effort = effort
        self.memory = memory
        """Where its large batches lie, if memory is limited. A copy in another process has none."""
        self.limit: int | None = None
        """The bytes that it may keep. Beyond them it fails."""
        self.purpose: object | None = None
        """What nodes are being made for: an operator of a plan, which is at hand only while the graph is made."""
        self._purposes: tuple[object, ...] = ()
        """Nodes and steps, each with what it was made for behind it: in words, once the graph is made."""
        self.root = Scope(self)
        self.sources: tuple[EpochSource, ...] = ()
        self.imports: tuple[ArrangementReader, ...] = ()
        self.handles: tuple[Handle, ...] = ()
        self.traces: tuple[Trace, ...] = ()
        self.full_buffers: tuple[Buffer, ...] = ()
        """Buffers of its nodes that have become worth consolidating."""
        self.holds: tuple[Hold, ...] = ()
        self.error_holds: tuple[Hold, ...] = ()
        """Holds on the errors that its results depend on."""
        self.on_swept: tuple[Callable[[], None], ...] = ()
        self.on_failed: tuple[Dependent, ...] = ()
        """Who is told when it fails: its views, in their order, and others."""
        self.part: SweepPart | None = None
        self.journal: Journal | None = None
        self.failure: TektiteError | None = None
        self.outlets: tuple[Handle, ...] = ()
        """Handles on its result that are emptied after each sweep."""
        self.results: tuple[Trace, ...] = ()
        """The traces of what it computes for others."""
        self.result_errors: tuple[tuple[ErrorSource, ...], ...] = ()
        """For each result, the errors that it depends on."""
        self.former_errors: tuple[tuple[ErrorSource, ...], ...] = ()
        """For each result, the errors in epochs that another dataflow has answered; nothing if there was none."""
        self.constants: tuple[Words, ...] = ()
        """Words of constant texts, which stay in the dictionary as long as the graph is there."""
        self.on_wake: Callable[[Dataflow], None] | None = None
        """Called when it gets something to do."""
        self.unlocked: Callable[[Absence, Callable[[], None]], None] | None = None
        """Calls a function without the engine's lock. None where there is no engine."""
        self.is_kept_here = False
        """Whether it never goes away, because an epoch that is prepared cannot wait for it."""
        self._at_rest()

    def _at_rest(self) -> None:
        """Reset to the state before the first sweep."""
        self.first = 0
        self.reached = 0
        """`low` when it was last awake. Of a dataflow that runs it is `low`, and costs no call."""
        self.high = 0
        self.running = False
        self.away: Absence | None = None
        """The last absence of the present sweep."""
        self.claim: Absence | None = None
        """Of the thread that finishes it, while it does so."""
        self.awake = True
        """Whether it may have something to do: its first sweep, or changes of its sources."""
        self.swept = False
        self.sweep: Sweep | None = None
        self.rounds = 0

    def note_purpose(self, made: Node | LinearStep, purpose: object) -> None:
        """Say what a node or a step was made for."""
        self._purposes += (made, purpose)

    def name_purposes(self, words: Callable[[Any], str]) -> None:
        """Keep in words what nodes and steps were made for. Called when the graph is made: the parts of its plan take several
        times as much as all that a small view has.
        """
        made, purposes = self._purposes[::2], self._purposes[1::2]
        known = {id(purpose): purpose for purpose in purposes}
        said = {number: shared(words(purpose)) for number, purpose in known.items()}
        self._purposes = tuple(
            [each for pair in zip(made, purposes, strict=True) for each in (pair[0], said[id(pair[1])])]
        )

    def purpose_of(self, made: Node | LinearStep) -> str | None:
        """The purpose for which a node or a step was made, in words, if it was recorded."""
        places = range(0, len(self._purposes), 2)
        found = next((self._purposes[place + 1] for place in places if self._purposes[place] is made), None)
        return found if isinstance(found, str) else None

    @property
    def closed(self) -> bool:
        """Whether its result can never change again."""
        return self._progress({})[1]

    def _progress(self, known: dict[Dataflow, tuple[int, bool]]) -> tuple[int, bool]:
        """The first epoch that it has not answered, and whether its result can never change again. `known` holds what this walk
        has found: many ways lead from a dataflow to a source, and each dataflow is asked once.
        """
        if self.awake:
            return self.reached, False
        found = known.get(self)
        if found is None:
            low, closed = self._sources_progress(known)
            if low > self.reached:
                self.reached = low
            self.high = self.reached
            found = known[self] = self.reached, closed
        return found

    def _sources_progress(self, known: dict[Dataflow, tuple[int, bool]]) -> tuple[int, bool]:
        """The epoch up to which all sources have been closed, and whether all of them ended."""
        if len(self.sources) == 1 and (only := self.sources[0]).flow is None:
            return only.low, only.closed
        going: int | None = None
        ended = 0
        for source in self.sources:
            flow = source.flow
            low, closed = (source.low, source.closed) if flow is None else flow._progress(known)
            if closed:
                ended = max(ended, low)
            else:
                going = low if going is None else min(going, low)
        return (ended, True) if going is None else (going, False)

    def add_outlet(self, handle: Handle) -> None:
        """Take turns while a handle on its result has something: whoever empties it is told after each sweep. The result may be
        the arrangement of a source, and then nothing else wakes this dataflow.
        """
        handle.wake = self
        self.outlets += (handle,)
        self.wake()

    @property
    def flow(self) -> Dataflow:
        """The dataflow itself: as a source, it is computed by itself."""
        return self

    def read(self, source: EpochSource) -> None:
        """Record that the dataflow depends on `source`."""
        if source not in self.sources:
            self.sources += (source,)

    def settle_start(self, earliest: int | None = None) -> None:
        """Choose the first epoch to answer: the last one that the most advanced source has closed, or an `earliest` one that all
        of them still distinguish; but none before the first answer of a source.
        """
        known: dict[Dataflow, int] = {}
        latest, first = None, 0
        for source in self.sources:
            reach = (source.low if source.flow is None else _reach(source, known)) - 1
            latest = reach if latest is None or reach > latest else latest
            first = max(first, source.first)
        start = 0 if latest is None else latest
        self.first = max(start if earliest is None else min(start, earliest), first)
        self.reached = self.high = self.first

    def available(self, ahead: Mapping[Dataflow | None, int] | None = None) -> int:
        """The epoch up to which all sources have been closed. A source that will never change again does not count. `ahead` gives
        the epochs up to which some dataflows are about to be swept.
        """
        if ahead:
            lows = [(ahead.get(source.flow, source.low), source.closed) for source in self.sources]
            return min([low for low, closed in lows if not closed] or [max(low for low, _ in lows)])
        return self._sources_progress({})[0]

    def work(self, deadline: float) -> bool:
        """Run or resume sweeps of everything available until the deadline. Returns whether the dataflow is current.

        One that has answered is continued by others after an interrupt of this call. One that has not may be given up, except
        for a signal.
        """
        if not self.awake:
            self._progress({})
        block, call = sweep_block(self.reached != self.first)
        with block:
            return self._work(deadline, call)

    def _work(self, deadline: float, call: InterruptibleCall | None) -> bool:
        try:
            if self.failure is not None and self.running:
                self.fail(self.failure)
            if self.failure is None:
                whole: bool | None = _sweep(self, deadline, time.perf_counter, call, Sweep)
                if whole is False:
                    return False
                if whole and self.away is None:  # it took everything there was
                    return True
            while self.failure is None:
                resumed = self.running
                sent = self.part is not None
                if not resumed and not self.begin():
                    break
                if self.part is not None and not self._wait(deadline):
                    return False
                if not run_agenda(self.root, deadline):
                    return False
                self._end()
                if not resumed and self.away is None:  # the sweep took everything there was
                    break
                # The executor that sent the last sweep away decides on the next one too.
                if sent or time.perf_counter() > deadline:
                    return self.failure is not None or self.available() <= self.low
        except SweepAbandoned:
            self.root.clear()
            return True
        except BaseException as error:
            # A node may have done half of its work, so the dataflow cannot continue, not even after an interrupt. That is noted
            # before anything is called: for a call there may be neither memory nor stack.
            if self.failure is None:
                self.failure = UNEXPLAINED
            self.running = True
            self.fail(error)
            interrupt = interrupt_of(error)
            if interrupt is not None:
                raise interrupt from None
        return True

    def _wait(self, deadline: float) -> bool:
        """Wait for the process that runs a part of the sweep. Returns whether the agenda can be run here."""
        while self.part is not None:
            if not self._has_ended(self.part, deadline):
                return False
            part, self.part = self.part, None
            part.apply(self)
            if not self.running:  # the part could not be run: the sweep has not begun
                return False
            self.part = part.next_part(self)
        return True

    def _has_ended(self, part: SweepPart, deadline: float) -> bool:
        """Whether a part has ended. An interrupt ends the wait for it, and the next call waits again."""
        found = []
        try:
            interruptible(lambda: found.append(part.ended(self, deadline)))
        except BaseException as error:
            if interrupt_of(error) is None or not keep_interrupt(error):
                raise
        return any(found)

    @property
    def is_away(self) -> bool:
        """Whether a thread runs a part of its sweep without the engine's lock."""
        return self.away is not None and not self.away.is_over

    def call_out(self, function: Callable[[], None]) -> None:
        """Call a function that changes nothing of the dataflow, while others use the engine."""
        if self.unlocked is None or self.is_kept_here:
            function()
            return
        away = self.away = Absence(self.name)
        try:
            with away.held:
                self.unlocked(away, function)
        except Exception:
            if self.away is not away:
                raise SweepAbandoned from None
            raise
        if self.away is not away:
            raise SweepAbandoned

    def call_function(self, function: Callable[[], None]) -> bool:
        """Call a function of a user's that changes nothing, while others use the engine. Returns whether it returned. An
        interrupt may end it. That is raised when the node that calls has put back what it took.
        """

        def call() -> None:
            interruptible(function)

        try:
            self.call_out(call)
        except BaseException as error:
            is_gone = self.away is None and self.unlocked is not None
            if isinstance(error, Exception) or is_gone or not keep_interrupt(error):
                raise
            return False
        return True

    def run_elsewhere(self, part: SweepPart, high: int) -> None:
        """Let other processes run a sweep up to `high`, or the next part of the present one."""
        self.part = part
        self.high = high
        self.running = True
        self._note()

    def queued(self) -> int:
        """The number of changes of its sources that it has not consumed."""
        rows = 0
        for reader in self.imports:
            rows += reader.handle.queued
        return rows

    def _note(self) -> None:
        """Start a record of the sweep for the journal."""
        if self.journal is not None and self.sweep is None:
            self.sweep = Sweep(self.name, self.reached, self.high - 1, self.queued())

    def begin(self) -> bool:
        """Start a sweep if epochs are available. Returns whether one was started."""
        high = self._sources_progress({})[0]
        for source in self.sources:
            if source.failure is not None:
                raise FaultError(f"it reads {source.name!r}, which failed: {source.failure}", self.name)
        if high <= self.reached:
            return False
        self.high = high
        self.running = True
        self.away = None
        self._note()
        for reader in self.imports:
            reader.wake()
        return True

    @property
    def bytes(self) -> int:
        """The size of its state: its own traces, in memory or in files, and rows that wait."""
        kept = sum([trace.bytes for trace in self.traces])
        nodes = [node for scope in self.root.scopes() for node in scope.nodes]
        return kept + sum([buffer.bytes for node in nodes for buffer in node.buffers])

    def check_limit(self) -> None:
        """Fail if it keeps more than it may."""
        if self.limit is not None and (size := self.bytes) > self.limit:
            raise KeepsTooMuch(
                f"it keeps {in_units(size)}, and its limit is {in_units(self.limit)}: raise the limit, or keep fewer rows "
                "or columns",
                self.name,
            )

    def _end(self) -> None:
        if self.limit is not None:
            self.check_limit()
        self.running = False
        self.reached = self.high
        self.swept = True
        if self.rounds:
            self._end_rounds()
        if self.sweep is not None and self.journal is not None:
            sweep, self.sweep = self.sweep, None
            self.journal.ended(sweep)
        for callback in self.on_swept:
            callback()

    def _end_rounds(self) -> None:
        """Return loops to their first round, and let their traces rest."""
        self.root.rest()
        for trace in self.traces:
            if trace.spines is not None:
                for spine in trace.spines:
                    if spine.fresh:
                        spine.rest()

    def fail(self, error: BaseException) -> None:
        """Stop forever and release everything. Users of the result get the error. May be repeated: it runs until that is done."""
        self.failure = explained(error, self.name)
        self.drop()
        for dependent in self.on_failed:
            dependent.flow_failed()
        self.running = False

    def drop(self) -> None:
        """Release every handle, every hold and all that waits. May be repeated. If a thread is away, what waits is its until it
        comes back.
        """
        is_away = self.is_away
        self.let_go()
        if not is_away:
            self.root.clear()

    def let_go(self) -> None:
        """Release every handle and every hold. A dataflow that was being built may have nodes that are not whole."""
        self.part = self.away = None
        for handle in self.handles:
            handle.drop()
        for hold in (*self.holds, *self.error_holds):
            hold.drop()
        self.handles = self.holds = self.error_holds = self.traces = self.outlets = self.full_buffers = ()

    def empty(self) -> None:
        """Drop everything but the graph of a dropped dataflow, for `begin_anew`."""
        self.on_swept = self.on_failed = ()
        self._at_rest()
        for node in self.root.nodes:
            for reader in node.reads:
                reader.handle.forget()

    def begin_anew(self, name: str) -> None:
        """Start as another dataflow with the same graph. Requires that it was dropped and emptied, and has no loop."""
        self.name = name
        for member in self.root.body:
            assert not isinstance(member, Scope)
            member.begin()
        if self.error_holds or any(self.result_errors):
            self.hold_errors()

    def hold_errors(self) -> None:
        """Keep the history of all errors that its results depend on, its own and others', as long as that of the results."""
        nodes = dict.fromkeys([source.node for sources in self.result_errors for source in sources])
        before, self.error_holds = self.error_holds, tuple([Hold(node.trace, self._since) for node in nodes])
        for hold in before:
            hold.drop()

    def _since(self) -> Frontier:
        epochs = [time[0] for trace in self.results for time in trace.since()]
        return ((min(epochs, default=max(self.low - 1, 0)),),)

    def ship(self) -> dict[str, Any]:
        """The attributes of a copy in another process. A copy does not need the others."""
        kept = ("name", "shards", "effort", "first", "reached", "high", "running", "rounds", "root")
        return {name: getattr(self, name) for name in kept} | {"journal": None, "unlocked": None}


def _reach(source: EpochSource, known: dict[Dataflow, int]) -> int:
    """The first epoch that a source will not have answered after its first sweep, if that is to come. `known` holds what this
    walk has found: many ways lead from a dataflow to a source, and each dataflow is asked once.
    """
    flow = source.flow
    if flow is None or flow.swept:
        return source.low
    found = known.get(flow)
    if found is None:
        lows = [_reach(other, known) for other in flow.sources if not other.closed]
        found = known[flow] = max(source.low, min(lows, default=source.low))
    return found
