"""Covariance and correlation of two values of each row, as arithmetic over sums.

A row counts if both of its values are there. `total(kind, value)` is what stands for a sum or a count: an aggregate of Python, or
a call of SQL.
"""

from __future__ import annotations

from collections.abc import Callable

from tektite.expr import Expr, greatest, least, lit
from tektite.values import types

Total = Callable[[str, Expr], Expr]


def covariance(x: Expr, y: Expr, total: Total, population: bool) -> Expr:
    """How far two values go up and down together; NULL where a group has too few rows."""
    x, y = counted(x, y)
    count = total("count", x)
    spare = count if population else count - 1
    return Expr("case", (spare > 0, product(x, y, total) / spare, lit(None)))


def correlation(x: Expr, y: Expr, total: Total) -> Expr:
    """The covariance in units of both deviations, from -1 to 1; NULL where a value is the same in all rows."""
    x, y = counted(x, y)
    within = greatest(product(x, x, total), 0.0).sqrt() * greatest(product(y, y, total), 0.0).sqrt()
    return Expr("case", (within > 0.0, greatest(least(product(x, y, total) / within, 1.0), -1.0), lit(None)))


def counted(x: Expr, y: Expr) -> tuple[Expr, Expr]:
    """Two values as floats, NULL in rows where one of them is."""
    both = x.is_not_null() & y.is_not_null()
    return (
        Expr("case", (both, x.cast(types.Float), lit(None))),
        Expr("case", (both, y.cast(types.Float), lit(None))),
    )


def product(x: Expr, y: Expr, total: Total) -> Expr:
    """The sum of the products of two values' distances from their means."""
    return total("sum", x * y) - total("sum", x) * total("sum", y) / total("count", x)
