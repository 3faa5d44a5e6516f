"""Aggregates of groups: what `group_by(...).agg(...)` takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tektite.errors import IncorrectError
from tektite.expr import coalesce, col
from tektite.plan import algebra as plan
from tektite.values import types
from tektite.values.schema import Schema

if TYPE_CHECKING:
    from tektite.query.collection import Collection

LINEAR = ("count", "sum", "avg")
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
    """The exact sum of a column; NULL where it holds nothing but NULL.

    A sum of floats is the double nearest to the exact sum of those that are there: what came and went leaves no trace,
    and neither order nor workers matter. It is infinite beyond the largest double, or where an infinity is there; it is
    NaN where NaN is, or both infinities are.

    >>> import tektite as tk
    >>> engine = tk.Engine()
    >>> payments = engine.input("payments", shop=tk.String, amount=tk.Float)
    >>> view = engine.install("totals", payments.group_by("shop").agg(total=tk.sum("amount")))
    >>> payments.insert([("north", 0.1)] * 10 + [("north", 1e300)])
    >>> _ = engine.advance()
    >>> view.rows()
    [('north', 1e+300)]
    >>> payments.remove([("north", 1e300)])
    >>> _ = engine.advance()
    >>> view.rows()
    [('north', 1.0)]
    """
    return ColumnAggregate("sum", column)


def avg(column: str) -> ColumnAggregate:
    """The mean of a column, as a float; NULL where it holds nothing but NULL.

    Of floats it is the double nearest to their exact mean, even where their sum is beyond the largest double.
    """
    return ColumnAggregate("avg", column)


def min(column: str) -> ColumnAggregate:
    """The least value of a column; NULL where it holds nothing but NULL."""
    return ColumnAggregate("min", column)


def max(column: str) -> ColumnAggregate:
    """The greatest value of a column; NULL where it holds nothing but NULL."""
    return ColumnAggregate("max", column)


def any(column: str) -> ColumnAggregate:
    """Whether a bool column is true in some row."""
    return ColumnAggregate("any", column)


def all(column: str) -> ColumnAggregate:
    """Whether a bool column is true in every row."""
    return ColumnAggregate("all", column)


def count_distinct(column: str) -> ColumnAggregate:
    """The number of different values of a column, NULL aside."""
    return ColumnAggregate("count_distinct", column)


def result_type(aggregate: ColumnAggregate, schema: Schema) -> types.Type:
    """The type of an aggregate's result; checks that it can be taken of its column."""
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


def build_aggregates(
    source: Collection, keys: tuple[int, ...], aggregates: Mapping[str, ColumnAggregate]
) -> Collection:
    """One row for each group. Linear aggregates are one operator; each of the others is one more, joined by key."""
    names = [source.schema.names[c] for c in keys]
    if not aggregates:
        raise IncorrectError("agg needs at least one aggregate, such as n=tk.count()")
    for name, aggregate in aggregates.items():
        if not isinstance(aggregate, ColumnAggregate):
            raise IncorrectError(f"agg: {name} is {aggregate!r}, not an aggregate such as tk.sum('x')")
        if name in names:
            raise IncorrectError(f"agg: {name!r} is a key column; choose another name")
    found = {name: result_type(aggregate, source.schema) for name, aggregate in aggregates.items()}
    linear = {name: a for name, a in aggregates.items() if a.kind in LINEAR}
    others = {name: a for name, a in aggregates.items() if a.kind not in LINEAR}
    columns = {n: source.schema.types[c] for n, c in zip(names, keys, strict=True)}
    taken = linear or {"__present": count()}
    schema = Schema(columns | {name: result_type(a, source.schema) for name, a in taken.items()})
    kinds = tuple(
        plan.Linear(a.kind, None if a.column is None else source.schema.index(a.column)) for a in taken.values()
    )
    result = source._new(plan.Aggregate(schema, source.operator, keys, kinds))
    for name, aggregate in others.items():
        assert aggregate.column is not None
        part = other_aggregate(source, names, aggregate, name)
        result = result._with_part(part, names)
        if aggregate.kind == "count_distinct":
            result = result.with_columns(**{name: coalesce(col(name), 0)})
    return result.select(*names, **{name: name for name in found})


def other_aggregate(source: Collection, keys: list[str], aggregate: ColumnAggregate, name: str) -> Collection:
    """A collection of the key columns and the aggregate, for the groups where the column is not always NULL."""
    assert aggregate.column is not None
    column = aggregate.column
    values = source.select(*keys, **{name: column})
    if aggregate.kind == "count_distinct":
        present = values.filter(col(name).is_not_null()).distinct()
        return present.group_by(keys).agg(**{name: count()})
    if aggregate.kind in ("max", "any"):
        return values.max(name, by=keys)
    return values.min(name, by=keys)
