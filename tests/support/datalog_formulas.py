"""Random bodies of nested conjunctions, disjunctions and negations: written in both syntaxes, and evaluated by trying all values.

A formula is a tuple: ("atom", predicate, terms), ("compare", sign, one, other), ("not", formula), ("and", formulas) or
("or", formulas). A term is a number or a variable. A variable of a negation that is bound outside of it has its value there; any
other is some value.
"""

from __future__ import annotations

import operator
import random
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

Formula = tuple[Any, ...]
RELATIONS = {"a": 2, "b": 2, "c": 1, "d": 1}
VALUES = range(4)
SIGNS: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
EDN_SIGNS = {"!=": "not="}


class RandomFormula:
    """A formula over variables that have values, decided by a random generator."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.fresh = 0

    def formula(self, bound: list[str], deep: int) -> Formula:
        roll = self.rng.random()
        if not deep or roll < 0.2:
            return self.atom(bound)
        if roll < 0.3:
            sign = self.rng.choice(list(SIGNS))
            return ("compare", sign, self.rng.choice(bound), self.rng.choice([*bound, self.rng.choice(VALUES)]))
        if roll < 0.6:
            return ("not", self.some(bound, deep - 1))
        kind = "and" if roll < 0.75 else "or"
        return (kind, tuple(self.formula(bound, deep - 1) for _ in range(self.rng.randint(1, 3))))

    def atom(self, bound: list[str]) -> Formula:
        name = self.rng.choice(list(RELATIONS))
        terms = (self.rng.choice([*bound, *bound, self.rng.choice(VALUES)]) for _ in range(RELATIONS[name]))
        return ("atom", name, tuple(terms))

    def some(self, bound: list[str], deep: int) -> Formula:
        """A formula, in which a variable of its own may get its value from an atom, or one in each branch of an `or`."""
        roll = self.rng.random()
        if roll < 0.6:
            return self.formula(bound, deep)
        self.fresh += 1
        own = f"Z{self.fresh}"
        within = [*bound, own]
        binding = self.binding(bound, own)
        if roll < 0.75:
            binding = ("or", (binding, ("and", (self.binding(bound, own), self.formula(within, deep)))))
        parts = [binding, *(self.formula(within, deep) for _ in range(self.rng.randint(1, 2)))]
        self.rng.shuffle(parts)
        return ("and", tuple(parts))

    def binding(self, bound: list[str], own: str) -> Formula:
        terms = [own, self.rng.choice(bound)]
        self.rng.shuffle(terms)
        return ("atom", self.rng.choice("ab"), tuple(terms))


def variables(of: Formula) -> Iterator[str]:
    match of:
        case ("atom", _, terms):
            yield from (term for term in terms if isinstance(term, str))
        case ("compare", _, one, other):
            yield from (term for term in (one, other) if isinstance(term, str))
        case ("not", inner):
            yield from variables(inner)
        case (_, parts):
            for part in parts:
                yield from variables(part)


def own_variables(of: Formula) -> set[str]:
    """The variables of a formula that are not those of a negation inside of it alone."""
    match of:
        case ("not", _):
            return set()
        case ("and" | "or", parts):
            return set().union(*map(own_variables, parts))
    return set(variables(of))


def holds(of: Formula, values: dict[str, int], facts: dict[str, set[tuple[int, ...]]]) -> bool:
    """Whether a formula holds for some values of the variables that have none yet."""
    free = sorted(own_variables(of) - values.keys())
    return any(
        true(of, {**values, **dict(zip(free, chosen, strict=True))}, facts)
        for chosen in product(VALUES, repeat=len(free))
    )


def true(of: Formula, values: dict[str, int], facts: dict[str, set[tuple[int, ...]]]) -> bool:
    match of:
        case ("atom", name, terms):
            return tuple(values.get(term, term) for term in terms) in facts[name]
        case ("compare", sign, one, other):
            return bool(SIGNS[sign](values.get(one, one), values.get(other, other)))
        case ("not", inner):
            return not holds(inner, values, facts)
        case ("and", parts):
            return all(true(part, values, facts) for part in parts)
        case ("or", parts):
            return any(true(part, values, facts) for part in parts)
    raise AssertionError(of)


def textbook(of: Formula, rng: random.Random) -> str:
    """A formula in the textbook syntax, with more parentheses than it needs here and there."""
    match of:
        case ("atom", name, terms):
            found = f"{name}({', '.join(map(str, terms))})"
        case ("compare", sign, one, other):
            found = f"{one} {sign} {other}"
        case ("not", inner):
            written = textbook(inner, rng)
            return "!" + (written if written[0] in "!(" or inner[0] == "atom" else f"({written})")
        case (kind, parts):
            sign = ", " if kind == "and" else "; "
            found = f"({sign.join(textbook(part, rng) for part in parts)})"
    while rng.random() < 0.25:
        found = f"({found})"
    return found


def edn(of: Formula) -> str:
    """A formula in the EDN syntax."""
    match of:
        case ("atom", name, terms):
            return f"({name} {' '.join(map(edn_term, terms))})"
        case ("compare", sign, one, other):
            return f"[({EDN_SIGNS.get(sign, sign)} {edn_term(one)} {edn_term(other)})]"
        case ("not", inner):
            return f"(not {edn(inner)})"
        case (kind, parts):
            return f"({kind} {' '.join(map(edn, parts))})"
    raise AssertionError(of)


def edn_term(term: str | int) -> str:
    return f"?{term}" if isinstance(term, str) else str(term)
