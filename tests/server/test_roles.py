"""Roles over PostgreSQL's protocol, by clients that we did not write: who gets in, what they see, and what a REVOKE ends."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import errors

from tektite.server.scram import WrongPassword
from tektite.sql.access.verifiers import Verifier
from tests.support.patience import PATIENCE, until
from tests.support.server import RunningServer, running_server
from tests.support.server_process import server_process

SETUP = """
CREATE TABLE docs (id int PRIMARY KEY, owner text, body text);
INSERT INTO docs VALUES (1, 'ann', 'a'), (2, 'bob', 'b');
CREATE ROLE staff; CREATE USER ann PASSWORD 'for ann'; CREATE USER bob PASSWORD 'for bob';
GRANT SELECT, INSERT ON docs TO staff; GRANT staff TO ann, bob;
CREATE POLICY own ON docs USING (owner = current_user);
ALTER TABLE docs ENABLE ROW LEVEL SECURITY
"""


@pytest.fixture
def guarded() -> Iterator[RunningServer]:
    """A server with a superuser of its description, and two users whom it has created."""
    with running_server(users={"root": Verifier.of("pw")}) as found:
        with connected(found, "root") as root:
            root.execute(SETUP)
        yield found
    assert "internal-error" not in found.log.getvalue()


def connected(server: RunningServer, user: str, **options: Any) -> psycopg.Connection[Any]:
    password = "pw" if user == "root" else f"for {user}"
    return psycopg.connect(server.conninfo(user), password=password, autocommit=True, **options)


def test_users_that_clients_create_log_in_and_see_their_rows(guarded: RunningServer) -> None:
    for user, expected in (("ann", [(1,)]), ("bob", [(2,)]), ("root", [(1,), (2,)])):
        with connected(guarded, user) as client:
            assert client.execute("SELECT id FROM docs ORDER BY id").fetchall() == expected
            assert client.execute("SELECT current_user, session_user").fetchone() == (user, user)
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(guarded.conninfo("ann"), password="for bob")
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(guarded.conninfo("staff"), password="x")


def test_prepared_statements_cursors_and_copies_end_with_a_revoke(guarded: RunningServer) -> None:
    with connected(guarded, "ann") as ann, connected(guarded, "root") as root:
        reading, writing = "SELECT body FROM docs WHERE id = %s", "INSERT INTO docs VALUES (%s, 'ann', 'x')"
        for number in range(3, 9):
            assert ann.execute(writing, (number,), prepare=True).rowcount == 1
            assert ann.execute(reading, (number,), prepare=True).fetchall() == [("x",)]
            assert ann.execute(reading, (2,), prepare=True).fetchall() == []
        with ann.cursor().copy("COPY docs FROM STDIN") as copy:
            copy.write_row((20, "ann", "copied"))
        with pytest.raises(errors.InsufficientPrivilege), ann.cursor().copy("COPY docs FROM STDIN") as copy:
            copy.write_row((21, "bob", "not mine"))
        with ann.cursor().copy("COPY docs TO STDOUT") as copy:
            assert len(list(copy.rows())) == 8
        root.execute("REVOKE staff FROM ann")
        with pytest.raises(errors.InsufficientPrivilege):
            ann.execute(reading, (3,), prepare=True)
        with pytest.raises(errors.InsufficientPrivilege):
            ann.execute(writing, (30,), prepare=True)
        with pytest.raises(errors.InsufficientPrivilege), ann.cursor().copy("COPY docs FROM STDIN") as copy:
            copy.write_row((22, "ann", "x"))
        with pytest.raises(errors.InsufficientPrivilege):
            ann.execute("COPY docs TO STDOUT")
        with pytest.raises(errors.InsufficientPrivilege):
            ann.execute("DECLARE c CURSOR WITH HOLD FOR SELECT * FROM docs")
        assert root.execute("SELECT count(*) FROM docs WHERE id >= 20").fetchone() == (1,)


def test_subscriber_loses_rows_when_a_grant_is_withdrawn(guarded: RunningServer) -> None:
    with connected(guarded, "ann") as ann, connected(guarded, "root") as root:
        held: Counter[Any] = Counter()
        ann.execute("DECLARE c CURSOR FOR SUBSCRIBE (SELECT id FROM docs)")

        def fetched() -> set[int]:
            for id, _, diff in ann.execute("FETCH ALL FROM c").fetchall():
                held[id] += diff
            assert set(held.values()) <= {0, 1}
            return {id for id, count in held.items() if count}

        assert fetched() == {1}
        root.execute("INSERT INTO docs VALUES (3, 'ann', ''), (4, 'bob', '')")
        assert fetched() == {1, 3}
        root.execute("REVOKE staff FROM ann")
        assert fetched() == set()
        root.execute("INSERT INTO docs VALUES (5, 'ann', '')")
        root.execute("GRANT SELECT ON docs TO ann")
        assert fetched() == {1, 3, 5}


def test_set_role_takes_rights_and_gives_them_back(guarded: RunningServer) -> None:
    with connected(guarded, "root") as root:
        root.execute("SET ROLE ann")
        assert root.execute("SELECT id FROM docs").fetchall() == [(1,)]
        root.execute("RESET ROLE")
        assert len(root.execute("SELECT id FROM docs").fetchall()) == 2
    with connected(guarded, "ann") as ann:
        with pytest.raises(errors.InsufficientPrivilege):
            ann.execute("SET ROLE bob")
        ann.execute("SET ROLE staff")
        assert ann.execute("SELECT id FROM docs").fetchall() == []


def test_user_has_as_many_connections_as_its_limit(guarded: RunningServer) -> None:
    with connected(guarded, "root") as root:
        root.execute("ALTER ROLE ann CONNECTION LIMIT 2")
    with connected(guarded, "ann"), connected(guarded, "ann"):
        with pytest.raises(psycopg.OperationalError, match="2 connections"):
            connected(guarded, "ann")
        connected(guarded, "bob").close()
    connected(guarded, "ann").close()


@pytest.mark.parametrize(("limit", "options"), [(0, ""), (2, "-c statement_timeout=soon")])
def test_who_is_refused_takes_no_place_of_others(guarded: RunningServer, limit: int, options: str) -> None:
    with connected(guarded, "root") as root:
        root.execute(f"ALTER ROLE ann CONNECTION LIMIT {limit}")
        for _ in range(3):
            with pytest.raises(psycopg.OperationalError, match="connections|not a duration"):
                connected(guarded, "ann", options=options)
        root.execute("ALTER ROLE ann CONNECTION LIMIT 1")
        connected(guarded, "ann").close()
        until(lambda: len(guarded.server.connections) == 1)


def test_token_is_shown_once_and_kept_as_a_digest(guarded: RunningServer) -> None:
    with connected(guarded, "ann") as ann:
        found = ann.execute("CREATE TOKEN phone").fetchone()
        assert found is not None
        (token,) = found
    users = guarded.server.users
    assert users.user_of_token(token) == "ann"
    kept = [record.digest for record in guarded.server.users._access.tables.tokens.values()]
    assert kept and token not in kept
    for wrong in ("", token[:-1], kept[0]):
        with pytest.raises(WrongPassword):
            users.user_of_token(wrong)
    with connected(guarded, "root") as root:
        root.execute("DROP TOKEN phone")
    with pytest.raises(WrongPassword):
        users.user_of_token(token)


@pytest.mark.skipif(shutil.which("psql") is None, reason="psql is not installed")
def test_psql_shows_roles_grants_and_policies(guarded: RunningServer) -> None:
    def psql(text: str, *options: str) -> str:
        command = ["psql", "-X", "-w", *(options or ["-At"]), guarded.conninfo("root"), "-c", text]
        return subprocess.run(
            command, env={**os.environ, "PGPASSWORD": "pw"}, capture_output=True, text=True, check=True
        ).stdout

    assert "ann||{staff}" in psql("\\du") and "staff|Cannot login|{}" in psql("\\du")
    assert "staff=ra/root" in psql("\\dp docs") and "owner = current_user" in psql("\\dp docs")
    assert 'POLICY "own"' in psql("\\d docs", "-q")
    query = "SELECT has_table_privilege('ann', 'docs', 'SELECT'), has_table_privilege('ann', 'docs', 'UPDATE')"
    assert psql(query) == "t|f\n"
    assert psql("SELECT policyname, cmd, roles FROM pg_policies") == "own|ALL|{public}\n"


def test_server_without_users_listens_on_loopback_only(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="listens on loopback only"), running_server(tmp_path / "s", address="0.0.0.0"):
        pass


def test_roles_survive_a_kill(tmp_path: Path) -> None:
    """Users, grants, policies, views with their owners and registered statements are there after kill -9."""
    with server_process(tmp_path / "s") as server:
        with server.connect("anybody") as client:
            client.execute(SETUP + "; CREATE USER root SUPERUSER PASSWORD 'pw'; GRANT CREATE ON SCHEMA public TO ann; "
                                   "GRANT SELECT ON docs TO ann")  # fmt: skip
            client.execute("SET ROLE ann")
            client.execute("CREATE MATERIALIZED VIEW mine AS SELECT count(*) AS n FROM docs")
            client.execute("PREPARE one AS SELECT id FROM docs WHERE id > $1")
        server.kill()
        server.start()
        with server.connect("ann", "for ann") as client:
            assert client.execute("SELECT n FROM mine").fetchone() == (1,)
            assert client.execute("EXECUTE one(0)").fetchall() == [(1,)]
            assert client.execute("SELECT id FROM docs").fetchall() == [(1,)]
            with pytest.raises(errors.InsufficientPrivilege):
                client.execute("DELETE FROM docs")
        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            server.connect("anybody", "x")


def test_requests_that_are_no_statements_have_the_rights_of_their_user(guarded: RunningServer) -> None:
    """The Python client asks for tables by name: it sees and writes what its user may."""
    import tektite

    with connected(guarded, "root") as root:
        (token,) = root.execute("CREATE TOKEN t FOR ann").fetchone() or ("",)
    url = f"tektite://127.0.0.1:{guarded.http_port}"
    with tektite.connect(url, token=token) as client:
        docs = client.table("docs")
        assert docs.rows() == [(1, "ann", "a")]
        assert len(docs) == 1
        assert docs.lookup(2) == []
        assert docs.lookup(1) == [(1, "ann", "a")]
        docs.insert([(3, "ann", "x")])
        for refused in (
            lambda: docs.insert([(4, "bob", "x")]),
            lambda: docs.remove([(2, "bob", "b")]),
            lambda: client.drop_table("docs"),
            lambda: client.create_table("t", {"x": tektite.Int}),
            lambda: client.datalog("p(x) :- docs(x, _, _)."),
            lambda: client.query("docs(x, y, z)"),
            lambda: client.sql("SELECT * FROM shares"),
        ):
            with pytest.raises(tektite.TektiteError):
                refused()
        followed = docs.subscribe()
        assert sorted(change.row[0] for change in followed.changes()) == [1, 3]
        with connected(guarded, "root") as root:
            root.execute("INSERT INTO docs VALUES (5, 'bob', ''), (6, 'ann', '')")
            assert [(c.row[0], c.diff) for c in waited(followed, 1)] == [(6, 1)]
            root.execute("REVOKE staff FROM ann")
            assert sorted((c.row[0], c.diff) for c in waited(followed, 3)) == [(1, -1), (3, -1), (6, -1)]
        with pytest.raises(tektite.TektiteError, match="permission denied"):
            docs.rows()


def test_keeping_a_table_that_is_there_gives_no_right_on_it(guarded: RunningServer) -> None:
    """A user who may create tables, and asks for one that is there, does not come to own it."""
    import tektite

    with connected(guarded, "root") as root:
        root.execute("GRANT CREATE ON SCHEMA public TO ann")
        (token,) = root.execute("CREATE TOKEN t FOR ann").fetchone() or ("",)
        guarded.engine.create_table("free", {"x": int}).insert([(1,)])
        root.execute("GRANT SELECT ON free TO ann")
    with tektite.connect(f"tektite://127.0.0.1:{guarded.http_port}", token=token) as client:
        assert client.create_table("free", {"x": int}, if_exists="keep").rows() == [(1,)]
        with pytest.raises(tektite.TektiteError, match="must be owner"):
            client.drop_table("free")


def waited(followed: Any, many: int) -> list[Any]:
    """So many changes of a subscription, which come over the network."""
    found: list[Any] = []
    deadline = time.monotonic() + PATIENCE
    while len(found) < many and time.monotonic() < deadline:
        found += followed.changes()
    return found
