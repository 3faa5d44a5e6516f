"""`table["x"]` means the column of that table, or is refused."""

from __future__ import annotations

from typing import Any

import pytest

import tektite as tk
from tests.support.executors import make_engine

pytestmark = pytest.mark.executors


def two_tables() -> tuple[tk.Table, tk.Table]:
    engine = make_engine(autocommit=True)
    a, b = (engine.create_table(name, {"id": int, "x": int}) for name in ("a", "b"))
    a.insert([(1, 10), (2, 1), (3, None)])
    b.insert([(1, 20), (2, 0), (3, 5)])
    return a, b


def rows(query: tk.Collection) -> list[tuple[Any, ...]]:
    return sorted((tuple(row.values()) for row in query.collect().to_pylist()), key=repr)


@pytest.mark.executors("stages")
def test_a_condition_of_a_join_names_its_sides() -> None:
    a, b = two_tables()
    plain = a.join(b, left_on="id", right_on="id")
    found = a.join(b, on=a["id"] == b["id"])
    assert rows(found.select("id", "x", "x_right")) == rows(plain)
    assert rows(a.join(b, on=(b["id"] == a["id"]) & (a["x"] < b["x"])).select("id")) == [(1,)]
    assert rows(a.join(b, on=a["id"] == b["id"], how="anti")) == []
    small = b.filter(b["x"] < 10)
    assert rows(a.join(small, on=a["id"] == b["id"], how="left").select("id", "x_right")) == [(1, None), (2, 0), (3, 5)]


def test_columns_of_what_is_computed_from_a_table() -> None:
    a, b = two_tables()
    assert rows(a.filter(a["x"] > 1).select(y=a["x"] * 2)) == [(20,)]
    assert rows(a.group_by(a["id"]).agg(a["x"].sum())) == [(1, 10), (2, 1), (3, None)]
    assert a.sort(a["x"], descending=True).limit(1).collect().to_pylist() == [{"id": 1, "x": 10}]
    assert rows(a.join(b.select(k="id", y="x"), left_on="id", right_on="k").select(a["x"], "y")) == rows(
        a.join(b.select(k="id", y="x"), left_on="id", right_on="k").select("x", "y")
    )


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (lambda a, b: a.filter(b["x"] > 5), "filter: 'x' is a column of another collection"),
        (lambda a, b: a.select(b["x"]), "select: 'x' is a column of another"),
        (lambda a, b: a.with_columns(y=b["x"]), "with_columns: 'x' is a column of another"),
        (lambda a, b: a.group_by("id").agg(s=b["x"].sum()), "agg: 'x' is a column of another"),
        (lambda a, b: a.group_by(b["id"]), "group_by: 'id' is a column of another"),
        (lambda a, b: a.sort(b["x"]), "sort: 'x' is a column of another"),
        (lambda a, b: a.join(b, on="id").select(s=a["x"] + b["x"]), "both sides of the join had a column 'x'"),
        (lambda a, b: a.join(a, on=a["id"] == a["id"]), "'id' may be of either side"),
        (lambda a, b: a.join(b.select(k="id"), on=a["id"] == a.select("x")["x"]), "on neither side"),
    ],
)
def test_other_tables_columns_are_refused(query: Any, message: str) -> None:
    with pytest.raises(tk.IncorrectError, match=message):
        query(*two_tables())
