"""Joins of two collections on any condition: what SQL's joins become, and Python's `join(on=expression)`.

| join | becomes |
|---|---|
| inner | a conjunction of two with the condition's parts; a `Join`, where a part says that NULL equals NULL |
| semi | an inner join with the distinct keys of the right relation, or with the left rows that have a match |
| anti | the left relation without its semi join |
| left, full | the inner join, and the anti joins filled up with NULLs |
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from tektite.expr import Expr, col, lit
from tektite.expr import type_of as expression_type
from tektite.expr.predicates import conjunction, conjuncts
from tektite.plan import algebra as plan
from tektite.plan.equal_columns import common_type, key_of
from tektite.query.builders import derived, filtered, project
from tektite.query.collection import Collection
from tektite.query.derived import subtracted
from tektite.values.schema import Schema
from tektite.values.types import Type


@dataclass
class Keys:
    """A join condition taken apart: pairs of scalars that must be equal, and the rest."""

    pairs: list[tuple[Expr, Expr, bool]]
    """Of the left relation and of the right one; whether NULL equals NULL."""
    rest: list[Expr]


def split(condition: Iterable[Expr], left: Iterable[str], right: Iterable[str]) -> Keys:
    """The equalities between two relations among some conjuncts, and the other conjuncts."""
    found = Keys([], [])
    lefts, rights = set(left), set(right)
    for part in condition:
        if part.op in ("eq", "is_same"):
            one, other = part.args
            sides = [set(one.columns()), set(other.columns())]
            if sides[0] and sides[1] and sides[0] <= lefts and sides[1] <= rights:
                found.pairs.append((one, other, part.op == "is_same"))
                continue
            if sides[0] and sides[1] and sides[1] <= lefts and sides[0] <= rights:
                found.pairs.append((other, one, part.op == "is_same"))
                continue
        found.rest.append(part)
    return found


def prepared(collection: Collection, keys: Sequence[Expr]) -> tuple[Collection, tuple[int, ...]]:
    """A collection with a column for each key that is not one of its own, and the places of the keys."""
    more = {f"#key{at}": key for at, key in enumerate(keys) if key.op != "col"}
    found = collection.with_columns(**more) if more else collection
    return found, tuple(
        found.schema.index(key.params[0] if key.op == "col" else f"#key{at}") for at, key in enumerate(keys)
    )


def pairs_of(left: Collection, right: Collection, condition: Iterable[Expr]) -> tuple[Collection, list[Expr]]:
    """The inner join of two collections by the equalities of a condition, and what of the condition is left to test."""
    found = split(condition, left.schema.names, right.schema.names)
    lefts: list[Expr] = []
    rights: list[Expr] = []
    seen: set[tuple[Any, ...]] = set()
    positions = (left.schema.positions, right.schema.positions)
    null_safe = any(same for _, _, same in found.pairs)
    guards = []
    for one, other, same in found.pairs:
        kinds = expression_type(one, positions[0]), expression_type(other, positions[1])
        wanted = common_type(*kinds)
        keys = key_of(one, wanted, kinds[0]), key_of(other, wanted, kinds[1])
        prints = (keys[0].fingerprint, keys[1].fingerprint)
        if any(print in seen for print in prints):  # a column can be a key once
            found.rest.append(Expr("is_same" if same else "eq", (one, other)))
            continue
        seen.update(prints)
        lefts.append(keys[0])
        rights.append(keys[1])
        if null_safe and not same:
            guards.append(one.is_not_null())
    mine, left_key = prepared(filtered(left, conjunction(guards)) if guards else left, lefts)
    theirs, right_key = prepared(right, rights)
    outputs = (*((0, c) for c in range(len(left.schema.names))), *((1, c) for c in range(len(right.schema.names))))
    columns = dict(zip(left.schema.names, left.schema.types, strict=True))
    columns |= dict(zip(right.schema.names, right.schema.types, strict=True))
    operator = plan.Join(Schema(columns), mine.operator, theirs.operator, left_key, right_key, outputs, null_safe)
    return derived(operator, mine, theirs), found.rest


def inner(left: Collection, right: Collection, parts: list[Expr], strategy: str) -> Collection:
    """The pairs of rows for which all parts of a condition are true: a conjunction of two, unless NULL equals NULL."""
    if any(part.op == "is_same" for part in parts):
        found, rest = pairs_of(left, right, parts)
        return filtered(found, conjunction(rest)) if rest else found
    columns = {
        name: type for side in (left, right) for name, type in zip(side.schema.names, side.schema.types, strict=True)
    }
    clauses = tuple([plan.Clause(side.operator, side.schema.names) for side in (left, right)])
    return derived(plan.Match(Schema(columns), clauses, (), tuple(parts), strategy), left, right)


def join(left: Collection, right: Collection, kind: str, condition: Expr, strategy: str = "auto") -> Collection:
    """A join of two collections on any condition."""
    parts = conjuncts(condition)
    if kind in ("semi", "anti"):
        return half(left, right, kind, parts, strategy)
    matched = inner(left, right, parts, strategy)
    if kind == "inner":
        return matched
    result = matched.concat(padded(half(left, right, "anti", parts, strategy), matched))
    if kind == "full":
        result = result.concat(padded(half(right, left, "anti", parts, strategy), matched))
    return result


def padded(missing: Collection, like: Collection) -> Collection:
    """Rows without a match, NULL in the columns of the other side."""
    own = set(missing.schema.names)
    pairs = zip(like.schema.names, like.schema.types, strict=True)
    return project(missing, [(name, col(name) if name in own else lit(None, type)) for name, type in pairs])


def half(left: Collection, right: Collection, kind: str, parts: list[Expr], strategy: str) -> Collection:
    """The rows of the left collection that have a match in the right one, or that have none."""
    found = split(parts, left.schema.names, right.schema.names)
    own = set(left.schema.names)
    mine: list[Expr] = []
    theirs: list[Expr] = []
    mixed: list[Expr] = []
    for part in found.rest:
        used = set(part.columns())
        (mine if used <= own else theirs if used <= set(right.schema.names) else mixed).append(part)
    candidates = filtered(left, conjunction(mine)) if mine else left
    others = filtered(right, conjunction(theirs)) if theirs else right
    equal = [Expr("is_same" if same else "eq", (one, other)) for one, other, same in found.pairs]
    if mixed:
        # the outer rows that the whole condition lets through, told apart by the columns that it reads
        read = list(dict.fromkeys(name for part in (*equal, *mixed) for name in part.columns() if name in own))
        domain = candidates.select(*read).distinct()
        found_ones = inner(domain, others, [*equal, *mixed], strategy).select(*read).distinct()
        witnesses = project(found_ones, [(f"#match {name}", col(name)) for name in read])
        pairs = [col(n).is_same(col(f"#match {n}")) for n in read]
    else:
        keys = [(f"#match{at}", other) for at, (_, other, _) in enumerate(found.pairs)]
        positions = others.schema.positions
        columns = [(name, normal(other, expression_type(other, positions))) for name, other in keys]
        witnesses = project(others, columns or [("#match", lit(0))]).distinct()
        pairs = [
            Expr("is_same" if same else "eq", (one, col(f"#match{at}")))
            for at, (one, _, same) in enumerate(found.pairs)
        ]
    matched = inner(candidates, witnesses, pairs, strategy).select(*left.schema.names)
    return matched if kind == "semi" else subtracted(matched, left)


def normal(expression: Expr, kind: Type) -> Expr:
    """A scalar that is to be made distinct: -0.0 is 0.0."""
    return Expr("key", (expression,)) if kind.has_keys else expression
