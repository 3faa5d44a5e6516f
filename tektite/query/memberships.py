"""`filter(col("x").is_in(collection))`: rows whose value is among those of another collection, or with `~` is not.

It is SQL's IN and NOT IN with a query, by the same plan.
"""

from __future__ import annotations

from typing import Any

from tektite.errors import IncorrectError
from tektite.expr import Expr, col
from tektite.expr.predicates import conjuncts
from tektite.plan.names import free_name
from tektite.query.collection import Collection
from tektite.query.own_columns import OwnColumn, named_columns
from tektite.query.sql_methods import queried, quoted


def has_membership(predicate: Expr) -> bool:
    """Whether a predicate asks for the rows of a collection."""
    return any(node.op == "is_among" for node in predicate.walk())


def filtered(collection: Collection, predicates: list[Expr]) -> Collection:
    """The rows for which all predicates are true, of which some ask for the rows of a collection."""
    parts = [part for predicate in predicates for part in conjuncts(predicate)]
    others = [part for part in parts if not has_membership(part)]
    found = collection.filter(others) if others else collection
    for part in parts:
        if has_membership(part):
            found = _members(found, named_columns(collection, [("", part)], "filter")[0][1])
    return found


def _members(collection: Collection, part: Expr) -> Collection:
    asked = part.args[0] if part.op == "not" else part
    if asked.op != "is_among" or has_membership(asked.args[0]):
        raise IncorrectError(
            f"filter: {part}: is_in(collection) is a condition of its own, alone or after ~; otherwise join with how='left'"
        )
    value, other = asked.args[0], _values(collection, asked.params[0].values)
    names = collection.schema.names
    name = str(value.params[0]) if value.op == "col" else free_name("value", names)
    given = collection if value.op == "col" else collection.with_columns(**{name: value})
    verb = "NOT IN" if part.op == "not" else "IN"
    shown = ", ".join(map(quoted, names))
    return queried(
        given, "is_in", f"SELECT {shown} FROM self WHERE {quoted(name)} {verb} (SELECT * FROM among)", {"among": other}
    )


def _values(collection: Collection, given: Any) -> Collection:
    """The collection of values that `is_in` was given."""
    if isinstance(given, OwnColumn):
        if given.owner is collection.operator:
            raise IncorrectError(f"is_in({given}): the column is of the same collection; compare the two with ==")
        return Collection(collection.engine, given.owner).select(col(str(given.params[0])))
    found: Collection = given
    if len(found.schema.names) != 1:
        raise IncorrectError(
            f"is_in takes a collection of one column, not of ({', '.join(found.schema.names)}): is_in(other.select('x'))"
        )
    return found
