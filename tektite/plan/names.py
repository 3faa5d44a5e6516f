"""Unique names for columns and variables."""

from __future__ import annotations

from collections.abc import Container


def free_name(wish: str, taken: Container[str]) -> str:
    """A name that is not taken: the wished one, or that with a number.

    >>> free_name("column", ["column", "a"]), free_name("b", ["column", "a"])
    ('column#2', 'b')
    """
    name, count = wish, 1
    while name in taken:
        count += 1
        name = f"{wish}#{count}"
    return name


def take_name(wish: str, taken: set[str]) -> str:
    """A free name, which is taken from then on."""
    name = free_name(wish, taken)
    taken.add(name)
    return name
