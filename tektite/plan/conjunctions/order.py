"""Chooses the order in which the clauses of a conjunction are joined.

The first clause is one with constants, or else the first one written. Each next clause shares variables with those before
it. Among several such clauses, these criteria decide, in this order:

1. It adds at most one row, because one of its keys or all of its variables are bound.
2. It has more constants and makes more predicates testable.
3. It has fewer unbound variables.
4. It was written first.

A clause that shares no variable comes last, because it multiplies rows. An explicit order replaces these criteria.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

from tektite.expr import Expr
from tektite.plan.algebra import Clause, Match
from tektite.plan.unique import unique_columns


def clause_order(match: Match) -> list[int]:
    """The numbers of the clauses in the order in which to join them two at a time."""
    preference = preferred(match)
    if match.order is not None:
        return preference
    start = next((at for at in preference if match.clauses[at].constants), preference[0])
    left = [at for at in preference if at != start]
    return [start, *connected(match.clauses[start].variables, match.clauses, left, match.where, exact=False)]


def preferred(match: Match) -> list[int]:
    """The clauses as written, or as an explicit order says: by when the last of their variables is bound."""
    written = list(range(len(match.clauses)))
    if not match.order:
        return written
    if isinstance(match.order[0], int):
        return [at for at in match.order if isinstance(at, int)]
    rank = {name: at for at, name in enumerate(match.order)}
    return sorted(written, key=lambda at: max((rank.get(v, -1) for v in match.clauses[at].variables), default=-1))


def connected(
    bound: Iterable[str],
    clauses: Sequence[Clause],
    left: Sequence[int],
    where: Sequence[Expr],
    exact: bool,
    keys_first: bool = False,
) -> list[int]:
    """The clauses of `left` in an order in which each shares variables with those before it where it can.

    With `exact`, the given order decides among clauses that share variables; otherwise the criteria above do. With `keys_first`,
    those that add at most one row come before others.
    """
    known, left, order = set(bound), list(left), []
    while left:
        if exact:
            costs = [
                (_reach(clauses[at], known), keys_first and not adds_at_most_one(clauses[at], known)) for at in left
            ]
            best = left.pop(costs.index(min(costs)))
        else:
            best = left.pop(min((_cost(clauses[at], known, where), place) for place, at in enumerate(left))[1])
        order.append(best)
        known |= set(clauses[best].variables)
    return order


def _reach(clause: Clause, bound: set[str]) -> int:
    """Whether a clause shares variables with what is bound (0), else has constants (1), or nothing to be looked up by (2)."""
    shares = not clause.variables or not bound.isdisjoint(clause.variables)
    return 0 if shares else 1 if clause.constants else 2


def _cost(clause: Clause, bound: set[str], where: Sequence[Expr]) -> tuple[int, bool, int, int]:
    """The cost of a clause, least first: how it can be reached; whether it may have several rows for each way to bind the bound
    variables; how few conditions it fulfils; how many variables it adds.
    """
    return (_reach(clause, bound), not adds_at_most_one(clause, bound), *ties(clause, bound, where))


def ties(clause: Clause, bound: set[str], where: Sequence[Expr]) -> tuple[int, int]:
    """The last criteria: minus the number of conditions that a clause can test, and the number of variables that it adds."""
    new = set(clause.variables) - bound
    due = sum(any(v in new for v in p.columns()) and bound | new >= set(p.columns()) for p in where)
    return -(due + len(clause.constants)), len(new)


def adds_at_most_one(clause: Clause, bound: Container[str]) -> bool:
    """Whether bound variables leave a clause at most one row that is of interest, as far as the plan tells."""
    known = [column for column, term in enumerate(clause.terms) if isinstance(term, Expr) or term in bound]
    key = unique_columns(clause.operator)
    return all(v in bound for v in clause.variables) or (key is not None and all(column in known for column in key))
