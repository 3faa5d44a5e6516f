"""Who gets in and what comes in: passwords, TLS, limits, the end of the server, and bytes that no client sends."""

from __future__ import annotations

import http.client
import random
import shutil
import socket
import struct
import subprocess
from pathlib import Path

import psycopg
import pytest

from tektite.errors import ConflictError, IncorrectError
from tektite.sql.access.verifiers import Verifier
from tests.support.patience import PATIENCE, until
from tests.support.server import RunningServer, answered, running_server

STARTUP = struct.pack("!i", 3 << 16) + b"user\0ann\0\0"
HELLO = struct.pack("!i", len(STARTUP) + 4) + STARTUP


def message(kind: bytes, body: bytes = b"") -> bytes:
    return kind + struct.pack("!i", len(body) + 4) + body


SELECT = message(b"Q", b"select 42\0")


def works(served: RunningServer, **options: str) -> bool:
    with psycopg.connect(served.conninfo(**options), autocommit=True) as client:
        return client.execute("SELECT 1").fetchone() == (1,)


# ---------------------------------------------------------------------- who gets in


def test_user_gets_in_by_password_alone() -> None:
    with running_server(users={"ann": Verifier.of("sécret")}) as served:
        assert works(served, password="sécret")
        for wrong in ({"password": "other"}, {"password": "sécret", "user": "bob"}):
            with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
                works(served, **wrong)
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(served.conninfo(), connect_timeout=int(PATIENCE))


def test_server_without_users_listens_on_loopback_only() -> None:
    with pytest.raises(IncorrectError, match="loopback only"), running_server(address="0.0.0.0"):
        pass


def test_verifier_does_not_hold_the_password() -> None:
    assert "secret" not in str(Verifier.of("secret"))
    assert Verifier.of("secret").accepts("secret") and not Verifier.of("secret").accepts("Secret")


def test_recorded_exchange_cannot_be_replayed() -> None:
    from tektite.server.scram import Exchange, WrongPassword

    verifier = Verifier.of("x")
    exchange = Exchange(verifier)
    exchange.first("n,,n=,r=abc")
    with pytest.raises(WrongPassword):
        exchange.final("c=biws,r=abcOLD,p=" + "A" * 43 + "=")


def test_tls_is_spoken_where_there_is_a_certificate(tmp_path: Path) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed: it makes the certificate of this test")
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-keyout",
        str(key),
        "-out",
        str(certificate),
    ]
    subprocess.run([*command, "-subj", "/CN=localhost", "-days", "1"], check=True, capture_output=True)
    with running_server(certificate=str(certificate), private_key=str(key), users={"ann": Verifier.of("x")}) as served:
        with psycopg.connect(served.conninfo(password="x", sslmode="require")) as client:
            assert client.pgconn.ssl_in_use
            assert client.execute("SHOW ssl").fetchone() == ("on",)
        # What is sent behind the request for TLS, in the clear, could come from anybody.
        request = struct.pack("!ii", 8, 80877103)
        assert answered(served.port, request + HELLO).startswith(b"E")
        assert works(served, password="x", sslmode="disable")


def test_client_beyond_the_limit_is_told_to_come_again() -> None:
    with running_server(limits={"connections": 2}) as served:
        full = pytest.raises(psycopg.OperationalError, match="as many as there may be")
        with psycopg.connect(served.conninfo()), psycopg.connect(served.conninfo()), full:
            psycopg.connect(served.conninfo())
        until(lambda: not len(served.server.connections))
        assert works(served)


# ---------------------------------------------------------------------- the beginning and the end


def test_second_server_on_a_storage_is_refused_with_its_owner(tmp_path: Path) -> None:
    with running_server(storage=tmp_path / "s"):
        with pytest.raises(ConflictError) as caught, running_server(storage=tmp_path / "s"):
            pass
        assert "process" in str(caught.value)


def test_what_was_acknowledged_is_there_after_a_restart(tmp_path: Path) -> None:
    with (
        running_server(storage=tmp_path / "s") as served,
        psycopg.connect(served.conninfo(), autocommit=True) as client,
    ):
        client.execute("CREATE TABLE t (i int primary key, v text)")
        for n in range(5):
            client.execute("INSERT INTO t VALUES (%s, %s)", (n, "v"), prepare=True)
            assert served.engine.durable >= served.engine.next_epoch
    with running_server(storage=tmp_path / "s") as served, psycopg.connect(served.conninfo()) as client:
        assert client.execute("SELECT count(*) FROM t").fetchone() == (5,)


def test_clients_are_told_when_the_server_stops() -> None:
    with running_server() as served:
        client = psycopg.connect(served.conninfo(), autocommit=True)
        served.stop()
        with pytest.raises(psycopg.OperationalError, match="the server stops|closed"):
            client.execute("SELECT 1")
    assert "stopped" in served.log.getvalue()


def test_liveness_and_readiness_are_told_over_http(served: RunningServer) -> None:
    def status(path: str, method: str = "GET") -> int:
        client = http.client.HTTPConnection("127.0.0.1", served.http_port, timeout=PATIENCE)
        client.request(method, path)
        return client.getresponse().status

    assert [status("/live"), status("/ready"), status("/status"), status("/else")] == [200, 200, 200, 404]
    assert status("/live", "POST") == 405
    served.server.is_stopping = True
    assert status("/ready") == 503
    served.server.is_stopping = False


# ---------------------------------------------------------------------- hostile bytes


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        struct.pack("!ii", 1 << 30, 3 << 16),
        struct.pack("!ii", 8, 2 << 16),
        struct.pack("!ii", 9, 3 << 16) + b"x",
        struct.pack("!ii", -5, 0),
        HELLO + b"Q" + struct.pack("!i", 1 << 30),
        HELLO + b"Q" + struct.pack("!i", 3),
        HELLO + message(b"Q", b"no end"),
        HELLO + message(b"Q", b"\xff\xfe\0"),
        HELLO + message(b"!", b""),
        HELLO + message(b"B", b"\0\0" + struct.pack("!hh", 1, 7)),
        HELLO + message(b"B", b"\0\0" + struct.pack("!hhi", 0, 1, -7)),
        HELLO + message(b"B", b"\0\0" + struct.pack("!hhi", 0, -3, 7)),
        HELLO + message(b"P", b"\0select 1\0" + struct.pack("!h", 30000)),
        HELLO + message(b"D", b"Z\0"),
        HELLO + message(b"C", b""),
    ],
)
def test_bytes_that_break_the_protocol_end_their_connection_alone(served: RunningServer, data: bytes) -> None:
    with psycopg.connect(served.conninfo(), autocommit=True) as other:
        found = answered(served.port, data)
        assert b"Traceback" not in found and b"tektite/" not in found
        assert other.execute("SELECT 1").fetchone() == (1,)
    if data.startswith(HELLO):
        assert b"FATAL" in found


@pytest.mark.parametrize("seed", range(6))
def test_random_messages_disturb_nobody(served: RunningServer, seed: int) -> None:
    chance = random.Random(seed)
    with psycopg.connect(served.conninfo(), autocommit=True) as other:
        for _ in range(30):
            parts = [HELLO] if chance.random() < 0.9 else []
            for _ in range(chance.randrange(12)):
                body = chance.choice(
                    [b"", b"\0", b"select 1\0", b"\0select $1\0\0\0", b"S\0", b"P\0", b"\0\0\0\0\0\0", b"\0\0\0\0\0", b"BEGIN\0",
                     b"COPY t FROM STDIN\0", chance.randbytes(chance.randrange(40))]
                )  # fmt: skip
                parts.append(message(bytes([chance.choice(b"QPBDECHSXdcfp\x00z")]), body))
            data = b"".join(parts)
            if chance.random() < 0.3:
                data = data[: chance.randrange(len(data) + 1)]
            found = answered(served.port, data, 1.0)
            assert b"Traceback" not in found
        assert other.execute("SELECT 1").fetchone() == (1,)
    until(lambda: not len(served.server.connections))


def test_client_that_says_nothing_is_not_waited_for() -> None:
    with running_server(limits={"startup_seconds": 0.2}) as served:
        with socket.create_connection(("127.0.0.1", served.port), PATIENCE) as peer:
            peer.settimeout(PATIENCE)
            peer.sendall(HELLO[:5])
            assert peer.recv(1) == b""
        # Again, should this one take too long as well.
        until(lambda: b"42" in answered(served.port, HELLO + SELECT))


def test_client_that_is_idle_for_too_long_is_disconnected() -> None:
    with running_server(limits={"idle_seconds": 0.2}) as served:
        client = psycopg.connect(served.conninfo(), autocommit=True)
        until(lambda: not len(served.server.connections))
        with pytest.raises(psycopg.OperationalError):
            client.execute("SELECT 1")
        # A client that says what it wants at once is never idle before it has an answer.
        assert b"42" in answered(served.port, HELLO + SELECT, goes=False)
        until(lambda: not len(served.server.connections))


def test_messages_out_of_order_are_errors_until_the_next_sync(served: RunningServer) -> None:
    late = message(b"E", b"none\0" + struct.pack("!i", 0)) + message(b"Q", b"select 1\0") + message(b"S")
    found = answered(served.port, HELLO + late + message(b"Q", b"select 42\0") + message(b"X"), goes=False)
    assert found.count(b"C34000") == 1
    assert b"42" in found
