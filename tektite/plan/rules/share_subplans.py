"""Computes equal parts of a plan once, whatever their columns are called.

>>> from tektite.plan.algebra import Rows
>>> from tektite.plan.explain import explain
>>> from tektite.values.schema import Schema
>>> from tektite.values.types import Int
>>> x, y = Schema(x=Int), Schema(y=Int)
>>> rows = [Rows(schema, schema.encode([(1,)])) for schema in (x, y)]
>>> before = Concat(x, (AtLeast(x, rows[0], 1), AtLeast(y, rows[1], 1)))
>>> print("\\n".join(explain(*share_subplans([before]))))
union all
  #1 distinct
    1 constant row
  select y = x
    as #1 above
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tektite.expr import Expr, col
from tektite.plan.algebra import (
    Aggregate,
    AtLeast,
    Clause,
    Concat,
    First,
    Join,
    Match,
    Negate,
    Operator,
    Project,
    RangeFilter,
    Read,
    Reduce,
    Rows,
)
from tektite.plan.projections import renamed
from tektite.plan.walk import transform, walk, with_inputs

WORTHWHILE = (Aggregate, AtLeast, First, Join, Match, RangeFilter, Reduce)
"""Operators that keep state. Sharing the operators between them would cost more than computing them again."""


def share_subplans(roots: Sequence[Operator]) -> list[Operator]:
    """Plans in which equal parts are one."""
    if sum(isinstance(operator, WORTHWHILE) for operator in walk(roots)) < 2:
        return list(roots)
    numbers: dict[Any, int] = {}
    known: dict[Operator, int] = {}
    first: dict[int, Operator] = {}

    def number_of(operator: Operator) -> int:
        """The number of an operator. Equal operators have the same number. One that is not analysed is equal only to itself."""
        if operator not in known:
            known[operator] = numbers.setdefault(("itself", operator), len(numbers))
        return known[operator]

    def rewrite(operator: Operator, inputs: tuple[Operator, ...]) -> Operator:
        found = with_inputs(operator, inputs)
        said = describe(found, [number_of(given) for given in inputs])
        try:
            number = numbers.setdefault((said, found.schema.types), len(numbers))
        except TypeError:  # a function that cannot be compared
            number = number_of(found)
        known[found] = number
        original = first.setdefault(number, found)
        if original is found or not isinstance(found, WORTHWHILE):
            return found
        again = renamed(original, found.schema.names)
        known[again] = number
        return again

    return transform(roots, rewrite)


def describe(operator: Operator, inputs: Sequence[int]) -> tuple[Any, ...]:
    """A description of an operator over inputs with these numbers that does not depend on column names."""
    places = [{name: col(str(at)) for at, name in enumerate(given.schema.names)} for given in operator.inputs]

    def scalar(expression: Expr | None) -> Any:
        return None if expression is None else expression.substitute(places[0]).fingerprint

    said: Any
    match operator:
        case Read() | Rows():
            said = operator.parameters()
        case Project():
            said = (tuple([scalar(output) for output in operator.outputs]), scalar(operator.predicate))
        case Concat() | Negate() | Join() | RangeFilter() | AtLeast() | Aggregate() | First():
            said = operator.parameters()
        case Reduce():
            said = (operator.key, operator.function, operator.together)
        case Match():
            said = conjunction(operator)
        case _:
            said = (operator,)
    return (type(operator).__name__, tuple(inputs), said)


def conjunction(match: Match) -> tuple[Any, ...]:
    """The description of a conjunction."""
    numbers: dict[str, str] = {}
    for clause in match.clauses:
        for variable in clause.variables:
            numbers.setdefault(variable, str(len(numbers)))
    columns = {variable: col(number) for variable, number in numbers.items()}

    def terms(clause: Clause) -> tuple[Any, ...]:
        return tuple([numbers[t] if isinstance(t, str) else None if t is None else t.fingerprint for t in clause.terms])

    clauses = tuple([terms(clause) for clause in match.clauses]), tuple([terms(clause) for clause in match.without])
    where = tuple([part.substitute(columns).fingerprint for part in match.where])
    shown = tuple([numbers[name] for name in match.schema.names])
    order = tuple([numbers.get(o, o) if isinstance(o, str) else o for o in match.order or ()])
    return clauses, where, shown, match.strategy, order
