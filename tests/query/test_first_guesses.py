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
    "table.pivot": (lambda e, s: s.pivot("shop"), "group_by"),
    "table.slice": (lambda e, s: s.slice(0, 1), "offset="),
    "table.tail": (lambda e, s: s.tail(1), "descending=True"),
    "table.sum": (lambda e, s: s.sum("qty"), "tk.sum"),
    "table.shape": (lambda e, s: s.shape, "len"),
    "table.explode": (lambda e, s: s.explode("x"), "flat_map"),
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


def test_rows_are_not_chosen_by_brackets_and_the_error_shows_no_data(engine: tk.Engine) -> None:
    sales = engine.table("sales")
    with pytest.raises(tk.IncorrectError, match=r"^c\[<Expr qty > 1>\]: .* rows with filter"):
        sales[sales["qty"] > 1]  # type: ignore[index]


def test_time_that_is_not_closed_yet_is_not_called_an_earlier_one(engine: tk.Engine) -> None:
    view = engine.create_view("all_sales", engine.table("sales"))
    with pytest.raises(tk.IncorrectError, match="not at 99; that time is not closed yet; .*timeout=.* waits"):
        view.rows(at=99)
    with pytest.raises(tk.IncorrectError, match="not at 99; that time is not closed yet"):
        engine.table("sales").snapshot(at=99)
    view.drop()
