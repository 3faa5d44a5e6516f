"""Merges projections of projections, unless something would be computed twice, and drops those that change nothing.

Projections that only select or rename are also merged into aggregates, joins and conjunctions next to them.

>>> from tektite.expr import col
>>> from tektite.plan.algebra import Rows
>>> from tektite.plan.explain import explain
>>> from tektite.values.schema import Schema
>>> from tektite.values.types import Int
>>> one = Schema(x=Int)
>>> rows = Rows(one, one.encode([(1,), (2,)]))
>>> inner = Project(Schema(y=Int), rows, (col("x"),), col("x") > 0)
>>> before = Project(Schema(z=Int), inner, (col("y") + 1,), col("y") < 9)
>>> print("\\n".join(explain(before)))
select z = y + 1 where y < 9
  select y = x where x > 0
    2 constant rows
>>> print("\\n".join(explain(*merge_projections([before]))))
select z = x + 1 where x > 0 and x < 9
  2 constant rows
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from tektite.expr import Expr, shared_columns
from tektite.expr.predicates import conjunction, conjuncts
from tektite.plan.algebra import Aggregate, Join, Match, Operator, Project
from tektite.plan.rules.local import PassContext, rule_for
from tektite.plan.rules.prune_columns import narrowed

MERGED = frozenset((Project, Aggregate, Join, Match))
"""Operators that a projection above them can become part of."""


@rule_for(Project, Aggregate)
def merge_projections(operator: Project | Aggregate, context: PassContext) -> Operator:
    """A projection merged with the one below it, or its input; an aggregate without the projection below it."""
    if isinstance(operator, Aggregate):
        return of_columns(operator)
    found: Operator = operator
    while isinstance(found, Project):
        below = found.input
        if type(below) not in MERGED or context.leaf(below) or (context.shared(below) and not selects(below)):
            break
        made = merged(found)
        if made is found:
            break
        found = made
    return without_effect(found)


def selects(operator: Operator) -> bool:
    """Whether a projection only selects and renames columns: reading it twice computes nothing twice."""
    return (
        isinstance(operator, Project)
        and operator.predicate is None
        and all(output.op == "col" for output in operator.outputs)
    )


def merged(operator: Project) -> Operator:
    """A projection together with the one below it, if nothing that is computed there is needed twice. An aggregate takes other
    names for its columns; a join and a conjunction put out fewer columns, in another order.
    """
    below = operator.input
    if not isinstance(below, Project):
        if operator.predicate is not None or any([output.op != "col" for output in operator.outputs]):
            return operator
        columns = tuple([output.params[0] for output in operator.outputs])
        if isinstance(below, Aggregate) and columns == below.schema.names:
            return replace(below, schema=operator.schema)
        if isinstance(below, Join):
            taken = tuple([below.outputs[below.schema.index(name)] for name in columns])
            return replace(below, schema=operator.schema, outputs=taken)
        if isinstance(below, Match) and columns == operator.schema.names:
            return narrowed(below, [below.schema.index(name) for name in columns])
        return operator
    inner = dict(zip(below.schema.names, below.outputs, strict=True))
    tests = [] if operator.predicate is None else [operator.predicate]
    if not all([output.op in ("col", "lit") for output in below.outputs]):
        mentioned = Counter(name for output in (*operator.outputs, *tests) for name in mentions(output))
        if any(count > 1 and inner[name].op not in ("col", "lit") for name, count in mentioned.items()):
            return operator
    parts = [] if below.predicate is None else conjuncts(below.predicate)
    parts += [test.substitute(inner) for test in tests]
    predicate = conjunction(parts) if parts or below.predicate is not None or tests else None
    outputs = shared_columns(tuple([output.substitute(inner) for output in operator.outputs]))
    return Project(operator.schema, below.input, outputs, predicate)


def of_columns(operator: Aggregate) -> Aggregate:
    """An aggregate over what a projection below it selects its columns from."""
    below = operator.input
    if not isinstance(below, Project) or below.predicate is not None or any(o.op != "col" for o in below.outputs):
        return operator
    places = [below.input.schema.index(output.params[0]) for output in below.outputs]
    calls = [replace(a, column=None if a.column is None else places[a.column]) for a in operator.aggregates]
    return replace(operator, input=below.input, key=tuple([places[c] for c in operator.key]), aggregates=tuple(calls))


def without_effect(operator: Operator) -> Operator:
    """The input of a projection that changes nothing; otherwise the projection."""
    if not isinstance(operator, Project):
        return operator
    passed = tuple([output.params[0] if output.op == "col" else None for output in operator.outputs])
    same = passed == operator.schema.names == operator.input.schema.names
    return operator.input if same and operator.predicate is None else operator


def mentions(expression: Expr) -> list[str]:
    """The columns of an expression, each as often as it is mentioned."""
    return [node.params[0] for node in expression.walk() if node.op == "col"]
