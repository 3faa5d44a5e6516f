"""Answers that depend on how a statement is run: before the first epoch, with large multiplicities, as a view, in SHOW."""

from __future__ import annotations

import pytest

import tektite as tk
from tests.support.executors import make_engine

pytestmark = pytest.mark.executors


def test_a_query_answers_before_the_first_epoch() -> None:
    with make_engine() as engine:
        engine.create_table("t", {"a": tk.Int}).insert([(1,)])
        assert engine.sql("SELECT now() IS NULL").rows() == [(False,)]
        assert engine.sql("SELECT count(*) FROM t").rows() == [(0,)]
        engine.advance()
        assert engine.sql("SELECT count(*) FROM t").rows() == [(1,)]


@pytest.mark.executors("stages", "spark")
def test_sums_over_large_multiplicities_are_exact() -> None:
    with make_engine() as engine:
        rows = [(3, 1.5), (-4, 2.5), (1, 0.5)]
        times = [2**31 + 5, 2**33, 2**40]
        engine.create_table("t", {"a": tk.Int, "f": tk.Float}).update(rows, diffs=times)
        engine.advance()
        total = sum(a * m for (a, _), m in zip(rows, times, strict=True))
        floats = sum(f * m for (_, f), m in zip(rows, times, strict=True))
        assert engine.sql("SELECT sum(a), sum(f), count(*) FROM t").rows() == [(total, floats, sum(times))]
        engine.table("t").update(rows[1:], diffs=[-m for m in times[1:]])
        engine.advance()
        assert engine.sql("SELECT sum(a), sum(f), count(*) FROM t").rows() == [(3 * times[0], 1.5 * times[0], times[0])]


def test_a_sum_that_does_not_fit_is_refused() -> None:
    with make_engine() as engine:
        engine.create_table("t", {"a": tk.Int}).update([(2**40,)], diffs=[2**40])
        engine.advance()
        with pytest.raises(tk.TektiteError, match="does not fit|overflow"):
            engine.sql("SELECT sum(a) FROM t")


def test_show_counts_rows_not_updates() -> None:
    with make_engine() as engine:
        engine.sql("CREATE TABLE t (a BIGINT); CREATE MATERIALIZED VIEW v AS SELECT a FROM t")
        for _ in range(5):
            engine.sql("INSERT INTO t VALUES (1)")
        engine.sql("INSERT INTO t VALUES (2); DELETE FROM t WHERE a = 2")
        assert engine.sql("SHOW TABLES").rows() == [("t", 5, "bag", "")]
        assert engine.sql("SHOW VIEWS").rows() == [("v", "materialized", 5, None)]


def test_a_view_is_not_ordered_by_what_is_no_column_of_it() -> None:
    with make_engine() as engine:
        engine.sql("CREATE TABLE t (a BIGINT, b BIGINT); INSERT INTO t VALUES (1, 3), (2, 2), (3, 1)")
        with pytest.raises(tk.IncorrectError, match="ORDER BY of a materialized view takes its columns"):
            engine.sql("CREATE MATERIALIZED VIEW v AS SELECT a FROM t ORDER BY b")
        engine.sql("CREATE MATERIALIZED VIEW v AS SELECT a, b FROM t ORDER BY b")
        assert engine.view("v").rows() == [(3, 1), (2, 2), (1, 3)]
        engine.sql("CREATE MATERIALIZED VIEW w AS SELECT a FROM t ORDER BY b LIMIT 2")
        assert sorted(engine.view("w").rows()) == [(2,), (3,)]


def test_what_a_statement_says_beyond_what_is_read_has_no_effect() -> None:
    with make_engine() as engine:
        engine.sql("CREATE TABLE t (a BIGINT); INSERT INTO t VALUES (1)")
        for statement in ("TRUNCATE TABLE t RESTART IDENTITY", "DELETE FROM t LIMIT 1"):
            with pytest.raises(tk.UnsupportedError):
                engine.sql(statement)
        assert engine.sql("SELECT a FROM t").rows() == [(1,)]
