"""Expressions as values: they print, compare, travel and refuse to be a truth value."""

from __future__ import annotations

import datetime
import decimal
import pickle
from typing import Any

import numpy as np
import pytest

from tektite.errors import IncorrectError
from tektite.expr import Expr, coalesce, col, concat, greatest, hash64, least, lit, type_of, when
from tektite.values.types import Bool, Date, Decimal, Float, Int, String, Timestamp

a, b, s = col("a"), col("b"), col("s")


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (a + b * 2, "a + b * 2"),
        ((a + b) * 2, "(a + b) * 2"),
        (a - (b - 1), "a - (b - 1)"),
        (1 - a // b % 3, "1 - a // b % 3"),
        (-(a + 1), "-(a + 1)"),
        ((a < b) & ~(a == 1) | (b >= 2), "(a < b) & ~(a == 1) | (b >= 2)"),
        ((a < 1) == (b < 1), "(a < 1) == (b < 1)"),
        (a.is_null(), "a.is_null()"),
        ((a + 1).cast(Float), "(a + 1).cast(float)"),
        (a.isin([1, 2]), "a.isin([1, 2])"),
        (s.like("a%"), "s.like('a%')"),
        (s.substring(1, 2).lower(), "s.substring(1, 2).lower()"),
        (concat(s, "x", s), "concat(s, 'x', s)"),
        (coalesce(a, 0), "coalesce(a, 0)"),
        (when(a > 0, 1).when(a < 0, -1).otherwise(None), "when(a > 0).then(1).when(a < 0).then(-1).otherwise(None)"),
        (a.between(1, 2), "(a >= 1) & (a <= 2)"),
        (lit(datetime.date(2020, 1, 2)), "'2020-01-02'"),
        (lit(decimal.Decimal("1.50")), "'1.50'"),
        (abs(a), "a.abs()"),
    ],
)
def test_an_expression_prints_as_it_is_written(expr: Expr, text: str) -> None:
    assert str(expr) == text
    assert repr(expr) == f"<Expr {text}>"


@pytest.mark.parametrize(
    "expr", [(a < 1) | (b < 1) & ~(a == b), 1 - (a - (b - 2)) * 3, -(a * 2), (a.is_null() == (b > -1)), -a % 2]
)
def test_what_is_printed_reads_back_as_the_same(expr: Expr) -> None:
    assert eval(str(expr), {"a": a, "b": b}).fingerprint == expr.fingerprint


@pytest.mark.parametrize(
    "use", [lambda: bool(a), lambda: a < 1 and b < 1, lambda: 1 < a < 3, lambda: not a, lambda: a in [b]]
)
def test_an_expression_has_no_truth_and_says_what_to_write_instead(use: Any) -> None:
    with pytest.raises(IncorrectError, match="Write & | ~ instead of and, or, not"):
        use()


def test_fingerprints_tell_structure_and_types_apart() -> None:
    same = [(a + 1) * b, (a + 1) * b]
    assert same[0].fingerprint == same[1].fingerprint and hash(same[0]) == hash(same[1])
    others = [lit(1), lit(1.0), lit(True), lit("1"), lit(decimal.Decimal(1)), lit(0.0), lit(-0.0), lit(1, Float),
              lit(None), lit(None, Int), a, a + b, b + a, a - b, a.cast(Int), a.cast(Decimal(3, 1)),
              a.cast(Decimal(4, 1))]  # fmt: skip
    fingerprints = {expr.fingerprint for expr in others}
    assert len(fingerprints) == len(others) - 1  # 1 as a Float is 1.0


def test_expressions_are_immutable() -> None:
    with pytest.raises(AttributeError, match="immutable"):
        a.op = "lit"
    with pytest.raises(AttributeError, match="immutable"):
        del a.args


def test_expressions_travel_by_pickle() -> None:
    for expr in (when(a > 1, decimal.Decimal("1.5")), s.like("x%").is_null(), hash64(a, b)):
        copy = pickle.loads(pickle.dumps(expr))
        assert copy.fingerprint == expr.fingerprint and type(copy) is type(expr)


def test_columns_and_substitution() -> None:
    expr = when(a > 1, b).otherwise(a + col("c"))
    assert expr.columns() == ["a", "b", "c"]
    assert str(expr.substitute({"a": b * 2})) == "when(b * 2 > 1).then(b).otherwise(b * 2 + c)"


@pytest.mark.parametrize(
    ("value", "type"),
    [
        (1, Int), (1.5, Float), (True, Bool), ("x", String), (decimal.Decimal("1.50"), Decimal(3, 2)),
        (decimal.Decimal("0.001"), Decimal(3, 3)), (decimal.Decimal("1e3"), Decimal(4, 0)),
        (datetime.date(2020, 1, 1), Date),
        (datetime.datetime(2020, 1, 1), Timestamp), (None, Int), (np.int64(3), Int),
        (np.float64(3), Float), (np.bool_(True), Bool),
        (np.str_("x"), String),
    ],
)  # fmt: skip
def test_python_scalars_become_literals(value: Any, type: Any) -> None:
    assert type_of(lit(value), {}) == type


def test_a_literal_can_be_given_a_type() -> None:
    assert lit("1995-03-15", Date).params[1] == datetime.date(1995, 3, 15)
    assert lit("2020-01-01T10:00:00+02:00", Timestamp).params[1] == datetime.datetime(2020, 1, 1, 10)
    assert lit(3, Decimal(5, 2)).params[1] == 3
    assert lit(datetime.date(2020, 1, 1), Timestamp).params[1] == datetime.datetime(2020, 1, 1)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: lit(2**63), "integer literal 9223372036854775808: an int lies between"),
        (lambda: lit(-(2**63)), "an int lies between"),
        (lambda: lit(decimal.Decimal(10) ** 38), "39 digits; at most 38 fit"),
        (lambda: lit(decimal.Decimal("NaN")), "only finite decimals"),
        (lambda: lit("yesterday", Date), "literal 'yesterday' is not a valid date"),
        (lambda: lit(1.5, Int), "literal 1.5 is a float, not a int"),
        (lambda: lit(decimal.Decimal("1.234"), Decimal(5, 2)), r"literal 1.234 does not fit decimal\(5, 2\)"),
        (lambda: lit(1000, Decimal(3, 1)), "does not fit"),
        (lambda: lit("\ud800"), "not valid Unicode"),
    ],
)
def test_a_literal_that_is_no_value_is_incorrect(build: Any, message: str) -> None:
    with pytest.raises(IncorrectError, match=message):
        build()


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: a + {1}, r"cannot use \{1\} of type set"),
        (lambda: a == [1, "x"], "a list has elements of one type"),
        (lambda: a.isin(3), "takes a list of values .*, not 3"),
        (lambda: s.isin("abc"), "takes a list of values .*, not 'abc'"),
        (lambda: a.cast(list), "expected a type such as tk.Int"),
        (lambda: s.like(a), "the pattern of LIKE is a string"),
        (lambda: s.like("a", "ab"), "the escape of LIKE is one character"),
        (lambda: col(1), "a column is named by a string"),
        (lambda: coalesce(), "at least 1"),
        (lambda: least(), "at least 1"),
        (lambda: greatest(), "at least 1"),
        (lambda: concat(), "at least 1"),
    ],
)
def test_what_cannot_be_built_is_refused(build: Any, message: str) -> None:
    with pytest.raises(IncorrectError, match=message):
        build()
