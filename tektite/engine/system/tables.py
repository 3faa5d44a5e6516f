"""SystemTables: makes the tables of system relations when somebody asks for them, and keeps them up to date while they are read.

* Nobody asks: there is nothing, and nothing is done.
* Somebody asks by name (SQL, Datalog, `Engine.table`): the table is made, and holds what is so at that moment. Asking again
  brings it up to date.
* A view or a subscription reads it: a thread writes what has changed. It waits after each look, so that looking takes at most
  `SHARE` of the processor time, and at least for its `granularity`, which each relation can have its own of. What comes and goes
  between two looks is never written.

An engine that does not commit by itself (`autocommit=False`) is never given an epoch that nobody asked for: there, the tables
follow with each `advance`.
"""

from __future__ import annotations

import logging
import os
import threading
import time
import weakref
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from tektite.dataflow.flow import Dataflow
from tektite.dataflow.work_log import WorkLog
from tektite.engine.catalog import Entry
from tektite.engine.input_core import REFRESH, InputCore
from tektite.engine.notices import ThreadWaiter
from tektite.engine.system.disclosure import objects_of
from tektite.engine.system.observation import Observation, StableNumbers, ViewPlans
from tektite.engine.system.relations import SYSTEM, SystemRelation, SystemRow
from tektite.engine.write_set import WriteSet
from tektite.errors import TektiteError
from tektite.values.schema import Schema

if TYPE_CHECKING:
    from tektite.engine.engine_core import EngineCore
    from tektite.engine.table import Table

LOG = logging.getLogger(__name__)

SHARE = 0.02
"""The share of the time that looking at the engine may take while somebody watches. Counting work takes some more."""
IDLE = 0.1
"""A process that works for a smaller share of the time has time to look."""
AT_EASE = 0.5
"""So has one that works for a smaller share than this on a machine that has a core to spare."""
GRANULARITY = 0.25
"""Seconds between two looks, unless somebody says otherwise: as often as a person sees a difference."""

PATIENCE = 5.0
"""Seconds for which an engine goes on looking after somebody has asked: who asks by name often installs a view next."""


class _HeldRows:
    """A table of a system relation, and the rows that it holds."""

    def __init__(self, source: InputCore, entry: Entry, rows: frozenset[SystemRow]) -> None:
        self.source = source
        self.entry = entry
        """Its entry in the catalog, which knows its readers."""
        self._rows = rows
        self._written: tuple[int, frozenset[SystemRow]] | None = None
        """The rows after the commit that they were written for, which has happened once the source has counted more writes."""

    @property
    def is_watched(self) -> bool:
        """Whether a view or a subscription reads it."""
        return bool(self.source.feeds or self.entry.readers)

    def become(self, rows: frozenset[SystemRow], into: WriteSet) -> bool:
        """Write what turns the table's rows into others; whether that is anything."""
        if self._written is not None and self.source.writes > self._written[0]:
            self._rows = self._written[1]
        old = self._rows
        if rows == old:
            self._written = None
            return False
        self.source.write(list(old - rows), None, -1, REFRESH, into)
        self.source.write(list(rows - old), None, 1, REFRESH, into)
        self._written = self.source.writes, rows
        return True


class SystemTables:
    """The system relations of one engine that somebody has asked for."""

    def __init__(self, core: EngineCore) -> None:
        self._core = core
        self._numbers = StableNumbers()
        self._plans = ViewPlans()
        self._held: dict[str, _HeldRows] = {}
        self._granularity: dict[str, float] = {}
        """Seconds between two looks, of relations that somebody has said that for."""
        self._looked: dict[str, float] = {}
        """When each table was last written."""
        self._pause = GRANULARITY
        """Seconds to wait until the next look."""
        self._needed = 0.0
        """Seconds of processor time between two looks, if the engine is at work."""
        self._rested = 0.0, 0.0
        """When the last look was, and the processor time then."""
        self._clock = core.epoch - 1
        """The last epoch that something else than this closed."""
        self._asked = 0.0
        self.is_refreshing = False
        """Whether an epoch is closed that has nothing but changes of these tables."""
        self._watcher: _Watcher | None = None

    def names(self) -> Collection[str]:
        """The names of all system relations, whether or not their tables have been made."""
        return SYSTEM.keys()

    def set_granularity(self, seconds: float, names: Collection[str]) -> None:
        """Look at least so many seconds apart at some relations, or at all of them."""
        with self._core.lock.held:
            self._granularity |= dict.fromkeys(names or SYSTEM, seconds)

    def granularity(self, name: str) -> float:
        """Seconds between two looks at a relation."""
        return self._granularity.get(name, GRANULARITY)

    def table(self, name: str) -> Table | None:
        """The table of a system relation, up to date; None if there is no such relation."""
        relation = SYSTEM.get(name)
        if relation is None:
            return None
        with self._core.lock.held:
            self._core.lock.roll_forward()
            self._core.check_running()
            self._asked = time.monotonic()
            self._start_watching()
            if name not in self._held:
                return self._make(name, relation)
            user = self._core.sessions.current()
            if not user.statement_looked:  # a statement may name many of them, and looks once
                self.refresh()
                user.statement_looked = None if user.statement_looked is None else True
            return self._held[name].source.facade

    def _make(self, name: str, relation: SystemRelation) -> Table:
        core = self._core
        if not self._held:
            self._clock = core.epoch - 1
            core.hooks.before_commit.append(self._before_commit)
        journal = core.coordinator.journal
        if relation.counts_work and journal.work is None:
            journal.work = WorkLog()
        journal.notes_epochs |= relation.notes_epochs
        if relation.counts_epochs and journal.work is not None:
            journal.work.begin_epochs()
        rows = frozenset(relation.rows(self.look()))
        # A set, so that writes which a refused commit leaves waiting do no harm when they are written again.
        made = core.transient_input(name, Schema(relation.columns), semantics="set", rows=sorted(rows, key=repr))
        source = core.inputs[name]
        source.is_system = True
        (entry,) = core.catalog.all_of(source.operator.fingerprint)
        self._held[name] = _HeldRows(source, entry, rows)
        self._looked[name] = time.monotonic()
        return made

    def refresh(self, only: Collection[str] | None = None) -> None:
        """Write what has changed of all tables or of some as an epoch of its own, if the engine commits by itself and is not at
        work. Who watches an engine that nobody has written to needs a first epoch to be told anything.
        """
        core = self._core
        if not self._held or not core.autocommit or core.coordinator.working or core.is_closed:
            return
        began = time.thread_time()
        changes = WriteSet()
        if self._write_changes(changes, only) or (core.epoch == 0 and self.is_watched()):
            self.is_refreshing = True
            try:
                core.commit(changes)
            finally:
                self.is_refreshing = False
        shortest = min([self.granularity(name) for name in self._held])
        self._needed = (time.thread_time() - began) / SHARE
        self._pause = max(shortest, self._needed)
        self._rested = time.monotonic(), time.process_time()

    def _has_rested(self) -> bool:
        """Whether the process has worked long enough since the last look, or nearly idles. On a machine with other work, its own
        processor time is what looking has to be a small part of.
        """
        seconds, worked = time.monotonic() - self._rested[0], time.process_time() - self._rested[1]
        if worked >= self._needed or worked < IDLE * seconds:
            return True
        return worked < AT_EASE * seconds and os.getloadavg()[0] < (os.cpu_count() or 1) - 0.5

    @property
    def pause(self) -> float:
        """Seconds to wait until the next look."""
        return self._pause

    def needs_work(self) -> bool:
        """Whether some table needs the work of operators to be counted."""
        return any(SYSTEM[name].counts_work for name in self._held)

    def needs_epochs(self) -> bool:
        """Whether some table needs epochs to be noted."""
        return any(SYSTEM[name].notes_epochs for name in self._held)

    def is_watched(self) -> bool:
        """Whether a view or a subscription reads one of the tables."""
        return any([held.is_watched for held in self._held.values()])

    def _before_commit(self, writes: WriteSet) -> None:
        if self.is_refreshing:
            return
        if not self._core.autocommit:
            if self.is_watched():
                due = set(self._due())
                self._write_changes(writes, [n for n in self._held if n in due or n not in self._granularity])
        elif self._watcher is None and self.is_watched():
            self._start_watching()
        self._clock = self._core.epoch

    def _start_watching(self) -> None:
        if self._watcher is None and self._core.autocommit:
            self._watcher = _Watcher(self)

    def reads_system(self, flow: Dataflow) -> bool:
        """Whether a dataflow depends on system relations."""
        return bool(self._held) and flow not in self.look().flow_set

    def objects_of(self, flow: Dataflow) -> set[str]:
        """The objects that a user must be allowed to read in order to see a dataflow. The caller holds the lock."""
        return objects_of(self.look(), flow)

    def look(self) -> Observation:
        """The engine as it is. The caller holds the lock."""
        own = {held.source for held in self._held.values()}
        clock = self._clock if own else self._core.epoch - 1
        return Observation(self._core, own, self._numbers, self._plans, self._core.process_memory, clock)

    def _write_changes(self, into: WriteSet, only: Collection[str] | None = None) -> bool:
        """Add what has changed of all tables or of some to a write set; whether something has."""
        seen, now = self.look(), time.monotonic()
        changed = False
        for name, held in self._held.items():
            if only is None or name in only:
                self._looked[name] = now
                changed |= held.become(frozenset(SYSTEM[name].rows(seen)), into)
        return changed

    def _due(self) -> list[str]:
        """The tables that somebody watches and that have not been written for as long as their granularity, or nearly: the thread
        does not wake exactly. Tables that nobody watches are brought up to date when somebody asks.
        """
        now = time.monotonic() + GRANULARITY / 10
        watched = [name for name, held in self._held.items() if held.is_watched]
        return [name for name in watched if now - self._looked.get(name, 0.0) >= self.granularity(name)]

    def tick(self) -> bool:
        """Look, if somebody watches; whether somebody does."""
        with self._core.lock.held:
            asked = time.monotonic() - self._asked < PATIENCE
            if self._core.is_closed or not (asked or self.is_watched()):
                self._watcher = None
                return False
            self._core.lock.roll_forward()
            if self.is_watched() and self._has_rested():
                self.refresh(self._due())
            return True


class _Watcher:
    """A thread that keeps system relations up to date while nobody commits. It ends when nobody watches."""

    def __init__(self, tables: SystemTables) -> None:
        self._tables = weakref.ref(tables)
        self._stopped = ThreadWaiter()
        self._thread = threading.Thread(target=self._run, name="tektite-system", daemon=True)
        tables._core.hooks.on_close.append(self.stop)
        self._thread.start()

    def stop(self) -> None:
        """Look no more."""
        self._stopped.notify()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _run(self) -> None:
        pause: Any = GRANULARITY
        while not self._stopped.wait(pause):
            tables = self._tables()
            if tables is None:
                return
            try:
                if not tables.tick():
                    return
            except TektiteError as error:
                LOG.warning("system relations could not be brought up to date, and are tried again: %s", error)
            pause = tables.pause
            del tables
