"""Engine: inputs, views, the catalog of what they share, and the clock that moves them."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self, TypeVar

import pyarrow as pa

from tektite.dataflow.graph import Outbox
from tektite.dataflow.journal import Sweep
from tektite.engine.catalog import Catalog, Entry, Scribe, fingerprint
from tektite.engine.constraints import check_time, declare
from tektite.engine.holds import ArrangementInfo, Held, Kept
from tektite.engine.input import Input
from tektite.engine.lock import guarded
from tektite.engine.publication import Publication
from tektite.engine.stored_inputs import widen
from tektite.engine.view import Changes, View
from tektite.errors import ConflictError, IncorrectError, NotFoundError
from tektite.kernels.ready import ensure_compiled
from tektite.query.collection import Collection
from tektite.runtime import allocator
from tektite.runtime.coordinator import Coordinator
from tektite.runtime.executor import Executor
from tektite.runtime.threads import Threads
from tektite.storage.description import InputDescription
from tektite.storage.keeper import Closed
from tektite.storage.options import Storage
from tektite.storage.partition import Move, move_here
from tektite.storage.session import Position, Session, checked_positions
from tektite.storage.store import Store
from tektite.trace.trace import Hold, Trace
from tektite.values.dictionary import Dictionary, Mark
from tektite.values.schema import Schema
from tektite.values.types import Type

T = TypeVar("T")
MERGING = ("eager", "default", "lazy")


class Engine:
    """Keeps standing queries up to date in this process, and lets them share the indexes they need.

    `workers` is the number of shards, each maintained by a thread (one, or as many as are stored, where left out); answers
    do not depend on it. With `storage`, a path or
    a `tektite.Storage`, inputs outlive the process: an engine on the same storage begins with what was durable.
    `merging` is how eagerly traces are merged: eager, default or lazy. `turn` is how many seconds a view may take at a
    time before the others get theirs.

    >>> import tektite as tk
    >>> engine = tk.Engine()
    >>> edges = engine.input("edges", src=tk.Int, dst=tk.Int)
    >>> degrees = engine.install("degrees", edges.count(by="src"))
    >>> edges.insert([(1, 2), (1, 3), (2, 3)])
    >>> engine.advance()
    1
    >>> sorted(degrees.rows())
    [(1, 2), (2, 1)]
    """

    input_type: type[Input] = Input
    view_type: type[View] = View

    def __init__(
        self,
        workers: int | None = None,
        *,
        storage: str | Path | Storage | None = None,
        merging: str = "default",
        turn: float = 0.05,
    ) -> None:
        if workers is not None and (not isinstance(workers, int) or workers < 1):
            raise IncorrectError(f"workers must be a positive number, not {workers!r}")
        if merging not in MERGING:
            raise IncorrectError(f"merging is one of {', '.join(MERGING)}, not {merging!r}")
        if ensure_compiled():
            gc.collect()  # loading kernels leaves cycles behind
            allocator.give_back()
        self.merging = merging
        self.dictionary = Dictionary()
        self.lock = threading.RLock()
        self.on_close: list[Callable[[], None]] = []
        self._session: Session | None = None
        if storage is not None:
            self._session = Session(Storage.of(storage), workers, self.dictionary, self.mover())
            weakref.finalize(self, self._session.close)  # for where nobody closes the engine
            workers = self._session.shards
        self.workers = workers or 1
        self._coordinator = Coordinator(turn, Threads(self.workers))
        self._catalog = Catalog(self._coordinator, self.dictionary, self.workers, merging)
        self._inputs: dict[str, Input] = {}
        self._views: dict[str, View] = {}
        self._epoch = 0
        self._tidying = allocator.Tidying()
        self.is_closed = False
        self.claimed: Callable[[str], str | None] = lambda _: None
        """What else has a name already, if anything does; set by a language that keeps names of its own."""
        if self._session is not None:
            try:
                self._recover(self._session)
            except BaseException:
                self._session.close()
                raise

    def mover(self) -> Move:
        """What moves stored rows to their shards when the number of these changes."""
        return move_here

    # ------------------------------------------------------------------ inputs and time

    @guarded
    def input(
        self,
        name: str,
        schema: Schema | Mapping[str, Type] | None = None,
        /,
        *,
        key: str | Sequence[str] = (),
        semantics: str = "bag",
        stream: bool = False,
        checked: bool = True,
        unique: bool = False,
        required: Sequence[str] = (),
        append: bool = False,
        shard: str | Sequence[str] = (),
        **columns: Type,
    ) -> Input:
        """A new input.

        With `semantics="bag"` rows have multiplicities; with "set" a row is there or not; with "upsert" a row replaces the
        one with the same `key`. `key` also says by which columns the input's own arrangement is ordered. With `unique` no
        two rows may have the same key: closing an epoch that would make two is refused (of a stream, which keeps nothing to
        compare with, it is believed). The columns in `required` may not be NULL. With `append` rows are never removed.
        With several workers the key decides which of them has a row; `shard` names the columns at its head that are to do so
        alone, such as the order of a line item, so that queries which join by them find rows where they need them.
        A `stream` keeps no history: a view sees its rows from the view's installation on. Closing an epoch of a bag looks
        every removed row up, to refuse the removal of one that is not there; `checked=False` trusts the caller instead, for
        unique keys too.
        """
        session = self._session
        recovered = session is not None and name in session.unclaimed
        if not recovered:
            self._check_name(name)
        declared = declare(
            name, schema, columns, key=key, semantics=semantics, stream=stream, checked=checked, unique=unique,
            required=required, append=append, shard=shard,
        )  # fmt: skip
        if session is not None and recovered:
            if session.claim(name, declared):
                return widen(self, session, self._inputs[name], declared)
            stored = self._inputs[name]
            stored.rules = replace(stored.rules, checked=checked and not stream)
            return stored
        made = self.add_input(self.input_type(self, name, declared, self._epoch))
        if session is not None:
            description = made.describe().to_json()
            session.append(Closed(self._epoch, arrangements={name: description}, lows={name: made.low}))
        return made

    def transient_input(self, name: str, schema: Schema, key: Sequence[str] = (), semantics: str = "bag") -> Input:
        """An input that a language needs for itself: no storage keeps it."""
        made = self.add_input(Input(self, name, InputDescription(schema, tuple(key), semantics), self._epoch))
        made.is_stored = False
        return made

    def add_input(self, made: Input) -> Input:
        """Let queries find an input."""
        self._inputs[made.name] = made
        names = tuple(made.schema.names[c] for c in made.columns)
        self._catalog.add(
            Entry(made.name, made.operator.fingerprint, made, made.trace, made.columns, names, made.sharded_by, None)
        )
        return made

    @property
    def session(self) -> Session | None:
        """The engine's use of its storage, if it has one."""
        return self._session

    @property
    def store(self) -> Store | None:
        """Where the engine keeps its files, if it does."""
        return None if self._session is None else self._session.keeper.store

    @property
    def epoch(self) -> int:
        """The epoch that `advance` will close next."""
        return self._epoch

    @guarded
    def advance(self, to: int | None = None, *, positions: Mapping[str, Position | None] | None = None) -> int:
        """Close the open epoch of every input (or all epochs before `to`) and bring the views up to date.

        A view that needs more than its turn goes on in the next one; the others do not wait for it. Reading a view
        completes it. Returns the new open epoch. `positions` says, by the name of a source, how far these epochs cover it
        (any dict that JSON can hold): they become durable together with the epochs, and are found in `positions` at the
        next start.
        """
        going = self.open_inputs()
        latest = max((i.low for i in going), default=self._epoch)
        target = max(latest, self._epoch) + 1 if to is None else to
        check_time(target)
        if target < latest:
            raise IncorrectError(f"cannot advance to {target}: an input has closed the epochs before {latest}")
        self.close_epochs(dict.fromkeys(going, target), positions=positions)
        return self._epoch

    @guarded
    def close_epochs(
        self,
        targets: Mapping[Input, int],
        ending: Input | None = None,
        positions: Mapping[str, Position | None] | None = None,
        known: tuple[Mark, Mark] | None = None,
    ) -> None:
        """Close some inputs' epochs together: all of them, or, if one has bad updates pending, none."""
        self._check_running()
        session = self._session
        if positions and session is None:
            raise IncorrectError("positions are kept in a storage, and this engine has none: Engine(storage=path)")
        if session is not None:
            closed = Closed(self._epoch, positions=checked_positions(positions or {}), known=known)
            session.keeper.admit()
        if sum([i.pending for i in targets]) >= allocator.BULK:
            self._tidying.soon()
        prepared = [(i, high, *i.prepare(high)) for i, high in targets.items()]
        for source, high, batches, later in prepared:
            if session is not None and source.is_stored:
                closed.rows += source.stored(batches, high)
                closed.files += source.adopted_files
                closed.lows[source.name] = high
            source.commit(high, batches, later)
            batches.clear()
            if high > self._epoch:
                self._epoch = high
        if ending is not None:
            ending.closed = True
        prepared.clear()
        if session is not None:
            if ending is not None:
                closed.arrangements[ending.name] = ending.describe().to_json()
            closed.epoch = self._epoch
            session.append(closed)
        self.run()

    def open_inputs(self) -> list[Input]:
        """The inputs that have not ended."""
        return [source for source in self._inputs.values() if not source.closed]

    def each_shard(self, work: Callable[[int, Outbox], None], rows: int) -> None:
        """Run an input's work on every shard, side by side if there are enough rows."""
        self._coordinator.executor.map(work, self.workers, rows)

    @guarded
    def run(self) -> bool:
        """Give every view one more turn; whether all of them are up to date."""
        current = self._coordinator.run()
        if current:
            self._tidying.chance()
        return current

    def settle(self) -> None:
        """Bring every view up to date, whatever time that takes."""
        while not self.run():
            pass

    @guarded
    def finish(self, view: View) -> None:
        """Bring one view up to date with the epochs that are closed."""
        # Before the first epoch closes, what is constant is there already.
        if 0 < self._epoch <= view.flow.low or self._coordinator.current(view.flow):
            return
        self._coordinator.finish(view.flow)
        self._tidying.chance()

    def run_on(self, made_from: Callable[[Executor], Executor]) -> None:
        """Run sweeps from here on by another executor, made from the present one, which it may use for what runs here."""
        executor = self._coordinator.executor = made_from(self._coordinator.executor)
        self._coordinator.watch().why = executor.why

    @property
    def progress(self) -> list[Sweep]:
        """The last sweeps: which views and shared arrangements were brought up to which epoch, of how many rows, where that ran
        and why, and how long it took. An engine without Spark takes them down from the first call on.
        """
        return list(self._coordinator.watch().sweeps)

    def on_sweep(self, listener: Callable[[Sweep], None]) -> None:
        """Call a function with each sweep when it has ended.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> engine.on_sweep(lambda sweep: print(sweep.name, sweep.low, sweep.high, sweep.rows, sweep.where))
        >>> edges = engine.input("edges", src=tk.Int, dst=tk.Int)
        >>> degrees = engine.install("degrees", edges.count(by="src"))
        >>> edges.insert([(1, 2), (1, 3), (2, 3)])
        >>> engine.advance()
        degrees 0 1 3 driver
        1
        """
        self._coordinator.watch().listeners.append(listener)

    def is_current(self, view: View) -> bool:
        """Whether a view reflects every epoch that its inputs have closed."""
        return self._coordinator.current(view.flow)

    # ------------------------------------------------------------------ storage

    @property
    def visible(self) -> int:
        """The first epoch that answers do not show: the open one."""
        return self._epoch

    @property
    def durable(self) -> int:
        """The first epoch that a crash would lose: all before it are in the storage. 0 without one."""
        return 0 if self._session is None else self._session.keeper.durable

    def sync(self, timeout: float | None = None) -> int:
        """Wait until every closed epoch is durable, for at most `timeout` seconds; the value of `durable` then. Published views
        that have fallen behind are brought up to date before.

        If the storage cannot be written, an error says why; what waits is kept in memory and tried again.
        """
        if self._session is None:
            raise IncorrectError(
                "there is nothing to wait for: this engine has no storage. Give one: Engine(storage=path)"
            )
        for view in list(self._views.values()):
            if view.publication is not None and view.failure is None:
                self.finish(view)
        self._session.keeper.sync(timeout)
        return self.durable

    @property
    def positions(self) -> dict[str, dict[str, Any]]:
        """The positions of sources as they were last given to `advance`, by this process or one before it."""
        return {} if self._session is None else dict(self._session.positions)

    def publish(self, view: View) -> Publication:
        """Store a view's contents and changes from here on; see `View.publish`."""
        if self._session is None:
            raise IncorrectError(
                f"view {view.name!r} cannot be published: this engine has no storage. Give one: Engine(storage=path)"
            )
        self.sync()
        return Publication(view, self._session)

    def _recover(self, session: Session) -> None:
        """Begin with what was found in the storage."""
        self._epoch = session.epoch
        for stored in session.inputs:
            made = self.input_type(self, stored.name, stored.description, stored.low)
            for shard, batches in enumerate(stored.shards):
                made.trace.restore(shard, batches, ((stored.low,),))
            self.add_input(made)
        session.inputs.clear()

    # ------------------------------------------------------------------ views

    @guarded
    def install(
        self,
        name: str,
        collection: Collection,
        *,
        key: str | Sequence[str] = (),
        keep: bool = True,
        on_change: Callable[[pa.Table], None] | None = None,
    ) -> View:
        """Keep a collection's contents up to date under a name. It reads the arrangements that are there already.

        `key` says by which leading columns the result is ordered, for those that will join with it. With `keep=False`
        only the changes of the result are of interest: it is not kept, and cannot be read as a snapshot. `on_change`
        is called after each sweep with a table of the changes (data columns, `time`, `diff`), the first answer included.
        """
        (view,) = self.install_together({name: collection}, {name: key}, keep, on_change)
        return view

    @guarded
    def install_together(
        self,
        collections: Mapping[str, Collection],
        keys: Mapping[str, str | Sequence[str]] | None = None,
        keep: bool = True,
        on_change: Callable[[pa.Table], None] | None = None,
    ) -> list[View]:
        """Views of several collections by one dataflow, in which what they have in common is computed once."""
        for name, collection in collections.items():
            self._check_installable(name, collection)
        leads = [collection._columns((keys or {}).get(name, ())) for name, collection in collections.items()]
        flow, arranged = self._catalog.render(", ".join(collections), [c.operator for c in collections.values()], leads)
        views: list[View] = []
        try:
            flow.settle_start()
            for (name, collection), found in zip(collections.items(), arranged, strict=True):
                view = self.view_type(self, name, collection.operator, flow, found, keep)
                views.append(view)
                if on_change is not None:
                    view.call_on_change(on_change, Changes(view, history=True))
        except BaseException:
            self._catalog.abandon(flow)
            raise
        for view in views:
            self._views[view.name] = view
            names = tuple(view.schema.names[c] for c in view.columns)
            self._catalog.add(
                Entry(
                    view.name, view.operator.fingerprint, view, view.trace, view.columns, names, view.sharded_by, None
                )
            )
        self._coordinator.add(flow)
        self._coordinator.start(flow)
        return views

    def _check_installable(self, name: str, collection: Collection) -> None:
        self._check_name(name)
        if not isinstance(collection, Collection):
            raise IncorrectError(f"install {name!r} needs a collection, not {type(collection).__name__}")
        if getattr(collection, "engine", self) is not self:
            raise IncorrectError(f"install {name!r}: the collection belongs to another engine")
        loop = collection.operator.loop
        if loop is not None:
            raise IncorrectError(f"install {name!r}: the collection belongs to loop {loop.name!r}; leave it first")

    @guarded
    def explain(self, collection: Collection) -> str:
        """How a collection would be kept up to date: join strategies and orders, and the arrangements it would read."""
        return self._catalog.explain(collection.operator)

    @guarded
    def drop(self, name: str) -> None:
        """Remove a view, and everything that only it used; or an input that nothing reads. What was stored of it goes too."""
        if name in self._inputs:
            found = self._inputs[name]
            self.forget(found, "input")
            found.release()
            del self._inputs[name]
            if self._session is not None and found.is_stored:
                self._session.unclaimed.pop(name, None)
                # Whoever declares an input of this name again begins anew, its sources included.
                self._session.append(Closed(self._epoch, arrangements={name: None}, positions={name: None}))
            return
        view = self.view(name)
        self.forget(view, "view")
        held = self.bytes
        view.release()
        del self._views[name]
        if all(other.flow is not view.flow for other in self._views.values()):
            self._coordinator.remove(view.flow)
            self._catalog.release(view.flow)
            self._catalog.renderings.release(view.definition, view.flow)
        if view.publication is not None:
            view.publication.withdraw()
        if held - self.bytes >= 8 * allocator.BULK:
            gc.collect()  # a dataflow's nodes refer to each other
            allocator.give_back()

    def forget(self, what: Input | View, kind: str) -> None:
        """Take an input or a view out of the catalog, if nobody reads it."""
        entry = next(e for e in self._catalog.entries if e.source is what)
        if entry.readers:
            raise ConflictError(
                f"cannot drop {kind} {what.name!r}: {', '.join(repr(r.name) for r in entry.readers)} read it"
            )
        self._catalog.remove(entry)

    def view(self, name: str) -> View:
        """A view by its name."""
        return named(self._views, name, "view")

    def table(self, name: str) -> Input:
        """An input by its name."""
        return named(self._inputs, name, "input")

    @property
    def views(self) -> tuple[str, ...]:
        """The names of all views."""
        return tuple(self._views)

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of all inputs."""
        return tuple(self._inputs)

    @guarded
    def hold(self, what: Input | View, at: int | None = None) -> Held:
        """Keep every time from `at` on (the last closed epoch, where left out) readable until the hold is released."""
        if not isinstance(what, Input | View):
            raise IncorrectError(f"what is held is an input or a view, not {what!r}")
        if at is not None:
            check_time(at)
        if what.is_stream:
            raise ConflictError(f"{what.name!r} keeps no history that could be held")
        since = min((t[0] for t in what.trace.since()), default=0)
        epoch = max(what.low - 1, 0) if at is None else at
        if epoch < since:
            raise IncorrectError(f"{what.name!r} can be held from time {since} on, not from {epoch}")
        return Held(Hold(what.trace, lambda: ((epoch,),)), epoch)

    @guarded
    def keep(self, collection: Collection, by: str | Sequence[str]) -> Kept:
        """Keep an arrangement of a collection, whether or not a view reads it, until it is released."""
        reader = self._catalog.new_flow(f"kept by {by}")
        lead = collection._columns(by)
        Scribe(self._catalog, reader).arrangement(collection.operator, lead, None, len(lead))
        return Kept(self._catalog, reader)

    @guarded
    def arrangements(self, of: Input | View | None = None) -> list[ArrangementInfo]:
        """Every shared arrangement, with its size and its readers; or those of one input or view."""
        found = []
        for entry in self._catalog.entries:
            if of is not None and entry.collection != of.operator.fingerprint:
                continue
            trace = entry.trace
            since = min((t[0] for t in trace.since()), default=entry.source.low)
            found.append(
                ArrangementInfo(
                    entry.name, entry.column_names, trace.rows, trace.batches, trace.bytes, since, entry.source.low,
                    tuple(sorted(reader.name for reader in entry.readers)),
                )
            )  # fmt: skip
        return found

    @property
    def generation(self) -> int:
        """Changes whenever an input or view that is there gets or loses an arrangement."""
        return self._catalog.generation

    def orders_of(self, of: Input | View) -> list[tuple[int, ...]]:
        """The orders of columns in which an input or view is arranged for everybody."""
        return self._catalog.orders_of(of.operator)

    @guarded
    def is_arranged(self, collection: Collection, by: str | Sequence[str] = ()) -> bool:
        """Whether somebody keeps an arrangement of the collection, by some columns, that can be read as it is."""
        lead = collection._columns(by)
        found = self._catalog.find(fingerprint(collection.operator), lead, None, len(lead) if lead else 1 << 30)
        return found is not None

    @guarded
    def idle(self, fuel: int = 1 << 20) -> bool:
        """Spend some work on merging and compaction; whether there is more to do. For when nothing else is."""
        return any([trace.idle(fuel) for trace in self._traces()])

    @property
    def bytes(self) -> int:
        """Memory of everything that is kept indexed: the shared arrangements, and what views keep for themselves."""
        return sum(trace.bytes for trace in self._traces())

    def _traces(self) -> list[Trace]:
        traces = {id(e.trace): e.trace for e in self._catalog.entries}
        for flow in self._coordinator.flows:
            traces |= {id(trace): trace for trace in flow.traces}
        return list(traces.values())

    def close(self) -> None:
        """Stop what feeds the engine, drop every view, make every closed epoch durable if there is a storage, and stop the
        threads.
        """
        try:
            while self.on_close:  # without the lock, which a thread that is being stopped may wait for
                self.on_close.pop(0)()
        finally:
            self._end()

    def _end(self) -> None:
        """Let go of everything, and make every closed epoch durable."""
        with self.lock:
            for view in reversed(list(self._views.values())):
                view.release()
            for flow in reversed(list(self._coordinator.flows)):
                self._coordinator.remove(flow)
            self._views.clear()
            self.is_closed = True
            self._coordinator.executor.close()
        if self._session is not None:
            self._session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ------------------------------------------------------------------ names

    def _check_running(self) -> None:
        if self.is_closed:
            raise ConflictError("the engine is closed: make another one")

    def _check_name(self, name: str) -> None:
        self._check_running()
        if not isinstance(name, str) or not name:
            raise IncorrectError(f"a name is a non-empty string, not {name!r}")
        if name in self._views or name in self._inputs:
            kind = "a view" if name in self._views else "an input"
            raise ConflictError(f"there is {kind} named {name!r} already")
        if (claim := self.claimed(name)) is not None:
            raise ConflictError(f"there is {claim} named {name!r} already")


def named(where: Mapping[str, T], name: str, kind: str) -> T:
    """What has a name, or an error that lists the names there are."""
    if name not in where:
        raise NotFoundError(f"there is no {kind} {name!r}; there are: {', '.join(map(repr, where)) or 'none'}")
    return where[name]
