"""Python's values of the types that Arrow would guess, or guess wrongly, as Arrow arrays; and Arrow's values as Python's."""

from __future__ import annotations

import datetime
import decimal
import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np
import pyarrow as pa

from tektite.errors import IncorrectError
from tektite.values.intervals import IntervalValue
from tektite.values.types import ListType, StructType, Type
from tektite.values.words import arrow_type

KINDS: Final = frozenset({"time", "timestamptz"})
"""Types of one word whose values are converted here, beside all interned types but strings."""
CLASSES: Final[dict[str, tuple[type, ...]]] = {
    "time": (datetime.time,),
    "timestamptz": (datetime.datetime,),
    "interval": (IntervalValue, datetime.timedelta, tuple, np.timedelta64),
    "list": (list, tuple, np.ndarray),
    "struct": (Mapping, tuple),
    "json": (str, dict, list, int, float, bool),
    "uuid": (uuid.UUID, str),
    "blob": (bytes, bytearray, memoryview),
}
Convert = Callable[[list[Any], Type, str], Any]
plainly: Any = pa
"""Arrow without its types, which do not describe all of its functions."""


def array_of_text(text: str) -> pa.StringArray:
    """An array of one text. PyArrow's functions that make arrays and scalars of Python's values import pandas when they are first
    called, where that is installed. That takes some tenths of a second, for programs that may never need it.

    >>> array_of_text("µ").to_pylist()
    ['µ']
    """
    return array_of_texts([text])


def array_of_texts(texts: Sequence[str]) -> pa.StringArray:
    """An array of texts, none of which is NULL, as `array_of_text` makes one.

    >>> array_of_texts(["a", "", "µ"]).to_pylist()
    ['a', '', 'µ']
    """
    encoded = [text.encode() for text in texts]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    offsets = ends.astype(np.int32).tobytes()
    return pa.StringArray.from_buffers(len(texts), pa.py_buffer(offsets), pa.py_buffer(b"".join(encoded)))


def arrow_values(values: list[Any], type: Type, column: str, convert: Convert) -> Any:
    """An Arrow array of values; `convert` converts those of other types, which lists and structs contain."""
    if isinstance(type, ListType):
        return _lists(values, type, column, convert)
    if isinstance(type, StructType):
        return _structs(values, type, column, convert)
    if type.kind == "decimal":
        exact = [decimal.Decimal(v) if isinstance(v, int) and not isinstance(v, bool) else v for v in values]
        return pa.array(exact, arrow_type(type))
    if type.kind in ("time", "timestamptz"):
        _check_zones(values, type, column)
        return pa.array(values, arrow_type(type))
    if type.kind == "interval":
        return pa.array([None if v is None else _month_day_nano(v) for v in values], arrow_type(type))
    if type.kind == "json":
        return pa.array([None if v is None else _json(v) for v in values], pa.string())
    if type.kind == "uuid":
        return pa.array([None if v is None else str(uuid.UUID(str(v))) for v in values], pa.string())
    return pa.array([None if v is None else bytes(v) for v in values], pa.binary())


def _lists(values: list[Any], type: ListType, column: str, convert: Convert) -> Any:
    for value in values:
        if value is not None and not isinstance(value, CLASSES["list"]):
            raise TypeError(value)
    inner = convert([element for value in values if value is not None for element in value], type.element, column)
    inner = inner.combine_chunks() if isinstance(inner, pa.ChunkedArray) else inner
    lengths = np.array([0 if value is None else len(value) for value in values], np.int64)
    ends = np.concatenate(([0], np.cumsum(lengths)))
    missing = np.array([*(value is None for value in values), False])
    return plainly.LargeListArray.from_arrays(pa.array(ends, mask=missing), inner)


def _structs(values: list[Any], type: StructType, column: str, convert: Convert) -> Any:
    """Dicts by name; tuples by place."""
    names = [name for name, _ in type.fields]
    for value in values:
        if isinstance(value, Mapping):
            unknown = [name for name in value if name not in names]
            if unknown:
                raise IncorrectError(
                    f"column {column!r}: found a field {unknown[0]!r}; the fields are {', '.join(names)}"
                )
        elif value is not None and not (isinstance(value, tuple) and len(value) == len(names)):
            raise TypeError(value)
    arrays = []
    for at, (name, kind) in enumerate(type.fields):
        parts = [None if v is None else v.get(name) if isinstance(v, Mapping) else v[at] for v in values]
        array = convert(parts, kind, f"{column}.{name}")
        arrays.append(array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array)
    missing = pa.array([value is None for value in values], pa.bool_())
    return pa.StructArray.from_arrays(arrays, names, mask=missing)


def _check_zones(values: list[Any], type: Type, column: str) -> None:
    """A moment has a zone, a time of day has none."""
    for row, value in enumerate(values):
        if not isinstance(value, datetime.datetime | datetime.time):
            continue
        if type.kind == "time" and value.tzinfo is not None:
            raise IncorrectError(
                f"column {column!r}: expected a time without a time zone, found {value.isoformat()} in row {row}: "
                "give value.replace(tzinfo=None)"
            )
        if type.kind == "timestamptz" and value.tzinfo is None:
            raise IncorrectError(
                f"column {column!r}: expected a moment, with a time zone, found {value.isoformat()} in row {row}: say which "
                "clock shows it, as in value.replace(tzinfo=datetime.UTC)"
            )


def _json(value: Any) -> str:
    """The text of a JSON value: a text is one already."""
    if isinstance(value, str):
        json.loads(value)
        return value
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def _month_day_nano(value: Any) -> Any:
    found = IntervalValue.of(value)
    return plainly.MonthDayNano([found.months, found.days, found.microseconds * 1000])


def python_list(column: Any) -> list[Any]:
    """The values of an Arrow array as Python's. Intervals are `IntervalValue`s, in lists and structs too."""
    convert = _converter(column.type)
    values: list[Any] = column.to_pylist()
    return values if convert is None else [None if value is None else convert(value) for value in values]


@lru_cache(maxsize=1 << 8)
def _converter(type: pa.DataType) -> Callable[[Any], Any] | None:
    """The function that converts Arrow's values of a type into ours; None if they are the same."""
    kinds: Any = pa.types
    inner: Any = type
    if kinds.is_interval(type):
        return IntervalValue.of
    if kinds.is_list(type) or kinds.is_large_list(type) or kinds.is_fixed_size_list(type):
        element = _converter(inner.value_type)
        if element is None:
            return None
        return lambda values: [None if value is None else element(value) for value in values]
    if kinds.is_struct(type):
        parts = {field.name: convert for field in inner if (convert := _converter(field.type)) is not None}
        if not parts:
            return None
        return lambda value: (
            value | {name: None if value[name] is None else convert(value[name]) for name, convert in parts.items()}
        )
    return None
