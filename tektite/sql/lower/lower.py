"""Lowering: from a decorrelated logical plan to a collection of the engine."""

from __future__ import annotations

from tektite.engine.constants import constants
from tektite.expr import col
from tektite.query.aggregation import aggregate
from tektite.query.builders import filtered, project, reduce_groups
from tektite.query.collection import Collection
from tektite.query.condition_joins import join
from tektite.query.group_functions import AtMostOne
from tektite.query.limits import limited
from tektite.query.loops import Loop, LoopVariable
from tektite.query.number_series import with_series
from tektite.query.set_operations import compare
from tektite.query.windows import windowed
from tektite.sql.logical import (
    Aggregate,
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
    Series,
    Solution,
    Top,
    Union,
    Values,
    Variable,
    Window,
)
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
                return filtered(self.lower(node.input), node.predicate)
            case Project():
                return project(self.lower(node.input), node.outputs)
            case Join():
                left, right = self.lower(node.left), self.lower(node.right)
                return join(left, right, node.kind, node.condition, self.joins)
            case Aggregate():
                return aggregate(self.lower(node.input), node.keys, node.calls, self.unit)
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
                return limited(self.lower(node.input), node.order, node.by, node.limit, node.offset)
            case Window():
                return windowed(self.lower(node.input), node.calls).select(list(node.columns))
            case Series():
                return with_series(self.lower(node.input), node.name, node.start, node.end, node.step, node.exclusive)
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
