"""Adds very long sums in groups, so that trees stay shallow.

The result equals that from left to right, except for the rounding of floats and the place of an overflow. Shorter sums are added
from left to right.
"""

from __future__ import annotations

import functools
import operator
from typing import TYPE_CHECKING

from sqlglot import exp

from tektite.expr import Expr

if TYPE_CHECKING:
    from tektite.sql.bind.scalar import Scalars

TERMS = 200
"""The most terms that are added from left to right. A tree of that depth is harmless."""
GROUP = 50
"""Terms that are added from left to right in each group: the depth of 5,000 terms is then 150."""


def long_sum(node: exp.Expr) -> list[exp.Expr]:
    """The additions and subtractions of a long chain, the first one first; nothing if it is not long."""
    links: list[exp.Expr] = []
    while isinstance(node, exp.Add | exp.Sub):
        links.append(node)
        node = node.this
    return links[::-1] if len(links) > TERMS else []


def sum_in_groups(scalars: Scalars, node: exp.Expr, links: list[exp.Expr]) -> Expr:
    """The sum of a long chain of additions and subtractions."""
    terms = [scalars.any(links[0].this), *(scalars.any(link.expression) for link in links)]
    numbers = [term for term in terms if isinstance(term, Expr)]
    kinds = {scalars.type(number, node).kind for number in numbers}
    if len(numbers) < len(terms) or not kinds <= {"int", "decimal", "float"}:
        raise scalars.unsupported(f"a sum of more than {TERMS} terms that are not all numbers", node)
    signed = [numbers[0]]
    for link, number in zip(links, numbers[1:], strict=True):
        signed.append(number if isinstance(link, exp.Add) else -number)
    while len(signed) > 1:
        groups = [signed[at : at + GROUP] for at in range(0, len(signed), GROUP)]
        signed = [functools.reduce(operator.add, group) for group in groups]
    return scalars.checked(signed[0], node)
