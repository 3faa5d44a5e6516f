"""The beginning of a connection: TLS, cancel requests, the startup packet, and the proof of who the client is."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Awaitable
from typing import TYPE_CHECKING, cast

from tektite.errors import TektiteError
from tektite.server.postgres import messages
from tektite.server.postgres.extended import ExtendedQueries
from tektite.server.postgres.messages import Fields, ProtocolError
from tektite.server.postgres.waits import Handled, Outcome
from tektite.server.scram import Exchange, WrongPassword
from tektite.server.sessions import ClientSession
from tektite.sql.access.verifiers import MECHANISM

if TYPE_CHECKING:
    from tektite.server.postgres.connection import PostgresConnection

PASSWORD = ord("p")
MINOR = 0
"""The newest minor version of the protocol that is spoken."""


class Startup:
    """Handles a connection's frames until the client is known."""

    def __init__(self, connection: PostgresConnection) -> None:
        self.connection = connection
        self.is_secure = False
        self._parameters: dict[str, str] | None = None
        self._exchange: Exchange | None = None
        self._is_continued = False

    def next(self) -> Outcome:
        """Handle one frame; see `PostgresConnection._next`."""
        reader = self.connection.reader
        if self._parameters is not None:
            reader.limit = messages.STARTUP_LIMIT
            frame = reader.next()
            if frame is None:
                return None
            self._answer(*frame)
            return Handled.AT_ONCE
        found = reader.startup()
        if found is None:
            return None
        return self._begin(*found) or Handled.AT_ONCE

    def _begin(self, code: int, body: bytes) -> Awaitable[None] | None:
        connection = self.connection
        if code == messages.SSL_REQUEST:
            return self._encrypt()
        if code == messages.GSS_REQUEST:
            self._write(b"N")
            return None
        if code == messages.CANCEL_REQUEST:
            if len(body) != 8:
                raise ProtocolError("a cancel request has a number and a secret")
            number, secret = struct.unpack("!iI", body)
            connection.server.connections.cancel(number, secret)
            connection.close()
            return None
        if code >> 16 != 3:
            raise ProtocolError(f"version {code >> 16}.{code & 0xFFFF} of the protocol is not supported: 3.0 is")
        self._parameters = self._read(body)
        unknown = [name for name in self._parameters if name.startswith("_pq_.")]
        if code & 0xFFFF > MINOR or unknown:
            connection.send(messages.negotiate_version(messages.PROTOCOL + MINOR, unknown))
        server = connection.server
        if server.users.are_configured:
            connection.send(messages.sasl_mechanisms([MECHANISM]))
            connection.flush()
        else:
            self._welcome()
        return None

    def _read(self, body: bytes) -> dict[str, str]:
        fields = Fields(body)
        found: dict[str, str] = {}
        while (name := fields.text()) != "":
            found[name] = fields.text()
        fields.end()
        if not found.get("user"):
            raise ProtocolError("the startup packet names no user")
        return found

    def _write(self, data: bytes) -> None:
        assert self.connection.transport is not None
        self.connection.transport.write(data)

    def _encrypt(self) -> Awaitable[None] | None:
        """Answer a request for TLS; what was sent behind it in the clear is refused, because anybody could have."""
        connection = self.connection
        if self.is_secure or connection.reader.waiting:
            raise ProtocolError("something was sent between the request for TLS and its answer")
        context = connection.server.tls
        if context is None:
            self._write(b"N")
            return None

        async def encrypt() -> None:
            assert connection.transport is not None and context is not None
            self._write(b"S")
            loop = asyncio.get_running_loop()
            try:
                secure = await loop.start_tls(
                    connection.transport, connection, context, server_side=True,
                    ssl_handshake_timeout=connection.server.plan.limits.startup_seconds or None,
                )  # fmt: skip
            except (OSError, ConnectionError) as error:
                connection.server.log.warning("TLS failed", peer=connection.peer, error=error)
                connection.abort()
                return
            connection.transport = cast(asyncio.Transport, secure)
            self.is_secure = True

        return encrypt()

    # ------------------------------------------------------------------ who it is

    def _answer(self, kind: int, body: bytes) -> None:
        """A message of the exchange by which the client proves who it is."""
        if kind != PASSWORD:
            raise ProtocolError("expected a message of the authentication")
        connection = self.connection
        assert self._parameters is not None
        user = self._parameters["user"]
        fields = Fields(body)
        try:
            if self._exchange is None:
                if fields.text() != MECHANISM:
                    raise ProtocolError(f"the mechanism of authentication is {MECHANISM}")
                self._exchange = connection.server.users.exchange(user)
                first = fields.value()
                connection.send(messages.sasl_continue(self._exchange.first((first or b"").decode("ascii"))))
                connection.flush()
                return
            connection.send(messages.sasl_final(self._exchange.final(fields.rest().decode("ascii"))))
        except (WrongPassword, UnicodeDecodeError):
            connection.server.log.warning("authentication failed", user=user, peer=connection.peer)
            raise WrongPassword(f"password authentication failed for user {user!r}") from None
        self._welcome()

    def _welcome(self) -> None:
        """Let the client in."""
        connection, server = self.connection, self.connection.server
        assert self._parameters is not None
        number, secret = server.connections.add(connection)
        connection.number = number  # it is counted from here on, whatever fails
        parameters = self._parameters
        session = ClientSession(server, parameters["user"], "postgres", connection.peer)
        given = {name: value for name, value in parameters.items() if name not in ("user", "database", "options")}
        facts = {"ssl": "on" if self.is_secure else "off"}
        try:
            session.settings.begin(_options(parameters.get("options", "")) | given, **facts)
        except TektiteError:
            session.close()
            raise
        connection.reader.limit = server.plan.limits.message_bytes
        queries = ExtendedQueries(connection, session)
        connection.begun(queries, number)
        connection.send(messages.AUTHENTICATION_OK)
        queries.commands.report()
        connection.send(messages.backend_key(number, secret))
        connection.send(messages.READY["I"])
        connection.flush()


def _options(text: str) -> dict[str, str]:
    """The settings in the startup option `options`, which are written as for a command line.

    >>> _options("-c statement_timeout=5s --search_path=public")
    {'statement_timeout': '5s', 'search_path': 'public'}
    """
    words = text.replace("\\ ", " ").split()
    found = {}
    for at, word in enumerate(words):
        said = word.removeprefix("--") if word.startswith("--") else word[2:] if word.startswith("-c") else ""
        if word == "-c" and at + 1 < len(words):
            said = words[at + 1]
        name, is_said, value = said.partition("=")
        if is_said:
            found[name.replace("-", "_")] = value
    return found
