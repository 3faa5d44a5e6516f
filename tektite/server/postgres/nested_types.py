"""Values of types with parts, or without a Python text of PostgreSQL's form: arrays, records, intervals, bytes, moments."""

from __future__ import annotations

import datetime
import struct
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from tektite.errors import UnsupportedError
from tektite.expr.zones import shown_offset
from tektite.values.intervals import IntervalValue, show_clock

EPOCH = datetime.datetime(2000, 1, 1)
MICROSECOND = datetime.timedelta(microseconds=1)
NULL = b"\xff\xff\xff\xff"
_SPECIAL = frozenset('{}",\\ \t\n\r\v\f')
_RECORD_SPECIAL = frozenset('()",\\ \t\n\r\v\f')

WriteValue = Callable[[Any], bytes]


def interval_text(value: IntervalValue) -> str:
    """An interval as PostgreSQL shows it.

    >>> interval_text(IntervalValue(14, -3, 3_723_500_000)), interval_text(IntervalValue())
    ('1 year 2 mons -3 days +01:02:03.5', '00:00:00')
    """
    months, days, micros = value.months, value.days, value.microseconds
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


def interval_binary(value: IntervalValue) -> bytes:
    return struct.pack("!qii", value.microseconds, value.days, value.months)


def interval_from_binary(data: bytes) -> IntervalValue:
    micros, days, months = struct.unpack("!qii", data)
    return IntervalValue(months, days, micros)


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
    """Writes lists, given what writes elements as binary and the number of their type. Lists of lists are arrays of more
    dimensions, of which all rows have one length.
    """

    def written(values: list[Any]) -> bytes:
        sizes, level = [len(values)], values
        while any(isinstance(value, list) for value in level):
            lengths = {len(value) if isinstance(value, list) else -1 for value in level}
            if len(lengths) != 1:
                raise UnsupportedError(
                    "PostgreSQL's arrays of arrays have rows of one length, and this list has not: read it as text, or unnest it"
                )
            sizes.append(lengths.pop())
            level = [part for value in level for part in value]
        if not level:
            return struct.pack("!iiI", 0, 0, element)
        cells = [NULL if v is None else sized(write(v)) for v in level]
        head = struct.pack("!iiI", len(sizes), int(None in level), element)
        return head + b"".join(struct.pack("!ii", size, 1) for size in sizes) + b"".join(cells)

    return written


def array_from_binary(read: Callable[[bytes], Any]) -> Callable[[bytes], list[Any]]:
    """Reads lists, and lists of lists, given what reads elements."""

    def elements(data: bytes) -> list[Any]:
        many, _, _ = struct.unpack_from("!iiI", data)
        sizes = [struct.unpack_from("!i", data, 12 + 8 * at)[0] for at in range(many)]
        at, found = 12 + 8 * many, []
        while at < len(data):
            (size,) = struct.unpack_from("!i", data, at)
            at += 4
            found.append(None if size < 0 else read(data[at : at + size]))
            at += max(size, 0)
        for size in reversed(sizes[1:]):
            found = [found[start : start + size] for start in range(0, len(found), size)] if size else []
        return found

    return elements


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


def record_from_binary(readers: list[Callable[[bytes], Any]]) -> Callable[[bytes], tuple[Any, ...]]:
    """Reads structs, given what reads each field."""

    def fields(data: bytes) -> tuple[Any, ...]:
        at, found = 4, []
        if struct.unpack_from("!i", data)[0] != len(readers):
            raise ValueError
        for read in readers:
            (size,) = struct.unpack_from("!i", data, at + 4)
            at += 8
            found.append(None if size < 0 else read(data[at : at + size]))
            at += max(size, 0)
        return tuple(found)

    return fields


def sized(data: bytes) -> bytes:
    """A value behind its length."""
    return struct.pack("!i", len(data)) + data
