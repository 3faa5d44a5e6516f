"""Chooses the order in which the relations of an open conjunction are joined: along keys, the most selective relation first.

1. The first relation is a table without history, or the one from which keys lead to most others, or the largest.
2. Each further relation shares variables with those before it. One whose key is then known comes first, since it adds no rows;
   among these the one that leaves the fewest; among equals the one that `conjunctions.order` takes.
3. Where keys lead everywhere, delta pipelines keep the conjunction up to date, or joins of two, if filters leave so little of a
   stream that this keeps less. Elsewhere the strategy is what `conjunctions.strategy` chooses.

>>> from tektite.plan.algebra import Rows
>>> from tektite.plan.explain import explain
>>> from tektite.values.schema import Schema
>>> from tektite.values.types import Int
>>> few, many = ([(at, at) for at in range(rows)] for rows in (1, 9))
>>> two = Schema(x=Int, y=Int)
>>> parts = (few, ("x", "y")), (many, ("y", "z")), (few, ("z", "w"))
>>> clauses = tuple([Clause(Rows(two, two.encode(rows)), terms) for rows, terms in parts])
>>> before = Match(Schema(x=Int, w=Int), clauses, (), (), "auto")
>>> print("\\n".join(explain(*order_joins([before]))))
join of (x, y), (y, z), (z, w) in the order 9 rows, 1 rows, 1 rows to (x, w)
  1 constant row
  9 constant rows
  1 constant row
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tektite.expr import Expr
from tektite.plan.algebra import Clause, Match, Project, Read
from tektite.plan.conjunctions.order import ties
from tektite.plan.estimates import share_of
from tektite.plan.rules.local import PassContext, rule_for
from tektite.plan.unique import unique_columns

ALIKE = 2.0
"""How many times as large as another a relation may be estimated while both count as equally large: estimates are no better."""


@rule_for(Match)
def order_joins(match: Match, context: PassContext) -> Match:
    """An open conjunction with an order, and a strategy if the order follows keys.

    Two relations need no order: each is looked up in the other. Relations of about one size that no key leads to stay without,
    too: there each pipeline takes what suits its changes.
    """
    if len(match.clauses) < 3 or not match.is_open:
        return match
    sizes = [context.estimates.of(clause.operator) for clause in match.clauses]
    found = []
    for start, clause in enumerate(match.clauses):
        order, by_keys = followed(match, start, sizes)
        # where keys lead everywhere is where the facts are, even while there are none
        found.append((is_stream(clause), by_keys, sizes[start], -start, order))
    stream, by_keys, _, _, order = max(found)
    if not stream and not by_keys and max(sizes) <= ALIKE * min(sizes):
        return match
    if by_keys < len(order) - 1:
        return replace(match, is_ordered=True, order=order)
    if stream and narrows(match, order):
        return replace(match, is_ordered=True, order=order, strategy="binary", why="filters leave little of the stream")
    return replace(match, is_ordered=True, order=order, strategy="delta", why="keys lead to every relation")


def followed(match: Match, start: int, sizes: Sequence[float]) -> tuple[tuple[int, ...], int]:
    """The order that begins with a relation, and how many of its steps follow a key."""
    shares = [share_of(clause, match.where) for clause in match.clauses]
    order = [start]
    by_keys = 0
    waiting = [at for at in range(len(match.clauses)) if at != start]
    while waiting:
        known = {name for at in order for name in match.clauses[at].variables}
        costs = []
        for at in waiting:
            reached = determined(match.clauses[at], match.where, known)
            key = unique_columns(match.clauses[at].operator)
            one = bool(key) and set(key or ()) <= reached
            rows = shares[at] * (1.0 if one else sizes[at])
            costs.append((not reached, not one, rows, ties(match.clauses[at], known, match.where), at))
        _, several, _, _, best = min(costs)
        by_keys += not several
        order.append(best)
        waiting.remove(best)
    return tuple(order), by_keys


def narrows(match: Match, order: Sequence[int]) -> bool:
    """Whether joining one at a time keeps fewer rows than delta pipelines. These index the stream that the order begins with by
    every key that leads to it from another relation; joins index it once, and then what passed the filters so far.
    Where more than a relation's key is known, it stays with the pipelines: a join would need an index by all of that.
    """
    start = match.clauses[order[0]]
    known = set(start.variables)
    ways: set[frozenset[str]] = set()
    share = kept = 1.0
    for at in order[1:]:
        clause = match.clauses[at]
        if determined(clause, (), known) != set(unique_columns(clause.operator) or ()):
            return False
        ways.add(frozenset(clause.variables.keys() & start.variables.keys()))
        share *= share_of(clause, match.where)
        kept += share if at != order[-1] else 0.0
        known |= set(clause.variables)
    ways.discard(frozenset())
    return kept < len([way for way in ways if not any(way < other for other in ways)])


def is_stream(clause: Clause) -> bool:
    """Whether a relation is a table without history, filtered and projected as may be."""
    operator = clause.operator
    while isinstance(operator, Project):
        operator = operator.input
    return isinstance(operator, Read) and operator.readable.is_stream


def determined(clause: Clause, where: Sequence[Expr], known: set[str]) -> set[int]:
    """The columns of a relation that are equal to something that is known, also by way of each other."""
    there = set(known)
    equal = [tuple(part.args) for part in where if part.op == "eq"]
    pairs = [(a.params[0], b) for a, b in (*equal, *((b, a) for a, b in equal)) if a.op == "col"]
    grown = True
    while grown:
        grown = False
        for name, other in pairs:
            if name in clause.variables and name not in there and there.issuperset(other.columns()):
                there.add(name)
                grown = True
    return {at for at, term in enumerate(clause.terms) if isinstance(term, Expr) or term in there}
