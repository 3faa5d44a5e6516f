"""A join of two is a conjunction of two, whose variables are called after the columns that they stand for.

So a query says the same whether it was written as a join, as a rule or in SQL. Projections that only rename are looked through:
what lies below them has the indexes.

>>> from tektite.plan.algebra import Rows
>>> from tektite.plan.explain import explain
>>> from tektite.values.types import Int
>>> edge = Schema(src=Int, dst=Int)
>>> edges = Rows(edge, edge.encode([(1, 2), (2, 3)]))
>>> before = Join(Schema(src=Int, end=Int), edges, edges, (1,), (0,), ((0, 0), (1, 1)))
>>> print("\\n".join(explain(before)))
join on dst = src
  2 constant rows
  2 constant rows
>>> print("\\n".join(explain(*match_joins([before]))))
select src, end = dst#2
  join of (src, dst), (dst, dst#2) to (src, dst#2)
    2 constant rows
    2 constant rows
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tektite.expr import col
from tektite.plan.algebra import Clause, Join, Match, Operator, Project
from tektite.plan.conjunctions.binary import join_at_a_time
from tektite.plan.projections import below_renaming
from tektite.plan.walk import transform, with_inputs
from tektite.values.schema import Schema


def match_joins(roots: Sequence[Operator]) -> list[Operator]:
    """Plans with conjunctions in the place of joins, except where NULL equals NULL: there it is a value like others. What joins
    nothing is a projection.
    """

    def rewrite(operator: Operator, inputs: tuple[Operator, ...]) -> Operator:
        found = with_inputs(operator, inputs)
        if isinstance(found, Join) and is_conjunction(found):
            return matched(found)
        if isinstance(found, Match):
            clauses, without = tuple(map(below_names, found.clauses)), tuple(map(below_names, found.without))
            if (clauses, without) != (found.clauses, found.without):
                found = replace(found, clauses=clauses, without=without)
            return join_at_a_time(found, [0]) if len(found.inputs) == 1 else found
        return found

    return transform(roots, rewrite)


def is_conjunction(join: Join) -> bool:
    """Whether a join says what a conjunction can: keys of one type, each column once, and NULL equals nothing."""
    kinds = [
        [side.schema.types[c] for c in key] for side, key in ((join.left, join.left_key), (join.right, join.right_key))
    ]
    once = all(len(set(key)) == len(key) for key in (join.left_key, join.right_key))
    return not join.nulls_match and kinds[0] == kinds[1] and once


def matched(join: Join) -> Operator:
    """A join as the conjunction of its sides, in the join's columns. Variables are called after columns, the left ones first."""
    taken: set[str] = set()
    sides = [[fresh(name, taken) for name in given.schema.names] for given in join.inputs]
    for left, right in zip(join.left_key, join.right_key, strict=True):
        sides[1][right] = sides[0][left]
    outputs = [sides[side][column] for side, column in join.outputs]
    shown = dict(zip(outputs, join.schema.types, strict=True))
    keys = {sides[0][column] for column in join.left_key}
    clauses = [
        below_names(Clause(given, tuple([name if name in shown or name in keys else None for name in names])))
        for given, names in zip(join.inputs, sides, strict=True)
    ]
    found = Match(Schema(shown), tuple(clauses), (), (), "auto")
    return found if found.schema == join.schema else Project(join.schema, found, tuple(map(col, outputs)), None)


def fresh(wish: str, taken: set[str]) -> str:
    """A name that is not taken, as like the wished one as can be."""
    name, count = wish, 1
    while name in taken:
        count += 1
        name = f"{wish}#{count}"
    taken.add(name)
    return name


def below_names(clause: Clause) -> Clause:
    """A clause over what lies below projections that only rename and reorder."""
    base, columns = below_renaming(clause.operator)
    if base is clause.operator:
        return clause
    terms = list(clause.terms)
    for term, column in zip(clause.terms, columns, strict=True):
        terms[column] = term
    return Clause(base, tuple(terms))
