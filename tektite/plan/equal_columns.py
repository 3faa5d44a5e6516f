"""Classes of columns, or variables, that are known to be equal."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)


class Classes(Generic[T]):
    """Which members are equal, each class under one of them.

    >>> classes = Classes()
    >>> classes.join("a", "b")
    >>> classes.join("b", "c")
    >>> classes.of("c"), classes.of("d")
    ('a', 'd')
    """

    def __init__(self) -> None:
        self._parent: dict[T, T] = {}

    def of(self, member: T) -> T:
        """The member that stands for the class of one."""
        while (parent := self._parent.get(member, member)) != member:
            member = parent
        return member

    def join(self, one: T, other: T) -> None:
        """Make two members equal; what stands for the first one's class stands for both."""
        one, other = self.of(one), self.of(other)
        if one != other:
            self._parent[other] = one
