"""Look-ups in mappings of constants, as expressions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tektite.expr import Expr, lit
from tektite.values.types import Type


def looked_up(key: Expr, rows: Mapping[Any, Any], type: Type, otherwise: Expr | None = None) -> Expr:
    """The value that a mapping of constants has for a key."""
    if key.op == "lit" and otherwise is None:
        return lit(rows.get(key.params[1]), type)
    parts: list[Expr] = []
    for known, value in rows.items():
        parts += [key == lit(known), lit(value, type)]
    last = lit(None, type) if otherwise is None else otherwise
    return Expr("case", (*parts, last)) if parts else last
