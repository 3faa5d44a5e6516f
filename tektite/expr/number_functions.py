"""Functions of numbers that are written in terms of others, by the type of their operand.

Two divisions of whole numbers differ where a sign is negative. Each is an operation of its own in plans:

| operation | written as | -3 by 2 | rest |
|---|---|---|---|
| `floordiv`, `mod` | `//` and `%` in Python | -2, rounded down | 1, with the sign of the divisor |
| `truncdiv`, `truncmod` | `//`, `%` in SQL; `/`, `%` in Datalog | -1, rounded towards zero | -1, with that of the dividend |
"""

from __future__ import annotations

from tektite.expr.ast import Expr, lit, when
from tektite.values import types
from tektite.values.types import Type


def remainder(left: Expr, right: Expr) -> Expr:
    """What is left by a division that rounds towards zero, with the sign of the dividend."""
    rest = left.abs() % right.abs()
    return when(left < 0, -rest).otherwise(rest)


def quotient(left: Expr, right: Expr) -> Expr:
    """A division that rounds towards zero."""
    whole = left.abs() // right.abs()
    return when((left < 0).is_same(right < 0), whole).otherwise(-whole)


def rounded(value: Expr, kind: Type, digits: int) -> Expr:
    """The nearest number with so many digits behind the point; halves are rounded away from zero."""
    if kind == types.Int and digits >= 0:
        return value
    if isinstance(kind, types.DecimalType) and digits >= 0:
        kept = min(digits, kind.scale)
        return value.cast(types.Decimal(max(1, kind.precision - kind.scale + kept), kept))
    if kind == types.Float:
        factor = lit(10.0 ** abs(digits))
        scaled = value * factor if digits >= 0 else value / factor
        whole = (scaled.abs() + 0.5) // 1.0
        back = whole / factor if digits >= 0 else whole * factor
        return when(value < 0, -back).otherwise(back)
    step = 10**-digits
    whole = (value.abs() + lit(step // 2)) // lit(step) * step
    result = whole.cast(types.Int) if kind == types.Int else whole.cast(types.Decimal(18))
    return when(value < 0, -result).otherwise(result)


def floor(value: Expr, kind: Type) -> Expr:
    """The greatest whole number that is not greater."""
    if kind == types.Int:
        return value
    if isinstance(kind, types.DecimalType):
        return (value // lit(1)).cast(types.Decimal(18))
    return value // 1.0


def ceiling(value: Expr, kind: Type) -> Expr:
    """The least whole number that is not less."""
    return value if kind == types.Int else -floor(-value, kind)


def truncated(value: Expr, kind: Type) -> Expr:
    """The whole number next to it on the way to zero."""
    return when(value < 0, ceiling(value, kind)).otherwise(floor(value, kind))
