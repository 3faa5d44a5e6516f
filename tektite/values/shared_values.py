"""`shared`: one of equal values, for what thousands of views have alike, such as the numbers of their columns."""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar

Value = TypeVar("Value", bound=Hashable)

MOST = 1 << 10
"""Values that are kept: those of some hundred kinds of views."""


@lru_cache(maxsize=MOST)
def _first(value: Hashable) -> Hashable:
    return value


if TYPE_CHECKING:

    def shared(value: Value) -> Value:
        """The value that was first of those that equal this one: a text, or a tuple of integers, texts, types, or such tuples.
        Nothing else: to Python, 1, 1.0 and True are equal, and what is kept here refers to no engine.
        """

else:
    shared = _first
