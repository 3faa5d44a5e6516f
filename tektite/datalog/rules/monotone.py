"""Checks least and greatest values in recursion: a better value may only lead to better values.

Within its own recursion, the value that is minimised (or maximised) may be added to, scaled by a constant that is not
negative, compared from the better side, and passed on into the value of a head that keeps the same kind. Anything
else could make a fact come and go for ever, and is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tektite.datalog.syntax import ir
from tektite.errors import UnsupportedError
from tektite.expr.comparisons import MIRRORED

BETTER = {"min": ("<", "<="), "max": (">", ">=")}


def check(
    rules: Mapping[str, Sequence[ir.Rule]], component: tuple[str, ...], improved: Mapping[str, tuple[int, str]]
) -> None:
    """Refuse a rule that uses a value being improved in a way that is not monotone."""
    for predicate in component:
        for rule in rules.get(predicate, ()):
            values: dict[ir.RuleVariable, str] = {}
            for literal in rule.body:
                if isinstance(literal, ir.Atom) and literal.predicate in improved and literal.predicate in component:
                    column, kind = improved[literal.predicate]
                    term = literal.terms[column]
                    if isinstance(term, ir.Constant):
                        raise wrong(rule, kind, f"the constant {term} stands for it")
                    if not isinstance(term, ir.RuleVariable) or term.anonymous:
                        continue
                    if values.setdefault(term, kind) != kind or uses(rule, term) > 1:
                        raise wrong(rule, kind, f"{term} stands in two predicates")
            if values and any(other in component for other in predicates_of(rule)):
                follow(rule, values, improved.get(predicate))


def predicates_of(rule: ir.Rule) -> list[str]:
    """The predicates of the positive atoms."""
    return [literal.predicate for literal in rule.body if isinstance(literal, ir.Atom)]


def uses(rule: ir.Rule, variable: ir.RuleVariable) -> int:
    """In how many places of atoms, negated or not, a variable stands."""
    atoms = [literal if isinstance(literal, ir.Atom) else literal.atom for literal in rule.body
             if isinstance(literal, ir.Atom | ir.Negation | ir.Lookup)]  # fmt: skip
    return sum(term == variable for atom in atoms for term in atom.terms)


def follow(rule: ir.Rule, values: dict[ir.RuleVariable, str], head: tuple[int, str] | None) -> None:
    """Follow improved values through equations and comparisons into the head."""
    tests = [literal for literal in rule.body if isinstance(literal, ir.Comparison)]
    size = -1
    while size < len(values):
        size = len(values)
        for test in tests:
            for one, other in ((test.left, test.right), (test.right, test.left)):
                if test.op == "=" and isinstance(one, ir.RuleVariable) and one not in values:
                    kind = kind_of(other, values, rule)
                    if kind is not None:
                        values[one] = kind
    for test in tests:
        left, right = kind_of(test.left, values, rule), kind_of(test.right, values, rule)
        if left is None and right is None:
            continue
        if test.op == "=" and any(isinstance(side, ir.RuleVariable) for side in (test.left, test.right)):
            continue
        kind = left or right
        assert kind is not None
        sign = test.op if left is not None else MIRRORED[test.op]
        if (left is not None and right is not None) or sign not in BETTER[kind]:
            raise wrong(rule, kind, f"the test {test} may hold for a worse value and fail for a better one")
    for literal in rule.body:
        if isinstance(literal, ir.Condition | ir.Negation | ir.Lookup):
            for variable in ir.literal_variables(literal):
                if variable in values:
                    raise wrong(rule, values[variable], f"{literal} uses it")
    for at, term in enumerate(rule.terms):
        kind = kind_of(term.of if isinstance(term, ir.HeadAggregate) else term, values, rule)
        if kind is not None and (head is None or head != (at, kind)):
            raise wrong(rule, kind, f"column {at + 1} of {rule.predicate!r} is not a {kind} itself")


def kind_of(term: ir.HeadTerm | None, values: Mapping[ir.RuleVariable, str], rule: ir.Rule) -> str | None:
    """Whether a term moves with an improved value, and with which kind; refuses a term that may move against it."""
    if term is None or isinstance(term, ir.Constant | ir.HeadAggregate):
        return None
    if isinstance(term, ir.RuleVariable):
        return values.get(term)
    assert isinstance(term, ir.Compute), term
    kinds = [kind_of(arg, values, rule) for arg in term.args]
    found = {kind for kind in kinds if kind is not None}
    if not found:
        return None
    kind = found.pop()
    plain = len(term.args) == 2
    if not found and term.op in ("+", "min", "max"):
        return kind
    if not found and term.op == "-" and plain and kinds[1] is None:
        return kind
    if not found and term.op in ("*", "/") and plain and kinds[1] is None:
        factor = term.args[1]
        if isinstance(factor, ir.Constant) and not isinstance(factor.value, str) and factor.value > 0:
            return kind
    if not found and term.op == "*" and plain and kinds[0] is None:
        factor = term.args[0]
        if isinstance(factor, ir.Constant) and not isinstance(factor.value, str) and factor.value >= 0:
            return kind
    raise wrong(rule, kind, f"{term} need not grow with it")


def wrong(rule: ir.Rule, kind: str, why: str) -> UnsupportedError:
    """The error that says what is not monotone."""
    return UnsupportedError(
        f"{rule.where()}: a {kind} that is defined through itself may only be added to, compared from the better side and "
        f"passed on to a {kind}; here {why}. Take the {kind} of the finished predicate in a rule of its own"
    )
