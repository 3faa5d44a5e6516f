"""Ranges: `x = range(a, b, s)` as a predicate that holds the numbers from a up to b, without b, in steps of s.

A range is halved until its parts have one number each. So a range of a million numbers takes twenty rounds, not a million.
"""

from __future__ import annotations

from collections.abc import Callable

from tektite.datalog.rules import safety
from tektite.datalog.rules.binding import binding
from tektite.datalog.syntax import ir

LOW, HIGH, MIDDLE, COUNT = map(ir.RuleVariable, ("range low", "range high", "range middle", "range count"))
ZERO, ONE = ir.Constant(0), ir.Constant(1)


def is_range(literal: ir.Comparison) -> bool:
    """Whether a literal is `x = range(...)`."""
    return isinstance(literal.right, ir.Compute) and literal.right.op == "range"


def numbers(
    literal: ir.Comparison, rule: ir.Rule, beside: tuple[ir.Literal, ...], name: Callable[[], str]
) -> tuple[list[ir.Rule], ir.Atom]:
    """The rules of a predicate that holds a range's numbers, and the atom that stands for the literal. `beside` is what stands
    beside the literal; `name` gives names for predicates.
    """
    assert isinstance(literal.right, ir.Compute) and isinstance(literal.left, ir.RuleVariable)
    start, end, *given = literal.right.args
    keys = ir.named(ir.variables(literal.right))
    source = binding(beside, keys)
    for key in keys:
        if key not in safety.bound_by(source):
            raise safety.unbound(rule, key, str(literal))
    parts, values, place = name(), name(), literal.position
    made: list[ir.Rule] = []

    def add(predicate: str, terms: tuple[ir.Term, ...], *body: ir.Literal) -> None:
        made.append(ir.Rule(predicate, terms, body, place, rule.written))

    def compare(left: ir.Term, op: str, right: ir.Term) -> ir.Comparison:
        return ir.Comparison(op, left, right, place)

    part = ir.Atom(parts, (*keys, LOW, HIGH), place)
    halved = (part, compare(minus(HIGH, LOW), ">", ONE))
    middle = compare(MIDDLE, "=", ir.Compute("/", (plus(LOW, HIGH), ir.Constant(2))))
    for up in (True, False):
        step: ir.Term = given[0] if given else ir.Constant(1 if up else -1)
        low, high, sign = (start, end, ">") if up else (end, start, "<")
        size = step if up else ir.Compute("-", (step,))
        count = plus(ir.Compute("/", (minus(minus(high, low), ONE), size)), ONE)
        tests = (compare(step, sign, ZERO), compare(low, "<", high))
        add(parts, (*keys, ZERO, COUNT), *source, *tests, compare(COUNT, "=", count))
        value = plus(start, ir.Compute("*", (step, LOW)))
        add(values, (*keys, value), part, compare(minus(HIGH, LOW), "=", ONE), *tests)
    add(parts, (*keys, LOW, MIDDLE), *halved, middle)
    add(parts, (*keys, MIDDLE, HIGH), *halved, middle)
    return made, ir.Atom(values, (*keys, literal.left), place)


def plus(one: ir.Term, other: ir.Term) -> ir.Term:
    return ir.Compute("+", (one, other))


def minus(one: ir.Term, other: ir.Term) -> ir.Term:
    return ir.Compute("-", (one, other))
