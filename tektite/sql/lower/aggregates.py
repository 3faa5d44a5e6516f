"""Lowering aggregates: parts that each have exactly one row for each group, joined by the groups' keys.

Aggregates that are linear (counts, sums, averages) are one part; each least or greatest value, each aggregate of
different values and each that depends on an order is one more. Without keys there is a row even where the input is empty.
"""

from __future__ import annotations

from tektite.expr import Expr, col, lit, rank
from tektite.plan import algebra as plan
from tektite.query.aggregates import ColumnAggregate
from tektite.query.builders import column_numbers, derived, inner_join, project, reduce_groups, with_float_keys
from tektite.query.collection import Collection
from tektite.sql.logical import GATHERED, Aggregate, Call
from tektite.sql.lower.ordered_groups import Gathered
from tektite.values import types


def aggregate(source: Collection, node: Aggregate, unit: Collection) -> Collection:
    """One row for each group, as the node says."""
    given, keys, calls, orders = prepared(source, node)
    linear = {name: call for name, call in calls.items() if call[0] in ("count", "sum", "avg") and not call[2]}
    parts: list[Collection] = []
    if linear or not calls:
        taken = {name: ColumnAggregate(kind, column) for name, (kind, column, _) in linear.items()}
        columns = [*keys, *dict.fromkeys(column for _, column, _ in linear.values() if column is not None)]
        parts.append(given.select(*columns).group_by(keys).agg(**(taken or {"#present": ColumnAggregate("count")})))
    for name, (kind, column, _) in calls.items():
        if name in orders:
            parts.append(gathered(given, keys, name, orders[name], dict(node.calls)[name], node.columns[name]))
        elif name not in linear:
            assert column is not None
            values = given.select(*keys, **{name: column})
            parts.append(extreme(values, keys, name, kind == "max") if kind in ("min", "max") else
                         of_different(values, keys, name, kind))  # fmt: skip
    result = parts[0]
    for part in parts[1:]:
        mine, theirs = column_numbers(result.schema, keys), column_numbers(part.schema, keys)
        result = inner_join(result, part, mine, theirs, nulls_match=True)
    result = result.select(*node.columns)
    return result if node.keys else always(result, node, unit)


def prepared(
    source: Collection, node: Aggregate
) -> tuple[Collection, list[str], dict[str, tuple[str, str | None, bool]], dict[str, list[str]]]:
    """The input with a column for each key and argument, the keys, the calls as (kind, column, distinct), and for those
    that depend on an order the columns of their scalars.
    """
    outputs: dict[str, Expr] = dict(node.keys)
    columns: dict[tuple[object, ...], str] = {}
    calls: dict[str, tuple[str, str | None, bool]] = {}
    orders: dict[str, list[str]] = {}
    for name, call in node.calls:
        made = [argument(scalar, outputs, columns) for scalar in call.expressions]
        calls[name] = (call.kind, None if call.argument is None else made[0], call.distinct)
        if call.kind in GATHERED:
            orders[name] = made
    if not outputs:
        outputs["#row"] = lit(0)
    return project(source, list(outputs.items())), [name for name, _ in node.keys], calls, orders


def argument(scalar: Expr, outputs: dict[str, Expr], columns: dict[tuple[object, ...], str]) -> str:
    """The column that holds a scalar of an aggregate."""
    found = columns.get(scalar.fingerprint)
    if found is None:
        found = columns[scalar.fingerprint] = f"#argument{len(columns)}"
        outputs[found] = scalar
    return found


def gathered(
    given: Collection, keys: list[str], name: str, columns: list[str], call: Call, result: types.Type
) -> Collection:
    """An aggregate of each group's values in an order; the first column holds the values, the others the order."""
    values = given.select(*keys, *dict.fromkeys(columns))
    order = [(col, down, nulls) for col, (_, down, nulls) in zip(columns[1:], call.order, strict=True)]
    function = Gathered.over(values.schema, len(keys), columns[0], order, call)
    return reduce_groups(values, function, keys, {name: result})


def extreme(values: Collection, keys: list[str], name: str, last: bool) -> Collection:
    """The least or greatest value of each group; NULL for a group that has no other."""
    kind = values.schema.types[values.schema.index(name)]
    if kind == types.String:
        return values.top(1, name, keys, last)
    # NULL comes behind every value, whichever end is asked for
    absent = col(name).is_not_null() if last else col(name).is_null()
    found = with_float_keys(values, column_numbers(values.schema, keys))
    outputs = [*((k, col(k)) for k in keys), ("#absent", absent), ("#rank", rank(col(name))), (name, col(name))]
    if kind != types.Float:  # its words order as its values do
        outputs.pop(-2)
    ranked = project(found, outputs)
    first = derived(plan.First(ranked.schema, ranked.operator, len(keys), 1, last), ranked)
    return first.select(*keys, name)


def of_different(values: Collection, keys: list[str], name: str, kind: str) -> Collection:
    """An aggregate of the different values of each group."""
    return values.distinct().group_by(keys).agg(**{name: ColumnAggregate(kind, name)})


def always(result: Collection, node: Aggregate, unit: Collection) -> Collection:
    """The only row of an aggregate without keys, or what the aggregates of nothing are."""
    defaults = {name: lit(0 if call.kind == "count" else None, result.schema.types[at])
                for at, (name, call) in enumerate(node.calls)}  # fmt: skip
    nothing = project(unit, list(defaults.items()))
    instead = project(result, list(defaults.items())).negate()
    return result.concat(nothing, instead)
