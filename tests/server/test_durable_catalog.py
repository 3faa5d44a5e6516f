"""What clients create comes back with the storage: views, schemas, indexes, defaults."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

import tektite as tk
from tektite.dataflow.away import LONG
from tests.support.server import running_server
from tests.support.stops import SECONDS, Stop


@contextmanager
def connected(store: Path) -> Iterator[Any]:
    with running_server(store) as served, psycopg.connect(served.conninfo(), autocommit=True) as client:
        yield client
    assert "internal-error" not in served.log.getvalue()
    client.log = served.log.getvalue()


def rows(client: Any, query: str) -> list[tuple[Any, ...]]:
    return sorted(client.execute(query).fetchall())


def test_everything_is_as_it_was_after_a_restart(tmp_path: Path) -> None:
    with connected(tmp_path / "store") as client:
        client.execute("""
            CREATE SCHEMA shop; CREATE SCHEMA empty;
            CREATE TABLE shop.orders (id bigint PRIMARY KEY, who text DEFAULT 'nobody', amount bigint DEFAULT 1);
            ALTER TABLE shop.orders ALTER COLUMN amount SET DEFAULT 7;
            SET search_path TO shop, public;
            CREATE VIEW large AS SELECT * FROM orders WHERE amount > 5;
            CREATE MATERIALIZED VIEW per AS SELECT who, sum(amount) AS total FROM large GROUP BY who;
            CREATE INDEX by_who ON orders (who);
            CREATE TABLE copied AS SELECT 1 AS one;
        """)
        client.execute("INSERT INTO orders (id, who, amount) VALUES (1, 'ann', 9), (2, 'ann', 8), (3, 'bob', 2)")
        before = rows(
            client, "SELECT nspname, relname, relkind FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace"
        )
    for _ in range(2):
        with connected(tmp_path / "store") as client:
            after = "SELECT nspname, relname, relkind FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace"
            assert rows(client, after) == before
            assert rows(client, "SELECT * FROM shop.per") == [("ann", 17)]
            assert ("empty",) in rows(client, "SELECT nspname FROM pg_namespace")
            client.execute("INSERT INTO shop.orders (id) VALUES (10)")
            assert rows(client, "SELECT * FROM shop.per") == [("ann", 17), ("nobody", 7)]
            client.execute("DELETE FROM shop.orders WHERE id = 10")
            assert rows(client, "SELECT * FROM shop.copied") == [(1,)]
        assert "brought back" not in client.log


def test_what_was_dropped_or_replaced_does_not_come_back(tmp_path: Path) -> None:
    with connected(tmp_path / "store") as client:
        client.execute("""
            CREATE TABLE t (x bigint);
            CREATE MATERIALIZED VIEW a AS SELECT x FROM t;
            CREATE MATERIALIZED VIEW b AS SELECT x + 1 AS y FROM a;
            CREATE MATERIALIZED VIEW c AS SELECT count(*) AS n FROM t;
            CREATE OR REPLACE VIEW d AS SELECT 1 AS one;
            CREATE OR REPLACE VIEW d AS SELECT 2 AS two;
            INSERT INTO t VALUES (1);
            DROP MATERIALIZED VIEW a CASCADE;
        """)
    with connected(tmp_path / "store") as client:
        assert rows(client, "SELECT matviewname FROM pg_matviews") == [("c",)]
        assert rows(client, "SELECT * FROM d") == [(2,)]
        client.execute("DROP TABLE t CASCADE")
    with connected(tmp_path / "store") as client:
        assert rows(client, "SELECT matviewname FROM pg_matviews") == []
        assert rows(client, "SELECT viewname FROM pg_views WHERE schemaname = 'public'") == [("d",)]


def test_a_view_that_is_created_in_a_block_is_there_after_its_end(tmp_path: Path) -> None:
    with connected(tmp_path / "store") as client:
        client.execute("CREATE TABLE t (x bigint)")
        with client.transaction():
            client.execute("INSERT INTO t VALUES (1)")
            client.execute("CREATE MATERIALIZED VIEW v AS SELECT sum(x) AS s FROM t")
            client.execute("INSERT INTO t VALUES (2)")
        assert rows(client, "SELECT * FROM v") == [(3,)]
    with connected(tmp_path / "store") as client:
        assert rows(client, "SELECT * FROM v") == [(3,)]


def test_what_cannot_be_brought_back_is_logged_and_tried_again(tmp_path: Path) -> None:
    with connected(tmp_path / "store") as client:
        client.execute("CREATE TABLE t (x bigint); CREATE MATERIALIZED VIEW v AS SELECT x FROM t")
    with tk.Engine(storage=tmp_path / "store") as engine:
        engine.drop_table("t")
    with connected(tmp_path / "store") as client:
        assert rows(client, "SELECT matviewname FROM pg_matviews") == []
        client.execute("CREATE TABLE t (x bigint); INSERT INTO t VALUES (5)")
    assert "could-not-be-brought-back" in client.log and "there is no table or view 't'" in client.log
    with connected(tmp_path / "store") as client:
        assert rows(client, "SELECT * FROM v") == [(5,)]


def test_a_definition_with_parameters_is_refused(tmp_path: Path) -> None:
    with connected(tmp_path / "store") as client:
        client.execute("CREATE TABLE t (x bigint)")
        with pytest.raises(psycopg.errors.FeatureNotSupported, match="write the values into it"):
            client.execute("CREATE MATERIALIZED VIEW v AS SELECT x FROM t WHERE x > %s", (1,))
        assert rows(client, "SELECT matviewname FROM pg_matviews") == []


def test_the_table_of_definitions_is_not_seen(tmp_path: Path) -> None:
    with connected(tmp_path / "store") as client:
        client.execute("CREATE SCHEMA s")
        assert rows(client, "SELECT tablename FROM pg_tables WHERE schemaname = 'public'") == []
        with pytest.raises(psycopg.errors.UndefinedTable):
            client.execute("SELECT * FROM __catalog")


def test_a_view_keeps_its_time_zone(tmp_path: Path) -> None:
    with connected(tmp_path / "store") as client:
        client.execute("CREATE TABLE seen (at timestamptz); SET TimeZone = 'Asia/Tokyo'")
        client.execute("CREATE MATERIALIZED VIEW shown AS SELECT at::varchar AS s, at::date::varchar AS d FROM seen")
        client.execute("INSERT INTO seen VALUES ('2024-01-01 23:30:00+00')")
        before = rows(client, "SELECT * FROM shown")
        assert before == [("2024-01-02 08:30:00+09", "2024-01-02")]
    with connected(tmp_path / "store") as client:
        assert rows(client, "SELECT * FROM shown") == before


def test_what_others_create_while_a_statement_is_away_is_theirs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop = Stop(monkeypatch)
    with running_server(tmp_path / "store") as served, psycopg.connect(served.conninfo(), autocommit=True) as client:
        client.execute("CREATE TABLE u (y bigint)")
        client.execute("INSERT INTO u VALUES (5)")
        client.execute("CREATE TABLE t (x bigint)")
        client.execute(f"INSERT INTO t SELECT * FROM generate_series(1, {2 * LONG})")
        with psycopg.connect(served.conninfo(), autocommit=True) as other, ThreadPoolExecutor(1) as threads:
            stop.set(0)
            creating = threads.submit(other.execute, "CREATE TABLE few AS SELECT DISTINCT x % 3 AS y FROM t")
            assert stop.reached.wait(SECONDS)
            client.execute("CREATE MATERIALIZED VIEW largest AS SELECT max(y) AS y FROM u")
            stop.go_on()
            creating.result(SECONDS)
    with connected(tmp_path / "store") as client:
        assert rows(client, "SELECT * FROM few") == [(0,), (1,), (2,)]
        assert rows(client, "SELECT * FROM largest") == [(5,)]
    assert "brought back" not in client.log
