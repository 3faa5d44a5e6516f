"""WebSocket: a client's messages in, answers and changes out.

The `websockets` package speaks the protocol, without reading or writing itself. Requests are carried out one after the other;
those that wait are bounded, and beyond that nothing is read from the client. `cancel` alone is heard at once. A client that has
not said in the request's head who it is says so in its first message, `hello`, and until then may send short messages only.
"""

from __future__ import annotations

import asyncio
import struct
from collections import deque
from collections.abc import Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any

from websockets.exceptions import InvalidHandshake
from websockets.frames import Frame, Opcode
from websockets.http11 import Request
from websockets.protocol import State
from websockets.server import ServerProtocol

from tektite.errors import ConflictError, IncorrectError, TektiteError, UnsupportedError
from tektite.server.postgres.connection import place_of
from tektite.server.scram import WrongPassword
from tektite.server.sessions import ClientSession, StatementCancelled
from tektite.server.web.access import by_password, by_token, check_page, user_of
from tektite.server.web.requests import ClientRequests
from tektite.wire import PROTOCOL
from tektite.wire.failures import as_data
from tektite.wire.messages import MalformedMessage, WireMessage, arrow_bytes, binary_head, decode, text_of

if TYPE_CHECKING:
    import pyarrow as pa

    from tektite.server.feeds import Form
    from tektite.server.web.connection import WebConnection

PATH = "/v1/socket"
READ_AHEAD = 1 << 20
"""Bytes of requests that may wait before the client is not read any more."""
HELLO_BYTES = 4096
"""The longest message of a client that is not known."""
PING_SECONDS = 20.0
"""Seconds of silence after which a client gets a ping, and seconds for its answer before it counts as gone."""
LONG_ANSWER = 500
"""Rows of an answer from which on a worker encodes it."""


def frame(opcode: int, *parts: bytes) -> bytes:
    """A frame as a server sends it."""
    length = sum(map(len, parts))
    if length < 126:
        head = struct.pack("!BB", 0x80 | opcode, length)
    elif length < 1 << 16:
        head = struct.pack("!BBH", 0x80 | opcode, 126, length)
    else:
        head = struct.pack("!BBQ", 0x80 | opcode, 127, length)
    return b"".join([head, *parts])


class WebSocket:
    """Reads and writes WebSocket messages of a connection."""

    def __init__(self, connection: WebConnection) -> None:
        self._connection = connection
        self._server = connection.server
        self._protocol = ServerProtocol(max_size=HELLO_BYTES)
        self._requests: ClientRequests | None = None
        self._user: str | None = None
        self._number: int | None = None
        self._early = b""
        """Bytes that arrived before the upgrade to WebSocket was answered."""
        self._parts: list[bytes] = []
        self._is_text = False
        self._waiting: deque[tuple[str | bytes, int]] = deque()
        self._waiting_bytes = 0
        self._arrived = self._taken = self._cancelled = 0
        """Counts of messages: arrived, carried out, and arrived before the client cancelled."""
        self._task: asyncio.Task[None] | None = None
        self._ending = ""
        self._ping: asyncio.TimerHandle | None = None
        self._was_heard = True

    # ------------------------------------------------------------------ bytes

    def received(self, data: bytes) -> None:
        """Take bytes. What comes behind the request for a WebSocket waits until that is answered."""
        self._was_heard = True
        if self._protocol.state is State.CONNECTING:
            is_first = not self._early
            self._early += data
            self._connection.read_on(False)
            if not is_first:
                return
            end = self._early.index(b"\r\n\r\n") + 4
            data, self._early = self._early[:end], self._early[end:]
        self._protocol.receive_data(data)
        for event in self._protocol.events_received():
            if isinstance(event, Request):
                self._start(partial(self._open, event))
            elif isinstance(event, Frame):
                self._frame(event)
        self._flush()

    def _flush(self) -> None:
        for data in self._protocol.data_to_send():
            if data:
                self._connection.write(data)
        if self._protocol.close_expected():
            (self._connection.close if self._protocol.parser_exc is None else self._connection.refuse)()

    def lost(self) -> None:
        """The client has gone. Its transaction goes with it; what it was interested in is held for a while."""
        if self._ping is not None:
            self._ping.cancel()
        if self._task is not None:
            self._task.cancel()
        if self._requests is not None:
            self._requests.close_interests()
            self._requests.session.close()
        if self._number is not None:
            self._server.connections.remove(self._number)

    def ended(self) -> bool:
        """The client sends no more: it is not told anything either."""
        return False

    def _frame(self, found: Frame) -> None:
        """Take a frame, which `websockets` has checked: order, masks, lengths, UTF-8 of text."""
        if found.opcode in (Opcode.TEXT, Opcode.BINARY, Opcode.CONT):
            if found.opcode is not Opcode.CONT:
                self._is_text = found.opcode is Opcode.TEXT
            self._parts.append(bytes(found.data))
            if found.fin:
                data, self._parts = b"".join(self._parts), []
                self._message(data)

    def _message(self, data: bytes) -> None:
        try:
            said = data.decode() if self._is_text else data
        except UnicodeDecodeError:
            self._fail_protocol("a text that is not UTF-8")
            return
        if self._requests is not None and len(data) < 200 and b'"cancel"' in data and self._is_cancel(said):
            return
        self._arrived += 1
        self._waiting.append((said, len(data)))
        self._waiting_bytes += len(data)
        if self._waiting_bytes > READ_AHEAD or len(self._waiting) > 1000:
            self._connection.read_on(False)
        if self._task is None:
            self._start(self._work)

    def _is_cancel(self, said: str | bytes) -> bool:
        try:
            head = decode(said).head
        except TektiteError:
            return False
        if head.get("request") != "cancel" or self._requests is None:
            return False
        self._cancelled = self._arrived
        self._cancel_current()
        return True

    def _cancel_current(self) -> None:
        """End the request that is carried out, if it came before a cancel. It may be between two calls: then look again soon."""
        if self._requests is not None and self._task is not None and self._taken <= self._cancelled:
            self._requests.session.cancel()
            self._server.loop.call_later(0.01, self._cancel_current)

    # ------------------------------------------------------------------ tasks

    def _start(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._task = self._server.loop.create_task(self._run(work))

    async def _run(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        try:
            await work()
        except asyncio.CancelledError:
            raise
        except Exception as error:
            self._log(error)
            self._close(1011, "internal error")
        finally:
            self._task = None
        if self._ending:
            self._say_end()
        elif self._waiting and not self._connection.is_closed:
            self._start(self._work)

    def _log(self, error: BaseException) -> None:
        self._server.log.error("internal error", peer=self._connection.peer, error=repr(error), place=place_of(error))

    async def _open(self, request: Request) -> None:
        """Answer the request for a WebSocket."""
        try:
            if request.path.partition("?")[0] != PATH:
                self._reject(404, f"a WebSocket is at {PATH}")
                return
            headers = request.headers
            check_page(self._server, headers.get("Host"), headers.get("Origin"))
            if not self._server.is_ready:
                self._reject(503, "the server is not ready")
                return
            self._user = await user_of(self._server, headers.get("Authorization"))
        except WrongPassword as error:
            self._reject(401, str(error))
            return
        except (TektiteError, InvalidHandshake, LookupError) as error:
            self._reject(403, str(error) if isinstance(error, TektiteError) else "the head of the request is wrong")
            return
        response = self._protocol.accept(request)
        self._protocol.send_response(response)
        self._flush()
        if response.status_code != 101:
            return
        if self._user is not None:
            self._known(self._user, "json")
        self._connection.read_on(True)
        early, self._early = self._early, b""
        if early:
            self._server.loop.call_soon(self.received, early)

    def _reject(self, status: int, reason: str) -> None:
        self._protocol.send_response(self._protocol.reject(status, reason + "\n"))
        self._flush()
        self._connection.close()

    def _known(self, user: str, form: Form) -> None:
        """The client is known: its requests are carried out from here on."""
        self._number, _ = self._server.connections.add(self)
        self._protocol.max_message_size = self._server.plan.limits.message_bytes
        self._requests = ClientRequests(
            ClientSession(self._server, user, "websocket", self._connection.peer), self, form
        )
        self._connection.limit_time(0, "")
        self._ping = self._server.loop.call_later(PING_SECONDS, self._ask_whether_there)

    def _ask_whether_there(self) -> None:
        if not self._was_heard and self._connection.is_reading:
            self._server.log.warning("connection closed", peer=self._connection.peer, reason="it does not answer")
            self._connection.abort()
            return
        self._was_heard = False
        if self._protocol.state is State.OPEN:
            self._protocol.send_ping(b"")
            self._flush()
        self._ping = self._server.loop.call_later(PING_SECONDS, self._ask_whether_there)

    # ------------------------------------------------------------------ requests

    async def _work(self) -> None:
        while self._waiting and not self._connection.is_closed and not self._ending:
            said, length = self._waiting.popleft()
            self._taken += 1
            self._waiting_bytes -= length
            if self._waiting_bytes <= READ_AHEAD // 2 and not self._connection.is_reading:
                self._was_heard = True  # what it said meanwhile has not been read
                self._connection.read_on(True)
            try:
                message = decode(said) if length <= 1 << 16 else await self._server.compute(lambda: decode(said))  # noqa: B023
            except MalformedMessage as error:
                self._send({"error": as_data(error)})
                self._close(1007, str(error))
                return
            await self._answer(message)
            await self._connection.until_writable()

    async def _answer(self, message: WireMessage) -> None:
        fields = dict(message.head)
        number, request = fields.pop("id", None), fields.pop("request", None)
        try:
            if not isinstance(number, int | str) or not isinstance(request, str):
                raise IncorrectError("a message has an id, a number or a text, and says which request it is")
            if request == "hello":
                facts, table = await self._hello(fields), None
            elif self._taken <= self._cancelled:
                raise StatementCancelled("the request was cancelled: its user asked for that")
            elif self._requests is None:
                raise WrongPassword(
                    "say who you are: the first request is 'hello', with a user and a password or with a token"
                )
            else:
                facts, table = await self._requests.answer(request, fields, message.table)
            await self._send_answer({"id": number, **facts}, table)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            if not isinstance(error, TektiteError):
                self._log(error)
            self._send({"id": number if isinstance(number, int | str) else None, "error": as_data(error)})
            if self._requests is None:
                self._close(1008, "authentication failed")

    async def _hello(self, fields: dict[str, Any]) -> dict[str, Any]:
        """The first request: who the client is, which version it speaks, and how it wants tables."""
        version, form = fields.get("protocol", PROTOCOL), fields.get("format", "json")
        if version != PROTOCOL:
            raise UnsupportedError(f"this server speaks version {PROTOCOL} of the protocol, not {str(version)[:20]}")
        if form not in ("json", "arrow"):
            raise IncorrectError(f"format is json or arrow, not {str(form)[:50]!r}")
        if self._requests is None:
            token, name, password = fields.get("token"), fields.get("user"), fields.get("password")
            if isinstance(token, str):
                self._user = await by_token(self._server, token)
            elif isinstance(name, str) and isinstance(password, str):
                self._user = await by_password(self._server, name, password)
            else:
                raise WrongPassword("say who you are: a user and a password, or a token")
            self._known(self._user, form)
        elif any(fields.get(name) is not None for name in ("token", "password")):
            raise ConflictError("who the client is was said before")
        assert self._requests is not None
        self._requests.form = form
        return {"protocol": PROTOCOL, "user": self._user, "lineage": self._server.lineage}

    # ------------------------------------------------------------------ what goes out

    def _send(self, head: dict[str, Any]) -> None:
        if self._protocol.state is State.OPEN:
            self._connection.write(frame(Opcode.TEXT, text_of(head)))

    async def _send_answer(self, head: dict[str, Any], table: pa.Table | None) -> None:
        if table is None:
            self._send(head)
            return
        form = "json" if self._requests is None else self._requests.form
        opcode = Opcode.BINARY if form == "arrow" else Opcode.TEXT

        def encode() -> bytes:
            return binary_head(head) + arrow_bytes(table) if form == "arrow" else text_of(head, table)

        data = encode() if table.num_rows < LONG_ANSWER else await self._server.compute(encode)
        if self._protocol.state is State.OPEN:
            self._connection.write(frame(opcode, data))

    @property
    def is_writable(self) -> bool:
        """Whether there is room in the buffer for what is to be sent."""
        return self._connection.is_writable

    async def until_writable(self) -> None:
        """Wait until not too much waits to be sent."""
        await self._connection.until_writable()

    def push(self, head: bytes, form: Form, table: bytes | None) -> None:
        """Send a message: its head as JSON, and an encoded table."""
        if self._protocol.state is not State.OPEN:
            return
        if table is None:
            self._connection.write(frame(Opcode.TEXT, head))
        elif form == "arrow":
            self._connection.write(frame(Opcode.BINARY, struct.pack("!I", len(head)), head, table))
        else:
            self._connection.write(frame(Opcode.TEXT, head[:-1], b',"table":', table, b"}"))

    def disconnect(self, error: TektiteError) -> None:
        """Say why, and close."""
        self._server.log.warning("connection closed", peer=self._connection.peer, reason=str(error))
        self._send({"error": as_data(error)})
        self._close(1013, str(error))

    def _fail_protocol(self, reason: str) -> None:
        self._close(1002, reason)

    def _close(self, code: int, reason: str) -> None:
        if self._protocol.state is State.OPEN:
            self._protocol.send_close(code, reason.encode()[:120].decode(errors="ignore"))
            self._flush()
        self._connection.close()

    # ------------------------------------------------------------------ what the server asks for

    def cancel(self) -> None:
        """End the request that is carried out, if one is."""
        if self._requests is not None:
            self._requests.session.cancel()

    def end(self, reason: str) -> None:
        """Tell the client that the server stops, and close when what runs has ended."""
        self._ending = reason
        if self._task is None:
            self._say_end()

    def _say_end(self) -> None:
        self._close(1001, self._ending)

    def abort(self) -> None:
        """Close at once."""
        self._connection.abort()
