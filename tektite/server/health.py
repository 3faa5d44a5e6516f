"""Liveness and readiness over HTTP, for whoever runs the server: `/live`, `/ready` and `/status`.

`/live` answers as long as the event loop turns. `/ready` answers 200 while statements are answered, and 503 before and after.
"""

from __future__ import annotations

import asyncio
import json
import time
from typing import TYPE_CHECKING, Any

from tektite.engine.core import core_of

if TYPE_CHECKING:
    from tektite.server.server import Server

REQUEST_BYTES = 8192
REQUEST_SECONDS = 5.0
REASONS = {200: "OK", 400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed", 503: "Service Unavailable"}


class HealthServer:
    """Answers requests about one server."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._listening: asyncio.Server | None = None

    async def start(self, address: str, port: int) -> int:
        """Listen; the port."""
        self._listening = await asyncio.start_server(self._answer, address, port, limit=REQUEST_BYTES)
        found: int = self._listening.sockets[0].getsockname()[1]
        return found

    async def stop(self) -> None:
        """Listen no more."""
        if self._listening is not None:
            self._listening.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            status, body = await self._read(reader)
            data = json.dumps(body).encode() + b"\n"
            head = f"HTTP/1.1 {status} {REASONS[status]}\r\nContent-Type: application/json\r\nConnection: close\r\n"
            writer.write(f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data)
            await asyncio.wait_for(writer.drain(), REQUEST_SECONDS)
        except (OSError, TimeoutError):
            pass  # whoever asked has gone, or does not listen
        finally:
            writer.close()

    async def _read(self, reader: asyncio.StreamReader) -> tuple[int, dict[str, Any]]:
        try:
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), REQUEST_SECONDS)
            method, path, _ = head.split(b"\r\n", 1)[0].decode("ascii").split(" ")
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
            return 400, {"error": "expected a request of HTTP"}
        if method not in ("GET", "HEAD"):
            return 405, {"error": f"{method[:20]} is not supported here"}
        return self.answer(path.partition("?")[0])

    def answer(self, path: str) -> tuple[int, dict[str, Any]]:
        """The status and the body that answer a request for a path."""
        server = self._server
        if path == "/live":
            return 200, {"live": True}
        if path == "/ready":
            return (200 if server.is_ready else 503), {"ready": server.is_ready}
        if path == "/status":
            core = core_of(server.engine)
            return 200, {
                "ready": server.is_ready, "seconds": round(time.time() - server.began, 3), "connections": len(server.connections),
                "epoch": core.epoch, "durable": core.durable, "tables": len(core.inputs), "views": len(core.views),
            }  # fmt: skip
        return 404, {"error": "there are /live, /ready and /status"}
