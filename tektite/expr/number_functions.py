"""Functions of numbers that are written in terms of others, by the type of their operand.

Two divisions of whole numbers differ where a sign is negative. Each is an operation of its own in plans:

| operation | written as | -3 by 2 | rest |
|---|---|---|---|
| `floordiv`, `mod` | `//` and `%` in Python | -2, rounded down | 1, with the sign of the divisor |
| `truncdiv`, `truncmod` | `//`, `%` in SQL; `/`, `%` in Datalog | -1, rounded towards zero | -1, with that of the dividend |
"""

from __future__ import annotations

from tektite.expr.ast import Expr, lit
from tektite.expr.cases import when
from tektite.values import types
from tektite.values.types import Type


def remainder(left: Expr, right: Expr) -> Expr:
    """The remainder of a division that rounds towards zero, with the sign of the dividend."""
    rest = left.abs() % right.abs()
    return when(left < 0, -rest).otherwise(rest)


def quotient(left: Expr, right: Expr) -> Expr:
    """A division that rounds towards zero."""
    whole = left.abs() // right.abs()
    return when((left < 0).is_same(right < 0), whole).otherwise(-whole)


LARGEST_POWER = 308
"""The largest power of ten that is a float."""


def is_finite(value: Expr) -> Expr:
    """Whether a float is neither infinite nor NaN: only then is the difference to itself zero."""
    return value - value == 0.0


def most_digits(kind: Type) -> int:
    """The most digits that results of functions of a decimal have: those of a word, unless the decimal has more itself."""
    return types.MOST_DIGITS if kind.interned else types.WORD_DIGITS


def rounded(value: Expr, kind: Type, digits: int) -> Expr:
    """The nearest number with so many digits behind the point; halves are rounded away from zero."""
    if kind == types.Float:
        return rounded_float(value, digits)
    if kind == types.Int and digits >= 0:
        return value
    if isinstance(kind, types.DecimalType) and digits >= 0:
        kept = min(digits, kind.scale)
        # 9.9 becomes 10: one more digit before the point
        room = kind.precision - kind.scale + kept + (kept < kind.scale)
        return value.cast(types.Decimal(min(most_digits(kind), max(1, room)), kept))
    result_type = types.Int if kind == types.Int else types.Decimal(most_digits(kind))
    whole_digits = kind.precision - kind.scale if isinstance(kind, types.DecimalType) else 18
    if -digits > whole_digits:  # such a number has fewer digits
        return (value - value).cast(result_type)
    step = 10**-digits
    result = ((value.abs() + lit(step // 2)) // lit(step) * step).cast(result_type)
    return when(value < 0, -result).otherwise(result)


def rounded_float(value: Expr, digits: int) -> Expr:
    """A float rounded, itself where so many places are more than it has."""
    if abs(digits) > LARGEST_POWER:
        return value if digits > 0 else when(is_finite(value), 0.0 * value).otherwise(value)
    factor = lit(10.0 ** abs(digits))
    scaled = value * factor if digits >= 0 else value / factor
    base = scaled.abs() // 1.0  # adding a half to the number itself would round it
    whole = base + when(scaled.abs() - base >= 0.5, 1.0).otherwise(0.0)
    back = whole / factor if digits >= 0 else whole * factor
    signed = when(value < 0, -back).otherwise(back)
    return when(is_finite(back), signed).otherwise(value)


def floor(value: Expr, kind: Type) -> Expr:
    """The greatest whole number that is not greater."""
    if kind == types.Int:
        return value
    if isinstance(kind, types.DecimalType):
        return (value // lit(1)).cast(types.Decimal(most_digits(kind)))
    return when(is_finite(value), value // 1.0).otherwise(value)


def ceiling(value: Expr, kind: Type) -> Expr:
    """The least whole number that is not less."""
    return value if kind == types.Int else -floor(-value, kind)


def truncated(value: Expr, kind: Type) -> Expr:
    """The whole number next to it on the way to zero."""
    return when(value < 0, ceiling(value, kind)).otherwise(floor(value, kind))
