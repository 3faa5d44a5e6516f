"""Safety: every variable of a rule gets its values from a positive atom, or is computed from such variables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tektite.datalog.syntax import ir
from tektite.errors import IncorrectError


def bound_by(
    body: Sequence[ir.Literal], given: Iterable[ir.RuleVariable] = (), results: bool = True
) -> set[ir.RuleVariable]:
    """The variables that a body gives values to, beside those given from outside; with `results`, by its aggregates, too."""
    bound = set(given)
    for literal in body:
        if isinstance(literal, ir.Atom):
            bound |= {term for term in literal.terms if isinstance(term, ir.RuleVariable)}
        elif isinstance(literal, ir.Aggregation) and results:
            bound |= {literal.result, *literal.witnesses}
    lookups = [literal for literal in body if isinstance(literal, ir.Lookup)]
    equations = [literal for literal in body if isinstance(literal, ir.Comparison) and literal.op == "="]
    alternatives = [literal for literal in body if isinstance(literal, ir.Disjunction)]
    size = -1
    while size < len(bound):
        size = len(bound)
        for equation in equations:
            for one, other in ((equation.left, equation.right), (equation.right, equation.left)):
                if isinstance(one, ir.RuleVariable) and all(v in bound for v in ir.variables(other)):
                    bound.add(one)
        for lookup in lookups:
            *keys, value = lookup.atom.terms
            if isinstance(value, ir.RuleVariable) and all(v in bound for key in keys for v in ir.variables(key)):
                bound.add(value)
        for choice in alternatives:
            found = set.intersection(*(bound_by(branch, bound, results) for branch in choice.branches))
            bound |= found if choice.outer is None else found.intersection(choice.outer)
    return bound


def check(rule: ir.Rule) -> None:
    """Refuse a normal rule that is not safe, naming the variable."""
    bound = bound_by(rule.body)
    for at, term in enumerate(rule.terms):
        for variable in ir.variables(term):
            if variable.anonymous:
                raise IncorrectError(
                    f"{rule.where()}: '_' in the head, at place {at + 1}, is no value; name a variable"
                )
            if variable not in bound:
                raise unbound(rule, *cause(rule, variable, "the head", bound))
    for literal in rule.body:
        if isinstance(literal, ir.Atom):
            continue
        for variable in ir.literal_variables(literal):
            if variable in bound:
                continue
            if not variable.anonymous:
                raise unbound(rule, *cause(rule, variable, str(literal), bound))
            if not isinstance(literal, ir.Negation):
                raise IncorrectError(f"{rule.where()}: '_' in {str(literal)!r} has no value to compare")


def cause(
    rule: ir.Rule, variable: ir.RuleVariable, where: str, bound: set[ir.RuleVariable]
) -> tuple[ir.RuleVariable, str]:
    """The variable because of which another has no value, and where it stands: the rule computes the one from the other."""
    seen = {variable}
    given = (variable, where)
    while True:
        needed = [v for literal in rule.body for v in needs(literal, variable) if v not in bound and v not in seen]
        if not needed:
            # Two that are computed from each other: either is as good as the other.
            around = any(v in seen for literal in rule.body for v in needs(literal, variable))
            return given if around else (variable, where)
        variable = needed[0]
        seen.add(variable)
        where = next(str(literal) for literal in rule.body if variable in ir.literal_variables(literal))


def needs(literal: ir.Literal, variable: ir.RuleVariable) -> Iterable[ir.RuleVariable]:
    """The terms from which a literal computes a variable."""
    if isinstance(literal, ir.Comparison) and literal.op == "=":
        for one, other in ((literal.left, literal.right), (literal.right, literal.left)):
            if one == variable:
                return ir.variables(other)
    return ()


def unbound(rule: ir.Rule, variable: ir.RuleVariable, where: str) -> IncorrectError:
    """The error that names a variable without values."""
    name = "a computed term" if variable.name.startswith("term ") else f"variable {variable.name!r}"
    return IncorrectError(
        f"{rule.where()}: {name} in {where} is not bound: it must stand in a positive predicate of the body, or be "
        "equal to something computed from such variables"
    )
