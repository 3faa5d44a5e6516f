"""Conjunctions of clauses by joins of two at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tektite.collection import Collection
from tektite.expr import Expr, col
from tektite.plan import operators as plan
from tektite.schema import Schema
from tektite.types import Float

Clause = tuple[Collection, Sequence[Any]]


def match(
    *clauses: Clause, find: Sequence[str], where: Sequence[Expr] = (), without: Sequence[Clause] = ()
) -> Collection:
    """What `tk.match` gives: every way to give variables values such that each clause holds."""
    waiting = list(where)
    left: Collection | None = None
    todo = list(clauses)
    while todo:
        bound = set(left.schema.names) if left is not None else set()
        at = max(range(len(todo)), key=lambda i: (len(bound & variables(todo[i])), -i))
        clause = todo.pop(at)
        needed = set(find) | {v for other in (*todo, *without) for v in variables(other)}
        needed |= {name for test in waiting for name in test.columns()}
        left = alone(clause) if left is None else joined(left, clause, needed)
        names = set(left.schema.names)
        for test in waiting:
            if set(test.columns()) <= names:
                left = left.filter(test)
        waiting = [test for test in waiting if not set(test.columns()) <= names]
    assert left is not None
    for clause in without:
        left = anti(left, clause)
    return left.select(*find) if tuple(find) != left.schema.names else left


def variables(clause: Clause) -> set[str]:
    return {term for term in clause[1] if isinstance(term, str)}


def alone(clause: Clause) -> Collection:
    """The bindings of one clause."""
    collection, terms = clause
    names = collection.schema.names
    collection = filtered(collection, terms)
    first = {term: name for name, term in reversed(list(zip(names, terms, strict=True))) if isinstance(term, str)}
    return collection.select(**{term: col(name) for term, name in first.items()})


def filtered(collection: Collection, terms: Sequence[Any]) -> Collection:
    """A collection's rows that agree with a clause's constants and repeated variables."""
    tests: list[Expr] = []
    seen: dict[str, str] = {}
    for name, term in zip(collection.schema.names, terms, strict=True):
        if isinstance(term, Expr):
            tests.append(col(name) == term)
        elif isinstance(term, str):
            if term in seen:
                tests.append(col(name) == col(seen[term]))
            seen.setdefault(term, name)
    for test in tests:
        collection = collection.filter(test)
    return collection


def joined(left: Collection, clause: Clause, needed: set[str]) -> Collection:
    """The bindings of both, of the variables that are needed further on."""
    collection, terms = clause
    collection = filtered(collection, terms)
    first: dict[str, int] = {}
    for at, term in enumerate(terms):
        if isinstance(term, str):
            first.setdefault(term, at)
    shared = [v for v in first if v in left.schema.names]
    kept = [v for v in left.schema.names if v in needed]
    new = [v for v in first if v not in left.schema.names and v in needed]
    floats = any(collection.schema.types[first[v]] == Float for v in shared)
    if floats or not shared:
        one = {"__one": 1} if not shared else {}
        right = collection.select(**{v: col(collection.schema.names[at]) for v, at in first.items()}, **one)
        mine = left.with_columns(**one) if one else left
        return mine.join(right, on=shared or ["__one"]).select(*kept, *new)
    types = {v: left.schema.types[left.schema.index(v)] for v in kept}
    types |= {v: collection.schema.types[first[v]] for v in new}
    outputs = (*((0, left.schema.index(v)) for v in kept), *((1, first[v]) for v in new))
    left_key = tuple(left.schema.index(v) for v in shared)
    right_key = tuple(first[v] for v in shared)
    if not types:
        whole = plan.Join(Schema({v: left.schema.types[left.schema.index(v)] for v in shared}), left.operator,
                          collection.operator, left_key, right_key, tuple((0, k) for k in left_key))  # fmt: skip
        return left._new(whole, collection)
    join = plan.Join(Schema(types), left.operator, collection.operator, left_key, right_key, outputs)
    return left._new(join, collection)


def anti(left: Collection, clause: Clause) -> Collection:
    """The bindings that the clause has no row for."""
    collection, terms = clause
    right = alone((collection.with_columns(__one=1), [*terms, "__one"]))
    shared = [v for v in right.schema.names if v != "__one"]
    if shared:
        return left.join(right.select(*shared), on=shared, how="anti")
    names = left.schema.names
    return left.with_columns(__one=1).join(right.select("__one"), on="__one", how="anti").select(*names)
