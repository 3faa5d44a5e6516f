"""The oracle for Datalog: naive bottom-up evaluation of rules as they were parsed, a stratum at a time.

It knows nothing of normal forms, joins or increments: a body's bindings are found by trying every fact of every atom, a
stratum's rules are applied to everything until nothing is added.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from tektite.datalog.syntax import ir, statements

Facts = dict[str, set[tuple[Any, ...]]]
Binding = dict[ir.RuleVariable, Any]
COMPARE = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class Unsafe(Exception):
    """A rule in which something gives a variable no value, or a count or sum is to have been attained somewhere."""


class Unordered(Unsafe):
    """A choice of which one alternative needs what the others bind: an evaluator may do without an order of whole choices."""


def evaluate(text: statements.Text, given: Mapping[str, set[tuple[Any, ...]]]) -> Facts:
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
                    found = {tuple(value(t, b) for t in rule.terms) for b in derived(rule, facts)}
                    facts[rule.predicate] |= {row for row in found if None not in row}
            changed = before != {name: len(rows) for name, rows in facts.items()}
    return facts


def derived(rule: ir.Rule, facts: Facts) -> Iterator[Binding]:
    """The bindings of a rule's alternatives."""
    for body in alternatives(rule.body):
        yield from bindings(body, {}, facts, head_variables(rule))


def check(rule: ir.Rule) -> None:
    """Raise Unsafe for a rule that cannot be evaluated, whatever the facts are."""
    for body in [rule.body] if rule.aggregates else alternatives(rule.body):
        check_body(body, set(), head_variables(rule))


def head_variables(rule: ir.Rule) -> set[ir.RuleVariable]:
    return {v for term in rule.terms for v in ir.variables(term)}


def alternatives(body: tuple[ir.Literal, ...]) -> list[tuple[ir.Literal, ...]]:
    """The conjunctions that a body comes to."""
    found: list[tuple[ir.Literal, ...]] = [()]
    for literal in body:
        choices = [(literal,)]
        if isinstance(literal, ir.Disjunction):
            choices = [way for branch in literal.branches for way in alternatives(branch)]
        found = [(*before, *way) for before in found for way in choices]
    return found


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


def flat(body: tuple[ir.Literal, ...]) -> tuple[ir.Literal, ...]:
    """A body in which a group that is no choice stands as its literals, and a computed term as an equation beside its atom."""
    found: list[ir.Literal] = []
    for literal in body:
        if isinstance(literal, ir.Disjunction) and len(literal.branches) == 1:
            found += flat(literal.branches[0])
        elif isinstance(literal, ir.Atom):
            names = list(literal.terms)
            for at, term in enumerate(literal.terms):
                names[at] = ir.RuleVariable(f"{literal} at {at}") if isinstance(term, ir.Compute) else term
            found.append(ir.Atom(literal.predicate, tuple(names)))
            found += [ir.Comparison("=", a, b) for a, b in zip(names, literal.terms, strict=True) if a != b]
        else:
            found.append(literal)
    return tuple(found)


# ---------------------------------------------------------------------- scopes


def mentioned(body: Iterable[ir.Literal], inside: bool = True) -> set[ir.RuleVariable]:
    """The named variables of some literals, those within aggregates or without."""
    found: set[ir.RuleVariable] = set()
    for literal in body:
        match literal:
            case ir.Aggregation():
                found.add(literal.result)
                found |= variables_inside(literal) if inside else set()
            case ir.Conjunction():
                found |= mentioned(literal.body, inside)
            case ir.Disjunction():
                for branch in literal.branches:
                    found |= mentioned(branch, inside)
            case ir.Negation():
                found |= mentioned([literal.atom])
            case ir.Atom():
                found |= {v for term in literal.terms for v in ir.variables(term)}
            case ir.Comparison():
                found |= {*ir.variables(literal.left), *ir.variables(literal.right)}
            case _:
                raise AssertionError(literal)
    return {v for v in found if not v.anonymous}


def variables_inside(group: ir.Aggregation) -> set[ir.RuleVariable]:
    return {*mentioned(group.body), *ir.variables(group.of)}


def grounded(body: Iterable[ir.Literal], given: Iterable[ir.RuleVariable]) -> set[ir.RuleVariable]:
    """The variables that have values once all of the body has been tried."""
    found = set(given)
    for _ in range(1 + len(mentioned(body))):
        for literal in body:
            match literal:
                case ir.Atom():
                    found |= {term for term in literal.terms if isinstance(term, ir.RuleVariable)}
                case ir.Aggregation():
                    found.add(literal.result)
                case ir.Disjunction():
                    found |= set.intersection(*(grounded(branch, found) for branch in literal.branches))
                case ir.Comparison() if literal.op == "=":
                    for one, other in ((literal.left, literal.right), (literal.right, literal.left)):
                        if isinstance(one, ir.RuleVariable) and set(ir.variables(other)) <= found:
                            found.add(one)
    return found


def left_open(
    body: Iterable[ir.Literal], given: Iterable[ir.RuleVariable], wanted: Iterable[ir.RuleVariable]
) -> set[ir.RuleVariable]:
    """The variables that are used outside of aggregates without having values there: aggregates have to give them."""
    ground = grounded(body, given)
    used = set(wanted)
    for literal in body:
        match literal:
            case ir.Aggregation():
                pass
            case ir.Conjunction():
                used |= left_open(literal.body, ground, ())
            case ir.Disjunction():
                for branch in literal.branches:
                    used |= left_open(branch, ground, ())
            case _:
                used |= mentioned([literal])
    return used - ground


def from_outside(
    group: ir.Aggregation, bound: Iterable[ir.RuleVariable], loose: set[ir.RuleVariable]
) -> set[ir.RuleVariable]:
    """The variables of an aggregate whose values come from outside."""
    known = variables_inside(group).intersection(bound) - loose
    target = set(ir.variables(group.of))
    return known - (target & grounded(group.body, known - target))


def witnesses(group: ir.Aggregation, loose: set[ir.RuleVariable]) -> set[ir.RuleVariable]:
    found = variables_inside(group) & loose
    if found and group.kind not in ("min", "max"):
        raise Unsafe(f"{found} in {group}")
    return found


def check_body(body: tuple[ir.Literal, ...], given: set[ir.RuleVariable], wanted: set[ir.RuleVariable]) -> None:
    """Raise Unsafe for a body that cannot be ordered, or that gives no value to something wanted."""
    body = flat(body)
    loose = left_open(body, given, wanted)
    bound, left = set(given), list(body)
    while left:
        tried = next_literal(left, bound, loose)
        match tried:
            case None:
                raise Unsafe(f"cannot order {left}")
            case ir.Aggregation():
                found = witnesses(tried, loose)
                check_body(tried.body, from_outside(tried, bound, loose), found | set(ir.variables(tried.of)))
                bound |= {tried.result, *found}
            case ir.Conjunction():
                for way in alternatives(tried.body):
                    check_body(way, bound, set())
            case ir.Disjunction():
                given_up = mentioned([tried]) & loose & (shared_by(left, tried) | wanted) - bound
                for way in alternatives((tried,)):
                    try:
                        check_body(way, bound, given_up)
                    except Unsafe as error:
                        raise Unordered(str(error)) from error
                bound |= grounded([tried], bound) | given_up
            case _:
                bound |= mentioned([tried])
        left.remove(tried)
    if not wanted <= bound:
        raise Unsafe(f"{wanted - bound} in {body}")
    for choice in (literal for literal in body if isinstance(literal, ir.Disjunction)):
        shared = mentioned([choice], inside=False) & (shared_by(body, choice) | wanted)
        if not shared <= bound:
            raise Unsafe(f"{shared - bound} in {choice}")


def shared_by(body: Iterable[ir.Literal], choice: ir.Literal) -> set[ir.RuleVariable]:
    """The variables that a choice may share with the rest of a body."""
    beside = [literal for literal in body if literal is not choice and not isinstance(literal, ir.Conjunction)]
    return mentioned(beside, inside=False)


# ---------------------------------------------------------------------- bindings


def bindings(
    body: tuple[ir.Literal, ...], start: Binding, facts: Facts, wanted: Iterable[ir.RuleVariable] = ()
) -> Iterator[Binding]:
    """Every way to make the body true. What can be tried now is tried first; the rest waits for its variables."""
    body = flat(body)
    yield from extended(body, start, facts, left_open(body, start, wanted), set(wanted))


def extended(
    body: tuple[ir.Literal, ...],
    start: Binding,
    facts: Facts,
    loose: set[ir.RuleVariable],
    wanted: set[ir.RuleVariable],
) -> Iterator[Binding]:
    if not body:
        yield start
        return
    literal = next_literal(body, start, loose)
    assert literal is not None, f"cannot order {body}"
    rest = tuple(other for other in body if other is not literal)
    for found in solutions(literal, start, facts, loose, wanted | shared_by(rest, literal)):
        yield from extended(rest, found, facts, loose, wanted)


def next_literal(
    body: Sequence[ir.Literal], bound: Iterable[ir.RuleVariable], loose: set[ir.RuleVariable]
) -> ir.Literal | None:
    """The first literal that may be tried. Where all wait for others, a choice that binds all it shares need not wait."""
    have = set(bound)
    for literal in body:
        if ready(literal, have, [other for other in body if other is not literal], loose):
            return literal
    for literal in body:
        if isinstance(literal, ir.Disjunction):
            own = grounded([literal], have)
            if ready(literal, own, [other for other in body if other is not literal], loose):
                return literal
    return None


def ready(
    literal: ir.Literal, bound: Iterable[ir.RuleVariable], rest: Sequence[ir.Literal], loose: set[ir.RuleVariable]
) -> bool:
    """Whether a literal may be tried: what it needs has a value, and what is shared with the rest has one if it ever will."""
    have = set(bound)
    match literal:
        case ir.Atom():
            return True
        case ir.Comparison() if literal.op == "=":
            sides = ((literal.left, literal.right), (literal.right, literal.left))
            return any(known(b, have) and (known(a, have) or isinstance(a, ir.RuleVariable)) for a, b in sides)
        case ir.Aggregation():
            return from_outside(literal, grounded(rest, have), loose) <= have
        case ir.Conjunction() | ir.Disjunction():
            later = grounded(rest, have)  # and whatever else aggregates will give
            if has_aggregate(rest):
                later |= loose
            return mentioned([literal]) & later <= have
    return mentioned([literal]) <= have


def has_aggregate(body: Iterable[ir.Literal]) -> bool:
    """Whether an aggregate stands in a body, or in one of its alternatives."""
    for literal in body:
        if isinstance(literal, ir.Aggregation):
            return True
        if isinstance(literal, ir.Disjunction) and any(map(has_aggregate, literal.branches)):
            return True
    return False


def known(term: ir.Term, bound: Iterable[ir.RuleVariable]) -> bool:
    return all(v in bound for v in ir.variables(term))


def solutions(
    literal: ir.Literal, bound: Binding, facts: Facts, loose: set[ir.RuleVariable], seen: set[ir.RuleVariable]
) -> Iterator[Binding]:
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
            if not any(True for way in alternatives(literal.body) for _ in bindings(way, bound, facts)):
                yield bound
        case ir.Comparison():
            for one, other in ((literal.left, literal.right), (literal.right, literal.left)):
                if literal.op == "=" and isinstance(one, ir.RuleVariable) and one not in bound:
                    found = value(other, bound)
                    if found is not None:
                        yield {**bound, one: found}
                    return
            left, right = value(literal.left, bound), value(literal.right, bound)
            if left is not None and right is not None and COMPARE[literal.op](left, right):
                yield bound
        case ir.Disjunction():
            ways = alternatives((literal,))
            shared = seen | set.intersection(*(shared_by(way, literal) for way in ways))
            given_up = mentioned([literal]) & loose & seen - bound.keys()
            found = [b for way in ways for b in bindings(way, bound, facts, given_up)]
            yield from different({v: x for v, x in b.items() if v in bound or v in shared} for b in found)
        case ir.Aggregation():
            yield from different(attained(literal, bound, facts, loose))


def attained(group: ir.Aggregation, bound: Binding, facts: Facts, loose: set[ir.RuleVariable]) -> Iterator[Binding]:
    """What an aggregate adds to a binding: its result, and the witnesses of a least or greatest value."""
    given = {v: bound[v] for v in from_outside(group, bound, loose)}
    shown = witnesses(group, loose)
    rows = every(group.body, given, facts, shown | set(ir.variables(group.of)))
    values = [1 if group.of is None else value(group.of, row) for row in rows]
    result = fold(group.kind, [v for v in values if v is not None])
    if result is None or bound.get(group.result, result) != result:
        return
    for row, of in zip(rows, values, strict=True) if shown else [({}, result)]:
        if of == result and all(bound.get(v, row[v]) == row[v] for v in shown):
            yield {**bound, **{v: row[v] for v in shown}, group.result: result}


def every(
    body: tuple[ir.Literal, ...], bound: Binding, facts: Facts, wanted: Iterable[ir.RuleVariable] = ()
) -> list[Binding]:
    """The different bindings of a body, those of its anonymous variables included."""
    return different(bindings(body, bound, facts, wanted))


def different(found: Iterable[Binding]) -> list[Binding]:
    return list({frozenset(b.items()): b for b in found}.values())


def unify(terms: tuple[ir.Term, ...], row: tuple[Any, ...], bound: Binding) -> Binding | None:
    found = dict(bound)
    for term, given in zip(terms, row, strict=True):
        if isinstance(term, ir.RuleVariable) and found.setdefault(term, given) != given:
            return None
    return found if all(value(term, found) == given for term, given in zip(terms, row, strict=True)) else None


def value(term: ir.HeadTerm | None, bound: Binding) -> Any:
    match term:
        case ir.RuleVariable():
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
    for b in every(rule.body, {}, facts, head_variables(rule)):
        key = tuple(value(t, b) for t in rule.terms if not isinstance(t, ir.HeadAggregate))
        groups.setdefault(key, []).append(b)
    out = set()
    for key, members in groups.items():
        rest = iter(key)
        row = []
        for term in rule.terms:
            if isinstance(term, ir.HeadAggregate):
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
