"""Aggregates of groups: what `group_by(...).agg(...)` takes and builds.

A group exists while it has rows. NULL does not count: an aggregate of nothing but NULL is NULL, and a count is 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tektite.errors import IncorrectError
from tektite.expr import coalesce, col
from tektite.plan import algebra as plan
from tektite.query.collection import Collection, derived
from tektite.query.columns import column_numbers
from tektite.query.joins import left_join
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


class Grouped:
    """The groups of a collection's rows, to be aggregated. Made by `Collection.group_by`."""

    def __init__(self, collection: Collection, keys: tuple[int, ...]) -> None:
        self.collection = collection
        self.keys = keys

    def agg(self, **aggregates: ColumnAggregate) -> Collection:
        """One row for each group: the key columns, then the aggregates. Linear aggregates (count, sum, avg) share one pass.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.input("sales", shop=tk.String, amount=tk.Int)
        >>> totals = sales.group_by("shop").agg(n=tk.count(), total=tk.sum("amount"), best=tk.max("amount"))
        >>> view = engine.install("totals", totals)
        >>> sales.insert([("north", 3), ("north", 4), ("south", 5)])
        >>> _ = engine.advance()
        >>> sorted(view.rows())
        [('north', 2, 7, 4), ('south', 1, 5, 5)]
        """
        return build_aggregates(self.collection, self.keys, aggregates)


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


def build_aggregates(
    source: Collection, keys: tuple[int, ...], aggregates: Mapping[str, ColumnAggregate]
) -> Collection:
    """One row for each group. One operator computes all linear aggregates. Each other aggregate is an operator of its own, joined
    by key.
    """
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
    result = derived(plan.Aggregate(schema, source.operator, keys, kinds), source)
    for name, aggregate in others.items():
        assert aggregate.column is not None
        part = other_aggregate(source, names, aggregate, name)
        mine, theirs = column_numbers(result.schema, names), column_numbers(part.schema, names)
        joined = left_join(result.operator, part.operator, mine, theirs, nulls_match=True)
        result = derived(joined, result, part)
        if aggregate.kind == "count_distinct":
            result = result.with_columns(**{name: coalesce(col(name), 0)})
    return result.select(*names, **{name: name for name in found})


def other_aggregate(source: Collection, keys: list[str], aggregate: ColumnAggregate, name: str) -> Collection:
    """The key columns and the aggregate. Groups in which the column is always NULL are missing."""
    assert aggregate.column is not None
    column = aggregate.column
    values = source.select(*keys, **{name: column})
    if aggregate.kind == "count_distinct":
        present = values.filter(col(name).is_not_null()).distinct()
        return present.group_by(keys).agg(**{name: count()})
    if aggregate.kind in ("max", "any"):
        return values.max(name, by=keys)
    return values.min(name, by=keys)
