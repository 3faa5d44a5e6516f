"""The plan of aggregates of columns: one operator for all linear ones, and one for each other.

All have one row for each group, and are joined by key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tektite.errors import IncorrectError
from tektite.expr import col, rank
from tektite.plan import algebra as plan
from tektite.query.aggregates import LINEAR, ColumnAggregate, result_type
from tektite.query.collection import Collection
from tektite.query.columns import column_numbers, project, with_equal_keys
from tektite.query.derived import derived
from tektite.query.joins import inner_join
from tektite.query.reductions import top
from tektite.values import types
from tektite.values.schema import shared_schema


def column_aggregates(
    collection: Collection, by: Sequence[str], aggregates: Mapping[str, ColumnAggregate]
) -> Collection:
    """One row for each group of rows that agree on some columns: these columns, then the aggregates."""
    names = list(by)
    keys = column_numbers(collection.schema, names)
    source = derived(with_equal_keys(collection.operator, keys), collection)
    for name in aggregates:
        if name in names:
            raise IncorrectError(f"agg: {name!r} is a key column; choose another name")
    columns = {n: source.schema.types[c] for n, c in zip(names, keys, strict=True)}
    linear = {name: a for name, a in aggregates.items() if a.kind in LINEAR}
    parts = []
    if linear:
        schema = shared_schema(columns | {name: result_type(a, source.schema) for name, a in linear.items()})
        kinds = plan.linear_aggregates(
            *[(a.kind, None if a.column is None else source.schema.index(a.column)) for a in linear.values()]
        )
        parts.append(derived(plan.Aggregate(schema, source.operator, keys, kinds), source))
    for name, aggregate in aggregates.items():
        result_type(aggregate, source.schema)
        if name not in linear:
            parts.append(other_aggregate(source, names, aggregate, name))
    return joined_parts(parts, names, not source.operator.is_signed).select(names, list(aggregates))


def joined_parts(parts: Sequence[Collection], keys: list[str], one_to_one: bool = True) -> Collection:
    """Collections that each have exactly one row for each group, joined by the groups' keys, of which NULL is one. The first may
    have more rows in a group, or one may have none, if they are not `one_to_one`: of a collection with negative multiplicities, a
    group may have a sum and no maximum.
    """
    result, *others = parts
    for part in others:
        mine, theirs = column_numbers(result.schema, keys), column_numbers(part.schema, keys)
        joined = inner_join(result.operator, part.operator, mine, theirs, nulls_match=True, one_to_one=one_to_one)
        result = derived(joined, result, part)
    return result


def other_aggregate(source: Collection, keys: list[str], aggregate: ColumnAggregate, name: str) -> Collection:
    """The key columns and an aggregate that is not linear, one row for each group."""
    assert aggregate.column is not None
    values = source.select(*keys, **{name: aggregate.column})
    if aggregate.kind == "count_distinct":
        return column_aggregates(values.distinct(), keys, {name: ColumnAggregate("count", name)})
    return extreme(values, keys, name, aggregate.kind in ("max", "any"))


def extreme(values: Collection, keys: list[str], name: str, last: bool) -> Collection:
    """The least or greatest value of each group. A group of NULLs alone has NULL."""
    kind = values.schema.types[values.schema.index(name)]
    found = with_equal_keys(values.operator, column_numbers(values.schema, keys))
    if kind.interned:
        return derived(top(found, 1, name, keys, last), values)
    # NULL comes behind every value, whichever end is asked for
    absent = col(name).is_not_null() if last else col(name).is_null()
    outputs = [*((k, col(k)) for k in keys), ("#absent", absent), ("#rank", rank(col(name))), (name, col(name))]
    if kind != types.Float:  # its words order as its values do
        outputs.pop(-2)
    ranked = project(found, outputs)
    return derived(plan.First(ranked.schema, ranked, len(keys), 1, last), values).select(*keys, name)
