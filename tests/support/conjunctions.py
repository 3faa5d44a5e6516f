"""Random conjunctions: cyclic and acyclic, with self-joins, repeated variables, constants, predicates and negation."""

from __future__ import annotations

import random
from typing import Any

import tektite as tk

VARIABLES = ("a", "b", "c", "d", "e")


def random_match(rng: random.Random, pool: list[tk.Collection], wide: bool = False) -> tuple[list[Any], dict[str, Any]]:
    """Clauses and options for `tk.match` over collections of ints, but without a strategy. Clauses that are `wide` have
    variables only, mostly different ones, so that they are bound bit by bit.
    """
    clauses: list[tuple[tk.Collection, tuple[Any, ...]]]
    if wide:
        chosen = [rng.choice(pool) for _ in range(3)]
        clauses = [(c, tuple(rng.sample(VARIABLES[:4], len(c.schema.names)))) for c in chosen]
    else:
        clauses = [clause(rng, rng.choice(pool), VARIABLES[: rng.randint(2, 5)]) for _ in range(rng.randint(1, 4))]
    variables = list(dict.fromkeys(term for _, terms in clauses for term in terms if isinstance(term, str)))
    if rng.random() < 0.3 and len(variables) >= 2:
        clauses.append((pool[0], tuple(rng.sample(variables, 2))))
    options: dict[str, Any] = {}
    if rng.random() < 0.4 and variables:
        options["where"] = [predicate(rng, variables) for _ in range(rng.randint(1, 2))]
    if rng.random() < 0.4:
        options["without"] = [clause(rng, rng.choice(pool), variables) for _ in range(rng.randint(1, 2))]
    if rng.random() < 0.6:
        options["find"] = rng.sample(variables, rng.randint(0, len(variables)))
    if rng.random() < 0.3:
        order: list[Any] = list(range(len(clauses))) if rng.random() < 0.5 or not variables else list(variables)
        rng.shuffle(order)
        options["order"] = order
    return clauses, options


def clause(rng: random.Random, collection: tk.Collection, variables: Any) -> tuple[tk.Collection, tuple[Any, ...]]:
    """A collection with random terms."""
    return collection, tuple(term(rng, variables) for _ in collection.schema.names)


def term(rng: random.Random, variables: Any) -> Any:
    kind = rng.random()
    if kind < 0.08 or not variables:
        return None
    if kind < 0.15:
        return tk.lit(rng.choice([0, 1, 2]))
    return rng.choice(variables)


def predicate(rng: random.Random, variables: list[str]) -> tk.Expr:
    one, other = tk.col(rng.choice(variables)), tk.col(rng.choice(variables))
    return rng.choice([one < other, one != other, one + other > 2, (one <= 2) | other.is_null(), one == other])
