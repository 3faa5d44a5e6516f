"""Finds the literals of a body that bind some variables."""

from __future__ import annotations

from collections.abc import Iterable

from tektite.datalog.rules.safety import bound_by
from tektite.datalog.syntax import ir


def binding(
    body: Iterable[ir.Literal], wanted: Iterable[ir.RuleVariable], given: Iterable[ir.RuleVariable] = ()
) -> tuple[ir.Literal, ...]:
    """The positive literals of a body that can stand by themselves, or with what is given, and that variables connect with those
    wanted.
    """
    left = [x for x in body if not isinstance(x, ir.Negation | ir.Conjunction)]
    while not all(is_bound(x, bound_by(left, given)) for x in left):
        bound = bound_by(left, given)
        left = [literal for literal in left if is_bound(literal, bound)]
    reached = set(wanted)
    kept: list[ir.Literal] = []
    while near := [x for x in left if x not in kept and reached.intersection(ir.literal_variables(x))]:
        kept += near
        reached.update(ir.body_variables(near))
    return tuple(literal for literal in left if literal in kept)


def is_bound(literal: ir.Literal, bound: set[ir.RuleVariable]) -> bool:
    """Whether all variables of a literal are bound, in each of its alternatives."""
    if isinstance(literal, ir.Disjunction):
        return all(bound_by(branch, bound).issuperset(ir.body_variables(branch)) for branch in literal.branches)
    return bound.issuperset(ir.literal_variables(literal))
