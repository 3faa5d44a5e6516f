"""Replaces an atom by the body of the one rule that defines it.

A predicate without state is then joined with its readers as one conjunction, over the indexes of its own relations. It is never
arranged itself, and the constants and orders of the reading rule apply to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tektite.datalog.syntax import ir


def unfoldable(rule: ir.Rule) -> bool:
    """Whether a rule's body may stand for an atom of its predicate: a plain conjunction that shows different variables."""
    if not rule.body or len(set(rule.terms)) < len(rule.terms):
        return False
    if not all(isinstance(term, ir.RuleVariable) for term in rule.terms):
        return False
    return all(isinstance(literal, ir.Atom | ir.Comparison | ir.Condition) for literal in rule.body)


def unfold(rule: ir.Rule, definitions: Mapping[str, ir.Rule]) -> ir.Rule:
    """The rule with every atom that has a definition replaced by that definition's body, as deep as it goes.

    >>> from tektite.datalog.syntax.textbook import parse_program
    >>> hop, rule = parse_program("hop(a, c) :- edge(a, b), edge(b, c).  p(x) :- hop(x, y), hop(y, 3).").rules
    >>> print(unfold(rule, {"hop": hop}))
    p(x) :- edge(x, b in 1), edge(b in 1, y), edge(y, b in 2), edge(b in 2, 3).
    """
    number = 0
    body: list[ir.Literal] = []
    waiting = list(rule.body)
    while waiting:
        literal = waiting.pop(0)
        if not isinstance(literal, ir.Atom) or literal.predicate not in definitions:
            body.append(literal)
            continue
        number += 1
        definition = definitions[literal.predicate]
        terms: dict[ir.RuleVariable, ir.Term] = {}
        for place, (shown, given) in enumerate(zip(definition.terms, literal.terms, strict=True)):
            assert isinstance(shown, ir.RuleVariable)
            anonymous = isinstance(given, ir.RuleVariable) and given.anonymous
            terms[shown] = ir.RuleVariable(f"{shown.name} in {number} at {place}") if anonymous else given
        for variable in ir.body_variables(definition.body):
            if variable not in terms:
                prefix = "_ " if variable.anonymous else ""
                terms[variable] = ir.RuleVariable(f"{prefix}{variable.name.removeprefix('_ ')} in {number}")
        waiting[:0] = [replaced(inner, terms) for inner in definition.body]
    return replace(rule, body=tuple(body))


def replaced(literal: ir.Literal, terms: Mapping[ir.RuleVariable, ir.Term]) -> ir.Literal:
    """A plain literal with terms for its variables."""

    def term(of: ir.Term) -> ir.Term:
        if isinstance(of, ir.RuleVariable):
            return terms.get(of, of)
        return replace(of, args=tuple(map(term, of.args))) if isinstance(of, ir.Compute) else of

    match literal:
        case ir.Atom():
            return replace(literal, terms=tuple(map(term, literal.terms)))
        case ir.Comparison():
            return replace(literal, left=term(literal.left), right=term(literal.right))
        case ir.Condition():
            test = term(literal.test)
            assert isinstance(test, ir.Compute)
            return replace(literal, test=test)
    raise AssertionError(f"cannot unfold {literal}")
