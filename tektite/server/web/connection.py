"""WebConnection: one connection to the port for HTTP and WebSocket, from its first byte to its last.

It reads the head of the first request, which is bounded in bytes and in time, and hands everything to what speaks the rest:
`HttpExchanges` or `WebSocket`.
"""

from __future__ import annotations

import asyncio
import re
import socket
from typing import TYPE_CHECKING, Protocol

from tektite.server.client_socket import ClientSocket
from tektite.server.web.exchanges import HttpExchanges
from tektite.server.web.socket import WebSocket

if TYPE_CHECKING:
    from tektite.server.server import Server

HEAD_BYTES = 16_384
"""The longest head of a request."""
LINGERING = 2.0
"""Seconds in which a client can read why it was refused."""
UPGRADE = re.compile(rb"\r\nupgrade:[ \t]*websocket[ \t]*\r\n", re.IGNORECASE)


class Speaker(Protocol):
    """Speaks one protocol on a connection."""

    def received(self, data: bytes) -> None:
        """Take bytes."""

    def lost(self) -> None:
        """The client has gone."""

    def ended(self) -> bool:
        """The client sends no more; whether something is still to be sent to it."""


class WebConnection(ClientSocket):
    """A client. Made by the server's listener."""

    def __init__(self, server: Server) -> None:
        super().__init__(server)
        self._speaker: Speaker | None = None
        self._head = b""
        self.is_reading = True
        self._is_refused = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client has connected."""
        super().connection_made(transport)
        raw = transport.get_extra_info("socket")
        if raw is not None:
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.limit_time(self.server.plan.limits.startup_seconds, "it took too long to ask for something")

    def data_received(self, data: bytes) -> None:
        """Bytes have arrived."""
        if self._is_refused:
            return
        if self._speaker is not None:
            self._speaker.received(data)
            return
        self._head += data
        end = self._head.find(b"\r\n\r\n")
        if end < 0 and len(self._head) <= HEAD_BYTES:
            return
        head, self._head = self._head, b""
        is_upgrade = UPGRADE.search(head, 0, max(end + 2, 0)) is not None and end <= HEAD_BYTES
        self._speaker = WebSocket(self) if is_upgrade else HttpExchanges(self)
        self._speaker.received(head)

    def eof_received(self) -> bool:
        """The client sends no more. What it has asked for before may still be answered."""
        return self._speaker is not None and self._speaker.ended()

    def connection_lost(self, error: Exception | None) -> None:
        """The client has gone."""
        super().connection_lost(error)
        if self._speaker is not None:
            self._speaker.lost()

    # ------------------------------------------------------------------ for what is spoken

    def write(self, data: bytes) -> None:
        """Send bytes."""
        if not self.is_closed and self.transport is not None:
            self.transport.write(data)

    @property
    def is_writable(self) -> bool:
        """Whether there is room in the buffer for what is to be sent."""
        return self._can_write.is_set()

    async def until_writable(self) -> None:
        """Wait until not too much waits to be sent."""
        await self._can_write.wait()
        if self.is_closed:
            raise asyncio.CancelledError

    def read_on(self, wanted: bool) -> None:
        """Read from the client, or leave what it sends where it is."""
        if wanted != self.is_reading and self.transport is not None and not self.is_closed:
            self.is_reading = wanted
            (self.transport.resume_reading if wanted else self.transport.pause_reading)()

    def close(self) -> None:
        """Close when everything is sent, or after some seconds."""
        if self.transport is not None and not self.is_closed:
            self.transport.close()
            self.server.loop.call_later(5, self.abort)

    def refuse(self) -> None:
        """Close when everything is sent, and read for a moment what the client still sends, without looking at it: closing at
        once would lose what it is told.
        """
        self._is_refused = True
        self.read_on(True)
        if self.transport is not None and not self.is_closed and self.transport.can_write_eof():
            self.transport.write_eof()
            self.server.loop.call_later(LINGERING, self.abort)
        else:
            self.close()
