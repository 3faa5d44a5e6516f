"""Finds unique columns of a plan."""

from __future__ import annotations

from tektite.expr import Expr
from tektite.plan.algebra import (
    Aggregate,
    Arrange,
    AtLeast,
    ColumnNumbers,
    First,
    Inspect,
    Join,
    Leave,
    Match,
    Operator,
    Project,
    Read,
    Reduce,
    Rows,
)

_KEY = "_unique_columns"
"""The attribute in which an operator caches its answer, because a part of a plan may be used many times."""


def unique_columns(operator: Operator) -> ColumnNumbers | None:
    """Columns in which no two rows agree, if the plan implies such columns. Then no row occurs twice."""
    known = operator.__dict__
    if _KEY not in known:
        known[_KEY] = _found(operator)
    found: ColumnNumbers | None = known[_KEY]
    return found


def _found(operator: Operator) -> ColumnNumbers | None:
    match operator:
        case Read():
            return operator.readable.unique
        case AtLeast():
            inner = unique_columns(operator.input)
            return tuple(range(len(operator.schema.names))) if inner is None else inner
        case Aggregate():
            return tuple(range(len(operator.key)))
        case First() if operator.count == 1 and not operator.ties:
            return tuple(range(operator.key))
        case Arrange() | Inspect():
            return unique_columns(operator.input)
        case Leave():
            return unique_columns(operator.inner)
        case Rows() if operator.is_set:
            return tuple(range(len(operator.schema.names)))
        case Reduce() if operator.single:
            return tuple(range(operator.key))
        case Join():
            return _joined(operator)
        case Match():
            return _matched(operator)
        case Project():
            return _projected(operator)
    return None


def _projected(operator: Project) -> ColumnNumbers | None:
    """A projection has the unique columns of its input if it keeps all of them."""
    inner = unique_columns(operator.input)
    if inner is None:
        return None
    kept = [o.params[0] if o.op == "col" else None for o in operator.outputs]
    wanted = [operator.input.schema.names[column] for column in inner]
    return tuple(kept.index(name) for name in wanted) if all(name in kept for name in wanted) else None


def _joined(operator: Join) -> ColumnNumbers | None:
    """A join with at most one row for each of the left side's has the columns that tell those apart; any join has those of both
    sides together. A key column counts for the one that it equals.
    """
    left, right = unique_columns(operator.left), unique_columns(operator.right)
    if left is None or right is None:
        return None
    equal = {(1, column): (0, other) for column, other in zip(operator.right_key, operator.left_key, strict=True)}
    mine = [equal.get(column, column) for column in operator.outputs]
    wanted = [(0, column) for column in left]
    if not set(right) <= set(operator.right_key):
        wanted += [equal.get((1, column), (1, column)) for column in right]
    return tuple(map(mine.index, dict.fromkeys(wanted))) if set(wanted) <= set(mine) else None


def _matched(operator: Match) -> ColumnNumbers | None:
    """A conjunction has the columns that tell one relation's rows apart, if keys lead from there to all others; or else as few of
    its columns as do so together.
    """
    keys = [unique_columns(clause.operator) for clause in operator.clauses]
    if None in keys:
        return None
    names = operator.schema.names
    terms = [
        {clause.terms[column] for column in key or () if not isinstance(clause.terms[column], Expr)}
        for clause, key in zip(operator.clauses, keys, strict=True)
    ]

    def tell_apart(known: set[str]) -> bool:
        """Whether at most one row of each relation agrees with values of some variables."""
        left = list(range(len(terms)))
        while reached := [at for at in left if terms[at] <= known]:
            left = [at for at in left if at not in reached]
            known = known.union(*(operator.clauses[at].variables for at in reached))
        return not left

    for key in terms:
        chosen = {str(variable) for variable in key if variable in names}
        if len(chosen) == len(key) and tell_apart(chosen):
            return _numbers(operator, chosen)
    chosen = set(names)
    if not tell_apart(chosen):
        return None
    for name in reversed(names):
        if tell_apart(chosen - {name}):
            chosen.remove(name)
    return _numbers(operator, chosen)


def _numbers(operator: Operator, names: set[str]) -> ColumnNumbers:
    return tuple(sorted(map(operator.schema.names.index, names)))
