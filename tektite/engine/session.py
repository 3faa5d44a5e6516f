"""Session: one user of an engine, such as a thread, a task or a connection. Transaction: what it reads and writes as one.

A transaction reads every table and view as of the last epoch closed before it began, plus its own writes.
Nobody else sees its writes, and no other commit includes them. Committing closes one epoch with all of them, and returns
the time at which they can be read; or it refuses, and nothing has happened. The first to commit wins: a transaction is
refused, with a `TransactionConflict`, if somebody else has since changed a row that it removes, or a key that it writes.

Every thread has a session of its own; `with session:` makes another one the current one, for the calls inside the block and in
the asynchronous task that it belongs to.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Self
from weakref import WeakSet

import numpy as np

from tektite.blocks import safe_block
from tektite.engine.input_core import InputCore
from tektite.engine.lock import EngineLock, guarded
from tektite.engine.pending_updates import PendingUpdates
from tektite.engine.read_set import ReadSet
from tektite.engine.view_core import ViewCore
from tektite.engine.write_set import WriteSet
from tektite.errors import ConflictError, TransactionConflict, UnsupportedError
from tektite.plan import algebra as plan
from tektite.plan.substitute import substitute
from tektite.plan.walk import walk
from tektite.query.collection import Collection
from tektite.storage.open_storage import Position
from tektite.unknown_options import explains_options

if TYPE_CHECKING:
    from tektite.engine.engine import Engine
    from tektite.engine.engine_core import EngineCore
    from tektite.engine.table import Table
    from tektite.sql import Result

_CURRENT: ContextVar[tuple[Session, ...]] = ContextVar("tektite_sessions", default=())
"""The sessions of `with` blocks, innermost last."""


@explains_options
class Session:
    """One user of an engine. Made by `Engine.session`.

    >>> import tektite as tk
    >>> engine = tk.Engine()
    >>> _ = engine.sql("CREATE TABLE t (x int)")
    >>> one, other = engine.session(), engine.session()
    >>> _ = one.sql("BEGIN; INSERT INTO t VALUES (1)")
    >>> other.sql("SELECT count(*) FROM t").rows()
    [(0,)]
    >>> _ = one.sql("COMMIT")
    >>> other.sql("SELECT count(*) FROM t").rows()
    [(1,)]
    """

    def __init__(self, core: EngineCore) -> None:
        self._core = core
        self._transaction: Transaction | None = None
        self.serializable: bool = False
        """Whether a transaction that writes is refused, too, if something that it has read has changed since. Then transactions
        have an effect as if they ran one after the other.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> _ = engine.sql("CREATE TABLE on_call (name varchar PRIMARY KEY)")
        >>> _ = engine.sql("INSERT INTO on_call VALUES ('ann'), ('bob')")
        >>> one, other = engine.session(), engine.session()
        >>> one.serializable = other.serializable = True
        >>> for session, name in ((one, "ann"), (other, "bob")):
        ...     _ = session.sql("BEGIN; SELECT count(*) FROM on_call")  # two: so one of them may leave
        ...     _ = session.sql(f"DELETE FROM on_call WHERE name = '{name}'")
        >>> _ = one.sql("COMMIT")
        >>> _ = other.sql("COMMIT")
        Traceback (most recent call last):
        tektite.errors.TransactionConflict: table 'on_call': what this transaction has read of it has been changed ...
        """
        self.statement_began = 0
        """The open epoch when its statement of SQL began."""
        self.statement_pause: Callable[[], None] | None = None
        """Lets others use the engine while its statement of SQL is bound, if it may."""
        self.statement_looked: bool | None = None
        """Whether its statement of SQL has brought system relations up to date; None while no statement runs."""

    @property
    def engine(self) -> Engine:
        """The engine that it is a session of.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> engine.session().engine is engine
        True
        """
        return self._core.engine

    def sql(self, text: str, params: Sequence[Any] | Mapping[str, Any] = (), /, **named: Any) -> Result:
        """Run statements of SQL in this session; see `Engine.sql`.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> _ = sales.insert([("north", 3), ("south", 5)])
        >>> engine.session().sql("SELECT * FROM sales WHERE amount > $1", [3]).rows()
        [('south', 5)]
        """
        with self:
            return self._core.engine.sql(text, params, **named)

    @safe_block
    def transaction(self) -> Iterator[Transaction]:
        """A transaction around a block: committed at its end, rolled back if it raises; see `Engine.transaction`.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> session = engine.session()
        >>> with session.transaction() as transaction:
        ...     _ = sales.insert([("north", 3)])
        >>> transaction.time, sales.rows()
        (1, [('north', 3)])
        """
        self._core.check_running()
        self._check_none_open()  # what is open from here on belongs to the block
        depth = _CURRENT.get().count(self)
        try:
            try:
                self.__enter__()
                begun = self.begin()
                begun.block = self
                yield begun
                begun.block = None
                if begun.is_open:
                    begun.commit()
            finally:
                self._leave(depth)
        finally:  # an interrupt may have ended the first attempt
            self._leave(depth)

    def _leave(self, depth: int) -> None:
        """Leave the block of a transaction, which may still be open. May be repeated. `depth` is how often the session was
        entered around the block.
        """
        if (left := self.open_transaction) is not None:
            left.block = None
            left.rollback()
        self._core.sessions.over.discard(self)
        if _CURRENT.get().count(self) > depth:
            self.__exit__()

    def begin(self, *, serializable: bool | None = None, read_only: bool = False) -> Transaction:
        """Begin a transaction. It is over when it is committed or rolled back. `serializable` is the session's unless it is
        given; one that is `read_only` refuses writes.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> session = engine.session()
        >>> transaction = session.begin()
        >>> with session:
        ...     _ = sales.insert([("north", 3)])
        >>> len(sales)
        0
        >>> time = transaction.commit()
        >>> len(sales)
        1
        """
        self._core.check_running()
        self._check_none_open()
        is_serializable = self.serializable if serializable is None else serializable
        self._transaction = begun = Transaction(self._core, ReadSet() if is_serializable else None)
        begun.read_only = read_only
        return begun

    def _check_none_open(self) -> None:
        if self.open_transaction is not None:
            raise ConflictError("a transaction is open in this session already: commit it or roll it back first").about(
                condition="active-sql-transaction"
            )

    @property
    def open_transaction(self) -> Transaction | None:
        """The transaction that is open, if one is.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> session = engine.session()
        >>> session.open_transaction is None
        True
        >>> transaction = session.begin()
        >>> session.open_transaction is transaction
        True
        """
        found = self._transaction
        return found if found is not None and found.is_open else None

    def close(self) -> None:
        """Roll back the transaction that is open, if one is.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> session = engine.session()
        >>> transaction = session.begin()
        >>> session.close()
        >>> transaction.is_open
        False
        """
        if self._transaction is not None:
            self._transaction.rollback()

    def __enter__(self) -> Self:
        _CURRENT.set((*_CURRENT.get(), self))
        return self

    def __exit__(self, *_: object) -> None:
        entered = _CURRENT.get()
        last = max(at for at, session in enumerate(entered) if session is self)
        _CURRENT.set((*entered[:last], *entered[last + 1 :]))


class Sessions:
    """The sessions of one engine: one for each thread, and those of `with` blocks."""

    def __init__(self, core: EngineCore) -> None:
        self._core = core
        self._by_thread = threading.local()
        self.over: set[Session] = set()
        """Sessions in the block of a transaction that was committed or rolled back within the block."""

    def current(self) -> Session:
        """The session of the innermost `with` block, or else of the calling thread."""
        for session in reversed(_CURRENT.get()):
            if session._core is self._core:
                return session
        found = getattr(self._by_thread, "session", None)
        if found is None:
            found = self._by_thread.session = Session(self._core)
        assert isinstance(found, Session)
        return found

    def check_not_over(self) -> None:
        """Refuse to write in the block of a transaction that is over: it would count at once, by itself."""
        if self.current() in self.over:
            raise ConflictError(
                "the transaction of this block is over, committed or rolled back: write before that, or after the block"
            )

    @property
    def transaction(self) -> Transaction | None:
        """The transaction that is open in the current session, if one is."""
        return self.current().open_transaction if self._core.snapshots.any else None


class Snapshots:
    """The epochs that open transactions read, which history must stay readable for."""

    def __init__(self) -> None:
        self._open: WeakSet[Transaction] = WeakSet()
        self.any = False
        """Whether there may be open transactions."""

    def add(self, transaction: Transaction) -> None:
        """Keep the epoch of a transaction readable."""
        self._open.add(transaction)
        self.any = True

    def remove(self, transaction: Transaction) -> None:
        """A transaction is over. May be repeated."""
        self._open.discard(transaction)
        self.any = bool(self._open)

    def writes(self) -> list[WriteSet]:
        """The write sets of open transactions."""
        return [each.writes for each in list(self._open)] if self.any else []

    def earliest(self) -> int | None:
        """The earliest epoch that a transaction reads; None without one."""
        if not self.any:
            return None
        self.any = bool(self._open)
        return min([each.epoch for each in self._open], default=None)


@explains_options
class Transaction:
    """The reads and writes of a session that take effect together. Made by `Engine.transaction`.

    >>> import tektite as tk
    >>> engine = tk.Engine()
    >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
    >>> with engine.transaction() as transaction:
    ...     _ = sales.insert([("north", 3)])
    ...     _ = engine.sql("INSERT INTO sales VALUES ('south', 5)")
    >>> transaction.time, sorted(sales.rows())
    (1, [('north', 3), ('south', 5)])
    """

    def __init__(self, core: EngineCore, reads: ReadSet | None = None) -> None:
        self._core = core
        self.writes = WriteSet()
        """What it has written."""
        self.is_open = True
        """Whether it can still be written to and committed."""
        self.block: Session | None = None
        """The session whose `with` block it is the transaction of, while that runs."""
        self.epoch: int
        """The epoch that it reads."""
        self.time: int | None = None
        """The time at which its writes can be read, once it is committed."""
        self.reads = reads
        """What it has read, if a commit of writes is to be refused where that would be read otherwise by then."""
        self.read_only = False
        """Whether it refuses writes."""
        self.has_queried = False
        """Whether a statement of SQL has run in it, other than one that sets something."""
        self.positions: dict[str, Position | None] = {}
        """How far its writes cover sources, by name; see `Engine.advance`. They become durable with the writes."""
        with core.lock.held:
            core.lock.roll_forward()
            # Before any epoch has closed there is nothing to read: that of empty tables is the first.
            if not core.epoch:
                core.commit(WriteSet())
            self.epoch = core.epoch - 1
            core.snapshots.add(self)
            self._changes = core.changes
            self._behind = {source: source.low - 1 for source in core.open_inputs() if source.low <= self.epoch}

    def __repr__(self) -> str:
        if self.is_open:
            return f"<Transaction, open, reads time {self.epoch}>"
        return "<Transaction, rolled back>" if self.time is None else f"<Transaction, committed at time {self.time}>"

    @property
    def lock(self) -> EngineLock:
        """The engine's, which guards everything that changes it."""
        return self._core.lock

    # ------------------------------------------------------------------ writing

    @guarded
    def write(self, source: InputCore, write: Callable[[WriteSet], None]) -> None:
        """Let a function write to a table. What breaks the table's declaration is refused at once, and a call that fails leaves
        everything as it was.
        """
        self._check_open()
        self.check_writable(f"a write to table {source.name!r}")
        before = list(self.writes.updates.get(source, ()))
        try:
            write(self.writes)
            source.prepare(source.low + 1, self.writes, self.epoch)
        except BaseException:
            self.writes.updates[source] = PendingUpdates(source.update_shape, before, source.engine.memory)
            raise

    @guarded
    def mark(self) -> dict[InputCore, PendingUpdates]:
        """The updates written so far, to `return_to` later.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> with engine.transaction() as transaction:
        ...     _ = sales.insert([("north", 3)])
        ...     mark = transaction.mark()
        ...     _ = sales.insert([("south", 5)])
        ...     transaction.return_to(mark)
        >>> sales.rows()
        [('north', 3)]
        """
        self._check_open()
        return {source: PendingUpdates(source.update_shape, list(rows)) for source, rows in self.writes.updates.items()}

    @guarded
    def return_to(self, mark: dict[InputCore, PendingUpdates]) -> None:
        """Forget what was written since a mark was made.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> with engine.transaction() as transaction:
        ...     mark = transaction.mark()
        ...     _ = sales.insert([("south", 5)])
        ...     transaction.return_to(mark)
        >>> sales.rows()
        []
        """
        self._check_open()
        self.writes.updates = {source: PendingUpdates(source.update_shape, list(rows)) for source, rows in mark.items()}

    def changes(self, table: Table) -> bool:
        """Whether something was written to a table.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> with engine.transaction() as transaction:
        ...     print(transaction.changes(sales))
        ...     _ = sales.insert([("south", 5)])
        ...     print(transaction.changes(sales))
        False
        True
        """
        return self.writes.rows(table._core) > 0

    def forget(self, source: InputCore) -> None:
        """Drop what was written to one table."""
        self.writes.forget(source)

    @guarded
    def commit(self) -> int:
        """Make all writes visible in one epoch; the time at which they can be read. If they are refused, the transaction is over
        and nothing has happened.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> with engine.transaction() as transaction:
        ...     _ = sales.insert([("south", 5)])
        ...     time = transaction.commit()
        >>> sales.rows(time)
        [('south', 5)]
        """
        self._check_open()
        if self.reads is not None:
            self._core.wait_for_all()  # before anything is checked
            self._check_open()
        try:
            for source in list(self.writes.updates):
                self._check_conflict(source)
            self._check_reads()
            self.time = self._core.commit(self.writes, positions=self.positions)
        finally:
            self._end()
        return self.time

    @guarded
    def rollback(self) -> None:
        """Forget all writes. Harmless if the transaction is over.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> with engine.transaction() as transaction:
        ...     _ = sales.insert([("south", 5)])
        ...     transaction.rollback()
        >>> sales.rows()
        []
        """
        self._end()

    def _end(self) -> None:
        self.is_open = False
        if self.block is not None:
            self._core.sessions.over.add(self.block)
        self._core.snapshots.remove(self)
        self.writes = WriteSet()

    def check_writable(self, what: str) -> None:
        """Refuse something that writes, if the transaction is to read only.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> session = engine.session()
        >>> with session:
        ...     transaction = session.begin(read_only=True)
        ...     _ = sales.insert([("north", 3)])
        Traceback (most recent call last):
        tektite.errors.ConflictError: a write cannot be part of a read-only transaction: end it, and begin another one
        """
        if self.read_only:
            error = ConflictError(f"{what} cannot be part of a read-only transaction: end it, and begin another one")
            error.details["sqlstate"] = "25006"
            raise error

    def _check_open(self) -> None:
        if not self.is_open:
            raise ConflictError("the transaction is over: it was committed or rolled back")

    def _check_conflict(self, source: InputCore) -> None:
        """Refuse writes to what others have changed since the transaction began."""
        if not self.writes.rows(source):
            return
        if source.closed or self._core.inputs.get(source.name) is not source:
            raise ConflictError(
                f"table {source.name!r} was closed or dropped since the transaction wrote to it. Nothing was written"
            )
        if source.change_number <= self._changes:
            return
        common = source.changed_since(self._behind.get(source, self.epoch), self.writes.of(source))
        if common:
            what = (
                "rows that this transaction removes"
                if source.semantics == "bag"
                else "keys that this transaction writes"
            )
            raise TransactionConflict(
                f"table {source.name!r}: {common} of the {what} have been changed by another one since it began (as of time "
                f"{self.epoch}). Nothing was written; run it again"
            )

    def _check_reads(self) -> None:
        """Refuse writes that follow from what others have changed since."""
        if self.reads is None or not any(self.writes.rows(source) for source in self.writes.updates):
            return
        with self._core.undisturbed():  # without waiting: `commit` has
            changed = self.reads.changed(self._core, self._changes)
        if changed is not None:
            raise TransactionConflict(
                f"table {changed!r}: what this transaction has read of it has been changed by another one since it began (as of "
                f"time {self.epoch}). Nothing was written; run it again"
            )

    # ------------------------------------------------------------------ reading

    def seen(self, collection: Collection) -> Collection:
        """A collection as the transaction sees it, with its own writes, to be read as of its epoch."""
        reads: dict[Any, plan.Operator] = {}

        def other(read: plan.Read) -> plan.Operator:
            source = read.readable
            if source not in reads:
                reads[source] = self._seen(read, other)
            return reads[source]

        operator = substitute(collection.operator, other)
        return collection if operator is collection.operator else Collection(self._core.engine, operator)

    def _seen(self, read: plan.Read, other: Any) -> plan.Operator:
        """The operator to read in place of a source. A stream has no past: a new reader of it sees no changes."""
        source = read.readable
        if source.is_stream:
            return read
        if isinstance(source, ViewCore):
            definition = substitute(source.definition, other)
            if definition is source.definition:
                return read
            for part in walk([source.definition]):
                if isinstance(part, plan.Read) and part.readable.is_stream:
                    raise UnsupportedError(
                        f"view {source.name!r} reads the stream {part.readable.name!r}, which keeps no past, and something that "
                        "this transaction has written: read it after the commit"
                    )
            return definition
        if not isinstance(source, InputCore) or not self.writes.rows(source):
            return read
        words, diffs = source.changes_by(self.writes, self.epoch)
        gained, lost = (np.repeat(words, np.maximum(by, 0), axis=1) for by in (diffs, -diffs))
        parts: list[plan.Operator] = [read]
        if gained.shape[1]:
            parts.append(plan.Rows(read.schema, gained))
        if lost.shape[1]:
            parts.append(plan.Negate(read.schema, plan.Rows(read.schema, lost)))
        return plan.Concat(read.schema, tuple(parts)) if len(parts) > 1 else read
