"""Random Datalog programs over small domains, in the textbook syntax: recursion, mutual recursion, negation, aggregates.

Predicates come in layers. A rule reads positively from its own layer and those below, and negates and aggregates only what
lies below, so that every program is stratified; arithmetic is taken modulo a small number, so that every program ends.
"""

from __future__ import annotations

import random

BASE = {"a": 2, "b": 2, "c": 1}
VALUES = range(5)


class RandomProgram:
    """A program decided by a seed; `text` is its rules, `predicates` those it defines."""

    def __init__(self, seed: int, layers: int = 3, nested: bool = True) -> None:
        """Without `nested` there are no aggregates over bodies of their own, which EDN cannot write."""
        self.rng = random.Random(seed)
        self.nested = nested
        self.arity = dict(BASE)
        self.rules: list[str] = []
        self.predicates: list[str] = []
        below = list(BASE)
        for layer in range(layers):
            own = [f"p{layer}{letter}" for letter in "xy"[: self.rng.randint(1, 2)]]
            for name in own:
                self.arity[name] = self.rng.randint(1, 3)
            for name in own:
                if self.rng.random() < 0.25:
                    self.rules.append(self.aggregate(name, below))
                    continue
                self.rules.append(self.rule(name, below, below))
                for _ in range(self.rng.randint(0, 2)):
                    plain = [
                        other for other in own if not any(f"{other}(" in r and self.is_aggregate(r) for r in self.rules)
                    ]
                    self.rules.append(self.rule(name, below + plain * 2, below))
            self.predicates += own
            below = below + own
        self.text = "\n".join(self.rules)

    def is_aggregate(self, rule: str) -> bool:
        return any(f"{kind}(" in rule.split(":-")[0] for kind in ("count", "sum", "min", "max", "avg"))

    def term(self, variables: list[str], fresh: float = 0.5) -> str:
        roll = self.rng.random()
        if roll < 0.08:
            return "_"
        if roll < 0.2:
            return str(self.rng.choice(VALUES))
        if not variables or roll < 0.2 + fresh * 0.8:
            name = f"v{len(variables)}"
            variables.append(name)
            return name
        return self.rng.choice(variables)

    def atom(self, name: str, variables: list[str], fresh: float = 0.5) -> str:
        return f"{name}({', '.join(self.term(variables, fresh) for _ in range(self.arity[name]))})"

    def body(self, positive: list[str], below: list[str]) -> tuple[list[str], list[str]]:
        rng = self.rng
        variables: list[str] = []
        literals = [self.atom(rng.choice(positive), variables) for _ in range(rng.randint(1, 3))]
        if not variables:
            literals.append("a(v0, _)")
            variables.append("v0")
        if rng.random() < 0.3:
            new = f"v{len(variables)}"
            literals.append(f"{new} = ({rng.choice(variables)} + {rng.choice(variables)} * 2) % 5")
            variables.append(new)
        if rng.random() < 0.2:
            one, other = (f"v{len(variables) + further}" for further in range(2))
            literals.append(rng.choice([f"{one} = {rng.choice(variables)}", f"{rng.choice(variables)} = {one}"]))
            variables.append(one)
            if rng.random() < 0.5:
                literals += [f"{other} = {one}", f"b({other}, {rng.choice(['_', *variables])})"]
                variables.append(other)
        if rng.random() < 0.3:
            literals.append(
                f"{rng.choice(variables)} {rng.choice(['<', '<=', '!=', '=', '>'])} {rng.choice([*variables, '2'])}"
            )
        if rng.random() < 0.4:
            name = rng.choice(below)
            terms = [rng.choice([*variables, "_", "1"]) for _ in range(self.arity[name])]
            literals.append(f"!{name}({', '.join(terms)})")
        if self.nested and rng.random() < 0.2:
            name = rng.choice(below)
            terms = [rng.choice([*variables, "_", "w"]) for _ in range(self.arity[name])]
            terms[-1] = "w"
            kind = rng.choice(["count", "sum w", "min w", "max w"])
            new = f"n{len(variables)}"
            literals.append(f"{new} = {kind} : {{ {name}({', '.join(terms)}) }}")
            if rng.random() < 0.6:
                literals.append(f"v9 = {new} % 5")
                variables.append("v9")
        if rng.random() < 0.15:
            one, other = (self.atom_of(rng.choice(below), variables) for _ in range(2))
            literals.append(f"({one}; {other})")
        rng.shuffle(literals)
        return literals, variables

    def atom_of(self, name: str, variables: list[str]) -> str:
        """An atom that binds nothing new."""
        return f"{name}({', '.join(self.rng.choice([*variables, '_', '3']) for _ in range(self.arity[name]))})"

    def rule(self, head: str, positive: list[str], below: list[str]) -> str:
        literals, variables = self.body(positive, below)
        terms = [
            self.rng.choice([*variables, *variables, str(self.rng.choice(VALUES))]) for _ in range(self.arity[head])
        ]
        if self.rng.random() < 0.15:
            terms[0] = f"({terms[0]} + 1) % 5"
        return f"{head}({', '.join(terms)}) :- {', '.join(literals)}."

    def aggregate(self, head: str, below: list[str]) -> str:
        literals, variables = self.body(below, below)
        terms = [self.rng.choice(variables) for _ in range(self.arity[head])]
        kind = self.rng.choice(["count", "sum", "min", "max"])
        terms[self.rng.randrange(len(terms))] = f"{kind}({self.rng.choice(variables)})"
        return f"{head}({', '.join(terms)}) :- {', '.join(literals)}."
