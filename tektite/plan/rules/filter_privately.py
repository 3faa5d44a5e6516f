"""Filters a table before indexing it, if a conjunction needs few of its rows and an index that does not exist yet.

Conjunctions normally read whole tables, so that queries share indexes. If no existing index serves and the filter leaves few
rows, a private index of these rows is cheaper to make and to keep than an index of the whole table. The rule applies only where
the planner chooses order and strategy.

>>> from types import SimpleNamespace
>>> from tektite.plan.explain import explain
>>> from tektite.values.schema import Schema
>>> from tektite.values.types import Int
>>> orders = Schema(id=Int, customer=Int, kind=Int)
>>> tables = [SimpleNamespace(name=name, is_stream=False, orders=[(0,)]) for name in ("orders", "customers")]
>>> clauses = Clause(Read(orders, tables[0]), ("o", "c", "k")), Clause(Read(Schema(id=Int), tables[1]), ("c",))
>>> before = Match(Schema(o=Int), clauses, (), (col("k") == 3,), "auto")
>>> print("\\n".join(explain(*filter_privately([before]))))
join of (o, c), (c) to (o)
  select id, customer where kind == 3
    read orders
  read customers
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import replace

from tektite.expr import Expr, col
from tektite.expr.predicates import conjunction, reads_only
from tektite.plan.algebra import Clause, Match, Project, Read
from tektite.plan.estimates import passing
from tektite.plan.rules.local import PassContext, rule_for

FEW = 0.2
"""The share of a table's rows up to which a private index pays. It is then a fifth of the size, and narrower."""


@rule_for(Match)
def filter_privately(match: Match, context: PassContext) -> Match:
    """A conjunction over filtered tables, where it needs few of their rows and another index."""
    if not match.where or not match.is_open:
        return match
    clauses, where = list(match.clauses), list(match.where)
    for at, clause in enumerate(clauses):
        if not isinstance(clause.operator, Read):
            continue
        own = [part for part in where if part.columns() and reads_only(part, clause.variables)]
        if not own or passing(own) > FEW:
            continue
        rest = [part for part in where if not any(part is other for other in own)]
        others = {name for place, other in enumerate(clauses) if place != at for name in other.variables}
        if any(served(clause, columns) for name, columns in clause.variables.items() if name in others):
            continue
        read = others.union(match.schema.names, *(negated.variables for negated in match.without))
        read |= {name for part in rest for name in part.columns()}
        clauses[at] = filtered_alone(clause, read, own)
        where = rest
    return match if len(where) == len(match.where) else replace(match, clauses=tuple(clauses), where=tuple(where))


def filtered_alone(clause: Clause, read: Container[str], own: Sequence[Expr]) -> Clause:
    """A clause over the rows of its table that pass conditions, with the columns that the conjunction still looks at."""
    table = clause.operator
    names = {variable: col(table.schema.names[columns[0]]) for variable, columns in clause.variables.items()}
    kept = [column for v, columns in clause.variables.items() if v in read or len(columns) > 1 for column in columns]
    kept = sorted([*kept, *clause.constants]) or [0]
    schema = table.schema.select(*(table.schema.names[column] for column in kept))
    predicate = conjunction([part.substitute(names) for part in own])
    rows = Project(schema, table, tuple(map(col, schema.names)), predicate)
    return Clause(rows, tuple([clause.terms[column] for column in kept]))


def served(clause: Clause, columns: Sequence[int]) -> bool:
    """Whether an index begins with one of the columns: the table's own, or a shared one."""
    assert isinstance(clause.operator, Read)
    return any(order[:1] == (column,) for order in clause.operator.readable.orders for column in columns)
