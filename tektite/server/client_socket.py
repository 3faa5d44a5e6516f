"""ClientSocket: a client's connection to one of the server's ports, without what is spoken on it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

from tektite.server.connections import peer_of

if TYPE_CHECKING:
    from tektite.server.server import Server


class ClientSocket(asyncio.Protocol):
    """The address of a client, whether it reads what it is sent, and a limit on the time until its next step."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.peer = ""
        self.is_closed = False
        self.transport: asyncio.Transport | None = None
        self._can_write = asyncio.Event()
        self._can_write.set()
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client has connected."""
        self.transport = cast(asyncio.Transport, transport)
        self.transport.set_write_buffer_limits(self.server.plan.limits.buffered_bytes)
        self.peer = peer_of(transport)

    def connection_lost(self, error: Exception | None) -> None:
        """The client has gone."""
        self.is_closed = True
        self._can_write.set()
        self.limit_time(0, "")

    def pause_writing(self) -> None:
        """The client does not keep up."""
        self._can_write.clear()

    def resume_writing(self) -> None:
        """The client keeps up again."""
        self._can_write.set()

    def limit_time(self, seconds: float, reason: str) -> None:
        """Close the connection after some seconds, unless this is called again before; 0 is never."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if seconds:
            self._timer = asyncio.get_running_loop().call_later(seconds, self._is_late, reason)

    def _is_late(self, reason: str) -> None:
        self.server.log.warning("connection closed", peer=self.peer, reason=reason)
        self.abort()

    def abort(self) -> None:
        """Close at once."""
        if self.transport is not None and not self.is_closed:
            self.transport.abort()
