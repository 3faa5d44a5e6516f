"""Connections: all connections of a server, over every protocol, and their limit.

Each connection has a number and a secret. A client that knows both may cancel its statement.
"""

from __future__ import annotations

import hmac
import secrets
from asyncio import BaseTransport
from typing import Protocol

from tektite.errors import ConflictError


def peer_of(transport: BaseTransport) -> str:
    """The address at the other end, for logs and `system.clients`."""
    found = transport.get_extra_info("peername")
    if not isinstance(found, tuple):
        return str(found)
    host, port = found[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


class TooManyConnections(ConflictError):
    """The server has reached its limit of connections."""

    code = "too-many-connections"
    retryable = True


class Connection(Protocol):
    """The methods that the server calls of a connection of any front end."""

    def cancel(self) -> None:
        """End the statement that runs, if one does."""

    def end(self, reason: str) -> None:
        """Tell the client that the server stops, and close when what runs has ended."""

    def abort(self) -> None:
        """Close at once."""


class Connections:
    """All connections of a server."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._numbers = 0
        self._open: dict[int, tuple[Connection, int]] = {}

    def __len__(self) -> int:
        return len(self._open)

    def add(self, connection: Connection) -> tuple[int, int]:
        """Take a connection in; its number and its secret."""
        if len(self._open) >= self.limit:
            raise TooManyConnections(
                f"there are {self.limit} connections, which is as many as there may be: try again later"
            )
        self._numbers = self._numbers % 0x7FFF_FFFF + 1
        secret = secrets.randbits(32)
        self._open[self._numbers] = connection, secret
        return self._numbers, secret

    def remove(self, number: int) -> None:
        """A connection has ended. May be repeated."""
        self._open.pop(number, None)

    def cancel(self, number: int, secret: int) -> None:
        """Cancel what a connection runs; nothing happens where the secret is wrong."""
        connection, known = self._open.get(number, (None, 0))
        if connection is not None and hmac.compare_digest(known.to_bytes(4, "big"), secret.to_bytes(4, "big")):
            connection.cancel()

    def all(self) -> list[Connection]:
        """Every connection."""
        return [connection for connection, _ in self._open.values()]
