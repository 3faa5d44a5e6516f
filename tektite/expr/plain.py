"""Expressions as plain values and back, for declarations that a storage keeps.

`to_plain(e)` holds nothing but lists, dicts, texts, numbers, truth values and None, as JSON has them, and `from_plain` makes an
equal expression of it. Types are texts there, which the caller reads.
"""

from __future__ import annotations

import datetime
import decimal
import uuid
from collections.abc import Callable
from typing import Any

from tektite.errors import IncorrectError, UnsupportedError
from tektite.expr.ast import Expr
from tektite.expr.constant_set import ConstantSet
from tektite.values.types import Type

ReadType = Callable[[str], Type]


def to_plain(expression: Expr) -> list[Any]:
    """An expression as plain values.

    >>> from tektite.expr import col
    >>> to_plain(col("x") > 1)
    ['gt', [['col', [], ['x']], ['lit', [], [{'type': 'int'}, 1]]], []]
    """
    return [
        expression.op,
        [to_plain(arg) for arg in expression.args],
        [_to_plain(param) for param in expression.params],
    ]


def from_plain(plain: Any, read_type: ReadType) -> Expr:
    """The expression that `to_plain` described; `read_type` reads the text of a type.

    >>> from tektite.expr import col
    >>> from tektite.values.types import Int
    >>> from_plain(to_plain(col("x") > 1), {"int": Int}.__getitem__)
    <Expr x > 1>
    """
    try:
        op, args, params = plain
        found = tuple(from_plain(arg, read_type) for arg in args)
        return Expr(str(op), found, tuple(_from_plain(param, read_type) for param in params))
    except (TypeError, ValueError) as error:
        raise UnsupportedError(f"a stored expression cannot be read: {plain!r}") from error


def _to_plain(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return {"float": value.hex()}
    if isinstance(value, decimal.Decimal):
        return {"decimal": str(value)}
    if isinstance(value, datetime.datetime):
        return {"timestamp": value.isoformat()}
    if isinstance(value, datetime.date):
        return {"date": value.isoformat()}
    if isinstance(value, datetime.time):
        return {"time": value.isoformat()}
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    if isinstance(value, uuid.UUID):
        return {"uuid": str(value)}
    if isinstance(value, Type):
        return {"type": str(value)}
    if isinstance(value, ConstantSet):
        given = [*value.values, *([None] if value.has_null else [])]
        return {"constants": [str(value.type), [_to_plain(part) for part in given]]}
    if isinstance(value, tuple | list):
        return {"list": [_to_plain(part) for part in value]}
    raise IncorrectError(f"{value!r} cannot be part of a declaration that is stored")


def _from_plain(plain: Any, read_type: ReadType) -> Any:
    if not isinstance(plain, dict):
        return plain
    ((kind, value),) = plain.items()
    if kind == "list":
        return tuple(_from_plain(part, read_type) for part in value)
    if kind == "constants":
        type, parts = value
        return ConstantSet(read_type(type), [_from_plain(part, read_type) for part in parts])
    readers: dict[str, Callable[[str], Any]] = {
        "float": float.fromhex, "decimal": decimal.Decimal, "timestamp": datetime.datetime.fromisoformat,
        "date": datetime.date.fromisoformat, "type": read_type, "time": datetime.time.fromisoformat,
        "bytes": bytes.fromhex, "uuid": uuid.UUID,
    }  # fmt: skip
    return readers[kind](value)
