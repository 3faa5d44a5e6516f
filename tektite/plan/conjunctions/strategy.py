"""Chooses the strategy of a conjunction.

The policy of `auto`:

* Up to two relations are joined directly. That needs only their arrangements.
* A cyclic conjunction is extended variable by variable (hector). Any order of joins may have intermediate results that are far
  larger than inputs and output.
* Everything else is maintained by delta pipelines, which need only the relations' own arrangements.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tektite.plan.algebra import Match


@dataclass(frozen=True)
class Choice:
    """A strategy and why it was chosen."""

    strategy: str
    reason: str


def choose(match: Match) -> Choice:
    """The strategy that was asked for, or the one that the policy chooses."""
    relations = len(match.clauses) + len(match.without)
    if relations == 1:
        return Choice("binary", "there is nothing to join")
    if match.strategy != "auto":
        return Choice(match.strategy, match.why)
    if relations == 2:
        return Choice("binary", "two relations")
    if is_cyclic(clause.variables for clause in match.clauses):
        return Choice("hector", "cyclic")
    return Choice("delta", f"{relations} relations, acyclic")


def is_cyclic(edges: Iterable[Iterable[str]]) -> bool:
    """Whether clauses with these variables form a cycle: whether taking away variables that are in one clause only, and
    clauses whose variables another one has, leaves something (the GYO reduction).

    >>> is_cyclic(["ab", "bc", "ca"]), is_cyclic(["ab", "bc", "cd"]), is_cyclic(["ab", "bc", "ca", "abc"])
    (True, False, False)
    """
    left = [set(edge) for edge in edges]
    while True:
        before = sum(map(len, left)), len(left)
        for at, edge in enumerate(left):
            others = [other for place, other in enumerate(left) if place != at]
            edge &= set().union(*others)
            if any(edge <= other for other in others):
                del left[at]
                break
        if (sum(map(len, left)), len(left)) == before:
            return sum(map(len, left)) > 0
