"""Python's values of the types that Arrow would guess, or guess wrongly, as Arrow arrays."""

from __future__ import annotations

import datetime
import decimal
import json
import uuid
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa

from tektite.errors import IncorrectError
from tektite.values.types import ListType, StructType, Type
from tektite.values.words import arrow_type

KINDS: Final = frozenset({"time", "timestamptz"})
"""Types of one word whose values are converted here, beside all interned types but strings."""
CLASSES: Final[dict[str, tuple[type, ...]]] = {
    "time": (datetime.time,),
    "timestamptz": (datetime.datetime,),
    "interval": (datetime.timedelta, tuple, np.timedelta64),
    "list": (list, tuple, np.ndarray),
    "struct": (Mapping, tuple),
    "json": (str, dict, list, int, float, bool),
    "uuid": (uuid.UUID, str),
    "blob": (bytes, bytearray, memoryview),
}
Convert = Callable[[list[Any], Type, str], Any]
plainly: Any = pa
"""Arrow without its types, which do not describe all of its functions."""


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
        return pa.array([None if v is None else interval_value(v) for v in values], arrow_type(type))
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


def month_day_nano(parts: list[int]) -> Any:
    """Arrow's interval of so many months, days and nanoseconds."""
    return plainly.MonthDayNano(parts)


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


def interval_value(value: Any) -> Any:
    """An interval as Arrow has it: months, days and nanoseconds."""
    if isinstance(value, np.timedelta64):
        value = value.astype("m8[us]").item()
    if isinstance(value, datetime.timedelta):
        clock = value - datetime.timedelta(days=value.days)
        days = value.days
        if days < 0 and clock:  # as SQL subtracts timestamps: all parts have one sign
            days, clock = days + 1, clock - datetime.timedelta(days=1)
        micros = clock // datetime.timedelta(microseconds=1)
        return month_day_nano([0, days, micros * 1000])
    return month_day_nano(list(value))


def _json(value: Any) -> str:
    """The text of a JSON value: a text is one already."""
    if isinstance(value, str):
        json.loads(value)
        return value
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
