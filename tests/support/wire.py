"""A client of the WebSocket that speaks plain JSON, for tests that look at messages."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from websockets.sync.client import ClientConnection, connect

from tests.support.patience import PATIENCE


class HasWebPort(Protocol):
    """A server, in this process or another."""

    @property
    def http_port(self) -> int: ...


class JsonClient:
    """One connection."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.pushed: list[dict[str, Any]] = []
        """What came without being asked for."""
        self._number = 0

    def send(self, request: str, **fields: Any) -> int:
        self._number += 1
        self.socket.send(json.dumps({"id": self._number, "request": request, **fields}))
        return self._number

    def receive(self, timeout: float = PATIENCE) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.socket.recv(timeout))
        return found

    def ask(self, request: str, **fields: Any) -> dict[str, Any]:
        """The answer to a request; what is pushed meanwhile is kept."""
        number = self.send(request, **fields)
        while True:
            found = self.receive()
            if found.get("id") == number:
                return found
            self.pushed.append(found)

    def rows(self, request: str, **fields: Any) -> list[list[Any]]:
        answer = self.ask(request, **fields)
        assert "error" not in answer, answer
        rows: list[list[Any]] = answer["table"]["rows"]
        return rows

    def code(self, request: str, **fields: Any) -> str:
        return str(self.ask(request, **fields)["error"]["code"])

    def push(self, timeout: float = PATIENCE) -> dict[str, Any]:
        """The next thing that comes without being asked for."""
        return self.pushed.pop(0) if self.pushed else self.receive(timeout)


class Follower:
    """Adds up what a subscription tells."""

    def __init__(self) -> None:
        self.rows: Counter[tuple[Any, ...]] = Counter()
        self.told = -1
        self._parts: list[list[Any]] = []

    def take(self, message: dict[str, Any]) -> None:
        self._parts += message.get("table", {}).get("rows", [])
        if "progress" in message:
            for *row, time, diff in self._parts:
                assert self.told < time <= message["progress"], "a change of a time that was complete"
                self.rows[tuple(row)] += diff
            self._parts = []
            assert message["progress"] >= self.told
            self.told = message["progress"]

    def lost(self) -> None:
        """The connection broke: what was not complete does not count."""
        self._parts = []

    @property
    def contents(self) -> Counter[tuple[Any, ...]]:
        return +self.rows if all(n >= 0 for n in self.rows.values()) else self.rows


@contextmanager
def json_client(served: HasWebPort, **headers: str) -> Iterator[JsonClient]:
    url = f"ws://127.0.0.1:{served.http_port}/v1/socket"
    with connect(url, additional_headers=headers, max_size=None, compression=None, proxy=None) as socket:
        yield JsonClient(socket)
