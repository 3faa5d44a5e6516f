"""TextCollector: removes texts that nobody uses from the engine's dictionary, beside the epochs.

Promise: a text goes only if no id of it is anywhere in the engine, or on its way into it, or being read. After a collection the
dictionary has the texts in use and those added since it began. One begins whenever the texts, or a share of the words that it
has to look at, have come again since the last one.

A collection has four phases. Only the first two need the engine's lock, for about a millisecond at a time.

1. **Begin** a new era: texts that are added from here on stay. What sessions have written, and the constants of programs and
   plans, are in use. Results of text functions are forgotten, because they may be texts that nobody else has.
2. **Visit** all traces, sources before readers. Ids go from sources to readers, never back. So an id that reaches a trace after
   its visit was in a trace visited earlier, or was added in this era.
3. **Mark** the texts whose ids are in the batches that were visited. Batches do not change. Which columns hold ids does not
   matter: a word that equals an id by chance keeps a text.
4. **Sweep**, once all who were reading at the beginning have ended, and all epochs that were closed by then are durable.
   (Epochs that wait to be written hold ids of texts that only the storage has.) Texts that the storage lacks stay.

A dataflow that is suspended with rows outside its buffers is visited when it goes on.

A dictionary that is about to be full, while no collection is due, is only swept, of nothing: its texts move to where there is
more room. Otherwise it would grow by a copy of everything, inside whichever call added one text too many.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from _thread import start_new_thread
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from tektite.dataflow.flow import Dataflow
from tektite.expr.text import forget_results
from tektite.trace.trace import Trace
from tektite.values.text_space import Mark

if TYPE_CHECKING:
    from tektite.engine.engine_core import EngineCore

FEWEST = 1 << 12
"""Texts that are not worth a collection: some hundred kilobytes."""
WORDS_A_TEXT = 16
"""Words to look at for each text that was added: a collection then costs an epoch about 100 ns for each new text."""
TURN = 1e-3
"""Seconds for which a collection holds the engine's lock, and works before it looks whether it is wanted."""
HELP = 4e-3
"""Seconds for which a commit lets the thread work, if texts are added faster than it removes them."""
PAUSE = 2e-4
"""Seconds after which such a commit looks again."""
PATIENCE = 2e-3
"""Seconds to wait for a lock, a reader or the storage before looking again."""


class TextMove:
    """Moves all texts to where there is more room."""

    is_visited = True

    def __init__(self, core: EngineCore) -> None:
        self.sweep: Iterator[None] | None = None

    def visit(self, core: EngineCore, until: float) -> None:
        """There is nothing to visit."""

    def work(self, core: EngineCore, until: float, sweeps: bool) -> bool | None:
        """Move until a time. Returns whether it has ended."""
        if self.sweep is None:
            self.sweep = core.dictionary.sweep(0, sweepable(core))
        return is_swept(self.sweep, until)


class TextCollection:
    """The state of one collection: what it has found and not looked at yet."""

    def __init__(self, core: EngineCore) -> None:
        """Begin. The caller holds the engine's lock."""
        dictionary = core.dictionary
        self.floor = dictionary.begin_era()
        self.era = dictionary.era
        forget_results(dictionary)
        self.words = 0
        """Words looked at."""
        self.arrays = deque(dictionary.pinned())
        self.rows: deque[Any] = deque()
        """Batches and chunks."""
        for writes in (core.writes, core.scheduled, *core.snapshots.writes()):
            self.rows += [chunk for updates in writes.updates.values() for chunk, _ in updates]
        self.place = 0
        self.visited: weakref.WeakSet[Trace] = weakref.WeakSet()
        """Traces that were visited. Those of dropped views go."""
        self.sources = deque([entry.trace for entry in core.catalog.entries if entry.flow is None])
        """Traces of inputs and constants that are to be visited."""
        self.flows: deque[tuple[Dataflow, int]] = deque()
        """Dataflows that are to be visited next, with their numbers."""
        self.last = -1
        """The number of the last dataflow visited."""
        self.is_visited = False
        self.appended = 0 if core.storage is None else core.storage.writer.appended
        self.sweep: Iterator[None] | None = None

    def visit(self, core: EngineCore, until: float) -> None:
        """Visit traces until a time. The caller holds the engine's lock, and no sweep runs."""
        while not self.is_visited:
            if time.perf_counter() > until:
                return
            if self.sources:
                self._take(self.sources[0])
                self.sources.popleft()
            elif self.flows:
                flow, number = self.flows[0]
                if is_suspended(flow):
                    return
                for trace in (*flow.traces, *flow.results):
                    self._take(trace)
                if flow.running:
                    self.rows += waiting_rows(flow)
                self.last = number
                self.flows.popleft()
            else:
                self.flows = deque([item for item in core.coordinator.flows.items() if item[1] > self.last])
                if not self.flows:
                    left = [entry.trace for entry in core.catalog.entries if entry.trace not in self.visited]
                    self.sources = deque(left)
                    self.is_visited = not left

    def _take(self, trace: Trace) -> None:
        """Take what a trace holds, unless that was done."""
        if trace not in self.visited:
            self.rows += [batch for batch in trace.held_batches() if batch.n]
            self.visited.add(trace)

    def work(self, core: EngineCore, until: float, sweeps: bool) -> bool | None:
        """Mark and, if asked, sweep until a time. Returns whether it has ended; None if it has to wait."""
        dictionary = core.dictionary
        visited = self.is_visited  # before marking: whoever visits may add rows meanwhile
        # Marked first, then done with: an interrupt may come in between.
        while self.arrays:
            dictionary.mark_words(self.arrays[0])
            self.words += self.arrays.popleft().size
            if time.perf_counter() > until:
                return False
        while self.rows:
            rows = self.rows[0]
            place = dictionary.mark_rows(rows.at, self.place)
            self.place = max(place, 0)
            if place < 0:
                self.words += rows.n * int(rows.head[2])
                self.rows.popleft()
            if time.perf_counter() > until:
                return False
        if not visited or not sweeps or dictionary.reads_before(self.era):
            return None
        storage = core.storage
        if storage is not None and storage.writer.written < self.appended:
            return None
        if self.sweep is None:
            self.sweep = dictionary.sweep(self.floor, sweepable(core))
        return is_swept(self.sweep, until)


def sweepable(core: EngineCore) -> Mark:
    """The mark before which texts may be moved: a storage writes those behind it in the order of their arrival."""
    storage = core.storage
    return core.dictionary.mark() if storage is None else storage.writer.written_texts


def is_swept(sweep: Iterator[None], until: float) -> bool:
    """Sweep until a time. Returns whether that has ended."""
    while next(sweep, sweep) is not sweep:
        if time.perf_counter() > until:
            return False
    return True


class TextCollector:
    """Collects the texts of an engine, in a thread that lives as long as a collection."""

    def __init__(self, core: EngineCore) -> None:
        self._core = core
        self.eager = False
        """Whether every commit ends with a whole collection, as far as nobody reads; see `be_eager`."""
        self.count = 0
        """How many collections have ended."""
        self._collection: TextCollection | TextMove | None = None
        self._working = threading.Lock()
        self.thread_of = 0
        """The process that has a thread for collections; 0 if there is none. A fork has no threads."""
        self._rested: object = None
        """What had changed when `idle` had nothing left to do."""
        self.is_active = False
        """Whether a collection runs, or is to run after every commit."""
        core.dictionary.limit = max(core.dictionary.texts, FEWEST)

    def be_eager(self) -> None:
        """Collect after every commit from here on. For tests: it costs a look at everything that is kept."""
        self.eager = self.is_active = True

    def take_turn(self) -> None:
        """Begin a collection that is due, or go on with one. The caller holds the engine's lock and has just closed an epoch."""
        core = self._core
        if core.coordinator.working:
            return
        if self.eager:
            self.finish(0)
            return
        if self._collection is None:
            if core.dictionary.texts > core.dictionary.limit:
                self._begin()
            elif core.dictionary.is_due and core.dictionary.needs_room():
                self._collection = TextMove(core)
                self.is_active = True
        if self._collection is not None and not self._collection.is_visited:
            self._collection.visit(core, time.perf_counter() + TURN)
        if core.dictionary.texts > 2 * core.dictionary.limit:
            self._help(time.perf_counter() + HELP)
        if self._collection is not None and not self.thread_of:
            self.thread_of = os.getpid()
            try:
                # `threading` would wait until the thread runs, which takes longer than a small epoch.
                start_new_thread(_run, (weakref.ref(self),))
            except RuntimeError:  # the process can start no more threads
                self.thread_of = 0

    def _help(self, until: float) -> None:
        """Let the thread work until a time, if it does. Where there is none, work."""
        if self.thread_of != os.getpid():
            self.work(until, sweeps=False)
        while self._working.locked() and time.perf_counter() < until:
            time.sleep(PAUSE)

    def finish(self, seconds: float) -> bool:
        """Collect now: go on with the collection that runs, or a new one. Returns whether it has ended: who reads, or suspended
        dataflows, or a storage that has not written everything after so many seconds, keep it from ending. The caller holds the
        engine's lock.
        """
        core = self._core
        if isinstance(self._collection, TextMove):
            self.work(float("inf"))
        if self._collection is None:
            self._begin()
        until = time.perf_counter() + seconds
        while (collection := self._collection) is not None:
            if not collection.is_visited:
                collection.visit(core, float("inf"))
            if self.work(float("inf")) is None:
                if time.perf_counter() >= until:
                    return False
                time.sleep(PATIENCE)
        return True

    def idle(self) -> bool:
        """Collect if something has changed since the last time, merges included. Returns whether that waits for somebody who
        reads, which ends soon; suspended dataflows and a storage that lags may take long. The caller holds the lock.
        """
        core = self._core
        if (
            core.coordinator.working
            or core.dictionary.is_loading
            or self._rested == (core.changes, core.dictionary.mark())
        ):
            return False
        if (self._collection is not None and not self.finish(0)) or not self.finish(0):
            collection = self._collection
            return isinstance(collection, TextCollection) and core.dictionary.reads_before(collection.era)
        self._rested = core.changes, core.dictionary.mark()
        return False

    def work(self, until: float, sweeps: bool = True) -> bool | None:
        """Mark and, if asked, sweep until a time. Returns whether nothing is left to do; None if the collection has to wait."""
        with self._working:
            collection = self._collection
            if collection is None:
                return True
            ended = collection.work(self._core, until, sweeps)
            if ended:
                self._ended(collection)
            return ended

    def visit(self) -> None:
        """Visit traces, if nobody has the engine's lock for long."""
        core, held = self._core, self._core.lock.held
        if not held.acquire(timeout=PATIENCE):
            return
        try:
            collection = self._collection
            if collection is not None and core.lock.decision is None and not core.coordinator.working:
                collection.visit(core, time.perf_counter() + TURN)
        finally:
            held.release()

    @property
    def is_running(self) -> bool:
        """Whether there is a collection to go on with."""
        return self._collection is not None and not self._core.is_closed

    def give_up(self) -> None:
        """Forget a collection for which there is no memory. Texts that nobody uses stay for the next one."""
        with self._working:
            self._collection = None
            self.is_active = self.eager

    @property
    def is_visiting(self) -> bool:
        """Whether the collection has traces left to visit."""
        collection = self._collection
        return collection is not None and not collection.is_visited

    def close(self) -> None:
        """Wait for the thread to end, once the engine is closed."""
        while self.thread_of == os.getpid():
            time.sleep(PATIENCE)

    def _begin(self) -> None:
        if self._core.dictionary.eras_left > 0:
            self._collection = TextCollection(self._core)
            self.is_active = True

    def _ended(self, collection: TextCollection | TextMove) -> None:
        if isinstance(collection, TextCollection):
            dictionary = self._core.dictionary
            more = max(dictionary.texts, collection.words // WORDS_A_TEXT, FEWEST // 2)
            dictionary.limit = dictionary.texts + more
            self.count += 1
        self._collection = None
        self.is_active = self.eager


def _run(of: weakref.ref[TextCollector]) -> None:
    """The thread of a collection. It does not keep the engine."""
    try:
        while (collector := of()) is not None and collector.is_running:
            found = collector.work(time.perf_counter() + TURN)
            if found is None and collector.is_visiting:
                collector.visit()
            del collector
            time.sleep(PATIENCE if found is None else 0)
    except MemoryError:
        if (collector := of()) is not None:
            collector.give_up()
    finally:
        if (collector := of()) is not None:
            collector.thread_of = 0


def is_suspended(flow: Dataflow) -> bool:
    """Whether rows of a dataflow are in no buffer: it was suspended inside a node, or is away, or another process runs it."""
    return flow.running and (
        flow.part is not None
        or flow.is_away
        or any([node.busy for scope in flow.root.scopes() for node in scope.nodes])
    )


def waiting_rows(flow: Dataflow) -> list[Any]:
    """The chunks in the buffers of a dataflow that is suspended between nodes."""
    return [
        chunk
        for scope in flow.root.scopes()
        for node in scope.nodes
        for buffer in node.buffers
        for moment in buffer.moments()
        for chunks in buffer.waiting(moment)
        for chunk in chunks
        if chunk.n
    ]
