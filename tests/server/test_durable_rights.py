"""Whatever moment a process ends at, what is there has its owner, and rights of what is gone are nobody's."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tektite.engine.core import core_of
from tests.support.server import RunningServer, running_server

USERS = """
    CREATE USER root SUPERUSER PASSWORD 'for root'; CREATE USER one PASSWORD 'for one'; CREATE USER two PASSWORD 'for two';
    GRANT CREATE ON SCHEMA public TO one, two; GRANT CREATE ON DATABASE tektite TO one, two
"""
MAKE = """
    CREATE TABLE t ({0} int PRIMARY KEY); CREATE TABLE copied AS SELECT 1 AS {0}; CREATE VIEW defined AS SELECT 1 AS {0};
    CREATE MATERIALIZED VIEW v AS SELECT {0} + 1 AS {0} FROM t; GRANT SELECT ON t, v, copied, defined TO public
"""
DROP = "DROP MATERIALIZED VIEW v; DROP VIEW defined; DROP TABLE t, copied"
REPLACE = """
    CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT {0} + 2 AS {0} FROM t; CREATE OR REPLACE VIEW defined AS SELECT 2 AS {0};
    CREATE OR REPLACE TABLE copied ({0} int)
"""
KINDS = {"v": "MATERIALIZED VIEW", "defined": "VIEW", "t": "TABLE", "copied": "TABLE"}
OWNERS = """
    SELECT c.relname, a.attname, pg_get_userbyid(c.relowner) FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
    WHERE c.relname IN ('t', 'copied', 'defined', 'v') AND a.attnum > 0
"""


def client(served: RunningServer, user: str) -> psycopg.Connection[Any]:
    return psycopg.connect(served.conninfo(user, password=f"'for {user}'"), autocommit=True)


def run(connection: psycopg.Connection[Any], script: str) -> None:
    for statement in script.split(";"):
        connection.execute(statement.encode())


def owners(served: RunningServer) -> dict[str, str]:
    """Who owns the relations that are there; each is owned by whom its column is named after."""
    with client(served, "root") as root:
        found = root.execute(OWNERS).fetchall()
    assert all(column == owner for _, column, owner in found), found
    return {name: owner for name, _, owner in found}


def copies(store: Path, folder: Path) -> list[Path]:
    """The storage as it was after each change that became durable, while two users made, replaced and dropped the same names."""
    found: list[Path] = []
    with running_server(store) as served:
        with psycopg.connect(served.conninfo(), autocommit=True) as first:
            first.execute(USERS.encode())
        storage = core_of(served.engine).storage
        assert storage is not None
        append = storage.append

        def append_and_copy(change: Any) -> None:
            append(change)
            storage.writer.sync()
            found.append(folder / str(len(found)))
            shutil.copytree(store, found[-1])

        storage.append = append_and_copy  # type: ignore[method-assign]
        for user in ("one", "two"):
            with client(served, user) as connection:
                for script in (MAKE, REPLACE, DROP):
                    run(connection, script.format(user))
    return found


def test_rights_are_there_before_their_object_and_go_after_it(tmp_path: Path) -> None:
    seen: set[tuple[str, str]] = set()
    stores = copies(tmp_path / "store", tmp_path / "copies")
    assert len(stores) > 40
    for at, store in enumerate(stores):
        with running_server(store) as served:
            there = owners(served)
            seen |= {*there.items()}
            if at % 6:
                continue
            for user in set(there.values()):
                with client(served, user) as connection:
                    for name, kind in KINDS.items():
                        if name in there:
                            connection.execute(f"DROP {kind} {name}".encode())
            # Whoever makes it next owns it alone.
            with client(served, "two") as two, client(served, "one") as one:
                run(two, MAKE.format("two").partition("GRANT")[0].strip().rstrip(";"))
                assert owners(served) == dict.fromkeys(KINDS, "two")
                for name in KINDS:
                    with pytest.raises(psycopg.errors.InsufficientPrivilege):
                        one.execute(f"SELECT * FROM {name}".encode())
    assert seen == {(name, user) for name in KINDS for user in ("one", "two")}


def test_what_was_granted_is_there_after_a_restart(tmp_path: Path) -> None:
    with running_server(tmp_path) as served:
        with psycopg.connect(served.conninfo(), autocommit=True) as first:
            first.execute(USERS.encode())
        with client(served, "one") as one:
            run(one, MAKE.format("one") + "; INSERT INTO t VALUES (1)")
    for _ in range(2):
        with running_server(tmp_path) as served, client(served, "two") as two:
            found = [two.execute(f"SELECT * FROM {name}".encode()).fetchone() for name in KINDS]
            assert found == [(2,), (1,), (1,), (1,)]
            assert owners(served) == dict.fromkeys(KINDS, "one")
