"""The methods of Engine for epochs, transactions, sweeps and durability."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from tektite.blocks import safe_block
from tektite.dataflow.journal import Sweep
from tektite.engine.engine_core import EngineCore
from tektite.engine.lock import guarded_by_core
from tektite.engine.profile import Profile, profiled
from tektite.engine.session import Session, Transaction
from tektite.engine.system.spans import SpanExport
from tektite.engine.view import View
from tektite.engine.view_core import ViewCore
from tektite.errors import IncorrectError, NotFoundError
from tektite.former_names import former_name
from tektite.query.derived import check_function
from tektite.storage.open_storage import Position
from tektite.unknown_options import explains_options
from tektite.values.columns import hint

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider


@explains_options
class EpochMethods:
    """Closing epochs, transactions, bringing views up to date, and what is durable."""

    _core: EngineCore

    @property
    @guarded_by_core
    def next_epoch(self) -> int:
        """The epoch that the next commit closes. All before it can be read.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> engine.next_epoch
        0
        >>> _ = sales.insert([("north", 3), ("south", 5)])
        >>> engine.next_epoch
        1
        """
        return self._core.epoch

    @property
    @guarded_by_core
    def time(self) -> int | None:
        """The last epoch that was closed, at which everything that was committed can be read; None before the first.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> engine.time is None
        True
        >>> sales.insert([("north", 3)]) == engine.time == sales.time
        True
        """
        return self._core.epoch - 1 if self._core.epoch else None

    @property
    @former_name("engine.next_epoch")
    def epoch(self) -> int:
        """`next_epoch`, by its former name."""
        return self.next_epoch

    def advance(self, to: int | None = None, *, positions: Mapping[str, Position | None] | None = None) -> int:
        """Close the open epoch of every table (or all epochs before `to`) and bring the views up to date. In an engine that does
        not commit by itself (`autocommit=False`), it holds what was written since the last one; otherwise it lets time pass.

        A view that needs more than its turn goes on in the next one; the others do not wait for it. Reading a view
        completes it. Returns the epoch that was closed, the last one of them: the time at which what was written can be read.
        `positions` says, by the name of a source, how far these epochs cover it
        (any dict that JSON can hold): they become durable together with the epochs, and are found in `positions` at the
        next start.

        >>> import tektite as tk
        >>> engine = tk.Engine(autocommit=False)
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> sales.insert([("north", 3)])
        >>> time = engine.advance()
        >>> time, sales.rows(time)
        (0, [('north', 3)])
        """
        core = self._core
        if core.snapshots.any:
            core.check_no_transaction()
        return core.commit(core.writes, to, positions)

    def session(self) -> Session:
        """A session of its own, for a thread, a task or a connection: with it, transactions do not meet those of others.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> with engine.session() as one:
        ...     with one.transaction():
        ...         _ = sales.insert([("north", 3)])
        >>> sales.rows()
        [('north', 3)]
        """
        self._core.check_running()
        return Session(self._core)

    @safe_block
    def transaction(self) -> Iterator[Transaction]:
        """A transaction around a block of Python, SQL and Datalog. Its end commits everything in one epoch, and an exception
        rolls everything back. Inside, SQL reads what the tables held when it began, with the transaction's own writes.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> accounts = engine.create_table("accounts", {"name": tk.String, "balance": tk.Int}, mode="upsert", primary_key="name")
        >>> total = engine.sql("CREATE MATERIALIZED VIEW total AS SELECT sum(balance) AS total FROM accounts").view
        >>> with engine.transaction() as opening:
        ...     accounts.insert([("ann", 5), ("bob", 0)])
        >>> with engine.transaction() as transfer:
        ...     accounts.insert([("ann", 2)])
        ...     engine.sql("UPDATE accounts SET balance = balance + 3 WHERE name = 'bob'").message
        'UPDATE 1'
        >>> total.rows(at=transfer.time)
        [(5,)]
        """
        with self._core.sessions.current().transaction() as begun:
            yield begun

    def run(self) -> bool:
        """Give every view one more turn; whether all of them are up to date.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> totals = engine.create_view("totals", sales.group_by("shop").agg(tk.sum("amount")))
        >>> _ = sales.insert([("north", 3), ("south", 5)])
        >>> while not engine.run():
        ...     pass
        >>> totals.current
        True
        """
        return self._core.run()

    def settle(self) -> None:
        """Bring every view up to date, whatever time that takes.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> totals = engine.create_view("totals", sales.group_by("shop").agg(tk.sum("amount")))
        >>> _ = sales.insert([("north", 3), ("south", 5)])
        >>> engine.settle()
        >>> totals.current
        True
        """
        while not self.run():
            self._core.wait_for_all()
            if self._core.coordinator.absences_here():
                self._core.check_may_wait()

    def finish(self, view: View) -> None:
        """Bring one view up to date with the epochs that are closed.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> totals = engine.create_view("totals", sales.group_by("shop").agg(tk.sum("amount")))
        >>> _ = sales.insert([("north", 3), ("south", 5)])
        >>> engine.finish(totals)
        >>> totals.time
        0
        """
        core, wanted = self._core, getattr(view, "_core", None)
        if not isinstance(wanted, ViewCore):
            raise IncorrectError(f"finish takes a view, such as engine.view('name'), not {view!r}")
        if not (
            0 < core.epoch <= wanted.flow.reached and core.lock.decision is None
        ):  # most are, and then nobody is asked
            core.finish(wanted)

    @property
    def progress(self) -> list[Sweep]:
        """The last sweeps: which views and shared indexes were brought up to which epoch, of how many rows, where that ran
        and why, and how long it took.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> totals = engine.create_view("totals", sales.group_by("shop").agg(tk.sum("amount")))
        >>> _ = sales.insert([("north", 3), ("south", 5)])
        >>> _ = totals.rows()
        >>> engine.progress[-1].rows
        2
        """
        return list(self._core.coordinator.journal.sweeps)

    def on_sweep(self, listener: Callable[[Sweep], None]) -> None:
        """Call a function with each sweep when it has ended.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> engine.on_sweep(lambda sweep: print(sweep.name, sweep.first, sweep.time, sweep.rows, sweep.where))
        >>> edges = engine.create_table("edges", {"src": tk.Int, "dst": tk.Int})
        >>> degrees = engine.install("degrees", edges.count(by="src"))
        >>> _ = edges.insert([(1, 2), (1, 3), (2, 3)])
        degrees 0 0 3 driver
        """
        check_function(listener, "on_sweep")
        self._core.coordinator.journal.listeners.append(listener)

    @property
    @former_name("engine.next_epoch")
    def visible(self) -> int:
        """`next_epoch`, by a former name."""
        return self.next_epoch

    def profile(self) -> AbstractContextManager[Profile]:
        """Counts what every operator does within a block: how long it runs, and how many rows it receives and sends.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> totals = engine.create_view("totals", sales.group_by("shop").agg(tk.sum("amount")))
        >>> with engine.profile() as profile:
        ...     _ = sales.insert([("north", 3), ("south", 5)])
        >>> sum(operator.runs for operator in profile.operators) > 0
        True
        """
        return profiled(self._core)

    def export_spans(self, provider: TracerProvider | None = None) -> SpanExport:
        """Give OpenTelemetry spans of every epoch and its phases, of sweeps, installations, and requests of a server's clients,
        until `stop` of what this returns. Without a provider, the process's own one gets them. Needs `tektite[opentelemetry]`.

        >>> import tektite as tk
        >>> from opentelemetry.sdk.trace import TracerProvider
        >>> engine = tk.Engine()
        >>> spans = engine.export_spans(TracerProvider())
        >>> spans.stop()
        """
        return SpanExport(self._core, provider)

    def set_system_granularity(self, seconds: float, *relations: str) -> None:
        """Set how often views and subscriptions over system relations are brought up to date: at most once in so many seconds.
        It holds for the relations that are named, or for all. Rows that come and go in between are not told.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> engine.set_system_granularity(5, "system.work", "system.sweeps")
        """
        known = self._core.system.names()
        for name in relations:
            if name not in known:
                raise NotFoundError(f"there is no system relation {name!r}: {hint(name, sorted(known), 'relations')}")
        if not isinstance(seconds, int | float) or not 0 < seconds < math.inf:
            raise IncorrectError(f"a granularity is a positive number of seconds, not {seconds!r}")
        self._core.system.set_granularity(float(seconds), relations)

    @property
    def durable(self) -> int:
        """The first epoch that a crash would lose: all before it are in the storage. 0 without one.

        >>> import tektite as tk
        >>> import tempfile
        >>> engine = tk.Engine(storage=tempfile.mkdtemp())
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> _ = sales.insert([("north", 3), ("south", 5)])
        >>> engine.sync()
        1
        >>> engine.durable
        1
        >>> engine.close()
        """
        return self._core.durable

    def sync(self, timeout: float | None = None) -> int:
        """Wait until every closed epoch is durable, for at most `timeout` seconds; the value of `durable` then. Persisted views
        that have fallen behind are brought up to date before.

        If the storage cannot be written, an error says why; what waits is kept in memory and tried again.

        >>> import tektite as tk
        >>> import tempfile
        >>> engine = tk.Engine(storage=tempfile.mkdtemp())
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> _ = sales.insert([("north", 3), ("south", 5)])
        >>> engine.sync(timeout=60)
        1
        >>> engine.close()
        """
        return self._core.sync(timeout)

    @property
    def positions(self) -> dict[str, dict[str, Any]]:
        """The positions of sources as they were last given to `advance`, by this process or one before it.

        >>> import tektite as tk
        >>> import tempfile
        >>> engine = tk.Engine(storage=tempfile.mkdtemp(), autocommit=False)
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> sales.insert([("north", 3)])
        >>> _ = engine.advance(positions={"orders.csv": {"line": 17}})
        >>> engine.positions
        {'orders.csv': {'line': 17}}
        >>> engine.close()
        """
        storage = self._core.storage
        return {} if storage is None else dict(storage.positions)
