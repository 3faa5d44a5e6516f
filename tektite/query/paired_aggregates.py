"""Covariance, correlation and linear regression of two values of each row, as arithmetic over exact sums.

A row counts if both of its values are there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tektite.expr import Expr, greatest, least, lit, when
from tektite.values import types

Total = Callable[[str, Expr], Expr]
"""A sum or a count of values: an aggregate of Python, or a call of SQL."""


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
    def r_squared(self) -> Expr:
        """The square of the correlation; 1 where all y are the same."""
        found = self.of_both * self.of_both / (self.of_x * self.of_y)
        return when(self.of_x > 0, when(self.of_y > 0, found).otherwise(lit(1.0))).otherwise(None)

    def where_some(self, value: Expr) -> Expr:
        return when(self.count > 0, value).otherwise(None)

    def covariance(self, population: bool) -> Expr:
        """The covariance of both; NULL where a group has too few rows."""
        spare = self.count if population else self.count - 1
        return when(spare > 0, self.of_both / spare).otherwise(None)

    @property
    def correlation(self) -> Expr:
        """The covariance in units of both deviations, from -1 to 1; NULL where a value is the same in all rows."""
        within = self.of_x.sqrt() * self.of_y.sqrt()
        return when(within > 0.0, greatest(least(self.of_both / within, 1.0), -1.0)).otherwise(None)


def pair_sums(y: Expr, x: Expr, total: Total, condition: Expr | None = None) -> PairSums:
    """The sums over the rows that have both values and for which a condition is true."""
    known = y.is_not_null() & x.is_not_null()
    if condition is not None:
        known = condition & known
    y, x = (Expr("case", (known, value.cast(types.Float), lit(None))) for value in (y, x))
    return PairSums(total("count", y), *(total("sum", value) for value in (y, x, y * y, x * x, x * y)))
