"""Strata: which predicates must be known before which, and which are defined through each other.

`components` lists the strongly connected components of the predicate graph, each after all it depends on, in an order
that follows from the rules alone. A negation or an aggregate inside a component is refused, with the cycle spelled out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from tektite.datalog.syntax import ir
from tektite.errors import IncorrectError

RulesByName = Mapping[str, Sequence[ir.Rule]]
INVENTED = re.compile(r"( (not|or|given|at|range|count|sum|min|max|avg|count-distinct|median|variance|stddev) \d+)+$")
"""The endings of helper predicates' names (`tektite.datalog.rules.normal_form`)."""


class Unstratified(IncorrectError):
    """A cycle through a negation or an aggregate; `predicate` is what is negated or aggregated."""

    def __init__(self, message: str, predicate: str) -> None:
        super().__init__(message)
        self.predicate = predicate


def dependencies(rule: ir.Rule) -> Iterator[tuple[str, str]]:
    """The predicates that a normal rule reads, with how: "" plainly, "not" negated, else the aggregate."""
    kinds = [term.kind for term in rule.terms if isinstance(term, ir.HeadAggregate)]
    for literal in rule.body:
        if isinstance(literal, ir.Atom):
            yield literal.predicate, kinds[0] if kinds else ""
        elif isinstance(literal, ir.Negation):
            yield literal.atom.predicate, "not"
        elif isinstance(literal, ir.Lookup):
            yield literal.atom.predicate, "count or sum"


def components(rules: RulesByName, roots: Sequence[str]) -> list[tuple[str, ...]]:
    """The components of all that the roots depend on, each after what it depends on.

    >>> from tektite.datalog.syntax.textbook import parse_program
    >>> program = parse_program("a(x) :- b(x). b(x) :- c(x), a(x). d(x) :- a(x), !e(x).")
    >>> by_name = {}
    >>> for rule in program.rules:
    ...     by_name.setdefault(rule.predicate, []).append(rule)
    >>> components(by_name, ["d"])
    [('c',), ('a', 'b'), ('e',), ('d',)]
    """
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[tuple[str, ...]] = []
    for root in roots:
        if root in number:
            continue
        # Depth first without recursion: a chain of rules may be longer than Python's stack.
        walks = [(root, iter(predicates_of(rules, root)))]
        number[root] = low[root] = len(number)
        stack.append(root)
        while walks:
            here, others = walks[-1]
            other = next(others, None)
            if other is None:
                walks.pop()
                if walks:
                    low[walks[-1][0]] = min(low[walks[-1][0]], low[here])
                if low[here] == number[here]:
                    at = stack.index(here)
                    found.append(tuple(sorted(stack[at:])))
                    del stack[at:]
            elif other not in number:
                number[other] = low[other] = len(number)
                stack.append(other)
                walks.append((other, iter(predicates_of(rules, other))))
            elif other in stack:
                low[here] = min(low[here], number[other])
    return found


def predicates_of(rules: RulesByName, predicate: str) -> list[str]:
    """The predicates that a predicate's rules read, each once, in the order of the rules."""
    return list(dict.fromkeys(other for rule in rules.get(predicate, ()) for other, _ in dependencies(rule)))


def is_recursive(rules: RulesByName, component: tuple[str, ...]) -> bool:
    """Whether a component's predicates are defined through themselves."""
    return len(component) > 1 or component[0] in predicates_of(rules, component[0])


def check(rules: RulesByName, component: tuple[str, ...], improved: Mapping[str, tuple[int, str]]) -> None:
    """Refuse a component that a negation or an aggregate leads back into. Least and greatest values of the predicates in
    `improved` are the exception: these may be defined through themselves.
    """
    inside = set(component)
    for predicate in component:
        for rule in rules.get(predicate, ()):
            for other, how in dependencies(rule):
                if other not in inside or not how:
                    continue
                if how in ("min", "max") and predicate in improved:
                    continue
                if how == "not" and other == f"{predicate} not 0":  # `rules.subsumption`
                    continue
                raise Unstratified(refusal(rules, rule, other, how, inside), other)


def refusal(rules: RulesByName, rule: ir.Rule, other: str, how: str, inside: set[str]) -> str:
    """The message for a rule that negates or aggregates a predicate which depends on it. It names the author's predicates
    alone: those that stand for a group within a rule are left out, and the predicate that they read is named as negated or
    aggregated.
    """
    if how == "count or sum":
        how = "count" if " count " in other else "sum"
    sign = "!" if how == "not" else f"{how} over "
    around = [*way(rules, other, rule.predicate, inside), other]
    cycle = [name for name in around if not INVENTED.search(name)] or [INVENTED.sub("", rule.predicate)]
    if INVENTED.search(rule.predicate) is None and rule.predicate in cycle:
        at = cycle.index(rule.predicate)
        cycle = cycle[at:] + [name for name in cycle[:at] if name != rule.predicate]
    start, *rest = dict.fromkeys(cycle)
    rest.append(start)
    shown = " -> ".join([start, f"{sign}{rest[0]}", *rest[1:]])
    what = "a negation" if how == "not" else f"the aggregate {how}"
    return (
        f"{rule.where()}: {what} of {rest[0]!r}, which depends on {start!r} itself: {shown}. "
        "What is negated or aggregated must be known before"
    )


def way(rules: RulesByName, start: str, end: str, inside: set[str]) -> list[str]:
    """The shortest path from one predicate to another along dependencies."""
    ways = {start: [start]}
    front = [start]
    while front and end not in ways:
        following = []
        for here in front:
            for other in predicates_of(rules, here):
                if other in inside and other not in ways:
                    ways[other] = [*ways[here], other]
                    following.append(other)
        front = following
    return ways.get(end, [start, end])
