"""Computes constant expressions, and removes parts that are always empty: filters by FALSE, joins with nothing.

An outer join thereby becomes an inner join if its filter rejects all rows padded with NULLs: that part is empty.

>>> from tektite.expr import col, lit
>>> from tektite.plan.explain import explain
>>> from tektite.plan.projections import filtered
>>> from tektite.values.types import Int
>>> one = Schema(x=Int)
>>> rows = Rows(one, one.encode([(1,), (2,)]))
>>> before = Concat(one, (filtered(rows, [col("x") > 1, lit(1) < 2]), filtered(rows, [lit(None, Int) > 1])))
>>> print("\\n".join(explain(*fold_constants([before]))))
filter x > 1
  2 constant rows
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tektite.expr.fold import folded, never_true
from tektite.expr.predicates import conjuncts
from tektite.plan.algebra import (
    Aggregate,
    AtLeast,
    Concat,
    First,
    Join,
    Match,
    Negate,
    Operator,
    Project,
    RangeFilter,
    Reduce,
    Rows,
)
from tektite.plan.projections import renamed
from tektite.plan.rules.local import PassContext, rule_for
from tektite.values.schema import Schema


@rule_for(Project, Concat, Negate, Join, Match, RangeFilter, AtLeast, Aggregate, First, Reduce)
def fold_constants(operator: Operator, context: PassContext) -> Operator:
    """An operator with its constants computed, and no rows if it is empty."""
    found = with_folded(operator)
    made = without_nothing(found)
    # an Inspect must see changes, even if they have no effect
    return found if made is not found and context.watched else made


def nothing(schema: Schema) -> Rows:
    """No rows."""
    return Rows(schema, np.empty((len(schema.names), 0), np.int64))


def is_nothing(operator: Operator) -> bool:
    return isinstance(operator, Rows) and not operator.words.shape[1]


def with_folded(operator: Operator) -> Operator:
    """An operator with its constant expressions computed."""
    match operator:
        case Project():
            outputs = tuple([folded(output) for output in operator.outputs])
            predicate = None if operator.predicate is None else folded(operator.predicate)
            if predicate is not None and not conjuncts(predicate):
                predicate = None
            old = (*operator.outputs, operator.predicate)
            if all(new is given for new, given in zip((*outputs, predicate), old, strict=True)):
                return operator
            return Project(operator.schema, operator.input, outputs, predicate)
        case Match():
            where = tuple([part for p in operator.where for part in conjuncts(folded(p))])
            same = len(where) == len(operator.where) and all(a is b for a, b in zip(where, operator.where, strict=True))
            return operator if same else replace(operator, where=where)
    return operator


def without_nothing(operator: Operator) -> Operator:
    """An operator without what is empty, or no rows if it is empty itself."""
    empty = False
    match operator:
        case Project():
            parts = [] if operator.predicate is None else conjuncts(operator.predicate)
            empty = is_nothing(operator.input) or any(never_true(part) for part in parts)
        case Concat():
            parts_left = [part for part in operator.parts if not is_nothing(part)]
            if len(parts_left) == 1:
                return renamed(parts_left[0], operator.schema.names)
            if len(parts_left) < len(operator.parts) and parts_left:
                return Concat(operator.schema, tuple(parts_left))
            empty = not parts_left
        case Match():
            empty = any(is_nothing(clause.operator) for clause in operator.clauses) or any(
                map(never_true, operator.where)
            )
            without = tuple([clause for clause in operator.without if not is_nothing(clause.operator)])
            if not empty and len(without) < len(operator.without):
                return replace(operator, without=without)
        case Join() | RangeFilter() | Negate() | AtLeast() | Aggregate() | First() | Reduce():
            empty = any(is_nothing(given) for given in operator.inputs)
    return nothing(operator.schema) if empty else operator
