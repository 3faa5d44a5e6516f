"""Binding aggregates of pairs of numbers: covariance, correlation and linear regression."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from sqlglot import exp

from tektite.expr import Expr
from tektite.query.aggregate_calls import AggregateCall
from tektite.query.paired_aggregates import PairSums, pair_sums

if TYPE_CHECKING:
    from tektite.sql.bind.clause import Grouping

PAIRS: dict[type[exp.Expr], Callable[[PairSums], Expr]] = {
    exp.CovarPop: lambda sums: sums.covariance(True),
    exp.CovarSamp: lambda sums: sums.covariance(False),
    exp.Corr: lambda sums: sums.correlation,
    exp.RegrSlope: lambda sums: sums.slope,
    exp.RegrIntercept: lambda sums: (sums.y - sums.slope * sums.x) / sums.count,
    exp.RegrR2: lambda sums: sums.r_squared,
    exp.RegrCount: lambda sums: sums.count,
    exp.RegrAvgx: lambda sums: sums.where_some(sums.x / sums.count),
    exp.RegrAvgy: lambda sums: sums.where_some(sums.y / sums.count),
    exp.RegrSxx: lambda sums: sums.where_some(sums.of_x),
    exp.RegrSyy: lambda sums: sums.where_some(sums.of_y),
    exp.RegrSxy: lambda sums: sums.where_some(sums.of_both),
}
"""The aggregates of two numbers, the dependent one first."""


def of_pairs(grouping: Grouping, tree: exp.Expr, condition: Expr, named: Callable[[AggregateCall], Expr]) -> Expr:
    """The aggregate that one of `PAIRS` is, of the rows for which a condition is true."""
    source, scalars = grouping.binder.source, grouping.inner.scalars
    if tree.this is None or tree.expression is None or isinstance(tree.this, exp.Distinct | exp.Order):
        raise source.error(f"{source.called(tree)} takes two numbers", tree)
    y, x = (grouping.inner.bind(part) for part in (tree.this, tree.expression))
    for value in (y, x):
        if scalars.type(value, tree).kind not in ("int", "float", "decimal"):
            raise source.error(f"{source.called(tree)} takes two numbers, not {scalars.type(value, tree)}", tree)
    return PAIRS[type(tree)](pair_sums(y, x, lambda kind, value: named(AggregateCall(kind, value)), condition))
