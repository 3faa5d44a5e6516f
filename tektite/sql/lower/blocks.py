"""Lowering blocks: an inner join of any number of relations as one match of clauses.

Columns that must be equal are one variable; what else the conjuncts say is tested as soon as its variables are bound. Tables
stand as they are, so that every block reads the same indexes of them.
"""

from __future__ import annotations

from tektite.expr import Expr, col
from tektite.plan.equal_columns import Classes
from tektite.query.builders import project
from tektite.query.collection import Collection
from tektite.query.match import match
from tektite.sql.logical import Block, type_of
from tektite.sql.lower.joins import common_type


def matched(relations: list[Collection], node: Block, joins: str = "auto") -> Collection:
    """The collection of a block; `joins` forces a join strategy."""
    owners = {name: at for at, relation in enumerate(relations) for name in relation.schema.names}
    classes: Classes[str] = Classes()
    rest: list[Expr] = []
    keys: dict[int, dict[str, Expr]] = {}
    for part in node.conjuncts:
        pair = equated(part, owners)
        if pair is None:
            rest.append(part)
            continue
        columns = [key_column(side, at, part, relations, owners, keys) for at, side in enumerate(pair)]
        classes.join(columns[0], columns[1])
    given = [r.with_columns(**keys[at]) if at in keys else r for at, r in enumerate(relations)]
    members = [classes.of(name) for relation in given for name in relation.schema.names]
    wanted = {classes.of(name) for name in node.columns} | {classes.of(n) for part in rest for n in part.columns()}
    read = {name for name in members if name in wanted or members.count(name) > 1}

    def term(name: str) -> str | None:
        return classes.of(name) if classes.of(name) in read else None

    clauses = [(relation, [term(name) for name in relation.schema.names]) for relation in given]
    renamed = {name: col(classes.of(name)) for name in owners}
    where = [part.substitute(renamed) for part in rest]
    find = list(dict.fromkeys(classes.of(name) for name in node.columns))
    found = match(*clauses, find=find, where=where, strategy="sized" if joins == "auto" else joins)
    if find == list(node.columns):
        return found
    return project(found, [(name, col(classes.of(name))) for name in node.columns])


def equated(part: Expr, owners: dict[str, int]) -> tuple[Expr, Expr] | None:
    """The sides of an equality between two relations, each of which reads one of them."""
    if part.op != "eq":
        return None
    sides = [{owners[name] for name in side.columns()} for side in part.args]
    if len(sides[0]) != 1 or len(sides[1]) != 1 or sides[0] == sides[1]:
        return None
    return part.args[0], part.args[1]


def key_column(
    side: Expr,
    at: int,
    part: Expr,
    relations: list[Collection],
    owners: dict[str, int],
    keys: dict[int, dict[str, Expr]],
) -> str:
    """The column that a side of an equality is; a new one if it is computed, or of another type than the other side."""
    kinds = []
    for given in part.args:
        schema = relations[owners[given.columns()[0]]].schema
        kinds.append(type_of(given, dict(zip(schema.names, schema.types, strict=True))))
    wanted = common_type(*kinds)
    value = side if kinds[at] == wanted else side.cast(wanted)
    if value.op == "col":
        return str(value.params[0])
    place = owners[side.columns()[0]]
    made = keys.setdefault(place, {})
    for name, known in made.items():
        if known.fingerprint == value.fingerprint:
            return name
    name = f"#key{place}.{len(made)}"
    made[name] = value
    return name
