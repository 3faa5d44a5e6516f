"""Unification: where a rule says that two variables are equal, one of them stands for both.

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
from tektite.values.types import Float, Type


def unify(rule: ir.Rule, types: Mapping[ir.Variable, Type], keep_head: bool = False) -> ir.Rule:
    """A normal rule without equations of two variables of one type. With `keep_head`, its head stays as it is written, and
    so does an equation of two variables of the head. Floats stay apart: 0.0 equals -0.0, and is another value.

    >>> from tektite.datalog.syntax.textbook import parse_program
    >>> from tektite.values.types import Int
    >>> (rule,) = parse_program("p(x, z) :- q(x, y), q(w, z), w = y.").rules
    >>> print(unify(rule, dict.fromkeys(ir.body_variables(rule.body), Int)))
    p(x, z) :- q(x, w), q(w, z).
    """
    head = {v for term in rule.terms for v in ir.variables(term)}
    while True:
        pair = next(
            (found for literal in rule.body if (found := equated(literal, types, head if keep_head else set()))), None
        )
        if pair is None:
            return with_constants(rule, types)
        equation, gone, stays = pair
        names = {gone: stays}
        body = tuple(substitute(literal, names) for literal in rule.body if literal is not equation)
        rule = replace(rule, terms=tuple(renamed(term, names) for term in rule.terms), body=body)


def equated(
    literal: ir.Literal, types: Mapping[ir.Variable, Type], fixed: set[ir.Variable]
) -> tuple[ir.Literal, ir.Variable, ir.Variable] | None:
    """An equation of two variables that may become one: the equation, the one that goes and the one that stays."""
    if not isinstance(literal, ir.Comparison) or literal.op != "=":
        return None
    left, right = literal.left, literal.right
    if not isinstance(left, ir.Variable) or not isinstance(right, ir.Variable) or types.get(left) != types.get(right):
        return None
    if left == right or left not in types or types[left] == Float or {left, right} <= fixed:
        return None
    return (literal, left, right) if right in fixed else (literal, right, left)


def renamed(term: ir.HeadTerm, names: Mapping[ir.Variable, ir.Variable]) -> ir.HeadTerm:
    """A head's term with some variables named otherwise."""
    if isinstance(term, ir.Variable):
        return names.get(term, term)
    if isinstance(term, ir.Aggregate):
        of = None if term.of is None else renamed(term.of, names)
        assert not isinstance(of, ir.Aggregate)
        return replace(term, of=of)
    if isinstance(term, ir.Compute):
        args = [renamed(arg, names) for arg in term.args]
        return ir.Compute(term.op, tuple(arg for arg in args if not isinstance(arg, ir.Aggregate)))
    return term


def with_constants(rule: ir.Rule, types: Mapping[ir.Variable, Type]) -> ir.Rule:
    """A rule whose atoms have the constants that equations give their variables. The equations stay: they say what the
    variables are to everybody else.
    """
    values: dict[ir.Variable, ir.Term] = {}
    for literal in rule.body:
        if not isinstance(literal, ir.Comparison) or literal.op != "=":
            continue
        for one, other in ((literal.left, literal.right), (literal.right, literal.left)):
            if isinstance(one, ir.Variable) and isinstance(other, ir.Constant):
                type = types.get(one)
                if type not in (None, Float) and type == expressions.constant_type(other.value):
                    values.setdefault(one, other)
    if not values:
        return rule
    body = [replaced(literal, values) if isinstance(literal, ir.Atom) else literal for literal in rule.body]
    return replace(rule, body=tuple(body))
