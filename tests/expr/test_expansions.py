"""Functions that mean different steps for different types: rounding, fields of dates, texts of dates."""

from __future__ import annotations

import datetime
import decimal
import math
from typing import Any

import pytest

import tektite as tk
from tektite import col
from tests.support.executors import make_engine

pytestmark = pytest.mark.executors

D = decimal.Decimal
x = col("x")


def value_of(expression: tk.Expr, type: tk.Type, value: Any) -> Any:
    engine = make_engine()
    rows = engine.create_table("rows", {"x": type})
    view = engine.install("found", rows.select(y=expression))
    rows.insert([(value,)])
    engine.advance()
    ((found,),) = view.rows()
    return found


CASES: list[tuple[tk.Expr, tk.Type, Any, Any]] = [
    (x.round(), tk.Float, 2.5, 3.0), (x.round(), tk.Float, -2.5, -3.0), (x.round(1), tk.Float, 0.25, 0.3),
    (x.round(-2), tk.Float, 1250.0, 1300.0), (x.round(), tk.Float, math.inf, math.inf), (x.round(400), tk.Float, 1.5, 1.5),
    (x.round(-400), tk.Float, 1.5, 0.0), (x.round(300), tk.Float, 1e300, 1e300), (x.round(), tk.Float, None, None),
    (x.round(1), tk.Decimal(3, 2), D("9.96"), D("10.0")), (x.round(), tk.Decimal(3, 2), D("-9.50"), D("-10")),
    (x.round(-1), tk.Decimal(4, 1), D("125.4"), D("130")), (x.round(-9), tk.Decimal(4, 1), D("125.4"), D("0")),
    (x.round(2), tk.Int, 15, 15), (x.round(-1), tk.Int, 15, 20), (x.round(-1), tk.Int, -15, -20), (x.round(-30), tk.Int, 15, 0),
    (x.floor(), tk.Float, -2.5, -3.0), (x.floor(), tk.Float, -math.inf, -math.inf),
    (x.floor(), tk.Decimal(3, 1), D("-2.5"), D("-3")),
    (x.ceil(), tk.Float, -2.5, -2.0), (x.ceil(), tk.Int, 7, 7),
    (x.trunc(), tk.Float, -2.5, -2.0), (x.trunc(), tk.Float, 2.5, 2.0),
    (x // 2, tk.Int, -3, -2), (x % 2, tk.Int, -3, 1), (tk.truncdiv(x, 2), tk.Int, -3, -1), (tk.truncmod(x, 2), tk.Int, -3, -1),
    (tk.truncdiv(x, -2), tk.Int, -3, 1), (tk.truncdiv(x, 0), tk.Int, 3, None), (tk.truncdiv(x, 2), tk.Int, None, None),
    (x.dt.week(), tk.Date, datetime.date(2024, 12, 30), 1), (x.dt.iso_year(), tk.Date, datetime.date(2024, 12, 30), 2025),
    (x.dt.week(), tk.Timestamp, datetime.datetime(2024, 2, 29, 13), 9), (x.dt.week(), tk.Date, None, None),
    (x.dt.strftime("%Y%%%j"), tk.Date, datetime.date(2024, 2, 29), "2024%060"), (x.dt.strftime("day"), tk.Date, None, None),
    (x + datetime.timedelta(days=-1), tk.Date, datetime.date(2024, 3, 1), datetime.date(2024, 2, 29)),
    (x - datetime.timedelta(seconds=1), tk.Timestamp, datetime.datetime(2024, 1, 1), datetime.datetime(2023, 12, 31, 23, 59, 59)),
    (x + "!", tk.String, "a", "a!"), ("<" + x + ">", tk.String, "a", "<a>"), (x + "!", tk.String, None, None),
    (x + None, tk.String, "a", None), (x**2, tk.Int, 3, 9.0), (2**x, tk.Int, 3, 8.0),
]  # fmt: skip


@pytest.mark.parametrize(("expression", "type", "value", "wanted"), CASES, ids=lambda value: str(value)[:40])
def test_value(expression: tk.Expr, type: tk.Type, value: Any, wanted: Any) -> None:
    found = value_of(expression, type, value)
    assert found == wanted and isinstance(found, wanted.__class__)


@pytest.mark.executors("stages")
def test_an_operation_is_one_in_expressions_that_are_printed() -> None:
    assert str(x.round(2)) == "x.round(2)" and str(tk.truncdiv(x, 2)) == "truncdiv(x, 2)"
    assert str(x.dt.week()) == "x.dt.part('week')" and str(x.dt.strftime("%Y")) == "x.dt.strftime('%Y')"
    assert str(x + datetime.timedelta(1)) == "(x + datetime.timedelta(days=1))"
    assert eval(str(x.round(1) + tk.lit(1)), {"x": x}).fingerprint == (x.round(1) + 1).fingerprint
    assert value_of(x.round(1).floor(), tk.Float, 2.25) == 2.0
