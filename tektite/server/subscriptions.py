"""ChangeStream: what SUBSCRIBE gives a client: a snapshot, then the changes of each time, as they happen.

Each table has the columns of the rows, then `time` and `diff`. A dataflow that nobody follows any more goes.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from tektite.engine.core import core_of
from tektite.errors import TektiteError
from tektite.sql import Result, runner

if TYPE_CHECKING:
    from tektite.server.sessions import ClientSession


class ChangeStream:
    """The changes of a subscription, for one session."""

    def __init__(self, session: ClientSession, result: Result) -> None:
        assert result.subscription is not None
        self._session = session
        self._subscription = result.subscription
        self._disclosed = session.rights.disclosure(result.reads)
        schema = self._subscription.schema.arrow
        self.schema = schema.append(pa.field("time", pa.int64())).append(pa.field("diff", pa.int64()))

    @staticmethod
    async def begin(session: ClientSession, result: Result) -> ChangeStream:
        """The stream of a statement's result."""
        made = await session.call(lambda: ChangeStream(session, result))
        session.subscriptions += 1
        return made

    async def next(self) -> pa.Table | None:
        """The changes of the next time, when they are there; None at the end."""
        try:
            delta = await self._session.wait(anext(self._subscription, None))
        except TektiteError as error:
            raise await self._session.call(partial(self._disclosed, error)) from None
        if delta is None:
            return None
        times = pa.array([delta.time], pa.int64()).take(pa.array([0] * delta.table.num_rows, pa.int64()))
        return delta.table.add_column(delta.table.num_columns - 1, "time", times).cast(self.schema)

    async def waiting(self) -> pa.Table:
        """All changes that are there, without waiting for others."""

        def work() -> pa.Table:
            try:
                return self._subscription.table()
            except TektiteError as error:
                raise self._disclosed(error) from None

        return (await self._session.call(work)).rename_columns(self.schema.names)

    def close(self) -> None:
        """End the subscription."""
        self._session.subscriptions -= 1

        def end() -> None:
            self._subscription.close()
            shared = runner(self._session.server.engine).shared
            with core_of(self._session.server.engine).lock.held:
                shared.sweep()

        self._session.server.release(end)
