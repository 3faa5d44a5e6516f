"""Comparisons: how they are written, and what becomes of one whose sides change places or whose truth is turned around.

Expressions have names of operations (`lt`), people write signs (`<`); the tables know both.
"""

from __future__ import annotations

SIGNS = {"eq": "=", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
"""How a comparison is written."""
OPERATIONS = {sign: op for op, sign in SIGNS.items()}
"""Operators as they are written, each with its operation."""
ORDERING = ("lt", "le", "gt", "ge")
"""The comparisons that need an order."""


def _with_signs(table: dict[str, str]) -> dict[str, str]:
    return table | {SIGNS[one]: SIGNS[other] for one, other in table.items()}


MIRRORED = _with_signs({"eq": "eq", "ne": "ne", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le"})
"""The comparison that says the same with its sides exchanged: a < b is b > a."""
OPPOSITE = _with_signs({"eq": "ne", "ne": "eq", "lt": "ge", "le": "gt", "gt": "le", "ge": "lt"})
"""The comparison that is true where one is false: a < b is not a >= b."""
