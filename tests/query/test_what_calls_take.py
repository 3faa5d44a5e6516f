"""What is given to a call, and what is asked of an object: each that does not fit is answered with what does."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tektite as tk
from tektite import col, graph


@pytest.fixture(scope="module")
def engine() -> Iterator[tk.Engine]:
    with tk.Engine() as made:
        sales = made.create_table("sales", {"shop": str, "qty": int, "day": tk.Date, "tags": list[str]})
        sales.insert([("north", 3, None, ["a", "b"]), ("north", 1, None, []), ("south", 4, None, ["a"])])
        made.create_table("edges", {"src": int, "dst": int}).insert([(1, 2), (2, 3)])
        made.create_view("totals", sales.group_by("shop").agg(tk.sum("qty")))
        made.create_table("users", {"id": int, "name": str}, mode="upsert", primary_key="id")
        yield made


REFUSED: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "a dict of outputs": (lambda e, s: s.select({"x": col("qty") * 2}), r"select\(x=qty \* 2\)"),
    "a dict of conditions": (lambda e, s: s.filter({"shop": "north"}), r"filter\(shop='north'\)"),
    "rows for a condition": (lambda e, s: s.delete([("north", 3)]), r"remove\(rows\)"),
    "truth for a condition": (lambda e, s: s.filter(True), r"tk\.lit\(True\)"),
    "a function for a condition": (lambda e, s: s.filter(lambda r: r.qty > 1), "write the condition itself"),
    "a method for a column": (lambda e, s: s.select(x=col("qty").abs), r"write qty\.abs\(\)"),
    "a method in arithmetic": (lambda e, s: col("day").year + 1, r"day\.year is a method: write day\.year\(\)"),
    "a method compared": (lambda e, s: s.filter(col("day").year == 2024), r"day\.year is a method"),
    "a method for an aggregate": (lambda e, s: s.agg(col("qty").sum), r"write qty\.sum\(\)"),
    "a function for an aggregate": (lambda e, s: s.agg(n=tk.count), r"write tk\.count\(\)"),
    "numpy for an aggregate": (lambda e, s: s.agg(n=np.sum), r"write tk\.sum\('x'\)"),
    "a name of an aggregate": (lambda e, s: s.agg("sum"), r"write tk\.sum\('x'\)"),
    "no order of first": (lambda e, s: s.agg(tk.first("shop")), r"^shop\.first\(\): "),
    "how in words": (lambda e, s: s.join(s, on="shop", how="LEFT OUTER"), "write how='left'"),
    "how asof": (lambda e, s: s.join(s, on="shop", how="asof"), r"write join_asof"),
    "a join with rows": (lambda e, s: s.join(pa.table({"shop": ["a"]}), on="shop"), r"engine\.values\(rows\)"),
    "a join with a name": (lambda e, s: s.join("shops", on="shop"), r"engine\.table\('shops'\)"),
    "limit of an order": (lambda e, s: s.sort("qty").limit(), "missing a required argument: 'n'"),
    "desc": (lambda e, s: s.sort("qty", desc=True), "use descending="),
    "top of groups": (lambda e, s: s.top_k(1, by="qty", group_by="shop"), "use per="),
    "rows with a limit": (lambda e, s: s.rows(limit=3), r"use head\(n\)"),
    "a key by its name": (lambda e, s: s.lookup(shop="north"), "a key is given by its values alone"),
    "columns as options": (lambda e, s: e.create_table("t", a=int), "columns are a dict"),
    "a schema without digits": (lambda e, s: e.create_table("t", {"a": tk.Decimal}), r"tk\.Decimal\(12, 2\)"),
    "an optional column": (lambda e, s: e.create_table("t", {"a": int | None}), "every column may hold NULL"),
    "a path for workers": (lambda e, s: tk.Engine("file.db"), r"storage='file\.db'"),
    "a word for truth": (lambda e, s: tk.Engine(autocommit="no"), "autocommit is True or False"),
    "a word for replan": (lambda e, s: tk.Engine(replan="no"), "replan is True or False"),
    "a word for seconds": (lambda e, s: tk.Engine(turn="x"), "turn is a number of seconds"),
    "a word for snapshot": (lambda e, s: s.subscribe(snapshot="yes"), "snapshot is True or False"),
    "a number for a storage": (lambda e, s: tk.Storage(3), "storage is a path or a URL"),
    "a word for retention": (lambda e, s: tk.Storage("x", retention="long"), "retention is a number from 0 on"),
    "SQL to install": (lambda e, s: e.install("v", "FROM sales"), r"create_view\(name, text\) takes SQL"),
    "groups for a view": (lambda e, s: e.create_view("v", s.group_by("shop")), "aggregate them"),
    "a column for a view": (lambda e, s: e.create_view("v", s["qty"]), r"c\.select\(x=\.\.\.\)"),
    "rows for a view": (lambda e, s: e.create_view("v", s.collect()), r"create_table\(name, rows\)"),
    "a name for a query": (lambda e, s: e.create_view("v", "sales"), r"write SELECT \* FROM sales"),
    "no listener": (lambda e, s: e.install("v", s, on_change=3), "on_change takes a function"),
    "no listener to sweeps": (lambda e, s: e.on_sweep(3), "on_sweep takes a function"),
    "no fuel": (lambda e, s: e.idle("x"), "idle takes a number"),
    "rounds of a loop": (lambda e, s: tk.Loop(max_rounds="x"), "max_rounds is a positive number"),
    "rounds of rules": (lambda e, s: e.datalog("p(1).", max_rounds=0), "max_rounds is a positive number"),
    "share of rules": (lambda e, s: e.datalog("p(1).", share=True), "share is a dict"),
    "a body without an argument": (lambda e, s: s.iterate(lambda: s), "the body takes the collection of each round"),
    "a number leaves a loop": (lambda e, s: tk.Loop().leave(3), "leave needs a collection"),
    "a number in a loop": (lambda e, s: tk.Loop().variable("x", s).set(3), "set needs a collection"),
    "a table for a graph": (lambda e, s: graph.wcc(s), r"wcc\(graph\.Graph\(edges\)\)"),
    "a pattern": (lambda e, s: s.select(x=col("shop").str.matches("(")), "invalid regular expression"),
    "a pattern to extract": (lambda e, s: s.select(x=col("shop").str.extract("[")), "invalid regular expression"),
    "a group of a pattern": (lambda e, s: col("shop").regexp_extract("a", "x"), "the number of a group"),
    "a replacement": (lambda e, s: col("shop").regexp_replace("(a)", r"\2"), "regexp_replace"),
    "an element by a text": (lambda e, s: col("tags").list.get("a"), "a whole number or an expression"),
    "an element in brackets": (lambda e, s: col("tags").list[0], r"write tags\.list\.get\(0\)"),
    "a field in brackets": (lambda e, s: col("tags").struct["a"], r"write tags\.struct\.field\('a'\)"),
    "one row for rows": (lambda e, s: e.table("edges").insert((5, 6)), r"write \[\(src, dst\), \.\.\.\]"),
    "a key for rows": (lambda e, s: e.table("users").remove(1), "expected a list of rows"),
    "a name in double quotes": (lambda e, s: e.sql('SELECT * FROM sales WHERE shop = "north"'), "a text is 'north'"),
    "a table made by its class": (lambda e, s: tk.Table("x", a=int), r"engine\.create_table"),
}  # fmt: skip


@pytest.mark.parametrize("guess", REFUSED)
def test_a_call_is_answered_with_one_that_fits(engine: tk.Engine, guess: str) -> None:
    call, message = REFUSED[guess]
    with pytest.raises(tk.IncorrectError if guess != "a name in double quotes" else tk.NotFoundError, match=message):
        call(engine, engine.table("sales"))


NAMES = {
    "subscription": "get next read rows unsubscribe to_pandas view tabel",
    "delta": "rows to_pandas inserts deletes diffs epoch columns",
    "listener": "cancel unsubscribe stop",
    "index": "columns close lookup",
    "held": "close drop time",
    "session": "execute cursor commit rollback table",
    "transaction": "insert table sql execute abort",
    "query": "to_pandas collect filter fetchall",
    "program": "query rows reach",
    "schema": "columns items dtypes to_dict to_arrow shop",
    "block": "insert commit rollback",
}


@pytest.mark.parametrize("kind", NAMES)
def test_a_name_that_is_not_there_is_answered_with_what_is(engine: tk.Engine, kind: str) -> None:
    sales, totals = engine.table("sales"), engine.view("totals")
    subscription = totals.subscribe()
    with engine.transaction() as transaction:
        pass
    with engine.hold(sales) as held, sales.create_index("qty") as index:
        made: dict[str, Any] = {
            "subscription": subscription, "delta": subscription.poll(0), "listener": totals.subscribe(lambda delta: None),
            "index": index, "held": held, "session": engine.session(), "transaction": transaction, "schema": sales.schema,
            "query": engine.query("edges(1, ?)"), "block": engine.transaction(),
            "program": engine.datalog("reach(x, y) :- edges(x, y)."),
        }  # fmt: skip
        for name in NAMES[kind].split():
            with pytest.raises(AttributeError, match=rf"no '{name}'; \w"):
                getattr(made[kind], name)
    made["listener"].close()
    made["query"].drop()


def test_numbers_of_numpy_are_numbers(engine: tk.Engine) -> None:
    sales, two = engine.table("sales"), np.int64(2)
    assert sales.limit(two).collect().num_rows == sales.top_k(two, by="qty").collect().num_rows == 2
    assert sales.head(two).num_rows == 2 and sales.sort("qty").limit(two, offset=np.int32(1)).collect().num_rows == 2
    query = sales.select(
        a=col("shop").str.head(two), b=col("shop").str[two], c=col("qty").lag(np.int64(1)).over(order_by="qty"),
        d=col("qty").sum().over(order_by="qty", rows=(np.int64(-1), 0)), e=col("tags").list.get(np.int64(0)),
    )  # fmt: skip
    rows = [tuple(row.values()) for row in query.sort("d").collect().to_pylist()]
    assert rows == [("no", "r", None, 1, None), ("no", "r", 1, 4, "a"), ("so", "u", 3, 7, "a")]


def test_a_column_is_named_by_a_text_or_by_itself(engine: tk.Engine) -> None:
    sales = engine.table("sales")
    for one, other in (
        (sales.explode(sales["tags"]), sales.explode("tags")),
        (sales.explode(["tags"]), sales.explode("tags")),
        (sales.min(col("qty"), by=sales["shop"]), sales.min("qty", by="shop")),
        (sales.max(sales["qty"]), sales.max("qty")),
        (sales.tumble(col("day"), "7d"), sales.tumble("day", "7d")),
        (sales.hop(col("day"), "1d", "7d"), sales.hop("day", "1d", "7d")),
        (sales.session(col("day"), "7d", by=col("shop")), sales.session("day", "7d", by="shop")),
    ):
        assert one.schema == other.schema
        assert one.except_(other, distinct=False).collect().num_rows == 0


def test_an_answer_of_a_goal_is_read_as_a_view_is(engine: tk.Engine) -> None:
    with engine.query("edges(?, ?)") as query:
        assert sorted(query) == [(1, 2), (2, 3)] and len(query) == 2
    assert list(engine.datalog("twice(x, y) :- edges(x, y).")) == ["twice"]


def test_rows_without_pandas_say_what_to_install(engine: tk.Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    result = engine.sql("SELECT 1")
    monkeypatch.setitem(sys.modules, "pandas", None)
    for made in (engine.table("sales"), result):
        with pytest.raises(tk.UnsupportedError, match="needs pandas, which is not installed: pip install pandas"):
            made.to_pandas()
