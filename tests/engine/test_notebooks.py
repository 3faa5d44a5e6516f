"""What notebooks show: tables of HTML, in which nothing from the data is markup."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from typing import Any

import pytest

import tektite as tk
from tests.support.executors import make_engine

pytestmark = pytest.mark.executors


def cells(shown: str) -> list[list[str]]:
    """The rows of the first table. Fails if the text is not well formed."""
    tree = ElementTree.fromstring(f"<div>{shown}</div>")
    return [["".join(cell.itertext()) for cell in row] for row in tree.iter("tr")]


def filled() -> tuple[tk.Engine, tk.Table]:
    engine = make_engine(autocommit=True)
    table = engine.create_table("sales", {"shop": str, "amount": int})
    table.insert([("<b>north</b>", 3), (None, 5)])
    return engine, table


def test_tables_views_and_results_are_tables() -> None:
    engine, table = filled()
    view = engine.create_view("large", table.filter(tk.col("amount") > 4))
    shown: list[Any] = [table, engine.sql("SELECT shop, amount FROM sales")]
    for each in shown:
        assert sorted(cells(each._repr_html_())[1:]) == [["<b>north</b>", "3"], ["NULL", "5"]]
    assert cells(view._repr_html_()) == [["shop", "amount"], ["NULL", "5"]]
    assert [row[0] for row in cells(engine._repr_html_())[1:]] == ["sales", "large"]


def test_queries_show_columns_and_plan() -> None:
    engine, table = filled()
    shown = table.select("shop", double=tk.col("amount") * 2)._repr_html_()
    assert cells(shown)[1:] == [["shop", "string"], ["double", "int"]] and "read sales" in shown
    assert "read sales" in engine.sql("EXPLAIN SELECT * FROM sales")._repr_html_()


def test_what_cannot_be_read_is_shown_all_the_same() -> None:
    engine, table = filled()
    numbers = engine.create_view("numbers", table.select(n=tk.col("shop").cast(int)))
    assert "numbers" in numbers._repr_html_()
    engine.drop_view("numbers")
    assert "dropped" in numbers._repr_html_()
    stream = engine.create_table("s", {"x": int}, mode="stream")
    assert "stream" in stream._repr_html_()
    engine.close()
    assert "closed" in engine._repr_html_()


@pytest.mark.executors("stages", "spark")
def test_many_rows_are_cut() -> None:
    engine = make_engine(autocommit=True)
    table = engine.create_table("t", {"x": int})
    table.insert({"x": list(range(1000))})
    view = engine.create_view("v", table.filter(tk.col("x") >= 0))
    engine.settle()
    for each in (table, view):
        assert len(cells(each._repr_html_())) == 21 and "the first 20 rows" in each._repr_html_()
    assert "20 of 1000 rows" in engine.sql("SELECT * FROM t")._repr_html_()
