"""What every branch of an OR demands is demanded by itself: (a AND b) OR (a AND c) is a AND (b OR c)."""

from __future__ import annotations

from functools import reduce

from tektite.expr import Expr
from tektite.expr.predicates import TRUE, conjunction, conjuncts
from tektite.sql.logical import Filter, Join, Names, Node
from tektite.sql.walking import transform


def factor_disjunctions(root: Node, names: Names) -> Node:
    """A plan with common conjuncts taken out of disjunctions in its filters and joins."""

    def rewrite(node: Node) -> Node:
        if isinstance(node, Filter | Join) and any(p.op == "or" for e in node.expressions for p in conjuncts(e)):
            return node.with_expressions(lambda predicate: conjunction(map(factored, conjuncts(predicate))))
        return node

    return transform(root, rewrite)


def branches(predicate: Expr) -> list[Expr]:
    """The parts of a disjunction."""
    found: list[Expr] = []
    waiting = [predicate]
    while waiting:
        part = waiting.pop()
        if part.op == "or":
            waiting.extend(reversed(part.args))
        else:
            found.append(part)
    return found


def factored(predicate: Expr) -> Expr:
    """A conjunct with what all its branches have in common taken out."""
    if predicate.op != "or":
        return predicate
    parts = [conjuncts(branch) for branch in branches(predicate)]
    prints = [{part.fingerprint for part in branch} for branch in parts]
    common = set.intersection(*prints)
    if not common:
        return predicate
    shared = {part.fingerprint: part for part in parts[0] if part.fingerprint in common}
    rest = [conjunction(part for part in branch if part.fingerprint not in common) for branch in parts]
    if any(branch.fingerprint == TRUE.fingerprint for branch in rest):
        return conjunction(shared.values())
    return conjunction([*shared.values(), reduce(lambda a, b: a | b, rest)])
