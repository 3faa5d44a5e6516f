"""Drops DISTINCT where rows are unique, and the check of a scalar subquery that has one row for each key.

A semi join with a relation of unique keys thereby becomes an inner join over an existing index.

>>> from tektite.plan.algebra import Concat, Rows
>>> from tektite.plan.explain import explain
>>> from tektite.values.schema import Schema
>>> from tektite.values.types import Int
>>> one = Schema(x=Int)
>>> once, twice = (Rows(one, one.encode(rows)) for rows in ([(1,), (2,)], [(1,), (1,)]))
>>> before = Concat(one, (AtLeast(one, once, 1), AtLeast(one, twice, 1)))
>>> print("\\n".join(explain(*drop_distinct([before]))))
union all
  2 constant rows
  distinct
    2 constant rows
"""

from __future__ import annotations

from tektite.plan.algebra import AtLeast, Operator, Reduce
from tektite.plan.projections import renamed
from tektite.plan.rules.local import PassContext, rule_for
from tektite.plan.unique import unique_columns


@rule_for(AtLeast, Reduce)
def drop_distinct(operator: AtLeast | Reduce, context: PassContext) -> Operator:
    """The input of a DISTINCT, or of a check, if its rows are unique; otherwise the operator."""
    if not (operator.only_checks if isinstance(operator, Reduce) else operator.times == 1):
        return operator
    unique = unique_columns(operator.input)
    if unique is None or (isinstance(operator, Reduce) and not set(unique) <= set(range(operator.key))):
        return operator
    return renamed(operator.input, operator.schema.names)
