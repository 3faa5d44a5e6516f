"""`system.clients`: who is connected to a server, and what runs; each user sees its own."""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg import errors

import tektite as tk
from tektite.sql.access.verifiers import Verifier
from tests.support.patience import eventually
from tests.support.server import RunningServer, running_server
from tests.support.wire import json_client

CLIENTS = "SELECT user_name, protocol, subscriptions, running FROM system.clients ORDER BY number"


@pytest.fixture
def guarded() -> Iterator[RunningServer]:
    """A server with a superuser and two others."""
    with running_server(users={"root": Verifier.of("pw")}) as found:
        with connected(found, "root") as root:
            root.execute("CREATE USER ann PASSWORD 'pw'; CREATE USER bob PASSWORD 'pw'; CREATE TABLE t (x int)")
            root.execute("GRANT SELECT ON t TO ann")
        yield found
    assert "internal-error" not in found.log.getvalue()


def connected(server: RunningServer, user: str) -> psycopg.Connection[Any]:
    return psycopg.connect(server.conninfo(user), password="pw", autocommit=True)


def test_everybody_sees_its_own_connections_and_superusers_see_all(guarded: RunningServer) -> None:
    with connected(guarded, "ann") as ann, connected(guarded, "bob") as bob, connected(guarded, "root") as root:
        assert ann.execute(CLIENTS).fetchall() == [("ann", "postgres", 0, CLIENTS)]
        found = root.execute(CLIENTS).fetchall()
        assert found == [("ann", "postgres", 0, None), ("bob", "postgres", 0, None), ("root", "postgres", 0, CLIENTS)]
        assert ann.execute("SELECT count(*) FROM system.clients WHERE user_name = 'bob'").fetchone() == (0,)
        address, since = bob.execute("SELECT address, since FROM system.clients").fetchall()[0]
        assert "127.0.0.1" in address and abs(since.timestamp() - time.time()) < 3600
        with pytest.raises(errors.InsufficientPrivilege):
            bob.execute("CREATE POLICY more ON system.clients USING (true)")
        bob.close()
        eventually(lambda: [row[0] for row in root.execute(CLIENTS).fetchall()], ["ann", "root"])


def test_a_view_of_a_user_shows_what_the_user_may_see(guarded: RunningServer) -> None:
    with connected(guarded, "ann") as ann, connected(guarded, "bob"), connected(guarded, "root") as root:
        ann.execute("DECLARE own CURSOR FOR SUBSCRIBE SELECT user_name FROM system.clients")
        assert ann.execute("FETCH ALL own").fetchall()[0][0] == "ann"
        eventually(lambda: root.execute("SELECT sum(subscriptions) FROM system.clients").fetchall(), [(1,)])
        with connected(guarded, "bob"), connected(guarded, "ann"):
            assert [(row[0], row[-1]) for row in ann.execute("FETCH ALL own").fetchall()] == [("ann", 1)]
        ann.execute("CLOSE own")
        eventually(lambda: root.execute("SELECT sum(subscriptions) FROM system.clients").fetchall(), [(0,)])


def test_requests_and_subscriptions_of_the_web(served: RunningServer) -> None:
    with tk.connect(served.web_url) as client:
        client.sql("CREATE TABLE t (x int)")
        following = client.subscribe("SELECT * FROM t")
        eventually(lambda: [row[1:3] for row in client.sql(CLIENTS).rows()], [("websocket", 1)])
        body = json.dumps({"text": CLIENTS}).encode()
        asked = urllib.request.Request(f"http://127.0.0.1:{served.http_port}/v1/sql", body, method="POST")
        with urllib.request.urlopen(asked) as answer:
            assert "http" in answer.read().decode()
        following.close()
        eventually(lambda: [row[1:] for row in client.sql(CLIENTS).rows()], [("websocket", 0, f"sql {CLIENTS}")])


def test_a_superuser_ends_what_others_run_and_everybody_what_is_their_own(guarded: RunningServer) -> None:
    with connected(guarded, "root") as root:
        root.execute("INSERT INTO t SELECT * FROM generate_series(1, 2000)")
    with json_client(guarded) as ann:
        ann.ask("hello", user="ann", password="pw")
        (number,) = ann.rows("sql", text="SELECT number FROM system.clients")[0]
        for user, code in (("bob", "permission-denied"), ("root", None), ("ann", None)):
            ran = ann.send("sql", text="SELECT count(*) FROM t a, t b, t c WHERE a.x + b.x + c.x = 7")
            with json_client(guarded) as asking:
                asking.ask("hello", user=user, password="pw")
                eventually(lambda: any(c.number == number and c.running for c in guarded.server.clients()), True)
                told = asking.ask("cancel-client", client=number)
                assert told.get("error", {}).get("code") == code
                if code is None:
                    assert told["was_running"] is True
                    assert asking.ask("cancel-client", client=10**6)["error"]["code"] in (
                        "not-found",
                        "permission-denied",
                    )
                else:
                    ann.socket.send('{"id": 0, "request": "cancel"}')
            found = ann.receive()
            assert found["id"] == ran and found["error"]["code"] == "cancelled"
            assert user == "bob" or user in found["error"]["message"]
