"""Predicates: conjunctions and their parts."""

from __future__ import annotations

from collections.abc import Iterable

from tektite.expr.ast import Expr
from tektite.values import types

TRUE = Expr("lit", (), (types.Bool, True))
FALSE = Expr("lit", (), (types.Bool, False))


def conjuncts(predicate: Expr) -> list[Expr]:
    """The parts of a conjunction; none for TRUE."""
    found: list[Expr] = []
    waiting = [predicate]
    while waiting:
        part = waiting.pop()
        if part.op == "and":
            waiting.extend(reversed(part.args))
        elif part.fingerprint != TRUE.fingerprint:
            found.append(part)
    return found


def conjunction(parts: Iterable[Expr]) -> Expr:
    """All of the parts, as a shallow tree; TRUE for none."""
    found = [part for part in parts if part.fingerprint != TRUE.fingerprint]
    if not found:
        return TRUE
    while len(found) > 1:
        found = [found[i] & found[i + 1] if i + 1 < len(found) else found[i] for i in range(0, len(found), 2)]
    return found[0]


def reads_only(expression: Expr, available: Iterable[str]) -> bool:
    """Whether a scalar reads no other columns than these."""
    return set(expression.columns()) <= set(available)
