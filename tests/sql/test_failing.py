"""A statement or a view that fails while it computes says so, and nothing else suffers."""

from __future__ import annotations

import pytest

import tektite as tk
from tektite.engine.core import core_of
from tests.support.executors import make_engine

pytestmark = pytest.mark.executors("stages")


def test_subquery_with_two_rows_where_one_is_needed_fails_the_query(engine: tk.Engine) -> None:
    with pytest.raises(tk.IncorrectError, match="gives more than one row"):
        engine.sql("SELECT (SELECT id FROM people)")
    assert engine.sql("SELECT (SELECT id FROM people WHERE pay > 500)").rows() == [(1,)]


def test_overflow_is_an_error_and_division_by_zero_is_null(engine: tk.Engine) -> None:
    with pytest.raises(tk.IncorrectError, match="overflow of int"):
        engine.sql("SELECT 9223372036854775807 + id FROM people")
    asked = "SELECT id / 0, id % 0, id // 0, 1.5 / 0 FROM people WHERE id = 1"
    assert engine.sql(asked).rows() == [(None, None, None, None)]


@pytest.mark.executors("spark")
def test_failing_view_leaves_the_others_alone(engine: tk.Engine) -> None:
    engine.sql("CREATE MATERIALIZED VIEW ids AS SELECT id FROM people")
    failing = engine.sql("CREATE MATERIALIZED VIEW bad AS SELECT CAST(name AS int) AS n FROM people WHERE id = 2").view
    assert failing is not None
    with pytest.raises(tk.IncorrectError, match="view 'bad'"):
        failing.rows()
    assert sorted(engine.view("ids").rows()) == [(1,), (2,)]
    engine.sql("DROP VIEW bad")


def test_overflow_fails_the_view_that_computes_it_alone(engine: tk.Engine) -> None:
    engine.sql("CREATE MATERIALIZED VIEW doubled AS SELECT id, pay * 2 AS pay FROM people")
    engine.sql("CREATE MATERIALIZED VIEW ids AS SELECT id FROM people")
    engine.sql(f"INSERT INTO people VALUES (3, 'Midas', {2**62})")
    assert sorted(engine.view("ids").rows()) == [(1,), (2,), (3,)]
    with pytest.raises(tk.TektiteError, match=r"(?s)doubled.*overflow"):
        engine.view("doubled").rows()


def test_sum_beyond_64_bits_is_an_error_not_a_wrong_answer(engine: tk.Engine) -> None:
    engine.sql("CREATE MATERIALIZED VIEW total AS SELECT sum(pay) AS pay FROM people")
    engine.sql(f"INSERT INTO people VALUES (3, 'x', {2**62}), (4, 'y', {2**62})")
    with pytest.raises(tk.TektiteError, match="total"):
        engine.view("total").rows()


def test_dates_before_the_first_year_are_named_where_python_has_none(engine: tk.Engine) -> None:
    found = engine.sql("SELECT DATE '0001-06-01' - 400 AS d")
    with pytest.raises(tk.UnsupportedError, match="the result holds a date or timestamp outside the years 1 to 9999"):
        found.rows()
    assert found.table is not None and found.table.num_rows == 1


GUARDED = "(SELECT a.x, b.bad FROM a JOIN b ON a.id = b.id WHERE a.x <> b.bad) q"
"""The rows of a whose text is a number: what removes the others is a join."""


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        (f"SELECT q.x, c.m FROM {GUARDED} JOIN c ON q.x::int = c.n", [("5", 1), ("7", 2)]),
        (f"SELECT q.x FROM {GUARDED} WHERE q.x::int IN (SELECT n FROM c)", [("5",), ("7",)]),
        ("SELECT a.x, c.m FROM a, b, c WHERE a.id = b.id AND a.x <> b.bad AND a.x::int = c.n", [("5", 1), ("7", 2)]),
        (
            "SELECT a.x, c.m FROM a JOIN b ON a.id = b.id AND a.x <> b.bad JOIN c ON a.x::int = c.n",
            [("5", 1), ("7", 2)],
        ),
        (f"SELECT q.x, r.x FROM {GUARDED} JOIN {GUARDED.replace(' q', ' r')} ON q.x::int + 2 = r.x::int", [("5", "7")]),
        (
            "SELECT c.m FROM c JOIN (SELECT id, max(x) AS x FROM a GROUP BY id) g ON c.m = g.id AND c.n >= g.x::int",
            [(1,)],
        ),
        ("SELECT c.m FROM c WHERE c.n >= (SELECT max(x)::int FROM a WHERE a.id = c.m)", [(1,)]),
    ],
)
def test_keys_and_bounds_are_computed_for_rows_that_a_join_leaves(query: str, rows: list[tuple[object, ...]]) -> None:
    engine = make_engine(autocommit=True)
    engine.sql("CREATE TABLE a (id INT, x TEXT)")
    engine.sql("CREATE TABLE b (id INT, bad TEXT)")
    engine.sql("CREATE TABLE c (n INT, m INT)")
    view = engine.sql(f"CREATE MATERIALIZED VIEW v AS {query}").view
    assert view is not None
    engine.sql("INSERT INTO a VALUES (1, '5'), (7, '*'), (3, '7')")
    engine.sql("INSERT INTO b VALUES (1, '*'), (7, '*'), (3, '*')")
    engine.sql("INSERT INTO c VALUES (5, 1), (7, 2), (6, 3)")
    assert sorted(view.rows()) == rows
    engine.sql("UPDATE b SET bad = 'none' WHERE id = 7")
    engine.sql("UPDATE c SET m = 7 WHERE m = 3")
    with pytest.raises(tk.IncorrectError, match=r"does not say such a value: int, found '\*'"):
        view.rows()
    engine.sql("UPDATE b SET bad = '*' WHERE id = 7")
    engine.sql("UPDATE c SET m = 3 WHERE m = 7")
    assert sorted(view.rows()) == rows


def failing(engine: tk.Engine, text: str) -> str:
    with pytest.raises(tk.TektiteError) as found:
        engine.sql(text)
    return str(found.value)


def answering(engine: tk.Engine) -> int:
    """How many dataflows answer prepared statements."""
    return len(core_of(engine).views)


def test_bindings_share_until_a_row_fails_and_then_only_those_that_it_concerns_do() -> None:
    engine = make_engine(autocommit=True)
    engine.sql(
        "CREATE TABLE t (id int, who int, x varchar); INSERT INTO t VALUES (1, 1, '10'), (2, 2, '20'), (3, 2, '5')"
    )
    engine.sql("PREPARE total AS SELECT sum(x::int) FROM t WHERE who = $1")
    assert [engine.sql(f"EXECUTE total({who})").rows() for who in (1, 2, 3)] == [[(10,)], [(25,)], [(None,)]]
    assert answering(engine) == 1
    engine.sql("INSERT INTO t VALUES (4, 2, 'no number')")
    assert engine.sql("EXECUTE total(1)").rows() == [(10,)]
    assert "no number" in failing(engine, "EXECUTE total(2)")
    assert engine.sql("EXECUTE total(3)").rows() == [(None,)]
    assert answering(engine) == 3
    engine.sql("INSERT INTO t VALUES (5, 3, '7')")
    assert engine.sql("EXECUTE total(3)").rows() == [(7,)]
    engine.sql("DELETE FROM t WHERE id = 4")
    assert [engine.sql(f"EXECUTE total({who})").rows() for who in (1, 2, 3)] == [[(10,)], [(25,)], [(7,)]]
    engine.sql("DEALLOCATE total(2)")
    engine.sql("DEALLOCATE total")
    assert answering(engine) == 0


def test_a_value_that_fails_is_no_error_of_others() -> None:
    engine = make_engine(autocommit=True)
    engine.sql("CREATE TABLE t (at date); INSERT INTO t VALUES (DATE '2024-02-01')")
    engine.sql("PREPARE since AS SELECT count(*) FROM t WHERE at >= $1 AND at < $1 + INTERVAL '3' MONTH")
    assert engine.sql("EXECUTE since(DATE '2024-01-01')").rows() == [(1,)]
    failing(engine, "EXECUTE since(DATE '5881580-01-01')")
    assert engine.sql("EXECUTE since(DATE '2024-01-01')").rows() == [(1,)]
    assert engine.sql("EXECUTE since(DATE '2025-01-01')").rows() == [(0,)]
