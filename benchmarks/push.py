"""How long a change takes from a client's INSERT to another client that follows a view, over WebSockets; and many who follow.

Clients are processes of their own. `sent` is a column: the writer's clock, which all processes of a machine share.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from benchmarks.measure import percentile

NAME = "push"
DESCRIPTION = "INSERT to the changes at WebSocket subscribers: one of each, and 1,000 subscribers of 10 views"

HANDSHAKE = (
    b"GET /v1/socket HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)

MODULUS = 1_000_003
"""Of moments the remainders are added up: the sums stay small."""
PATIENCE = 30.0
"""Seconds without a change after which nothing more is expected."""


def run(
    rows: int = 3000,
    subscribers: int = 1000,
    views: int = 10,
    changes: int = 1000,
    seconds: float = 20.0,
    granularities: tuple[str | None, ...] = (None, "50 ms"),
    keys: int = 0,
) -> Iterator[dict[str, Any]]:
    """Records by `what`: one row to one subscriber, with and without a storage, unless `rows` is 0; many subscribers.

    Each change of many is a row more. With `keys` it replaces a row, so that what the server keeps does not grow: long runs show
    whether its memory is steady. What replaces a row twice in one epoch is told once: it counts as missing, and what a subscriber
    holds is right.
    """
    for stored in (False, True) if rows else ():
        with server(stored) as (port, _):
            yield {
                "what": f"one subscriber, {'with' if stored else 'no'} storage",
                **asyncio.run(one_by_one(port, rows)),
            }
    for granularity in granularities:
        with server(False, subscribers + 10) as (port, process):
            found = asyncio.run(fan_out(port, process, subscribers, views, changes, seconds, granularity, keys))
            yield {"what": f"{subscribers} subscribers of {views} views, granularity {granularity}", **found}


@contextmanager
def server(stored: bool, connections: int = 100) -> Iterator[tuple[int, int]]:
    """A server's port, and its process."""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable,
            "-m",
            "tektite",
            "serve",
            "--port",
            "0",
            "--http-port",
            "0",
            "--connections",
            str(connections),
        ]
        if stored:
            command += ["--storage", str(Path(folder) / "s")]
        log = Path(folder) / "log"
        with log.open("w") as out:
            process = subprocess.Popen(command, stderr=out)
            try:
                yield _port(log), process.pid
            finally:
                process.terminate()
                process.wait(60)


def _port(log: Path) -> int:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        for word in log.read_text().split():
            if word.startswith("http_port="):
                return int(word.partition("=")[2])
        time.sleep(0.05)
    raise RuntimeError("the server does not start")


class Peer(asyncio.Protocol):
    """A WebSocket that costs its process little, so that the server is what is measured."""

    def __init__(self) -> None:
        self.messages: asyncio.Queue[bytes] = asyncio.Queue()
        self.take: Callable[[bytes], None] = self.messages.put_nowait
        self._data = bytearray()
        self._is_open = False
        self._number = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask for a WebSocket."""
        self.transport = cast(asyncio.Transport, transport)
        self.transport.write(HANDSHAKE)

    def data_received(self, data: bytes) -> None:
        """Cut bytes into messages."""
        self._data += data
        if not self._is_open:
            end = self._data.find(b"\r\n\r\n")
            if end < 0:
                return
            self._is_open = True
            del self._data[: end + 4]
        held = self._data
        at, size = 0, len(held)
        while size - at >= 2:
            length, begin = held[at + 1], at + 2
            if length == 126:
                length, begin = int.from_bytes(held[at + 2 : at + 4], "big"), at + 4
            elif length == 127:
                length, begin = int.from_bytes(held[at + 2 : at + 10], "big"), at + 10
            if size < begin + length:
                break
            if held[at] & 15 == 1:
                self.take(bytes(held[begin : begin + length]))
            elif held[at] & 15 == 9:
                self.transport.write(b"\x8a\x80\0\0\0\0")
            at = begin + length
        del held[:at]

    def send(self, request: str, **fields: Any) -> int:
        """Ask for something."""
        self._number += 1
        data = json.dumps({"id": self._number, "request": request, **fields}).encode()
        head = bytes([0x81, 0x80 | len(data)]) if len(data) < 126 else b"\x81\xfe" + len(data).to_bytes(2, "big")
        self.transport.write(head + b"\0\0\0\0" + data)
        return self._number

    async def ask(self, request: str, **fields: Any) -> dict[str, Any]:
        """Ask for something, and wait for the answer; what is pushed meanwhile is passed over."""
        number = self.send(request, **fields)
        while True:
            found: dict[str, Any] = json.loads(await self.messages.get())
            if found.get("id") == number:
                if "error" in found:
                    raise RuntimeError(found["error"]["message"])
                return found


async def connected(port: int) -> Peer:
    """A WebSocket."""
    _, peer = await asyncio.get_running_loop().create_connection(Peer, "127.0.0.1", port)
    return peer


async def one_by_one(port: int, rows: int) -> dict[str, Any]:
    """One row after the other: from before its INSERT is sent to when its change has arrived."""
    writer, reader = await connected(port), await connected(port)
    await writer.ask("sql", text="CREATE TABLE t (k bigint, x bigint)")
    await writer.ask("create-view", name="v", query="SELECT k, count(*) AS n, sum(x) AS total FROM t GROUP BY k")
    await writer.ask("prepare", name="add", text="INSERT INTO t VALUES ($1, $2)")
    await reader.ask("interest", subscription=1, name="v")
    taken = []
    for number in range(rows + 200):
        began = time.perf_counter()
        writer.send("execute", name="add", params=[number % 100, number])
        while b'"rows"' not in await reader.messages.get():
            pass
        taken.append(time.perf_counter() - began)
        await writer.messages.get()
    taken = sorted(taken[200:])
    return {"p50 ms": taken[rows // 2] * 1e3, "p99 ms": taken[rows * 99 // 100] * 1e3}


async def fan_out(
    port: int,
    process: int,
    subscribers: int,
    views: int,
    changes: int,
    seconds: float,
    granularity: str | None,
    keys: int,
) -> dict[str, Any]:
    """Single-row INSERTs at a fixed rate, each a change of one view; every subscriber follows one view."""
    import psutil

    writer = await connected(port)
    kind = (
        "id bigint PRIMARY KEY, k bigint, sent bigint) WITH (mode = upsert"
        if keys
        else "id bigint, k bigint, sent bigint"
    )
    await writer.ask("sql", text=f"CREATE TABLE t ({kind})")
    for number in range(views):
        await writer.ask("create-view", name=f"v{number}", query=f"SELECT id, sent FROM t WHERE k = {number}")
    await writer.ask("prepare", name="add", text="INSERT INTO t VALUES ($1, $2, $3)")
    counts = [0] * subscribers
    delays = array("d")
    frames = [0]
    held = [[0, 0] for _ in range(subscribers)]  # of every tenth: how many rows it has, and the sum of their moments

    def taker(number: int) -> Any:
        is_sample = number % 20 < 2

        def take(data: bytes) -> None:
            at = data.find(b'"rows":[[')
            if at < 0:
                return
            frames[0] += 1
            if not is_sample:
                counts[number] += data.count(b"],[", at) + 1
                return
            arrived = time.monotonic_ns()
            rows = json.loads(data)["table"]["rows"]
            counts[number] += len(rows)
            held[number][0] += sum(row[3] for row in rows)
            held[number][1] += sum(row[1] % MODULUS * row[3] for row in rows)
            delays.extend((arrived - row[1]) / 1e6 for row in rows if row[3] > 0)

        return take

    peers = []
    for number in range(subscribers):
        peer = await connected(port)
        await peer.ask("interest", subscription=1, name=f"v{number % views}", granularity=granularity)
        peer.take = taker(number)
        peers.append(peer)
    memory = [psutil.Process(process).memory_info().rss]
    minutes: list[tuple[float, float]] = []
    told = 0
    before = psutil.Process(process).cpu_times()
    began, sent = time.perf_counter(), 0
    writer.take = lambda data: None
    while (now := time.perf_counter() - began) < seconds:
        while sent < now * changes:
            writer.send(
                "execute", name="add", params=[sent % keys if keys else sent, sent % views, time.monotonic_ns()]
            )
            sent += 1
        if now // 60 > len(minutes):
            memory.append(psutil.Process(process).memory_info().rss)
            minutes.append((round(memory[-1] / 1e6, 1), round(percentile(sorted(delays[told:]), 0.99), 1)))
            told = len(delays)
            print(f"minute {len(minutes)}: {minutes[-1][0]} MB, p99 {minutes[-1][1]} ms", flush=True)
        await asyncio.sleep(0.002)
    memory.append(psutil.Process(process).memory_info().rss)
    told_rows = sent + max(sent - keys, 0) if keys else sent  # a row that is replaced is told, too
    wanted = [len(range(number % views, told_rows, views)) for number in range(subscribers)]
    ended = came = time.perf_counter()
    arrived = sum(counts)
    while counts != wanted and time.perf_counter() < came + PATIENCE:
        await asyncio.sleep(0.05)
        if sum(counts) != arrived:
            arrived, came = sum(counts), time.perf_counter()
    contents, asker = [], await connected(port)
    for number in range(views):
        answer = await asker.ask("sql", text=f"SELECT count(*), sum(sent % {MODULUS}) FROM v{number}")
        contents.append(answer["table"]["rows"][0])
    wrong = [n for n in range(subscribers) if n % 20 < 2 and held[n] != contents[n % views]]
    used = psutil.Process(process).cpu_times()
    ordered = sorted(delays)
    cpu = used.user + used.system - before.user - before.system
    return {
        "changes/s": sent / seconds, "delivered": sum(counts), "missing": sum(wanted) - sum(counts),
        "seconds after the end": came - ended, "wrong of every tenth": len(wrong),
        "messages/s": frames[0] / seconds, "p50 ms": ordered[len(ordered) // 2], "p99 ms": ordered[len(ordered) * 99 // 100],
        "server CPU": cpu / seconds, "MB before": memory[0] / 1e6, "MB after": memory[-1] / 1e6, "minutes": minutes,
    }  # fmt: skip
