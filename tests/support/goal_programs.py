"""Random programs for goals: recursion of every kind, with constants and repeated variables in every place.

Predicates come in layers. A rule reads positively from its own layer and those below, and negates and aggregates only what lies
below; arithmetic is taken modulo the number of values. So every program is stratified, and ends.
"""

from __future__ import annotations

import random

BASE = {"e": 2, "f": 2, "c": 1, "bag": 2}
"""Relations that are given; `bag` holds rows several times, which count once."""
VALUES = range(3)
SHAPES = (
    "{p}(x, z) :- {p}(x, y), {e}(y, z).",  # left-linear
    "{p}(x, z) :- {e}(x, y), {p}(y, z).",  # right-linear
    "{p}(x, z) :- {p}(x, y), {p}(y, z).",  # non-linear
    "{p}(x, z) :- {p}(x, y), {e}(y, w), {p}(w, z).",
    "{p}(x, y) :- {e}(a, x), {p}(a, b), {f}(b, y).",  # same generation
    "{p}(x, y) :- {p}(y, x).",
    "{p}(x, z) :- {q}(x, y), {e}(y, z).",  # mutual
    "{p}(x, z) :- {e}(x, y), {q}(y, z).",
    "{p}(x, z) :- {q}(x, y), {p}(y, z).",
    "{p}(x, z) :- {p}(x, y), {q}(z, y).",
    "{p}(x, y) :- {q}(y, x), {p}(x, _).",
)
"""Recursive rules of two columns: p is the predicate, q one of its layer, e and f lie below."""


class GoalProgram:
    """A program decided by a seed; `text` is its rules, `arity` that of each relation, `predicates` those with rules."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.arity = dict(BASE)
        self.rules: list[str] = []
        self.predicates: list[str] = []
        self.small = self.rng.random() < 0.5
        if self.small:
            self._small()
        else:
            self._layered()
        self.text = "\n".join(self.rules)

    def _small(self) -> None:
        """One or two recursive predicates, as they are in textbooks, and many rules that join them with what is given."""
        below = ["e"]
        for name in "pq"[: self.rng.randint(1, 2)]:
            self.arity[name] = 2
            shape = self.rng.choice(SHAPES[:5])
            self.rules += [f"{name}(x, y) :- e(x, y).", shape.format(p=name, e="e", f="e")]
            self.predicates.append(name)
            below.append(name)
        for number in range(6):
            self.predicates.append(self._joined(f"j{number}", below))

    def _layered(self) -> None:
        below = list(BASE)
        for layer in range(self.rng.randint(1, 3)):
            own = [f"p{layer}{letter}" for letter in "xyz"[: self.rng.randint(1, 3)]]
            for name in own:
                self.arity[name] = self.rng.choice((1, 2, 2, 2, 2, 3))
            for name in own:
                self._define(name, own, below)
            self.predicates += own
            below = below + own
            for number in range(self.rng.randint(0, 2)):
                joined = self._joined(f"j{layer}{number}", below)
                self.predicates.append(joined)
                below = [*below, joined]

    # ------------------------------------------------------------------ rules

    def _define(self, name: str, own: list[str], below: list[str]) -> None:
        """The rules of a predicate: something to begin with, then recursion."""
        rng = self.rng
        roll = rng.random()
        if roll < 0.06:
            for _ in range(rng.randint(1, 4)):
                self.rules.append(f"{name}({', '.join(self._value() for _ in range(self.arity[name]))}).")
            return
        if roll < 0.24:
            self.rules.append(self._aggregate(name, below))
            if roll < 0.12:
                return
        for _ in range(rng.randint(1, 2)):
            self.rules.append(self._rule(name, below, below))
        if rng.random() < 0.2:
            self.rules.append(f"{name}({', '.join(self._value() for _ in range(self.arity[name]))}).")
        for _ in range(rng.randint(0, 2)):
            if self.arity[name] == 2 and rng.random() < 0.7:
                self.rules.append(self._shaped(name, own, below))
            else:
                self.rules.append(self._rule(name, [*below, *own * 3], below))

    def _value(self) -> str:
        return str(self.rng.choice(VALUES))

    def _pairs(self, names: list[str]) -> list[str]:
        return [name for name in names if self.arity[name] == 2]

    def _shaped(self, name: str, own: list[str], below: list[str]) -> str:
        """A recursive rule of a known shape, in which terms may become constants or other variables."""
        rng = self.rng
        pairs = self._pairs(below)
        others = [other for other in self._pairs(own) if other != name] or [name]
        shape = rng.choice(SHAPES)
        text = shape.format(p=name, q=rng.choice(others), e=rng.choice(pairs), f=rng.choice(pairs))
        head, _, body = text.removesuffix(".").partition(" :- ")
        literals = [(part.partition("(")[0], part.partition("(")[2].rstrip(")").split(", ")) for part in split(body)]
        rng.shuffle(literals)
        names = sorted({term for _, terms in literals for term in terms if term != "_"})
        for _, terms in literals:
            for at in range(len(terms)):
                if rng.random() < 0.05:
                    terms[at] = rng.choice([*names, self._value(), "_"])
        bound = {term for _, terms in literals for term in terms if term.isalpha()}
        shown = [self._shown(term, bound) for term in head.partition("(")[2].rstrip(")").split(", ")]
        found = [f"{predicate}({', '.join(terms)})" for predicate, terms in literals]
        return f"{name}({', '.join(shown)}) :- {', '.join([*found, *self._tests(sorted(bound), below)])}."

    def _joined(self, name: str, below: list[str]) -> str:
        """A predicate of one rule that shows all its variables: it is evaluated as part of whatever reads it."""
        rng = self.rng
        literals = []
        pool = ["x", "y", "z"][: rng.choice((1, 1, 2, 2, 3))]
        for _ in range(rng.choice((1, 2, 2, 3, 3))):
            other = rng.choice([*below[-6:], *below])
            terms = [self._value() if rng.random() < 0.3 else rng.choice(pool) for _ in range(self.arity[other])]
            literals.append(f"{other}({', '.join(terms)})")
        shown = [term for term in pool if any(term in literal.partition("(")[2] for literal in literals)]
        if not shown:
            literals.append("e(x, x)")
            shown = ["x"]
        self.arity[name] = len(shown)
        rng.shuffle(shown)
        self.rules.append(f"{name}({', '.join(shown)}) :- {', '.join(literals)}.")
        return name

    def _shown(self, term: str, bound: set[str]) -> str:
        """A head's term: as it is, or sometimes another one that has a value."""
        if term in bound and self.rng.random() > 0.07:
            return term
        return self.rng.choice([*sorted(bound), self._value()])

    def _tests(self, variables: list[str], below: list[str]) -> list[str]:
        """Comparisons, equations, negations and aggregates over a body of their own."""
        rng = self.rng
        found = []
        if not variables:
            return []
        if rng.random() < 0.15:
            sign = rng.choice(["<", "<=", "!=", "=", ">", ">="])
            found.append(f"{rng.choice(variables)} {sign} {rng.choice([*variables, self._value()])}")
        if rng.random() < 0.2:
            name = rng.choice(below)
            terms = [rng.choice([*variables, *variables, "_", self._value()]) for _ in range(self.arity[name])]
            found.append(f"!{name}({', '.join(terms)})")
        if rng.random() < 0.06:
            name = rng.choice(below)
            terms = [rng.choice([*variables, "_"]) for _ in range(self.arity[name])]
            found += [f"n = count : {{ {name}({', '.join(terms)}) }}", f"{rng.choice(variables)} <= n"]
        return found

    def _rule(self, head: str, positive: list[str], below: list[str]) -> str:
        rng = self.rng
        body, variables = self._body(positive, below)
        terms = [rng.choice([*variables * 2, self._value()]) for _ in range(self.arity[head])]
        if rng.random() < 0.08:
            terms[0] = f"({rng.choice(variables)} + 1) % {len(VALUES)}"
        return f"{head}({', '.join(terms)}) :- {', '.join(body)}."

    def _body(self, positive: list[str], below: list[str]) -> tuple[list[str], list[str]]:
        rng = self.rng
        variables: list[str] = []
        literals = []
        for _ in range(rng.randint(1, 3)):
            name = rng.choice(positive)
            literals.append(f"{name}({', '.join(self._term(variables) for _ in range(self.arity[name]))})")
        if not variables:
            literals.append("e(v0, _)")
            variables.append("v0")
        if rng.random() < 0.15:
            new = f"v{len(variables)}"
            one = rng.choice(variables)
            literals.append(rng.choice([f"{new} = {one}", f"{one} = {new}", f"{new} = ({one} + 1) % {len(VALUES)}"]))
            variables.append(new)
        literals += self._tests(variables, below)
        rng.shuffle(literals)
        return literals, variables

    def _term(self, variables: list[str]) -> str:
        roll = self.rng.random()
        if roll < 0.06:
            return "_"
        if roll < 0.16:
            return self._value()
        if not variables or roll < 0.55:
            variables.append(f"v{len(variables)}")
            return variables[-1]
        return self.rng.choice(variables)

    def _aggregate(self, head: str, below: list[str]) -> str:
        body, variables = self._body(below, below)
        terms = [self.rng.choice(variables) for _ in range(self.arity[head])]
        kind = self.rng.choice(["count", "sum", "min", "max"])
        terms[self.rng.randrange(len(terms))] = f"{kind}({self.rng.choice(variables)})"
        return f"{head}({', '.join(terms)}) :- {', '.join(body)}."

    # ------------------------------------------------------------------ goals

    def goal(self) -> tuple[str, tuple[str, ...]]:
        """A relation and a term for each of its columns: a value, `?`, `_`, a variable, or `$a`, an argument that changes."""
        rng = self.rng
        name = rng.choice([*self.predicates * 3, *BASE])
        given = rng.choice((0, 0, 0.25, 0.5))
        kinds = ("?", "?", "?", "?", "_", "_", "u", "w") + (("$a", "$a", "$b") if rng.random() < 0.3 else ("?",))
        terms = tuple(self._value() if rng.random() < given else rng.choice(kinds) for _ in range(self.arity[name]))
        return name, terms


def split(body: str) -> list[str]:
    """The literals of a body of plain atoms."""
    return [part if part.endswith(")") else f"{part})" for part in body.split("), ")]
