"""docs/coming-from.md is true: each line runs, and gives the rows that the SQL beside it gives, as rows come and go."""

from __future__ import annotations

import ast
import datetime
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tektite as tk
from tests.support.sales import same

PAGE = (Path(__file__).parents[2] / "docs" / "coming-from.md").read_text()
ROW = re.compile(r"^\| (Polars|ibis|pandas|SQL) \| (.*) \|$", re.MULTILINE)
PROGRAM = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def lines() -> Iterator[tuple[str, str, str, str]]:
    """Where, what is typed there, the line in Tektite, and the SQL."""
    for where, cells in ROW.findall(PAGE):
        typed, ours, sql = (cell.strip()[1:-1].replace("\\|", "|") for cell in re.split(r" (?<!\\)\| ", cells))
        yield where, typed, ours, sql


LINES = list(lines())


def moment(day: int, hour: int) -> datetime.datetime:
    return datetime.datetime(2024, 2, day, hour, 30)


SALES: list[tuple[Any, ...]] = [
    ("north", "cup", 1, 2.25, moment(27, 8).date(), moment(27, 8), True),
    ("north", "jug", 5, 9.5, moment(28, 9).date(), moment(28, 9), False),
    ("north", " pan", -3, 4.0, moment(28, 10).date(), moment(28, 10), True),
    ("south", "cup", 2, 3.75, moment(29, 11).date(), moment(29, 11), None),
    ("south", "cup", 3, 1.125, moment(29, 12).date(), moment(29, 12), True),
    ("east", "jug", None, 7.75, moment(29, 13).date(), moment(29, 13), True),
    (None, None, 4, None, moment(29, 14).date(), moment(29, 14), False),
]
SHOPS: list[tuple[Any, ...]] = [
    ("north", "York", 2), ("south", "Bath", 3), ("west", "York", 5), ("north", "Bath", 1), (None, "York", None)
]  # fmt: skip


def test_the_page_has_enough_lines() -> None:
    assert len(LINES) >= 120
    assert {where for where, *_ in LINES} == {"Polars", "ibis", "pandas", "SQL"}


@pytest.mark.parametrize(("where", "typed", "ours", "sql"), LINES, ids=[line[2][:60] for line in LINES])
def test_line_gives_what_the_sql_beside_it_gives(where: str, typed: str, ours: str, sql: str) -> None:
    if where != "SQL":
        ast.parse(typed)
    names: dict[str, Any] = {}
    (program,) = PROGRAM.findall(PAGE)
    exec(program, names)
    engine, sales, shops = names["engine"], names["sales"], names["shops"]
    assert isinstance(engine, tk.Engine)
    view = engine.install("ours", eval(ours, names))
    wanted = engine.sql(f"CREATE MATERIALIZED VIEW theirs AS {sql}").view
    assert wanted is not None
    for table, rows in ((sales, SALES), (shops, SHOPS)):
        table.insert(rows)
        assert same(view.rows(), wanted.rows())
    assert view.rows()
    sales.remove(SALES[1::3])
    shops.remove(SHOPS[:1])
    assert same(view.rows(), wanted.rows())
    assert view.schema.types == wanted.schema.types
