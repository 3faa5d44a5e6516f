"""In which order the clauses of a conjunction are joined.

The rule: begin with a clause that has constants, else with the first one written; then always take a clause that shares
variables with what is bound, the one with the fewest unbound variables; among equals, the one written first. A clause
that shares nothing waits until nothing else is left, because it multiplies.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tektite.plan.operators import Clause, Match


def clause_order(match: Match, start: int | None = None) -> list[int]:
    """The numbers of the clauses in the order in which to join them; `start` forces the first one."""
    preference = preferred(match)
    if start is None:
        if match.order is not None:
            return preference
        start = next((at for at in preference if match.clauses[at].constants), preference[0])
    return connected([start], match.clauses, preference, exact=match.order is not None)


def preferred(match: Match) -> list[int]:
    """The clauses as written, or as an explicit order says: by when the last of their variables is bound."""
    written = list(range(len(match.clauses)))
    if not match.order:
        return written
    if isinstance(match.order[0], int):
        return [at for at in match.order if isinstance(at, int)]
    rank = {name: at for at, name in enumerate(match.order)}
    return sorted(written, key=lambda at: max((rank[v] for v in match.clauses[at].variables), default=-1))


def connected(start: Sequence[int], clauses: Sequence[Clause], preference: Iterable[int], exact: bool) -> list[int]:
    """The clauses, beginning with `start`; what follows shares variables with those before it where it can.

    With `exact` the preference decides among all that share something; else the fewest unbound variables come first.
    """
    order = list(start)
    left = [at for at in preference if at not in order]
    while left:
        bound = {variable for at in order for variable in clauses[at].variables}
        costs = [(_cost(clauses[at], bound)[: 1 if exact else 2], place) for place, at in enumerate(left)]
        best = left[min(costs)[1]]
        left.remove(best)
        order.append(best)
    return order


def _cost(clause: Clause, bound: set[str]) -> tuple[bool, int]:
    """Whether a clause shares nothing with the variables that are bound, and how many it would add to them."""
    unbound = sum(variable not in bound for variable in clause.variables)
    return (unbound == len(clause.variables) and not clause.constants, unbound)
