"""EngineCore: the internals of an engine, which languages, loads and executors use.

It holds the inputs, the views, the catalog of what they share, the storage, and the clock; it closes epochs (`epochs`), and
installs and drops dataflows. Every method may be called from any thread: those that change something take the lock.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from tektite.dataflow.arrange import build_rows
from tektite.dataflow.flow import EpochSource
from tektite.dataflow.graph import Outbox
from tektite.dataflow.interrupts import decided_change
from tektite.dataflow.journal import ClosedEpoch
from tektite.engine.catalog import Catalog, Entry, fingerprint
from tektite.engine.closing import close
from tektite.engine.collect import collect
from tektite.engine.constraints import check_time
from tektite.engine.core import HIDDEN_PREFIX
from tektite.engine.epochs import PreparedEpoch, prepare_epoch
from tektite.engine.finishing import finish, wait_for
from tektite.engine.hooks import Hooks
from tektite.engine.input_core import InputCore
from tektite.engine.installation import check_installable, drop_input, drop_view, entry_for, install
from tektite.engine.lock import EngineLock, StepByStep, guarded
from tektite.engine.names import by_name
from tektite.engine.notices import Notices, is_over
from tektite.engine.publication import Publication
from tektite.engine.replanning import Replanner
from tektite.engine.session import Sessions, Snapshots
from tektite.engine.small_epochs import SmallEpoch, small_epoch
from tektite.engine.system.process_memory import ProcessMemory
from tektite.engine.system.tables import SystemTables
from tektite.engine.table import Table
from tektite.engine.text_collector import TextCollector
from tektite.engine.view import View
from tektite.engine.view_core import ViewCore
from tektite.engine.write_set import WriteSet
from tektite.errors import ConflictError, IncorrectError
from tektite.query.collection import Collection
from tektite.query.columns import column_numbers
from tektite.runtime import allocator
from tektite.runtime.coordinator import Coordinator
from tektite.runtime.executor import Executor
from tektite.runtime.memory_limit import default_limit
from tektite.runtime.threads import Threads
from tektite.storage.description import InputDescription
from tektite.storage.epoch_writer import DurableChange
from tektite.storage.open_storage import OpenStorage, Position
from tektite.storage.options import Storage
from tektite.storage.partition import Move
from tektite.storage.store import Store
from tektite.trace.batch_memory import BatchMemory
from tektite.trace.trace import Trace
from tektite.values.dictionary import Dictionary
from tektite.values.schema import Schema
from tektite.values.text_space import Mark

if TYPE_CHECKING:
    from tektite.engine.engine import Engine

T = TypeVar("T")


class EngineCore:
    """One engine's inputs, views and shared arrangements, and the clock that moves them."""

    def __init__(
        self,
        engine: Engine,
        workers: int | None,
        storage: Storage | None,
        merging: str,
        turn: float,
        move: Move,
        autocommit: bool,
        memory_limit: int | None = None,
        replan: bool = True,
    ) -> None:
        """`move` brings stored rows to their shards when the number of these has changed."""
        self.process_memory = ProcessMemory()  # first: what a storage brings is the engine's
        self.autocommit = autocommit
        """Whether a write outside of any transaction is an epoch of its own."""
        self.engine = engine
        """The engine as users hold it."""
        self.merging = merging
        self.dictionary = Dictionary()
        self.lock = EngineLock()
        self.hooks = Hooks()
        self.notices = Notices()
        self.storage: OpenStorage | None = None
        if storage is not None:
            self.storage = OpenStorage(storage, workers, self.dictionary, move)
            finalizer = weakref.finalize(self, self.storage.close)  # for where nobody closes the engine
            self.lock.in_child.append(finalizer.detach)
            workers = self.storage.shards
        self.memory = self._batch_memory(memory_limit)
        if self.storage is not None:
            self.storage.writer.files.memory = self.memory
        self.workers = workers or 1
        self.coordinator = Coordinator(turn, Threads(self.workers), self.without_lock)
        self.snapshots = Snapshots()
        self.sessions = Sessions(self)
        self.catalog = Catalog(
            self.coordinator,
            self.dictionary,
            self.workers,
            merging,
            self.lock.decide,
            self.snapshots.earliest,
            self.memory,
        )
        self.replanner = Replanner(self, replan)
        self.inputs: dict[str, InputCore] = {}
        self.views: dict[str, ViewCore] = {}
        self.writes = WriteSet()
        """What has been written outside of any transaction and waits for `Engine.advance`; nothing with `autocommit`."""
        self.scheduled = WriteSet()
        """Updates with times of their own. Each counts when its epoch closes, whoever closes that."""
        self.changes = 0
        """How often commits have changed inputs."""
        self.epoch = 0
        """The epoch that `Engine.advance` closes next."""
        self.is_closed = False
        self._hidden = 0
        self.extensions: dict[type, Any] = {}
        """What languages keep with this engine, by class; see `extension`."""
        self.trimmer = allocator.MemoryTrimmer()
        self.texts = TextCollector(self)
        self.system = SystemTables(self)
        if self.storage is not None:
            try:
                self._recover(self.storage)
            except BaseException:
                self.storage.close()
                raise

    def _batch_memory(self, limit: int | None) -> BatchMemory | None:
        """The memory for large batches. Beyond the limit they lie in files, in the storage's folder or else in that for
        temporary files.
        """
        limit = default_limit() if limit is None else limit
        folder = None if self.store is None else self.store.local(".")
        return None if limit is None else BatchMemory(limit, None if folder is None else str(folder))

    def _recover(self, storage: OpenStorage) -> None:
        """Begin with what was found in the storage."""
        self.epoch = storage.epoch
        for stored in storage.inputs:
            made = InputCore(self, stored.name, stored.description, stored.low)
            for shard, batches in enumerate(stored.shards):
                made.trace.restore(shard, batches, ((stored.low,),))
            self.add_input(made)
        storage.inputs.clear()

    @guarded
    def extension(self, kind: type[T], make: Callable[[], T]) -> T:
        """The one object of a class that a language keeps with this engine, such as its session; made at its first use."""
        found = self.extensions.get(kind)
        if found is None:
            found = self.extensions[kind] = make()
        assert isinstance(found, kind)
        return found

    # ------------------------------------------------------------------ inputs

    def add_input(self, made: InputCore, *steps: Callable[[], object]) -> Table:
        """Let users and queries find an input. Further `steps`, each of which may be repeated, belong to it."""
        made.facade = Table(self.engine, made)
        entry = entry_for(made)

        def add() -> None:
            self.inputs[made.name] = made
            self.catalog.add(entry)

        self.lock.decide(StepByStep(*steps, add))
        return made.facade

    def to_storage(self, change: DurableChange) -> Callable[[], None]:
        """The step of a decision that has a change become durable; nothing without a storage."""
        storage = self.storage
        if storage is None:
            return lambda: None
        storage.writer.number(change)
        return lambda: storage.append(change)

    def transient_input(
        self, name: str, schema: Schema, key: Sequence[str] = (), semantics: str = "bag", rows: Sequence[Any] = ()
    ) -> Table:
        """An input that a language needs for itself: no storage keeps it. It holds `rows` as of the last closed epoch; before
        any has closed they wait for the first one to close.
        """
        described = InputDescription(schema, tuple(key), semantics)
        made = InputCore(self, name, described, max(self.epoch - 1, 0), is_stored=False)
        self._begin_with(made, rows, self.epoch)
        return self.add_input(made)

    def constant_input(self, name: str, schema: Schema, rows: Sequence[Any]) -> Table:
        """An input that a language needs for itself, with rows that were always there. It has ended, and holds nobody up."""
        made = InputCore(self, name, InputDescription(schema), 0, is_stored=False)
        self._begin_with(made, rows, 1)
        made.closed = True
        return self.add_input(made)

    def _begin_with(self, made: InputCore, rows: Sequence[Any], epoch: int) -> None:
        """Let an input that nobody knows yet hold rows, in the epochs before `epoch`; they wait, if there is none."""
        writes = WriteSet() if epoch > made.low else self.scheduled
        made.write(rows, None, 1, "insert", writes)
        if epoch > made.low:
            prepared = made.prepare(epoch, writes)
            prepared.make_ready()
            prepared.apply()

    def open_inputs(self) -> list[InputCore]:
        """The inputs that have not ended."""
        return [source for source in self.inputs.values() if not source.closed]

    # ------------------------------------------------------------------ time

    def commit(
        self,
        writes: WriteSet,
        to: int | None = None,
        positions: Mapping[str, Position | None] | None = None,
        known: tuple[Mark, Mark] | None = None,
    ) -> int:
        """Close the open epoch of every input (or all epochs before `to`) with what a write set holds; the time at which that can
        be read.

        `positions` become durable with the epochs. The texts between the marks `known` are in adopted files.
        """
        lock = self.lock
        with lock.held:  # as `guarded`, whose call every epoch would pay for
            if lock.decision is not None:
                lock.roll_forward()
            if self.coordinator.working:
                self.check_no_callback()
            for function in self.hooks.before_commit:
                function(writes)
            going, target = [], self.epoch
            for source in self.inputs.values():
                if not source.closed:
                    going.append(source)
                    if source.low > target:
                        target = source.low
            if to is None:
                target += 1
            else:
                check_time(to)
                latest = max([source.low for source in going], default=self.epoch)
                if to < latest:
                    raise IncorrectError(f"cannot advance to {to}: a table has closed the epochs before {latest}")
                target = to
            self._close(going, target, writes, None, positions, known)
            return target - 1

    def write(self, write: Callable[[WriteSet], object], timed: bool = False) -> int | None:
        """Let a function write for the calling session; the time at which that can be read, if it can already. The function takes
        the lock for what it does.

        What it writes belongs to the session's transaction. Without one, it is an epoch of its own, or waits for `advance` if the
        engine does not commit by itself. `timed` says that the updates have times of their own, and count when these come.
        """
        transaction = self.sessions.transaction if self.snapshots.any else None
        if transaction is not None:
            if timed:
                raise IncorrectError(
                    "what a transaction writes counts in the epoch that its commit closes: leave out the time"
                )
            transaction.check_writable("a write")
            write(transaction.writes)
            return None
        if self.sessions.over:
            self.sessions.check_not_over()
        if timed:
            write(self.scheduled)
        elif not self.autocommit:
            write(self.writes)
        else:
            with self.lock.held:  # others' epochs do not come between the write and its own
                own = WriteSet()
                write(own)
                return self.commit(own)
        return None

    @guarded
    def close_epochs(
        self, sources: Sequence[InputCore], high: int, writes: WriteSet, ending: InputCore | None = None
    ) -> None:
        """Close some inputs' epochs before `high`, with what a write set has of them, together: all of them, or, if one has bad
        updates, none. `ending` is an input that ends with it.
        """
        self._close(sources, high, writes, ending, None, None)

    def _close(
        self,
        sources: Sequence[InputCore],
        high: int,
        writes: WriteSet,
        ending: InputCore | None,
        positions: Mapping[str, Position | None] | None,
        known: tuple[Mark, Mark] | None,
    ) -> None:
        journal = self.coordinator.journal
        timed = ClosedEpoch(high - 1) if journal.notes_epochs and not self.system.is_refreshing else None
        prepared: PreparedEpoch | SmallEpoch | None = None
        try:
            if ending is None and not positions and known is None:
                prepared = small_epoch(self, sources, high, writes, build_rows)
            if prepared is None:
                prepared = prepare_epoch(self, sources, high, writes, ending, positions, known)
        except (IncorrectError, ConflictError) as error:
            if writes is self.writes and writes.updates:
                error.args = (
                    f"{error}, and what waits goes on waiting: correct it, or forget it by rollback() of the table",
                )
            raise
        if timed is not None:
            timed.rows = prepared.rows
            timed.end("prepare")
        decided = False
        try:
            try:
                with decided_change():
                    self.lock.decide(prepared)
                    decided = True
                    if timed is not None:
                        timed.end("apply")
                    changed = prepared.changed
                    prepared.settle()
                    del prepared  # what the traces merge away need not stay
                    if timed is not None:
                        timed.end("merge")
                    if self.coordinator.run(is_writer=True):
                        self.trimmer.trim_if_due()
                    self.replanner.after_epoch(changed)
            finally:  # an epoch that was interrupted may be closed
                self._tell(ending, timed)
            if self.dictionary.is_due or self.texts.is_active:
                self.texts.take_turn()
        except (MemoryError, RecursionError):
            if not decided:
                raise
            # What is written is not told as if it were not. Whoever uses the engine next goes on with the rest.

    def _tell(self, ending: InputCore | None, timed: ClosedEpoch | None) -> None:
        """Tell of epochs that have been closed, of an input that has ended with them, and the journal how long it took."""
        notices, journal = self.notices, self.coordinator.journal
        if timed is not None:
            timed.end("sweep")
        if ending is not None:
            notices.woken.extend(ending.feeds)
            for view in self.views.values():
                notices.woken.extend(view.feeds)
        if notices.is_due:
            notices.give(self.coordinator)
        if timed is not None and "apply" in timed.phases:
            timed.end("tell")
            journal.closed(timed)

    def each_shard(self, work: Callable[[int, Outbox], None], rows: int) -> None:
        """Run an input's work on every shard, side by side if there are enough rows."""
        self.coordinator.executor.map(work, self.workers, rows)

    @guarded
    def run(self) -> bool:
        """Give every view one more turn; whether all of them are up to date."""
        current = self.coordinator.run()
        if current:
            self.trimmer.trim_if_due()
        self.replanner.after_epoch(())
        self.notices.give(self.coordinator)
        return current

    @guarded
    def finish(self, view: EpochSource, deadline: float | None = None) -> None:
        """Bring one view or index up to date with the epochs that are closed, or as far as it comes until a deadline of
        `time.monotonic`. Others may use the engine meanwhile, unless the caller is called by a sweep itself. A table always is.
        """
        flow = view.flow
        if flow is None:
            return
        # Before the first epoch closes, what is constant is there already. What was reached costs less than what sources allow.
        if self.epoch > 0 and (self.epoch <= flow.reached or self.epoch <= flow.low):
            return
        if not self.coordinator.current(flow):
            finish(self, flow, deadline)

    @guarded
    def finish_left(self, seconds: float) -> bool:
        """Go on for about so many seconds with what has been left unfinished. Returns whether there is more."""
        until = time.monotonic() + seconds
        for flow in self.coordinator.unfinished():
            self.finish(flow, until)
        return bool(self.coordinator.unfinished())

    def without_lock(self, function: Callable[[], None]) -> None:
        """Call a function while others use the engine, unless nobody else is to get a turn."""
        if self.lock.is_undisturbed or self.catalog.is_building:
            function()
        else:
            self.lock.without(function)

    def let_others(self) -> None:
        """Let whoever waits use the engine, unless nobody else is to get a turn."""
        if not (self.lock.is_undisturbed or self.catalog.is_building or self.coordinator.working):
            self.lock.let_others()
            self.lock.roll_forward()

    @guarded
    def wait_for_all(self) -> None:
        """Let others use the engine until no dataflow is away. After that none goes away while the lock is kept."""
        while (away := self.coordinator.absence()) is not None and not away.is_mine:
            wait_for(self, away)
            self.lock.roll_forward()

    def undisturbed(self) -> AbstractContextManager[bool]:
        """Wait until no dataflow is away, and give back the lock of a block in which nobody else uses the engine, however long it
        takes: `with core.lock.held, core.undisturbed():`. It is for who reads, and then does what follows from it. Holding the
        engine's lock is not enough, because reading may let go of it.
        """
        assert self.lock.is_owned, "take the engine's lock before"
        self.wait_for_all()
        return self.lock.undisturbed

    def is_current(self, view: InputCore | ViewCore) -> bool:
        """Whether a view reflects every epoch that its inputs have closed."""
        return view.flow is None or self.coordinator.current(view.flow)

    def is_finished(self, view: InputCore | ViewCore, deadline: float | None) -> bool:
        """Whether `finish` brings a view no further: it is current, the deadline has passed, or the caller is a function that the
        view's own sweep calls.
        """
        if self.is_current(view) or is_over(deadline):
            return True
        away = None if view.flow is None else self.coordinator.absence(view.flow)
        return away is not None and away.is_mine

    def run_on(self, made_from: Callable[[Executor], Executor]) -> None:
        """Run sweeps from here on by another executor, made from the present one, which it may use for what runs here."""
        executor = self.coordinator.executor = made_from(self.coordinator.executor)
        self.coordinator.journal.why = executor.why

    # ------------------------------------------------------------------ storage

    @property
    def store(self) -> Store | None:
        """The place of the engine's files, if it has a storage."""
        return None if self.storage is None else self.storage.writer.store

    @property
    def durable(self) -> int:
        """The first epoch that a crash would lose; 0 without a storage."""
        return 0 if self.storage is None else self.storage.writer.durable

    def sync(self, timeout: float | None = None) -> int:
        """Wait until every closed epoch is durable; see `Engine.sync`."""
        self.lock.check_process()
        if self.storage is None:
            raise IncorrectError(
                "there is nothing to wait for: this engine has no storage. Give one: Engine(storage=path)"
            )
        for view in list(self.views.values()):
            if view.publication is not None and view.failure is None:
                self.finish(view)
        self.storage.writer.sync(timeout)
        return self.durable

    def publish(self, view: ViewCore) -> Publication:
        """Store a view's contents and changes from here on; see `View.publish`."""
        if self.storage is None:
            raise IncorrectError(
                f"view {view.name!r} cannot be persisted: this engine has no storage. Give one: Engine(storage=path)"
            )
        self.sync()
        return Publication(view, self.storage)

    # ------------------------------------------------------------------ views

    @guarded
    def install_together(
        self,
        collections: Mapping[str, Collection],
        keys: Mapping[str, str | Sequence[str]] | None = None,
        keep: bool = True,
        on_change: Callable[[pa.Table], None] | None = None,
        since: int | None = None,
        limit: int | None = None,
    ) -> list[View]:
        """Views of several collections by one dataflow, in which what they have in common is computed once. They can be read from
        `since` on, an epoch that a transaction reads, or else from the last closed one. Beyond `limit` bytes they fail.
        """
        return install(self, collections, keys or {}, keep, on_change, since, limit)

    @guarded
    def collect(self, collection: Collection, limit: int | None = None, rows: int | None = None) -> pa.Table:
        """The rows of a query, computed once; see `tektite.engine.collect`."""
        check_installable(self, self.hidden_name("collect"), collection)
        return collect(self, collection, limit, rows)

    def hidden_name(self, purpose: str) -> str:
        """A name that nobody has, for a view that nobody is to see."""
        self._hidden += 1
        return f"{HIDDEN_PREFIX}{purpose}_{self._hidden}"

    @guarded
    def drop(self, name: str) -> None:
        """Remove an input or a view; see `Engine.drop`."""
        if name in self.inputs:
            drop_input(self, self.inputs[name])
        else:
            drop_view(self, by_name(self, self.views, name, "view"))

    # ------------------------------------------------------------------ shared arrangements

    def entry_of(self, source: InputCore | ViewCore, kind: str, verb: str = "drop") -> Entry:
        """The catalog's entry of an input or a view that is to be dropped. Raises if somebody reads it."""
        self.replanner.let_go(source.flow)
        entry = next(e for e in self.catalog.all_of(source.operator.fingerprint, failed=True) if e.source is source)
        if entry.readers:
            readers = self.catalog.reader_names(entry)
            said = f"{', '.join(map(repr, readers))} read{'s' * (len(readers) == 1)} it"
            raise ConflictError(f"cannot {verb} {kind} {source.name!r}: {said}")
        return entry

    @guarded
    def is_arranged(self, collection: Collection, by: str | Sequence[str] = ()) -> bool:
        """Whether there is an arrangement of the collection, by some columns, that can be read as it is."""
        lead = column_numbers(collection.schema, by)
        found = self.catalog.find(fingerprint(collection.operator), lead, None, len(lead) if lead else 1 << 30)
        return found is not None

    def traces(self) -> list[Trace]:
        """Everything that is kept indexed."""
        traces = {id(e.trace): e.trace for e in self.catalog.entries}
        for flow in self.coordinator.flows:
            traces |= {id(trace): trace for trace in flow.traces}
        return list(traces.values())

    @property
    def bytes(self) -> int:
        """Memory of everything that is kept indexed."""
        return sum(trace.bytes for trace in self.traces())

    # ------------------------------------------------------------------ names, and the end

    def check_changeable(self, name: str, what: str) -> None:
        """Refuse to make or drop something in a transaction that only reads. What the engine makes for itself is hidden."""
        transaction = self.sessions.transaction
        if transaction is not None and not str(name).startswith(HIDDEN_PREFIX):
            transaction.check_writable(f"{what} of {name!r}")

    def check_no_transaction(self) -> None:
        """Refuse to close epochs while a transaction of the calling session is open."""
        if self.snapshots.any and self.sessions.transaction is not None:
            raise ConflictError("a transaction is open: its commit closes an epoch. Commit it, or roll it back, first")

    def check_no_callback(self) -> None:
        """Refuse to close epochs inside a function that the engine calls while it closes one."""
        if self.coordinator.working:
            raise ConflictError(
                "an epoch cannot be closed inside a function that the engine calls while it closes one, such as a listener: let "
                "another thread write, or write when the call has returned"
            )

    def check_may_wait(self) -> None:
        """Refuse to wait in a function that the engine calls: it may keep everybody else from doing anything, or be what it waits
        for.
        """
        if self.lock.is_owned or self.coordinator.working:
            raise ConflictError(
                "a function that the engine calls, such as a callback, cannot wait for what is yet to happen: nothing can happen "
                "while it runs. Use poll(0), or wait in another thread"
            )

    def check_running(self) -> None:
        """Refuse to go on with an engine that is closed."""
        if self.is_closed:
            raise ConflictError("the engine is closed: make another one").about(condition="admin-shutdown")

    def close(self, discard: bool = False) -> None:
        """Stop what feeds the engine, make every closed epoch durable, and drop everything; see `Engine.close`."""
        close(self, discard)
