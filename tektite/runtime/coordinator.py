"""The coordinator decides which dataflow runs next, and for how long.

Dataflows run one by one, sources before their readers. Each gets a turn of bounded length. A dataflow that does not finish
continues in its next turn; the others do not wait for it. Its handles keep the history that it still needs.

A dataflow that is away (`tektite.dataflow.away`) gets no turn: the thread that runs it goes on with it. Others may give turns
meanwhile, so that between two turns, and inside a turn that is away, anything may have changed.
"""

from __future__ import annotations

import bisect
import itertools
import math
import threading
import time
from collections.abc import Callable
from typing import Any

from tektite.blocks import taken_times
from tektite.dataflow.away import LONG, Absence
from tektite.dataflow.flow import Dataflow
from tektite.dataflow.interrupts import is_interrupted
from tektite.dataflow.journal import Journal
from tektite.runtime.executor import Executor

SLICE = 0.01
"""Seconds of a turn after which others may use the engine, if they wait for it."""
PAUSE = 1e-4
"""Seconds in which a thread that waits for a lock can take it."""


class Turns(threading.local):
    """A lock of each thread. A thread holds its own while it gives a turn or calls callbacks, so that an interrupt cannot leave
    it there. It keeps nobody out.
    """

    def __init__(self) -> None:
        self.held: Any = threading.RLock()


class Coordinator:
    """All dataflows of an engine, sources before readers. An epoch costs what the dataflows that it touches cost: the others are
    asleep.
    """

    def __init__(
        self,
        turn: float,
        executor: Executor,
        without_lock: Callable[[Callable[[], None]], None] = lambda function: function(),
    ) -> None:
        """`without_lock` calls a function while others may use the engine."""
        self.turn = turn
        self.executor = executor
        self.flows: dict[Dataflow, int] = {}
        """All dataflows, each with a number that is larger than those of its sources."""
        self.awake: dict[Dataflow, None] = {}
        """Those that may have something to do."""
        self.turns = Turns()
        """Who gives a turn."""
        self._without_lock = without_lock
        self._away: dict[Absence, None] = {}
        """Absences. One that is over may be left behind by an interrupt."""
        self.on_left: Callable[[], object] | None = None
        """Called when somebody has left a sweep for others to finish; None if there is nobody else to do that."""
        self._callbacks = self._wake, self._unlocked
        """What dataflows call: the same objects for all of them, of which there may be ten thousand."""
        self._runs = 0
        """How often `run` has begun to give turns."""
        self._woken: list[Dataflow] = []
        """Those that woke up since the last one had its turn."""
        self.journal = Journal(executor.why)
        """Records of the last sweeps."""
        self._numbers = itertools.count()

    @property
    def working(self) -> bool:
        """Whether a dataflow of the calling thread has a turn, or a callback is called."""
        return bool(self.turns.held._is_owned())

    def add(self, flow: Dataflow) -> None:
        """A new dataflow; what it reads has been added before. May be repeated."""
        flow.journal = self.journal
        flow.on_wake, flow.unlocked = self._callbacks
        if flow not in self.flows:
            self.flows[flow] = next(self._numbers)
        self.awake[flow] = None

    def _unlocked(self, away: Absence, function: Callable[[], None]) -> None:
        """Call a function without the engine's lock, unless the turn is given inside another one, or inside a callback: who runs
        that relies on nothing having changed.
        """
        if taken_times(self.turns.held) > 1:
            function()
            return
        self._away[away] = None
        try:
            self._without_lock(function)
        finally:
            self._away.pop(away, None)

    def absence(self, flow: Dataflow | None = None) -> Absence | None:
        """An absence of a dataflow or of something that it reads, or else of any; None if none is away."""
        found = list(self._away) if flow is None else [other.away for other in self._upstream(flow)]
        return next((away for away in found if away is not None and not away.is_over), None)

    def absences_here(self) -> list[Absence]:
        """The absences of the calling thread: it is in a function that a sweep calls. A dataflow that was dropped has none."""
        return [flow.away for flow in self.flows if flow.away is not None and flow.away.is_mine]

    def _wake(self, flow: Dataflow) -> None:
        if flow not in self.awake:
            self.awake[flow] = None
            self._woken.append(flow)

    def _wake_readers(self) -> None:
        """Let dataflows that read one which has failed fail in their turn."""
        for flow in self.flows:
            if fails(flow):
                flow.wake()

    def before_drop(self, flow: Dataflow) -> None:
        """Count what the operators of a dataflow keep, if somebody wants to know, before any of it is let go."""
        if self.journal.work is not None:
            self.journal.work.before_drop(flow)

    def remove(self, flow: Dataflow) -> None:
        """Drop a dataflow and everything it holds. May be repeated."""
        flow.drop()
        flow.on_wake = None
        self.flows.pop(flow, None)
        self.awake.pop(flow, None)

    def replace(self, old: Dataflow, new: Dataflow) -> None:
        """Let a dataflow take the place of another one, whose readers read it from here on: they get their turns after it. No
        dataflow has a turn. May be repeated.
        """
        later: dict[Dataflow, int] = {}
        for flow in self.flows:
            if flow not in (old, new) and any([source.flow is new or source.flow in later for source in flow.sources]):
                later[flow] = next(self._numbers)
        self.flows = {flow: number for flow, number in self.flows.items() if flow not in later} | later
        self.remove(old)

    def claim(self, flow: Dataflow, by: Absence) -> None:
        """Note that a thread finishes a dataflow and what that reads, and gives it turns until it leaves the block of `by`."""
        for needed in self._upstream(flow):
            if needed.awake:
                needed.claim = by

    def keep_here(self, flow: Dataflow) -> None:
        """Let a dataflow, and what it reads, never be away."""
        for needed in self._upstream(flow):
            needed.is_kept_here = True

    def unfinished(self) -> list[Dataflow]:
        """The dataflows that are behind, sources before their readers."""
        return [flow for flow in self.flows if flow.awake and flow.failure is None and not self._are_current([flow])]

    def _is_left(self, flow: Dataflow) -> bool:
        """Whether a writer need not work on a dataflow, because another thread finishes it or goes on with what is large."""
        claim = flow.claim
        if claim is not None and not claim.is_mine and not claim.is_over:
            claim.is_awaited = True
            return True
        return self.on_left is not None and (flow.running or flow.queued() >= LONG)

    def run(self, is_writer: bool = False) -> bool:
        """Give every dataflow that has something to do one turn. Returns whether all of them are current. A writer leaves alone
        what others finish.
        """
        if self.executor.sends:
            # Another process may sweep a dataflow before the changes of its sources are here.
            return self._run_all()
        current = True
        waiting, place, begun = self._awake_behind(-1), 0, self._runs
        while place < len(waiting):
            if is_interrupted():  # whoever calls next goes on
                return False
            number, flow = waiting[place]
            place += 1
            if flow not in self.flows:  # a callback, or another thread, may install or drop views
                continue
            may_be_left = is_writer and (flow.claim is not None or self.on_left is not None)
            if (flow.away is not None and flow.is_away) or (may_be_left and self._is_left(flow)):
                current = False
                continue
            if not self._work(flow, time.perf_counter() + self.turn):
                current = False
            if begun != self._runs:  # others have given turns, and know what woke up
                waiting, place, begun = self._awake_behind(number), 0, self._runs
            while self._woken:  # readers that have something to do
                other = self._woken.pop()
                if self.flows.get(other, -1) > number:
                    bisect.insort(waiting, (self.flows[other], other), lo=place, key=_number)
        if not current and self.on_left is not None:
            self.on_left()
        return current

    def _awake_behind(self, number: int) -> list[tuple[int, Dataflow]]:
        """The dataflows behind a number that may have something to do, in order."""
        self._runs += 1
        self._woken.clear()
        numbers, found = self.flows, []
        for flow in self.awake:
            if numbers[flow] > number:
                found.append((numbers[flow], flow))
        if len(found) > 1:
            found.sort(key=_number)
        return found

    def _run_all(self) -> bool:
        """Give every dataflow a turn. Returns whether all of them are current."""
        current = True
        flows = list(self.flows)
        self._begin(flows)
        for flow in flows:
            if flow in self.flows and (
                flow.is_away or not self._work(flow, time.perf_counter() + self.turn)
            ):  # fmt: skip
                current = False
        return current

    def _begin(self, flows: list[Dataflow]) -> None:
        """Let the executor choose what other processes run."""
        self.executor.begin([flow for flow in flows if not flow.is_away] if self._away else flows)

    def _work(self, flow: Dataflow, deadline: float) -> bool:
        """Give a dataflow a turn. Returns whether it is current. Others may use the engine now and then."""
        if self.executor.sends or deadline == math.inf:
            return self._work_until(flow, deadline)
        while True:
            until = time.perf_counter() + SLICE
            if until >= deadline:
                return self._work_until(flow, deadline)
            if self._work_until(flow, until):
                return True
            if is_interrupted() or self.working:
                return False
            self._without_lock(_pause)
            if flow not in self.flows or flow.is_away:
                return False

    def _work_until(self, flow: Dataflow, deadline: float) -> bool:
        """Let a dataflow work until a time. Returns whether it is current."""
        try:
            with self.turns.held:
                current = flow.work(deadline)
        finally:
            if flow.failure is not None:  # in each of its last turns: it sleeps only when this was done
                self._wake_readers()
        if flow.rest():
            self.awake.pop(flow, None)
        return current

    def start(self, flow: Dataflow) -> None:
        """Give a new dataflow and what it reads a turn, which they share: many new indexes hold nobody up for long. Where
        somebody goes on with what is left, the turn is short, and much is left at once.
        """
        upstream = self._upstream(flow)
        self._begin(upstream)
        until = time.perf_counter() + self.turn
        if self.on_left is not None and not self.executor.sends:
            if any([needed.awake and needed.queued() >= LONG for needed in upstream]):
                self.on_left()
                return
            until = min(until, time.perf_counter() + SLICE)
        for needed in upstream:
            if needed in self.flows and (needed.away is None or not needed.is_away):
                self._work(needed, until)
                if time.perf_counter() > until:
                    break
        if self.on_left is not None and not self.executor.sends and not self._are_current(upstream):
            self.on_left()

    def finish(self, flow: Dataflow, seconds: float = math.inf) -> bool:
        """Run `flow` and what it reads until it is current or has failed, or for about so many seconds, or until only what is
        away is left; whether it is or has.
        """
        upstream = self._upstream(flow)
        until = time.perf_counter() + seconds
        while not self._are_current(upstream) and flow.failure is None:
            self._begin(upstream)
            is_away = False
            for needed in upstream:
                if not needed.awake and not self.executor.sends:  # as in `run`
                    continue
                if needed.is_away:
                    is_away = True
                    continue
                if needed not in self.flows:  # dropped while another one was away
                    return False
                whole = needed.part is not None or not self.executor.sends
                self._work(needed, until if whole else min(until, time.perf_counter() + self.turn))
            if is_away or time.perf_counter() > until:
                return self._are_current(upstream) or flow.failure is not None
        return True

    def current(self, flow: Dataflow) -> bool:
        """Whether `flow` and everything it reads include all epochs that the inputs have closed."""
        return not self.awake or self._are_current(self._upstream(flow))

    def _are_current(self, flows: list[Dataflow]) -> bool:
        return all([not f.awake or (not f.running and f.available() <= f.low and not fails(f)) for f in flows])

    def _upstream(self, flow: Dataflow) -> list[Dataflow]:
        """The dataflows that `flow` reads, directly or indirectly, and `flow` itself at the end."""
        flows, found, waiting = self.flows, {flow}, [flow]
        while waiting:
            for source in waiting.pop().sources:
                other = source.flow
                if other is not None and other not in found and other in flows:
                    found.add(other)
                    waiting.append(other)
        return [flow] if len(found) == 1 else sorted(found, key=lambda f: flows.get(f, math.inf))


def fails(flow: Dataflow) -> bool:
    """Whether a dataflow is about to fail because a source has."""
    return flow.failure is None and any([source.failure is not None for source in flow.sources])


def _pause() -> None:
    time.sleep(PAUSE)


def _number(waiting: tuple[int, Dataflow]) -> int:
    return waiting[0]
