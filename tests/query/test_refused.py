"""What cannot be meant is refused where it is written, with what to write instead; nothing but Tektite's own errors is raised."""

from __future__ import annotations

import builtins
import datetime
import re
from collections.abc import Callable, Iterator
from typing import Any, get_args, get_type_hints

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import tektite as tk
from tektite import col

x, t = col("x"), col("t")


@pytest.fixture
def c() -> Iterator[tk.Table]:
    with tk.Engine() as engine:
        yield engine.create_table("c", {"x": tk.Int, "t": tk.String, "f": tk.Float, "d": tk.Date})


CASES: dict[str, tuple[Callable[[Any], object], str]] = {
    "an unknown column in with_columns": (lambda c: c.with_columns(y="amount"), "no column 'amount'"),
    "a number in select": (lambda c: c.select(5), r"tk.lit\(5\).alias\('name'\)"),
    "a literal without a name": (lambda c: c.select(tk.lit(5)), "give 5 a name"),
    "two columns of one name": (lambda c: c.select("x", x + 1), "two columns would be called 'x'"),
    "two new columns of one name": (lambda c: c.with_columns(x + 1, x + 2), r"name one of them with .alias"),
    "a function in select": (lambda c: c.select(y=len), "not a column or an expression"),
    "a set in an expression": (lambda c: c.select(y={1}), "cannot use|not a column or an expression"),
    "a dict in select": (lambda c: c.select({"x": 1}), r"write select\(\*\*\{...\}\), or select\(x=1\)"),
    "everything dropped": (lambda c: c.drop("x", "t", "f", "d"), "no column would be left"),
    "dropping a number": (lambda c: c.drop(1), "a list of names, not 1"),
    "rename of a list": (lambda c: c.rename(["x"]), "takes a mapping from old to new names"),
    "rename of nothing that is there": (lambda c: c.rename({"y": "z"}), "no column 'y'"),
    "a column by number": (lambda c: c[0], "a column is named by a text"),
    "a column that is not there": (lambda c: c["y"], "no column 'y'"),
    "going through a collection": (lambda c: list(c.select("x")), "a query has no rows to go through"),
    "equal to None": (lambda c: c.filter(x == None), r"use x.is_null\(\)"),  # noqa: E711
    "unequal to None": (lambda c: c.filter((x > 1) & (t != None)), r"use t.is_not_null\(\)"),  # noqa: E711
    "a filter of a text": (lambda c: c.filter("x > 1"), "takes an expression such as"),
    "a filter of nothing": (lambda c: c.filter(), "filter needs a predicate"),
    "a filter of a number": (lambda c: c.filter(x + 1), "filter needs a bool"),
    "a pair of keys": (lambda c: c.join(c, on=tuple("xt")), "left_on='x', right_on='t'"),
    "a list of pairs": (lambda c: c.join(c, on=[("x", "t")]), "left_on='x', right_on='t'"),
    "no keys": (lambda c: c.join(c), "how='cross' pairs every row"),
    "half of the keys": (lambda c: c.join(c, left_on="x"), "left_on='a' and right_on='b'"),
    "keys twice": (lambda c: c.join(c, on="x", left_on="x"), "not both"),
    "unequal numbers of keys": (lambda c: c.join(c, left_on=["x", "t"], right_on="x"), "left_on has 2 columns and right_on 1"),
    "a number as a key": (lambda c: c.join(c, on=1), "takes the name of a column or a list of names, not 1"),
    "keys of a cross join": (lambda c: c.join(c, on="x", how="cross"), "leave on, left_on and right_on out"),
    "an unknown join": (lambda c: c.join(c, on="x", how="outer"), "not 'outer'; write how='full'"),
    "a join with a table": (lambda c: c.join([1], on="x"), "join needs a collection, not list"),
    "keys of two types": (lambda c: c.join(c, left_on="x", right_on="t"), "'x' is int and 't' is string; cast one"),
    "a suffix of nothing": (lambda c: c.join(c, on="x", suffix=""), "suffix is a text"),
    "a condition that is none": (lambda c: c.join(c, on=x + 1), "a condition is a bool"),
    "Python's min": (lambda c: c.group_by("t").agg(y=builtins.min("amount")), r"tk.min\('amount'\)"),
    "Python's sum as a function": (lambda c: c.group_by("t").agg(y=builtins.sum), r"Python's own sum, .* write tk.sum\('x'\)"),
    "Python's len as a function": (lambda c: c.group_by("t").agg(y=builtins.len), r"write tk.count\(\)"),
    "Python's sum of a column": (lambda c: c.group_by("t").agg(y=builtins.sum(x)), r"Write tk.sum\(...\)"),
    "Python's max of two": (lambda c: builtins.max(x, t), "tk.least and tk.greatest instead of Python's min and max"),
    "a number as an aggregate": (lambda c: c.group_by("t").agg(5), "not an aggregate such as"),
    "aggregates by name": (lambda c: c.group_by("t").agg({"x": "sum"}), r"write agg\(tk.sum\('x'\)\)"),
    "an aggregate by name": (lambda c: c.group_by("t").agg(x="sum"), r"write tk.sum\('x'\)"),
    "a filter of None": (lambda c: c.filter(x=None), r"use x.is_null\(\)"),
    "a filter of an unknown column": (lambda c: c.filter(y=1), "no column 'y'"),
    "no aggregate": (lambda c: c.group_by("t").agg(), "needs at least one aggregate"),
    "a column beside aggregates": (lambda c: c.group_by("t").agg(y=x + tk.count()), "column 'x' has many values in a group"),
    "a column called like an aggregate": (
        lambda c: c.rename(count="x").group_by("t").agg(y=col("count") + tk.count()), "column 'count' has many values"),
    "an aggregate called like a key": (lambda c: c.group_by("t").agg(t=tk.count()), "'t' is a key column"),
    "a sum of texts": (lambda c: c.group_by("x").agg(tk.sum("t")), "t is string, not a number"),
    "whether a number": (lambda c: c.agg(tk.any("x")), "x is int, not bool"),
    "an aggregate of a number": (lambda c: tk.sum(5), r"tk.sum\(...\) takes the name of a column"),
    "an aggregate of an aggregate": (lambda c: c.agg(y=tk.sum("x").max()), "an aggregate has no value for a single row"),
    "an aggregate in with_columns": (lambda c: c.with_columns(y=tk.sum("x")), r"x.sum\(\).over\(...\) to have it in every row"),
    "an aggregate in filter": (lambda c: c.filter(tk.max("x") > 1), "an aggregate has no value for a single row"),
    "an aggregate beside columns": (lambda c: c.select("t", tk.sum("x")), "column 't' has many values in a group"),
    "a first without an order": (lambda c: c.group_by("t").agg(x.first()), r"x.first\(order_by='day'\)"),
    "a quantile of two": (lambda c: x.quantile(2), "between 0 and 1"),
    "degrees of freedom": (lambda c: x.std(ddof=2), "ddof is 1"),
    "a window without over": (lambda c: c.select(y=tk.rank()), r"rank\(\).over\(..., order_by=...\)"),
    "a rank without an order": (lambda c: c.select(y=tk.rank().over("t")), r"say over\(..., order_by=...\)"),
    "over of a column": (lambda c: x.over("t"), "over follows an aggregate or a window function"),
    "directions": (lambda c: tk.rank().over(order_by="x", descending=[True, False]), "1 ordering columns but 2 directions"),
    "a direction": (lambda c: tk.rank().over(order_by="x", descending="yes"), "descending is True, False"),
    "a frame": (lambda c: x.sum().over(order_by="x", rows=3), r"rows is a pair such as \(-2, 0\)"),
    "a frame that ends too soon": (lambda c: x.sum().over(order_by="x", rows=(1, 0)), "ends before it starts"),
    "a frame of ranks": (lambda c: c.select(y=tk.rank().over(order_by="x", rows=(0, 1))), "rank takes no frame: leave rows="),
    "a moving median": (lambda c: c.select(y=x.median().over(order_by="x")), "is of whole partitions"),
    "a partition by a number": (lambda c: x.sum().over(5), "a column is a name or an expression, not 5"),
    "an unknown partition": (lambda c: c.select(y=x.sum().over("y")), "no column 'y'"),
    "a default of another type": (lambda c: c.select(y=x.lag(1, "none").over(order_by="x")), "literal 'none' is a string"),
    "half a row": (lambda c: x.lag(0.5), "whole number of rows"),
    "no rows": (lambda c: c.top_k(0, by="x"), "top_k takes a positive number of rows, not 0"),
    "rows by nothing": (lambda c: c.top_k(1, by=[]), "top_k needs columns to order by"),
    "rows by an unknown column": (lambda c: c.bottom_k(1, by="y"), "no column 'y'"),
    "a limit of a text": (lambda c: c.sort("x").limit("5"), "the limit is a number of rows"),
    "a negative offset": (lambda c: c.limit(1, offset=-1), "the offset is a number of rows"),
    "a union with other columns": (lambda c: c.union(c.select("x")), "union needs the same columns"),
    "a union with other types": (lambda c: c.select("x").union(c.select(x="t")), "union needs the same column types"),
    "a union with a list": (lambda c: c.union([1]), "union needs a collection, not list"),
    "a number as a function": (lambda c: c.map_batches(5, y=tk.Int), "map_batches takes a function, not 5"),
    "an alias of nothing": (lambda c: x.alias(""), "takes the name of a column"),
    "is_in of a number": (lambda c: x.is_in(3), "takes a list of values or a collection of one column, not 3"),
    "is_in of a collection": (lambda c: c.filter(x.is_in(c)), "a collection of one column"),
    "a cast to a text": (lambda c: x.cast("whole"), "expected a type such as tk.Int"),
    "rounding by a text": (lambda c: x.round("2"), r"round\(digits\) takes a whole number"),
    "rounding a text": (lambda c: c.select(t.round()), "round needs a number, found column t of type string"),
    "a text and a number": (lambda c: c.select(y=t + 1), "add needs two numbers"),
    "a week of a number": (lambda c: c.select(y=x.dt.week()), "date_part needs a date or a timestamp"),
    "an unknown field": (lambda c: x.dt.part("fortnight"), "the fields are year"),
    "an unknown letter": (lambda c: col("d").dt.strftime("%Q"), "%Q is none of"),
    "hours of a date": (lambda c: c.select(y=col("d") + datetime.timedelta(hours=1)), "a date moves by whole days"),
    "time and a number": (lambda c: c.select(y=x + datetime.timedelta(1)), "adding a timedelta needs a date"),
    "a separator": (lambda c: t.str.join(5), "takes a text to put between"),
    "a slice from a text": (lambda c: t.str.slice("a"), "takes a whole number as its offset"),
    "a choice without a value": (lambda c: c.select(y=tk.when(x > 1)), "cannot use"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_mistake_is_named_with_what_to_write_instead(name: str, c: tk.Table) -> None:
    build, message = CASES[name]
    with pytest.raises((tk.IncorrectError, tk.NotFoundError), match=message):
        build(c)


def test_type_checkers_know_the_joins() -> None:
    how = get_type_hints(tk.Collection.join)["how"]
    assert get_args(how) == ("inner", "left", "right", "full", "cross", "semi", "anti")


def test_top_warns_and_gives_the_least(c: tk.Table) -> None:
    with pytest.warns(DeprecationWarning, match="bottom_k"):
        view = c.engine.install("least", c.select("x").top(1, "x"))
    c.insert([(2, "", 0.0, None), (1, "", 0.0, None)])
    c.engine.advance()
    assert view.rows() == [(1,)]


@pytest.mark.parametrize(
    "values",
    [[1, 3], (1, 3), {1, 3}, range(1, 4, 2), iter([1, 3]), np.array([1, 3]), pa.array([1, 3]), {1: 0, 3: 0}.keys()],
    ids=lambda values: type(values).__name__,
)
def test_membership_takes_any_list_of_values(values: Any) -> None:
    assert str(x.is_in(values)) == "x.isin([1, 3])"


def test_a_string_is_a_literal_in_comparisons_and_choices(c: tk.Table) -> None:
    view = c.engine.install("chosen", c.filter(t == "x").select(y=tk.when(t > "a").then("x").otherwise("t")))
    c.insert([(1, "x", 0.0, None), (2, "1", 0.0, None)])
    c.engine.advance()
    assert view.rows() == [("x",)]


def test_division_rounds_down_in_python_and_towards_zero_in_sql_and_datalog(c: tk.Table) -> None:
    engine = c.engine
    python = engine.install("python", c.select(q=x // 2, r=x % 2))
    sql = engine.sql("CREATE MATERIALIZED VIEW in_sql AS SELECT x // 2 AS q, x % 2 AS r FROM c").view
    engine.datalog(".decl in_datalog(q: number, r: number)  in_datalog(x / 2, x % 2) :- c(x, _, _, _).")
    c.insert([(-3, "", 0.0, None)])
    engine.advance()
    assert python.rows() == [(-2, 1)]
    assert sql is not None and sql.rows() == [(-1, -1)] == engine.view("in_datalog").rows()
    assert "x // 2" in c.select(q=x // 2).explain()
    (plan,) = [line for (line,) in engine.sql("EXPLAIN SELECT x // 2 AS q FROM c").rows() if "select" in line]
    assert "truncdiv(x, 2)" in plan


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda c: c.groupby("x"), r"Table has no 'groupby'; use group_by"),
        (lambda c: c.select("x").mutate(y=x), r"Collection has no 'mutate'; use with_columns"),
        (lambda c: c.x, r"the column is c\['x'\]"),
        (lambda c: c.nothing_of_that_kind, r"Table has no 'nothing_of_that_kind'; use .*SQL has"),
        (lambda c: c.group_by("t").sum("x"), r"groups have no 'sum'; use agg\(tk.sum\('x'\)\)"),
        (lambda c: t.dt.weekofyear(), r".dt has no 'weekofyear'; use week"),
        (lambda c: x.is_between(1, 2), r"expressions have no 'is_between'; use between"),
        (lambda c: x.fillna(1), r"use fill_null"),
        (lambda c: x.nothing_of_that_kind, r"expressions have no 'nothing_of_that_kind'; use .*SQL has"),
    ],
)
def test_names_of_other_libraries_are_answered_with_ours(build: Any, message: str, c: tk.Table) -> None:
    with pytest.raises(AttributeError, match=message):
        build(c)


def test_advice_names_what_is_there(c: tk.Table) -> None:
    from tektite import other_names as of_tektite
    from tektite.engine import other_names as of_engines
    from tektite.expr import other_names as of_expressions
    from tektite.query import other_names as of_collections

    joined: Any = c.filter(x > 0)
    view = c.engine.create_view("some", c)
    tables: list[tuple[Any, dict[str, str]]] = [
        (x, of_expressions.METHODS), (t.str, of_expressions.TEXT_METHODS), (t.dt, of_expressions.DATE_METHODS),
        (x.list, of_expressions.LIST_METHODS), (joined, of_collections.METHODS), (c.group_by("x"), of_collections.OF_GROUPS),
        (c.engine, of_engines.METHODS), (tk, of_tektite.NAMES),
    ]  # fmt: skip
    places: dict[str, tuple[Any, ...]] = {
        "tk": (tk,), "Collection": (joined,), "c": (joined,), "str": (x.str,), "dt": (x.dt,), "list": (x.list,),
        "struct": (x.struct,), "json": (x.json,), "engine": (c.engine,), "schema": (c.schema,), "one": (joined,),
    }  # fmt: skip
    plain = {"select", "polars", "function", "len", "sql", "print", "repr", "for"}
    for found, names in tables:
        assert [name for name in names if name in dir(found)] == []
        for advice in names.values():
            for where, name in re.findall(r"(\w+)\.(\w+)\(", advice):
                assert where not in places or any(hasattr(place, name) for place in places[where]), advice
            for name in re.findall(r"\)\.(\w+)\(", advice):
                holders = (
                    x,
                    joined,
                    view,
                    c.group_by("x"),
                    tk.when(x > 0),
                    tk.when(x > 0).then(1),
                    pd.DataFrame,
                    pa.Table,
                )
                assert any(hasattr(holder, name) for holder in (*holders, pa.ChunkedArray, c.engine, c, tk.Session)), (
                    advice
                )
            first = re.match(r"(\w+)\(", advice)  # such as "filter(...)"
            holders = (found, c, view, tk, c.engine, x, x.str)
            assert first is None or first[1] in plain or any(hasattr(holder, first[1]) for holder in holders), advice


def test_names_of_other_libraries_for_lists_structs_and_json_are_answered() -> None:
    for expression, name, use in (
        (col("x").list, "first", "get\\(0\\)"),
        (col("x").list, "sum", "explode"),
        (col("x").struct, "unnest", "struct.field"),
        (col("x").json, "json_path_match", "text\\(path\\)"),
        (col("x").dt, "convert_time_zone", "in_zone"),
    ):
        with pytest.raises(AttributeError, match=f"has no '{name}'; use .*{use}"):
            getattr(expression, name)
