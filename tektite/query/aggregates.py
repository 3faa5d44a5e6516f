"""Aggregates of groups: what `group_by(...).agg(...)` takes.

A group exists while it has rows. NULL does not count: an aggregate of nothing but NULL is NULL, and a count is 0.
"""

from __future__ import annotations

from dataclasses import dataclass

from tektite.errors import IncorrectError
from tektite.values import types
from tektite.values.schema import Schema

LINEAR = ("count", "sum", "avg")
"""Aggregates that are computed from sums of diffs alone, so that a change costs the same in a group of any size."""
SUMMABLE = ("int", "float", "decimal")


@dataclass(frozen=True)
class ColumnAggregate:
    """An aggregate of a column, or of whole rows where `column` is None."""

    kind: str
    column: str | None = None


def count(column: str | None = None) -> ColumnAggregate:
    """The number of rows, or of rows where the column is not NULL."""
    return ColumnAggregate("count", column)


def sum(column: str) -> ColumnAggregate:
    """The exact sum of a column; NULL where all its values are NULL.

    A sum of floats is the double nearest to the exact sum of the present values. It depends neither on values that were
    removed, nor on the order of changes, nor on the number of workers. It is infinite if it exceeds the largest double or
    includes an infinity, and NaN if it includes NaN or both infinities.

    >>> import tektite as tk
    >>> engine = tk.Engine()
    >>> payments = engine.input("payments", shop=tk.String, amount=tk.Float)
    >>> view = engine.install("totals", payments.group_by("shop").agg(total=tk.sum("amount")))
    >>> _ = payments.insert([("north", 0.1)] * 10 + [("north", 1e300)])
    >>> view.rows()
    [('north', 1e+300)]
    >>> _ = payments.remove([("north", 1e300)])
    >>> view.rows()
    [('north', 1.0)]
    """
    return ColumnAggregate("sum", column)


def avg(column: str) -> ColumnAggregate:
    """The mean of a column, as a float; NULL where all its values are NULL.

    The mean of floats is the double nearest to the exact mean, even if the sum exceeds the largest double.
    """
    return ColumnAggregate("avg", column)


def min(column: str) -> ColumnAggregate:
    """The least value of a column; NULL where all its values are NULL."""
    return ColumnAggregate("min", column)


def max(column: str) -> ColumnAggregate:
    """The greatest value of a column; NULL where all its values are NULL."""
    return ColumnAggregate("max", column)


def any(column: str) -> ColumnAggregate:
    """Whether a bool column is true in some row."""
    return ColumnAggregate("any", column)


def all(column: str) -> ColumnAggregate:
    """Whether a bool column is true in every row."""
    return ColumnAggregate("all", column)


def count_distinct(column: str) -> ColumnAggregate:
    """The number of different values of a column. NULL does not count."""
    return ColumnAggregate("count_distinct", column)


def result_type(aggregate: ColumnAggregate, schema: Schema) -> types.Type:
    """The type of an aggregate's result. Raises if the aggregate does not apply to its column."""
    if aggregate.column is None or aggregate.kind in ("count", "count_distinct"):
        if aggregate.column is not None:
            schema.index(aggregate.column)
        return types.Int
    found = schema.types[schema.index(aggregate.column)]
    if aggregate.kind in ("sum", "avg") and found.kind not in SUMMABLE:
        raise IncorrectError(f"{aggregate.kind}({aggregate.column!r}): the column is {found}, not a number")
    if aggregate.kind in ("any", "all") and found != types.Bool:
        raise IncorrectError(f"{aggregate.kind}({aggregate.column!r}): the column is {found}, not bool")
    if aggregate.kind == "avg":
        return types.Float
    if aggregate.kind == "sum" and isinstance(found, types.DecimalType):
        return types.Decimal(18, found.scale)
    return found
