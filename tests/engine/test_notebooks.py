"""What notebooks show: tables of HTML, in which nothing from the data is markup."""

from __future__ import annotations

import json
import pickle
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
    assert cells(shown)[1:3] == [["shop", "string"], ["double", "int"]] and "read sales" in shown
    assert "read sales" in engine.sql("EXPLAIN SELECT * FROM sales")._repr_html_()


def test_plans_are_tables_with_loops_and_shared_parts() -> None:
    engine, table = filled()
    joined = table.join(table.select("shop", twice=tk.col("amount") * 2), on="shop")
    shown = joined.explain()._repr_html_()
    assert "read sales" in [row[0] for row in cells(shown)] and ["sales by (shop)", "shared, there already"] in cells(
        shown
    )
    engine.sql("CREATE TABLE edges (src int, dst int)")
    engine.sql(
        "CREATE MATERIALIZED VIEW reach AS WITH RECURSIVE r AS (SELECT src, dst FROM edges UNION "
        "SELECT r.src, e.dst FROM r JOIN edges e ON e.src = r.dst) SELECT * FROM r"
    )
    found = engine.view("reach").explain()
    assert "in the loop r" in found._repr_html_() and isinstance(found, str)
    operators = {each["id"]: each for each in found.data["operators"]}
    (variable,) = [each for each in operators.values() if each["kind"] == "Variable"]
    assert operators[variable["feedback"]]["loops"] == variable["loops"] == ["r"]
    assert all(given in operators for each in operators.values() for given in each["inputs"])
    assert pickle.loads(pickle.dumps(found)).data == json.loads(json.dumps(found.data))


def test_answers_of_datalog_and_profiles_are_tables() -> None:
    engine, table = filled()
    engine.datalog("large(s, a) :- sales(s, a), a > 4.")
    assert cells(engine.query("[:find ?a :where (large ?s ?a)]")._repr_html_())[1:] == [["5"]]
    with engine.profile() as profile:
        assert "complete at the end" in profile._repr_html_()
        table.insert([("south", 9)])
        engine.settle()
    shown = cells(profile._repr_html_())
    assert shown[0][0] == "milliseconds" and len(shown) == len(profile.operators) + 1


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


@pytest.mark.executors("stages")
def test_many_rows_are_cut() -> None:
    engine = make_engine(autocommit=True)
    table = engine.create_table("t", {"x": int})
    table.insert({"x": list(range(1000))})
    view = engine.create_view("v", table.filter(tk.col("x") >= 0))
    engine.settle()
    for each in (table, view):
        assert len(cells(each._repr_html_())) == 21 and "the first 20 rows" in each._repr_html_()
    assert "20 of 1000 rows" in engine.sql("SELECT * FROM t")._repr_html_()
