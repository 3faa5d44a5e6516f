"""Random rules with aggregates over bodies of their own, whose variables are drawn from few names, so that outer variables, the
aggregates' own and witnesses often have the same.

Values enter a body by atoms, comparisons, arithmetic, functions, negations, negated groups, alternatives and aggregates inside
it. Many of the rules that are drawn are not safe; who uses them has to tell.
"""

from __future__ import annotations

import random

BASE = {"a": 2, "b": 2, "c": 1, "d": 3}
VALUES = range(4)
NAMES = ("x", "y", "z", "u", "w")
RESULTS = ("n", "m", "k")


class RandomRule:
    """A rule that `rng` decides, with the head `name`."""

    def __init__(self, rng: random.Random, name: str) -> None:
        self.rng = rng
        self.known: list[str] = []
        literals = [self.atom() for _ in range(rng.choice((0, 1, 1, 1, 2)))]
        outside = self.known
        literals += [self.aggregate(0) for _ in range(rng.choice((1, 1, 2, 2, 3)))]
        literals += [self.extra() for _ in range(rng.choice((0, 0, 1)))]
        inside = [v for v in NAMES if v not in outside and any(v in x for x in literals if "min" in x or "max" in x)]
        if rng.random() < 0.1:
            literals.append(f"({self.atom()}; {self.extra()})")
        if self.known and rng.random() < 0.1:
            literals.append(f"({self.aggregate(1)}, {rng.choice(self.known)} > 1; {self.atom()})")
        rng.shuffle(literals)
        # A head shows what is bound outside of aggregates, and sometimes what is bound inside: a witness, or an error.
        shown = [*outside, *outside, *inside] if rng.random() < 0.3 else outside
        terms = [rng.choice(shown) if shown else "0" for _ in range(rng.randint(1, 3))]
        if outside and rng.random() < 0.15:
            of = rng.choice(outside)
            terms.append(rng.choice((f"sum({of})", f"max({of})", f"count({of})", "count()")))
        self.text = f"{name}({', '.join(terms)}) :- {', '.join(literals)}."

    def any_name(self) -> str:
        """A variable, known or not."""
        return self.rng.choice(NAMES)

    def name(self) -> str:
        """A variable that is likely to be bound here."""
        return self.rng.choice(self.known) if self.known and self.rng.random() < 0.93 else self.any_name()

    def value(self) -> str:
        return str(self.rng.choice(VALUES)) if self.rng.random() < 0.15 else self.name()

    def atom(self) -> str:
        name = self.rng.choice(list(BASE))
        terms = []
        for _ in range(BASE[name]):
            roll = self.rng.random()
            if roll < 0.25:
                terms.append(
                    "_" if roll < 0.1 else f"{self.name()} + 1" if roll < 0.14 else str(self.rng.choice(VALUES))
                )
            else:
                terms.append(self.any_name())
                self.known.append(terms[-1])
        return f"{name}({', '.join(terms)})"

    def computed(self) -> str:
        one, other = self.name(), self.value()
        return self.rng.choice((f"{one} + {other}", f"{one} * {other}", f"max({one}, {other})", f"{one} - {other}"))

    def extra(self) -> str:
        """Something beside an atom: a comparison, a computed variable, a negation."""
        rng = self.rng
        match rng.randrange(6):
            case 0 | 1:
                return f"{self.name()} {rng.choice(('<', '<=', '!=', '=', '>'))} {self.value()}"
            case 2:
                term, name = self.computed(), self.any_name()
                self.known.append(name)
                return f"{name} = {term}"
            case 3:
                return f"{self.computed()} < {self.value()}"
            case 4:
                name = rng.choice(list(BASE))
                return f"!{name}({', '.join(rng.choice((self.value(), '_')) for _ in range(BASE[name]))})"
            case _:
                outside = self.known
                self.known = list(outside)
                text = f"!({self.atom()}, {self.name()} {rng.choice(('<', '='))} {self.value()})"
                self.known = outside
                return text

    def aggregate(self, depth: int) -> str:
        rng = self.rng
        outside = self.known
        self.known = list(outside)
        literals = [self.atom() for _ in range(rng.choice((1, 1, 1, 2)))]
        literals += [self.extra() for _ in range(rng.choice((0, 0, 1, 1, 2)))]
        if depth < 2 and rng.random() < 0.25:
            literals.append(self.aggregate(depth + 1))
        if rng.random() < 0.08:
            literals.append(f"({self.atom()}; {self.atom()})")
        if rng.random() < 0.05:
            literals.append(f"({self.aggregate(2)}; {self.atom()})")
        rng.shuffle(literals)
        kind = rng.choice(("count", "sum", "min", "max", "max", "min"))
        of = "" if kind == "count" else f" {self.name()}" if rng.random() < 0.8 else f" {self.name()} + {self.value()}"
        text = f"{kind}{of} : {{ {', '.join(literals)} }}"
        self.known = outside
        roll = rng.random()
        if roll < 0.1:
            return f"{self.value()} {rng.choice(('<', '!=', '>='))} {text}"
        if roll < 0.13:
            return f"_ = {text}"
        result = self.any_name() if roll < 0.25 else rng.choice(RESULTS)
        outside.append(result)
        return f"{result} = {text}"
