"""Tables and views on a server, for programs with an event loop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import pyarrow as pa

from tektite.client.absent_names import SaysWhatDoesNotTravel
from tektite.client.conversion import as_table
from tektite.errors import ConflictError, IncorrectError, TektiteError
from tektite.unknown_options import explains_options
from tektite.values.columns import python_rows
from tektite.values.frames import pandas_frame, polars_frame
from tektite.values.schema import Schema
from tektite.wire.failures import from_data
from tektite.wire.rows import value_as_data

if TYPE_CHECKING:
    import pandas as pd

    from tektite.client.async_session import AsyncSession
    from tektite.client.subscriptions import AsyncSubscription


@explains_options
class AsyncRelation(SaysWhatDoesNotTravel):
    """The methods that tables and views on a server have in common: those of `RemoteRelation`, as coroutines.

    >>> import asyncio
    >>> import tektite as tk
    >>> async def main(url):
    ...     async with tk.connect_async(url) as session:
    ...         sales = await session.create_table("sales", {"shop": str, "amount": int}, order_by="shop")
    ...         time = await sales.insert([("north", 3), ("south", 5)])
    ...         print(sales.name, sales.schema, await sales.time() == time, await sales.count())
    ...         print(sorted(await sales.rows(at=time)), await sales.lookup("south"), (await sales.head(1)).num_rows)
    ...         print(await sales.to_arrow() == await sales.snapshot(), (await sales.to_pandas()).shape)
    ...         async with await sales.subscribe() as changes:
    ...             print((await changes.poll()).table.num_rows)
    >>> with tk.Engine().console() as console:
    ...     asyncio.run(main(console.url))
    the console is at ...
    sales Schema(shop=string, amount=int) True 2
    [('north', 3), ('south', 5)] [('south', 5)] 1
    True (2, 2)
    2
    """

    _internal = frozenset({"kind", "key"})
    kind = ""

    def __init__(self, session: AsyncSession, described: dict[str, Any]) -> None:
        self._session = session
        self.name: str = described["name"]
        """Its name, as it was created."""
        self.schema = Schema(dict(zip(described["columns"], described["types"], strict=True)))
        """Its columns."""
        self.key = tuple(described.get("key", ()))

    async def time(self) -> int | None:
        """The last epoch that it has closed; None before the first."""
        answer = await self._session.ask("describe", {"relation": self.name, "kind": self.kind})
        found: int | None = answer.head["time"]
        return found

    async def to_arrow(self, at: int | None = None) -> pa.Table:
        """All rows, as of the last closed epoch or of an earlier one that is held."""
        return (await self._session.ask("rows", {"relation": self.name, "at": at})).rows()

    snapshot = to_arrow

    async def rows(self, at: int | None = None) -> list[tuple[Any, ...]]:
        """All rows, as tuples."""
        return self._tuples(await self.to_arrow(at))

    async def to_pandas(self, at: int | None = None) -> pd.DataFrame:
        """All rows as a pandas DataFrame; `at` is as for `to_arrow`."""
        return pandas_frame(await self.to_arrow(at))

    async def to_polars(self, at: int | None = None) -> Any:
        """All rows as a Polars DataFrame; `at` is as for `to_arrow`."""
        return polars_frame(await self.to_arrow(at))

    async def head(self, n: int = 5) -> pa.Table:
        """The first rows."""
        return (await self._session.ask("head", {"relation": self.name, "n": n})).rows()

    async def lookup(self, *key: Any) -> list[tuple[Any, ...]]:
        """The rows with a key: values of the columns by which it is indexed, or of the first of them."""
        given = [value_as_data(value) for value in key]
        return self._tuples((await self._session.ask("lookup", {"relation": self.name, "key": given})).rows())

    async def count(self) -> int:
        """The number of rows."""
        return int((await self._session.ask("count", {"relation": self.name})).head["count"])

    async def subscribe(
        self,
        *,
        snapshot: bool | None = None,
        progress: bool = False,
        since: int | None = None,
        granularity: int | str | None = None,
    ) -> AsyncSubscription:
        """The changes from here on; see `RemoteSession.subscribe`."""
        options = {"snapshot": snapshot, "progress": progress, "since": since, "granularity": granularity}
        return await self._session.interest({"name": self.name}, options)

    def _tuples(self, table: pa.Table) -> list[tuple[Any, ...]]:
        if not table.num_columns:
            return [()] * table.num_rows
        return python_rows(table, f"{self.kind} {self.name!r}", "to_arrow()")

    if not TYPE_CHECKING:  # type checkers are to see methods that are not there

        def __len__(self) -> NoReturn:
            raise IncorrectError(f"the length of {self.kind} {self.name!r} is waited for: await x.count()")

        def __iter__(self) -> NoReturn:
            raise IncorrectError(f"the rows of {self.kind} {self.name!r} are waited for: for row in await x.rows()")

        def __bool__(self) -> bool:
            return True

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r} {self.schema}>"


@explains_options
class AsyncTable(AsyncRelation):
    """A table on a server.

    >>> import asyncio
    >>> import tektite as tk
    >>> async def main(url):
    ...     async with tk.connect_async(url) as session:
    ...         sales = await session.create_table("sales", {"shop": str, "amount": int})
    ...         await sales.insert([("north", 3), ("south", 5)])
    ...         time = await sales.remove([("south", 5)])
    ...         await sales.finish()
    ...         return await sales.rows(at=time)
    >>> with tk.Engine().console() as console:
    ...     asyncio.run(main(console.url))
    the console is at ...
    [('north', 3)]
    """

    kind = "table"

    async def insert(self, data: Any) -> int | None:
        """Add rows; the time at which they can be read, or None inside a transaction."""
        return await self._write("insert", as_table(data, self.schema))

    async def remove(self, data: Any) -> int | None:
        """Take rows away. Where rows have a key that replaces others, keys alone do. Returns what `insert` does."""
        return await self._write("remove", as_table(data, self.schema, self.key))

    async def _write(self, request: str, table: pa.Table) -> int | None:
        answer = await self._session.ask(request, {"table": self.name}, table)
        found: int | None = answer.head["time"]
        return found

    async def finish(self) -> None:
        """End the table: what it holds stays, and nobody writes to it any more."""
        await self._session.ask("close-input", {"table": self.name})


@explains_options
class AsyncView(AsyncRelation):
    """A view on a server.

    >>> import asyncio
    >>> import tektite as tk
    >>> async def main(url):
    ...     async with tk.connect_async(url) as session:
    ...         sales = await session.create_table("sales", {"shop": str, "amount": int})
    ...         view = await session.create_view("large", "SELECT shop FROM sales WHERE amount > 4")
    ...         time = await sales.insert([("north", 3), ("south", 5)])
    ...         there = await view.wait(time, timeout=20)
    ...         assert await view.snapshot(at=time, timeout=20) == await view.to_arrow()
    ...         return there, await view.error(), await view.rows(), "read sales" in await view.explain()
    >>> with tk.Engine().console() as console:
    ...     asyncio.run(main(console.url))
    the console is at ...
    (True, None, [('south',)], True)
    """

    kind = "view"

    async def error(self) -> TektiteError | None:
        """The error that a read of the view raises; None if it can be read."""
        found = (await self._session.ask("view-state", {"view": self.name})).head["view_error"]
        return None if found is None else from_data(found)

    async def to_arrow(self, at: int | None = None, timeout: float | None = None) -> pa.Table:
        """All rows, as of the last closed epoch or of an earlier one that is held. With a `timeout`, a time `at` that is
        not closed yet is waited for, for so many seconds.
        """
        if timeout is not None:
            if at is None:
                raise IncorrectError(
                    "a timeout is for a time that is waited for: say which, as in snapshot(at=7, timeout=1)"
                )
            if not await self.wait(at, timeout):
                raise ConflictError(f"view {self.name!r} has no answer for time {at} after {timeout} seconds")
        return await super().to_arrow(at)

    snapshot = to_arrow

    async def rows(self, at: int | None = None, timeout: float | None = None) -> list[tuple[Any, ...]]:
        """All rows, as tuples; `at` and `timeout` are as for `snapshot`."""
        return self._tuples(await self.to_arrow(at, timeout))

    async def wait(self, time: int, timeout: float | None = None) -> bool:
        """Wait until the view answers for a time, for at most `timeout` seconds; whether it does."""
        answer = await self._session.ask("wait", {"view": self.name, "time": time, "seconds": timeout})
        return bool(answer.head["there"])

    async def explain(self) -> str:
        """The explanation of how the view is maintained."""
        return str((await self._session.ask("explain", {"view": self.name})).head["text"])
