"""The type and the word of a Python value.

Every value that `literal_value` accepts has a word, except texts: their word is their id in a dictionary.
"""

from __future__ import annotations

import datetime
import decimal
import math
import re
import struct
import uuid
from typing import Any

import pyarrow as pa

from tektite.errors import IncorrectError
from tektite.values.intervals import IntervalValue, show_clock
from tektite.values.types import (
    MOST_DIGITS,
    WORD_DIGITS,
    Blob,
    Bool,
    Date,
    Decimal,
    DecimalType,
    Float,
    Int,
    Interval,
    ListType,
    String,
    StructType,
    Time,
    Timestamp,
    TimestampTz,
    Type,
    Uuid,
)
from tektite.values.words import INT_RANGE, NULL

Untyped = Type("null")  # the type of a bare None: it fits any other

MAX_INT = 2**63 - 1
MAX_DIGITS = WORD_DIGITS
MAX_DAYS = 2_932_896  # 9999-12-31, the last Python date
DAY = 86_400_000_000  # microseconds

_EPOCH_DAY = datetime.date(1970, 1, 1).toordinal()
_EPOCH = datetime.datetime(1970, 1, 1)
_TRUTH = {
    **dict.fromkeys(("true", "t", "yes", "y", "on", "1"), True),
    **dict.fromkeys(("false", "f", "no", "n", "off", "0"), False),
}
_EXACT = decimal.Context(prec=60)
_DAY = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})")
_CLOCK = re.compile(r"(\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,9}))?)?")
_MOMENT = re.compile(
    _DAY.pattern + r"(?:[ T](\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,9}))?)?\s*([Zz]|[+-]\d\d(?::?\d\d)?)?)?"
)


def literal_type(value: Any) -> Type:
    """The type of a Python scalar."""
    if value is None:
        return Untyped
    if isinstance(value, bool):
        return Bool
    if isinstance(value, int):
        return Int
    if isinstance(value, float):
        return Float
    if isinstance(value, str):
        return String
    if isinstance(value, decimal.Decimal):
        return _decimal_type(value)
    if isinstance(value, datetime.datetime):
        return Timestamp if value.tzinfo is None else TimestampTz
    if isinstance(value, datetime.date):
        return Date
    if isinstance(value, datetime.time):
        return Time
    if isinstance(value, datetime.timedelta | pa.MonthDayNano | IntervalValue):
        return Interval
    if isinstance(value, uuid.UUID):
        return Uuid
    if isinstance(value, bytes):
        return Blob
    if isinstance(value, list):
        return ListType("list", _common_type([literal_type(element) for element in value]))
    if isinstance(value, dict) and value and all(isinstance(name, str) for name in value):
        return StructType("struct", tuple((name, literal_type(part)) for name, part in value.items()))
    raise IncorrectError(
        f"cannot use {value!r} of type {type(value).__name__} in an expression: a literal is an int, float, bool, str, "
        "Decimal, date, datetime, time, timedelta, UUID, bytes, list, dict or None"
    )


def _common_type(found: list[Type]) -> Type:
    """The one type of the elements of a list."""
    different = [kind for at, kind in enumerate(found) if kind != Untyped and kind not in found[:at]]
    if len(different) > 1:
        if set(different) == {Int, Float}:
            return Float
        raise IncorrectError(f"a list has elements of one type, found {', '.join(map(str, different))}")
    return different[0] if different else Untyped


def _decimal_type(value: decimal.Decimal) -> DecimalType:
    if not value.is_finite():
        raise IncorrectError(f"decimal literal {value}: only finite decimals are values")
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    scale = max(0, -exponent)
    precision = max(len(digits) + max(0, exponent), scale, 1)
    if precision > MOST_DIGITS:
        raise IncorrectError(f"decimal literal {value} has {precision} digits; at most {MOST_DIGITS} fit")
    return Decimal(precision, scale)


def literal_value(value: Any, type: Type) -> Any:
    """The value in the form of `type`: texts are parsed, numbers become floats or decimals."""
    if value is None:
        return None
    found = literal_type(value)
    if found == Int and abs(value) > MAX_INT and not isinstance(type, DecimalType):
        raise IncorrectError(f"integer literal {value}: {INT_RANGE}: give decimal.Decimal({value}), of up to 38 digits")
    if found == String:
        try:
            value.encode()
        except UnicodeEncodeError:
            raise IncorrectError(f"string literal {value!r} is not valid Unicode") from None
    if found == type == Interval:
        return IntervalValue.of(value)
    if found == type:
        return value
    if type == Timestamp and found == TimestampTz:
        raise IncorrectError(
            f"literal {value.isoformat()} has a time zone, and timestamps have none: decide which clock they show, such as "
            "UTC, and convert before, as in moment.astimezone(datetime.UTC).replace(tzinfo=None)"
        )
    if (
        type.interned
        and type != String
        and (found != String or type.kind in ("json", "uuid"))
        and found.kind != "decimal"
    ):
        from tektite.values.columns import text_of

        text_of(value, type)  # what does not fit is refused
        return value
    if found == String and type.kind in ("interval", "list", "struct", "blob"):
        from tektite.expr.interned_texts import parse_interned

        try:
            return literal_value(parse_interned(value, type), type)
        except ValueError:
            raise IncorrectError(f"literal {value!r} is not a valid {type}").about(
                condition="invalid-text-representation"
            ) from None
    if found == String and type.kind in ("date", "timestamp", "timestamptz", "time", "decimal"):
        try:
            return literal_value(parse(value, type), type)
        except ValueError:
            raise IncorrectError(f"literal {value!r} is not a valid {type}").about(
                condition="invalid-text-representation"
            ) from None
    if found.kind in ("int", "decimal") and type == Float:
        return float(value)
    if found.kind in ("int", "decimal") and isinstance(type, DecimalType):
        exact = decimal.Decimal(value)
        whole = exact.scaleb(type.scale, context=_EXACT)
        if whole == whole.to_integral_value() and abs(whole) < 10**type.precision:
            return exact
        raise IncorrectError(f"literal {value} does not fit {type}").about(condition="numeric-value-out-of-range")
    if found == Date and type == Timestamp:
        return datetime.datetime(value.year, value.month, value.day)
    raise IncorrectError(f"literal {value!r} is a {found}, not a {type}")


def parse(text: str, type: Type) -> Any:
    """The value of `type` that a text contains. Raises ValueError if it contains none."""
    text = text.strip()
    if not text.isascii() or "_" in text:
        raise ValueError(text)
    if type == Int:
        value = int(text)
        if abs(value) > MAX_INT:
            raise ValueError(text)
        return value
    if type == Float:
        return float(text)
    if type == Bool:
        if text.lower() not in _TRUTH:
            raise ValueError(text)
        return _TRUTH[text.lower()]
    if type == Date:
        day = _DAY.fullmatch(text)
        if day is None:
            raise ValueError(text)
        return datetime.date(*map(int, day.groups()))
    if type == Timestamp:
        return _timestamp(text)[0]
    if type == TimestampTz:
        shown, ahead = _timestamp(text)
        return (shown - ahead).replace(tzinfo=datetime.UTC)
    if type == Time:
        return _time(text)
    assert isinstance(type, DecimalType)
    try:
        exact = decimal.Decimal(text)
    except decimal.InvalidOperation:
        raise ValueError(text) from None
    if not exact.is_finite() or exact.adjusted() > MOST_DIGITS:
        raise ValueError(text)
    rounded = exact.quantize(decimal.Decimal(1).scaleb(-type.scale), decimal.ROUND_HALF_UP, context=_EXACT)
    if abs(rounded.scaleb(type.scale, context=_EXACT)) >= 10**type.precision:
        raise ValueError(text)
    return rounded


def says_offset(text: str) -> bool:
    """Whether a text says a time and the offset of a zone behind it.

    >>> says_offset("2024-07-01 12:00+02"), says_offset("2024-07-01")
    (True, False)
    """
    found = _MOMENT.fullmatch(text.strip())
    return found is not None and found[8] is not None


def _timestamp(text: str) -> tuple[datetime.datetime, datetime.timedelta]:
    """The time that a clock shows, and its offset from UTC: a day, perhaps with a time of day and the offset of a zone. 24:00
    is the next midnight.
    """
    found = _MOMENT.fullmatch(text)
    if found is None:
        raise ValueError(text)
    year, month, day, hour, minute, second, fraction, zone = found.groups()
    hours, rest = int(hour or 0), (int(minute or 0), int(second or 0), int((fraction or "0")[:6].ljust(6, "0")))
    late = datetime.timedelta(days=hours == 24)
    if late and any(rest):
        raise ValueError(text)
    stamp = datetime.datetime(int(year), int(month), int(day), 0 if late else hours, *rest) + late
    if zone is None or zone.upper() == "Z":
        return stamp, datetime.timedelta()
    away = datetime.timedelta(hours=int(zone[1:3]), minutes=int(zone[-2:] if len(zone) > 3 else 0))
    return stamp, -away if zone[0] == "-" else away


def _time(text: str) -> datetime.time:
    """A time of day, perhaps behind a day."""
    found = _CLOCK.fullmatch(text)
    if found is None:
        return _timestamp(text)[0].time()
    hour, minute, second, fraction = found.groups()
    return datetime.time(int(hour), int(minute), int(second or 0), int((fraction or "0")[:6].ljust(6, "0")))


def float_word(value: float) -> int:
    """A float's order-preserving bits; there is one NaN."""
    if math.isnan(value):
        return 0x7FF8000000000000
    bits: int = struct.unpack("<q", struct.pack("<d", value))[0]
    return bits if bits >= 0 else bits ^ MAX_INT


def float_of_word(word: int) -> float:
    """The inverse of `float_word`."""
    value: float = struct.unpack("<d", struct.pack("<q", word if word >= 0 else word ^ MAX_INT))[0]
    return value


def literal_word(value: Any, type: Type) -> int:
    """The word of a value of a type that is not interned."""
    if value is None:
        return NULL
    if type == Float:
        return float_word(value)
    if type == Date:
        return int(value.toordinal() - _EPOCH_DAY)
    if type == Time:
        return int(((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond)
    if type in (Timestamp, TimestampTz):
        span = (value if value.tzinfo is None else value.astimezone(datetime.UTC).replace(tzinfo=None)) - _EPOCH
        return int((span.days * 86_400 + span.seconds) * 1_000_000 + span.microseconds)
    if isinstance(type, DecimalType):
        return int(decimal.Decimal(value).scaleb(type.scale, context=_EXACT))
    return int(value)


def show_word(word: int, type: Type) -> str:
    """The text of a word, for casts to String and error messages. The word must not be the id of a text."""
    if word == NULL:
        return "NULL"
    if type == Bool:
        return "true" if word else "false"
    if type == Float:
        return repr(float_of_word(word))
    if isinstance(type, DecimalType):
        return f"{decimal.Decimal(word).scaleb(-type.scale, context=_EXACT):f}"
    if type == Date:
        return _show_day(word)
    if type == Time:
        return show_clock(word)
    if type in (Timestamp, TimestampTz):
        days, rest = divmod(word, DAY)
        return f"{_show_day(days)} {show_clock(rest)}" + ("+00" if type == TimestampTz else "")
    return str(word)


def _show_day(days: int) -> str:
    ordinal = days + _EPOCH_DAY
    if 1 <= ordinal <= datetime.date.max.toordinal():
        return datetime.date.fromordinal(ordinal).isoformat()
    # outside Python's years: 400 years have 146097 days, so shift by multiples of them
    eras = (ordinal - 1) // 146_097
    inside = datetime.date.fromordinal(ordinal - eras * 146_097)
    return f"{inside.year + 400 * eras}-{inside.month:02}-{inside.day:02}"
