"""Queries that programs build by a loop: hundreds of steps are planned, and more are refused with what to do."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import tektite as tk

STEPS: dict[str, Callable[[tk.Collection, tk.Table, int], tk.Collection]] = {
    "filter": lambda query, table, at: query.filter(tk.col("x") > -at),
    "select": lambda query, table, at: query.with_columns(x=tk.col("x") + 1),
    "distinct": lambda query, table, at: query.select("x", "y").distinct(),
    "union": lambda query, table, at: query.concat(table),
    "join": lambda query, table, at: query.join(table, on="x").select("x", "y"),
    "group": lambda query, table, at: query.group_by("x").agg(y=tk.sum("y")),
}


def built(engine: tk.Engine, name: str, steps: int) -> tk.Collection:
    table = engine.create_table("t", {"x": int, "y": int})
    table.insert([(1, 2), (3, 4)])
    query: tk.Collection = table
    for at in range(steps):
        query = STEPS[name](query, table, at)
    return query


@pytest.mark.parametrize("name", STEPS)
def test_a_hundred_steps_are_planned(name: str) -> None:
    with tk.Engine() as engine:
        query = built(engine, name, 100)
        view = engine.create_view("deep", query)
        assert query.explain()
        assert sorted(view.rows()) == sorted(map(tuple, (row.values() for row in query.collect().to_pylist())))
        assert view.rows()


@pytest.mark.parametrize("name", ["union", "group"])
def test_too_many_are_refused_with_what_to_do(name: str) -> None:
    with tk.Engine() as engine:
        query = built(engine, name, 3000)
        for use in (query.collect, query.explain, lambda: engine.create_view("deep", query)):
            with pytest.raises(tk.UnsupportedError, match="nested too deeply.*Make a view of a part of it"):
                use()
        assert "deep" not in engine.views
        assert sorted(engine.sql("SELECT x + y FROM t").rows()) == [(3,), (7,)]
