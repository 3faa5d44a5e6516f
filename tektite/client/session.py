"""RemoteSession: a session on a server, for programs without an event loop. Made by `tektite.connect`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, Self

from tektite.blocks import safe_block
from tektite.client.absent_names import SaysWhatDoesNotTravel
from tektite.client.async_session import _WITHIN, AsyncSession, AsyncStatement, AsyncTransaction
from tektite.client.event_loop import BackgroundLoop
from tektite.client.results import RemoteResult
from tektite.client.tables import RemoteSubscription, RemoteTable, RemoteView
from tektite.client_protocol import Cardinality, IfExists, Mode
from tektite.errors import IncorrectError
from tektite.refused_operators import NamesAlone
from tektite.unknown_options import explains_options


class RemoteStatement:
    """A statement that a server has parsed, to be run with several values, by a call. Made by `RemoteSession.prepare`.

    >>> import tektite as tk
    >>> with tk.Engine().console() as console, tk.connect(console.url) as session:
    ...     doubled = session.prepare("SELECT 2 * CAST($1 AS INT) AS n")
    ...     print(doubled([1]).rows(), doubled([2]).rows())
    ...     doubled.close()
    the console is at ...
    [(2,)] [(4,)]
    """

    def __init__(self, loop: BackgroundLoop, made: AsyncStatement) -> None:
        self._loop = loop
        self._made = made

    def __call__(self, params: Sequence[Any] | Mapping[str, Any] = (), /, **named: Any) -> RemoteResult:
        return self._loop.run(self._made.run(params, **named))

    def close(self) -> None:
        """Have the server forget it."""
        self._loop.run(self._made.close())


@explains_options
class RemoteTransaction:
    """A transaction on a server. Made by `RemoteSession.transaction`.

    >>> import tektite as tk
    >>> engine = tk.Engine()
    >>> with engine.console() as console, tk.connect(console.url) as session:
    ...     stock = session.create_table("stock", {"item": str, "pieces": int})
    ...     with session.transaction() as begun:
    ...         _ = stock.insert([("tea", 3)])
    ...     print(stock.rows(at=begun.time))
    ...     with session.transaction() as other:
    ...         _ = stock.insert([("tea", 4)])
    ...         other.rollback()
    ...     print(stock.rows(), other.is_open)
    ...     with session.transaction() as third:
    ...         _ = stock.remove([("tea", 3)])
    ...         time = third.commit()
    ...     print(stock.rows(at=time))
    the console is at ...
    [('tea', 3)]
    [('tea', 3)] False
    []
    """

    def __init__(self, loop: BackgroundLoop, made: AsyncTransaction) -> None:
        self._loop = loop
        self._made = made

    @property
    def time(self) -> int | None:
        """The time at which its writes can be read, once it is committed."""
        return self._made.time

    @property
    def is_open(self) -> bool:
        """Whether it can still be written to, committed and rolled back."""
        return self._made.is_open

    def commit(self) -> int | None:
        """Make all writes readable before the end of the block; the time at which they are. Nothing can be written behind it."""
        return self._loop.run(self._made.commit())

    def rollback(self) -> None:
        """Forget all writes. Harmless if the transaction is over."""
        self._loop.run(self._made.rollback())


@explains_options
class RemoteSession(SaysWhatDoesNotTravel):
    """One user's way to a server, with the words of `Engine`. Threads may share it: while one has a transaction open, the others
    wait.

    Closing it ends this user's part; tables and views stay for the others.

    >>> import tektite as tk
    >>> console = tk.Engine().console()
    the console is at ...
    >>> session = tk.connect(console.url)
    >>> sales = session.create_table("sales", {"shop": str, "amount": int})
    >>> totals = session.create_view("totals", "SELECT shop, sum(amount) AS total FROM sales GROUP BY shop")
    >>> with session.transaction():
    ...     _ = sales.insert([("north", 3)])
    ...     _ = session.sql("INSERT INTO sales VALUES ('north', $1)", [4])
    >>> session.tables, session.views, session.table("sales").rows(), session.view("totals").rows()
    (('sales',), ('totals',), [('north', 3), ('north', 4)], [('north', 7)])
    >>> session.prepare("SELECT amount FROM sales WHERE amount > $1")([3]).rows()
    [(4,)]
    >>> with session.subscribe("SELECT max(total) AS most FROM totals") as changes:
    ...     changes.poll().table.to_pylist()
    [{'most': 7, 'diff': 1}]
    >>> session.datalog("big(s) :- totals(s, t), t > 5."), session.query("big(?)").rows()
    (('big',), [('north',)])
    >>> session.attribute("name", str)
    >>> time = session.transact([(1, "name", "ann")])
    >>> session.advance() > time, "epoch" in session.status()
    (True, True)
    >>> session.drop_view("nothing", if_exists=True)
    >>> session.drop_table("nothing", if_exists=True)
    >>> session.close()
    >>> console.close()
    """

    def __init__(self, loop: BackgroundLoop, made: AsyncSession) -> None:
        self._loop = loop
        self._made = made

    # ------------------------------------------------------------------ tables and views

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of all tables."""
        return NamesAlone(self._loop.run(self._made.tables()))

    @property
    def views(self) -> tuple[str, ...]:
        """The names of all views."""
        return NamesAlone(self._loop.run(self._made.views()))

    def create_table(
        self,
        name: str,
        schema: Any,
        *,
        mode: Mode = "bag",
        primary_key: str | Sequence[str] = (),
        order_by: str | Sequence[str] = (),
        required: str | Sequence[str] = (),
        if_exists: IfExists = "error",
    ) -> RemoteTable:
        """A new table; see `Engine.create_table`."""
        work = self._made.create_table(
            name, schema, mode=mode, primary_key=primary_key, order_by=order_by, required=required, if_exists=if_exists
        )
        return RemoteTable(self._loop, self._loop.run(work))

    def create_view(
        self,
        name: str,
        query: Any,
        params: Sequence[Any] | Mapping[str, Any] = (),
        *,
        order_by: str | Sequence[str] = (),
        if_exists: IfExists = "error",
    ) -> RemoteView:
        """Keep the answer of a query of SQL up to date under a name; see `Engine.create_view`. A query that is built in Python
        does not travel.
        """
        work = self._made.create_view(name, query, params, order_by=order_by, if_exists=if_exists)
        return RemoteView(self._loop, self._loop.run(work))

    def table(self, name: str) -> RemoteTable:
        """A table by its name."""
        return RemoteTable(self._loop, self._loop.run(self._made.table(name)))

    def view(self, name: str) -> RemoteView:
        """A view by its name; a predicate that rules were registered for is built if nobody has asked for it yet."""
        return RemoteView(self._loop, self._loop.run(self._made.view(name)))

    def drop_table(self, name: str, *, if_exists: bool = False) -> None:
        """Remove a table that nothing reads."""
        self._loop.run(self._made.drop_table(name, if_exists=if_exists))

    def drop_view(self, name: str, *, if_exists: bool = False) -> None:
        """Remove a view."""
        self._loop.run(self._made.drop_view(name, if_exists=if_exists))

    # ------------------------------------------------------------------ statements

    def sql(self, text: str, params: Sequence[Any] | Mapping[str, Any] = (), /, **named: Any) -> RemoteResult:
        """Run one or several statements of SQL; the last one's result. `params` are as for `Engine.sql`."""
        return self._loop.run(self._made.sql(text, params, **named))

    def prepare(self, text: str) -> RemoteStatement:
        """A statement that is called with several values, as in `statement([1])`."""
        return RemoteStatement(self._loop, self._loop.run(self._made.prepare(text)))

    @safe_block
    def transaction(self) -> Iterator[RemoteTransaction]:
        """A transaction around a block: committed at its end, rolled back if it raises. Other threads of the session wait."""
        begun = self._loop.run(self._made.begin_transaction())
        before = _WITHIN.get()
        _WITHIN.set((*before, begun))
        try:
            try:
                yield RemoteTransaction(self._loop, begun)
            except BaseException:
                self._loop.run(begun.rollback())
                raise
            if begun.is_open:
                self._loop.run(begun.commit())
        finally:
            _WITHIN.set(before)

    def subscribe(
        self,
        query: str,
        params: Sequence[Any] | Mapping[str, Any] = (),
        *,
        snapshot: bool | None = None,
        progress: bool = False,
        since: int | None = None,
        granularity: int | str | None = None,
    ) -> RemoteSubscription:
        """The changes of a query of SQL, which is kept up to date as long as somebody follows it."""
        options: dict[str, Any] = {
            "snapshot": snapshot,
            "progress": progress,
            "since": since,
            "granularity": granularity,
        }
        return RemoteSubscription(self._loop, self._loop.run(self._made.subscribe(query, params, **options)))

    # ------------------------------------------------------------------ rules and time

    def datalog(self, text: str, *, source: str | None = None) -> tuple[str, ...]:
        """Register rules in either syntax; their predicates, of which `view` gives the answers. They are added to what is there,
        or, with a `source`, take the place of what was registered under that name.
        """
        return self._loop.run(self._made.datalog(text, source=source))

    def query(self, text: str, arguments: Mapping[str, Any] | None = None, /, **named: Any) -> RemoteResult:
        """Answer a goal or a query of Datalog once."""
        return self._loop.run(self._made.query(text, arguments, **named))

    def attribute(
        self,
        name: str,
        value: Any = None,
        *,
        cardinality: Cardinality | None = None,
        mode: Mode | None = None,
        entity: Any = int,
    ) -> None:
        """Declare an attribute of entities; see `Engine.attribute`."""
        self._loop.run(self._made.attribute(name, value, cardinality=cardinality, mode=mode, entity=entity))

    def transact(self, facts: Any) -> int | None:
        """Write facts of attributes; see `Engine.transact`."""
        return self._loop.run(self._made.transact(facts))

    def advance(self, to: int | None = None) -> int:
        """Close the open epoch, or all before `to`; the last one that is closed."""
        return self._loop.run(self._made.advance(to))

    def status(self) -> dict[str, Any]:
        """The state of the server."""
        return self._loop.run(self._made.status())

    # ------------------------------------------------------------------ the end

    def close(self) -> None:
        """End the session: its transaction, and its subscriptions. Closing twice is harmless."""
        self._loop.run(self._made.close())

    if not TYPE_CHECKING:  # type checkers are to see methods that are not there

        async def __aenter__(self) -> NoReturn:
            raise IncorrectError("a RemoteSession waits: write `with`, or `async with tk.connect_async(url)` in a task")

        async def __aexit__(self, *_: object) -> None:
            """Never called: there is no block."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return repr(self._made).replace("Async", "Remote", 1)
