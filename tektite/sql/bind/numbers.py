"""Numbers in SQL: TRY_CAST, and functions whose results differ in DuckDB."""

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


def where_it_fits(value: Expr, kind: Type, target: Type) -> Expr:
    """TRY_CAST of a number: NULL if it does not fit the target type."""
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


def round_of(scalars: Scalars, node: exp.Round) -> Expr:
    """ROUND: halves away from zero."""
    value, tree = scalars.bind(node.this), node.args.get("decimals")
    digits = 0
    if tree is not None:
        places = scalars.bind(tree)
        if places.op != "lit" or type(places.params[1]) is not int:
            raise scalars.unsupported("ROUND to a number of places that is not a whole constant", node)
        digits = places.params[1]
    return value.round(digits)


def sign_of(scalars: Scalars, node: exp.Sign) -> Expr:
    """-1, 0 or 1; 0 for NaN, as in DuckDB."""
    value = scalars.bind(node.this)
    if scalars.type(value, node) != types.Float:
        return value.sign()
    return when(value == lit(math.nan), 0).otherwise(value.sign())
