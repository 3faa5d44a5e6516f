"""AsyncSession: a session on a server, for programs with an event loop. Made by `tektite.connect_async`."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, Literal, Self

import pyarrow as pa

from tektite.client.absent_names import SaysWhatDoesNotTravel, ShowsWhatIsDocumented, WaitsByAsyncFor, async_block
from tektite.client.address import ServerAddress
from tektite.client.conversion import as_params, as_table
from tektite.client.link import Link
from tektite.client.relations import AsyncTable, AsyncView
from tektite.client.results import RemoteResult
from tektite.client.subscriptions import AsyncSubscription
from tektite.client_protocol import Cardinality, IfExists, Mode
from tektite.errors import ConflictError, IncorrectError, TektiteError, UnsupportedError
from tektite.unknown_options import explains_options
from tektite.values.frames import rows_given
from tektite.values.schema import Schema
from tektite.values.type_names import as_type
from tektite.wire.messages import WireMessage

_WITHIN: ContextVar[tuple[object, ...]] = ContextVar("tektite_remote_transactions", default=())
"""The transactions of whoever asks."""


SETS = re.compile(r"\s*(RE)?SET\s+(?!LOCAL\b|TRANSACTION\b)", re.IGNORECASE)
"""The beginning of a statement that sets something for the rest of a session."""


MAY_WRITE = frozenset({"sql", "prepare", "execute", "insert", "remove", "transact", "close-input", "advance"})
"""Requests that may write, which count at once where no transaction is open."""


@explains_options
class AsyncTransaction(ShowsWhatIsDocumented):
    """A transaction on a server, for a task. Made by `AsyncSession.transaction`.

    >>> import asyncio
    >>> import tektite as tk
    >>> async def main(url):
    ...     async with tk.connect_async(url) as session:
    ...         stock = await session.create_table("stock", {"item": str, "pieces": int})
    ...         async with session.transaction() as begun:
    ...             await stock.insert([("tea", 3)])
    ...             await begun.rollback()
    ...         async with session.transaction() as other:
    ...             await stock.insert([("tea", 4)])
    ...             time = await other.commit()
    ...         return begun.is_open, begun.time, await stock.rows(at=time)
    >>> with tk.Engine().console() as console:
    ...     asyncio.run(main(console.url))
    the console is at ...
    (False, None, [('tea', 4)])
    """

    _internal = frozenset({"generation", "over"})

    def __init__(self, session: AsyncSession, generation: int) -> None:
        self._session = session
        self.generation = generation
        self.time: int | None = None
        """The time at which its writes can be read, once it is committed."""
        self.over = asyncio.Event()

    @property
    def is_open(self) -> bool:
        """Whether it can still be written to, committed and rolled back."""
        return not self.over.is_set()

    async def commit(self) -> int | None:
        """Make all writes readable before the end of the block; the time at which they are. Nothing can be written behind it."""
        if not self.is_open:
            raise ConflictError("the transaction is over: it was committed or rolled back")
        await self._session.end_transaction(self, "commit")
        return self.time

    async def rollback(self) -> None:
        """Forget all writes. Harmless if the transaction is over."""
        if self.is_open:
            await self._session.end_transaction(self, "rollback")


class AsyncStatement:
    """A statement that a server has parsed, to be run with several values. Made by `AsyncSession.prepare`.

    >>> import asyncio
    >>> import tektite as tk
    >>> async def main(url):
    ...     async with tk.connect_async(url) as session:
    ...         doubled = await session.prepare("SELECT 2 * CAST($1 AS INT) AS n")
    ...         found = [(await doubled.run([number])).rows() for number in (1, 2)]
    ...         await doubled.close()
    ...         return found
    >>> with tk.Engine().console() as console:
    ...     asyncio.run(main(console.url))
    the console is at ...
    [[(2,)], [(4,)]]
    """

    def __init__(self, session: AsyncSession, name: str, text: str) -> None:
        self._session = session
        self._name = name
        self._text = text
        self._generation = -1

    async def run(self, params: Sequence[Any] | Mapping[str, Any] = (), /, **named: Any) -> RemoteResult:
        """Run it with values."""
        given = as_params(params, named)
        if self._generation != self._session.link.generation:
            await self._session.ask("prepare", {"name": self._name, "text": self._text})
            self._generation = self._session.link.generation
        return self._session.result(await self._session.ask("execute", {"name": self._name, "params": given}))

    async def close(self) -> None:
        """Have the server forget it."""
        if self._generation == self._session.link.generation:
            self._generation = -1
            await self._session.ask("deallocate", {"name": self._name})


@explains_options
class AsyncSession(WaitsByAsyncFor, SaysWhatDoesNotTravel):
    """One user's way to a server. Its methods are those of `RemoteSession`, as coroutines.

    >>> import asyncio
    >>> import tektite as tk
    >>> async def main(url):
    ...     async with tk.connect_async(url) as session:
    ...         sales = await session.create_table("sales", {"shop": str, "amount": int})
    ...         totals = await session.create_view("totals", "SELECT shop, sum(amount) AS total FROM sales GROUP BY shop")
    ...         changes = await session.subscribe("SELECT max(total) AS most FROM totals")
    ...         async with session.transaction():
    ...             await sales.insert([("north", 3), ("north", 4)])
    ...         print((await session.sql("SELECT * FROM totals")).rows(), await session.tables(), await session.views())
    ...         print((await changes.poll()).table.num_rows > 0)
    ...         await changes.close()
    ...         print(await (await session.table("sales")).count(), await (await session.view("totals")).rows())
    ...         print((await (await session.prepare("SELECT 1")).run()).rows())
    ...         await session.attribute("name", str)
    ...         await session.transact([(1, "name", "ann")])
    ...         print(await session.datalog("big(s) :- totals(s, t), t > 5."), (await session.query("big(?)")).rows())
    ...         print(await session.advance() > 0, "epoch" in await session.status())
    ...         await session.drop_view("nothing", if_exists=True)
    ...         await session.drop_table("nothing", if_exists=True)
    ...         await session.close()
    >>> with tk.Engine().console() as console:
    ...     asyncio.run(main(console.url))
    the console is at ...
    [('north', 7)] ('sales',) ('totals',)
    True
    2 [('north', 7)]
    [(1,)]
    ('big',) [('north',)]
    True True
    """

    _internal = frozenset({
        "link", "open", "ask", "result", "begin_transaction", "end_transaction", "interest", "forget", "in_background",
    })  # fmt: skip

    def __init__(self, link: Link) -> None:
        self.link = link
        self._transaction: AsyncTransaction | None = None
        self._subscriptions: dict[int, AsyncSubscription] = {}
        self._numbers = 0
        self._tasks: set[asyncio.Task[None]] = set()
        link.on_push = self._push
        link.is_followed = lambda: bool(self._subscriptions)
        link.on_connected = self._resume
        link.on_given_up = self._give_up

    @staticmethod
    async def open(
        url: str,
        *,
        user: str | None,
        password: str | None,
        token: str | None,
        ssl: Any,
        open_seconds: float,
        reconnect_seconds: float,
    ) -> AsyncSession:
        """A session that is connected."""
        found = ServerAddress.parse(url)
        address = ServerAddress(found.url, user or found.user, password if password is not None else found.password)
        session = AsyncSession(Link(address, token, ssl, open_seconds, reconnect_seconds))
        await session.link.open()
        return session

    # ------------------------------------------------------------------ requests

    async def ask(
        self, request: str, fields: dict[str, Any] | None = None, table: pa.Table | None = None
    ) -> WireMessage:
        """Send a request, and wait for its answer. While somebody else's transaction is open, it waits for its end."""
        if request in MAY_WRITE and any(
            [isinstance(one, AsyncTransaction) and one._session is self and not one.is_open for one in _WITHIN.get()]
        ):
            raise ConflictError(
                "the transaction of this block is over, committed or rolled back: write before that, or after the block"
            )
        while (begun := self._transaction) is not None and begun not in _WITHIN.get():
            await begun.over.wait()
        return await self.link.request(request, fields, table, None if begun is None else begun.generation)

    def result(self, answer: WireMessage) -> RemoteResult:
        """The result that an answer to a statement holds."""
        head = answer.head
        return RemoteResult(head.get("message", ""), answer.table, head.get("view"), head.get("time"))

    async def sql(self, text: str, params: Sequence[Any] | Mapping[str, Any] = (), /, **named: Any) -> RemoteResult:
        """Run one or several statements of SQL; the last one's result."""
        if not isinstance(text, str):
            raise IncorrectError(f"a statement of SQL is text, not {text!r}")
        found = self.result(await self.ask("sql", {"text": text, "params": as_params(params, named)}))
        self.link.settings += [part for part in text.split(";") if SETS.match(part)]
        return found

    async def prepare(self, text: str) -> AsyncStatement:
        """A statement that is run with several values."""
        self._numbers += 1
        made = AsyncStatement(self, f"s{self._numbers}", text)
        await self.ask("prepare", {"name": made._name, "text": text})
        made._generation = self.link.generation
        return made

    @async_block
    async def transaction(self) -> AsyncIterator[AsyncTransaction]:
        """A transaction around a block: committed at its end, rolled back if it raises. Others who use the session wait."""
        begun = await self.begin_transaction()
        before = _WITHIN.get()
        _WITHIN.set((*before, begun))
        try:
            try:
                yield begun
            except BaseException:
                await begun.rollback()
                raise
            if begun.is_open:
                await begun.commit()
        finally:
            _WITHIN.set(before)

    async def begin_transaction(self) -> AsyncTransaction:
        """Open a transaction."""
        while (other := self._transaction) is not None:
            if other in _WITHIN.get():
                raise ConflictError("a transaction is open in this session already: commit it or roll it back first")
            await other.over.wait()
        begun = self._transaction = AsyncTransaction(self, self.link.generation)
        try:
            await self.link.request("begin")
        except BaseException:
            self._end(begun)
            raise
        begun.generation = self.link.generation
        return begun

    async def end_transaction(self, begun: AsyncTransaction, how: Literal["commit", "rollback"]) -> None:
        """Commit a transaction, or roll it back."""
        try:
            answer = await self.link.request(how, generation=begun.generation)
            begun.time = answer.head.get("time")
        except TektiteError as error:
            if how == "commit" or error.code != "connection-lost":
                raise
        finally:
            self._end(begun)

    def _end(self, begun: AsyncTransaction) -> None:
        self._transaction = None
        begun.over.set()

    # ------------------------------------------------------------------ tables and views

    async def tables(self) -> tuple[str, ...]:
        """The names of all tables."""
        return tuple((await self.ask("relations")).head["tables"])

    async def views(self) -> tuple[str, ...]:
        """The names of all views."""
        return tuple((await self.ask("relations")).head["views"])

    async def create_table(
        self,
        name: str,
        schema: Any,
        *,
        mode: Mode = "bag",
        primary_key: str | Sequence[str] = (),
        order_by: str | Sequence[str] = (),
        required: str | Sequence[str] = (),
        if_exists: IfExists = "error",
    ) -> AsyncTable:
        """A new table; see `Engine.create_table`."""
        rows = rows_given(schema)
        columns = Schema(schema if rows is None else rows.schema)
        fields = {
            "name": name, "columns": list(columns.names), "types": [str(kind) for kind in columns.types], "mode": mode,
            "primary_key": _names(primary_key), "order_by": _names(order_by), "required": _names(required),
            "if_exists": if_exists,
        }  # fmt: skip
        sent = None if rows is None else as_table(rows, columns)
        return AsyncTable(self, (await self.ask("create-table", fields, sent)).head)

    async def create_view(
        self,
        name: str,
        query: Any,
        params: Sequence[Any] | Mapping[str, Any] = (),
        *,
        order_by: str | Sequence[str] = (),
        if_exists: IfExists = "error",
    ) -> AsyncView:
        """Keep the answer of a query of SQL up to date under a name; see `Engine.create_view`."""
        if not isinstance(query, str):
            raise UnsupportedError(
                f"view {name!r}: a query that is built in Python does not travel to a server: write it as SQL or Datalog"
            )
        fields = {
            "name": name, "query": query, "params": as_params(params, {}), "order_by": _names(order_by), "if_exists": if_exists,
        }  # fmt: skip
        return AsyncView(self, (await self.ask("create-view", fields)).head)

    async def table(self, name: str) -> AsyncTable:
        """A table by its name."""
        return AsyncTable(self, (await self.ask("describe", {"relation": name, "kind": "table"})).head)

    async def view(self, name: str) -> AsyncView:
        """A view by its name; a predicate that rules were registered for is built if nobody has asked for it yet."""
        return AsyncView(self, (await self.ask("describe", {"relation": name, "kind": "view"})).head)

    async def drop_table(self, name: str, *, if_exists: bool = False) -> None:
        """Remove a table that nothing reads."""
        await self.ask("drop", {"relation": name, "kind": "table", "if_exists": if_exists})

    async def drop_view(self, name: str, *, if_exists: bool = False) -> None:
        """Remove a view."""
        await self.ask("drop", {"relation": name, "kind": "view", "if_exists": if_exists})

    # ------------------------------------------------------------------ rules and time

    async def datalog(self, text: str, *, source: str | None = None) -> tuple[str, ...]:
        """Register rules; their predicates. With a `source`, they take the place of what was registered under that name."""
        return tuple((await self.ask("register", {"datalog": text, "name": source})).head["predicates"])

    async def query(self, text: str, arguments: Mapping[str, Any] | None = None, /, **named: Any) -> RemoteResult:
        """Answer a goal or a query of Datalog once."""
        given = as_params(dict(arguments or {}), named)
        return self.result(await self.ask("query", {"text": text, "params": given}))

    async def attribute(
        self,
        name: str,
        value: Any = None,
        *,
        cardinality: Cardinality | None = None,
        mode: Mode | None = None,
        entity: Any = int,
    ) -> None:
        """Declare an attribute of entities; see `Engine.attribute`."""
        kind = None if value is None else str(as_type(value))
        fields = {"name": name, "type": kind, "entity": str(as_type(entity)), "cardinality": cardinality, "mode": mode}
        await self.ask("create-attribute", fields)

    async def transact(self, facts: Any) -> int | None:
        """Write facts of attributes; see `Engine.transact`."""
        from tektite.wire.rows import value_as_data

        given = facts if isinstance(facts, str) else [value_as_data(list(fact)) for fact in facts]
        found: int | None = (await self.ask("transact", {"facts": given})).head["time"]
        return found

    async def advance(self, to: int | None = None) -> int:
        """Close the open epoch, or all before `to`; the last one that is closed."""
        return int((await self.ask("advance", {"to": to})).head["time"])

    async def status(self) -> dict[str, Any]:
        """The state of the server."""
        found = dict((await self.ask("status")).head)
        del found["id"]
        return found

    # ------------------------------------------------------------------ subscriptions

    async def subscribe(
        self,
        query: str,
        params: Sequence[Any] | Mapping[str, Any] = (),
        *,
        snapshot: bool | None = None,
        progress: bool = False,
        since: int | None = None,
        granularity: int | str | None = None,
    ) -> AsyncSubscription:
        """The changes of a query of SQL, which is kept up to date as long as somebody follows it."""
        options = {"snapshot": snapshot, "progress": progress, "since": since, "granularity": granularity}
        return await self.interest({"sql": query, "params": as_params(params, {})}, options)

    async def interest(self, what: dict[str, Any], options: dict[str, Any]) -> AsyncSubscription:
        """Follow something."""
        self._numbers += 1
        number = self._numbers
        made = AsyncSubscription(self, number, {**what, **options}, bool(options.get("progress")))
        self._subscriptions[number] = made
        try:
            await made.begin()
        except BaseException:
            self.forget(number)
            raise
        return made

    def forget(self, number: int) -> None:
        """A subscription is over."""
        self._subscriptions.pop(number, None)

    def _push(self, message: WireMessage) -> None:
        found = self._subscriptions.get(message.head["subscription"])
        if found is not None:
            found.arrived(message)

    def _resume(self) -> None:
        """The link is connected again: go on with every subscription."""
        for subscription in list(self._subscriptions.values()):
            if subscription.has_begun:
                self.in_background(subscription.resume())

    def _give_up(self, error: TektiteError) -> None:
        for subscription in list(self._subscriptions.values()):
            subscription.fail(error)

    def in_background(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something that nobody waits for. If the connection breaks meanwhile, the next one goes on."""

        async def run() -> None:
            try:
                await work
            except TektiteError:
                return

        task = asyncio.get_running_loop().create_task(run())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # ------------------------------------------------------------------ the end

    async def close(self) -> None:
        """End the session: its transaction, and its subscriptions. What was created stays."""
        for subscription in list(self._subscriptions.values()):
            subscription.fail(ConflictError("the session was closed"))
        await self.link.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<AsyncSession of {self.link.user!r} at {self.link.address.url}>"


def _names(given: str | Sequence[str]) -> str | list[str]:
    return given if isinstance(given, str) else list(given)
