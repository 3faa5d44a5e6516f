"""Finds the arrangement below operators that only rename, reorder or filter."""

from __future__ import annotations

from tektite.expr import Expr
from tektite.expr.fold import can_fail
from tektite.plan.algebra import Arrange, Operator, Project


def look_through(operator: Operator) -> tuple[Operator, list[int], Expr | None]:
    """The explicit arrangement below a filter, its columns in the operator's order, and the filter; or the operator itself."""
    columns = list(range(len(operator.schema.names)))
    if isinstance(operator, Project) and isinstance(operator.input, Arrange):
        found = permutation(operator)
        predicate = operator.predicate
        # The rows that a filter fails on must not depend on what they are joined with.
        if found is not None and (predicate is None or not can_fail(predicate, operator.input.schema.positions)):
            return operator.input, found, predicate
    return operator, columns, None


def permutation(operator: Project) -> list[int] | None:
    """The input column of each output, if the projection only reorders, renames and filters its input's columns."""
    if any(output.op != "col" for output in operator.outputs):
        return None
    columns = [operator.input.schema.index(output.params[0]) for output in operator.outputs]
    return columns if sorted(columns) == list(range(len(operator.input.schema.names))) else None
