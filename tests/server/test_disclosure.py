"""What a server tells users of the rows below granted views, through each of its doors, when an error shows one."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

import tektite as tk
from tektite.sql.access.verifiers import Verifier
from tests.server.test_system_rights import fetched, hello
from tests.support.server import RunningServer, running_server
from tests.support.wire import json_client

SECRET = "s777111"
QUERY = "SELECT CAST('x' || n AS int) AS m FROM kept"
FAILED = "is told to those who may read all that the query's views read"


@pytest.fixture
def guarded() -> Iterator[RunningServer]:
    """A server with two users who may read views; of these, bob may read what is below them."""
    with running_server(users={"root": Verifier.of("pw")}) as found:
        found.engine.sql(f"""
            CREATE TABLE secret_notes (person varchar, note varchar); INSERT INTO secret_notes VALUES ('eve', '{SECRET}');
            CREATE VIEW kept AS SELECT length(note) AS n FROM secret_notes;
            CREATE MATERIALIZED VIEW bad AS SELECT CAST(note AS int) AS n FROM secret_notes;
            CREATE USER ann PASSWORD 'pw'; CREATE USER bob PASSWORD 'pw';
            GRANT SELECT ON kept, bad TO ann, bob; GRANT SELECT ON secret_notes TO bob
        """)
        yield found
    assert "internal-error" not in found.log.getvalue()


def postgres(run: Callable[[psycopg.Connection[Any]], object]) -> Callable[[RunningServer, str], str]:
    """What a client of PostgreSQL is told."""

    def said(server: RunningServer, user: str) -> str:
        with psycopg.connect(server.conninfo(user), password="pw", autocommit=True) as client:
            with pytest.raises(psycopg.Error) as caught:
                run(client)
            diagnosis = caught.value.diag
            return f"{caught.value} {diagnosis.message_detail} {diagnosis.message_hint} {diagnosis.context}"

    return said


def web(path: str, body: dict[str, Any]) -> Callable[[RunningServer, str], str]:
    """What a client of HTTP is told."""
    return lambda server, user: fetched(server, path, user, body)[1]


def remote(run: Callable[[Any], object]) -> Callable[[RunningServer, str], str]:
    """What a program with a session over the wire is told."""

    def said(server: RunningServer, user: str) -> str:
        with tk.connect(f"tektite://{user}:pw@127.0.0.1:{server.http_port}") as session:
            with pytest.raises(tk.TektiteError) as caught:
                run(session)
            return f"{caught.value} {caught.value.details}"

    return said


def copied(text: str) -> Callable[[psycopg.Connection[Any]], None]:
    def run(client: psycopg.Connection[Any]) -> None:
        with client.cursor().copy(text) as copy:
            list(copy)

    return run


def fetched_of(declared: str) -> Callable[[psycopg.Connection[Any]], None]:
    def run(client: psycopg.Connection[Any]) -> None:
        with client.transaction():
            client.execute(f"DECLARE c CURSOR FOR {declared}")
            client.execute("FETCH 10 FROM c")

    return run


def prepared(client: psycopg.Connection[Any]) -> None:
    client.execute("PREPARE q AS SELECT CAST('x' || n AS int) AS m FROM kept WHERE n > $1")
    client.execute("EXECUTE q(0)")


def subscribed(text: str) -> Callable[[Any], None]:
    def run(session: Any) -> None:
        with session.subscribe(text) as found:
            next(iter(found))

    return run


DOORS: dict[str, Callable[[RunningServer, str], str]] = {
    "extended": postgres(lambda client: client.execute(QUERY)),
    "simple": postgres(lambda client: psycopg.ClientCursor(client).execute(QUERY)),
    "parameters": postgres(lambda client: client.execute(f"{QUERY} WHERE n > %s", (0,), prepare=True)),
    "look-up": postgres(lambda client: client.execute("SELECT n FROM bad WHERE n = %s", (7,), prepare=True)),
    "view": postgres(lambda client: client.execute("SELECT * FROM bad")),
    "EXECUTE": postgres(prepared),
    "COPY": postgres(copied(f"COPY ({QUERY}) TO STDOUT")),
    "COPY view": postgres(copied("COPY bad TO STDOUT")),
    "COPY SUBSCRIBE": postgres(copied(f"COPY (SUBSCRIBE ({QUERY})) TO STDOUT")),
    "SUBSCRIBE": postgres(lambda client: client.execute(f"SUBSCRIBE ({QUERY})")),
    "cursor": postgres(fetched_of(QUERY)),
    "cursor of SUBSCRIBE": postgres(fetched_of(f"SUBSCRIBE ({QUERY})")),
    "/v1/sql": web("/v1/sql", {"text": QUERY}),
    "/v1/rows": web("/v1/rows", {"relation": "bad"}),
    "/v1/lookup": web("/v1/lookup", {"relation": "bad", "key": [7]}),
    "/v1/view-state": web("/v1/view-state", {"view": "bad"}),
    "remote": remote(lambda session: session.sql(QUERY).rows()),
    "remote view": remote(lambda session: session.view("bad").rows()),
    "remote subscription": remote(subscribed(QUERY)),
    "remote subscription of a view": remote(subscribed("SELECT * FROM bad")),
}


@pytest.mark.parametrize("door", DOORS)
def test_the_row_of_an_error_is_for_those_who_may_read_it(guarded: RunningServer, door: str) -> None:
    of_ann, of_bob, of_root = (DOORS[door](guarded, user) for user in ("ann", "bob", "root"))
    assert SECRET not in of_ann and "x7" not in of_ann and "eve" not in of_ann
    for told in (of_bob, of_root):
        assert "x7" in told or SECRET in told, told


@pytest.mark.parametrize("asked", [{"sql": QUERY}, {"name": "bad"}, {"name": "kept"}])
def test_a_subscriber_hears_of_an_error_what_its_user_may_know(guarded: RunningServer, asked: dict[str, str]) -> None:
    if asked == {"name": "kept"}:  # it fails only later
        guarded.engine.sql(
            "DROP VIEW kept; CREATE VIEW kept AS SELECT CAST(note AS int) AS n FROM secret_notes WHERE person = 'dan'"
        )
        guarded.engine.sql("GRANT SELECT ON kept TO ann, bob")
    for user, knows in (("ann", False), ("bob", True), ("root", True)):
        with json_client(guarded) as client:
            answer = hello(client, user).ask("interest", subscription=1, **asked)
            if asked == {"name": "kept"}:
                guarded.engine.sql(f"INSERT INTO secret_notes VALUES ('dan', '{SECRET} dan')")
            told = json.dumps(answer)
            while "error" not in told:
                told = json.dumps(client.push())
            assert ("x7" in told or SECRET in told) == knows, told
            assert (FAILED in told) != knows
            guarded.engine.sql("DELETE FROM secret_notes WHERE person = 'dan'")


def test_who_subscribes_to_what_fails_already_is_told_so(guarded: RunningServer) -> None:
    guarded.engine.sql(
        "CREATE TABLE open (t varchar); CREATE MATERIALIZED VIEW numbers AS SELECT CAST(t AS int) AS n FROM open"
    )
    guarded.engine.sql("INSERT INTO open VALUES ('1'); GRANT SELECT ON open, numbers TO ann")
    with json_client(guarded) as first, json_client(guarded) as second:
        assert "error" not in hello(first).ask("interest", subscription=1, name="numbers")
        guarded.engine.sql("INSERT INTO open VALUES ('none')")
        hello(second)
        for client, number, snapshot in ((first, 1, None), (second, 1, True), (second, 2, False)):
            if snapshot is not None:
                assert "error" not in client.ask("interest", subscription=number, name="numbers", snapshot=snapshot)
            while "error" not in (told := client.push()) or told["subscription"] != number:
                pass
            assert "found 'none'" in told["error"]["message"]
