"""Groups of a collection's rows, and the plan of their aggregates.

One operator computes all linear aggregates. Each other aggregate is an operator of its own. All have one row for each group, and
are joined by key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tektite.errors import IncorrectError
from tektite.expr import col, rank
from tektite.plan import algebra as plan
from tektite.query.aggregates import LINEAR, ColumnAggregate, count, result_type
from tektite.query.collection import Collection, derived
from tektite.query.columns import column_numbers, project, with_float_keys
from tektite.query.joins import inner_join
from tektite.values import types
from tektite.values.schema import Schema


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
        >>> _ = sales.insert([("north", 3), ("north", 4), ("south", 5)])
        >>> sorted(view.rows())
        [('north', 2, 7, 4), ('south', 1, 5, 5)]
        """
        return build_aggregates(self.collection, self.keys, aggregates)


def build_aggregates(
    source: Collection, keys: tuple[int, ...], aggregates: Mapping[str, ColumnAggregate]
) -> Collection:
    """One row for each group: the key columns, then the aggregates."""
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
        parts.append(derived(plan.Aggregate(schema, source.operator, keys, kinds), source))
    for name, aggregate in aggregates.items():
        result_type(aggregate, source.schema)
        if name not in linear:
            parts.append(other_aggregate(source, names, aggregate, name))
    return joined_parts(parts, names).select(*names, *aggregates)


def joined_parts(parts: Sequence[Collection], keys: list[str]) -> Collection:
    """Collections that each have exactly one row for each group, joined by the groups' keys, of which NULL is one."""
    result, *others = parts
    for part in others:
        mine, theirs = column_numbers(result.schema, keys), column_numbers(part.schema, keys)
        joined = inner_join(result.operator, part.operator, mine, theirs, nulls_match=True, one_to_one=True)
        result = derived(joined, result, part)
    return result


def other_aggregate(source: Collection, keys: list[str], aggregate: ColumnAggregate, name: str) -> Collection:
    """The key columns and an aggregate that is not linear, one row for each group."""
    assert aggregate.column is not None
    values = source.select(*keys, **{name: aggregate.column})
    if aggregate.kind == "count_distinct":
        return values.distinct().group_by(keys).agg(**{name: count(name)})
    return extreme(values, keys, name, aggregate.kind in ("max", "any"))


def extreme(values: Collection, keys: list[str], name: str, last: bool) -> Collection:
    """The least or greatest value of each group. A group of NULLs alone has NULL."""
    kind = values.schema.types[values.schema.index(name)]
    if kind == types.String:
        return values.top(1, name, keys, last)
    # NULL comes behind every value, whichever end is asked for
    absent = col(name).is_not_null() if last else col(name).is_null()
    found = with_float_keys(values.operator, column_numbers(values.schema, keys))
    outputs = [*((k, col(k)) for k in keys), ("#absent", absent), ("#rank", rank(col(name))), (name, col(name))]
    if kind != types.Float:  # its words order as its values do
        outputs.pop(-2)
    ranked = project(found, outputs)
    return derived(plan.First(ranked.schema, ranked, len(keys), 1, last), values).select(*keys, name)
