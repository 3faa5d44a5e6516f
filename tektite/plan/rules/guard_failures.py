"""Conditions of a conjunction that may fail on a row are tested last, over the rows that pass everything else.

A conjunction is kept up to date by several ways of joining its relations. What fails on the way would be counted differently by
each of them. Over the result, an error comes and goes with the row that it is of, and the other conditions guard it.

>>> from tektite.expr import col
>>> from tektite.plan.algebra import Clause, Rows
>>> from tektite.plan.explain import explain
>>> from tektite.values.types import Int
>>> pair = Schema(x=Int, y=Int)
>>> rows = Rows(pair, pair.encode([(1, 2)]))
>>> clauses = (Clause(rows, ("a", "b")), Clause(rows, ("b", "c")))
>>> before = Match(Schema(a=Int), clauses, (), (col("a") < 9, col("a") + col("c") > 5), "auto")
>>> after, = guard_failures([before])
>>> print(explain(after)[0])
select a where a + c > 5
>>> [str(part) for part in after.input.where]
['a < 9']
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tektite.expr import col
from tektite.expr.fold import can_fail
from tektite.expr.predicates import conjunction
from tektite.plan.algebra import Match, Operator, Project
from tektite.plan.walk import transform, with_inputs
from tektite.values.schema import Schema


def guard_failures(roots: Sequence[Operator]) -> list[Operator]:
    """Plans whose conjunctions have no condition that may fail."""

    def rewrite(operator: Operator, inputs: tuple[Operator, ...]) -> Operator:
        found = with_inputs(operator, inputs)
        return guarded(found) if isinstance(found, Match) else found

    return transform(roots, rewrite)


def guarded(match: Match) -> Operator:
    """A conjunction under a filter by its conditions that may fail."""
    types = {variable: (0, type) for variable, type in match.types.items()}
    risky = [part for part in match.where if can_fail(part, types)]
    if not risky:
        return match
    safe = tuple([part for part in match.where if not any(part is other for other in risky)])
    names = match.schema.names
    tested = [name for part in risky for name in part.columns() if name not in names]
    columns = dict(zip(names, match.schema.types, strict=True)) | {name: match.types[name] for name in tested}
    inner = replace(match, schema=Schema(columns), where=safe)
    return Project(match.schema, inner, tuple([col(name) for name in names]), conjunction(risky))
