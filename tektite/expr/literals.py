"""The type and the word of a Python value.

Every value that `literal_value` accepts has a word, except texts: their word is their id in a dictionary.
"""

from __future__ import annotations

import datetime
import decimal
import math
import struct
from typing import Any

from tektite.errors import IncorrectError
from tektite.values.types import Bool, Date, Decimal, DecimalType, Float, Int, String, Timestamp, Type
from tektite.values.words import NULL

Untyped = Type("null")  # the type of a bare None: it fits any other

MAX_INT = 2**63 - 1
MAX_DIGITS = 18
MAX_DAYS = 2_932_896  # 9999-12-31, the last Python date
DAY = 86_400_000_000  # microseconds

_EPOCH_DAY = datetime.date(1970, 1, 1).toordinal()
_EPOCH = datetime.datetime(1970, 1, 1)
_TRUTH = {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}
_EXACT = decimal.Context(prec=60)


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
        return Timestamp
    if isinstance(value, datetime.date):
        return Date
    raise IncorrectError(
        f"cannot use {value!r} of type {type(value).__name__} in an expression: a literal is an int, float, bool, str, "
        "Decimal, date, datetime or None"
    )


def _decimal_type(value: decimal.Decimal) -> DecimalType:
    if not value.is_finite():
        raise IncorrectError(f"decimal literal {value}: only finite decimals are values")
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    scale = max(0, -exponent)
    precision = max(len(digits) + max(0, exponent), scale, 1)
    if precision > MAX_DIGITS:
        raise IncorrectError(f"decimal literal {value} has {precision} digits; at most {MAX_DIGITS} fit")
    return Decimal(precision, scale)


def literal_value(value: Any, type: Type) -> Any:
    """The value in the form of `type`: texts are parsed, numbers become floats or decimals."""
    if value is None:
        return None
    found = literal_type(value)
    if found == Int and abs(value) > MAX_INT:
        raise IncorrectError(f"integer literal {value} is outside -(2**63 - 1) .. 2**63 - 1")
    if found == String:
        try:
            value.encode()
        except UnicodeEncodeError:
            raise IncorrectError(f"string literal {value!r} is not valid Unicode") from None
    if found == type:
        if type == Timestamp and value.tzinfo is not None:
            raise IncorrectError(
                f"literal {value.isoformat()} has a time zone, and timestamps have none: decide which clock they show, such as "
                "UTC, and convert before, as in moment.astimezone(datetime.UTC).replace(tzinfo=None)"
            )
        return value
    if found == String and type.kind in ("date", "timestamp", "decimal"):
        try:
            return literal_value(parse(value, type), type)
        except ValueError:
            raise IncorrectError(f"literal {value!r} is not a valid {type}") from None
    if found.kind in ("int", "decimal") and type == Float:
        return float(value)
    if found.kind in ("int", "decimal") and isinstance(type, DecimalType):
        exact = decimal.Decimal(value)
        whole = exact.scaleb(type.scale, context=_EXACT)
        if whole == whole.to_integral_value() and abs(whole) < 10**type.precision:
            return exact
        raise IncorrectError(f"literal {value} does not fit {type}")
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
        return datetime.date.fromisoformat(text)
    if type == Timestamp:
        stamp = datetime.datetime.fromisoformat(text)
        return stamp if stamp.tzinfo is None else stamp.astimezone(datetime.UTC).replace(tzinfo=None)
    assert isinstance(type, DecimalType)
    try:
        exact = decimal.Decimal(text)
    except decimal.InvalidOperation:
        raise ValueError(text) from None
    if not exact.is_finite() or exact.adjusted() > MAX_DIGITS:
        raise ValueError(text)
    rounded = exact.quantize(decimal.Decimal(1).scaleb(-type.scale), decimal.ROUND_HALF_UP, context=_EXACT)
    if abs(rounded.scaleb(type.scale, context=_EXACT)) >= 10**type.precision:
        raise ValueError(text)
    return rounded


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
    """The word of a value of any type but String."""
    if value is None:
        return NULL
    if type == Float:
        return float_word(value)
    if type == Date:
        return int(value.toordinal() - _EPOCH_DAY)
    if type == Timestamp:
        span = value - _EPOCH
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
    if type == Timestamp:
        days, rest = divmod(word, DAY)
        seconds, micros = divmod(rest, 1_000_000)
        clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
        return f"{_show_day(days)} {clock}" + (f".{micros:06}".rstrip("0") if micros else "")
    return str(word)


def _show_day(days: int) -> str:
    ordinal = days + _EPOCH_DAY
    if 1 <= ordinal <= datetime.date.max.toordinal():
        return datetime.date.fromordinal(ordinal).isoformat()
    # outside Python's years: 400 years have 146097 days, so shift by multiples of them
    eras = (ordinal - 1) // 146_097
    inside = datetime.date.fromordinal(ordinal - eras * 146_097)
    return f"{inside.year + 400 * eras}-{inside.month:02}-{inside.day:02}"
