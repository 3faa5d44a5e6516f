"""Lowering: from a logical plan, after its rewrites, to a collection of the engine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from tektite.engine.constants import constants
from tektite.expr import Expr, col, greatest, least, lit
from tektite.query.builders import inner_join, project, reduce_groups
from tektite.query.collection import Collection
from tektite.query.group_functions import AtMostOne
from tektite.query.loops import Loop, LoopVariable
from tektite.sql.logical import (
    Aggregate,
    Block,
    Compare,
    Distinct,
    Filter,
    Fixpoint,
    Join,
    Node,
    Once,
    Project,
    Recall,
    Scan,
    Solution,
    Top,
    Union,
    Values,
    Variable,
    Window,
)
from tektite.sql.lower.aggregates import aggregate
from tektite.sql.lower.blocks import matched
from tektite.sql.lower.joins import join
from tektite.sql.lower.window_functions import Windows
from tektite.values.schema import Schema


class Lowering:
    """Makes the collections of one statement's plan. A node that is read twice becomes one collection."""

    def __init__(self, unit: Collection, joins: str = "auto") -> None:
        """`unit` is a collection of exactly one row; `joins` forces a join strategy."""
        self.unit = unit
        self.joins = joins
        self._made: dict[int, tuple[Node, Collection]] = {}
        self._variables: dict[Variable, LoopVariable] = {}
        self._solved: dict[int, dict[Variable, Collection]] = {}

    def lower(self, node: Node) -> Collection:
        """The collection of a node, its columns in the node's order."""
        found = self._made.get(id(node))
        if found is None:
            found = self._made[id(node)] = (node, self._lower(node))
        return found[1]

    def _lower(self, node: Node) -> Collection:
        match node:
            case Scan():
                return renamed(node.collection, node.names)
            case Values():
                return constants(self.unit.engine, Schema(node.columns), node.rows)
            case Filter():
                return self.lower(node.input).filter(node.predicate)
            case Project():
                return project(self.lower(node.input), node.outputs)
            case Join():
                return join(self.lower(node.left), self.lower(node.right), node.kind, node.condition)
            case Block():
                return matched([self.lower(r) for r in node.relations], node, self.joins)
            case Aggregate():
                return aggregate(self.lower(node.input), node, self.unit)
            case Distinct():
                return self.lower(node.input).distinct()
            case Once():
                return once(self.lower(node.input), node.by)
            case Union():
                first, *others = [renamed(self.lower(part), node.names) for part in node.parts]
                return first.concat(*others)
            case Compare():
                left, right = self.lower(node.left), self.lower(node.right)
                return compare(left, renamed(right, left.schema.names), node.kind, node.every)
            case Top():
                return top(self.lower(node.input), node)
            case Window():
                return windowed(self.lower(node.input), node)
            case Recall():
                return renamed(self._variables[node.variable], node.names)
            case Solution():
                assert isinstance(node.input, Fixpoint)
                return renamed(self._solve(node.input)[node.variable], node.names)
        raise AssertionError(f"cannot lower {type(node).__name__}")

    def _solve(self, node: Fixpoint) -> dict[Variable, Collection]:
        found = self._solved.get(id(node))
        if found is None:
            with Loop(", ".join(v.title for v in node.variables)) as loop:
                for variable in node.variables:
                    columns = Schema({f"column{at}": type for at, type in enumerate(variable.types)})
                    self._variables[variable] = loop.variable(variable.title, schema=columns)
                definitions = [self.lower(definition) for definition in node.definitions]
                for variable, definition in zip(node.variables, definitions, strict=True):
                    self._variables[variable].set(definition)
                pairs = zip(node.variables, definitions, strict=True)
                found = {variable: loop.leave(definition) for variable, definition in pairs}
            self._solved[id(node)] = found
        return found


# ---------------------------------------------------------------------- operators


def renamed(collection: Collection, names: tuple[str, ...]) -> Collection:
    """A collection with its columns under other names, by position."""
    old = collection.schema.names
    if old == names:
        return collection
    return project(collection, [(new, col(name)) for new, name in zip(names, old, strict=True)])


def once(collection: Collection, by: tuple[str, ...]) -> Collection:
    """The same rows; a second one in a group fails the query."""
    names = collection.schema.names
    kinds = dict(zip(names, collection.schema.types, strict=True))
    columns = {name: kinds[name] for name in names if name not in by}
    return reduce_groups(collection, AtMostOne(len(by)), by, columns).select(*names)


def repeated(collection: Collection, count: str) -> Collection:
    """Each row as many times as one of its columns says, without that column."""
    names = [name for name in collection.schema.names if name != count]
    columns = {name: collection.schema.types[collection.schema.index(name)] for name in names}

    def repeat(table: pa.Table) -> tuple[pa.Table, Any]:
        times = table[count].to_numpy()
        rows = np.repeat(np.arange(table.num_rows), times)
        return table.select(names).take(rows), rows

    return collection.flat_map(repeat, **columns)


def compare(left: Collection, right: Collection, kind: str, every: bool) -> Collection:
    """INTERSECT and EXCEPT; rows are compared as groups are, NULL with NULL."""
    names = left.schema.names
    keys = tuple(range(len(names)))
    if not every:
        mine, theirs = left.distinct(), right.distinct()
        common = inner_join(mine, theirs, keys, keys, nulls_match=True)
        return common if kind == "intersect" else mine.concat(common.negate())
    from tektite.query.aggregates import sum as total

    one = left.with_columns(**{"#left": lit(1), "#right": lit(0)})
    other = right.with_columns(**{"#left": lit(0), "#right": lit(1)})
    counted = one.concat(other).group_by(names).agg(**{"#left": total("#left"), "#right": total("#right")})
    ours, others = col("#left"), col("#right")
    times: Expr = least(ours, others) if kind == "intersect" else greatest(ours - others, 0)
    chosen = project(counted, [*((n, col(n)) for n in names), ("#times", times)], times > 0)
    return repeated(chosen, "#times")


def top(collection: Collection, node: Top) -> Collection:
    """The rows of an order between an offset and a limit."""
    names = collection.schema.names
    if node.limit == 0:
        return collection.filter(lit(False))
    order, helpers = [], {}
    descending = []
    for at, ordering in enumerate(node.order):
        if ordering.nulls_first:
            helpers[f"#null{at}"] = col(ordering.column).is_not_null()
            order.append(f"#null{at}")
            descending.append(False)
        if ordering.column not in order and ordering.column not in node.by:
            order.append(ordering.column)
            descending.append(ordering.descending)
    source = collection.with_columns(**helpers) if helpers else collection
    first = source.top(node.offset, order, node.by, descending) if node.offset else None
    if node.limit is None:
        found = source
    else:
        found = source.top(node.offset + node.limit, order, node.by, descending)
    if first is not None:
        found = found.concat(first.negate())
    return found.select(*names) if helpers else found


def windowed(collection: Collection, node: Window) -> Collection:
    """The rows with the results of window functions: those over one partition in one pass over it."""
    found = collection
    waiting = list(node.calls)
    while waiting:
        by = waiting[0][1].by
        chosen = [(name, call) for name, call in waiting if call.by == by]
        waiting = [(name, call) for name, call in waiting if call.by != by]
        keys = list(dict.fromkeys(by))
        kinds = dict(zip(found.schema.names, found.schema.types, strict=True))
        rest = {name: kind for name, kind in kinds.items() if name not in keys}
        given = {name: kinds[name] for name in (*keys, *rest)}
        function = Windows.over(given, len(keys), [call for _, call in chosen])
        columns = rest | {name: call.type for name, call in chosen}
        found = reduce_groups(found, function, keys, columns).select(*kinds, *(name for name, _ in chosen))
    return found.select(*node.columns)
