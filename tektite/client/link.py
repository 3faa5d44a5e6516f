"""Link: one client's connection to a server: requests and their answers, changes, and connecting again.

An answer belongs to the request with its id. A connection that breaks fails the requests that wait for an answer, since nobody
knows whether they were carried out. If somebody follows changes, the link connects again by itself, for some seconds; otherwise
the next request does. Whoever is told `connected` goes on where it was.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from ssl import SSLCertVerificationError
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidMessage, InvalidStatus, WebSocketException

from tektite.client.address import ServerAddress, authorization
from tektite.errors import ConflictError, TektiteError
from tektite.wire import PROTOCOL
from tektite.wire.failures import ConnectionLost, from_data
from tektite.wire.messages import WireMessage, bytes_of, decode, text_of


class WrongCredentials(TektiteError):
    """The server does not let this user in."""

    code = "authentication"


class Link:
    """A connection that is opened again when it breaks."""

    def __init__(
        self, address: ServerAddress, token: str | None, ssl: Any, open_seconds: float, reconnect_seconds: float
    ) -> None:
        self.address = address
        self.reconnect_seconds = reconnect_seconds
        self.settings: list[str] = []
        """Statements that set something in the session, such as its role: they are repeated on each new connection."""
        self.generation = 0
        """The number of times that it was opened."""
        self.lineage = ""
        self.user = ""
        self.is_closed = False
        self.on_push: Callable[[WireMessage], None] = lambda message: None
        self.is_followed: Callable[[], bool] = lambda: False
        """Whether somebody waits for changes."""
        self.on_connected: Callable[[], None] = lambda: None
        self.on_given_up: Callable[[TektiteError], None] = lambda error: None
        self._token = token
        self._ssl = ssl
        self._open_seconds = open_seconds
        self._socket: ClientConnection | None = None
        self._reader: asyncio.Task[None] | None = None
        self._again: asyncio.Task[None] | None = None
        self._opening = asyncio.Lock()
        self._answers: dict[int, asyncio.Future[WireMessage]] = {}
        self._numbers = 0
        self._why = "it was closed"

    # ------------------------------------------------------------------ requests

    async def request(
        self, request: str, fields: dict[str, Any] | None = None, table: Any = None, generation: int | None = None
    ) -> WireMessage:
        """Ask, and wait for the answer. With a `generation`, only on that connection. Whoever is cancelled meanwhile has the
        request cancelled."""
        if self.is_closed:
            raise ConflictError("the session is closed")
        if generation is not None and (generation != self.generation or self._socket is None):
            raise ConnectionLost(
                f"the connection to {self.address.url} broke, and the transaction with it: {self._why}"
            )
        if self._socket is None:
            await self.open()
        return await self._ask(request, fields or {}, table)

    async def _ask(self, request: str, fields: dict[str, Any], table: Any) -> WireMessage:
        self._numbers += 1
        number = self._numbers
        head = {
            "id": number,
            "request": request,
            **{name: value for name, value in fields.items() if value is not None},
        }
        answer: asyncio.Future[WireMessage] = asyncio.get_running_loop().create_future()
        self._answers[number] = answer
        socket = self._socket
        assert socket is not None
        try:
            if table is None:
                await socket.send(text_of(head).decode())
            else:
                await socket.send(bytes_of(head, table))
            message = await answer
        except ConnectionClosed as error:
            raise ConnectionLost(f"the connection to {self.address.url} broke: {error}") from None
        except asyncio.CancelledError:
            asyncio.get_running_loop().create_task(self._cancel(socket))
            raise
        finally:
            self._answers.pop(number, None)
        if "error" in message.head:
            raise from_data(message.head["error"])
        return message

    async def _cancel(self, socket: ClientConnection) -> None:
        try:
            await socket.send('{"id": 0, "request": "cancel"}')
        except ConnectionClosed:
            return

    # ------------------------------------------------------------------ the connection

    async def open(self) -> None:
        """Connect, unless it is."""
        async with self._opening:
            if self._socket is not None:
                return
            address = self.address
            header = authorization(address.user, address.password, self._token)
            options: dict[str, Any] = {} if self._ssl is None else {"ssl": self._ssl}
            try:
                socket = await connect(
                    address.url, additional_headers={} if header is None else {"Authorization": header}, compression=None,
                    open_timeout=self._open_seconds, max_size=None, max_queue=None, proxy=None, **options,
                )  # fmt: skip
            except InvalidStatus as error:
                said = error.response.body.decode(errors="replace").strip()[:500] if error.response.body else ""
                if error.response.status_code in (401, 403):
                    raise WrongCredentials(f"{address.url} refuses the connection: {said}") from None
                raise ConnectionLost(
                    f"{address.url} refuses the connection: {error.response.status_code} {said}"
                ) from None
            except (OSError, WebSocketException, TimeoutError) as error:
                hint = ""
                if isinstance(error, ConnectionRefusedError):
                    hint = "; `tektite serve` starts a server, and engine.console() one in a program"
                elif isinstance(error, SSLCertVerificationError):
                    hint = (
                        "; ssl=ssl.create_default_context(cafile=...) trusts a certificate of your own, and so does the "
                        "environment variable SSL_CERT_FILE"
                    )
                elif isinstance(error, InvalidMessage):
                    tls = (
                        ""
                        if address.url.startswith("wss:")
                        else " If the server has a certificate, connect to tektites://"
                    )
                    hint = (
                        "; is this the port of PostgreSQL's protocol? Give that of HTTP and WebSocket, which is 5434 unless the "
                        f"server was told another.{tls}"
                    )
                raise ConnectionLost(f"cannot connect to {address.url}: {error}{hint}") from None
            self._socket = socket
            self.generation += 1
            self._reader = asyncio.get_running_loop().create_task(self._read(socket))
            try:
                hello = await self._ask("hello", {"protocol": PROTOCOL, "format": "arrow"}, None)
                for text in self.settings:
                    await self._ask("sql", {"text": text}, None)
            except BaseException:
                self._socket = None
                await socket.close()
                raise
            self.lineage, self.user = hello.head["lineage"], hello.head["user"]
        self.on_connected()

    async def _read(self, socket: ClientConnection) -> None:
        why: TektiteError | None = None
        try:
            async for data in socket:
                message = decode(data)
                number = message.head.get("id")
                if isinstance(number, int):
                    answer = self._answers.get(number)
                    if answer is not None and not answer.done():
                        answer.set_result(message)
                elif "subscription" in message.head:
                    self.on_push(message)
                elif "error" in message.head:
                    why = from_data(message.head["error"])
        except ConnectionClosed:
            pass  # said below
        except TektiteError as error:
            why = error
            await socket.close(1007)
        self._lost(socket, why)

    def _lost(self, socket: ClientConnection, why: TektiteError | None) -> None:
        """The connection has ended."""
        self._why = str(why) if why is not None else socket.close_reason or "the server has gone"
        if self._socket is socket:
            self._socket = None
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(ConnectionLost(f"the connection to {self.address.url} broke: {self._why}"))
        if not self.is_closed and self.is_followed() and self._again is None:
            self._again = asyncio.get_running_loop().create_task(self._open_again())

    async def _open_again(self) -> None:
        """Connect again, with growing pauses."""
        deadline, pause = time.monotonic() + self.reconnect_seconds, 0.02
        try:
            while not self.is_closed:
                try:
                    await self.open()
                    return
                except TektiteError as error:
                    if time.monotonic() + pause > deadline or not error.retryable:
                        self.on_given_up(error)
                        return
                await asyncio.sleep(pause)
                pause = min(pause * 2, 1.0)
        finally:
            self._again = None

    async def close(self) -> None:
        """Close for good."""
        self.is_closed = True
        if self._again is not None:
            self._again.cancel()
        socket, self._socket = self._socket, None
        if socket is not None:
            await socket.close()
        if self._reader is not None:
            await asyncio.wait([self._reader], timeout=5)
