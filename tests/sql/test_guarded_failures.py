"""What may fail on a row is computed for rows alone that pass everything written before it: conditions, negations, policies."""

from __future__ import annotations

import itertools

import pytest

import tektite as tk
from tests.support.executors import make_engine

pytestmark = pytest.mark.executors(stages=["not in-condition"])

GUARDS = {
    "not in": "SELECT * FROM t WHERE id NOT IN (SELECT doc FROM deny)",
    "not exists": "SELECT * FROM t WHERE NOT EXISTS (SELECT 1 FROM deny WHERE doc = id)",
    "no partner": "SELECT t.* FROM t LEFT JOIN deny ON doc = id WHERE doc IS NULL",
    "anti join": "SELECT * FROM t ANTI JOIN deny ON doc = id",
    "except": "SELECT * FROM t EXCEPT SELECT doc, 'S' || doc FROM deny",
    "or exists": "SELECT * FROM t WHERE id = 1 OR EXISTS (SELECT 1 FROM deny WHERE doc = 77)",
}
READERS = {
    "condition": ("SELECT id FROM ({}) q WHERE cast(body AS int) = 7", [(1,)]),
    "output": ("SELECT id, cast(body AS int) AS b FROM ({}) q", [(1, 7)]),
    "join": ("SELECT q.id FROM ({}) q JOIN t o ON cast(q.body AS int) = o.id + 6", [(1,)]),
    "exists": ("SELECT id FROM t o WHERE EXISTS (SELECT 1 FROM ({}) q WHERE cast(q.body AS int) = o.id + 6)", [(1,)]),
    "in": ("SELECT id FROM t o WHERE o.id + 6 IN (SELECT cast(q.body AS int) FROM ({}) q)", [(1,)]),
    "sum": ("SELECT sum(cast(body AS int)) AS b FROM ({}) q", [(7,)]),
}
PAIRS = list(itertools.product(GUARDS, READERS))


def filled() -> tk.Engine:
    engine = make_engine(autocommit=True)
    engine.sql("CREATE TABLE deny (doc int); INSERT INTO deny VALUES (2), (3)")
    engine.sql("CREATE TABLE t (id int, body varchar); INSERT INTO t VALUES (1, '7'), (2, 'S2'), (3, 'S3')")
    return engine


@pytest.mark.parametrize(("guard", "reader"), PAIRS, ids=["-".join(pair) for pair in PAIRS])
def test_rows_that_a_guard_removes_fail_nobody(guard: str, reader: str) -> None:
    query, wanted = READERS[reader][0].format(GUARDS[guard]), READERS[reader][1]
    with filled() as engine:
        assert engine.sql(query).rows() == wanted
        view = engine.sql(f"CREATE MATERIALIZED VIEW v AS {query}").view
        assert view is not None and view.rows() == wanted
        engine.sql("INSERT INTO t VALUES (4, 'S4')")
        if guard != "or exists":
            with pytest.raises(tk.TektiteError, match="'S4'"):
                view.rows()
            engine.sql("INSERT INTO deny VALUES (4)")
        assert view.rows() == wanted


def test_a_condition_that_fails_before_a_key_is_computed_is_an_error_of_its_row() -> None:
    query = """
        SELECT p.id FROM (SELECT id, cast(body AS int) AS key FROM t) p JOIN deny d ON p.id = d.doc - 1
        JOIN deny e ON e.doc = d.doc JOIN t o ON p.key = o.id + 6 WHERE cast(d.why AS int) >= p.id
    """
    with make_engine(autocommit=True) as engine:
        engine.sql("CREATE TABLE t (id int, body varchar); INSERT INTO t VALUES (1, '7'), (2, '8')")
        engine.sql("CREATE TABLE deny (doc int, why varchar); INSERT INTO deny VALUES (2, '5'), (3, 'S')")
        view = engine.sql(f"CREATE MATERIALIZED VIEW v AS {query}").view
        assert view is not None
        with pytest.raises(tk.IncorrectError, match="found 'S'"):
            view.rows()
        assert view.failure is None
        engine.sql("DELETE FROM t WHERE id = 2")
        assert view.rows() == [(1,)]


def test_an_error_tells_nothing_of_rows_that_a_policy_hides() -> None:
    with filled() as engine:
        engine.sql("CREATE USER ann; GRANT SELECT ON t, deny TO ann")
        engine.sql(
            "CREATE POLICY p ON t USING (id NOT IN (SELECT doc FROM deny)); ALTER TABLE t ENABLE ROW LEVEL SECURITY"
        )
        with engine.session() as session:
            session.sql("SET ROLE ann")
            for query in (
                "SELECT 1 FROM t WHERE CASE WHEN id = 3 THEN cast(body AS int) END = 1",
                "SELECT o.doc FROM t JOIN deny o ON cast(t.body AS int) = o.doc",
                "SELECT count(*) FROM t WHERE cast(body AS int) = 1 HAVING count(*) > 0",
            ):
                assert session.sql(query).rows() == []
            assert session.sql("SELECT cast(body AS int) FROM t").rows() == [(7,)]


def test_explain_analyze_counts_no_rows_that_a_policy_hides() -> None:
    with filled() as engine:
        engine.sql("CREATE USER ann; GRANT SELECT ON t, deny TO ann")
        engine.sql(
            "CREATE POLICY p ON t USING (id NOT IN (SELECT doc FROM deny)); ALTER TABLE t ENABLE ROW LEVEL SECURITY"
        )
        assert engine.sql("EXPLAIN ANALYZE SELECT id FROM t").rows()[-1] == ("3 rows",)
        with engine.session() as session:
            session.sql("SET ROLE ann")
            assert session.sql("EXPLAIN ANALYZE SELECT doc FROM deny").rows()[-1] == ("2 rows",)
            for query in ("SELECT id FROM t WHERE body = 'S3'", "SELECT 1 FROM system.clients WHERE user_name = 'bob'"):
                with pytest.raises(
                    tk.TektiteError,
                    match="permission denied: .*hide rows from 'ann'|its views read what is not for 'ann'",
                ):
                    session.sql(f"EXPLAIN ANALYZE {query}")
