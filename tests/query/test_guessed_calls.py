"""Calls as users of pandas, Polars, PySpark, SQLAlchemy and DuckDB write them: they work, or the error says what to write."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import tektite as tk
from tektite import col


@pytest.fixture(scope="module")
def engine() -> Iterator[tk.Engine]:
    with tk.Engine() as made:
        sales = made.create_table("sales", {"shop": str, "qty": int, "price": float})
        sales.insert([("north", 3, 1.5), ("north", 1, None), ("south", 4, 2.5)])
        made.create_table("shops", {"shop": str, "city": str}).insert([("north", "Oslo"), (None, "Rome")])
        yield made


def rows(query: tk.Collection) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in query.collect().to_pylist())


def test_values_of_a_collection_are_asked_for_as_in_sql(engine: tk.Engine) -> None:
    sales, shops = engine.table("sales"), engine.table("shops")
    known = shops.select("shop")
    among = "SELECT * FROM sales WHERE qty > 1 AND shop {} (SELECT shop FROM shops {})"
    for verb, query in (
        ("IN", sales.filter(col("shop").is_in(known), col("qty") > 1)),
        ("IN", sales.filter((col("qty") > 1) & sales["shop"].is_in(shops["shop"]))),
        ("NOT IN", sales.filter(~col("shop").is_in(known), qty=4).filter(col("qty") > 1)),
    ):
        assert rows(query) == sorted(engine.sql(among.format(verb, "")).rows())
    named = known.drop_nulls()
    assert rows(sales.filter(~col("shop").is_in(named)).select("qty")) == [(4,)]
    assert rows(sales.filter((col("qty") + 1).is_in(sales.select("qty"))).select("qty")) == [(3,)]
    assert sales.sort("qty").filter(col("shop").is_in(known)).limit(1).collect()["qty"].to_pylist() == [1]


def test_values_of_a_collection_are_followed(engine: tk.Engine) -> None:
    wanted = engine.create_table("wanted", {"shop": str})
    view = engine.create_view("found", engine.table("sales").filter(col("shop").is_in(wanted)).select("qty"))
    assert view.rows() == []
    wanted.insert([("south",)])
    assert view.rows() == [(4,)]
    view.drop()
    engine.drop_table("wanted")


def test_conditions_are_added_up_as_ones_and_zeros(engine: tk.Engine) -> None:
    sales = engine.table("sales")
    assert rows(sales.agg(col("price").is_null().sum(), part=(col("qty") > 2).mean())) == [(1, 2 / 3)]
    found = sales.group_by("shop").agg(n=tk.sum(col("qty") > 1)).sort("shop").collect()["n"].to_pylist()
    assert found == [1, 1]
    assert rows(sales.select("qty", n=(col("qty") > 1).sum().over("shop"))) == [(1, 1), (3, 1), (4, 1)]


def test_a_join_takes_a_list_of_conditions(engine: tk.Engine) -> None:
    sales, shops = engine.table("sales"), engine.table("shops")
    found = sales.join(shops, on=[sales["shop"] == shops["shop"], sales["qty"] > 2])
    assert rows(found.select("qty", "city")) == [(3, "Oslo")]
    with pytest.raises(tk.IncorrectError, match="names and conditions"):
        sales.join(shops, on=["shop", sales["qty"] > 2])  # type: ignore[list-item]


@pytest.mark.parametrize("text", ["", "a", "ab", "abcde"])
def test_characters_are_counted_as_python_counts_them(text: str) -> None:
    given = tk.Engine().values({"x": [text]})
    for key in [slice(a, b) for a in (None, -7, -2, 0, 1, 3) for b in (None, -7, -1, 0, 2, 9)]:
        assert given.select(x=col("x").str[key]).collect()["x"].to_pylist() == [text[key]], key
    for at in (-3, -1, 0, 2):
        expected = text[at] if -len(text) <= at < len(text) else None
        assert given.select(x=col("x").str[at]).collect()["x"].to_pylist() == [expected], at


def test_other_libraries_get_names_and_rows(engine: tk.Engine) -> None:
    sales = engine.table("sales")
    view = engine.create_view("large", sales.filter(col("qty") > 2).select("shop", "qty"))
    assert list(pd.DataFrame(view).columns) == ["shop", "qty"] == list(pd.DataFrame(engine.sql("FROM large")).columns)
    assert pa.table(sales.select("qty")).column_names == ["qty"]
    assert next(iter(view)) in view.rows() and repr(next(iter(view))) == repr(view.rows()[0])
    assert sales.filter(col("qty") > 2)
    assert engine.time == sales.time == engine.next_epoch - 1 or engine.time is not None
    assert sales.schema["qty"] == tk.Int and dict(sales.schema)["shop"] == tk.String
    assert rows(sales.select(np.int64(2) * col("qty"), half=+col("price"))) == rows(
        sales.select(qty=2 * col("qty"), half="price")
    )
    view.drop()


REFUSED: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "col of two": (lambda e, s: s.select(col("a", "b")), r"select\('a', 'b'\) takes several"),
    "all": (lambda e, s: s.select(tk.all()), r"select\('\*'\)"),
    "sum of two": (lambda e, s: tk.sum("a", "b"), r"agg\(tk.sum\('a'\), tk.sum\('b'\)\)"),
    "len of a query": (lambda e, s: len(s.filter(col("qty") > 1)), "num_rows"),
    "brackets": (lambda e, s: col("shop")[0], r"\.str\[\.\.\.\]"),
    "hop": (lambda e, s: s.hop("at", period="1h"), "no option 'period'; use size="),
    "key": (lambda e, s: e.create_table("t", {"x": int}, key="x"), "use primary_key="),
    "replace": (lambda e, s: e.create_view("t", s, replace=True), "use if_exists='replace'"),
    "path": (lambda e, s: tk.Engine(path="x"), "use storage=path"),
    "insert": (lambda e, s: s.insert(shop="x"), "insert has no option 'shop'"),
    "insert of nothing": (lambda e, s: s.insert(), "rows are a list"),
    "sql": (lambda e, s: e.sql(), "missing a required argument: 'text'"),
    "keep": (lambda e, s: e.create_view("w", s, keep="yes"), "keep is True or False"),
    "transaction": (lambda e, s: e.transaction(5), r"transaction\(\): too many positional arguments"),
    "storage": (lambda e, s: tk.Storage(path="x"), "it takes url"),
    "decimal": (lambda e, s: tk.Decimal(), "it takes precision, scale"),
    "connect": (lambda e, s: tk.connect(), "it takes url"),
    "poll": (lambda e, s: s.subscribe().poll(timeout_ms=1), "it takes timeout"),
    "groups": (lambda e, s: s.group_by("shop")["qty"], r"agg\(tk.sum\('qty'\)\)"),
    "for groups": (lambda e, s: list(s.group_by("shop")), r"agg\(...\).collect\(\)"),
    "result": (lambda e, s: e.sql("FROM sales")[0], r"rows\(\)\[0\]"),
    "engine": (lambda e, s: e["sales"], r"engine.table\(name\)"),
    "power": (lambda e, s: col("qty") ^ 2, r"\*\* for a power"),
    "int": (lambda e, s: int(col("qty")), r"cast\(int\)"),
    "len": (lambda e, s: len(col("qty")), r"\.str\.len\(\)"),
    "how": (lambda e, s: s.join(s, on="shop", how="left_outer"), "write how='left'"),
    "is_in of two columns": (lambda e, s: s.filter(col("qty").is_in(s)), r"select\('x'\)"),
    "is_in in select": (lambda e, s: s.select(col("qty").is_in(s.select("qty"))), "is for filter"),
    "is_in or": (lambda e, s: s.filter(col("qty").is_in(s.select("qty")) | (col("qty") > 1)), "alone or after ~"),
    "indexes": (lambda e, s: e.indexes(5), "takes a table or a view"),
}


@pytest.mark.parametrize("guess", REFUSED)
def test_a_call_that_does_not_fit_is_answered_with_one_that_does(engine: tk.Engine, guess: str) -> None:
    call, message = REFUSED[guess]
    with pytest.raises(tk.IncorrectError, match=message):
        call(engine, engine.table("sales"))


NAMES: dict[str, str] = {
    "engine": "sales cursor rollback commit insert drop_index has_table list_views stop flush stats save subscribe from_dict "
    "createDataFrame catalog serve create_or_replace_view materialize udf read_sql executemany begin execute",
    "table": "cast pipe lazy map iterrows to_dict to_csv write_parquet to_json height width empty copy create_view cache refresh "
    "withColumnRenamed crossJoin printSchema with_row_index is_empty values loc iloc take natural_join qty joim",
    "view": "close refresh latest on_update listen stop pause get version definition update",
    "result": "fetchmany columns description rowcount scalar scalars all first one mappings keys head shape to_df filter qty",
    "groups": "sum mean first size apply transform nunique quantile filter qty rank",
    "expression": "add eq and_ avg cumsum pct_change sort is_duplicated value_counts map as_ label not_in isNull rlike "
    "eqNullSafe desc_nulls_last fill_nan coalesce if_else bfill partition_by null_count getItem in_ ceiling stddev substrin",
    "text": "title match findall count left right substr lpad removeprefix trim isalpha to_int json_decode casefold get",
    "date": "day_name days_in_month time millisecond ceil isocalendar is_month_start day_of_week hours",
    "tektite": "desc struct date duration quantile stddev array_agg abs upper year current_timestamp date_trunc ifelse case "
    "literal column F int64 Double Bytes Array UInt64 JSON Window Series from_pandas memtable create_engine Client Error udf "
    "union MaterializedView exclude countDistinct Strin",
}


@pytest.mark.parametrize("kind", NAMES)
def test_names_of_other_libraries_are_answered_with_ours(engine: tk.Engine, kind: str) -> None:
    sales = engine.table("sales")
    holders: dict[str, Any] = {
        "engine": engine, "table": sales, "view": engine.create_view("shown", sales, if_exists="replace"), "tektite": tk,
        "result": engine.sql("FROM sales"), "groups": sales.group_by("shop"), "expression": col("qty"),
        "text": col("shop").str, "date": col("at").dt,
    }  # fmt: skip
    for name in NAMES[kind].split():
        with pytest.raises(AttributeError, match=r"(; (use|did you mean|the column is)|, and needs none:) "):
            getattr(holders[kind], name)


def test_moments_have_no_hidden_meaning() -> None:
    at = datetime.datetime(2026, 1, 1, 9, 30)
    found = tk.Engine().values({"at": [at]}).hop("at", every="1h", size="2h").collect()
    assert found.num_rows == 2
