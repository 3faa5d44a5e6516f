"""Values as JSON holds them, by their types: one form for HTTP, WebSockets, sinks and sources.

| type | in JSON |
|---|---|
| int, bool, string | number, true or false, text |
| float | number; "NaN", "Infinity" and "-Infinity" as texts |
| decimal | text, such as "12.50" |
| date, time | text: "2024-02-29", "13:45:30.500000" |
| timestamp | text: "2024-02-29T12:00:00.000000" |
| timestamptz | text, told in UTC: "2024-02-29T12:00:00.000000Z" |
| interval | text, such as "1 month 2 days 03:00:00" |
| json | the text of the JSON value |
| uuid | text |
| blob | text, hexadecimal: "\\x00ff" |
| list, struct | array, object |
| NULL | null |

Promise: `from_json(as_json(value))` equals the value, for every type.
"""

from __future__ import annotations

import datetime
import decimal
import math
import uuid
from collections.abc import Callable
from typing import Any

from tektite.errors import IncorrectError
from tektite.values.interval_text import parse_bytes, parse_interval
from tektite.values.intervals import IntervalValue
from tektite.values.types import ListType, StructType, Type

JsonConverter = Callable[[Any], Any]
SPECIAL = {math.inf: "Infinity", -math.inf: "-Infinity"}


def moment_text(value: datetime.datetime) -> str:
    """A moment, told in UTC.

    >>> moment_text(datetime.datetime(2024, 2, 29, 12, tzinfo=datetime.UTC))
    '2024-02-29T12:00:00.000000Z'
    """
    return value.astimezone(datetime.UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def moment_from_text(text: str) -> datetime.datetime:
    """A moment; a text without an offset says none."""
    found = datetime.datetime.fromisoformat(text)
    if found.tzinfo is None:
        raise ValueError(text)
    return found


WRITE: dict[str, JsonConverter] = {
    "float": lambda value: value if math.isfinite(value) else SPECIAL.get(value, "NaN"),
    "decimal": lambda value: format(value, "f"),
    "date": datetime.date.isoformat,
    "time": lambda value: value.isoformat(timespec="microseconds"),
    "timestamp": lambda value: value.isoformat(timespec="microseconds"),
    "timestamptz": moment_text,
    "interval": lambda value: str(IntervalValue.of(value)),
    "uuid": str,
    "blob": lambda value: "\\x" + bytes(value).hex(),
}
READ: dict[str, JsonConverter] = {
    "float": float,
    "decimal": decimal.Decimal,
    "date": datetime.date.fromisoformat,
    "time": datetime.time.fromisoformat,
    "timestamp": datetime.datetime.fromisoformat,
    "timestamptz": moment_from_text,
    "interval": parse_interval,
    "uuid": uuid.UUID,
    "blob": parse_bytes,
}


def as_json(type: Type) -> JsonConverter | None:
    """The function that converts values of a type, none of them None, into values of JSON; None if they are that already."""
    return _nested(type, as_json, WRITE)


def from_json(type: Type) -> JsonConverter | None:
    """The function that converts values of JSON, none of them null, into values of a type; None if they are that already. Texts
    are parsed. Other values stay: the caller checks them.
    """
    return _nested(type, from_json, READ)


def _nested(
    type: Type, convert: Callable[[Type], JsonConverter | None], plain: dict[str, JsonConverter]
) -> JsonConverter | None:
    if isinstance(type, ListType):
        element = convert(type.element)
        if element is None:
            return None
        each = element
        return lambda values: [None if v is None else each(v) for v in values] if isinstance(values, list) else values
    if isinstance(type, StructType):
        parts = {name: found for name, kind in type.fields if (found := convert(kind)) is not None}
        if not parts:
            return None

        def fields(value: Any) -> Any:
            if not isinstance(value, dict):
                return value
            return value | {
                name: None if value[name] is None else part(value[name])
                for name, part in parts.items()
                if name in value
            }

        return fields
    found = plain.get(type.kind)
    if found is None or plain is not READ:
        return found
    return lambda value: found(value) if isinstance(value, str) else value


def read(convert: JsonConverter | None, value: Any, type: Type, column: str) -> Any:
    """A value that came as JSON. An error names its column."""
    if convert is None or value is None:
        return value
    try:
        return convert(value)
    except (ValueError, ArithmeticError, OverflowError):
        raise IncorrectError(f"column {column!r}: expected {type}, found {value!r}") from None
