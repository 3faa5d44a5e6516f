"""Typing of casts and of functions of text, dates, timestamps and bits. See `tektite.expr.typing` for the rules."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from tektite.errors import IncorrectError
from tektite.expr import interned_functions, scalar_library
from tektite.expr.ast import Expr
from tektite.expr.like import PATTERNS
from tektite.expr.literals import DAY, MAX_DAYS, MAX_INT, Untyped, literal_word, show_word
from tektite.expr.steps import CONSTANT, Step, limit_of, number, word
from tektite.kernels.expr import steps as ops
from tektite.values.types import (
    Bool,
    Date,
    DecimalType,
    Float,
    Int,
    String,
    Time,
    Timestamp,
    TimestampTz,
    Type,
)
from tektite.values.words import NULL

if TYPE_CHECKING:
    from tektite.expr.typing import Resolver

BIT_OPS = {
    "bit_and": ops.BIT_AND, "bit_or": ops.BIT_OR, "bit_xor": ops.BIT_XOR,
    "shift_left": ops.SHIFT_LEFT, "shift_right": ops.SHIFT_RIGHT,
}  # fmt: skip
TEXT_FUNCTIONS: dict[str, tuple[tuple[Type, ...], Type]] = {
    "length": ((String,), Int),
    "lower": ((String,), String),
    "upper": ((String,), String),
    "strip": ((String,), String),
    "lstrip": ((String,), String),
    "rstrip": ((String,), String),
    "substring": ((String, Int, Int), String),
    "startswith": ((String, String), Bool),
    "endswith": ((String, String), Bool),
    "contains": ((String, String), Bool),
    "like": ((String,), Bool),
    "ilike": ((String,), Bool),
    "replace": ((String, String, String), String),
    "position": ((String, String), Int),
    "lpad": ((String, Int, String), String),
    "rpad": ((String, Int, String), String),
    "matches": ((String,), Bool),
    "regexp_extract": ((String,), String),
    "regexp_replace": ((String,), String),
    "like_text": ((String, String), Bool),
    "reverse": ((String,), String),
    "repeat": ((String, Int), String),
    "split_part": ((String, String, Int), String),
}


# -- casts -------------------------------------------------------------------------------------------------------------


def cast(resolver: Resolver, expr: Expr, value: Step) -> Step:
    """Conversion to another type."""
    target: Type = expr.params[0]
    source = value.type
    if source == target:
        return value
    if source == Untyped:
        return word(NULL, target)
    if source.kind in ("json", "list", "struct") or target.kind in ("json", "list", "struct"):
        special = interned_functions.cast(resolver, expr, value)
        if special is not None:
            return special
    if target == String:
        if value.op == CONSTANT and not source.interned:
            return Step(CONSTANT, String, (), NULL if value.extra == NULL else show_word(value.extra, source), expr)
        return resolver.text("show", expr, String, (value,), (source,))
    if source == String:
        parsed = resolver.text("parse", expr, target, (value,), (target,))
        return parsed if expr.op == "try_cast" else Step(ops.CHECK_PARSED, target, (parsed, value), 0, expr)
    if source in (Timestamp, TimestampTz) and target in (Timestamp, TimestampTz):
        return retyped(value, target)
    if source in (Timestamp, TimestampTz) and target == Time:
        return Step(ops.MOD, Time, (value, word(DAY)), 0, expr)
    if source in (Date, Timestamp, TimestampTz) and target in (Date, Timestamp, TimestampTz):
        if source == Date:
            return Step(ops.MUL, target, (value, word(DAY)), MAX_INT, expr)
        return Step(ops.FLOORDIV, Date, (value, word(DAY)), 0, expr)
    if source == Bool and number(target):
        return cast(resolver, expr, Step(value.op, Int, value.args, value.extra, value.source))
    if number(source) and target == Bool:
        return Step(ops.NE, Bool, (resolver.key(value), word(0)), 0, expr)
    if number(source) and number(target):
        if source.interned or target.interned:
            return interned_functions.cast_decimal(resolver, expr, value)
        return _cast_number(resolver, expr, value, target)
    special = interned_functions.cast(resolver, expr, value)
    if special is not None:
        return special
    raise resolver.wrong(expr, f"there is no cast to {target}", value)


def retyped(value: Step, type: Type) -> Step:
    """The same words, read as another type."""
    return Step(value.op, type, value.args, value.extra, value.source)


def _cast_number(resolver: Resolver, expr: Expr, value: Step, target: Type) -> Step:
    """Conversion between Int, Float and Decimal."""
    if target == Float:
        return resolver.floats(value)
    scale = target.scale if isinstance(target, DecimalType) else 0
    limit = limit_of(target)
    if value.type == Float:
        factor = word(literal_word(float(10**scale), Float), Float)
        if target == Int:  # halves become even
            return Step(ops.FLOAT_TO_INT, target, (value, factor), limit, expr)
        return Step(ops.FLOAT_TO_INT, target, (_away_from_zero(value, factor), _float(1.0)), limit, expr)
    by = scale - (value.type.scale if isinstance(value.type, DecimalType) else 0)
    if by < 0:
        value = Step(ops.ROUND_DIV, value.type, (value, word(10**-by)), 0, expr)
        by = 0
    if target == Int:
        return Step(value.op, Int, value.args, value.extra, expr)
    return Step(ops.MUL, target, (value, word(10**by)), limit, expr)


def _float(number: float) -> Step:
    return word(literal_word(number, Float), Float)


def _away_from_zero(value: Step, factor: Step) -> Step:
    """A float times a factor, as the nearest whole float; halves away from zero, as decimals are rounded."""
    scaled = Step(ops.FMUL, Float, (value, factor), 0, value.source)
    base = Step(ops.FFLOORDIV, Float, (scaled, _float(1.0)), 0, value.source)
    rest = Step(ops.FSUB, Float, (scaled, base), 0, value.source)
    half = _float(0.5)
    positive = Step(ops.LT, Bool, (_float(0.0), scaled), 0, value.source)
    halfway = Step(ops.AND, Bool, (Step(ops.EQ, Bool, (rest, half), 0, value.source), positive), 0, value.source)
    up = Step(ops.OR, Bool, (Step(ops.LT, Bool, (half, rest), 0, value.source), halfway), 0, value.source)
    more = Step(ops.FADD, Float, (base, _float(1.0)), 0, value.source)
    return Step(ops.SELECT, Float, (up, more, base), 0, value.source)


# -- text --------------------------------------------------------------------------------------------------------------


def text_function(resolver: Resolver, expr: Expr, *args: Step) -> Step:
    """A function in TEXT_FUNCTIONS."""
    wanted, result = TEXT_FUNCTIONS[expr.op]
    steps = []
    for arg, type in zip(args, wanted, strict=False):
        if arg.type not in (type, Untyped):
            raise resolver.wrong(expr, f"{expr.op} needs {', '.join(map(str, wanted[: len(args)]))}", *args)
        steps.append(resolver.coerce(arg, type, expr))
    pattern = [*(step.extra for step in steps[1:] if step.op == CONSTANT), *expr.params]
    if expr.op in PATTERNS and pattern and NULL not in (steps[0].extra, *pattern):
        return Step(ops.LIKE, Bool, (steps[0],), PATTERNS[expr.op](*pattern), expr)
    return resolver.text(expr.op, expr, result, steps, expr.params)


def library_function(resolver: Resolver, expr: Expr, *args: Step) -> Step:
    """A function in `scalar_library.TYPES`."""
    wanted, result = scalar_library.TYPES[expr.op]
    steps = []
    for arg, type in zip(args, wanted, strict=True):
        if arg.type not in (type, Untyped):
            raise resolver.wrong(expr, f"{expr.op} needs {', '.join(map(str, wanted))}", *args)
        steps.append(resolver.coerce(arg, type, expr))
    found = resolver.text(expr.op, expr, result, steps)
    return interned_functions.checked(resolver, expr, found, *steps) if expr.op in scalar_library.MAY_FAIL else found


def moment_of(resolver: Resolver, expr: Expr, value: Step) -> Step:
    """strptime and try_strptime: the moment that a text says in a format. What does not say one fails, or is NULL."""
    if value.type not in (String, Untyped):
        raise resolver.wrong(expr, f"{expr.op} needs a text", value)
    value = resolver.coerce(value, String, expr)
    read = resolver.text("strptime", expr, Timestamp, (value,), expr.params)
    return read if expr.op == "try_strptime" else Step(ops.CHECK_PARSED, Timestamp, (read, value), 0, expr)


def concat(resolver: Resolver, expr: Expr, *args: Step) -> Step:
    """Concatenated texts."""
    parts = []
    for source, arg in zip(expr.args, args, strict=True):
        parts.append(arg if arg.type == String else cast(resolver, Expr("cast", (source,), (String,)), arg))
    return joined(resolver, expr, parts)


def joined(resolver: Resolver, expr: Expr, parts: list[Step]) -> Step:
    """Texts one after the other."""
    # a memo takes three arguments besides constants: longer chains become a tree, so that few intermediate texts are made
    while True:
        free = [i for i, part in enumerate(parts) if part.op != CONSTANT]
        if len(free) <= 3:
            return resolver.text("concat", expr, String, parts)
        cuts = [0, *free[3::3], len(parts)]
        parts = [resolver.text("concat", expr, String, parts[low:high]) for low, high in pairwise(cuts)]


# -- dates and timestamps ----------------------------------------------------------------------------------------------


def _days(resolver: Resolver, expr: Expr, value: Step) -> Step:
    """The day number of a date or a timestamp."""
    if value.type == Untyped:
        return word(NULL, Date)
    if value.type not in (Date, Timestamp, TimestampTz):
        raise resolver.wrong(expr, f"{expr.op} needs a date or a timestamp", value)
    return value if value.type == Date else Step(ops.FLOORDIV, Date, (value, word(DAY)), 0, expr)


def date_field(resolver: Resolver, expr: Expr, value: Step) -> Step:
    """year, quarter, month, day, weekday."""
    days = _days(resolver, expr, value)
    if expr.op == "weekday":  # day 0 was a Thursday
        return Step(ops.MOD, Int, (Step(ops.ADD, Int, (days, word(3)), MAX_INT, expr), word(7)), 0, expr)
    field = {"year": ops.YEAR, "quarter": ops.QUARTER, "month": ops.MONTH, "day": ops.DAY}[expr.op]
    return Step(ops.DATE_FIELD, Int, (days,), field, expr)


def time_field(resolver: Resolver, expr: Expr, value: Step) -> Step:
    """hour, minute, second."""
    if value.type not in (Timestamp, TimestampTz, Time, Untyped):
        raise resolver.wrong(expr, f"{expr.op} needs a timestamp or a time", value)
    within = {"hour": DAY, "minute": 3_600_000_000, "second": 60_000_000}[expr.op]
    unit = {"hour": 3_600_000_000, "minute": 60_000_000, "second": 1_000_000}[expr.op]
    return Step(ops.FLOORDIV, Int, (Step(ops.MOD, Int, (value, word(within)), 0, expr), word(unit)), 0, expr)


def add_days(resolver: Resolver, expr: Expr, value: Step, days: Step) -> Step:
    """A date moved by days; a timestamp by as many microseconds."""
    _days(resolver, expr, value)
    if days.type not in (Int, Untyped):
        raise resolver.wrong(expr, "add_days needs an Int", value, days)
    if value.type in (Timestamp, TimestampTz):
        days = Step(ops.MUL, Int, (days, word(DAY)), MAX_INT, expr)
    return Step(ops.ADD, Date if value.type == Untyped else value.type, (value, days), limit_of(value.type), expr)


def add_months(resolver: Resolver, expr: Expr, value: Step, months: Step) -> Step:
    """A date or timestamp moved by months."""
    if months.type not in (Int, Untyped):
        raise resolver.wrong(expr, "add_months needs an Int", value, months)
    days = Step(ops.ADD_MONTHS, Date, (_days(resolver, expr, value), months), MAX_DAYS, expr)
    return days if value.type not in (Timestamp, TimestampTz) else _at_clock(resolver, expr, days, value)


def _at_clock(resolver: Resolver, expr: Expr, days: Step, value: Step | None) -> Step:
    """A timestamp on a day, at midnight or at the time of day of another."""
    midnight = Step(ops.MUL, Timestamp, (days, word(DAY)), MAX_INT, expr)
    if value is None:
        return midnight
    clock = Step(ops.MOD, Int, (value, word(DAY)), 0, expr)
    return Step(ops.ADD, value.type, (midnight, clock), MAX_INT, expr)


def truncate(resolver: Resolver, expr: Expr, value: Step) -> Step:
    """The start of a unit of time."""
    if value.type == TimestampTz:
        return retyped(truncate(resolver, expr, retyped(value, Timestamp)), TimestampTz)
    unit = expr.params[0]
    short = {"day": DAY, "hour": 3_600_000_000, "minute": 60_000_000, "second": 1_000_000}
    long = {"year": ops.YEAR, "quarter": ops.QUARTER, "month": ops.MONTH, "week": ops.WEEK}
    days = _days(resolver, expr, value)
    if unit in long:
        start = Step(ops.TRUNCATE_DATE, Date, (days,), long[unit], expr)
        return start if value.type != Timestamp else _at_clock(resolver, expr, start, None)
    if unit == "day" and value.type != Timestamp:
        return days
    if unit not in short or value.type != Timestamp:
        units = [*long, "day"] if value.type != Timestamp else [*long, *short]
        raise IncorrectError(
            f"{expr}: a {value.type} has no {unit!r}; write a number too, as in '1h' and '15m', or one of {', '.join(units)}"
        )
    rest = Step(ops.MOD, Int, (value, word(short[unit])), 0, expr)
    return Step(ops.SUB, Timestamp, (value, rest), MAX_INT, expr)


# -- functions of floats -----------------------------------------------------------------------------------------------


def of_floats(resolver: Resolver, expr: Expr, *values: Step) -> Step:
    """sqrt, ln, exp, power: evaluated once for each distinct argument."""
    for value in values:
        if not number(value.type) and value.type != Untyped:
            raise resolver.wrong(expr, f"{expr.op} needs numbers", *values)
    return resolver.text(expr.op, expr, Float, [resolver.floats(value) for value in values])


# -- bits --------------------------------------------------------------------------------------------------------------


def bits(resolver: Resolver, expr: Expr, *values: Step) -> Step:
    """Bitwise operations on integers."""
    for value in values:
        if value.type not in (Int, Untyped):
            raise resolver.wrong(expr, f"{expr.op} needs integers", *values)
    if expr.op == "bit_not":
        return Step(ops.BIT_XOR, Int, (values[0], word(-1)), 0, expr)
    return Step(BIT_OPS[expr.op], Int, values, 0, expr)


def key(resolver: Resolver, expr: Expr, value: Step) -> Step:
    """The value as a key."""
    return resolver.key(value)


def rank(resolver: Resolver, expr: Expr, value: Step) -> Step:
    """The word of a value, which orders like the value; or its negative, which always fits because NULL stays NULL."""
    if (
        value.type.interned and value.type.has_keys and not expr.params[0]
    ):  # equal where the values are; they have no order
        return Step(ops.COPY, Int, (resolver.key(value),), 0, expr)
    if value.type.interned:
        raise resolver.wrong(expr, "the words of texts do not order as the texts do", value)
    if expr.params[0]:
        return Step(ops.SUB, Int, (word(0), resolver.key(value)), MAX_INT, expr)
    return Step(ops.COPY, Int, (resolver.key(value),), 0, expr)


def text_word(resolver: Resolver, expr: Expr, value: Step) -> Step:
    """Seven bytes of a text."""
    if not value.type.interned:
        raise resolver.wrong(expr, "only a text has bytes", value)
    return Step(ops.TEXT_WORD, Int, (value,), expr.params, expr)


def at_scale(resolver: Resolver, expr: Expr, value: Step) -> Step:
    """A decimal with fewer or more places, for comparisons."""
    if value.type.kind != "decimal" or value.type.interned:
        raise resolver.wrong(expr, "only a decimal has places", value)
    return resolver.at_scale(value, *expr.params)


def hash(resolver: Resolver, expr: Expr, *values: Step) -> Step:
    """The hash of all values, mixed in one after the other."""
    state = word(0)
    for value in values:
        state = Step(ops.HASH, Int, (state, resolver.key(value)), 0, expr)
    return state
