"""Merges variables that a rule equates.

`tc(x, z) :- tc(x, y), edge(w, z), w = y` then is `tc(x, z) :- tc(x, y), edge(y, z)`: the equation connects the atoms like a
shared variable, so that it is joined by, asked for and kept by like one. A variable that equals a constant is replaced by
it in the atoms, where an index may find it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tektite.datalog.rules import expressions
from tektite.datalog.rules.normal_form import substitute
from tektite.datalog.rules.unfold import replaced
from tektite.datalog.syntax import ir
from tektite.plan.equal_columns import Classes
from tektite.values.types import Float, Type


def unify(rule: ir.Rule, types: Mapping[ir.RuleVariable, Type], keep_head: bool = False) -> ir.Rule:
    """A normal rule without equations of two variables of one type. With `keep_head`, its head stays as it is written, and
    so does an equation of two variables of the head. Floats stay apart: 0.0 equals -0.0, and is another value.

    >>> from tektite.datalog.syntax.textbook import parse_program
    >>> from tektite.values.types import Int
    >>> (rule,) = parse_program("p(x, z) :- q(x, y), q(w, z), w = y.").rules
    >>> print(unify(rule, dict.fromkeys(ir.body_variables(rule.body), Int)))
    p(x, z) :- q(x, w), q(w, z).
    """
    fixed = {v for term in rule.terms for v in ir.variables(term)} if keep_head else set()
    classes: Classes[ir.RuleVariable] = Classes()
    body = []
    for literal in rule.body:
        pair = equated(literal, types)
        one, other = (classes.of(pair[0]), classes.of(pair[1])) if pair is not None else (None, None)
        if one is None or other is None or one == other or {one, other} <= fixed:
            body.append(literal)
        else:
            classes.join(*((other, one) if other in fixed else (one, other)))
    names = {v: classes.of(v) for v in types if classes.of(v) != v}
    if names:
        terms = tuple(renamed(term, names) for term in rule.terms)
        rule = replace(rule, terms=terms, body=tuple(substitute(literal, names) for literal in body))
    return with_constants(rule, types)


def equated(
    literal: ir.Literal, types: Mapping[ir.RuleVariable, Type]
) -> tuple[ir.RuleVariable, ir.RuleVariable] | None:
    """The variables of an equation of two that may become one."""
    if not isinstance(literal, ir.Comparison) or literal.op != "=":
        return None
    left, right = literal.left, literal.right
    if not isinstance(left, ir.RuleVariable) or not isinstance(right, ir.RuleVariable):
        return None
    return (left, right) if left in types and types[left] == types.get(right) != Float else None


def renamed(term: ir.HeadTerm, names: Mapping[ir.RuleVariable, ir.RuleVariable]) -> ir.HeadTerm:
    """A head's term with some variables named otherwise."""
    if isinstance(term, ir.RuleVariable):
        return names.get(term, term)
    if isinstance(term, ir.HeadAggregate):
        of = None if term.of is None else renamed(term.of, names)
        assert not isinstance(of, ir.HeadAggregate)
        return replace(term, of=of)
    if isinstance(term, ir.Compute):
        args = [renamed(arg, names) for arg in term.args]
        return replace(term, args=tuple(arg for arg in args if not isinstance(arg, ir.HeadAggregate)))
    return term


def with_constants(rule: ir.Rule, types: Mapping[ir.RuleVariable, Type]) -> ir.Rule:
    """A rule whose atoms have the constants that equations give their variables. The equations stay: they say what the
    variables are to everybody else.
    """
    values: dict[ir.RuleVariable, ir.Term] = {}
    for literal in rule.body:
        if not isinstance(literal, ir.Comparison) or literal.op != "=":
            continue
        for one, other in ((literal.left, literal.right), (literal.right, literal.left)):
            if isinstance(one, ir.RuleVariable) and isinstance(other, ir.Constant):
                type = types.get(one)
                if type not in (None, Float) and type == expressions.constant_type(other.value):
                    values.setdefault(one, other)
    if not values:
        return rule
    body = [replaced(literal, values) if isinstance(literal, ir.Atom) else literal for literal in rule.body]
    return replace(rule, body=tuple(body))
