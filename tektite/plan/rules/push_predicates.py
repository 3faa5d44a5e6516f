"""Moves predicates towards the rows that they test, unless that duplicates an index or state.

A filter passes through projections, unions, distincts, groups (by their keys), and becomes a condition of the conjunction that it
tests. It stops above parts with other readers, and above relations that are joined through a shared index. A predicate that
may fail on a row stops above everything that may remove the row first.

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
)
from tektite.plan.projections import filtered
from tektite.plan.rules.local import PassContext, rule_for
from tektite.plan.rules.prune_columns import stands_whole
from tektite.plan.walk import is_shared, with_inputs


@rule_for(Project, Match)
def push_predicates(operator: Project | Match, context: PassContext) -> Operator:
    """A projection or a conjunction without predicates that can be tested further down."""
    if isinstance(operator, Match):
        return settled(operator, context)
    if operator.predicate is None or isinstance(operator.input, Read):
        return operator
    below = _Push(context).place(operator.input, conjuncts(operator.predicate))
    return Project(operator.schema, below, operator.outputs, None)


def subtracts(operator: Operator) -> bool:
    """Whether a collection is a sum in which rows are taken away again. What fails on such a row cancels above the sum alone."""
    match operator:
        case Negate():
            return True
        case Concat():
            return any(subtracts(part) for part in operator.parts)
        case Project():
            return subtracts(operator.input)
    return False


class _Push:
    """Pushes predicates down."""

    def __init__(self, context: PassContext) -> None:
        self._context = context

    def place(self, operator: Operator, parts: list[Expr], alone: bool = True) -> Operator:
        """The rows of a collection that pass all parts, each part as far down as it goes. `alone` says that nobody else reads
        it: what keeps state for several is not made again for one of them.
        """
        if not parts or is_shared(operator):
            return filtered(operator, parts)
        alone = alone and not self._context.shared(operator)
        if not isinstance(operator, Project | Concat | Negate | Match) or subtracts(operator):
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
        """Parts into the sides of a join that are arranged for it anyway. What reads only keys goes into both sides of a join of
        groups; what reads more stays above it, so that both sides keep the same groups.
        """
        sides = list(join.inputs)
        keys = tuple(zip(join.left_key, join.right_key, strict=True))
        stay = []
        for part in parts:
            places = {name: join.outputs[join.schema.index(name)] for name in part.columns()}
            of = {side for side, _ in places.values()}
            if join.one_to_one:
                pairs = {name: [key for key in keys if key[side] == at] for name, (side, at) in places.items()}
                targets = [0, 1] if places and all(pairs.values()) else []
                columns = [{name: pair[0][side] for name, pair in pairs.items()} for side in targets]
            else:
                targets = [side for side in of if len(of) == 1 and not stands_whole(sides[side])]
                columns = [{name: at for name, (_, at) in places.items()} for _ in targets]
            for side, found in zip(targets, columns, strict=True):
                names = sides[side].schema.names
                moved = part.substitute({name: col(names[at]) for name, at in found.items()})
                sides[side] = self.place(sides[side], [moved])
            if not targets:
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
            alone = not self._context.shared(clause.operator)
            clauses[at] = Clause(self.place(clause.operator, [part.substitute(columns)], alone), clause.terms)
        if len(stay) == len(match.where):
            return match
        return replace(match, clauses=tuple(clauses), where=tuple(stay))


def settled(match: Match, context: PassContext) -> Match:
    """A conjunction whose conditions on one relation are tested by it, if it is arranged for the conjunction anyway."""
    return _Push(context).settled(match) if match.where else match


def tests(part: Expr, clause: Clause) -> bool:
    """Whether a condition reads one relation alone, and nobody shares an index of it."""
    return not stands_whole(clause.operator) and reads_only(part, clause.variables)
