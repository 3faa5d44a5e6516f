"""Predicates move towards the rows that they test, as far as no index and no state is made twice by that.

A filter passes through projections, unions, distincts, groups (by their keys), and becomes a condition of the conjunction that it
tests. It stops above what others read as well, and above what is joined through an index that others share. One that may fail
on a row stops above everything that may keep the row away from it.

>>> from tektite.expr import col
>>> from tektite.plan.algebra import Rows
>>> from tektite.plan.explain import explain
>>> from tektite.values.schema import Schema
>>> from tektite.values.types import Int
>>> two = Schema(x=Int, y=Int)
>>> rows = Rows(two, two.encode([(1, 2)]))
>>> before = filtered(AtLeast(two, Concat(two, (rows, rows)), 1), [col("x") > 1])
>>> print("\\n".join(explain(*push_predicates([before]))))
select x, y
  distinct
    union all
      filter x > 1
        1 constant row
      filter x > 1
        1 constant row
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tektite.expr import Expr, col
from tektite.expr.fold import can_fail
from tektite.expr.predicates import conjuncts, reads_only
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
    count_uses,
)
from tektite.plan.projections import filtered
from tektite.plan.rules.prune_columns import stands_whole
from tektite.plan.walk import is_shared, transform, with_inputs


def push_predicates(roots: Sequence[Operator]) -> list[Operator]:
    """Plans with predicates as far down as they go."""
    readers = dict(count_uses(*roots))

    def rewrite(operator: Operator, inputs: tuple[Operator, ...]) -> Operator:
        found = with_inputs(operator, inputs)
        push = _Push(readers)
        if isinstance(found, Project) and found.predicate is not None:
            found = Project(found.schema, push.place(found.input, conjuncts(found.predicate)), found.outputs, None)
        elif isinstance(found, Match):
            found = push.settled(found)
        if found is not operator:
            readers[found] = readers.get(operator, 1)
        return found

    return transform(roots, rewrite)


class _Push:
    """Pushes predicates down. `readers` says how many read what is part of the plan already."""

    def __init__(self, readers: dict[Operator, int]) -> None:
        self._readers = readers

    def place(self, operator: Operator, parts: list[Expr], alone: bool = True) -> Operator:
        """The rows of a collection that pass all parts, each part as far down as it goes. `alone` says that nobody else reads
        it: what keeps state for several is not made again for one of them.
        """
        alone = alone and self._readers.get(operator, 1) <= 1
        if not parts or is_shared(operator):
            return filtered(operator, parts)
        if not isinstance(operator, Project | Concat | Negate | Match):
            # Below, it would be tested for rows that do not come this far.
            risky = [part for part in parts if can_fail(part, operator.schema.positions)]
            if risky:
                safe = [part for part in parts if not any(part is other for other in risky)]
                return filtered(self.place(operator, safe, alone), risky)
        match operator:
            case Project():
                inner = dict(zip(operator.schema.names, operator.outputs, strict=True))
                own = [] if operator.predicate is None else conjuncts(operator.predicate)
                below = self.place(operator.input, own + [part.substitute(inner) for part in parts], alone)
                return Project(operator.schema, below, operator.outputs, None)
            case Concat():
                placed = [self._by_position(given, operator, parts, alone) for given in operator.parts]
                return Concat(operator.schema, tuple(placed))
            case Negate():
                return Negate(operator.schema, self._by_position(operator.input, operator, parts, alone))
            case AtLeast() if alone:
                below = self._by_position(operator.input, operator, parts, alone)
                return replace(operator, input=below)
            case Aggregate() if alone and operator.key:
                return self._below_groups(operator, operator.key, parts)
            case First() | Reduce() if alone and operator.key:
                return self._below_groups(operator, range(operator.key), parts)
            case Match() if alone:
                return self.settled(replace(operator, where=(*operator.where, *parts)))
            case RangeFilter() if alone and not stands_whole(operator.input):
                return replace(operator, input=self._by_position(operator.input, operator, parts, alone))
            case Join() if alone:
                return self._into_sides(operator, parts)
        return filtered(operator, parts)

    def _by_position(self, given: Operator, operator: Operator, parts: list[Expr], alone: bool) -> Operator:
        """Parts over an operator's columns, placed in an input that has the same columns by position."""
        names = zip(operator.schema.names, given.schema.names, strict=True)
        columns = {new: col(old) for new, old in names if new != old}
        return self.place(given, [part.substitute(columns) for part in parts] if columns else parts, alone)

    def _below_groups(self, operator: Aggregate | First | Reduce, key: Sequence[int], parts: list[Expr]) -> Operator:
        """Parts that read only what tells groups apart go below the operator on groups."""
        given = operator.input
        keys = {operator.schema.names[at]: col(given.schema.names[column]) for at, column in enumerate(key)}
        down = [part for part in parts if part.columns() and reads_only(part, keys)]
        stay = [part for part in parts if not (part.columns() and reads_only(part, keys))]
        if not down:
            return filtered(operator, stay)
        below = self.place(given, [part.substitute(keys) for part in down])
        return filtered(replace(operator, input=below), stay)

    def _into_sides(self, join: Join, parts: list[Expr]) -> Operator:
        """Parts into the sides of a join that are arranged for it anyway."""
        sides = list(join.inputs)
        stay = []
        for part in parts:
            places = {name: join.outputs[join.schema.index(name)] for name in part.columns()}
            of = {side for side, _ in places.values()}
            if len(of) == 1 and not stands_whole(sides[side := of.pop()]):
                names = sides[side].schema.names
                moved = part.substitute({name: col(names[column]) for name, (_, column) in places.items()})
                sides[side] = self.place(sides[side], [moved])
            else:
                stay.append(part)
        return filtered(with_inputs(join, sides), stay)

    def settled(self, match: Match) -> Match:
        """A conjunction whose conditions on one relation are tested by it, if it is arranged for the conjunction anyway."""
        clauses = list(match.clauses)
        stay: list[Expr] = []
        types = {variable: (0, type) for variable, type in match.types.items()}
        for part in match.where:
            at = next((at for at, clause in enumerate(clauses) if part.columns() and tests(part, clause)), None)
            if at is not None and can_fail(part, types):
                at = None
            if at is None:
                stay.append(part)
                continue
            clause = clauses[at]
            names = clause.operator.schema.names
            columns = {variable: col(names[columns[0]]) for variable, columns in clause.variables.items()}
            alone = self._readers.get(clause.operator, 1) <= 1
            clauses[at] = Clause(self.place(clause.operator, [part.substitute(columns)], alone), clause.terms)
        if len(stay) == len(match.where):
            return match
        return replace(match, clauses=tuple(clauses), where=tuple(stay))


def tests(part: Expr, clause: Clause) -> bool:
    """Whether a condition reads one relation alone, and nobody shares an index of it."""
    given = clause.operator
    private = not stands_whole(given) or (isinstance(given, Read) and given.readable.is_stream)
    return private and reads_only(part, clause.variables)
