"""Tables, views and subscriptions on a server, for programs without an event loop."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any, Generic, Self, TypeVar

import pyarrow as pa

from tektite.client.absent_names import SaysWhatDoesNotTravel
from tektite.client.event_loop import BackgroundLoop
from tektite.client.relations import AsyncRelation, AsyncTable, AsyncView
from tektite.client.subscriptions import AsyncSubscription
from tektite.engine.backlog import Delta
from tektite.engine.subscription import Change
from tektite.errors import TektiteError, UnsupportedError
from tektite.unknown_options import explains_options
from tektite.values.frames import ArrowReadable
from tektite.values.schema import Schema

R = TypeVar("R", bound=AsyncRelation)


@explains_options
class RemoteSubscription:
    """The changes of a table, a view or a query on a server, as `Subscription` has them in a process.

    Iterating waits for the next `Delta`; so does `async for`, in a task of any event loop. A connection that breaks is opened
    again, and nothing is lost or told twice, as long as the server holds the history (30 seconds, unless it is told otherwise);
    then reading raises a `HistoryGone`.

    >>> import tektite as tk
    >>> console = tk.Engine().console()
    the console is at ...
    >>> session = tk.connect(console.url)
    >>> sales = session.create_table("sales", {"shop": str, "amount": int})
    >>> changes = sales.subscribe()
    >>> _ = sales.insert([("north", 3)])
    >>> changes.poll(timeout=20).table.to_pylist()
    [{'shop': 'north', 'amount': 3, 'diff': 1}]
    >>> time = sales.insert([("south", 5)])
    >>> changes.changes() == [tk.Change(("south", 5), time, 1)], changes.time == time
    (True, True)
    >>> changes.table().num_rows
    0
    >>> changes.close()
    >>> changes.closed
    True
    >>> session.close()
    >>> console.close()
    """

    def __init__(self, loop: BackgroundLoop, made: AsyncSubscription) -> None:
        self._loop = loop
        self._made = made

    @property
    def time(self) -> int:
        """The last time that it has told everything of, or will tell without waiting."""
        return self._made.time

    @property
    def closed(self) -> bool:
        """Whether nothing comes any more, but for what has arrived."""
        return self._made.closed

    def poll(self, timeout: float | None = None) -> Delta | None:
        """The next delta. Waits for it, for at most `timeout` seconds, after which it returns None."""
        return self._loop.run(self._made.poll(timeout))

    def table(self) -> pa.Table:
        """All that can be told without waiting for changes, in one table: `time` and `diff` stand behind the data."""
        return self._loop.run(self._made.table())

    def changes(self) -> list[Change]:
        """All that can be told without waiting for changes, row by row."""
        return self._loop.run(self._made.changes())

    def __iter__(self) -> Iterator[Delta]:
        return self

    def __next__(self) -> Delta:
        found = self._loop.run(anext(self._made, None))
        if found is None:
            raise StopIteration
        return found

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def __aiter__(self) -> AsyncIterator[Delta]:
        return self

    async def __anext__(self) -> Delta:
        found = await self._loop.awaited(anext(self._made, None))
        if found is None:
            raise StopAsyncIteration
        return found

    def close(self) -> None:
        """Follow no more. Closing twice is harmless."""
        self._loop.run(self._made.close())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return repr(self._made).replace("Async", "Remote", 1)


@explains_options
class RemoteRelation(ArrowReadable, SaysWhatDoesNotTravel, Generic[R]):
    """The methods that tables and views on a server have in common.

    >>> import tektite as tk
    >>> console = tk.Engine().console()
    the console is at ...
    >>> session = tk.connect(console.url)
    >>> sales = session.create_table("sales", {"shop": str, "amount": int}, order_by="shop")
    >>> time = sales.insert([("north", 3), ("south", 5)])
    >>> sales.name, sales.schema, sales.time == time, len(sales)
    ('sales', Schema(shop=string, amount=int), True, 2)
    >>> sorted(sales.rows(at=time)), sales.lookup("south"), sales.head(1).num_rows
    ([('north', 3), ('south', 5)], [('south', 5)], 1)
    >>> sales.to_arrow() == sales.snapshot(), sales.to_pandas().shape
    (True, (2, 2))
    >>> with sales.subscribe() as changes:
    ...     changes.poll().table.num_rows
    2
    >>> session.close()
    >>> console.close()
    """

    def __init__(self, loop: BackgroundLoop, made: R) -> None:
        self._loop = loop
        self._made = made

    @property
    def name(self) -> str:
        """Its name, as it was created."""
        return self._made.name

    @property
    def schema(self) -> Schema:
        """Its columns."""
        return self._made.schema

    @property
    def time(self) -> int | None:
        """The last epoch that it has closed; None before the first."""
        return self._loop.run(self._made.time())

    def to_arrow(self, at: int | None = None) -> pa.Table:
        """All rows, as of the last closed epoch or of an earlier one that is held."""
        return self._loop.run(self._made.to_arrow(at))

    def snapshot(self, at: int | None = None) -> pa.Table:
        """The same as `to_arrow`."""
        return self.to_arrow(at)

    def rows(self, at: int | None = None) -> list[tuple[Any, ...]]:
        """All rows, as tuples."""
        return self._loop.run(self._made.rows(at))

    def head(self, n: int = 5) -> pa.Table:
        """The first rows."""
        return self._loop.run(self._made.head(n))

    def lookup(self, *key: Any) -> list[tuple[Any, ...]]:
        """The rows with a key: values of the columns by which it is indexed, or of the first of them."""
        return self._loop.run(self._made.lookup(*key))

    def subscribe(
        self,
        callback: None = None,
        *,
        snapshot: bool | None = None,
        progress: bool = False,
        since: int | None = None,
        granularity: int | str | None = None,
    ) -> RemoteSubscription:
        """The changes from here on, as `View.subscribe` has them. `granularity`, a number of epochs or a time such as "100 ms",
        has changes taken together, and told that often.
        """
        if callback is not None:
            raise UnsupportedError(
                "a function does not travel to a server: read what subscribe() returns, in a thread or a task"
            )
        options: dict[str, Any] = {
            "snapshot": snapshot,
            "progress": progress,
            "since": since,
            "granularity": granularity,
        }
        return RemoteSubscription(self._loop, self._loop.run(self._made.subscribe(**options)))

    def __len__(self) -> int:
        return self._loop.run(self._made.count())

    def __bool__(self) -> bool:
        """True, also of one without rows."""
        return True

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(self.rows())

    def __repr__(self) -> str:
        return repr(self._made).replace("Async", "Remote", 1)


@explains_options
class RemoteTable(RemoteRelation[AsyncTable]):
    """A table on a server.

    >>> import tektite as tk
    >>> with tk.Engine().console() as console, tk.connect(console.url) as session:
    ...     sales = session.create_table("sales", {"shop": str, "amount": int})
    ...     _ = sales.insert([("north", 3), ("south", 5)])
    ...     time = sales.remove([("south", 5)])
    ...     sales.finish()
    ...     sales.rows(at=time)
    the console is at ...
    [('north', 3)]
    """

    def insert(self, data: Any) -> int | None:
        """Add rows: whatever `Table.insert` takes. The time at which they can be read, or None inside a transaction."""
        return self._loop.run(self._made.insert(data))

    def remove(self, data: Any) -> int | None:
        """Take rows away. Returns what `insert` does."""
        return self._loop.run(self._made.remove(data))

    def finish(self) -> None:
        """End the table: what it holds stays, and nobody writes to it any more."""
        self._loop.run(self._made.finish())


@explains_options
class RemoteView(RemoteRelation[AsyncView]):
    """A view on a server.

    >>> import tektite as tk
    >>> with tk.Engine().console() as console, tk.connect(console.url) as session:
    ...     sales = session.create_table("sales", {"shop": str, "amount": int})
    ...     view = session.create_view("large", "SELECT shop FROM sales WHERE amount > 4")
    ...     time = sales.insert([("north", 3), ("south", 5)])
    ...     assert view.snapshot(at=time, timeout=20) == view.to_arrow()
    ...     print(view.wait(time, timeout=20), view.error, view.rows(), "read sales" in view.explain())
    the console is at ...
    True None [('south',)] True
    """

    @property
    def error(self) -> TektiteError | None:
        """The error that a read of the view raises; None if it can be read."""
        return self._loop.run(self._made.error())

    def to_arrow(self, at: int | None = None, timeout: float | None = None) -> pa.Table:
        """All rows, as of the last closed epoch or of an earlier one that is held. With a `timeout`, a time `at` that is
        not closed yet is waited for, for so many seconds.
        """
        return self._loop.run(self._made.to_arrow(at, timeout))

    def snapshot(self, at: int | None = None, timeout: float | None = None) -> pa.Table:
        """The same as `to_arrow`."""
        return self.to_arrow(at, timeout)

    def rows(self, at: int | None = None, timeout: float | None = None) -> list[tuple[Any, ...]]:
        """All rows, as tuples; `at` and `timeout` are as for `snapshot`."""
        return self._loop.run(self._made.rows(at, timeout))

    def wait(self, time: int, timeout: float | None = None) -> bool:
        """Wait until the view answers for a time, for at most `timeout` seconds; whether it does."""
        return self._loop.run(self._made.wait(time, timeout))

    def explain(self) -> str:
        """The explanation of how the view is maintained."""
        return self._loop.run(self._made.explain())
