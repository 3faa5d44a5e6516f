"""What clients learn of an engine from the system catalogs: psql's \\d, names and arrays in a driver, the search path."""

from __future__ import annotations

import shutil
import subprocess

import psycopg
import pytest

from tests.support.patience import PATIENCE
from tests.support.server import RunningServer

TABLES = """
CREATE SCHEMA s; CREATE TABLE s.w (i bigint);
CREATE TABLE t (a bigint PRIMARY KEY, b text NOT NULL DEFAULT 'x');
CREATE INDEX t_b ON t (b);
"""


@pytest.fixture
def client(served: RunningServer):
    with psycopg.connect(served.conninfo(), autocommit=True) as connection:
        connection.execute(TABLES)
        yield connection


@pytest.mark.parametrize("binary", [False, True], ids=["text", "binary"])
def test_arrays_and_names_of_the_catalogs_are_read_as_such(client, binary: bool) -> None:
    text = """
        SELECT %s::regclass, array_agg(attname ORDER BY attnum), array_agg(attnotnull ORDER BY attnum), array_agg(attnum)
        FROM pg_attribute WHERE attrelid = %s::regclass
    """
    row = client.cursor(binary=binary).execute(text, ("t", "t")).fetchone()
    assert row == ("t", ["a", "b"], [True, True], [1, 2])


def test_search_path_of_a_client_is_its_own(served: RunningServer, client) -> None:
    client.execute("SET search_path TO s, public")
    assert client.execute("SELECT count(*) FROM w").fetchone() == (0,)
    assert client.execute("SELECT current_schema()").fetchone() == ("s",)
    with psycopg.connect(served.conninfo(), autocommit=True) as other, pytest.raises(psycopg.errors.UndefinedTable):
        other.execute("SELECT count(*) FROM w")
    client.execute("RESET ALL")
    assert client.execute("SELECT current_schema()").fetchone() == ("public",)


@pytest.mark.skipif(shutil.which("psql") is None, reason="psql is not installed")
def test_psql_describes_a_table(served: RunningServer, client) -> None:
    ran = subprocess.run(
        ["psql", served.conninfo(), "-c", "\\d t", "-c", "\\dt s.*"], capture_output=True, text=True, timeout=PATIENCE
    )
    assert ran.returncode == 0, ran.stderr
    lines = [" ".join(line.split()) for line in ran.stdout.splitlines()]
    assert "a | bigint | | not null |" in lines and "b | text | | not null | 'x'::text" in lines
    assert '"t_pkey" PRIMARY KEY, btree (a)' in lines and '"t_b" btree (b)' in lines
    assert any(line.startswith("s | w | table |") for line in lines)


def test_settings_are_the_same_for_commands_functions_and_catalogs(client) -> None:
    client.execute("SET statement_timeout = '7s'")
    client.execute("SET TimeZone = 'Europe/Berlin'")
    client.execute("SET my.own = 'a, b'")
    assert client.execute("SHOW statement_timeout").fetchone() == ("7s",)
    assert client.execute("SELECT current_setting('statement_timeout'), current_setting('my.own')").fetchone() == (
        "7s",
        "a, b",
    )
    shown = client.execute(
        "SELECT setting FROM pg_settings WHERE name IN ('statement_timeout', 'TimeZone') ORDER BY name"
    ).fetchall()
    assert sorted(shown) == [("7s",), ("Europe/Berlin",)]
    client.execute("SELECT set_config('statement_timeout', '0', false)")
    assert client.execute("SHOW statement_timeout").fetchone() == ("0",)
    client.execute("RESET ALL")
    assert client.execute("SHOW statement_timeout").fetchone() == ("0",)
    assert client.execute("SHOW transaction isolation level").fetchone() == ("serializable",)


@pytest.mark.parametrize("statement", ["SET bytea_output = 'escape'", "SET default_transaction_read_only = on"])
def test_a_setting_that_would_be_ignored_is_refused(client, statement: str) -> None:
    with pytest.raises(psycopg.Error, match="is always"):
        client.execute(statement)
