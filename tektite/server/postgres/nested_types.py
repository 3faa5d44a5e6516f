"""Values of types with parts, or without a Python text of PostgreSQL's form: arrays, records, intervals, bytes, moments."""

from __future__ import annotations

import datetime
import struct
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from tektite.expr.literals import show_clock
from tektite.expr.zones import shown_offset
from tektite.values.python_values import month_day_nano

EPOCH = datetime.datetime(2000, 1, 1)
MICROSECOND = datetime.timedelta(microseconds=1)
NULL = b"\xff\xff\xff\xff"
_SPECIAL = frozenset('{}",\\ \t\n\r\v\f')
_RECORD_SPECIAL = frozenset('()",\\ \t\n\r\v\f')

WriteValue = Callable[[Any], bytes]


def interval_text(value: Any) -> str:
    """An interval as PostgreSQL shows it.

    >>> import pyarrow as pa
    >>> interval_text(pa.MonthDayNano([14, -3, 3_723_500_000_000])), interval_text(pa.MonthDayNano([0, 0, 0]))
    ('1 year 2 mons -3 days +01:02:03.5', '00:00:00')
    """
    months, days, micros = value[0], value[1], value[2] // 1000
    years, left = abs(months) // 12, abs(months) % 12
    parts: list[tuple[int, str]] = []
    sign = -1 if months < 0 else 1
    for number, unit in ((sign * years, "year"), (sign * left, "mon"), (days, "day")):
        if number:
            plus = "+" if parts and parts[-1][0] < 0 < number else ""
            parts.append((number, f"{plus}{number} {unit}{'s' * (number != 1)}"))
    if micros or not parts:
        plus = "-" if micros < 0 else "+" if parts and parts[-1][0] < 0 else ""
        parts.append((micros, plus + show_clock(abs(micros))))
    return " ".join(text for _, text in parts)


def interval_binary(value: Any) -> bytes:
    return struct.pack("!qii", value[2] // 1000, value[1], value[0])


def interval_from_binary(data: bytes) -> Any:
    micros, days, months = struct.unpack("!qii", data)
    return month_day_nano([months, days, micros * 1000])


def moment_text(value: datetime.datetime) -> str:
    """A moment by the clock that it is told by, and how far that is ahead of UTC."""
    away = value.utcoffset() or datetime.timedelta()
    text = value.replace(tzinfo=None).isoformat(" ")
    return (text.rstrip("0") if value.microsecond else text) + shown_offset(away // MICROSECOND)


def moment_binary(value: datetime.datetime) -> bytes:
    return struct.pack("!q", (value.astimezone(datetime.UTC).replace(tzinfo=None) - EPOCH) // MICROSECOND)


def moment_from_binary(data: bytes) -> datetime.datetime:
    (micros,) = struct.unpack("!q", data)
    return (EPOCH + datetime.timedelta(microseconds=micros)).replace(tzinfo=datetime.UTC)


def moment_from_text(text: str) -> datetime.datetime:
    """A moment; one without a zone is told in UTC."""
    found = datetime.datetime.fromisoformat(text.strip())
    return found if found.tzinfo is not None else found.replace(tzinfo=datetime.UTC)


def time_text(value: datetime.time) -> str:
    text = value.isoformat()
    return text.rstrip("0") if value.microsecond else text


def time_binary(value: datetime.time) -> bytes:
    seconds = (value.hour * 60 + value.minute) * 60 + value.second
    return struct.pack("!q", seconds * 1_000_000 + value.microsecond)


def time_from_binary(data: bytes) -> datetime.time:
    (micros,) = struct.unpack("!q", data)
    return (EPOCH + datetime.timedelta(microseconds=micros)).time()


def uuid_binary(value: str) -> bytes:
    return uuid.UUID(value).bytes


def array_text(write: WriteValue) -> WriteValue:
    """Writes lists, given what writes elements as text."""

    def written(values: list[Any]) -> bytes:
        return b"{" + b",".join(b"NULL" if v is None else _quoted(write(v), v, _SPECIAL) for v in values) + b"}"

    return written


def _quoted(data: bytes, value: Any, special: frozenset[str]) -> bytes:
    text = data.decode()
    if isinstance(value, list) or (text and text.upper() != "NULL" and not special & set(text)):
        return data
    return ('"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"').encode()


def array_binary(write: WriteValue, element: int) -> WriteValue:
    """Writes lists, given what writes elements as binary and the number of their type."""

    def written(values: list[Any]) -> bytes:
        cells = [NULL if v is None else sized(write(v)) for v in values]
        if not cells:
            return struct.pack("!iiI", 0, 0, element)
        return struct.pack("!iiIii", 1, int(None in values), element, len(cells), 1) + b"".join(cells)

    return written


def record_text(writers: list[WriteValue]) -> WriteValue:
    """Writes structs, given what writes each field as text."""

    def written(value: Mapping[str, Any]) -> bytes:
        pairs = zip(value.values(), writers, strict=True)
        return (
            b"("
            + b",".join(b"" if v is None else _quoted(write(v), None, _RECORD_SPECIAL) for v, write in pairs)
            + b")"
        )

    return written


def record_binary(writers: list[WriteValue], oids: list[int]) -> WriteValue:
    """Writes structs, given what writes each field as binary and the numbers of their types."""

    def written(value: Mapping[str, Any]) -> bytes:
        parts = [struct.pack("!i", len(oids))]
        for oid, write, part in zip(oids, writers, value.values(), strict=True):
            parts += [struct.pack("!I", oid), NULL if part is None else sized(write(part))]
        return b"".join(parts)

    return written


def sized(data: bytes) -> bytes:
    """A value behind its length."""
    return struct.pack("!i", len(data)) + data
