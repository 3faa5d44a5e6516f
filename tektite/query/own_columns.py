"""`table["x"]`: a column of one collection. Where it is used, it must mean that column and no other of the same name.

A name alone, `col("x")`, means the column of whatever it is used with. `table["x"]` also says whose column it is. It may be used
with the collection itself, with what is computed from it, and in the condition of a join, where it says which side is meant.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tektite.errors import IncorrectError
from tektite.expr import Expr, col
from tektite.plan.algebra import Operator
from tektite.plan.walk import walk
from tektite.query.joins import SUFFIX

if TYPE_CHECKING:
    from tektite.query.collection import Collection
    from tektite.query.outputs import Outputs


class OwnColumn(Expr):
    """A column, with the operator of the collection that it belongs to."""

    __slots__ = ("owner",)
    owner: Operator

    def __init__(self, name: str, owner: Operator) -> None:
        super().__init__("col", (), (name,))
        object.__setattr__(self, "owner", owner)

    def __reduce__(self) -> tuple[object, ...]:
        return Expr, ("col", (), self.params)


def named_columns(collection: Collection, outputs: Outputs, verb: str) -> Outputs:
    """Named expressions over a collection, in which columns are named. Refuses columns of others."""
    return [(name, _named(collection, expression, verb)) for name, expression in outputs]


def _named(collection: Collection, expression: Expr, verb: str) -> Expr:
    def plain(node: Expr) -> Expr | None:
        if not isinstance(node, OwnColumn):
            return None
        name = node.params[0]
        if node.owner is not collection.operator:
            if not _reads(collection, node.owner):
                raise IncorrectError(
                    f"{verb}: {name!r} is a column of another collection: join them first, or write tk.col({name!r}) for the "
                    "column of this one"
                )
            if f"{name}{SUFFIX}" in collection.schema.names:
                raise IncorrectError(
                    f"{verb}: both sides of the join had a column {name!r}: write tk.col({name!r}) for the left one, and "
                    f"tk.col({name + SUFFIX!r}) for the right one"
                )
        return col(name)

    return expression.replaced(plain)


def joined_columns(left: Collection, right: Collection, names: Mapping[int, str], condition: Expr) -> Expr:
    """The condition of a join, in which columns are named as in its result; `names` are those of the right side."""

    def plain(node: Expr) -> Expr | None:
        if not isinstance(node, OwnColumn):
            return None
        name = node.params[0]
        mine, theirs = _reads(left, node.owner), _reads(right, node.owner)
        if mine and theirs:
            raise IncorrectError(
                f"join: {name!r} may be of either side, which read the same collection: write tk.col({name!r}) for the left one, "
                f"and tk.col({names[right.schema.index(name)]!r}) for the right one"
            )
        if not mine and not theirs:
            raise IncorrectError(f"join: {name!r} is a column of a collection that is on neither side")
        return col(name if mine else names[right.schema.index(name)])

    return condition.replaced(plain)


def _reads(collection: Collection, owner: Operator) -> bool:
    return owner is collection.operator or owner in walk([collection.operator], lambda operator: False)
