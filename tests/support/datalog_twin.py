"""The oracle for Datalog: naive bottom-up evaluation of rules as they were parsed, a stratum at a time.

It knows nothing of normal forms, joins or increments: a body's bindings are found by trying every fact of every atom, a
stratum's rules are applied to everything until nothing is added.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator, Mapping
from typing import Any

from tektite.datalog.syntax import ir

Facts = dict[str, set[tuple[Any, ...]]]
Binding = dict[ir.Variable, Any]
COMPARE = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def evaluate(text: ir.Text, given: Mapping[str, set[tuple[Any, ...]]]) -> Facts:
    """All facts that follow from the given ones."""
    facts: Facts = {name: set(rows) for name, rows in given.items()}
    levels = strata(text.rules)
    for level in sorted(set(levels.values())):
        rules = [rule for rule in text.rules if levels[rule.predicate] == level]
        for rule in rules:
            facts.setdefault(rule.predicate, set())
        for rule in rules:
            if rule.aggregates:
                facts[rule.predicate] |= aggregated(rule, facts)
        changed = True
        while changed:
            before = {name: len(rows) for name, rows in facts.items()}
            for rule in rules:
                if not rule.aggregates:
                    found = {tuple(value(t, b) for t in rule.terms) for b in bindings(rule.body, {}, facts)}
                    facts[rule.predicate] |= {row for row in found if None not in row}
            changed = before != {name: len(rows) for name, rows in facts.items()}
    return facts


def strata(rules: tuple[ir.Rule, ...]) -> dict[str, int]:
    """A level for each predicate: not below what it reads, above what it negates or aggregates."""
    levels = {rule.predicate: 0 for rule in rules}
    for _ in range(len(levels) + 1):
        for rule in rules:
            for name, strict in reads(rule.body, bool(rule.aggregates)):
                if name in levels:
                    levels[rule.predicate] = max(levels[rule.predicate], levels[name] + strict)
    return levels


def reads(body: tuple[ir.Literal, ...], strict: bool) -> Iterator[tuple[str, bool]]:
    for literal in body:
        match literal:
            case ir.Atom():
                yield literal.predicate, strict
            case ir.Negation():
                yield literal.atom.predicate, True
            case ir.Aggregation() | ir.Conjunction():
                yield from reads(literal.body, True)
            case ir.Disjunction():
                for branch in literal.branches:
                    yield from reads(branch, strict)


def bindings(body: tuple[ir.Literal, ...], start: Binding, facts: Facts) -> Iterator[Binding]:
    """Every way to make the body true. What can be tried now is tried first; the rest waits for its variables."""
    if not body:
        yield start
        return
    for at, literal in enumerate(body):
        rest = body[:at] + body[at + 1 :]
        if not ready(literal, start, rest):
            continue
        for found in solutions(literal, start, facts):
            yield from bindings(rest, found, facts)
        return
    raise AssertionError(f"cannot order {body}")


def ready(literal: ir.Literal, bound: Binding, rest: tuple[ir.Literal, ...]) -> bool:
    elsewhere = set(ir.body_variables(rest))
    match literal:
        case ir.Atom():
            return all(isinstance(t, ir.Variable | ir.Constant) or known(t, bound) for t in literal.terms)
        case ir.Disjunction():
            return True
        case ir.Comparison() if literal.op == "=":
            sides = ((literal.left, literal.right), (literal.right, literal.left))
            return any(known(b, bound) and (known(a, bound) or isinstance(a, ir.Variable)) for a, b in sides)
        case ir.Aggregation():
            return all(v in bound for v in ir.body_variables(literal.body) if v in elsewhere)
    needed = ir.named(ir.literal_variables(literal))
    return all(v in bound for v in needed if v in elsewhere or not isinstance(literal, ir.Conjunction))


def known(term: ir.Term, bound: Binding) -> bool:
    return all(v in bound for v in ir.variables(term))


def solutions(literal: ir.Literal, bound: Binding, facts: Facts) -> Iterator[Binding]:
    match literal:
        case ir.Atom():
            for row in facts.get(literal.predicate, ()):
                found = unify(literal.terms, row, bound)
                if found is not None:
                    yield found
        case ir.Negation():
            rows = facts.get(literal.atom.predicate, ())
            if not any(unify(literal.atom.terms, row, bound) is not None for row in rows):
                yield bound
        case ir.Conjunction():
            if next(bindings(literal.body, bound, facts), None) is None:
                yield bound
        case ir.Comparison():
            for one, other in ((literal.left, literal.right), (literal.right, literal.left)):
                if literal.op == "=" and isinstance(one, ir.Variable) and one not in bound:
                    found = value(other, bound)
                    if found is not None:
                        yield {**bound, one: found}
                    return
            left, right = value(literal.left, bound), value(literal.right, bound)
            if left is not None and right is not None and COMPARE[literal.op](left, right):
                yield bound
        case ir.Disjunction():
            found = [b for branch in literal.branches for b in bindings(branch, bound, facts)]
            shown = [{v: x for v, x in b.items() if v in bound or not v.anonymous} for b in found]
            yield from {frozenset(b.items()): b for b in shown}.values()
        case ir.Aggregation():
            rows = [value(literal.of, b) if literal.of else 1 for b in every(literal.body, bound, facts)]
            found = fold(literal.kind, rows)
            if found is not None and bound.get(literal.result, found) == found:
                yield {**bound, literal.result: found}


def every(body: tuple[ir.Literal, ...], bound: Binding, facts: Facts) -> list[Binding]:
    """The different bindings of a body, those of its anonymous variables included."""
    return list({frozenset(b.items()): b for b in bindings(body, bound, facts)}.values())


def unify(terms: tuple[ir.Term, ...], row: tuple[Any, ...], bound: Binding) -> Binding | None:
    found = dict(bound)
    for term, given in zip(terms, row, strict=True):
        if isinstance(term, ir.Variable):
            if found.setdefault(term, given) != given:
                return None
        elif value(term, found) != given:
            return None
    return found


def value(term: ir.HeadTerm | None, bound: Binding) -> Any:
    match term:
        case ir.Variable():
            return bound[term]
        case ir.Constant():
            return term.value
        case ir.Compute():
            args = [value(arg, bound) for arg in term.args]
            if None in args:
                return None
            if term.op in ("/", "%"):
                if args[1] == 0:
                    return None
                whole = math.trunc(abs(args[0]) // abs(args[1])) * (1 if (args[0] < 0) == (args[1] < 0) else -1)
                return whole if term.op == "/" else args[0] - args[1] * whole
            if len(args) == 1 and term.op == "-":
                return -args[0]
            return {"+": operator.add, "-": operator.sub, "*": operator.mul, "min": min, "max": max}[term.op](*args)
    raise AssertionError(term)


def aggregated(rule: ir.Rule, facts: Facts) -> set[tuple[Any, ...]]:
    groups: dict[tuple[Any, ...], list[Binding]] = {}
    for b in every(rule.body, {}, facts):
        key = tuple(value(t, b) for t in rule.terms if not isinstance(t, ir.Aggregate))
        groups.setdefault(key, []).append(b)
    out = set()
    for key, members in groups.items():
        rest = iter(key)
        row = []
        for term in rule.terms:
            if isinstance(term, ir.Aggregate):
                row.append(fold(term.kind, [value(term.of, b) if term.of else 1 for b in members]))
            else:
                row.append(next(rest))
        out.add(tuple(row))
    return out


def fold(kind: str, values: list[Any]) -> Any:
    if kind == "count":
        return len(values)
    if kind == "sum":
        return sum(values)
    if not values:
        return None
    return {"min": min, "max": max, "avg": lambda v: sum(v) / len(v)}[kind](values)
