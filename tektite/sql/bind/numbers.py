"""SQL's functions of numbers, in terms of ours: division towards zero, rounding, casts that may not fit."""

from __future__ import annotations

import decimal
import math
from typing import TYPE_CHECKING

from sqlglot import exp

from tektite.expr import Expr, lit, when
from tektite.expr.fold import folded as folded_constant
from tektite.values import types
from tektite.values.types import Type

if TYPE_CHECKING:
    from tektite.sql.bind.scalar import Scalars


def remainder(left: Expr, right: Expr) -> Expr:
    """What is left by a division that rounds towards zero, with the sign of the dividend."""
    rest = left.abs() % right.abs()
    return when(left < 0, -rest).otherwise(rest)


def quotient(left: Expr, right: Expr) -> Expr:
    """A division that rounds towards zero."""
    whole = left.abs() // right.abs()
    return when((left < 0).is_same(right < 0), whole).otherwise(-whole)


def where_it_fits(value: Expr, kind: Type, target: Type) -> Expr:
    """TRY_CAST of what is no text: NULL where a number does not fit the target."""
    cast = value.cast(target)
    if kind == types.Float and target == types.Int:
        fits = (value > -(2.0**63)) & (value < 2.0**63)
    elif kind == types.Float and isinstance(target, types.DecimalType):
        # halves round to even, so that the half below the limit does not fit
        fits = value.abs() * 10.0**target.scale < 10.0**target.precision - 0.5
    elif kind.kind in ("int", "decimal") and isinstance(target, types.DecimalType):
        given = kind if isinstance(kind, types.DecimalType) else types.Decimal(18, 0)
        room = target.precision - target.scale
        if kind.kind == "decimal" and given.precision - given.scale < room or room >= 18:
            return cast
        bound = decimal.Decimal(10) ** room
        if given.scale > target.scale:
            bound -= decimal.Decimal(5).scaleb(-target.scale - 1)
        fits = value.abs() < lit(bound if kind.kind == "decimal" else int(bound))
    else:
        return cast
    certain = folded_constant(fits)
    if certain.op == "lit":
        return cast if certain.params[1] else lit(None, target)
    return Expr("case", (fits, cast, lit(None)))


LARGEST_POWER = 308
"""The largest power of ten that is a float."""


def is_finite(value: Expr) -> Expr:
    """Whether a float is neither infinite nor NaN: only then is the difference to itself zero."""
    return value - value == 0.0


def rounded(scalars: Scalars, node: exp.Expr, value: Expr, places: Expr | None = None) -> Expr:
    """ROUND: halves away from zero."""
    digits = 0
    if places is not None:
        if places.op != "lit" or type(places.params[1]) is not int:
            raise scalars.unsupported("ROUND to a number of places that is not a whole constant", node)
        digits = places.params[1]
    kind = scalars.type(value, node)
    if kind == types.Float:
        return rounded_float(value, digits)
    if kind == types.Int and digits >= 0:
        return value
    if isinstance(kind, types.DecimalType) and digits >= 0:
        kept = min(digits, kind.scale)
        # 9.9 becomes 10: one more digit before the point
        room = kind.precision - kind.scale + kept + (kept < kind.scale)
        return value.cast(types.Decimal(min(18, max(1, room)), kept))
    if kind.kind not in ("int", "decimal"):
        raise scalars.error(f"round needs a number, not {kind}", node)
    result_type = types.Int if kind == types.Int else types.Decimal(18)
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
    whole = (scaled.abs() + 0.5) // 1.0
    back = whole / factor if digits >= 0 else whole * factor
    signed = when(value < 0, -back).otherwise(back)
    return when(is_finite(back), signed).otherwise(value)


def floor(scalars: Scalars, node: exp.Expr, value: Expr) -> Expr:
    """The greatest whole number that is not greater."""
    kind = scalars.type(value, node)
    if kind == types.Int:
        return value
    if isinstance(kind, types.DecimalType):
        return (value // lit(1)).cast(types.Decimal(18))
    return when(is_finite(value), value // 1.0).otherwise(value)


def ceiling(scalars: Scalars, node: exp.Expr, value: Expr) -> Expr:
    """The least whole number that is not less."""
    return value if scalars.type(value, node) == types.Int else -floor(scalars, node, -value)


def sign(scalars: Scalars, node: exp.Expr, value: Expr) -> Expr:
    """-1, 0 or 1; 0 for NaN, as in DuckDB."""
    if scalars.type(value, node) != types.Float:
        return value.sign()
    return when(value == lit(math.nan), 0).otherwise(value.sign())


def truncated_number(scalars: Scalars, node: exp.Expr, value: Expr) -> Expr:
    """TRUNC: the whole number next to it on the way to zero."""
    return when(value < 0, ceiling(scalars, node, value)).otherwise(floor(scalars, node, value))
