"""Turns joins of two into conjunctions, with variables named after columns.

So a query has the same plan whether it was written as a join, as a rule or in SQL. Projections that only rename are skipped,
because the indexes belong to the operators below them.

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

from dataclasses import replace

from tektite.expr import col
from tektite.plan.algebra import Clause, Join, Match, Operator, Project
from tektite.plan.conjunctions.binary import join_at_a_time
from tektite.plan.names import take_name
from tektite.plan.projections import below_renaming
from tektite.plan.rules.local import PassContext, rule_for
from tektite.values.schema import Schema


@rule_for(Join, Match)
def match_joins(operator: Join | Match, context: PassContext) -> Operator:
    """A join as a conjunction, unless NULL equals NULL in it. A conjunction without projections that only rename. A
    conjunction of one relation as a projection.
    """
    if isinstance(operator, Join):
        return matched(operator) if is_conjunction(operator) else operator
    if any([type(given) is Project for given in operator.inputs]):
        clauses, without = tuple(map(below_names, operator.clauses)), tuple(map(below_names, operator.without))
        if (clauses, without) != (operator.clauses, operator.without):
            operator = replace(operator, clauses=clauses, without=without)
    return join_at_a_time(operator, [0]) if len(operator.inputs) == 1 else operator


def is_conjunction(join: Join) -> bool:
    """Whether a join can be a conjunction: keys have the same types, each column is used once, and NULL equals nothing."""
    kinds = [
        [side.schema.types[c] for c in key] for side, key in ((join.left, join.left_key), (join.right, join.right_key))
    ]
    once = all(len(set(key)) == len(key) for key in (join.left_key, join.right_key))
    return not join.nulls_match and kinds[0] == kinds[1] and once


def matched(join: Join) -> Operator:
    """A join as the conjunction of its sides, in the join's columns. Variables are called after columns, the left ones first."""
    taken: set[str] = set()
    sides = [[take_name(name, taken) for name in given.schema.names] for given in join.inputs]
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


def below_names(clause: Clause) -> Clause:
    """A clause without projections that only rename and reorder."""
    base, columns = below_renaming(clause.operator)
    if base is clause.operator:
        return clause
    terms = list(clause.terms)
    for term, column in zip(clause.terms, columns, strict=True):
        terms[column] = term
    return Clause(base, tuple(terms))
