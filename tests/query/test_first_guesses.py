"""What a user of Polars, pandas or DuckDB types first, where it is called otherwise here: the error names what to write."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import tektite as tk
from tektite import graph

GUESSES: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "collection.head": (lambda e, s: s.filter(tk.col("qty") > 1).head(2), r"limit\(n\)\.collect\(\)"),
    "sorted.head": (lambda e, s: s.sort("qty").head(2), r"limit\(n\)\.collect\(\)"),
    "collection.rows": (lambda e, s: s.filter(tk.col("qty") > 1).rows(), r"collect\(\)\.to_pylist\(\)"),
    "collection.to_pandas": (lambda e, s: s.select("qty").to_pandas(), r"collect\(\)\.to_pandas\(\)"),
    "collection.to_polars": (lambda e, s: s.select("qty").to_polars(), r"polars\.from_arrow"),
    "collection.subscribe": (lambda e, s: s.select("qty").subscribe(), "create_view"),
    "table.describe": (lambda e, s: s.describe(), "schema"),
    "table.pivot": (lambda e, s: s.pivot("shop"), "PIVOT"),
    "table.slice": (lambda e, s: s.slice(0, 1), "offset="),
    "table.tail": (lambda e, s: s.tail(1), "descending=True"),
    "table.sum": (lambda e, s: s.sum("qty"), "tk.sum"),
    "table.shape": (lambda e, s: s.shape, "len"),
    "table.append": (lambda e, s: s.append([]), "insert"),
    "table.upsert": (lambda e, s: s.upsert([]), "mode='upsert'"),
    "table.truncate": (lambda e, s: s.truncate(), "delete"),
    "table.to_dicts": (lambda e, s: s.to_dicts(), r"to_pylist\(\)"),
    "table.to_duckdb": (lambda e, s: s.to_duckdb(), "FROM x"),
    "table.watch": (lambda e, s: s.watch(), "subscribe"),
    "table.group_by_dynamic": (lambda e, s: s.group_by_dynamic("at", every="1h"), "truncate"),
    "tk.Text": (lambda e, s: tk.Text, "tk.String"),
    "tk.Datetime": (lambda e, s: tk.Datetime, "tk.Timestamp"),
    "tk.Database": (lambda e, s: tk.Database(), r"tk\.Engine\(\)"),
    "graph.connected_components": (lambda e, s: graph.connected_components(s), r"graph\.wcc\(g\)"),
    "graph.shortest_path": (lambda e, s: graph.shortest_path(s), "sssp"),
    "engine.begin": (lambda e, s: e.begin(), "transaction"),
    "tk.len": (lambda e, s: tk.len(), r"tk\.count\(\)"),
    "tk.read_csv": (lambda e, s: tk.read_csv("x.csv"), "COPY"),
    "tk.DataFrame": (lambda e, s: tk.DataFrame({}), "create_table"),
    "engine.execute": (lambda e, s: e.execute("SELECT 1"), "sql"),
    "engine.register": (lambda e, s: e.register("t", None), "create_table"),
    "result.fetchall": (lambda e, s: e.sql("SELECT 1").fetchall(), r"rows\(\)"),
    "result.df": (lambda e, s: e.sql("SELECT 1").df(), r"to_pandas\(\)"),
    "result.pl": (lambda e, s: e.sql("SELECT 1").pl(), r"to_polars\(\)"),
}


@pytest.fixture(scope="module")
def engine() -> Iterator[tk.Engine]:
    with tk.Engine() as made:
        sales = made.create_table("sales", {"shop": str, "qty": int})
        sales.insert([("north", 3), ("north", 1), ("south", 4)])
        yield made


@pytest.mark.parametrize("guess", GUESSES)
def test_another_name_is_answered_with_ours(engine: tk.Engine, guess: str) -> None:
    call, instead = GUESSES[guess]
    with pytest.raises(AttributeError, match=f"'{guess.partition('.')[2]}'; use .*{instead}"):
        call(engine, engine.table("sales"))


def test_a_result_of_sql_is_read_as_a_view_is(engine: tk.Engine) -> None:
    result = engine.sql("SELECT shop, qty FROM sales WHERE qty > 2 ORDER BY qty")
    assert len(result) == 2 and result.rows() == [("north", 3), ("south", 4)]
    assert result.to_arrow().column_names == ["shop", "qty"] and result.to_pandas()["qty"].tolist() == [3, 4]
    nothing = engine.sql("SELECT shop FROM sales WHERE qty > 9")
    assert len(nothing) == 0 and nothing


def test_index_is_of_a_collection_and_not_of_a_name(engine: tk.Engine) -> None:
    with pytest.raises(tk.IncorrectError, match=r"create_index takes a table.*not 'sales'; engine\.table\(name\)"):
        engine.create_index("sales", "shop")  # type: ignore[arg-type]


def test_brackets_take_a_condition_or_a_list_of_names(engine: tk.Engine) -> None:
    sales = engine.table("sales")
    assert sorted(sales[sales["qty"] > 1].collect().to_pylist(), key=str) == sorted(
        sales.filter(tk.col("qty") > 1).collect().to_pylist(), key=str
    )
    assert sales[["qty", "shop"]].schema.names == ("qty", "shop")
    for key, way in (
        (("qty", "shop"), r"c\[\['qty', 'shop'\]\]"),
        (0, r"limit\(n"),
        (slice(2), r"limit\(n"),
        ([0], "filter"),
    ):
        with pytest.raises(tk.IncorrectError, match=way):
            sales[key]  # type: ignore[index]
    with pytest.raises(tk.IncorrectError, match=r"with_columns\(twice="):
        sales["twice"] = sales["qty"] * 2  # type: ignore[index]
    with pytest.raises(tk.IncorrectError, match=r"drop\('qty'\)"):
        del sales["qty"]


def test_time_that_is_not_closed_yet_is_not_called_an_earlier_one(engine: tk.Engine) -> None:
    view = engine.create_view("all_sales", engine.table("sales"))
    with pytest.raises(tk.IncorrectError, match="not at 99; that time is not closed yet; .*timeout=.* waits"):
        view.rows(at=99)
    with pytest.raises(tk.IncorrectError, match="not at 99; that time is not closed yet"):
        engine.table("sales").snapshot(at=99)
    view.drop()


REFUSED: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "option": (
        lambda e, s: s.sort("qty", ascending=False),
        "sort has no option 'ascending'; use descending=; it takes by",
    ),
    "option of an expression": (lambda e, s: tk.col("qty").cast(int, strict=False), "cast has no option 'strict'"),
    "option of a text": (
        lambda e, s: tk.col("shop").str.contains("n", literal=True),
        "contains has no option 'literal'",
    ),
    "name of what has none": (
        lambda e, s: s.drop(columns="qty"),
        r"drop takes columns without its name: drop\('qty'\)",
    ),
    "too few": (lambda e, s: s.limit(), r"limit\(\): missing a required argument: 'n'"),
    "rows": (lambda e, s: s.rows(named=True), "rows has no option 'named'"),
    "constant key": (lambda e, s: s.group_by("shop", maintain_order=True), "groups have no order to maintain"),
    "empty on": (lambda e, s: s.join(s, on=[]), "on names no column"),
    "on of one": (lambda e, s: s.join(s, on=("shop",)), r"on=\['shop'\]"),
    "texts": (lambda e, s: tk.greatest("qty", "shop"), r"greatest\(tk.col\('qty'\), tk.col\('shop'\)\)"),
    "window of groups": (
        lambda e, s: s.group_by("shop").agg(tk.sum("qty").over("shop")),
        r"a window function.*agg\(...\) first",
    ),
    "for": (lambda e, s: list(s.filter(tk.col("qty") > 1)), r"collect\(\) computes them"),
    "in": (lambda e, s: "n" in tk.col("shop"), "is_in"),
    "iterate": (lambda e, s: s.iterate(5), "takes a function"),
    "concat": (lambda e, s: tk.concat([s, s]), "union"),
    "union": (lambda e, s: s.union(s.select("qty")), r"\(shop: string, qty: int\) and \(qty: int\)"),
    "swapped": (lambda e, s: e.create_view(s, "v"), r"create_view\('name', query\), not Table"),
    "file": (lambda e, s: e.create_table("t", "o.csv"), "COPY"),
    "mixed": (lambda e, s: e.create_table("t", {"a": [{"k": 1}, 3]}), "Give a schema, then insert"),
    "no query": (lambda e, s: e.create_view("t", 3), "needs a query"),
    "finish": (lambda e, s: e.finish("v"), "takes a view"),
    "sql as datalog": (lambda e, s: e.query("SELECT 1"), "SQL is for sql"),
}


@pytest.mark.parametrize("guess", REFUSED)
def test_what_cannot_be_meant_is_refused_and_the_way_is_shown(engine: tk.Engine, guess: str) -> None:
    call, message = REFUSED[guess]
    with pytest.raises(tk.IncorrectError, match=message):
        call(engine, engine.table("sales"))


def test_sql_is_a_query_wherever_one_is_wanted(engine: tk.Engine) -> None:
    assert engine.collect("SELECT sum(qty) AS n FROM sales").to_pylist() == [{"n": 8}]
    assert "read sales" in str(engine.explain("SELECT qty FROM sales"))
    made = engine.create_table("copied", engine.from_sql("SELECT qty FROM sales ORDER BY qty"))
    assert sorted(made.rows()) == [(1,), (3,), (4,)]
    assert engine.create_table("dicts", [{"a": 1, "b": "x"}, {"a": 2, "b": None}]).rows() == [(1, "x"), (2, None)]
    view = engine.create_view("gone", "SELECT 1 AS one")
    engine.drop_view(view)
    engine.drop_table(made)
    assert "gone" not in engine.views and "copied" not in engine.tables


def test_what_users_hold_says_what_it_is(engine: tk.Engine) -> None:
    with engine.table("sales").subscribe(lambda delta: None) as listener:
        assert repr(listener) == "<Listener to table 'sales', open>"
    assert repr(listener) == "<Listener to table 'sales', closed>"
    with engine.transaction() as transaction:
        assert repr(transaction).startswith("<Transaction, open")
    assert repr(transaction).startswith("<Transaction, committed at time")
    assert "Any" not in dir(tk) and "col" in dir(tk)


def test_errors_have_details_for_programs() -> None:
    engine = tk.Engine()
    texts = engine.create_table("texts", {"s": str})
    keyed = engine.create_table("keyed", {"k": int, "u": int}, primary_key="k", unique="u")
    numbers = engine.create_view("numbers", texts.select(n=tk.col("s").cast(int)))
    texts.insert([("x",), ("y",)])
    wrong: list[tuple[Callable[[], Any], dict[str, Any]]] = [
        (numbers.rows, {"view": "numbers", "rows": 2}),
        (lambda: engine.table("nope"), {"kind": "table", "name": "nope"}),
        (lambda: texts.select("t"), {"kind": "column", "name": "t"}),
        (lambda: texts.insert([(1,)]), {"name": "s"}),
        (lambda: keyed.insert([(1, 1), (1, 2)]), {"table": "keyed", "columns": ["k"]}),
        (lambda: keyed.insert([(1, 1), (2, 1)]), {"table": "keyed", "columns": ["u"]}),
        (lambda: engine.sql("SELECT t FROM texts"), {"line": 1, "column": 8}),
    ]
    for call, details in wrong:
        with pytest.raises(tk.TektiteError) as raised:
            call()
        assert details.items() <= raised.value.details.items()
