"""What is wrong with an expression is said when it is compiled; what is wrong with a row, when it is met."""

from __future__ import annotations

import datetime
import decimal
from typing import Any

import pytest

from tektite.errors import IncorrectError, NotFoundError
from tektite.expr import Expr, coalesce, col, concat, lit, type_of, when
from tektite.values.types import Bool, Date, Decimal, Float, Int, String, Timestamp
from tests.support.expression_twin import Rows, TextDictionary

SCHEMA = {
    "i": Int,
    "x": Float,
    "p": Decimal(15, 2),
    "b": Bool,
    "s": String,
    "d": Date,
    "t": Timestamp,
    "w": Decimal(18, 10),
}
COLUMNS = {name: (at, type) for at, (name, type) in enumerate(SCHEMA.items())}
i, x, p, b, s, d, t, w = map(col, SCHEMA)
MAX = 2**63 - 1


@pytest.mark.parametrize(
    ("expr", "message"),
    [
        (i + s, r"i \+ s: add needs two numbers, found column i of type int and column s of type string"),
        (b * 2, r"b \* 2: mul needs two numbers, found column b of type bool and 2 of type int"),
        (d + t, "can only be subtracted, or moved by an Int"),
        (
            d * 2,
            "can only be subtracted, or moved by an Int or an interval, found column d of type date and 2 of type int",
        ),
        (i - d, "can only be subtracted"),
        (-s, "unary minus needs a number"),
        (s.abs(), "abs needs a number, found column s of type string"),
        (i == s, "i == s: these two cannot be compared, found column i of type int and column s of type string"),
        (b > i, "cannot be compared"),
        (d == 3, "cannot be compared, found column d of type date and 3 of type int"),
        (d == s, "cannot be compared"),
        (d > "yesterday", "'yesterday'|cannot be compared"),
        (i.isin(["a"]), "cannot be compared"),
        (i & b, r"and needs Bool operands \(comparisons need parentheses"),
        (~i, "not needs Bool operands"),
        (when(i, 1).otherwise(2), "the condition i is of type int, not bool"),
        (when(b, 1).otherwise("x"), "int and string have no common type"),
        (coalesce(d, 1), "date and int have no common type"),
        (w * w, "the product has 20 digits behind the point, at most 18 fit"),
        (i.lower(), "lower needs string, found column i of type int"),
        (s.substring("a", 1), "substring needs string, int, int"),
        (i.like("a%"), "like needs string"),
        (i.year(), "year needs a date or a timestamp"),
        (d.hour(), "hour needs a timestamp or a time, found column d of type date"),
        (d.add_days(x), "add_days needs an Int"),
        (d.add_months("1"), "add_months needs an Int"),
        (d.truncate("hour"), "a date has no 'hour'"),
        (t.truncate("fortnight"), "a timestamp has no 'fortnight'; write a number too, .* or one of year, quarter"),
        (x.bit_and(1), "bit_and needs integers"),
        (i.cast(Date), "there is no cast to date, found column i of type int"),
        (t.cast(Int), "there is no cast to int"),
    ],
)
def test_a_type_mismatch_names_the_expression_the_column_and_the_types(expr: Expr, message: str) -> None:
    with pytest.raises(IncorrectError, match=message) as caught:
        type_of(expr, COLUMNS)
    assert str(expr) in str(caught.value)


def test_an_unknown_column_lists_the_known_ones() -> None:
    with pytest.raises(NotFoundError, match="column 'z' does not exist; the columns are: i, x, p"):
        type_of(col("z") + 1, COLUMNS)


def test_a_filter_must_be_a_bool() -> None:
    with pytest.raises(IncorrectError, match=r"the filter i \+ 1 is of type int, not bool"):
        rows((1,)).compile([i], i + 1)


def rows(*values: tuple[Any, ...]) -> Rows:
    """Rows of which only the first columns matter."""
    return Rows(SCHEMA, [value + (None,) * (len(SCHEMA) - len(value)) for value in values], TextDictionary())


@pytest.mark.parametrize(
    ("expr", "row", "message"),
    [
        (i + 1, (MAX,), rf"i \+ 1: overflow of int in row 1, found {MAX} and 1"),
        (i * i, (2**32,), "overflow of int in row 1"),
        (-i - 2, (MAX,), r"-i - 2: overflow of int in row 1, found -9223372036854775807 and 2"),
        (i.bit_xor(-(2**63) + 1), (1,), "result out of range in row 1, found 1 and -9223372036854775807"),
        (i.bit_and(-2), (-MAX,), "result out of range in row 1"),
        (i.bit_not(), (MAX,), "result out of range in row 1"),
        (i.shift_left(62), (2,), "overflow, or a negative shift in row 1, found 2 and 62"),
        (i.shift_left(70), (1,), "overflow"),
        (i.shift_right(i), (-1,), "negative shift"),
        (x.cast(Int), (0, 1e19), "value out of range of int in row 1, found 1e[+]19"),
        (x.cast(Int), (0, float("nan")), "value out of range of int in row 1, found nan"),
        (x.cast(Decimal(4, 2)), (0, 100.0), r"value out of range of decimal\(4, 2\)"),
        (p.cast(Decimal(4, 2)), (0, 0.0, decimal.Decimal("100.00")),
         r"overflow of decimal\(4, 2\) in row 1, found 100.00"),
        (p * p, (0, 0.0, decimal.Decimal("9999999999999.99")), r"overflow of decimal\(18, 4\) in row 1"),
        (i + p, (10**17, 0.0, decimal.Decimal("1.00")), r"overflow of decimal\(18, 2\)"),
        (s.cast(Int), (0, 0.0, None, None, "one"), r"s.cast\(int\): text .*: int in row 1, found 'one'"),
        (s.cast(Date), (0, 0.0, None, None, "2021-02-29"), "date in row 1, found '2021-02-29'"),
        (d + i, (2**31, 0.0, None, None, None, datetime.date(2020, 1, 1)), "overflow of date in row 1"),
        (d.add_months(i), (2**40, 0.0, None, None, None, datetime.date(2020, 1, 1)), "date out of range in row 1"),
    ],
)  # fmt: skip
def test_a_row_that_fails_is_named_with_what_was_found(expr: Expr, row: tuple[Any, ...], message: str) -> None:
    source = rows((0, 0.0), row)
    with pytest.raises(IncorrectError, match=message):
        source.values(expr)


def test_rows_that_are_filtered_out_cannot_fail() -> None:
    source = rows((MAX,), (3,), (MAX,))
    assert source.run([i + 1], i < 10) == [(4, 1, 1)]


def test_the_failing_row_is_numbered_before_the_filter() -> None:
    source = rows((1,), (2,), (MAX,), (MAX,))
    with pytest.raises(IncorrectError, match="in row 2"):
        source.run([i + 1], i > 1)
    with pytest.raises(IncorrectError, match="in row 2"):
        source.run([i], i + 1 > 1)


def test_the_first_failing_row_wins_over_the_first_failing_step() -> None:
    source = rows((1,), (2,), (2**62,), (MAX,))
    with pytest.raises(IncorrectError, match=r"i \* 2: overflow of int in row 2"):
        source.run([i + 1, i * 2])


def test_the_row_is_found_in_later_blocks() -> None:
    source = rows(*[(0,)] * 3000, (MAX,), *[(0,)] * 10)
    with pytest.raises(IncorrectError, match="in row 3000, found"):
        source.values(i + 1)


def test_a_branch_that_is_not_taken_cannot_fail() -> None:
    source = rows((3,), (MAX,), (None,))
    assert source.values(when(i < 100, i * i).otherwise(0)) == [9, 0, 0]
    assert source.values(when(i > 100, 0).otherwise(i * i)) == [9, 0, None]
    assert source.values(when(i > 100, 0).when(i < 0, 1).otherwise(i + 1)) == [4, 0, None]
    assert source.values(coalesce(when(i > 100, 0), i * i, -1)) == [9, 0, -1]
    nested = when(i < 100, when(i < 10, i * i).otherwise(i + 1)).otherwise(-1)
    assert source.values(nested) == [9, -1, -1]
    with pytest.raises(IncorrectError, match="in row 1"):
        source.values(when(i < 100, 0).otherwise(i * i))


def test_text_that_is_not_reached_need_not_parse() -> None:
    source = rows((0, 0.0, None, None, "12"), (1, 0.0, None, None, "x"))
    assert source.values(when(i == 0, s.cast(Int)).otherwise(-1)) == [12, -1]
    assert source.values(s.try_cast(Int)) == [12, None]
    assert source.run([s.cast(Int)], i == 0) == [(12, 0, 1)]


def test_a_constant_that_fails_does_so_only_for_a_row() -> None:
    overflow = lit(MAX) + 1
    assert rows().values(overflow) == []
    assert rows((1,)).values(when(i == 0, overflow).otherwise(5)) == [5]
    with pytest.raises(IncorrectError, match=rf"{MAX} \+ 1: overflow of int in row 0"):
        rows((1,)).values(overflow)


def test_nulls_never_fail() -> None:
    source = rows((None,))
    for expr in (i + MAX, i * i, x.cast(Int), s.cast(Int), d + i, i.shift_left(-1), d.add_months(1), concat(s, "a")):
        assert source.values(expr) == [None]
