"""`sort` orders what is collected, and what is read of a view; SQL's ORDER BY gives the same."""

from __future__ import annotations

import random
from typing import Any

import pytest

import tektite as tk
from tests.support.executors import make_engine

pytestmark = pytest.mark.executors

COLUMNS = {"name": tk.String, "n": tk.Int, "x": tk.Float}


def drawn(seed: int) -> list[tuple[Any, ...]]:
    draw = random.Random(seed)
    names, numbers = ["", "a", "ä", "aa", "b", None], [None, -1, 0, 1, 7]
    floats = [None, -0.5, 0.0, 1.5, float("inf"), float("nan")]
    return [(draw.choice(names), draw.choice(numbers), draw.choice(floats)) for _ in range(30)]


def key(row: tuple[Any, ...], column: int, descending: bool, nulls_last: bool) -> tuple[bool, Any]:
    """Sorts as the documentation says: text by bytes, NaN above every number, NULL at one end."""
    value = row[column]
    if value is None:
        return (nulls_last, 0)
    if isinstance(value, str):
        found: Any = tuple(value.encode())
        found = tuple(-byte for byte in found) + (1,) if descending else found
    else:
        nan = value != value
        found = (nan, 0.0 if nan else value)
        found = (not nan, -found[1]) if descending else found
    return (not nulls_last, found)


@pytest.mark.parametrize("column", range(3))
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("nulls_last", [False, True])
def test_rows_come_in_the_order_that_is_asked_for(column: int, descending: bool, nulls_last: bool) -> None:
    engine = make_engine(autocommit=True)
    rows = drawn(column)
    table = engine.create_table("t", COLUMNS)
    table.insert(rows)
    name = table.schema.names[column]
    expected = [repr(row[column]) for row in sorted(rows, key=lambda row: key(row, column, descending, nulls_last))]

    def shown(found: Any) -> list[str]:
        return [repr(row[name]) for row in found.to_pylist()]

    assert shown(table.sort(name, descending=descending, nulls_last=nulls_last).collect()) == expected
    limited = table.sort(name, descending=descending, nulls_last=nulls_last).limit(7, offset=2)
    assert shown(limited.collect()) == expected[2:9]
    constant = engine.values(rows, COLUMNS).sort(name, descending=descending, nulls_last=nulls_last)
    assert shown(constant.collect()) == expected
    view = engine.install("v", table.sort(name, descending=descending, nulls_last=nulls_last))
    assert shown(view.snapshot()) == expected and shown(view.head(4)) == expected[:4]
    words = f"{'DESC' if descending else 'ASC'} NULLS {'LAST' if nulls_last else 'FIRST'}"
    assert shown(engine.from_sql(f"SELECT * FROM t ORDER BY {name} {words}").collect()) == expected
    made = engine.create_view("w", f"SELECT * FROM t ORDER BY {name} {words}")
    table.remove(rows[:3])
    table.insert(rows[:3])
    assert shown(made.snapshot()) == expected


def test_an_order_by_expressions_and_several_columns() -> None:
    engine = make_engine(autocommit=True)
    table = engine.create_table("t", {"a": int, "b": int})
    table.insert([(1, 5), (2, 4), (1, 7), (2, 9)])
    found = table.sort("a", -tk.col("b")).collect()
    assert found.to_pylist() == [{"a": 1, "b": 7}, {"a": 1, "b": 5}, {"a": 2, "b": 9}, {"a": 2, "b": 4}]
    assert table.sort(tk.col("a") * -10 + tk.col("b")).limit(2).collect()["b"].to_pylist() == [4, 9]
    assert found.column_names == ["a", "b"]


def test_an_order_is_kept_whatever_is_selected() -> None:
    engine = make_engine(autocommit=True)
    table = engine.create_table("t", {"v": int, "u": int})
    table.insert([(3, 1), (1, 2), (9, 3), (2, 4)])
    ordered = table.sort("v")
    for query in (ordered.filter(tk.col("u") > 0), ordered.select("v"), ordered.with_columns(z=tk.col("v") * 2)):
        assert query.limit(2).collect()["v"].to_pylist() == [1, 2]
        assert query.collect()["v"].to_pylist() == [1, 2, 3, 9]
    for query, name in (
        (ordered.select("u"), "u"),
        (ordered.drop("v"), "u"),
        (ordered.select("u").rename({"u": "w"}).with_columns(x=tk.col("w") + 1), "w"),
        (ordered.rename({"v": "u", "u": "v"}), "v"),
        (ordered.with_columns(v=-tk.col("v"), w="u").filter(tk.col("v") < 0), "w"),
        (ordered.select(v=-tk.col("v"), u=tk.col("u")), "u"),
        (table.sort(tk.col("v") * 1).select("u"), "u"),
        (ordered.select("u", n=tk.row_number().over(order_by="u")), "n"),
        (engine.from_sql("SELECT u FROM t ORDER BY v"), "u"),
    ):
        assert query.collect()[name].to_pylist() == [2, 4, 1, 3]
        assert query.limit(3, offset=1).collect()[name].to_pylist() == [4, 1, 3]
    view = engine.create_view("renamed", ordered.rename({"v": "k"}))
    table.insert([(0, 5)])
    assert [row[0] for row in view.rows()] == [0, 1, 2, 3, 9]
    for lost in (ordered.select("u"), table.sort(-tk.col("v"))):
        with pytest.raises(tk.IncorrectError, match="view 'lost': sort.*of a view takes its columns"):
            engine.create_view("lost", lost)
    with pytest.raises(tk.IncorrectError, match="view 'lost': sort.*of a view takes its columns"):
        engine.create_view("lost", "SELECT u FROM t ORDER BY v")
    assert sorted(engine.create_view("first", ordered.select("u").limit(2)).rows()) == [(2,), (5,)]


def test_what_leaves_a_loop_can_be_collected() -> None:
    engine = make_engine(autocommit=True)
    edges = engine.values({"src": [1, 2], "dst": [2, 3]})
    with tk.Loop() as loop:
        reach = loop.variable("reach", src=tk.Int, dst=tk.Int)
        step = reach.join(edges, left_on="dst", right_on="src").select("src", dst="dst_right")
        reach.set(edges.concat(step).distinct())
        result = loop.leave(reach)
    rows = result.sort("src", "dst").collect().to_pylist()
    assert [(row["src"], row["dst"]) for row in rows] == [(1, 2), (1, 3), (2, 3)]


@pytest.mark.parametrize(
    ("data", "schema", "message"),
    [
        ([(1,)], None, "list has no names of columns"),
        ({"x": []}, None, "column 'x' holds no value that has a type"),
        ({"x": [1, "a"]}, None, "Give the types"),
        ([{"a": 1}, {"b": 2}], None, "unknown column 'b' in row 1"),
        ({"a": [1], "b": [1, 2]}, None, "column 'b': expected 1 values"),
        ([("a",)], {"x": int}, "expected int, found 'a'"),
    ],
)
def test_values_that_make_no_collection(data: Any, schema: Any, message: str) -> None:
    with pytest.raises(tk.IncorrectError, match=message):
        make_engine(autocommit=True).values(data, schema)


@pytest.mark.executors("stages", "spark")
def test_values_are_part_of_queries_that_change() -> None:
    engine = make_engine(autocommit=True)
    names = engine.values([(1, "one"), (2, "two")], {"n": int, "name": str})
    table = engine.create_table("t", {"n": int})
    view = engine.install("named", table.join(names, on="n"))
    table.insert([(1,), (1,), (3,)])
    assert sorted(view.rows()) == [(1, "one"), (1, "one")]
    table.remove([(1,)])
    table.insert([(2,)])
    assert sorted(view.rows()) == [(1, "one"), (2, "two")]
