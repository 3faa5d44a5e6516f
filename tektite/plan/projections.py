"""Projections that only filter, select or rename."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tektite.expr import Expr, col
from tektite.expr.predicates import conjunction
from tektite.plan.algebra import Operator, Project
from tektite.plan.look_through import permutation
from tektite.values.schema import Schema


def passed_on(operator: Operator) -> tuple[Expr, ...]:
    """Outputs that pass every column on."""
    return tuple([col(name) for name in operator.schema.names])


def filtered(operator: Operator, parts: Iterable[Expr]) -> Operator:
    """The rows of a collection for which all parts are true."""
    tests = list(parts)
    return Project(operator.schema, operator, passed_on(operator), conjunction(tests)) if tests else operator


def selected(operator: Operator, columns: Sequence[int], names: Sequence[str] | None = None) -> Operator:
    """Some columns of a collection, under their own names or others."""
    old = operator.schema.names
    new = [old[column] for column in columns] if names is None else list(names)
    if new == list(old) and list(columns) == list(range(len(old))):
        return operator
    schema = Schema({name: operator.schema.types[column] for name, column in zip(new, columns, strict=True)})
    return Project(schema, operator, tuple([col(old[column]) for column in columns]), None)


def renamed(operator: Operator, names: Sequence[str]) -> Operator:
    """A collection with its columns under other names, by position."""
    return selected(operator, range(len(operator.schema.names)), names)


def below_renaming(operator: Operator) -> tuple[Operator, list[int]]:
    """The operator below projections that only rename and reorder, and its columns in their order."""
    columns = list(range(len(operator.schema.names)))
    while isinstance(operator, Project) and operator.predicate is None:
        found = permutation(operator)
        if found is None:
            break
        columns = [found[column] for column in columns]
        operator = operator.input
    return operator, columns
