"""Interest: one client's subscription to a feed: first what it has missed, or a snapshot, then every change, each exactly once.

An interest is live, and told what the feed tells, or behind. It falls behind when its client does not read: beyond the bytes that
a connection may have waiting, nothing is kept for it. When the client reads again, it is told what it has missed, taken together
as of one time. A client that has not read for as long as history is held is disconnected, with the reason.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from tektite.engine.core import core_of
from tektite.errors import ConflictError, TektiteError
from tektite.server.feeds import DataflowReplaced, FeedChanges, Form, SharedFeed
from tektite.wire.failures import HistoryGone, as_data
from tektite.wire.messages import text_of

if TYPE_CHECKING:
    from tektite.server.sessions import ClientSession

PIECE = 20_000
"""Rows of a snapshot that are sent at a time: some megabytes at most, so that no long message is made."""


class SlowClient(ConflictError):
    """A client did not read what it was sent."""

    code = "slow-client"


class PushChannel(Protocol):
    """The connection that an interest is told by."""

    @property
    def is_writable(self) -> bool:
        """Whether there is room in the buffer for what is to be sent."""

    async def until_writable(self) -> None:
        """Wait until not too much waits to be sent."""

    def push(self, head: bytes, form: Form, table: bytes | None) -> None:
        """Send a message: its head as JSON, and an encoded table."""

    def disconnect(self, error: TektiteError) -> None:
        """Say why, and close."""


class Interest:
    """A subscription of one client."""

    def __init__(
        self,
        number: int,
        session: ClientSession,
        channel: PushChannel,
        feed: SharedFeed,
        form: Form,
        progress: bool,
        check: Callable[[], None],
    ) -> None:
        self._check = check
        """Raises when the client may be told no more, where the dataflow itself does not know that."""
        self.number = number
        self.form: Form = form
        self.feed = feed
        self._session = session
        self._channel = channel
        self._progress = progress
        self._told: int | None = None
        """The last time that was sent completely; None before."""
        self._from: int | None = None
        """The time of the snapshot to begin with, where that is not the last one."""
        self._is_slow = False
        self._task: asyncio.Task[None] | None = None
        self._is_closed = False
        self.on_end: Callable[[], None] = lambda: None
        """Called when it ends by itself."""

    def begin(self, since: int | None, snapshot: bool) -> None:
        """Begin with a snapshot, as of a time or of the last one, or with what has changed behind a time."""
        self._told = None if snapshot else self.feed.told if since is None else since
        self._from = since if snapshot else None
        self.feed.add(self)
        if not snapshot and since is None:
            self._tell_time(self.feed.told)
        if self.feed.end is None and self._told == self.feed.told:
            if self.feed.error is not None:
                self._fail(self.feed.error)
            return
        self._fall_behind()

    def deliver(self, changes: FeedChanges) -> None:
        """Take what the feed tells."""
        if self._task is not None or self._is_closed:
            return  # it catches up, and looks how far the feed has come when it is done
        if not self._may_go_on():
            return
        if changes.error is not None:
            self._fail(changes.error)
        elif changes.told != self._told and (changes.start != self._told or not self._channel.is_writable):
            self._is_slow = not self._channel.is_writable
            self._fall_behind()
            return
        elif changes.told != self._told:
            self._send(changes, changes.encode(self.form) if changes.table.num_rows else None, is_last=True)
        if changes.end is not None:
            self.end(changes.end)

    def _may_go_on(self) -> bool:
        try:
            self._check()
        except TektiteError as error:
            self.end(error)
            return False
        return True

    def _send(self, changes: FeedChanges, table: bytes | None, is_last: bool) -> None:
        if not is_last:
            self._channel.push(b'{"subscription":%d}' % self.number, self.form, table)
            return
        self._told = changes.told
        if table is None:
            self._tell_time(changes.told)
        else:
            self._channel.push(b'{"subscription":%d,"progress":%d}' % (self.number, changes.told), self.form, table)

    def _tell_time(self, told: int) -> None:
        """Say that a time is complete; not one from before the first answer, behind which nobody could resume."""
        if told >= core_of(self.feed.source.relation).first:
            self._channel.push(b'{"subscription":%d,"progress":%d}' % (self.number, told), self.form, None)

    def _fail(self, error: TektiteError) -> None:
        self._channel.push(text_of({"subscription": self.number, "error": as_data(error)}), self.form, None)

    def end(self, end: TektiteError | bool) -> None:
        """Tell the client that nothing follows, and why, if that is an error."""
        if not self._is_closed:
            why = as_data(end) if isinstance(end, TektiteError) else None
            self._channel.push(text_of({"subscription": self.number, "end": True, "error": why}), self.form, None)
            self.close()
            self.on_end()

    # ------------------------------------------------------------------ behind

    def _fall_behind(self) -> None:
        assert self._task is None
        self._task = asyncio.get_running_loop().create_task(self._catch_up())

    async def refresh(self) -> None:
        """Wait until everything that was committed before this call is sent, as far as the granularity lets it."""
        await self.feed.refresh()
        if self._task is not None:
            await asyncio.wait([self._task])

    async def _catch_up(self) -> None:
        server, feed = self._session.server, self.feed
        try:
            while self._told != feed.told:
                await self._until_writable()
                upto, since = feed.told if self._from is None else self._from, self._told
                self._from = None
                try:
                    found = await server.call(lambda: feed.fetch(since, upto, self._is_slow))  # noqa: B023
                except DataflowReplaced:
                    if feed.told != upto:
                        continue
                    break  # it begins again with what the feed tells next
                if not self._may_go_on():
                    return
                if found.error is not None:
                    self._fail(found.error)
                    break
                await self._send_pieces(found)
                self._is_slow = not self._channel.is_writable
            else:
                if feed.error is not None:  # it was told to others meanwhile, or before
                    self._fail(feed.error)
        except asyncio.CancelledError:
            raise
        except SlowClient as error:
            self._channel.disconnect(error)
            return
        except TektiteError as error:
            self.end(error)
            return
        except Exception as error:
            server.log.error("internal error", where="subscription", error=repr(error))
            self.end(HistoryGone("the subscription failed: the server's log says more"))
            return
        finally:
            self._task = None
        if feed.end is not None:
            self.end(feed.end)

    async def _send_pieces(self, found: FeedChanges) -> None:
        rows = found.table.num_rows
        if not rows:
            self._send(found, None, is_last=True)
        for start in range(0, rows, PIECE):
            piece = FeedChanges(found.start, found.told, found.table.slice(start, PIECE))
            encoded = await self._session.server.compute(lambda: piece.encode(self.form))  # noqa: B023
            await self._until_writable()
            self._send(piece, encoded, is_last=start + PIECE >= rows)

    async def _until_writable(self) -> None:
        if self._channel.is_writable:
            return
        seconds = self._session.server.plan.limits.lease_seconds
        try:
            async with asyncio.timeout(seconds):
                await self._channel.until_writable()
        except TimeoutError:
            raise SlowClient(f"the client did not read what it was sent for {seconds:g} seconds") from None

    def close(self) -> None:
        """Tell the client no more. May be repeated."""
        self._is_closed = True
        self.feed.remove(self)
        if self._task is not None:
            self._task.cancel()
