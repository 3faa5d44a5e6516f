"""Drops DISTINCT where each row is there once already, and the check of a scalar subquery that has one row for each key.

A semi join with a relation in which each key is there at most once becomes an inner join by that, over the index that is there.

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

from collections.abc import Sequence

from tektite.plan.algebra import AtLeast, Operator, Reduce
from tektite.plan.projections import renamed
from tektite.plan.unique import unique_columns
from tektite.plan.walk import transform, with_inputs


def drop_distinct(roots: Sequence[Operator]) -> list[Operator]:
    """Plans that neither make distinct what is a set already, nor check what cannot fail."""

    def rewrite(operator: Operator, inputs: tuple[Operator, ...]) -> Operator:
        found = with_inputs(operator, inputs)
        if isinstance(found, AtLeast) and found.times == 1 and unique_columns(found.input) is not None:
            return renamed(found.input, found.schema.names)
        if isinstance(found, Reduce) and found.only_checks:
            unique = unique_columns(found.input)
            if unique is not None and set(unique) <= set(range(found.key)):
                return renamed(found.input, found.schema.names)
        return found

    return transform(roots, rewrite)
