"""Aggregates of groups: what `group_by(...).agg(...)` takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tektite.errors import IncorrectError
from tektite.expr import col, rank
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
    """One row for each group. Linear aggregates are one part; each of the others is one more, joined by key."""
    names = [source.schema.names[c] for c in keys]
    if not aggregates:
        raise IncorrectError("agg needs at least one aggregate, such as n=tk.count()")
    for name, aggregate in aggregates.items():
        if not isinstance(aggregate, ColumnAggregate):
            raise IncorrectError(f"agg: {name} is {aggregate!r}, not an aggregate such as tk.sum('x')")
        if name in names:
            raise IncorrectError(f"agg: {name!r} is a key column; choose another name")
    columns = {n: source.schema.types[c] for n, c in zip(names, keys, strict=True)}
    linear = {name: a for name, a in aggregates.items() if a.kind in LINEAR}
    parts = []
    if linear:
        schema = Schema(columns | {name: result_type(a, source.schema) for name, a in linear.items()})
        kinds = tuple(
            plan.Linear(a.kind, None if a.column is None else source.schema.index(a.column)) for a in linear.values()
        )
        parts.append(source._new(plan.Aggregate(schema, source.operator, keys, kinds)))
    for name, aggregate in aggregates.items():
        result_type(aggregate, source.schema)
        if name not in linear:
            parts.append(other_aggregate(source, names, aggregate, name))
    return joined_parts(parts, names).select(*names, *aggregates)


def joined_parts(parts: Sequence[Collection], keys: list[str]) -> Collection:
    """Collections that each have exactly one row for each group, joined by the groups' keys, of which NULL is one."""
    result, *others = parts
    for part in others:
        result = result._inner(part, result._columns(keys), part._columns(keys), nulls_match=True, one_to_one=True)
    return result


def other_aggregate(source: Collection, keys: list[str], aggregate: ColumnAggregate, name: str) -> Collection:
    """The key columns and an aggregate that is not linear, one row for each group."""
    assert aggregate.column is not None
    values = source.select(*keys, **{name: aggregate.column})
    if aggregate.kind == "count_distinct":
        return values.distinct().group_by(keys).agg(**{name: count(name)})
    return extreme(values, keys, name, aggregate.kind in ("max", "any"))


def extreme(values: Collection, keys: list[str], name: str, last: bool) -> Collection:
    """The least or greatest value of each group; NULL for a group that has no other."""
    kind = values.schema.types[values.schema.index(name)]
    if kind == types.String:
        return values.top(1, name, keys, last)
    # NULL comes behind every value, whichever end is asked for
    absent = col(name).is_not_null() if last else col(name).is_null()
    found = values._with_float_keys(values._columns(keys))
    outputs = [*((k, col(k)) for k in keys), ("#absent", absent), ("#rank", rank(col(name))), (name, col(name))]
    if kind != types.Float:  # its words order as its values do
        outputs.pop(-2)
    ranked = found._project(outputs, None)
    first = ranked._new(plan.First(ranked.schema, ranked.operator, len(keys), 1, last))
    return first.select(*keys, name)
