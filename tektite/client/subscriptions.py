"""AsyncSubscription: the changes of a table, a view or a query on a server, each exactly once, also across connections.

The server sends pieces, and says which time is complete with them. Only then are they given to the reader, so that a connection
that breaks in the middle costs nothing: the next one goes on behind the last complete time. A reader that is far behind has the
server stop until it has read what is there.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa

from tektite.client.absent_names import ShowsWhatIsDocumented, WaitsByAsyncFor
from tektite.engine.backlog import Delta
from tektite.engine.subscription import Change, check_timeout
from tektite.errors import ConflictError, TektiteError
from tektite.values.python_values import python_list
from tektite.values.schema import Schema
from tektite.wire.failures import from_data
from tektite.wire.messages import WireMessage

if TYPE_CHECKING:
    from tektite.client.async_session import AsyncSession

WAITING_ROWS = 1_000_000
"""Rows that may wait for the reader before the server is asked to stop."""


class AsyncSubscription(WaitsByAsyncFor, ShowsWhatIsDocumented):
    """Changes as they happen. Made by `subscribe` of a session, a table or a view.

    >>> import asyncio
    >>> import tektite as tk
    >>> async def main(url):
    ...     async with tk.connect_async(url) as session:
    ...         sales = await session.create_table("sales", {"shop": str, "amount": int})
    ...         changes = await sales.subscribe()
    ...         await sales.insert([("north", 3)])
    ...         print((await changes.poll(timeout=20)).table.to_pylist())
    ...         time = await sales.insert([("south", 5)])
    ...         print(await changes.changes() == [tk.Change(("south", 5), time, 1)], changes.time == time)
    ...         print((await changes.table()).num_rows)
    ...         await changes.close()
    ...         return changes.closed
    >>> with tk.Engine().console() as console:
    ...     asyncio.run(main(console.url))
    the console is at ...
    [{'shop': 'north', 'amount': 3, 'diff': 1}]
    True True
    0
    True
    """

    _internal = frozenset({"begin", "has_begun", "resume", "arrived", "fail"})

    def __init__(self, session: AsyncSession, number: int, asked: dict[str, Any], progress: bool) -> None:
        self._session = session
        self._number = number
        self._asked = asked
        self._progress = progress
        self._name = ""
        self._schema: pa.Schema | None = None
        self._told: int | None = None
        self._lineage = ""
        """The server's identifier, which distinguishes its times from those of another."""
        self._parts: list[pa.Table] = []
        self._found: deque[Delta | TektiteError] = deque()
        self._waiting_rows = 0
        self._is_paused = False
        self._arrived = asyncio.Event()
        self._end: TektiteError | bool = False
        self._is_closed = False

    @property
    def time(self) -> int:
        """The last time that it has told everything of, or will tell without waiting; -1 before the first."""
        return -1 if self._told is None else self._told

    @property
    def closed(self) -> bool:
        """Whether nothing comes any more, but for what has arrived."""
        return bool(self._end) or self._is_closed

    # ------------------------------------------------------------------ what arrives

    async def begin(self) -> None:
        """Tell the server to send changes: from the beginning, or behind the last complete time."""
        self._parts = []
        asked = dict(self._asked)
        if self._told is not None:
            asked |= {"since": self._told, "snapshot": False, "lineage": self._lineage}
        answer = await self._session.link.request("interest", {"subscription": self._number, **asked})
        self._lineage = answer.head["lineage"]
        relation = answer.head["relation"]
        self._name = relation["name"]
        kinds = Schema(dict(zip(relation["columns"], relation["types"], strict=True))).arrow
        self._schema = kinds.append(pa.field("time", pa.int64())).append(pa.field("diff", pa.int64()))

    @property
    def has_begun(self) -> bool:
        """Whether the server was told, and it is to go on when the connection is there again."""
        return bool(self._lineage) and not self._is_paused and not self.closed

    async def resume(self) -> None:
        """Go on, on another connection."""
        try:
            await self.begin()
        except TektiteError as error:
            if error.code != "connection-lost":
                self.fail(error)

    def arrived(self, message: WireMessage) -> None:
        """Take what the server sends."""
        head = message.head
        if message.table is not None:
            self._parts.append(message.table)
        if head.get("end"):
            self._end = from_data(head["error"]) if head.get("error") else True
        elif head.get("error"):
            self._found.append(from_data(head["error"]))
        elif "progress" in head:
            self._complete(int(head["progress"]))
        self._arrived.set()

    def fail(self, error: TektiteError) -> None:
        """End it: nothing comes any more."""
        if not self.closed:
            self._end = error
            self._arrived.set()

    def _complete(self, told: int) -> None:
        """Give the reader what has arrived up to a time."""
        parts, self._parts = self._parts, []
        self._told = told
        last = None
        if parts:
            whole = pa.concat_tables(parts) if len(parts) > 1 else parts[0]
            times = whole.column(-2).to_numpy()
            table = whole.remove_column(whole.num_columns - 2)
            found, first = np.unique(times, return_index=True)
            cuts = [*first.tolist(), len(times)]
            for at, last in enumerate(found.tolist()):
                self._found.append(Delta(last, table.slice(cuts[at], cuts[at + 1] - cuts[at])))
            self._waiting_rows += whole.num_rows
        if self._progress and last != told and self._schema is not None:
            self._found.append(Delta(told, self._schema.remove(len(self._schema) - 2).empty_table()))
        if self._waiting_rows > WAITING_ROWS and not self._is_paused:
            self._is_paused = True
            self._session.in_background(self._uninterest())

    async def _uninterest(self) -> None:
        await self._session.link.request("uninterest", {"subscription": self._number})

    # ------------------------------------------------------------------ reading

    async def poll(self, timeout: float | None = None) -> Delta | None:
        """The next delta. Waits for it, for at most `timeout` seconds, after which it returns None; `poll(0)` waits for the
        server alone, which sends what there is.
        """
        check_timeout(timeout)
        if timeout == 0 and not self._found and not self.closed:
            await self._refresh()
        try:
            async with asyncio.timeout(None if timeout == 0 else timeout):
                found = await self._next(wait=timeout != 0)
        except TimeoutError:
            return None
        if found is None and self.closed:
            self._raise_why_ended()
            raise ConflictError(f"the subscription to {self._name!r} has ended")
        return found

    def __aiter__(self) -> AsyncIterator[Delta]:
        return self

    async def __anext__(self) -> Delta:
        found = await self._next()
        if found is None:
            self._raise_why_ended()
            raise StopAsyncIteration
        return found

    async def table(self) -> pa.Table:
        """All that can be told without waiting for changes, in one table: `time` and `diff` stand behind the data."""
        if not self.closed:
            await self._refresh()
        deltas = []
        while self._found:
            found = await self._next()
            assert found is not None
            times = pa.array(np.full(found.table.num_rows, found.time, np.int64))
            deltas.append(found.table.add_column(found.table.num_columns - 1, "time", times))
        if not deltas:
            self._raise_why_ended()
        assert self._schema is not None
        return pa.concat_tables([self._schema.empty_table(), *deltas])

    async def changes(self) -> list[Change]:
        """All that can be told without waiting for changes, row by row."""
        columns = [python_list(column) for column in (await self.table()).columns]
        return [Change(values[:-2], *values[-2:]) for values in zip(*columns, strict=True)]

    async def _refresh(self) -> None:
        await self._session.link.request("refresh", {"subscription": self._number})

    async def _next(self, wait: bool = True) -> Delta | None:
        """The next delta that has arrived, or arrives; None at the end, or if there is none and nobody waits."""
        while not self._found:
            if self.closed or not wait:
                return None
            if self._is_paused:
                await self._go_on()
                continue
            self._arrived.clear()
            await self._arrived.wait()
        found = self._found.popleft()
        if isinstance(found, TektiteError):
            raise found
        self._waiting_rows -= found.table.num_rows
        return found

    async def _go_on(self) -> None:
        """Let the server send again."""
        self._is_paused = False
        try:
            await self.begin()
        except TektiteError as error:
            self.fail(error)

    def _raise_why_ended(self) -> None:
        if isinstance(self._end, TektiteError) and not self._is_closed:
            raise self._end

    # ------------------------------------------------------------------ the end

    async def close(self) -> None:
        """Follow no more. Closing twice is harmless."""
        was_open = not self.closed
        self._is_closed = True
        self._found.clear()
        self._arrived.set()
        self._session.forget(self._number)
        if was_open and not self._is_paused and not self._session.link.is_closed:
            try:
                await self._uninterest()
            except TektiteError:
                return  # the connection broke, and the subscription with it

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        state = (
            "closed" if self.closed else "nothing told yet" if self._told is None else f"told up to time {self._told}"
        )
        return f"<AsyncSubscription to {self._name!r}, {state}>"
