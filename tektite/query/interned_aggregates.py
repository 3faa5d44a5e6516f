"""Aggregates of interned values in terms of others: sums of parts that are words, and lists as joined texts."""

from __future__ import annotations

from collections.abc import Callable

from tektite.expr import Expr
from tektite.expr.interval_parts import value_parts
from tektite.query.aggregate_calls import AggregateCall, CallOrder
from tektite.values import types
from tektite.values.types import DecimalType, Type

ColumnOfCall = Callable[[AggregateCall], Expr]
"""Gives the column of a call."""
LIMBS = 3
"""Parts of a wide decimal that are summed on their own: each is below 10**13, so that sums of half a million fit a word."""


def is_summable(type: Type) -> bool:
    """Whether values of an interned type can be added up."""
    return type.interned and (type == types.Interval or isinstance(type, DecimalType))


def total(value: Expr, type: Type, named: ColumnOfCall) -> Expr:
    """The sum of intervals or wide decimals."""
    if type == types.Interval:
        return Expr("interval", tuple(named(AggregateCall("sum", part)) for part in value_parts(value)))
    assert isinstance(type, DecimalType)
    limbs = [Expr("decimal_limb", (value,), (place,)) for place in range(LIMBS)]
    return Expr(
        "decimal_from_limbs",
        tuple(named(AggregateCall("sum", limb)) for limb in limbs),
        (types.Decimal(types.MOST_DIGITS, type.scale),),
    )


def average(value: Expr, type: Type, named: ColumnOfCall) -> Expr:
    """The average of intervals, which is one, or of wide decimals, which is a float."""
    count = named(AggregateCall("count", value)).cast(types.Float)
    if type == types.Interval:
        return Expr("interval_over", (total(value, type, named), count))
    return total(value, type, named).cast(types.Float) / count


def listed(value: Expr, type: Type, order: tuple[CallOrder, ...], distinct: bool, named: ColumnOfCall) -> Expr:
    """The values of a group as a list, in an order; in their own order if none is given."""
    item = Expr("list_item", (value,))
    call = AggregateCall("string_agg", item, distinct, order or ((value, False, False),), "")
    return Expr("reinterpret", (named(call),), (types.ListType("list", type),))
