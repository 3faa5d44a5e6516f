"""Binding aggregates of pairs of numbers: covariance, correlation and linear regression.

Each is made of exact sums over the rows in which both numbers are known: of each number, of their squares and of their product.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from tektite.expr import Expr, greatest, lit, when
from tektite.query.aggregate_calls import AggregateCall
from tektite.values import types

if TYPE_CHECKING:
    from tektite.sql.bind.clause import Grouping


@dataclass(frozen=True)
class PairSums:
    """The sums over the pairs (y, x) of a group."""

    count: Expr
    y: Expr
    x: Expr
    yy: Expr
    xx: Expr
    xy: Expr

    @property
    def of_x(self) -> Expr:
        """The sum of the squares of what x differs from its mean by."""
        return greatest(self.xx - self.x * self.x / self.count, 0.0)

    @property
    def of_y(self) -> Expr:
        return greatest(self.yy - self.y * self.y / self.count, 0.0)

    @property
    def of_both(self) -> Expr:
        return self.xy - self.x * self.y / self.count

    @property
    def slope(self) -> Expr:
        return when(self.of_x > 0, self.of_both / self.of_x).otherwise(None)

    @property
    def correlation(self) -> Expr:
        product = self.of_x * self.of_y
        return when(product > 0, self.of_both / product.sqrt()).otherwise(None)


def r_squared(sums: PairSums) -> Expr:
    found = sums.of_both * sums.of_both / (sums.of_x * sums.of_y)
    return when(sums.of_x > 0, when(sums.of_y > 0, found).otherwise(lit(1.0))).otherwise(None)


def where_some(sums: PairSums, value: Expr) -> Expr:
    return when(sums.count > 0, value).otherwise(None)


PAIRS: dict[type[exp.Expr], Callable[[PairSums], Expr]] = {
    exp.CovarPop: lambda sums: where_some(sums, sums.of_both / sums.count),
    exp.CovarSamp: lambda sums: when(sums.count > 1, sums.of_both / (sums.count - 1)).otherwise(None),
    exp.Corr: lambda sums: sums.correlation,
    exp.RegrSlope: lambda sums: sums.slope,
    exp.RegrIntercept: lambda sums: (sums.y - sums.slope * sums.x) / sums.count,
    exp.RegrR2: r_squared,
    exp.RegrCount: lambda sums: sums.count,
    exp.RegrAvgx: lambda sums: where_some(sums, sums.x / sums.count),
    exp.RegrAvgy: lambda sums: where_some(sums, sums.y / sums.count),
    exp.RegrSxx: lambda sums: where_some(sums, sums.of_x),
    exp.RegrSyy: lambda sums: where_some(sums, sums.of_y),
    exp.RegrSxy: lambda sums: where_some(sums, sums.of_both),
}
"""The aggregates of two numbers, the dependent one first."""


def of_pairs(grouping: Grouping, tree: exp.Expr, condition: Expr, named: Callable[[AggregateCall], Expr]) -> Expr:
    """The aggregate that one of `PAIRS` is, of the rows for which a condition is true."""
    source, scalars = grouping.binder.source, grouping.inner.scalars
    if tree.this is None or tree.expression is None or isinstance(tree.this, exp.Distinct | exp.Order):
        raise source.error(f"{source.called(tree)} takes two numbers", tree)
    both = [grouping.inner.bind(part) for part in (tree.this, tree.expression)]
    for value in both:
        if scalars.type(value, tree).kind not in ("int", "float", "decimal"):
            raise source.error(f"{source.called(tree)} takes two numbers, not {scalars.type(value, tree)}", tree)
    known = condition & both[0].is_not_null() & both[1].is_not_null()
    y, x = (Expr("case", (known, value.cast(types.Float), lit(None))) for value in both)
    sums = [named(AggregateCall("sum", value)) for value in (y, x, y * y, x * x, x * y)]
    return PAIRS[type(tree)](PairSums(named(AggregateCall("count", y)), *sums))
