"""What psql, SQLAlchemy, asyncpg and pgjdbc ask of the system catalogs is answered, as PostgreSQL answers it."""

from __future__ import annotations

from pathlib import Path

import pytest

import tektite as tk
from tektite import sql
from tektite.sql.catalog.contents import CatalogContents
from tests.support.executors import make_engine
from tests.support.sql.tool_queries import answer, prepared_engine, tool_queries

pytestmark = pytest.mark.executors


@pytest.mark.executors(stages=["asyncpg"])
@pytest.mark.parametrize("tool", sorted({query.tool for query in tool_queries()}))
def test_what_a_tool_asks_is_answered(tool: str) -> None:
    with make_engine() as engine:
        oids = prepared_engine(engine)
        for query in tool_queries():
            if query.tool == tool:
                found = answer(engine, query, oids)
                assert query.rows is None or found == query.rows, query.text


def test_most_answers_are_those_of_postgres() -> None:
    same = [query for query in tool_queries() if query.like_postgres]
    assert len(same) >= 70


def test_oids_are_the_same_after_a_restart(tmp_path: Path) -> None:
    found = []
    for _ in range(2):
        with make_engine(storage=tmp_path) as engine:
            if not found:
                engine.sql("CREATE SCHEMA s; CREATE TABLE s.t (a BIGINT PRIMARY KEY); CREATE TABLE u (b BIGINT)")
            found.append(engine.sql("SELECT relname, oid FROM pg_class ORDER BY 1, 2").rows())
            assert engine.sql("SELECT count(*) FROM s.t").rows() == [(0,)]
    assert found[0] == found[1]


def test_columns_say_which_type_of_postgres_they_have() -> None:
    with make_engine() as engine:
        engine.sql("CREATE TABLE t (a BIGINT PRIMARY KEY)")
        table = engine.sql(
            "SELECT oid, relname, oid::regclass AS shown, reltuples FROM pg_class WHERE relname = 't'"
        ).table
        assert table is not None
        said = [(field.metadata or {}).get(b"pg_type") for field in table.schema]
        assert said == [b"oid", b"name", b"regclass", b"float4"]
        assert table.column("shown").to_pylist() == ["t"]


def test_settings_belong_to_a_session() -> None:
    with make_engine() as engine:
        engine.sql("CREATE SCHEMA s; CREATE TABLE s.t (a BIGINT)")
        one, other = engine.session(), engine.session()
        one.sql("SET search_path = s")
        assert one.sql("SELECT count(*) FROM t").rows() == [(0,)]
        with pytest.raises(tk.NotFoundError, match="no table or view 't'"):
            other.sql("SELECT count(*) FROM t")
        one.sql("DISCARD ALL")
        assert one.sql("SHOW search_path").rows() == [("public",)]


def test_a_plan_is_not_used_for_another_search_path() -> None:
    with make_engine() as engine:
        engine.sql("CREATE SCHEMA s; CREATE TABLE s.t (a BIGINT); CREATE TABLE t (a BIGINT); INSERT INTO t VALUES (7)")
        assert engine.sql("SELECT a FROM t").rows() == [(7,)]
        engine.sql("SET search_path = s, public")
        assert engine.sql("SELECT a FROM t").rows() == []


def test_a_view_over_the_catalogs_shows_what_there_is() -> None:
    with make_engine() as engine:
        engine.sql("CREATE VIEW tables AS SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 2200")
        assert engine.sql("SELECT * FROM tables").rows() == []
        engine.sql("CREATE TABLE t (a BIGINT)")
        assert engine.sql("SELECT * FROM tables").rows() == [("t",)]
        runner = sql.runner(engine)
        assert "tables" in {r.name for r in CatalogContents(runner, runner.settings).relations}


def test_savepoints_keep_what_was_written_before_them() -> None:
    with make_engine() as engine:
        engine.sql("CREATE TABLE t (a BIGINT)")
        engine.sql("BEGIN; INSERT INTO t VALUES (1); SAVEPOINT one; INSERT INTO t VALUES (2); SAVEPOINT two")
        engine.sql("INSERT INTO t VALUES (3); ROLLBACK TO SAVEPOINT one")
        assert engine.sql("SELECT a FROM t").rows() == [(1,)]
        with pytest.raises(tk.NotFoundError, match="there is no savepoint 'two'"):
            engine.sql("ROLLBACK TO SAVEPOINT two")
        engine.sql("INSERT INTO t VALUES (4); RELEASE SAVEPOINT one; COMMIT")
        assert engine.sql("SELECT a FROM t ORDER BY a").rows() == [(1,), (4,)]
        with pytest.raises(tk.ConflictError, match="no transaction is open"):
            engine.sql("SAVEPOINT three")
