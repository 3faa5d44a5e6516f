"""What comes in at the door of HTTP and WebSocket that no client sends: bounded, without our insides, and felt by nobody else."""

from __future__ import annotations

import base64
import json
import os
import random
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
import pytest
from websockets.exceptions import ConnectionClosed

from tektite.server.scram import Verifier
from tektite.server.web.socket import WebSocket
from tektite.wire.messages import MalformedMessage, bytes_of, decode
from tests.support.patience import PATIENCE, until
from tests.support.server import RunningServer, answered, running_server
from tests.support.wire import json_client

UPGRADE = (
    b"GET /v1/socket HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)
POST = b"POST /v1/sql HTTP/1.1\r\nHost: localhost\r\n"


def frame(opcode: int, data: bytes, fin: bool = True, is_masked: bool = True, length: int | None = None) -> bytes:
    size = len(data) if length is None else length
    first = (0x80 if fin else 0) | opcode
    bit = 0x80 if is_masked else 0
    if size < 126:
        head = struct.pack("!BB", first, bit | size)
    elif size < 1 << 16:
        head = struct.pack("!BBH", first, bit | 126, size)
    else:
        head = struct.pack("!BBQ", first, bit | 127, size)
    return head + (b"\0\0\0\0" if is_masked else b"") + data


def text(**head: object) -> bytes:
    return frame(1, json.dumps(head).encode())


@contextmanager
def undisturbed(served: RunningServer) -> Iterator[None]:
    """Somebody else, who follows changes meanwhile, notices nothing."""
    with json_client(served) as other:
        other.ask("sql", text="CREATE TABLE IF NOT EXISTS quiet (x int)")
        other.ask("interest", subscription=1, name="quiet")
        yield
        last = other.ask("insert", table="quiet", rows=[[1]])["time"]
        while other.push().get("progress") != last:
            pass
        assert other.rows("sql", text="SELECT 1 AS one") == [[1]]


@pytest.mark.parametrize(
    "data",
    [
        b"\0\1\2\3" * 10, b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"GET /v1/socket HTTP/1.1\r\n\r\n", b"A" * 100_000,
        b"GET / HTTP/1.1\r\nHost: x\r\n" + b"X: y\r\n" * 20_000 + b"\r\n",
        POST + b"Content-Length: 99999999999\r\n\r\nx", POST + b"Content-Length: -1\r\n\r\n",
        POST + b"Content-Length: 3\r\n\r\n{}",
        POST + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}", POST + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
        POST + b"Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n0\r\n\r\n", POST + b"Content-Length: 2\r\n\r\n[]",
        POST + b"Content-Length: 4\r\n\r\n\xff\xfe\xfd\xfc", POST.replace(b"POST", b"BREW") + b"\r\n",
        POST + b"Content-Length: 60000\r\n\r\n" + b"[" * 60_000, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        UPGRADE.replace(b"13", b"99"), UPGRADE.replace(b"/v1/socket", b"/elsewhere"), UPGRADE.replace(b"Sec-WebSocket-Key", b"X"),
        UPGRADE + frame(1, b"{}", is_masked=False), UPGRADE + frame(3, b""), UPGRADE + frame(0, b"x"),
        UPGRADE + frame(9, b"x" * 200),
        UPGRADE + frame(1, b"", length=1 << 62), UPGRADE + frame(1, b"\xff\xfe"),
        UPGRADE + frame(1, b"x", fin=False) + frame(1, b"y"),
        UPGRADE + frame(1, b"not json"), UPGRADE + frame(1, b"[1]"), UPGRADE + frame(1, b'{"id": NaN}'),
        UPGRADE + frame(2, b"\0"),
        UPGRADE + frame(2, struct.pack("!I", 1 << 31) + b"{}"), UPGRADE + frame(2, struct.pack("!I", 2) + b"{}" + b"ARROW1" * 50),
        UPGRADE + frame(1, b"[" * 4000), UPGRADE + frame(8, b"\0"), UPGRADE + frame(8, struct.pack("!H", 1)),
        UPGRADE + text(id=1, request="hello", protocol=2), UPGRADE + text(id=None, request="sql"),
        UPGRADE + text(id=1, request=[]),
        UPGRADE + text(id=1, request="sql", text={}), UPGRADE + text(id=1, request="sql", text="SELECT 1", params=7),
        UPGRADE + text(id=1, request="interest", subscription="x", name="t"), UPGRADE + text(id=1, request="__init__"),
        UPGRADE + text(id=1, request="sql", text="SELECT $1", params=[{"type": "decimal", "value": "x" * 1000}]),
    ],
)  # fmt: skip
def test_bytes_that_break_the_protocol_end_their_connection_alone(served: RunningServer, data: bytes) -> None:
    with undisturbed(served):
        found = answered(served.http_port, data)
        assert b"Traceback" not in found and b"tektite/" not in found and b".py" not in found
    until(lambda: not len(served.server.connections))


@pytest.mark.parametrize("seed", range(6))
def test_random_bytes_disturb_nobody(served: RunningServer, seed: int) -> None:
    chance = random.Random(seed)
    names = [
        "sql",
        "rows",
        "insert",
        "interest",
        "uninterest",
        "begin",
        "commit",
        "register",
        "transact",
        "hello",
        "wait",
        "prepare",
    ]
    fields = [
        "text",
        "relation",
        "table",
        "rows",
        "subscription",
        "name",
        "at",
        "key",
        "params",
        "facts",
        "datalog",
        "since",
        "n",
    ]
    values = [
        "t",
        1,
        -1,
        2**70,
        None,
        [],
        {},
        [[1]],
        [["x", None]],
        "SELECT 1",
        True,
        1e308,
        {"type": "date", "value": "x"},
        "\0",
        "é" * 50,
    ]
    with undisturbed(served):
        for _ in range(25):
            parts = [UPGRADE if chance.random() < 0.8 else POST]
            for _ in range(chance.randrange(12)):
                if chance.random() < 0.7:
                    said = {name: chance.choice(values) for name in chance.sample(fields, chance.randrange(4))}
                    parts.append(text(id=chance.randrange(5), request=chance.choice(names), **said))
                else:
                    parts.append(
                        frame(chance.randrange(16), chance.randbytes(chance.randrange(100)), fin=chance.random() < 0.7)
                    )
            data = bytearray(b"".join(parts))
            for _ in range(chance.randrange(3)):
                data[chance.randrange(len(data))] = chance.randrange(256)
            found = answered(served.http_port, bytes(data[: chance.randrange(1, len(data) + 1)]), 1.0)
            assert b"Traceback" not in found and b".py" not in found
    until(lambda: not len(served.server.connections))


@pytest.mark.parametrize("seed", range(20))
def test_no_message_is_decoded_into_anything_but_a_message_or_an_error(seed: int) -> None:
    import pyarrow as pa

    chance = random.Random(seed)
    table = pa.table({"x": [1, 2, None], "s": ["a", None, "ccc"], "d": pa.array([1.5, 2.5, None])})
    whole = bytes_of({"id": 1, "request": "insert"}, table)
    for _ in range(200):
        data = bytearray(whole[: chance.randrange(len(whole) + 1)])
        for _ in range(chance.randrange(6)):
            if data:
                data[chance.randrange(len(data))] = chance.randrange(256)
        try:
            found = decode(bytes(data)).table
        except MalformedMessage:
            continue
        if found is not None:
            found.to_pylist()


def test_a_client_that_is_not_known_may_not_send_much() -> None:
    with running_server(users={"ann": Verifier.of("x")}) as served:
        long = frame(1, json.dumps({"id": 1, "request": "hello", "user": "x" * 100_000}).encode())
        assert b"\x03\xf1" in answered(served.http_port, UPGRADE + long, goes=False)  # 1009: too long
        head = POST + b"Expect: 100-continue\r\nContent-Length: 1000000\r\n\r\n"
        found = answered(served.http_port, head)
        assert found.startswith(b"HTTP/1.1 401") and b"100 Continue" not in found
        wrong = b"Authorization: Basic " + base64.b64encode(b"ann:y") + b"\r\n"
        assert answered(served.http_port, POST + wrong + b"Content-Length: 2\r\n\r\n{}").startswith(b"HTTP/1.1 401")


def test_clients_that_are_slow_to_ask_are_not_waited_for() -> None:
    with running_server(limits={"startup_seconds": 0.5}, users={"ann": Verifier.of("x")}) as served:
        right = b"Authorization: Basic " + base64.b64encode(b"ann:x") + b"\r\n"
        beginnings = (
            b"",
            b"GET / HT",
            UPGRADE,
            POST + right + b"Content-Length: 100\r\n\r\n{",
            POST + right + b"Transfer-Encoding: chunked\r\n\r\n",
        )
        for beginning in beginnings:
            with socket.create_connection(("127.0.0.1", served.http_port), PATIENCE) as peer:
                peer.settimeout(PATIENCE)
                peer.sendall(beginning)
                began = time.monotonic()
                try:
                    while peer.recv(1000):
                        # It goes on, byte by byte.
                        if time.monotonic() - began < 15 and not beginning.startswith(b"GET /v1"):
                            peer.sendall(b"x")
                except ConnectionError:
                    pass
        until(lambda: served.log.getvalue().count("connection-closed") >= len(beginnings) - 1)


def test_many_unfinished_requests_cost_little_memory() -> None:
    with running_server(limits={"message_bytes": 1 << 20}) as served:
        served.engine.create_table("t", {"s": str})
        before = psutil.Process(os.getpid()).memory_info().rss
        peers = []
        for number in range(200):
            peer = socket.create_connection(("127.0.0.1", served.http_port), PATIENCE)
            peers.append(peer)
            peer.sendall(UPGRADE)
            peer.recv(1000)
            # A message that never ends, and messages that nobody waits for the answers of.
            peer.sendall(frame(1, b"x" * 60_000, length=1 << 19) if number % 2 else text(id=1, request="status") * 50)
        with json_client(served) as client:
            assert client.ask("count", relation="t")["count"] == 0
        used = psutil.Process(os.getpid()).memory_info().rss - before
        for peer in peers:
            peer.close()
        assert used < 200 << 20


def test_a_message_that_is_too_long_is_refused() -> None:
    with running_server(limits={"message_bytes": 100_000}) as served, json_client(served) as client:
        assert client.ask("sql", text="SELECT 1 -- " + "x" * 90_000)["message"] == "SELECT"
        client.send("sql", text="SELECT 1 -- " + "x" * 200_000)
        with pytest.raises(ConnectionClosed) as caught:
            client.receive()
        assert caught.value.sent is not None or caught.value.rcvd is not None
        body = POST + b"Content-Length: 200000\r\n\r\n" + b" " * 200_000
        assert answered(served.http_port, body).startswith(b"HTTP/1.1 413")


def test_a_client_whose_requests_wait_is_not_taken_to_be_gone() -> None:
    """What it says is not read while much of it waits: neither are its answers to pings."""
    with running_server() as served, json_client(served) as client:
        client.ask("sql", text="CREATE TABLE t (x int); CREATE MATERIALIZED VIEW v AS SELECT x FROM t")
        (connection,) = served.server.connections.all()
        assert isinstance(connection, WebSocket)
        waiting = client.send("wait", view="v", time=served.engine.next_epoch, seconds=PATIENCE)
        others = [client.send("sql", text=f"SELECT {n} AS n -- {'x' * 100_000}") for n in range(40)]
        until(lambda: not connection._connection.is_reading)
        for _ in range(2):  # what the server does every 20 seconds
            served.loop.call_soon_threadsafe(connection._ask_whether_there)
        served.engine.sql("INSERT INTO t VALUES (1)")
        assert client.receive() == {"id": waiting, "there": True}
        assert [client.receive()["id"] for _ in others] == others
