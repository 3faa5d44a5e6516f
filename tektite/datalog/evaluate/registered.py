"""The rules, declarations and options registered with an engine, by predicate, and checks of a text against them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field, replace

from tektite.datalog.evaluate.kept_rows import Definitions
from tektite.datalog.syntax import ir, statements
from tektite.datalog.syntax.meaning import canonical
from tektite.errors import IncorrectError


@dataclass
class Registered:
    """A predicate's rules as they were registered."""

    rules: tuple[ir.Rule, ...]
    improvement: tuple[int, str] | None
    where: str
    helpers: tuple[str, ...] = ()
    users: int = 1

    def means(self, rules: Sequence[ir.Rule], improvement: tuple[int, str] | None) -> bool:
        """Whether other rules mean the same. Names of variables and the order of clauses do not count."""
        if self.improvement != improvement:
            return False
        mine, others = set(self.rules), set(rules)
        return mine == others or {canonical(r) for r in mine} == {canonical(r) for r in others}


@dataclass
class SharingDecision:
    """A sharing decision and its reason."""

    shared: bool
    why: str


@dataclass
class State:
    """Everything registered. It is replaced as a whole, so that a refused registration changes nothing."""

    definitions: Definitions = field(default_factory=Definitions)
    registered: dict[str, Registered] = field(default_factory=dict)
    rounds: dict[str, int] = field(default_factory=dict)
    share: dict[str, bool] = field(default_factory=dict)
    joins: dict[str, str] = field(default_factory=dict)
    structures: dict[str, statements.Structure] = field(default_factory=dict)

    def copy(self) -> State:
        definitions = Definitions(
            dict(self.definitions.rules), dict(self.definitions.declarations), dict(self.definitions.improvements)
        )
        registered = {name: copy(found) for name, found in self.registered.items()}
        return State(
            definitions, registered, dict(self.rounds), dict(self.share), dict(self.joins), dict(self.structures)
        )


def credited(normal: Sequence[ir.Rule], given: Sequence[ir.Rule]) -> list[ir.Rule]:
    """Normal rules with the text of the rule that each comes from: the last one that begins before it."""

    def place(of: ir.Rule) -> tuple[int, int]:
        return (of.position.line, of.position.column)

    given = sorted(given, key=place)
    places = list(map(place, given))
    found = []
    for rule in normal:
        if not rule.written:
            source = given[max(bisect_right(places, place(rule)) - 1, 0)]
            rule = replace(rule, written=source.written or str(source))
        found.append(rule)
    return found


def used_structures(state: State) -> dict[str, statements.Structure]:
    """The structures that declared columns use, directly or in fields."""
    waiting = [name for d in state.definitions.declarations.values() for name in d.structures if name is not None]
    found: dict[str, statements.Structure] = {}
    while waiting:
        name = waiting.pop()
        if name in state.structures and name not in found:
            found[name] = state.structures[name]
            waiting += [kind for _, fields in found[name].tags for _, kind in fields]
    return found


def check_unsigned(text: statements.Text, state: State) -> None:
    """Refuse a fact with a negative number in an unsigned column."""
    for rule in text.rules:
        declared = state.definitions.declarations.get(rule.predicate)
        if declared is None or not declared.unsigned:
            continue
        for (name, _), term in zip(declared.columns, rule.terms, strict=False):
            if name in declared.unsigned and isinstance(term, ir.Constant) and negative(term.value):
                raise IncorrectError(
                    f"{rule.where()}: {term} in column {name!r} of {rule.predicate!r}, which is unsigned"
                )


def check_choices(text: statements.Text, state: State) -> None:
    """Refuse a choice-domain of a predicate that has no rules, or of which only the least or greatest values stay."""
    for declaration in text.declarations:
        name = declaration.predicate
        if not declaration.choices:
            continue
        if name not in state.definitions.rules:
            raise IncorrectError(
                f"{declaration.position}: {name!r} has a choice-domain and no rules: choose in a predicate whose rule reads it"
            )
        rules = state.definitions.rules[name]
        if name in state.definitions.improvements or any(rule.aggregates for rule in rules):
            raise IncorrectError(
                f"{declaration.position}: {name!r} has a choice-domain, and keeps least or greatest values, or aggregates: take "
                "these in a predicate of their own"
            )


def negative(value: ir.Value) -> bool:
    """Whether a constant is a number below zero."""
    return not isinstance(value, str) and value < 0
