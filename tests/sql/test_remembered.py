"""A statement that comes again is planned again only if what it reads has changed; its answer is always that of a new plan."""

from __future__ import annotations

import pytest

import tektite as tk
from tektite import sql
from tektite.sql.statements.runner import StatementRunner
from tests.support.executors import make_engine

pytestmark = pytest.mark.executors

TOTALS = "CREATE MATERIALIZED VIEW totals AS SELECT town, sum(total) AS total FROM sales GROUP BY town"


@pytest.fixture
def engine() -> tk.Engine:
    engine = make_engine()
    engine.sql("CREATE TABLE sales (town varchar, total int); INSERT INTO sales VALUES ('York', 1), ('Bath', 2)")
    return engine


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """One entry for each time a query is planned."""
    made: list[str] = []
    plan = StatementRunner._bind

    def counted(session, source, *others):  # type: ignore[no-untyped-def]
        made.append(source.text)
        return plan(session, source, *others)

    monkeypatch.setattr(StatementRunner, "_bind", counted)
    return made


def test_text_that_comes_again_is_planned_once(engine: tk.Engine, plans: list[str]) -> None:
    for total in (1, 4):
        assert sorted(engine.sql(TOTALS).view.rows()) == [("Bath", 2), ("York", total)]
        engine.sql("DROP MATERIALIZED VIEW totals")
        engine.sql("INSERT INTO sales VALUES ('York', 3)")
    assert plans.count(TOTALS) == 1


def test_table_made_anew_under_a_name_is_another_one(engine: tk.Engine) -> None:
    query = "SELECT * FROM sales"
    assert len(engine.sql(query).rows()) == 2
    engine.sql("DROP TABLE sales; CREATE TABLE sales (place varchar, price double)")
    engine.sql("INSERT INTO sales VALUES ('Hull', 1.5)")
    assert engine.sql(query).rows() == [("Hull", 1.5)]
    assert engine.sql(query).table.column_names == ["place", "price"]


def test_definition_that_was_replaced_is_read_as_it_is(engine: tk.Engine) -> None:
    engine.sql("CREATE VIEW large AS SELECT town FROM sales WHERE total > 1")
    query = "SELECT count(*) FROM large"
    assert engine.sql(query).rows() == [(1,)]
    engine.sql("CREATE OR REPLACE VIEW large AS SELECT town FROM sales WHERE total > 0")
    assert engine.sql(query).rows() == [(2,)]
    engine.sql("DROP VIEW large")
    with pytest.raises(tk.TektiteError, match="no table or view 'large'"):
        engine.sql(query)


def test_name_that_is_written_otherwise_may_come_to_mean_something_else(engine: tk.Engine) -> None:
    query = 'SELECT count(*) FROM "Sales"'
    assert engine.sql(query).rows() == [(2,)]
    engine.create_table("Sales", {"town": tk.String})
    engine.advance()
    assert engine.sql(query).rows() == [(0,)]


def test_new_index_is_found_by_a_text_that_was_planned_before(engine: tk.Engine, plans: list[str]) -> None:
    engine.sql(TOTALS)
    engine.sql("DROP MATERIALIZED VIEW totals; CREATE INDEX by_total ON sales (total)")
    engine.sql(TOTALS)
    assert plans.count(TOTALS) == 2


def test_names_given_to_columns_are_those_of_each_statement(engine: tk.Engine) -> None:
    for _ in range(2):
        engine.sql("CREATE MATERIALIZED VIEW a (place, sum) AS SELECT town, total FROM sales")
        assert engine.view("a").schema.names == ("place", "sum")
        engine.sql("DROP MATERIALIZED VIEW a")
    assert engine.sql("SELECT town, total FROM sales").table.column_names == ["town", "total"]


@pytest.mark.executors("stages")
def test_values_given_with_a_statement_are_not_remembered(engine: tk.Engine) -> None:
    query = "SELECT town FROM sales WHERE total = $wanted"
    assert engine.sql(query, wanted=1).rows() == [("York",)]
    assert engine.sql(query, wanted=2).rows() == [("Bath",)]


def test_statements_before_a_mistake_are_run_each_time(engine: tk.Engine) -> None:
    text = "INSERT INTO sales VALUES ('Hull', 5); SELECT nothing FROM sales"
    for rows in (3, 4):
        with pytest.raises(tk.TektiteError, match="no column 'nothing'"):
            engine.sql(text)
        assert engine.sql("SELECT count(*) FROM sales").rows() == [(rows,)]


def test_what_is_remembered_is_bounded(engine: tk.Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tektite.sql.statements.statement_cache.CHARACTERS", 150)
    monkeypatch.setattr("tektite.sql.statements.statement_cache.PLANS", 4)
    for number in range(10, 30):
        assert engine.sql(f"SELECT {number} + count(*) FROM sales").rows() == [(number + 2,)]
    remembered = sql.runner(engine).remembered
    assert 0 < sum(map(len, remembered._statements)) == remembered._characters <= 150
    assert len(remembered._plans) == 4


def test_rows_that_a_text_brings_are_not_remembered(engine: tk.Engine) -> None:
    remembered = sql.runner(engine).remembered
    before = list(remembered._statements), list(remembered._plans)
    engine.sql("INSERT INTO sales VALUES ('Hull', 1); UPDATE sales SET total = 2 WHERE town = 'Hull'")
    assert (list(remembered._statements), list(remembered._plans)) == before
