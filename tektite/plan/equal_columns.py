"""Classes of equal columns or variables, and the types in which values are compared."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

from tektite.expr import Expr, col, rank
from tektite.expr import type_of as expression_type
from tektite.values import types
from tektite.values.types import Type

T = TypeVar("T", bound=Hashable)


class Classes(Generic[T]):
    """Classes of equal members. One member represents each class.

    >>> classes = Classes()
    >>> classes.join("a", "b")
    >>> classes.join("b", "c")
    >>> classes.of("c"), classes.of("d")
    ('a', 'd')
    """

    def __init__(self) -> None:
        self._parent: dict[T, T] = {}

    def of(self, member: T) -> T:
        """The member that represents a member's class."""
        while (parent := self._parent.get(member, member)) != member:
            member = parent
        return member

    def join(self, one: T, other: T) -> None:
        """Make two members equal. The representative of the first one's class represents both."""
        one, other = self.of(one), self.of(other)
        if one != other:
            self._parent[other] = one


def common_type(one: Type, other: Type) -> Type:
    """The type in which values of two types are compared for equality.

    >>> print(common_type(types.Int, types.Float))
    float
    """
    if one == other:
        return one
    return expression_type(Expr("coalesce", (col("a"), col("b"))), {"a": (0, one), "b": (0, other)})


def key_of(expression: Expr, wanted: Type, found: Type) -> Expr:
    """An expression of one type as a key of another: its words are equal where values are."""
    decimals = isinstance(found, types.DecimalType) and isinstance(wanted, types.DecimalType)
    same = found == wanted or (decimals and found.scale == wanted.scale)  # type: ignore[attr-defined]
    value = expression if same else expression.cast(wanted)
    return rank(value) if wanted == types.Float else value
