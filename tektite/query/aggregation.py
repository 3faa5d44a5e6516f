"""Aggregates of groups: parts that each have exactly one row for each group, joined by the groups' keys.

Aggregates that are linear (counts, sums, averages) are one part; each least or greatest value, each aggregate of
different values and each that depends on an order is one more. SQL and Python build all their aggregates here.
"""

from __future__ import annotations

from collections.abc import Sequence

from tektite.expr import Expr, lit
from tektite.query.aggregate_calls import GATHERED, AggregateCall
from tektite.query.aggregates import LINEAR, ColumnAggregate
from tektite.query.builders import project, reduce_groups
from tektite.query.collection import Collection
from tektite.query.column_aggregates import column_aggregates, extreme, joined_parts
from tektite.query.derived import subtracted
from tektite.query.ordered_groups import Gathered

GroupKeys = Sequence[tuple[str, Expr]]
Calls = Sequence[tuple[str, AggregateCall]]


def aggregate(source: Collection, keys: GroupKeys, calls: Calls, unit: Collection | None = None) -> Collection:
    """One row for each group: the keys, then the aggregates.

    Without keys all rows are one group. It exists while it has rows; or always, where `unit`, a collection of exactly one row, is
    given.
    """
    given, columns, orders = prepared(source, keys, calls)
    names = [name for name, _ in keys]
    linear = {name: call for name, call in calls if call.kind in LINEAR and not call.distinct}
    parts: list[Collection] = []
    if linear or not calls:
        taken = {name: ColumnAggregate(call.kind, columns[name]) for name, call in linear.items()}
        arguments = [columns[name] for name in linear]
        read = [*names, *dict.fromkeys(column for column in arguments if column is not None)]
        taken = taken or {"#present": ColumnAggregate("count")}
        parts.append(column_aggregates(given.select(read) if read else given, names, taken))
    for name, call in calls:
        column = columns[name]
        if name in orders:
            parts.append(gathered(given, names, name, orders[name], call))
        elif name not in linear:
            assert column is not None
            values = given.select(names, **{name: column})
            parts.append(extreme(values, names, name, call.kind == "max") if call.kind in ("min", "max") else
                         of_different(values, names, name, call.kind))  # fmt: skip
    result = joined_parts(parts, names, not source.operator.is_signed).select(names, [name for name, _ in calls])
    return result if keys or unit is None else always(result, calls, unit)


def prepared(
    source: Collection, keys: GroupKeys, calls: Calls
) -> tuple[Collection, dict[str, str | None], dict[str, list[str]]]:
    """The input with a column for each key and argument, the column that each call is taken of, and for those that depend on an
    order the columns of their scalars.
    """
    outputs: dict[str, Expr] = dict(keys)
    known: dict[tuple[object, ...], str] = {}
    columns: dict[str, str | None] = {}
    orders: dict[str, list[str]] = {}
    for name, call in calls:
        made = [argument(scalar, outputs, known) for scalar in call.expressions]
        columns[name] = None if call.argument is None else made[0]
        if call.kind in GATHERED:
            orders[name] = made
    if not outputs:
        outputs["#row"] = lit(0)
    return project(source, list(outputs.items())), columns, orders


def argument(scalar: Expr, outputs: dict[str, Expr], columns: dict[tuple[object, ...], str]) -> str:
    """The column that holds a scalar of an aggregate."""
    found = columns.get(scalar.fingerprint)
    if found is None:
        found = columns[scalar.fingerprint] = f"#argument{len(columns)}"
        outputs[found] = scalar
    return found


def gathered(given: Collection, keys: list[str], name: str, columns: list[str], call: AggregateCall) -> Collection:
    """An aggregate of each group's values in an order; the first column holds the values, the others the order."""
    values = given.select(keys, list(dict.fromkeys(columns)))
    order = [(col, down, nulls) for col, (_, down, nulls) in zip(columns[1:], call.order, strict=True)]
    function = Gathered.over(values.schema, len(keys), columns[0], order, call)
    return reduce_groups(
        values, function, keys, {name: call.type(values.schema.types[values.schema.index(columns[0])])}
    )


def of_different(values: Collection, keys: list[str], name: str, kind: str) -> Collection:
    """An aggregate of the different values of each group."""
    return column_aggregates(values.distinct(), keys, {name: ColumnAggregate(kind, name)})


def always(result: Collection, calls: Calls, unit: Collection) -> Collection:
    """The only row of an aggregate without keys, or what the aggregates of nothing are."""
    defaults = {name: lit(0 if call.kind == "count" else None, result.schema.types[at])
                for at, (name, call) in enumerate(calls)}  # fmt: skip
    nothing = project(unit, list(defaults.items()))
    instead = project(result, list(defaults.items()))
    return subtracted(instead, result, nothing)
