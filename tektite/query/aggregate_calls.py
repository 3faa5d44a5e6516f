"""An aggregate of a group as a plan is built from it: its kind, what it is taken of, and in which order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from tektite.expr import Expr
from tektite.values import types
from tektite.values.types import Type

CallOrder = tuple[Expr, bool, bool]
"""A scalar to order by, whether in descending order, and whether NULLs come first."""
GATHERED = ("string_agg", "quantile_cont", "quantile_disc", "mode", "first", "earliest")
"""Aggregates of a group's values in an order; `earliest` is a `first` that passes over NULLs."""


@dataclass(frozen=True)
class AggregateCall:
    """An aggregate of the rows of a group, or of the different values of `argument`.

    Those that depend on an order (`GATHERED`) take the rows by the scalars in `order`, and may have a constant, such as the
    text between the parts of a string_agg.
    """

    kind: str
    argument: Expr | None = None
    distinct: bool = False
    order: tuple[CallOrder, ...] = ()
    constant: Any = None

    @property
    def expressions(self) -> tuple[Expr, ...]:
        """The scalars that are evaluated for each row."""
        return (*(() if self.argument is None else (self.argument,)), *(by for by, _, _ in self.order))

    def rewritten(self, rewrite: Callable[[Expr], Expr]) -> AggregateCall:
        """The same aggregate with every scalar rewritten."""
        order = tuple((rewrite(by), descending, nulls_first) for by, descending, nulls_first in self.order)
        return replace(self, argument=None if self.argument is None else rewrite(self.argument), order=order)

    def printed(self, scalar: Callable[[Expr], Any]) -> tuple[Any, ...]:
        """The key that distinguishes it from other aggregates, given the key of a scalar."""
        order = tuple((scalar(by), descending, nulls_first) for by, descending, nulls_first in self.order)
        argument = None if self.argument is None else scalar(self.argument)
        return self.kind, self.distinct, argument, order, type(self.constant), self.constant

    def type(self, found: Type | None) -> Type:
        """The type of its result, given that of its argument."""
        if self.kind == "count" or found is None:
            return types.Int
        if self.kind in ("avg", "quantile_cont"):
            return types.Float
        if self.kind == "string_agg":
            return types.String
        if self.kind == "sum" and isinstance(found, types.DecimalType):
            return types.Decimal(18, found.scale)
        return found
