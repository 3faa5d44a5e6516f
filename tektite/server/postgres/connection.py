"""PostgresConnection: one client that speaks PostgreSQL's protocol, from its first byte to its last.

Messages are handled one after the other. One that needs the engine makes the connection busy: what arrives meanwhile waits, and
beyond a bound is not read from the socket. After an error in the extended protocol everything up to the next Sync is passed over.
Whatever fails is reported to this client alone, without our insides.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from traceback import extract_tb
from typing import TYPE_CHECKING

from tektite.errors import TektiteError
from tektite.server.client_socket import ClientSocket
from tektite.server.postgres import messages
from tektite.server.postgres.extended import ExtendedQueries
from tektite.server.postgres.messages import FrameReader, ProtocolError
from tektite.server.postgres.sqlstates import error_fields
from tektite.server.postgres.startup import Startup
from tektite.server.postgres.waits import Handled, Outcome

if TYPE_CHECKING:
    from tektite.server.server import Server

READ_AHEAD = 1 << 20
"""Bytes that may wait while the connection is busy before the socket is not read any more."""


class PostgresConnection(ClientSocket):
    """A client. Made by the server's listener."""

    def __init__(self, server: Server) -> None:
        super().__init__(server)
        self.reader = FrameReader(server.plan.limits.message_bytes)
        self.queries: ExtendedQueries | None = None
        """Handles messages, once the client has logged in."""
        self.number = 0
        self._startup: Startup | None = Startup(self)
        self._out: list[bytes] = []
        self._out_bytes = 0
        self._task: asyncio.Task[None] | None = None
        self._reading: asyncio.Future[None] | None = None
        """Whoever waits for more bytes while the connection is busy."""
        self._is_reading = True
        self._is_waiting = False
        """Whether a message is being handled without a task."""
        self._ending = ""

    # ------------------------------------------------------------------ the socket

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client has connected."""
        super().connection_made(transport)
        self.limit_time(self.server.plan.limits.startup_seconds, "it took too long to say who it is")

    def data_received(self, data: bytes) -> None:
        """Bytes have arrived."""
        self.reader.feed(data)
        if self.queries is not None:
            self._limit_idling()
        if self._task is None and not self._is_waiting:
            self._pump()
        elif self._reading is not None:
            if not self._reading.done():
                self._reading.set_result(None)
        elif self.reader.waiting > READ_AHEAD and self._is_reading and self.transport is not None:
            self._is_reading = False
            self.transport.pause_reading()

    def eof_received(self) -> bool:
        """The client sends no more: it is not answered any more either."""
        return False

    def connection_lost(self, error: Exception | None) -> None:
        """The client has gone."""
        super().connection_lost(error)
        if self._reading is not None and not self._reading.done():
            self._reading.cancel()
        if self.queries is not None:
            self.queries.close()
        if self._task is not None:
            self._task.cancel()
        self.server.connections.remove(self.number)

    def _limit_idling(self) -> None:
        """Begin to wait for the client's next words."""
        seconds = self.server.plan.limits.idle_seconds
        if seconds:
            self.limit_time(seconds, f"it said nothing for {seconds:g} seconds")

    def _is_late(self, reason: str) -> None:
        if self._task is not None or self._is_waiting:  # it is the client that waits
            self._limit_idling()
        else:
            super()._is_late(reason)

    # ------------------------------------------------------------------ what goes out

    def send(self, data: bytes) -> None:
        """Have bytes sent with the next `flush`."""
        self._out.append(data)
        self._out_bytes += len(data)

    def flush(self) -> None:
        """Send what waits."""
        if self._out and self.transport is not None and not self.is_closed:
            self.transport.write(b"".join(self._out))
        self._out.clear()
        self._out_bytes = 0

    async def drain(self) -> None:
        """Send what waits if that is much, and wait while the client does not keep up."""
        if self._out_bytes > 1 << 16:
            self.flush()
        if not self._can_write.is_set():
            await self._can_write.wait()
        if self.is_closed:
            raise asyncio.CancelledError

    def close(self) -> None:
        """Send what waits, and close."""
        self.flush()
        if self.transport is not None:
            self.transport.close()

    # ------------------------------------------------------------------ what the server asks for

    def cancel(self) -> None:
        """End the statement that runs, if one does."""
        if self.queries is not None:
            self.queries.session.cancel()

    def end(self, reason: str) -> None:
        """Tell the client that the server stops, and close when what runs has ended."""
        self._ending = reason
        is_idle = self._task is None and not self._is_waiting
        if is_idle or (self.queries is not None and self.queries.is_streaming):
            self._say_end()

    def _say_end(self) -> None:
        fields = {"S": "FATAL", "V": "FATAL", "C": "57P01", "M": self._ending}
        self.send(messages.fields_of(b"E", fields))
        self.close()

    def abort(self) -> None:
        """Close at once, even while the last bytes are still to be sent."""
        self.is_closed = True
        if self.transport is not None:
            self.transport.abort()

    # ------------------------------------------------------------------ what comes in

    def _pump(self) -> None:
        """Handle what has arrived, until something has to be waited for."""
        while not self.is_closed:
            try:
                waiting = self._next()
            except BaseException as error:
                if not self._failed(error):
                    return
                continue
            if waiting is None:
                break
            if waiting is Handled.AT_ONCE:
                continue
            if waiting is Handled.LATER:
                self._is_waiting = True
            else:
                self._task = asyncio.get_running_loop().create_task(self._wait(waiting))
            return
        if self._out and self.reader.waiting == 0 and self.queries is not None and not self.queries.is_pipelining:
            self.flush()

    async def _wait(self, awaited: Awaitable[None]) -> None:
        """Wait for a handler, and go on with what has arrived meanwhile."""
        try:
            try:
                await awaited
            except asyncio.CancelledError:
                raise
            except BaseException as error:
                if not self._failed(error):
                    return
        finally:
            self._task = None
        if not self.is_closed:
            self._go_on()

    def _go_on(self) -> None:
        if self._ending:
            self._say_end()
            return
        self._resume_reading()
        self._pump()

    def resume(self, report: Callable[[], None]) -> None:
        """Go on with the next message, after a report on one that was handled `LATER`."""
        self._is_waiting = False
        if self.is_closed:
            return
        try:
            report()
        except BaseException as error:
            if not self._failed(error):
                return
        self._go_on()

    def _next(self) -> Outcome:
        """Handle one frame: how that ended, or None if no frame is complete."""
        if self._startup is not None:
            return self._startup.next()
        frame = self.reader.next()
        if frame is None:
            return None
        assert self.queries is not None
        return self.queries.handle(*frame) or Handled.AT_ONCE

    async def next_frame(self) -> tuple[int, bytes]:
        """The next frame, for a handler that reads on while it runs."""
        while (frame := self.reader.next()) is None:
            if self.is_closed:
                raise asyncio.CancelledError
            self._reading = asyncio.get_running_loop().create_future()
            self._resume_reading()
            try:
                await self._reading
            finally:
                self._reading = None
        return frame

    def _resume_reading(self) -> None:
        if not self._is_reading and self.transport is not None and not self.is_closed:
            self._is_reading = True
            self.transport.resume_reading()

    def begun(self, queries: ExtendedQueries | None, number: int) -> None:
        """The client is known; its messages are handled from here on."""
        self.limit_time(0, "")
        self._startup = None
        self.queries = queries
        self.number = number
        self._limit_idling()

    def _failed(self, error: BaseException) -> bool:
        """Report what failed; whether the connection goes on."""
        if isinstance(error, asyncio.CancelledError | KeyboardInterrupt | SystemExit):
            raise error
        if not isinstance(error, TektiteError):
            self.server.log.error("internal error", peer=self.peer, error=repr(error), place=place_of(error))
        queries = self.queries
        if queries is None or isinstance(error, ProtocolError):
            self.send(messages.fields_of(b"E", error_fields(error, severity="FATAL")))
            self.close()
            self.is_closed = True
            return False
        queries.failed(error)
        return True


def place_of(error: BaseException) -> str:
    """The place of an error, for the log: the innermost line of this package, and the line that raised."""
    frames = extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "tektite" in frame.filename][-1:]
    return ", ".join(f"{frame.filename}:{frame.lineno}" for frame in [*ours, *frames[-1:]])
