"""`1 month` and `30 days` are equal: a group, and a distinct row, shows one that it has."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest

import tektite as tk
from tektite import Collection, col
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


MONTH, DAYS, HOURS = (
    tk.IntervalValue(months=1),
    tk.IntervalValue(days=30),
    tk.IntervalValue(microseconds=2592 * 10**9),
)


def parts(value: tk.IntervalValue) -> tuple[int, int, int]:
    return value.months, value.days, value.microseconds


REDUCED: dict[str, Callable[[Collection, Collection], Collection]] = {
    "distinct": lambda spans, _: spans.select("span").distinct(),
    "distinct in a loop": lambda spans, _: spans.select("span").iterate(lambda x: x.distinct()),
    "union in a loop": lambda spans, _: spans.select("span").iterate(lambda x: x.concat(spans.select("span")).unique()),
    "threshold": lambda spans, _: spans.select("span").threshold(2),
    "threshold in a loop": lambda spans, _: spans.select("span").iterate(lambda x: x.threshold(2).concat(x).distinct()),
    "intersect all": lambda spans, some: spans.select("span").intersect(some, distinct=False),
    "except all": lambda spans, some: spans.select("span").except_(some, distinct=False),
    "max": lambda spans, _: spans.max("n", by="span").select("span"),
    "min": lambda spans, _: spans.min("n", by="span").select("span"),
    "a function": lambda spans, _: spans.reduce(lambda _, rows: [(len(rows),)], by="span", k=int).select("span"),
}


@pytest.mark.parametrize("case", REDUCED)
def test_every_reduction_shows_one_that_is_there(case: str) -> None:
    engine = make_engine(autocommit=True)
    spans = engine.create_table("spans", {"n": int, "span": timedelta})
    some = engine.create_table("some", {"span": timedelta})
    view = engine.create_view("v", REDUCED[case](spans, some))
    some.insert([(DAYS,)])
    spans.insert([(1, DAYS), (2, DAYS)])
    assert [parts(span) for (span,) in view.rows()] == [parts(DAYS)]
    more = spans.insert([(0, MONTH), (3, HOURS)])
    least = {parts(span) for (span,) in view.rows(at=more)}
    assert len(least) == 1 and least < {*map(parts, (MONTH, DAYS, HOURS))}
    spans.remove([(0, MONTH), (3, HOURS)])
    assert [parts(span) for (span,) in view.rows()] == [parts(DAYS)]


def test_a_key_whose_values_are_all_null_has_no_greatest_value() -> None:
    spans = make_engine().values(
        {"n": [None, 1], "span": [MONTH, tk.IntervalValue(days=31)]}, {"n": int, "span": timedelta}
    )
    assert spans.max("n", by="span").collect().num_rows == 1


def test_a_recursive_query_computes_with_the_intervals_that_it_found_first() -> None:
    engine = make_engine(autocommit=True)
    steps = engine.create_table("steps", {"span": timedelta})
    dates = engine.create_view(
        "dates",
        """WITH RECURSIVE r(at, span) AS (
             SELECT TIMESTAMP '2024-01-31', span FROM steps UNION SELECT at + span, span FROM r WHERE at < '2024-04-01')
           SELECT at, span FROM r ORDER BY at""",
    )
    steps.insert([(DAYS,)])
    assert [(at.month, at.day, parts(span)) for at, span in dates.rows()] == [
        (1, 31, parts(DAYS)), (3, 1, parts(DAYS)), (3, 31, parts(DAYS)), (4, 30, parts(DAYS)),
    ]  # fmt: skip
    steps.remove([(DAYS,)])
    steps.insert([(MONTH,)])
    assert [(at.month, at.day, parts(span)) for at, span in dates.rows()] == [
        (1, 31, parts(MONTH)), (2, 29, parts(MONTH)), (3, 29, parts(MONTH)), (4, 29, parts(MONTH)),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "step", ["span + INTERVAL '1 month' - INTERVAL '30 days'", "span - INTERVAL '1 month' + INTERVAL '30 days'"]
)
def test_a_recursion_ends_though_each_round_finds_an_equal_interval(step: str) -> None:
    engine = make_engine(autocommit=True)
    steps = engine.create_table("steps", {"span": timedelta})
    found = engine.create_view(
        "found", f"WITH RECURSIVE r(span) AS (SELECT span FROM steps UNION SELECT {step} FROM r) SELECT span FROM r"
    )
    steps.insert([(DAYS,)])
    assert [parts(span) for (span,) in found.rows()] == [parts(DAYS)]
