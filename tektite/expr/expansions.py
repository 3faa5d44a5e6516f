"""Functions that mean different steps for operands of different types: rounding, fields of dates, texts of dates.

Each is one operation in an expression, so that plans name it and queries share it. Typing replaces it by what
`number_functions` and `date_functions` write for the operand's type.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import TYPE_CHECKING

from tektite.errors import IncorrectError
from tektite.expr import date_functions, interned_functions, number_functions
from tektite.expr.ast import Expr, lit
from tektite.expr.interval_parts import IntervalParts, interval_field
from tektite.expr.literals import Untyped
from tektite.expr.steps import Step, number, word
from tektite.kernels.expr import steps as ops
from tektite.values.types import Date, Int, Interval, Time, Timestamp, TimestampTz, Type

if TYPE_CHECKING:
    from tektite.expr.typing import Resolver

NUMBERS: dict[str, Callable[..., Expr]] = {
    "round": number_functions.rounded,
    "floor": number_functions.floor,
    "ceil": number_functions.ceiling,
    "trunc": number_functions.truncated,
}
DIVISIONS: dict[str, Callable[[Expr, Expr], Expr]] = {
    "truncdiv": number_functions.quotient,
    "truncmod": number_functions.remainder,
}
MOMENTS: dict[str, Callable[..., Expr]] = {
    "date_part": date_functions.field,
    "strftime": date_functions.formatted,
    "move": date_functions.moved,
}


def of_number(resolver: Resolver, expr: Expr, value: Step) -> Step:
    """A function of one number."""
    if not number(value.type) and value.type != Untyped:
        raise resolver.wrong(expr, f"{expr.op} needs a number", value)
    kind: Type = Int if value.type == Untyped else value.type
    return resolver.step(NUMBERS[expr.op](expr.args[0], kind, *expr.params))


def division(resolver: Resolver, expr: Expr, left: Step, right: Step) -> Step:
    """A division that rounds towards zero, or what it leaves."""
    for value in (left, right):
        if not number(value.type) and value.type != Untyped:
            raise resolver.wrong(expr, f"{expr.op} needs two numbers", left, right)
    return resolver.step(DIVISIONS[expr.op](*expr.args))


def of_moment(resolver: Resolver, expr: Expr, value: Step) -> Step:
    """A function of a date or a timestamp. An interval has fields, and more can be added to it."""
    if value.type == Interval and expr.op == "move":
        return resolver.step(expr.args[0] + lit(datetime.timedelta(microseconds=expr.params[0])))
    if value.type == Interval and expr.op == "date_part":
        found = interval_field(interned_functions.interval_parts(resolver, expr.args[0]), expr.params[0])
        if found is None:
            raise resolver.wrong(expr, f"an interval has no {expr.params[0]}", value)
        return resolver.step(found)
    if value.type not in (Date, Timestamp, TimestampTz, Time, Untyped):
        wanted = "adding a timedelta" if expr.op == "move" else expr.op
        raise resolver.wrong(expr, f"{wanted} needs a date or a timestamp", value)
    if expr.op == "move" and value.type == Date and expr.params[0] % date_functions.DAY:
        raise resolver.wrong(expr, "a date moves by whole days; cast it to Timestamp first", value)
    if value.type == Time:
        return _of_time(resolver, expr, value)
    kind = Timestamp if value.type == Untyped else value.type
    given = expr.args[0].cast(Timestamp) if value.type == Untyped else expr.args[0]
    return resolver.step(MOMENTS[expr.op](given, kind, *expr.params))


def of_length(resolver: Resolver, expr: Expr, value: Step) -> Step:
    """The length of an interval in a unit: whole ones, or with what is left as a fraction."""
    unit, fractional = expr.params
    length = interned_functions.known_length(resolver, expr.args[0])
    if length is None and value.type not in (Interval, Untyped):
        raise resolver.wrong(
            expr, "a length of time is that of an interval, such as the difference of two timestamps", value
        )
    length = IntervalParts.of(expr.args[0]).length() if length is None else length
    return resolver.step(length / unit if fractional else Expr("truncdiv", (length, lit(unit))))


def of_bucket(resolver: Resolver, expr: Expr, value: Step, *origin: Step) -> Step:
    """The start of the stretch of time that a moment lies in."""
    if value.type not in (Date, Timestamp, TimestampTz, Untyped):
        raise resolver.wrong(expr, "the start of a stretch of time needs a date or a timestamp", value)
    kind = Timestamp if value.type == Untyped else value.type
    given = expr.args[0].cast(Timestamp) if value.type == Untyped else expr.args[0]
    return resolver.step(date_functions.bucket(given, kind, expr.params[0], *expr.args[1:]))


def _of_time(resolver: Resolver, expr: Expr, value: Step) -> Step:
    """A function of a time of day, which is the same of that time on the first day; moving goes round the clock."""
    if expr.op == "date_part" and expr.params[0] in date_functions.FIELDS:
        raise resolver.wrong(expr, f"a time has no {expr.params[0]}", value)
    moment = Expr("reinterpret", expr.args, (Timestamp,))
    found = resolver.step(MOMENTS[expr.op](moment, Timestamp, *expr.params))
    return Step(ops.MOD, Time, (found, word(date_functions.DAY)), 0, expr) if expr.op == "move" else found


def of_alias(resolver: Resolver, expr: Expr, value: Step) -> Step:
    """A value under another name."""
    return value


def of_rows(resolver: Resolver, expr: Expr, *values: Step) -> Step:
    """Refuses what is computed of several rows."""
    if expr.op == "filter":
        raise IncorrectError(
            f"{expr}: filter chooses the rows of an aggregate, as in {expr}.sum(); of a column, use when"
        )
    if expr.op == "now":
        raise IncorrectError(
            "now() belongs into select, with_columns, filter or group_by; compute it there as a column"
        )
    if expr.op == "unique":
        raise IncorrectError(
            f"{expr}: unique chooses the values of an aggregate, as in {expr}.sum(); for rows, use Collection.unique(...)"
        )
    if expr.op == "over":
        raise IncorrectError(
            f"{expr}: a window function belongs into select, with_columns or filter; compute it there as a column of its own"
        )
    if expr.op == "window":
        raise IncorrectError(f"{expr}: a window function needs its window: {expr}.over(..., order_by=...)")
    raise IncorrectError(
        f"{expr}: an aggregate has no value for a single row. Put it into agg(...), or say {expr}.over(...) to have it "
        "in every row"
    )
