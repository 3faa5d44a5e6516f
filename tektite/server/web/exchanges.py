"""HttpExchanges: requests and responses of HTTP/1.1 on one connection, one after the other.

`h11` parses what comes in. A request's body is bounded, and is not read before its client is known to be a user. A client that
takes too long to send a request is disconnected. Whatever fails is reported to this client alone, without our insides.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

import h11

from tektite.errors import TektiteError
from tektite.server.web.routes import HttpRequest, HttpResponse, failed, route

if TYPE_CHECKING:
    from tektite.server.web.connection import WebConnection

KEPT_SECONDS = 75.0
"""Seconds after which a connection without a request is closed."""
BODY_BYTES_PER_TURN = 1 << 16
"""Bytes of a body that a client must send in each `startup_seconds`."""


class HttpExchanges:
    """Reads requests and writes responses of HTTP on a connection."""

    def __init__(self, connection: WebConnection) -> None:
        self._connection = connection
        self._server = connection.server
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=16_384)
        self._request: HttpRequest | None = None
        self._body: list[bytes] = []
        self._body_bytes = 0
        self._counted = 0
        self._task: asyncio.Task[None] | None = None
        self._number: int | None = None
        self._ending = False

    def received(self, data: bytes) -> None:
        """Take bytes."""
        try:
            self._http.receive_data(data)
        except h11.RemoteProtocolError as error:
            self._refuse(error.error_status_hint)
            return
        if self._task is None:
            self._pump()
        else:
            self._connection.read_on(False)

    def lost(self) -> None:
        """The client has gone."""
        if self._task is not None:
            self._task.cancel()
        if self._number is not None:
            self._server.connections.remove(self._number)

    def ended(self) -> bool:
        """The client sends no more; whether something is still to be sent to it."""
        self._ending = True
        return self._task is not None

    # ------------------------------------------------------------------ what the server asks for

    def cancel(self) -> None:
        """End what runs."""
        if self._task is not None:
            self._task.cancel()

    def end(self, reason: str) -> None:
        """Close when what runs has ended."""
        self._ending = True
        if self._task is None:
            self._connection.close()

    def abort(self) -> None:
        """Close at once."""
        self._connection.abort()

    # ------------------------------------------------------------------ requests

    def _pump(self) -> None:
        """Take what has arrived, until a request is whole."""
        while self._task is None and not self._connection.is_closed:
            try:
                event = self._http.next_event()
            except h11.RemoteProtocolError as error:
                self._refuse(error.error_status_hint)
                return
            if event is h11.NEED_DATA or event is h11.PAUSED:
                self._connection.read_on(True)
                return
            if isinstance(event, h11.ConnectionClosed):
                self._connection.close()
                return
            if isinstance(event, h11.Request):
                self._begin(event)
            elif isinstance(event, h11.Data):
                self._take(bytes(event.data))
            elif isinstance(event, h11.EndOfMessage) and self._request is not None:
                self._connection.limit_time(0, "")
                self._start(self._answer)

    def _begin(self, event: h11.Request) -> None:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in event.headers}
        target = event.target.decode("latin-1")
        self._request = HttpRequest(event.method.decode("latin-1"), target, headers, self._connection.peer)
        self._body, self._body_bytes, self._counted = [], 0, 0
        self._connection.limit_time(self._server.plan.limits.startup_seconds, "it took too long to send a request")
        if self._http.their_state is h11.SEND_BODY and "content-length" in headers or "transfer-encoding" in headers:
            self._start(self._admit)

    async def _admit(self, request: HttpRequest) -> None:
        """Find out who sends a body, before it is read."""
        await request.identify(self._server)
        if self._http.they_are_waiting_for_100_continue:
            self._write(h11.InformationalResponse(status_code=100, headers=[]))

    def _take(self, data: bytes) -> None:
        self._body.append(data)
        self._body_bytes += len(data)
        self._counted += len(data)
        if self._body_bytes > self._server.plan.limits.message_bytes:
            self._refuse(413)
        elif self._counted > BODY_BYTES_PER_TURN:
            self._counted = 0
            self._connection.limit_time(self._server.plan.limits.startup_seconds, "it took too long to send a request")

    async def _answer(self, request: HttpRequest) -> None:
        request.body = b"".join(self._body)
        self._body = []
        await request.identify(self._server)
        if self._number is None and request.user is not None:
            self._number, _ = self._server.connections.add(self)
        self._respond(request, await route(self._server, request))
        await self._connection.until_writable()

    def _start(self, work: Callable[[HttpRequest], Coroutine[Any, Any, None]]) -> None:
        self._task = self._server.loop.create_task(self._run(work))

    async def _run(self, work: Callable[[HttpRequest], Coroutine[Any, Any, None]]) -> None:
        request = self._request
        assert request is not None
        try:
            await work(request)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            if not isinstance(error, TektiteError):
                self._server.log.error("internal error", peer=self._connection.peer, error=repr(error))
            self._respond(request, failed(error), close=True)
        finally:
            self._task = None
        if self._http.our_state is h11.DONE and self._http.their_state is h11.DONE and not self._ending:
            self._http.start_next_cycle()
            self._request = None
            self._connection.limit_time(KEPT_SECONDS, "it asked for nothing")
        elif self._http.our_state in (h11.MUST_CLOSE, h11.CLOSED, h11.ERROR, h11.DONE) or self._ending:
            (self._connection.close if self._http.their_state is h11.DONE else self._connection.refuse)()
            return
        self._pump()

    # ------------------------------------------------------------------ responses

    def _respond(self, request: HttpRequest, response: HttpResponse, close: bool = False) -> None:
        if self._http.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            return  # it has begun to answer
        headers = {
            "content-type": response.kind,
            "content-length": str(len(response.body)),
            "cache-control": "no-store",
        }
        headers |= {"x-content-type-options": "nosniff", **response.headers}
        if response.status == 304:  # the length would be that of the body that the client has
            del headers["content-length"]
        if close:
            headers["connection"] = "close"
        self._write(h11.Response(status_code=response.status, headers=list(headers.items())))
        if request.method != "HEAD":
            self._write(h11.Data(data=response.body))
        self._write(h11.EndOfMessage())

    def _refuse(self, status: int) -> None:
        """Answer what is no request, or too long a one, and close."""
        if self._http.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            response = failed(TektiteError("expected a request of HTTP"), status)
            headers = {"content-type": response.kind, "content-length": str(len(response.body)), "connection": "close"}
            self._write(h11.Response(status_code=status, headers=list(headers.items())))
            self._write(h11.Data(data=response.body))
            self._write(h11.EndOfMessage())
        self._connection.refuse()

    def _write(self, event: h11.Event) -> None:
        data = self._http.send(event)
        if data:
            self._connection.write(data)
