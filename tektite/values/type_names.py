"""Types by the names that people know them by: Python's classes, Arrow's types, and words of SQL and of data frames."""

from __future__ import annotations

import datetime
import decimal
import re
from typing import Any, Final

import pyarrow as pa

from tektite.errors import IncorrectError
from tektite.values.types import Bool, Date, Decimal, Float, Int, String, Timestamp, Type
from tektite.values.words import type_from_arrow

_CLASSES: Final[dict[object, Type]] = {
    int: Int,
    float: Float,
    bool: Bool,
    str: String,
    datetime.date: Date,
    datetime.datetime: Timestamp,
}
_WORDS: Final = {
    "int": Int, "int64": Int, "integer": Int, "bigint": Int, "long": Int,
    "float": Float, "float64": Float, "double": Float, "double precision": Float,
    "bool": Bool, "boolean": Bool,
    "str": String, "string": String, "text": String, "varchar": String, "utf8": String,
    "date": Date,
    "timestamp": Timestamp, "datetime": Timestamp,
}  # fmt: skip
_DECIMAL = re.compile(r"(?:decimal|numeric)\s*\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)")

KNOWN: Final = "tk.Int, int, 'bigint' or pyarrow.int64()"


def as_type(given: Any, where: str = "") -> Type:
    """The type that something stands for; `where` begins the message if it stands for none.

    >>> as_type(int), as_type("varchar"), as_type("decimal(12, 2)"), as_type(pa.date32())
    (int, string, decimal(12, 2), date)
    """
    if isinstance(given, Type):
        return given
    if isinstance(given, pa.DataType):
        return type_from_arrow(given)
    found = _CLASSES.get(given) if isinstance(given, type) else None
    if isinstance(given, str):
        word = " ".join(given.lower().split())
        found = _WORDS.get(word)
        digits = _DECIMAL.fullmatch(word)
        if digits is not None:
            found = Decimal(int(digits[1]), int(digits[2] or 0))
    if found is None:
        hint = "; a decimal says its digits, as in tk.Decimal(12, 2)" if given in (decimal.Decimal, "decimal") else ""
        raise IncorrectError(f"{where}expected a type such as {KNOWN}, found {given!r}{hint}")
    return found
