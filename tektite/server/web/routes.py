"""The paths of the HTTP interface.

| path | |
|---|---|
| GET /live, /ready, /health, /status | how the server is; for everybody |
| POST /v1/NAME | a request by its name, in a session of its own, with its fields as an object of JSON |
| GET /v1/socket | a WebSocket |
| GET /metrics | figures for Prometheus |
| GET /, /console/NAME | the console, a page for browsers; for everybody |

A body may be an Arrow stream instead of JSON: then the fields are in the query. A client that accepts Arrow streams gets tables
as one, with the rest of the answer as JSON in the header `tektite-answer`.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

from tektite.errors import ConflictError, TektiteError, UnsupportedError
from tektite.server.health import health
from tektite.server.scram import WrongPassword
from tektite.server.sessions import ClientSession
from tektite.server.web.access import check_page, user_of
from tektite.server.web.console_files import HEADERS, PREFIX, console_file
from tektite.server.web.requests import ClientRequests
from tektite.sql import runner
from tektite.sql.access.access_control import PermissionDenied
from tektite.wire.failures import as_data
from tektite.wire.messages import arrow_bytes, head_of, table_of, text_of

if TYPE_CHECKING:
    import pyarrow as pa

    from tektite.server.server import Server

ARROW = "application/vnd.apache.arrow.stream"
JSON = "application/json"
STATUSES = {
    "incorrect": 400, "protocol": 400, "unsupported": 400, "authentication": 401, "forbidden": 403,
    "permission-denied": 403, "not-found": 404,
    "method": 405, "cancelled": 408, "conflict": 409, "transaction-conflict": 409, "too-many-connections": 503,
    "too-many-queries": 429,
}  # fmt: skip
"""The status of each kind of error; of others it is 500."""


@dataclass
class HttpRequest:
    """A request of HTTP."""

    method: str
    target: str
    headers: dict[str, str]
    peer: str
    """The address that it comes from."""
    body: bytes = b""
    user: str | None = None
    """The user who sends it, once known."""

    @property
    def path(self) -> str:
        """The path, without the query."""
        return urlsplit(self.target).path

    async def identify(self, server: Server) -> None:
        """Find out who sends it, unless everybody may; refuses what is no user."""
        is_page = self.path == "/" or self.path.startswith(PREFIX)
        if self.user is not None or is_page or health(server, self.path) is not None:
            return
        check_page(server, self.headers.get("host"), self.headers.get("origin"))
        self.user = await user_of(server, self.headers.get("authorization"))
        if self.user is None:
            raise WrongPassword("say who you are: a password (Basic) or a token (Bearer) in the header Authorization")


@dataclass
class HttpResponse:
    """A response of HTTP."""

    status: int
    body: bytes
    kind: str = JSON
    headers: dict[str, str] = field(default_factory=dict)


class WrongMethod(TektiteError):
    """A path that is asked for in another way."""

    code = "method"


def failed(error: BaseException, status: int | None = None) -> HttpResponse:
    """The response to a request that failed."""
    found = as_data(error)
    number = status or STATUSES.get(found["code"], 500)
    headers = {"www-authenticate": 'Basic realm="tektite", charset="UTF-8"'} if number == 401 else {}
    return HttpResponse(number, text_of({"error": found}) + b"\n", headers=headers)


async def route(server: Server, request: HttpRequest) -> HttpResponse:
    """Answer a request."""
    try:
        told = health(server, request.path)
        if told is not None:
            _only(request, "GET", "HEAD")
            return HttpResponse(told[0], json.dumps(told[1]).encode() + b"\n")
        for prefix, handler in ROUTES:
            if request.path.startswith(prefix):
                return await handler(server, request)
        return await _console(server, request) if request.path == "/" else _nothing()
    except TektiteError as error:
        return failed(error)


async def _request(server: Server, request: HttpRequest) -> HttpResponse:
    """POST /v1/NAME."""
    _only(request, "POST")
    if not server.is_ready:
        raise ConflictError("the server is not ready")
    name = request.path.removeprefix("/v1/")
    assert request.user is not None
    fields, table = _fields(request)
    wants_arrow = ARROW in request.headers.get("accept", "")
    session = ClientSession(server, request.user, "http", request.peer)
    try:
        requests = ClientRequests(session, None, "arrow" if wants_arrow else "json")
        answer = await requests.answer(name, fields, table)
        if answer.table is None or not wants_arrow:
            body = await server.compute(lambda: text_of(answer.facts, answer.table))
            return HttpResponse(200, body + b"\n")
        found = answer.table
        told = json.dumps(answer.facts)
        return HttpResponse(200, await server.compute(lambda: arrow_bytes(found)), ARROW, {"tektite-answer": told})
    finally:
        session.close()


def _fields(request: HttpRequest) -> tuple[dict[str, Any], pa.Table | None]:
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() == ARROW:
        return dict(parse_qsl(urlsplit(request.target).query)), table_of(request.body)
    return (head_of(request.body) if request.body.strip() else {}), None


def _only(request: HttpRequest, *methods: str) -> None:
    if request.method not in methods:
        raise WrongMethod(f"{request.path[:100]} is asked for by {' or '.join(methods)}, not by {request.method[:20]}")


async def _metrics(server: Server, request: HttpRequest) -> HttpResponse:
    """GET /metrics. It tells of everything that the relations which it shows have: who sees these whole may ask for it."""
    _only(request, "GET", "HEAD")
    try:
        from tektite.server.web.metrics import KIND, SHOWN_RELATIONS, metrics_text
    except ImportError:
        raise UnsupportedError("/metrics needs the package prometheus-client: pip install 'tektite[server]'") from None
    if server.users.are_configured:
        access = runner(server.engine).access
        hidden = [name for name in SHOWN_RELATIONS if not access.bypasses(request.user, name)]
        if hidden:
            raise PermissionDenied(
                f"permission denied for /metrics: {request.user!r} does not see all rows of {', '.join(hidden)}. A superuser "
                f"grants that: GRANT SELECT ON {', '.join(hidden)} TO {request.user}"
            )
    return HttpResponse(200, await server.compute(lambda: metrics_text(server)), KIND)


async def _console(server: Server, request: HttpRequest) -> HttpResponse:
    """GET / and what the page loads."""
    _only(request, "GET", "HEAD")
    found = console_file(request.path)
    if found is None:
        return _nothing()
    headers = HEADERS | {"etag": found.tag}
    if found.tag in request.headers.get("if-none-match", ""):
        return HttpResponse(304, b"", found.kind, headers)
    if found.packed is not None and "gzip" in request.headers.get("accept-encoding", ""):
        return HttpResponse(200, found.packed, found.kind, headers | {"content-encoding": "gzip"})
    return HttpResponse(200, found.body, found.kind, headers)


def _nothing() -> HttpResponse:
    return HttpResponse(404, text_of({"error": as_data(TektiteError("there is nothing here"))}) + b"\n")


ROUTES: tuple[tuple[str, Callable[[Server, HttpRequest], Awaitable[HttpResponse]]], ...] = (
    ("/v1/", _request),
    ("/metrics", _metrics),
    (PREFIX, _console),
)
"""Prefixes of paths, each with its handler. The first prefix that fits decides."""
