"""Our types as PostgreSQL's: their numbers, and values as text and as binary, both ways.

Every whole number is an int8, since that is what a word holds. A client may send a parameter as any type of PostgreSQL that holds
values of ours.
"""

from __future__ import annotations

import datetime
import decimal
import struct
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from tektite.errors import IncorrectError, UnsupportedError
from tektite.expr.interned_texts import parse_interned
from tektite.expr.zones import moment_said
from tektite.server.postgres import nested_types
from tektite.sql.catalog.array_text import array_elements
from tektite.sql.catalog.pg_types import BY_OID, PG_TYPES, REGISTERED, PgType, pg_type
from tektite.values import types
from tektite.values.interval_text import parse_bytes, parse_interval
from tektite.values.types import DecimalType, ListType, StructType, Type

TEXT, BINARY = 0, 1

BOOL, INT8, INT2, INT4, TEXT_OID, OID = 16, 20, 21, 23, 25, 26
FLOAT4, FLOAT8, BPCHAR, VARCHAR, DATE, TIMESTAMP, TIMESTAMPTZ, NUMERIC = 700, 701, 1042, 1043, 1082, 1114, 1184, 1700
NAME, CHAR, UNKNOWN, JSON, JSONB, UUID, REGCLASS = 19, 18, 705, 114, 3802, 2950, 2205
BYTEA, TIME, INTERVAL, RECORD = 17, 1083, 1186, 2249

EPOCH_DATE: Final = datetime.date(2000, 1, 1)
EPOCH_TIME: Final = datetime.datetime(2000, 1, 1)
MICROSECOND: Final = datetime.timedelta(microseconds=1)

OIDS: Final = {
    "int": INT8, "float": FLOAT8, "bool": BOOL, "string": TEXT_OID, "date": DATE, "timestamp": TIMESTAMP, "decimal": NUMERIC,
    "time": TIME, "timestamptz": TIMESTAMPTZ, "interval": INTERVAL, "json": JSON, "uuid": UUID, "blob": BYTEA, "struct": RECORD,
}  # fmt: skip
SIZES: Final = {INT8: 8, FLOAT8: 8, BOOL: 1, DATE: 4, TIMESTAMP: 8, TIME: 8, TIMESTAMPTZ: 8, INTERVAL: 16, UUID: 16}
"""The bytes of values of types whose values all have as many."""

KINDS: Final[dict[int, Type]] = {
    BOOL: types.Bool, INT8: types.Int, INT2: types.Int, INT4: types.Int, OID: types.Int, REGCLASS: types.Int,
    FLOAT4: types.Float, FLOAT8: types.Float, TEXT_OID: types.String, VARCHAR: types.String, BPCHAR: types.String,
    NAME: types.String, CHAR: types.String, JSON: types.Json, JSONB: types.Json, UUID: types.Uuid, DATE: types.Date,
    TIMESTAMP: types.Timestamp, TIMESTAMPTZ: types.TimestampTz, NUMERIC: types.Decimal(18, 6), TIME: types.Time,
    INTERVAL: types.Interval, BYTEA: types.Blob,
}  # fmt: skip
"""The type of ours that a parameter of a type of PostgreSQL's has."""


@dataclass(frozen=True, slots=True)
class CatalogType(Type):
    """A type of ours that system relations call by one of PostgreSQL's: a name, an oid, an array that is written as a text."""

    declared: PgType = BY_OID[TEXT_OID]


def catalog_type(type: Type, name: str) -> Type:
    """A type of ours by the name that a column of a system relation has for it. What is shown by its name is a text."""
    found = PG_TYPES.get(name)
    shown = type == types.String and name in REGISTERED
    return type if found is None or shown else CatalogType(type.kind, found)


def oid_of(type: Type) -> int:
    """The number of a type."""
    if isinstance(type, CatalogType):
        return type.declared.oid
    return pg_type(type).oid if isinstance(type, ListType) else OIDS.get(type.kind, TEXT_OID)


def size_of(type: Type) -> int:
    """The bytes of a value; -1 where they differ."""
    return type.declared.length if isinstance(type, CatalogType) else SIZES.get(oid_of(type), -1)


def modifier_of(type: Type) -> int:
    """PostgreSQL's type modifier of a column: the precision and scale of a decimal, −1 of other types.

    >>> modifier_of(types.Decimal(10, 2)), modifier_of(types.Int)
    (655366, -1)
    """
    return (type.precision << 16 | type.scale) + 4 if isinstance(type, DecimalType) else -1


# ---------------------------------------------------------------------- out, as text


def float_text(value: float) -> str:
    """A float as PostgreSQL writes it.

    >>> float_text(1.0), float_text(1e300), float_text(float("-inf")), float_text(float("nan"))
    ('1', '1e+300', '-Infinity', 'NaN')
    """
    text = repr(value)
    if text[-1] in "fn":
        return {"inf": "Infinity", "-inf": "-Infinity"}.get(text, "NaN")
    return text.removesuffix(".0")


def timestamp_text(value: datetime.datetime) -> str:
    """A timestamp; what lies behind the second is written if there is something."""
    text = value.isoformat(" ")
    return text.rstrip("0") if value.microsecond else text


WRITE_TEXT: Final[dict[str, Callable[[Any], bytes]]] = {
    "int": lambda value: b"%d" % value,
    "float": lambda value: float_text(value).encode(),
    "bool": lambda value: b"t" if value else b"f",
    "string": str.encode,
    "date": lambda value: value.isoformat().encode(),
    "timestamp": lambda value: timestamp_text(value).encode(),
    "decimal": lambda value: format(value, "f").encode(),
    "time": lambda value: nested_types.time_text(value).encode(),
    "timestamptz": lambda value: nested_types.moment_text(value).encode(),
    "interval": lambda value: nested_types.interval_text(value).encode(),
    "json": str.encode,
    "uuid": str.encode,
    "blob": lambda value: b"\\x" + value.hex().encode(),
}

# ---------------------------------------------------------------------- out, as binary


def numeric_binary(value: decimal.Decimal) -> bytes:
    """A decimal: groups of four digits, the power of 10,000 of the first one, the sign, and the number of decimal places.

    >>> numeric_binary(decimal.Decimal("-12345.60")).hex()
    '0003000140000002000109291770'
    """
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    scale = max(-exponent, 0)
    text = "".join(map(str, digits)) + "0" * max(exponent, 0)
    whole, fraction = text[: len(text) - scale], text[len(text) - scale :].rjust(scale, "0")
    whole = whole.rjust(-(-len(whole) // 4) * 4, "0")
    fraction = fraction.ljust(-(-len(fraction) // 4) * 4, "0")
    groups = [int((whole + fraction)[at : at + 4]) for at in range(0, len(whole) + len(fraction), 4)]
    weight = len(whole) // 4 - 1
    while groups and not groups[0]:
        del groups[0]
        weight -= 1
    while groups and not groups[-1]:
        del groups[-1]
    return struct.pack(
        f"!hhHh{len(groups)}h", len(groups), weight if groups else 0, 0x4000 if sign else 0, scale, *groups
    )


def timestamp_binary(value: datetime.datetime) -> bytes:
    return struct.pack("!q", (value - EPOCH_TIME) // MICROSECOND)


WRITE_BINARY: Final[dict[str, Callable[[Any], bytes]]] = {
    "int": struct.Struct("!q").pack,
    "float": struct.Struct("!d").pack,
    "bool": lambda value: b"\1" if value else b"\0",
    "string": str.encode,
    "date": lambda value: struct.pack("!i", (value - EPOCH_DATE).days),
    "timestamp": timestamp_binary,
    "decimal": numeric_binary,
    "time": nested_types.time_binary,
    "timestamptz": nested_types.moment_binary,
    "interval": nested_types.interval_binary,
    "json": str.encode,
    "uuid": nested_types.uuid_binary,
    "blob": bytes,
}


NARROW: Final = {INT2: "!h", INT4: "!i", INT8: "!q", BOOL: "!?", FLOAT4: "!f", FLOAT8: "!d"}


def declared_writer(type: PgType) -> Callable[[Any], bytes]:
    """The function that writes values of one of PostgreSQL's types as binary. An array is a text here; elements are written."""
    if type.category == "A":
        element = BY_OID[type.element]
        write = declared_writer(element)
        first = 0 if type.name.endswith("vector") else 1

        def array(value: str) -> bytes:
            texts = value.split() if not value.startswith("{") else array_elements(value)
            cells = [b"\xff\xff\xff\xff" if t is None else sized(write(from_text(element, t))) for t in texts]
            if not cells:
                return struct.pack("!iiI", 0, 0, element.oid)
            return struct.pack("!iiIii", 1, int(None in texts), element.oid, len(cells), first) + b"".join(cells)

        return array
    if type.oid in NARROW:
        return struct.Struct(NARROW[type.oid]).pack
    if type.category == "N" and type.length == 4:  # an oid
        return lambda value: struct.pack("!I", int(value) & 0xFFFFFFFF)
    return lambda value: str(value).encode()


def from_text(type: PgType, text: str) -> Any:
    """An element of an array that is a text, as a value."""
    if type.category == "B":
        return text == "t"
    return int(text) if type.category == "N" else text


def sized(data: bytes) -> bytes:
    """A value behind its length."""
    return struct.pack("!i", len(data)) + data


def innermost(type: Type) -> Type:
    """The type of the elements of a list, or of lists in it."""
    return innermost(type.element) if isinstance(type, ListType) else type


def writer(type: Type, form: int) -> Callable[[Any], bytes]:
    """The function that writes values of a type in a format."""
    if isinstance(type, CatalogType) and form == BINARY:
        return declared_writer(type.declared)
    if isinstance(type, ListType):
        if form == TEXT:
            return nested_types.array_text(writer(type.element, form))
        inner = innermost(type)
        return nested_types.array_binary(writer(inner, form), oid_of(inner))
    if isinstance(type, StructType):
        fields = [writer(kind, form) for _, kind in type.fields]
        if form == TEXT:
            return nested_types.record_text(fields)
        return nested_types.record_binary(fields, [oid_of(kind) for _, kind in type.fields])
    return (WRITE_BINARY if form == BINARY else WRITE_TEXT).get(type.kind, lambda value: str(value).encode())


# ---------------------------------------------------------------------- in


def bool_from_text(text: str) -> bool:
    """A truth value, by any beginning of a word that PostgreSQL knows."""
    word = text.strip().lower()
    if word and any(name.startswith(word) for name in ("true", "yes")) or word in ("on", "1"):
        return True
    if word and any(name.startswith(word) for name in ("false", "no")) or word in ("off", "of", "0"):
        return False
    raise ValueError


def timestamp_from_text(text: str) -> datetime.datetime:
    """A timestamp: what its clock shows, whichever zone the text says. Drivers for Java send all moments with one."""
    return datetime.datetime.fromisoformat(text.strip()).replace(tzinfo=None)


def date_from_text(text: str) -> datetime.date:
    return datetime.date.fromisoformat(text.strip()[:10])


READ_TEXT: Final[dict[str, Callable[[str], Any]]] = {
    "int": int,
    "float": float,
    "bool": bool_from_text,
    "string": str,
    "date": date_from_text,
    "timestamp": timestamp_from_text,
    "decimal": decimal.Decimal,
    "time": datetime.time.fromisoformat,
    "timestamptz": nested_types.moment_from_text,
    "interval": parse_interval,
    "blob": parse_bytes,
}


TOLD: Final = frozenset({"list", "struct", "interval", "blob", "timestamptz", "time", "json", "uuid"})
"""Kinds of values that Arrow reads otherwise than PostgreSQL writes them."""


def text_reader(type: Type, zone: str = "UTC") -> Callable[[str], Any]:
    """The function that reads values of a type from text. Moments without an offset are in the time zone `zone`."""
    if type == types.TimestampTz and zone != "UTC":
        return lambda text: moment_said(text, zone)
    if isinstance(type, ListType) and type.element.kind == "oid":
        type = ListType("list", types.Int)
    if isinstance(type, ListType | StructType):
        return lambda text: parse_interned(text, type)
    return READ_TEXT.get(type.kind, str)


def numeric_from_binary(data: bytes) -> decimal.Decimal:
    """The inverse of `numeric_binary`.

    >>> numeric_from_binary(numeric_binary(decimal.Decimal("0.00012")))
    Decimal('0.00012')
    """
    many, weight, sign, scale = struct.unpack_from("!hhHh", data)
    if sign not in (0, 0x4000) or len(data) != 8 + 2 * many:
        raise ValueError
    groups = struct.unpack_from(f"!{many}h", data, 8)
    total = 0
    for group in groups:
        total = total * 10_000 + group
    exact = decimal.Decimal(total).scaleb(4 * (weight - many + 1), decimal.Context(prec=200))
    value = exact.quantize(decimal.Decimal(1).scaleb(-scale), context=decimal.Context(prec=200))
    return -value if sign else value


def number(form: str) -> Callable[[bytes], Any]:
    """The function that reads a number of a fixed size."""
    layout = struct.Struct(form)
    return lambda data: layout.unpack(data)[0]


def timestamp_from_binary(data: bytes) -> datetime.datetime:
    return EPOCH_TIME + datetime.timedelta(microseconds=number("!q")(data))


READ_BINARY: Final[dict[int, Callable[[bytes], Any]]] = {
    BOOL: number("!?"),
    INT8: number("!q"),
    INT2: number("!h"),
    INT4: number("!i"),
    OID: number("!I"),
    REGCLASS: number("!I"),
    FLOAT4: number("!f"),
    FLOAT8: number("!d"),
    DATE: lambda data: EPOCH_DATE + datetime.timedelta(days=number("!i")(data)),
    TIMESTAMP: timestamp_from_binary,
    TIMESTAMPTZ: nested_types.moment_from_binary,
    TIME: nested_types.time_from_binary,
    INTERVAL: nested_types.interval_from_binary,
    UUID: lambda data: str(uuid.UUID(bytes=data)),
    BYTEA: bytes,
    JSONB: lambda data: data[1:].decode(),
    NUMERIC: numeric_from_binary,
    **{oid: bytes.decode for oid in (TEXT_OID, VARCHAR, BPCHAR, NAME, CHAR, UNKNOWN, JSON, 0)},
}


def binary_reader(oid: int) -> Callable[[bytes], Any] | None:
    """The function that reads values of one of PostgreSQL's types from binary, or None. Arrays are read as lists."""
    found = READ_BINARY.get(oid)
    type = BY_OID.get(oid)
    if found is None and type is not None and type.category == "A":
        element = binary_reader(type.element)
        return None if element is None else nested_types.array_from_binary(element)
    return found


def reader_of(type: Type) -> Callable[[bytes], Any]:
    """The function that reads values of one of our types from binary."""
    if isinstance(type, ListType):
        return nested_types.array_from_binary(reader_of(innermost(type)))
    if isinstance(type, StructType):
        return nested_types.record_from_binary([reader_of(kind) for _, kind in type.fields])
    return READ_BINARY[oid_of(type)]


def read_value(data: bytes | None, oid: int, type: Type, form: int, label: str, zone: str) -> Any:
    """A parameter's value, which came as the type `oid` of PostgreSQL's and is to be of a type of ours."""
    if data is None:
        return None
    try:
        if form == BINARY:
            read = binary_reader(oid)
            if read is None:
                raise UnsupportedError(
                    f"parameter ${label}: values of PostgreSQL's type {oid} are not supported in binary"
                )
            return read(data)
        return text_reader(type, zone)(data.decode())
    except (ValueError, struct.error, decimal.InvalidOperation, OverflowError):
        shown = data[:40].decode(errors="replace") if form == TEXT else data[:20].hex()
        error = IncorrectError(f"parameter ${label}: invalid input for type {type}: {shown!r}")
        error.details["sqlstate"] = "22P02" if form == TEXT else "22P03"
        raise error from None
