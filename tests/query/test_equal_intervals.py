"""`1 month` and `30 days` are equal: a group, and a distinct row, shows one that it has."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

import tektite as tk
from tektite import col
from tests.support.executors import make_engine

pytestmark = pytest.mark.executors("stages")


def test_a_group_of_differences_shows_one_that_is_there() -> None:
    engine = make_engine(autocommit=True)
    stays = engine.create_table("stays", {"guest": str, "came": datetime, "went": datetime})
    length = stays.select("guest", length=col("went") - col("came"))
    views = [
        engine.create_view("groups", length.group_by("length").count("n")),
        engine.create_view("named", stays.group_by(length=col("went") - col("came")).agg(n=tk.count())),
        engine.create_view("rows", length.select("length").distinct()),
        engine.create_view("unique", length.select("length").unique("length")),
    ]
    stays.insert(
        [("ann", datetime(2024, 1, 1), datetime(2024, 1, 31)), ("bob", datetime(2024, 3, 1), datetime(2024, 3, 31))]
    )
    days = tk.IntervalValue(days=30)
    assert [view.rows() for view in views] == [[(days, 2)], [(days, 2)], [(days,)], [(days,)]]
    assert all(view.rows()[0][0].days == 30 for view in views)
    assert engine.create_view("sql", "SELECT went - came AS length, count(*) AS n FROM stays GROUP BY 1").rows() == [
        (days, 2)
    ]
    stays.remove([("ann", datetime(2024, 1, 1), datetime(2024, 1, 31))])
    assert views[0].rows() == [(days, 1)] and views[2].rows()[0][0].days == 30


def test_of_equal_ones_the_least_is_shown_while_it_is_there() -> None:
    engine = make_engine(autocommit=True)
    spans = engine.create_table("spans", {"span": timedelta})
    group = engine.create_view("g", spans.group_by("span").count("n"))
    month, days = tk.IntervalValue(months=1), tk.IntervalValue(days=30)
    spans.insert([(month,), (days,)])
    first = group.rows()[0][0]
    spans.remove([(first,)])
    (left, n), *more = group.rows()
    assert n == 1 and not more and (left.months, left.days) != (first.months, first.days)
