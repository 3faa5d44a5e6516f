"""In which order the relations of a conjunction are joined whose author leaves that to us: along keys, the most selective first.

Changes come from a table without history, or from where keys lead to most others, or from the largest. Each further relation
is one that shares variables with those before it; one whose key is then known comes first, since it adds no rows, and among
these the one that leaves the fewest. Where keys lead everywhere, the conjunction is kept up to date by delta pipelines, or
joined one at a time if filters leave so little of a stream that this keeps less; else the strategy is what `auto` chooses.

>>> from tektite.plan.algebra import Rows
>>> from tektite.plan.explain import explain
>>> from tektite.values.schema import Schema
>>> from tektite.values.types import Int
>>> few, many = ([(at, at) for at in range(rows)] for rows in (1, 9))
>>> two = Schema(x=Int, y=Int)
>>> clauses = [Clause(Rows(two, two.encode(rows)), terms) for rows, terms in ((few, ("x", "y")), (many, ("y", "z")))]
>>> before = Match(Schema(x=Int, z=Int), tuple(clauses), (), (), "sized")
>>> print("\\n".join(explain(*order_joins([before]))))
join of (x, y), (y, z) in the order 9 rows, 1 rows to (x, z)
  1 constant row
  9 constant rows
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tektite.expr import Expr
from tektite.plan.algebra import Clause, Match, Operator, Project, Read
from tektite.plan.estimates import Estimates, share_of
from tektite.plan.unique import unique_columns
from tektite.plan.walk import transform, with_inputs


def order_joins(roots: Sequence[Operator]) -> list[Operator]:
    """Plans in which every conjunction has an order whose strategy is `sized`: to be chosen by sizes."""
    estimates = Estimates()

    def rewrite(operator: Operator, inputs: tuple[Operator, ...]) -> Operator:
        found = with_inputs(operator, inputs)
        return ordered(found, estimates) if isinstance(found, Match) and found.strategy == "sized" else found

    return transform(roots, rewrite)


def ordered(match: Match, estimates: Estimates) -> Match:
    """A conjunction with an order, and a strategy if the order follows keys."""
    sizes = [estimates.of(clause.operator) for clause in match.clauses]
    found = []
    for start, clause in enumerate(match.clauses):
        order, by_keys = followed(match, start, sizes)
        # where keys lead everywhere is where the facts are, even while there are none
        found.append((is_stream(clause), by_keys, sizes[start], -start, order))
    _, by_keys, _, _, order = max(found)
    # two relations are looked up in each other, whichever changes
    strategy = "delta" if by_keys == len(order) - 1 and len(order) > 2 else "auto"
    if strategy == "delta" and is_stream(match.clauses[order[0]]) and narrows(match, order):
        strategy = "binary"
    if order == (0, 1) and not match.clauses[1].constants:
        return replace(match, strategy=strategy)  # as it is written
    return replace(match, order=order, strategy=strategy)


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
            costs.append((not reached, not one, shares[at] * (1.0 if one else sizes[at]), at))
        _, several, _, best = min(costs)
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
