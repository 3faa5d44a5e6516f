"""Statements as programs write them: deeply nested, or with thousands of terms, and refused where they nest too deeply."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from threading import Thread
from typing import Any

import pytest

import tektite as tk
from tests.support.nightly import by_day_or_night, few_of
from tests.support.sql.oracle import difference

ROWS: list[tuple[Any, Any, Any]] = [(1, "a", 0.5), (2, "b", 0.25), (3, None, None), (4999, "d", 1024.0)]


def chain(by: str, count: int, term: str) -> str:
    return by.join(term.replace("#", str(at)) for at in range(count))


Row = tuple[Any, Any, Any]
NESTED: dict[str, tuple[str, Callable[[Row], Any]]] = {
    "parentheses": ("(" * 200 + "k" + ")" * 200, lambda r: r[0]),
    "sums in parentheses": ("(1 + " * 150 + "k" + ")" * 150, lambda r: r[0] + 150),
    "choices": (
        chain("", 150, "CASE WHEN k = # THEN # + 1 ELSE ") + "k" + " END" * 150, lambda r: r[0] + (r[0] < 150),
    ),
    "calls": ("coalesce(" * 150 + "x" + ", 1)" * 150, lambda r: 1 if r[2] is None else r[2]),
    "negations": ("NOT " * 201 + "k = 1", lambda r: r[0] != 1),
}  # fmt: skip
LONG: dict[str, tuple[str, Callable[[Row], Any]]] = {
    "sum": (chain(" + ", 5000, "k"), lambda r: 5000 * r[0]),
    "differences": (chain(" - ", 5001, "k * #"), lambda r: -r[0] * sum(range(5001))),
    "sum of floats": (chain(" + ", 5000, "x"), lambda r: None if r[2] is None else 5000 * r[2]),
    "sum of all kinds": (
        chain(" + ", 1500, "k + 0.5 - x"), lambda r: None if r[2] is None else 1500 * (r[0] + 0.5 - r[2]),
    ),
    "texts": (
        chain(" || ", 5000, "v || '#'"), lambda r: None if r[1] is None else "".join(f"{r[1]}{n}" for n in range(5000)),
    ),
    "different texts": (
        chain(" || ", 700, "v || CAST(k AS VARCHAR)"), lambda r: None if r[1] is None else f"{r[1]}{r[0]}" * 700,
    ),
    "choices": (
        "CASE " + chain(" ", 5000, "WHEN k = # THEN # * 2") + " ELSE -1 END", lambda r: 2 * r[0] if r[0] < 5000 else -1,
    ),
    "choices that may overflow": (
        "CASE " + chain(" ", 1000, "WHEN k + # = 1001 THEN k * #") + " END",
        lambda r: r[0] * (1001 - r[0]) if 1 < r[0] <= 1001 else None,
    ),
    "conjunction": (chain(" AND ", 5000, "k <> # + 5"), lambda r: not 5 <= r[0] < 5005),
    "disjunction": (chain(" OR ", 5000, "(k = # AND v < 'b')"), lambda r: None if r[1] is None else r[1] < "b"),
}  # fmt: skip
CASES = NESTED | {f"long {name}": case for name, case in LONG.items()}


@pytest.fixture
def engine() -> Iterator[tk.Engine]:
    with tk.Engine(autocommit=False) as made:
        made.sql("CREATE TABLE t (k bigint, v varchar, x double)")
        made.table("t").insert(ROWS)
        made.advance()
        yield made


@pytest.mark.parametrize(
    "name", few_of(CASES, *NESTED, "long sum of floats", "long different texts", "long choices that may overflow")
)
def test_deep_and_long_expressions_are_kept_up_to_date(engine: tk.Engine, name: str) -> None:
    text, twin = CASES[name]
    view = engine.sql(f"CREATE MATERIALIZED VIEW deep AS SELECT {text} AS value FROM t").view
    assert view is not None
    rows = list(ROWS)
    assert difference(view.rows(), [(twin(row),) for row in rows]) is None
    more: list[Row] = [(7, "g", 2.5), (7, "g", 2.5)]
    engine.table("t").insert(more)
    engine.table("t").remove(rows[:2])
    engine.advance()
    assert difference(view.rows(), [(twin(row),) for row in rows[2:] + more]) is None
    assert difference(engine.sql(f"SELECT {text} FROM t").rows(), view.rows()) is None


def test_definition_of_a_view_with_a_long_sum_can_be_read(engine: tk.Engine) -> None:
    total = chain(" + ", 1100, "k - x")
    engine.sql(f"CREATE VIEW totals AS SELECT {total} AS total FROM t WHERE k = 1 - 2 + 2")
    ((definition,),) = engine.sql("SELECT definition FROM pg_views WHERE viewname = 'totals'").rows()
    assert total in definition and definition.endswith("k = 1 - 2 + 2")
    assert engine.sql("SELECT total FROM totals").rows() == [(550.0,)]


def test_queries_nest_and_follow_each_other(engine: tk.Engine) -> None:
    nested = "SELECT k FROM " + "(SELECT k FROM " * 60 + "t" + ") AS s" * 60
    assert sorted(engine.sql(nested).rows()) == [(row[0],) for row in ROWS]
    many = by_day_or_night(2000, 5000)
    named = chain(", ", many, "a# AS (SELECT * FROM t)")
    assert len(engine.sql(f"WITH {named} SELECT a0.k FROM a0 JOIN a{many - 1} AS last ON a0.k = last.k").rows()) == 4
    assert len(engine.sql(chain(" UNION ALL ", 1000, "SELECT k + # FROM t")).rows()) == 4000


@pytest.mark.parametrize("count", few_of([3000, 30_000], 3000))
@pytest.mark.parametrize("text", ["SELECT {0}k{1} FROM t", "SELECT k FROM t WHERE {2} k = 1", "SELECT k FROM {3}t{4}"])
def test_what_nests_too_deeply_is_refused_and_the_engine_goes_on(engine: tk.Engine, text: str, count: int) -> None:
    before = sys.getrecursionlimit()
    parts = ("(" * count, ")" * count, "NOT " * count, "(SELECT k FROM " * count, ") AS s" * count)

    def refused() -> None:
        with pytest.raises(tk.UnsupportedError, match="nested too deeply\nline 1"):
            engine.sql(text.format(*parts))

    refused()
    thread = Thread(target=refused)
    thread.start()
    thread.join()
    assert engine.sql("SELECT count(*) FROM t").rows() == [(4,)]
    assert sys.getrecursionlimit() == before


def test_a_long_sum_of_dates_is_refused_by_name(engine: tk.Engine) -> None:
    with pytest.raises(tk.UnsupportedError, match=r"a sum of more than 200 terms that are not all numbers.*\nline 1"):
        engine.sql("SELECT DATE '2024-01-01' + " + chain(" + ", 300, "INTERVAL '1' DAY"))


def test_names_that_use_the_one_before_twice_are_maintained(engine: tk.Engine) -> None:
    """Written out, the last one joins 256 tables: more than can be put in order as one join."""
    engine.sql("CREATE TABLE e (a INT, b INT); INSERT INTO e VALUES (1, 1), (1, 2), (2, 2)")
    names = ["c0 AS (SELECT a, b FROM e)"]
    names += [f"c{at} AS (SELECT x.a, y.b FROM c{at - 1} AS x JOIN c{at - 1} AS y ON x.b = y.a)" for at in range(1, 9)]
    engine.sql(f"CREATE MATERIALIZED VIEW walks AS WITH {', '.join(names)} SELECT a, b, count(*) FROM c8 GROUP BY a, b")
    assert sorted(engine.sql("SELECT * FROM walks").rows()) == [(1, 1, 1), (1, 2, 256), (2, 2, 1)]
    engine.sql("DELETE FROM e WHERE a = 1 AND b = 1")
    assert sorted(engine.sql("SELECT * FROM walks").rows()) == [(1, 2, 1), (2, 2, 1)]


def test_a_join_of_thirty_tables_is_maintained(engine: tk.Engine) -> None:
    for at in range(30):
        engine.sql(f"CREATE TABLE r{at} (k INT PRIMARY KEY, n INT); INSERT INTO r{at} VALUES (1, {at}), (2, {2 * at})")
    total = chain(" + ", 30, "r#.n")
    tables = "r0 " + " ".join(f"JOIN r{at} ON r{at}.k = r{at - 1}.k" for at in range(1, 30))
    engine.sql(f"CREATE MATERIALIZED VIEW totals AS SELECT r0.k, {total} FROM {tables}")
    assert sorted(engine.sql("SELECT * FROM totals").rows()) == [(1, 435), (2, 870)]
    engine.sql("UPDATE r29 SET n = 1000 WHERE k = 1; DELETE FROM r3 WHERE k = 2")
    assert engine.sql("SELECT * FROM totals").rows() == [(1, 1406)]


TWICE = "SELECT one.k FROM {0} one JOIN {0} two ON one.k = two.k"
DEPTH = 30


def query_of_a_flat_chain(engine: tk.Engine) -> str:
    links = [f"c{at + 1} AS ({TWICE.format(f'c{at}')})" for at in range(DEPTH)]
    return f"WITH c0 AS (SELECT k FROM t), {', '.join(links)} SELECT * FROM c{DEPTH}"


def query_of_a_nested_chain(engine: tk.Engine) -> str:
    query = "SELECT k FROM t"
    for at in range(DEPTH):
        query = f"WITH c{at} AS ({query}) {TWICE.format(f'c{at}')}"
    return query


def query_of_a_chain_of_views(engine: tk.Engine) -> str:
    engine.sql("CREATE VIEW c0 AS SELECT k FROM t")
    for at in range(DEPTH):
        engine.sql(f"CREATE VIEW c{at + 1} AS {TWICE.format(f'c{at}')}")
    return f"SELECT * FROM c{DEPTH}"


@pytest.mark.parametrize("make", [query_of_a_flat_chain, query_of_a_nested_chain, query_of_a_chain_of_views])
def test_chain_in_which_each_reads_the_one_before_twice_is_planned_once(make: Callable[[tk.Engine], str]) -> None:
    """Planning it anew for each use would plan a thousand million relations."""
    with tk.Engine() as engine:
        engine.sql("CREATE TABLE t (k bigint); INSERT INTO t VALUES (1), (2)")
        query = make(engine)
        assert sorted(engine.sql(query).rows()) == [(1,), (2,)]
        view = engine.sql(f"CREATE MATERIALIZED VIEW v AS {query}").view
        engine.sql("INSERT INTO t VALUES (3); DELETE FROM t WHERE k = 1")
        assert sorted(view.rows()) == [(2,), (3,)]


def test_view_that_is_read_several_times_has_the_rows_that_each_use_asks_for() -> None:
    with tk.Engine() as engine:
        engine.sql("CREATE TABLE t (k bigint, v bigint); INSERT INTO t VALUES (1, 10), (2, 20)")
        engine.sql(f"CREATE VIEW w AS SELECT k, a.v FROM t a {chain(' ', 9, 'JOIN t t# USING (k)')}")
        found = engine.sql(
            "SELECT x.k, y.v, (SELECT max(v) FROM w WHERE w.k <= x.k) FROM w x LEFT JOIN w y ON y.k = x.k + 1"
        )
        assert sorted(found.rows()) == [(1, 20, 10), (2, None, 20)]


@pytest.mark.parametrize("name", ["range", "list", "struct", "object", "nested", "array", "map"])
def test_column_that_is_called_like_a_type_is_compared(name: str) -> None:
    """A type could take arguments in `< >`."""
    with tk.Engine() as engine:
        found = engine.sql(f'SELECT {name} < 3, {name} < 1 AND {name} > 0 FROM (SELECT 2 AS "{name}")')
        assert found.rows() == [(True, False)]
        with pytest.raises(tk.IncorrectError, match="syntax error"):
            engine.sql(f'SELECT {name} < FROM (SELECT 2 AS "{name}")')
