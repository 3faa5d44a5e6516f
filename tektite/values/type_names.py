"""Types by the names that people know them by: Python's classes, Arrow's types, and words of SQL and of data frames."""

from __future__ import annotations

import datetime
import decimal
import re
import uuid
from collections.abc import Mapping
from types import GenericAlias, UnionType
from typing import Any, Final

import numpy as np
import pyarrow as pa

from tektite.errors import IncorrectError
from tektite.unknown_options import explained
from tektite.values.intervals import IntervalValue
from tektite.values.types import (
    Blob,
    Bool,
    Date,
    Decimal,
    Float,
    Int,
    Interval,
    Json,
    ListType,
    String,
    StructType,
    Time,
    Timestamp,
    TimestampTz,
    Type,
    Uuid,
)
from tektite.values.words import type_from_arrow

_CLASSES: Final[dict[object, Type]] = {
    int: Int,
    float: Float,
    bool: Bool,
    str: String,
    datetime.date: Date,
    datetime.datetime: Timestamp,
    datetime.time: Time,
    datetime.timedelta: Interval,
    IntervalValue: Interval,
    uuid.UUID: Uuid,
    bytes: Blob,
}
_WORDS: Final = {
    "int": Int, "int64": Int, "integer": Int, "bigint": Int, "long": Int,
    "float": Float, "float64": Float, "double": Float, "double precision": Float,
    "bool": Bool, "boolean": Bool,
    "str": String, "string": String, "text": String, "varchar": String, "utf8": String,
    "date": Date,
    "timestamp": Timestamp, "datetime": Timestamp,
    "time": Time,
    "timestamptz": TimestampTz, "timestamp with time zone": TimestampTz,
    "interval": Interval,
    "json": Json, "jsonb": Json,
    "uuid": Uuid,
    "blob": Blob, "bytea": Blob, "binary": Blob, "bytes": Blob,
}  # fmt: skip
_DECIMAL = re.compile(r"(?:decimal|numeric)\s*\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)")

_DIGITS: Final = "; a decimal says its digits, as in tk.Decimal(12, 2)"
_ELEMENTS: Final = "; a list says its elements, as in list[int] or tk.List(int)"
_FIELDS: Final = "; a JSON is tk.Json, and named fields are tk.Struct(x=int)"
_SAYS_MORE: Final[dict[object, str]] = {
    decimal.Decimal: _DIGITS, "decimal": _DIGITS, "numeric": _DIGITS, list: _ELEMENTS, "list": _ELEMENTS,
    dict: _FIELDS, "dict": _FIELDS, "struct": _FIELDS, "Decimal": _DIGITS, "List": _ELEMENTS, "Struct": _FIELDS,
}  # fmt: skip

_WORD = re.compile(r"[a-z]+")
_FIELD = re.compile(r',\s*"((?:[^"]|"")*)"\s+')
_PRINTED: Final = {str(type): type for type in _WORDS.values()}

KNOWN: Final = "tk.Int, int, 'bigint' or pyarrow.int64()"


@explained
def List(element: Any) -> ListType:
    """The type of lists of values of a type.

    >>> List(Int), List(List("varchar"))
    (list(int), list(list(string)))
    """
    return ListType("list", as_type(element, "the elements of a list: "))


def Struct(fields: Mapping[str, Any] | None = None, /, **named: Any) -> StructType:
    """The type of values with named fields.

    >>> Struct(x=Int, label=str)
    struct("x" int, "label" string)
    """
    if fields is not None and not isinstance(fields, Mapping):
        raise IncorrectError(
            f"a struct is made of named fields, tk.Struct(x=tk.Int) or tk.Struct({{'x': int}}), not of {fields!r}"
        )
    pairs = {**(fields or {}), **named}
    if not pairs:
        raise IncorrectError("a struct needs a field: tk.Struct(x=tk.Int)")
    return StructType("struct", tuple((name, as_type(kind, f"field {name!r}: ")) for name, kind in pairs.items()))


def type_from_text(text: str) -> Type | None:
    """The type that `str` prints as `text`; None if there is none.

    >>> type_from_text('list(struct("x" decimal(12, 2), "y" int))')
    list(struct("x" decimal(12, 2), "y" int))
    """
    try:
        type, rest = _read_type(text)
    except ValueError:
        return None
    return None if rest else type


def _read_type(text: str) -> tuple[Type, str]:
    """The type at the beginning of a text, and the rest."""
    word = _WORD.match(text)
    if word is None:
        raise ValueError
    name, rest = word[0], text[word.end() :]
    if name == "list" and rest.startswith("("):
        element, rest = _read_type(rest[1:])
        if not rest.startswith(")"):
            raise ValueError
        return ListType("list", element), rest[1:]
    if name == "struct" and rest.startswith("("):
        fields = []
        rest = "," + rest[1:]
        while not rest.startswith(")"):
            field = _FIELD.match(rest)
            if field is None:
                raise ValueError
            kind, rest = _read_type(rest[field.end() :])
            fields.append((field[1].replace('""', '"'), kind))
        return StructType("struct", tuple(fields)), rest[1:]
    digits = _DECIMAL.match(text)
    if digits is not None:
        return Decimal(int(digits[1]), int(digits[2] or 0)), text[digits.end() :]
    if name not in _PRINTED:
        raise ValueError
    return _PRINTED[name], rest


TypeLike = Type | type | str | pa.DataType
"""A type in any notation: one of ours, one of Python's, a word such as "bigint", or one of Arrow's."""


def as_type(given: Any, where: str = "") -> Type:
    """The type that something stands for; `where` begins the message if it stands for none.

    >>> as_type(int), as_type("varchar"), as_type("decimal(12, 2)"), as_type(pa.date32())
    (int, string, decimal(12, 2), date)
    >>> as_type(list[int]), as_type("text[]"), as_type("timestamp[us]"), as_type(np.int32)
    (list(int), list(string), timestamp, int)
    """
    if isinstance(given, Type):
        return given
    if isinstance(given, pa.DataType):
        return type_from_arrow(given)
    if isinstance(given, np.dtype) or isinstance(given, type) and issubclass(given, np.generic):
        return _of_numpy(given, where)
    if isinstance(given, GenericAlias) and given.__origin__ is list:
        return ListType("list", as_type(given.__args__[0], where))
    found = _CLASSES.get(given) if isinstance(given, type) else None
    if isinstance(given, str):
        word = " ".join(given.lower().split())
        found = _WORDS.get(word)
        digits = _DECIMAL.fullmatch(word)
        if digits is not None:
            found = Decimal(int(digits[1]), int(digits[2] or 0))
        if found is None and word.endswith("[]"):
            found = ListType("list", as_type(word.removesuffix("[]"), where))
        if found is None:
            found = type_from_text(given) or _of_arrow_word(word)
    if found is None:
        named = given if isinstance(given, str | type) else getattr(given, "__name__", None)
        hint = _SAYS_MORE.get(named, "")
        if isinstance(given, UnionType) or str(given).startswith("typing."):
            hint = "; every column may hold NULL, unless required= or primary_key= of create_table(...) names it"
        raise IncorrectError(f"{where}expected a type such as {KNOWN}, found {given!r}{hint}")
    return found


def _of_arrow_word(word: str) -> Type | None:
    """The type that Arrow or NumPy prints as a word, such as "timestamp[us]" and "datetime64[ns]"; None if it prints none."""
    alias: Any = word  # the stubs list them all
    try:
        return type_from_arrow(pa.type_for_alias(alias))
    except ValueError:
        return _of_numpy(np.dtype(word), "") if word.startswith("datetime64") else None


def _of_numpy(given: Any, where: str) -> Type:
    """The type of values that NumPy has such an array of."""
    try:
        return type_from_arrow(pa.from_numpy_dtype(np.dtype(given)))
    except (TypeError, ValueError, pa.ArrowException):
        raise IncorrectError(f"{where}expected a type such as {KNOWN}, found {given!r}") from None
