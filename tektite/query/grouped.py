"""Groups of a collection's rows, and the plan of their aggregates.

One operator computes all linear aggregates. Each other aggregate is an operator of its own, joined by key.
"""

from __future__ import annotations

from collections.abc import Mapping

from tektite.errors import IncorrectError
from tektite.expr import coalesce, col
from tektite.plan import algebra as plan
from tektite.query.aggregates import LINEAR, ColumnAggregate, count, result_type
from tektite.query.collection import Collection, derived
from tektite.query.columns import column_numbers
from tektite.query.joins import left_join
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
        >>> sales.insert([("north", 3), ("north", 4), ("south", 5)])
        >>> _ = engine.advance()
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
