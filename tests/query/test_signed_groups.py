"""Aggregates of collections in which rows occur a negative number of times."""

from __future__ import annotations

import pytest

import tektite as tk
from tests.support.executors import make_engine

pytestmark = pytest.mark.executors("stages", "spark")


def test_a_group_is_the_same_whichever_of_its_columns_are_read() -> None:
    with make_engine(autocommit=True) as engine:
        a, b = engine.create_table("a", {"x": tk.Int}), engine.create_table("b", {"x": tk.Int})
        both = a.concat(b.negate()).agg(total=tk.col("x").sum(), most=tk.col("x").max(), n=tk.count())
        views = [engine.install(name, both.select(name)) for name in ("total", "most", "n")]
        whole = engine.install("whole", both)
        for changed, rows in ((a, [(1,), (2,)]), (b, [(2,), (2,)]), (b, [(1,), (5,)]), (a, [(7,), (5,), (2,)])):
            changed.insert(rows)
            (row,) = whole.rows()
            assert [view.rows() for view in views] == [[(value,)] for value in row]
