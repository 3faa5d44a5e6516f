"""What Python would answer with a TypeError: operators on whole collections, names that are called, types that are called."""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tektite as tk
from tektite import col

T = Any
CALLS: dict[str, tuple[Callable[[T], object], str]] = {
    "+": (lambda t: t + 1, r"one\.union\(other\)"),
    "1 +": (lambda t: 1 + t, r"with_columns\(x=c\['x'\] \+ 1\)"),
    "-": (lambda t: t - t, r"except_\(other\)"),
    "~": (lambda t: ~t, r"filter\(~c\['x'\]\)"),
    ">": (lambda t: t.select("v") > 1, r"filter\(c\['x'\] > 1\)"),
    "|": (lambda t: t | t, "distinct=True"),
    "float": (float, r"collect\(\)\['x'\]\[0\]"),
    "tables()": (lambda t: t.engine.tables(), "these are names, and no method"),
    "views[name]": (lambda t: t.engine.views["v"], r"\.view\('v'\)"),
    "type()": (lambda t: tk.Int(3), r"tk\.lit\(value, type\)"),
    "a text in a table": (lambda t: "v" in t, r"'v' in c\.schema\.names"),
    "a condition in a text": (lambda t: t.filter("v > 1"), r"tk\.sql_expr\('v > 1'\)"),
    "a column in a text": (lambda t: t.filter("v"), r"tk\.col\('v'\)"),
    "a function as a column": (lambda t: t.with_columns(x=lambda c: c["v"]), r"c\['x'\] \+ 1"),
    "texts of concat_ws": (lambda t: tk.concat_ws("-", "k", "v"), r"concat_ws\('-', tk\.col\('k'\)"),
    "a moment and a clock": (
        lambda t: t.filter(col("at") > dt.datetime(2024, 1, 1, tzinfo=dt.UTC)),
        r"dt\.from_zone\('UTC'\)",
    ),
    "table()": (lambda t: t(), r"its rows are \.rows\(\)"),
    "expression()": (lambda t: (col("v") + 1)(), "it is a column"),
    "t[column]()": (lambda t: t["v"](1), "it is a column"),
    "col()": (lambda t: col(), "it takes name, more"),
    "col(option)": (lambda t: col("v", type=int), "col has no option 'type'"),
    ".str()": (lambda t: col("k").str(), r"write \.str\.upper\(\)"),
    "groups()": (lambda t: t.group_by("k")(), r"\.agg\("),
    "when()()": (lambda t: tk.when(col("v") > 1)(), r"\.then\(value\)"),
    "engine()": (lambda t: t.engine(), r"\.sql\(text\)"),
    "an object as a function": (lambda t: t.subscribe(t), "takes a function"),
    "with a table": (lambda t: t.__enter__(), r"with engine\.transaction\(\)"),
    "async with a block": (lambda t: asyncio.run(entered(t.engine.transaction())), "without async"),
    "async with an engine": (lambda t: asyncio.run(entered(t.engine)), "write `with`"),
    "a format": (lambda t: f"{t:>9}", "is no format of Table"),
    "a place in a list": (lambda t: [1, 2][t["v"]], "has no value until it meets a row"),
    "pow": (lambda t: pow(t["v"], 2, 3), "% 3"),
    "a type's elements": (lambda t: tk.Int[int], r"tk\.List"),
    "a value's type": (lambda t: isinstance(1, tk.Int), r"isinstance\(value, int\)"),
    "tolerance": (lambda t: t.join_asof(t, on="at", tolerance="1h"), "by the distance"),
}


async def entered(block: Any) -> None:
    async with block:
        pass


@pytest.mark.parametrize(("call", "answer"), CALLS.values(), ids=CALLS)
def test_is_answered_with_what_to_write(call: Callable[[T], object], answer: str) -> None:
    table = tk.Engine().create_table("t", {"k": str, "v": int, "at": dt.datetime})
    with pytest.raises(tk.IncorrectError, match=answer):
        call(table)


def test_a_row_is_looked_for_by_in() -> None:
    table = tk.Engine().create_table("t", [{"k": "a", "v": 1}])
    assert ("a", 1) in table and ("a", 2) not in table
    assert table.engine.tables == ("t",) and "t" in table.engine.tables and table.engine.tables[0] == "t"


@pytest.mark.parametrize(
    ("given", "type"),
    [
        (list[int], tk.List(int)), ("text[]", tk.List(str)), (np.int32, tk.Int), (np.dtype("float32"), tk.Float),
        ("timestamp[us]", tk.Timestamp), ("datetime64[ns]", tk.Timestamp), ("uint8", tk.Int),
    ],
)  # fmt: skip
def test_a_type_is_what_python_numpy_and_arrow_call_it(given: object, type: tk.Type) -> None:
    assert tk.Engine().create_table("t", {"x": given}).schema.types == (type,)


@pytest.mark.parametrize(("given", "answer"), [(list, r"list\[int\]"), (dict, r"tk\.Json"), ("decimal", "12, 2")])
def test_a_type_that_says_too_little_is_answered_with_what_says_more(given: object, answer: str) -> None:
    with pytest.raises(tk.IncorrectError, match=answer):
        tk.Engine().create_table("t", {"x": given})
