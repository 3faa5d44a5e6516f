"""ClientSession: one client's way to the engine, whatever protocol it speaks: statements, a transaction, time limits, cancelling.

A session runs one statement at a time. Outside of a transaction block a statement is a transaction of its own. Once a statement
of a block has failed, the block takes nothing but its end, as in PostgreSQL. A write is acknowledged when it can be read by
everybody and, with a storage, survives the process.
"""

from __future__ import annotations

import asyncio
import datetime
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from tektite.engine.core import core_of
from tektite.engine.hooks import ServedRequest
from tektite.errors import ConflictError, TektiteError
from tektite.server.rights import SessionRights
from tektite.server.work import CallCancelled, CancellableCall
from tektite.sql import Result, runner
from tektite.sql.parse import parser
from tektite.sql.parse.transaction_modes import ANY_MODES, TransactionModes
from tektite.sql.statements.describe import Description, describe
from tektite.sql.statements.direct import LookupByKey, RowInsert, key_lookup, row_insert
from tektite.sql.statements.transactions import begin_with

if TYPE_CHECKING:
    from tektite.engine.table import Table
    from tektite.engine.view import View
    from tektite.server.epochs import Done
    from tektite.server.server import Server
    from tektite.values.types import Type

T = TypeVar("T")

READS = (parser.Explain, parser.Show)


class StatementCancelled(TektiteError):
    """A statement was ended before it was done: by its user, by a time limit, or because the server stops."""

    code = "cancelled"


class FailedTransaction(ConflictError):
    """A statement of the transaction block has failed, and the block has not been ended."""

    code = "failed-transaction"


SHOWN = 1000
"""Characters of a running statement that others are shown."""
SHORT = 1000
"""Characters up to which a text is read in the event loop, which takes some milliseconds at most."""


class Activity(NamedTuple):
    """A statement or request that is carried out."""

    text: str
    since: datetime.datetime


def now() -> datetime.datetime:
    """The present time, as system relations show it."""
    return datetime.datetime.now(datetime.UTC)


@dataclass
class KnownStatement:
    """A statement that was parsed, and may be run with several values."""

    text: str
    statement: parser.Statement | None
    """None for a text without any."""
    description: Description = field(default_factory=lambda: Description({}, None))
    insert: RowInsert | None = None
    """Its insert, if it inserts given rows."""
    lookup: LookupByKey | None = None
    """Its look-up, if it selects rows by a key."""

    @property
    def is_read(self) -> bool:
        """Whether running it changes nothing, so that it may be run before it is asked for."""
        from sqlglot import exp

        found = self.statement
        if isinstance(found, parser.Plain):
            return isinstance(found.tree, exp.Query | exp.Values)
        return isinstance(found, READS)


class StatementsOfText(NamedTuple):
    """The statements of a text, up to a mistake in it, if there is one."""

    statements: list[parser.Statement]
    mistake: TektiteError | None

    @staticmethod
    def read(text: str) -> StatementsOfText:
        """Parse a text."""
        found: list[parser.Statement] = []
        try:
            found.extend(parser.parse(text))
        except TektiteError as error:
            return StatementsOfText(found, error)
        return StatementsOfText(found, None)


class ClientSession:
    """One client's session."""

    def __init__(self, server: Server, user: str, protocol: str, address: str) -> None:
        server.users.admit(user)  # first: who is refused leaves nothing behind
        self._is_admitted = True
        self.server = server
        self.number = next(core_of(server.engine).hooks.client_numbers)
        self.user = user
        self.protocol = protocol
        self.address = address
        self.since = now()
        self.subscriptions = 0
        self.activity: Activity | None = None
        """The statement that is running."""
        self.engine_session = server.engine.session()
        self.engine_session.serializable = True
        self.settings = runner(server.engine).settings_of(self.engine_session)
        self.settings.user = self.settings.login = user
        self.settings.is_trusted = not server.users.are_configured
        self.rights = SessionRights(self)
        server.sessions.add(self)
        self.has_failed = False
        self._running: CancellableCall[Any] | None = None
        self._waiting: asyncio.Future[Any] | None = None
        self._cancelled_by = ""

    @property
    def statement_seconds(self) -> float:
        """After how many seconds a statement is ended; 0 is never."""
        most, wanted = self.server.plan.limits.statement_seconds, self.settings.statement_seconds
        return min(wanted, most) if wanted and most else wanted or most

    @contextmanager
    def doing(self, text: str) -> Iterator[None]:
        """Say that a statement or request is carried out in this block."""
        before, begun = self.activity, Activity(text[:SHOWN], now())
        self.activity = begun
        hooks, error, began = core_of(self.server.engine).hooks, None, time.perf_counter()
        try:
            yield
        except BaseException as failed:
            error = f"{type(failed).__name__}: {failed}"
            raise
        finally:
            self.activity = before
            if hooks.requested:
                seconds = time.perf_counter() - began
                at = begun.since.timestamp()
                request = ServedRequest(begun.text, self.user, self.protocol, self.address, at, seconds, error)
                for heard in list(hooks.requested):
                    heard(request)

    # ------------------------------------------------------------------ transactions

    @property
    def is_in_transaction(self) -> bool:
        """Whether a transaction block is open, failed or not."""
        return self.has_failed or self.engine_session.open_transaction is not None

    def begin(self, modes: TransactionModes = ANY_MODES) -> None:
        """Open a transaction block."""
        self.check_not_failed()
        begin_with(self.engine_session, modes)

    def check_not_failed(self) -> None:
        """Refuse whatever is not the end of a block that has failed."""
        if self.has_failed:
            raise FailedTransaction("a statement of this transaction has failed: end it by ROLLBACK")

    def fail(self) -> None:
        """A statement has failed: an open block with it."""
        if self.engine_session.open_transaction is not None:
            self.has_failed = True

    async def commit(self) -> bool:
        """End the block; whether what it wrote counts. That of one that has failed does not."""
        transaction = self.engine_session.open_transaction
        if self.has_failed or transaction is None:
            await self.rollback()
            return False
        await self.call(transaction.commit)
        await self.until_durable()
        return True

    async def rollback(self) -> None:
        """End the block and forget what it wrote."""
        self.has_failed = False
        transaction = self.engine_session.open_transaction
        if transaction is not None:
            await self.call(transaction.rollback)

    # ------------------------------------------------------------------ statements

    async def prepare(self, text: str, declared: Mapping[str, Type], described: bool) -> KnownStatement:
        """Parse a text of at most one statement and, if asked for, find out what it takes and gives."""
        found, mistake = await self.statements(text)
        if mistake is not None:
            raise mistake
        if len(found) > 1:
            raise found[1].source.error("a prepared statement is one statement: these are several", found[1].start)
        if not found:
            return KnownStatement(text, None)
        if not described:
            return KnownStatement(text, found[0])
        return await self.call(lambda: self._described(text, found[0], declared))

    async def statements(self, text: str) -> StatementsOfText:
        """The statements of a text."""
        return await self.read(text, lambda: StatementsOfText.read(text))

    def _described(self, text: str, statement: parser.Statement, declared: Mapping[str, Type]) -> KnownStatement:
        sql = runner(self.server.engine)
        found = describe(sql, statement, declared)
        insert, lookup = row_insert(sql, statement, found.parameters), key_lookup(sql, statement, found.parameters)
        return KnownStatement(text, statement, found, insert, lookup)

    def insert_at_once(self, known: KnownStatement, values: Mapping[str, Any], done: Done) -> bool:
        """Insert the rows of a statement in the next epoch that clients share, if it is such a statement and no block is open;
        whether it is. `done` is called when that has happened, with what went wrong.
        """
        insert = known.insert
        if insert is None or self.is_in_transaction or self.server.is_stopping:
            return False
        if not insert.stands(runner(self.server.engine)) or not self._may("INSERT", insert.table):
            return False
        self.server.epochs.insert(insert.source, insert.rows(values), done)
        return True

    def look_up_at_once(self, known: KnownStatement, values: Mapping[str, Any]) -> list[tuple[Any, ...]] | None:
        """The rows of a statement that looks up a key, if it is one and the engine is free; else None."""
        lookup = known.lookup
        if lookup is None or self.is_in_transaction or not self._may("SELECT", lookup.found):
            return None
        core = core_of(self.server.engine)
        held = core.lock.held
        if not held.acquire(blocking=False):
            return None
        try:
            core.lock.roll_forward()
            return lookup.rows(values) if lookup.stands(runner(self.server.engine)) else None
        finally:
            held.release()

    def _may(self, privilege: str, found: Table | View) -> bool:
        """Whether the user may read or write a relation without a plan. Whoever may not is told so by the planned statement."""
        access = runner(self.server.engine).access
        if privilege == "SELECT" and runner(self.server.engine).allowed_to(self.settings.user).rows is not None:
            return False  # rows are counted where they are computed
        return access.allows_directly(access.who_is(self.settings), privilege, found)

    async def run(self, known: KnownStatement, values: Mapping[str, Any]) -> Result:
        """Run a statement with values for its parameters."""
        self.check_not_failed()
        statement = known.statement
        assert statement is not None
        if not known.is_read:
            self.server.check_accepts_writes()
        try:
            result = await self.call(lambda: self.server.catalog.run(statement, values))
            if not known.is_read and self.engine_session.open_transaction is None:
                await self.until_durable()
        except BaseException:
            self.fail()
            raise
        return result

    async def read(self, text: str, reader: Callable[[], T]) -> T:
        """Call a reader of a text and return its result. A long text is read in a worker without the engine's lock, so that
        others do not wait for it. Raises when the statement is cancelled or takes too long.
        """
        return reader() if len(text) <= SHORT else await self.call_unlocked(reader)

    async def call(self, function: Callable[[], T]) -> T:
        """Call a function in a worker, in this session, with the engine's lock held; until it is cancelled or takes too long."""
        core = core_of(self.server.engine)

        def work() -> T:
            with self.engine_session, core.lock.held:
                core.lock.roll_forward()
                return function()

        return await self.call_unlocked(work)

    async def call_unlocked(self, function: Callable[[], T]) -> T:
        """Call a function in a worker, until it is cancelled or takes too long."""
        running = self._running = CancellableCall(function)
        self._cancelled_by = ""
        timer = None
        seconds = self.statement_seconds
        if seconds:
            reason = f"it took longer than the limit of {seconds:g} seconds"
            timer = asyncio.get_running_loop().call_later(seconds, self.cancel, reason)
        try:
            return await self.server.workers.start(running)
        except CallCancelled:
            raise StatementCancelled(f"the statement was cancelled: {self._cancelled_by}") from None
        finally:
            self._running = None
            if timer is not None:
                timer.cancel()

    async def wait(self, awaited: Awaitable[T]) -> T:
        """Wait for something that takes no worker, until it is cancelled."""
        task: asyncio.Future[T] = asyncio.ensure_future(awaited)
        self._waiting = task
        self._cancelled_by = ""
        try:
            return await task
        except asyncio.CancelledError:
            if not self._cancelled_by:
                task.cancel()
                raise
            raise StatementCancelled(f"the statement was cancelled: {self._cancelled_by}") from None
        finally:
            self._waiting = None

    def cancel(self, reason: str = "its user asked for that") -> None:
        """End the statement that runs, if one does."""
        if self._running is not None:
            self._cancelled_by = reason
            self._running.cancel()
        elif self._waiting is not None:
            self._cancelled_by = reason
            self._waiting.cancel()

    async def until_durable(self) -> None:
        """Wait until all that was written before is durable, if there is a storage and the session wants that."""
        if self.settings.waits_for_storage:
            await self.server.epochs.until_durable()

    def close(self) -> None:
        """End the session, and what it runs; what its transaction wrote is forgotten."""
        self.cancel("its client has gone")
        self.server.sessions.discard(self)
        if self._is_admitted:
            self._is_admitted = False
            self.server.users.left(self.user)
        self.server.release(self.engine_session.close)
