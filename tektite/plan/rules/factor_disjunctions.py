"""Takes conditions that all branches of an OR share out of the OR: (a AND b) OR (a AND c) becomes a AND (b OR c).

>>> from tektite.expr import col
>>> from tektite.plan.algebra import Rows
>>> from tektite.plan.explain import explain
>>> from tektite.plan.projections import filtered
>>> from tektite.values.schema import Schema
>>> from tektite.values.types import Int
>>> two = Schema(x=Int, y=Int)
>>> rows = Rows(two, two.encode([(1, 2)]))
>>> x, y = col("x"), col("y")
>>> before = filtered(rows, [((x > 1) & (y > 2)) | ((x > 1) & (y < 0))])
>>> print("\\n".join(explain(*factor_disjunctions([before]))))
filter x > 1 and (y > 2) | (y < 0)
  1 constant row
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

from tektite.expr import Expr
from tektite.expr.predicates import TRUE, conjunction, conjuncts, reads_only
from tektite.plan.algebra import Clause, Match, Operator, Project
from tektite.plan.rules.local import PassContext, rule_for


@rule_for(Project, Match)
def factor_disjunctions(operator: Project | Match, context: PassContext) -> Operator:
    """A filter or a conjunction with common conjuncts taken out of its disjunctions."""
    if isinstance(operator, Match):
        if not any([part.op == "or" for part in operator.where]):
            return operator
        return replace(operator, where=tuple([part for p in operator.where for part in conjuncts(factored(p))]))
    if operator.predicate is None or operator.predicate.op not in ("or", "and"):
        return operator
    parts = conjuncts(operator.predicate)
    if not any([part.op == "or" for part in parts]):
        return operator
    return replace(operator, predicate=conjunction(map(factored, parts)))


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
    """The parts of a conjunct after taking out what all its branches have in common."""
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


def implied(clauses: Sequence[Clause], where: Sequence[Expr]) -> list[Expr]:
    """The conditions on single relations that disjunctions over several relations imply."""
    found: list[Expr] = []
    known: set[object] = set()
    for part in where:
        if part.op != "or":
            continue
        known = known or {other.fingerprint for other in where}
        parts = [conjuncts(branch) for branch in branches(part)]
        for clause in clauses:
            if reads_only(part, clause.variables):
                continue
            own = [
                conjunction(p for p in branch if p.columns() and reads_only(p, clause.variables)) for branch in parts
            ]
            if all(branch.fingerprint != TRUE.fingerprint for branch in own):
                made = reduce(lambda a, b: a | b, own)
                if made.fingerprint not in known:
                    known.add(made.fingerprint)
                    found.append(made)
    return found
