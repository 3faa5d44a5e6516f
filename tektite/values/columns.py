"""Converts rows, dicts, NumPy arrays, Arrow tables and pandas frames to columns.

`split` returns one column for each name, all of one length, or raises an error that names the wrong column or row. It
looks at no value. `encode_column` and `text_column` look at the values of one column.
"""

from __future__ import annotations

import datetime
import decimal
import difflib
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from operator import itemgetter
from typing import Any, Final

import numpy as np
import pyarrow as pa

from tektite.errors import IncorrectError, UnsupportedError
from tektite.values import composites, python_values, words
from tektite.values.frames import arrow_table
from tektite.values.types import String, Type
from tektite.values.words import NULL, TextLookup, Words

_INT64: Final = np.dtype(np.int64)
_FLOAT64: Final = np.dtype(np.float64)
_POSITIONAL: Final = (tuple, list, np.ndarray, np.void)
_FORMS: Final = "a list of rows, a dict of columns, or a NumPy, Arrow or pandas object"


def split(data: Any, names: Sequence[str]) -> tuple[list[Any], int]:
    """The columns of `data` in the order of `names`, and the number of rows.

    >>> split([{"src": 1, "dst": 2}, {"src": 3, "dst": 4}], ["src", "dst"])
    ([[1, 3], [2, 4]], 2)
    """
    if isinstance(data, np.ndarray):
        columns = _split_array(data, names)
    elif isinstance(data, Mapping):
        columns = _by_name(data, data.keys(), names)
    elif isinstance(data, (list, tuple, set, frozenset)):
        return _split_rows(data if isinstance(data, list) else list(data), names), len(data)
    elif isinstance(data, (pa.Table, pa.RecordBatch)):
        return _split_table(data, names), data.num_rows
    elif isinstance(data, (pa.Array, pa.ChunkedArray)) or _is_pandas(data, "Series"):
        columns = _only_column(data, names)
    elif _is_pandas(data, "DataFrame"):
        if len(set(data.columns)) != len(data.columns):
            raise IncorrectError(f"expected each column once, found {_listed(data.columns)}: rename the repeated ones")
        return _by_name(data, list(data.columns), names), len(data)
    elif hasattr(data, "__arrow_c_stream__"):
        table = arrow_table(data)
        return _split_table(table, names), table.num_rows
    elif isinstance(data, Iterator):
        return split(list(data), names)
    else:
        kind = type(data).__name__
        raise IncorrectError(
            f"expected {_FORMS}, found {kind}"
            + (
                "; rows for which a condition holds are removed by delete(condition)"
                if kind in ("Expr", "OwnColumn")
                else ""
            )
        )
    return columns, _common_length(columns, names)


def encode_column(values: Any, type: Type, column: str) -> Words:
    """The words of a column of any type but string. They may share the memory of `values`."""
    if values.__class__ is np.ndarray:
        if values.dtype == _INT64 and type.kind == "int":
            words.check_reserved(values, 0, column)
            return values
        if values.dtype == _FLOAT64 and type.kind == "float":
            return words.float_words(values)
    elif values.__class__ is list:
        if type.kind == "int" and set(map(_class, values)) == {int}:
            try:
                numbers = np.fromiter(values, np.int64, len(values))
            except OverflowError:
                raise _misfit(values, type, column) from None
            words.check_reserved(numbers, 0, column)
            return numbers
        if type.kind == "float" and set(map(_class, values)) == {float}:
            return words.float_words(np.fromiter(values, np.float64, len(values)))
    arrow = arrow_column(values, type, column)
    try:
        return words.encode(arrow, type, column)
    except IncorrectError as error:
        raise _misfit(values, type, column, error) from None


def text_column(values: Any, type: Type, column: str) -> Any:
    """The texts of a column of an interned type, as an Arrow array."""
    arrow = arrow_column(values, type, column)
    try:
        if type == String:
            words.check_texts(arrow, column)
            return arrow
        return composites.texts_of(arrow, type, column)
    except IncorrectError as error:
        raise _misfit(values, type, column, error) from None


def text_of(value: Any, type: Type) -> str:
    """The text of one value of an interned type."""
    found: str = text_column([value], type, "constant")[0].as_py()
    return found


def decode_column(encoded: Words, type: Type, column: str, dictionary: TextLookup | None) -> Any:
    """The values of a column of words, as an Arrow array. It may share the memory of `encoded`."""
    if not type.interned or type == String:
        return words.decode(encoded, type, column, dictionary)
    texts = words.decode(encoded, String, column, dictionary)
    return composites.values_of(texts, type, column)


def decode_list(encoded: Words, type: Type, column: str, dictionary: TextLookup | None) -> list[Any]:
    """The values of a column of words as Python values, None for NULL."""
    if not type.interned or type == String:
        return words.decode_list(encoded, type, column, dictionary)
    return python_values.python_list(decode_column(encoded, type, column, dictionary))


def hint(name: Any, names: Collection[str], kind: str = "columns") -> str:
    """Advice about a name that is not among `names`.

    >>> hint("scr", ["src", "dst"])
    "did you mean 'src'? the columns are: src, dst"
    """
    near = difflib.get_close_matches(str(name), list(names), 1)
    return (f"did you mean {near[0]!r}? " if near else "") + f"the {kind} are: {_listed(names)}"


_class = type  # `type` is a parameter's name in most functions here


def _split_array(data: np.ndarray[Any, Any], names: Sequence[str]) -> list[Any]:
    if data.dtype.names is not None and data.ndim == 1:
        return _by_name(data, data.dtype.names, names)
    if data.ndim == 2:
        if data.shape[1] != len(names):
            raise _wrong_arity(names, data.shape[1], f" in a NumPy array of shape {data.shape} (rows x columns)")
        return [data[:, j] for j in range(len(names))]
    if data.shape == (0,):
        return [data] * len(names)
    if data.ndim == 1:
        return _only_column(data, names)
    raise IncorrectError(f"expected a NumPy array of rows x columns, found one of shape {data.shape}")


def _split_table(table: Any, names: Sequence[str]) -> list[Any]:
    found = table.schema.names
    if len(set(found)) != len(found):
        raise IncorrectError(f"expected each column once, found {_listed(found)}: rename the repeated ones")
    return _by_name(table, found, names)


def _split_rows(rows: list[Any], names: Sequence[str]) -> list[Any]:
    if not rows:
        return [[] for _ in names]
    kinds = set(map(type, rows))
    if all(issubclass(kind, Mapping) for kind in kinds):
        return _split_dicts(rows, names)
    if not all(issubclass(kind, _POSITIONAL) for kind in kinds):
        at, row = next((i, row) for i, row in enumerate(rows) if not isinstance(row, _POSITIONAL))
        form = f"[({_shown(row)},)]" if len(names) == 1 else f"[({', '.join(names)}), ...]"
        raise IncorrectError(
            f"expected rows, each a tuple or a list (or all of them dicts), found {_shown(row)} "
            f"({type(row).__name__}) as row {at}: write {form}"
        )
    try:
        lengths = set(map(len, rows))
    except TypeError:
        raise IncorrectError("expected rows, found a NumPy array without dimensions: give tuples") from None
    if lengths != {len(names)}:
        at, row = next((i, row) for i, row in enumerate(rows) if len(row) != len(names))
        raise _wrong_arity(names, len(row), f" in row {at} ({_shown(row)})")
    return [list(map(itemgetter(j), rows)) for j in range(len(names))]


def _split_dicts(rows: list[Any], names: Sequence[str]) -> list[Any]:
    try:
        columns = [list(map(itemgetter(name), rows)) for name in names]
        if sum(map(len, rows)) == len(names) * len(rows):
            return columns
    except KeyError:
        pass
    for at, row in enumerate(rows):
        _check_names(row.keys(), names, f" in row {at}")
    raise AssertionError("every row has exactly the columns")


def _by_name(data: Any, found: Iterable[Any], names: Sequence[str]) -> list[Any]:
    _check_names(found, names, "")
    return [data[name] for name in names]


def _check_names(found: Iterable[Any], names: Sequence[str], where: str) -> None:
    keys = list(found)
    for name in keys:
        if name not in names:
            raise IncorrectError(f"unknown column {name!r}{where}: {hint(name, names)}")
    for name in names:
        if name not in keys:
            raise IncorrectError(f"missing column {name!r}{where}: expected {_listed(names)}, found {_listed(keys)}")


def _only_column(data: Any, names: Sequence[str]) -> list[Any]:
    if len(names) != 1:
        raise _wrong_arity(names, 1, f" in a one-dimensional {type(data).__name__}")
    return [data]


def _common_length(columns: list[Any], names: Sequence[str]) -> int:
    rows = None
    for name, values in zip(names, columns, strict=True):
        if isinstance(values, (str, bytes, Set, Mapping)) or not hasattr(values, "__len__"):
            raise IncorrectError(
                f"column {name!r}: expected a list or an array of values, found {_shown(values)} "
                f"({type(values).__name__}): a single row is [({', '.join(names)}{',' * (len(names) == 1)})]"
            )
        if getattr(values, "ndim", 1) != 1:
            raise IncorrectError(f"column {name!r}: expected one value a row, found an array of shape {values.shape}")
        if rows is None:
            rows = len(values)
        elif len(values) != rows:
            raise IncorrectError(
                f"column {name!r}: expected {rows} values, as many as column {names[0]!r} has, found {len(values)}"
            )
    return rows or 0


def arrow_column(values: Any, type: Type, column: str) -> Any:
    """An Arrow array of values of any form, with whatever Arrow type they have."""
    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        return values
    if isinstance(values, np.ndarray):
        return _arrow_from_array(values, type, column)
    if _is_pandas(values, "Series") and not isinstance(values.dtype, np.dtype):
        return pa.array(values)
    if _is_pandas(values, "Series"):
        if values.dtype == object:
            return _arrow_from_list(values.tolist(), type, column, nan_is_null=True)
        if values.dtype.kind == "f" and len(values):
            return _floats_of_pandas(values.to_numpy(), type)
        return _arrow_from_array(values.to_numpy(), type, column)
    if isinstance(values, (list, tuple, range)) or hasattr(values, "__iter__"):
        return _arrow_from_list(list(values), type, column)
    raise IncorrectError(
        f"column {column!r}: expected a list or an array, found {_shown(values)} ({values.__class__.__name__})"
    )


def _floats_of_pandas(values: np.ndarray[Any, Any], type: Type) -> Any:
    """A pandas column of NumPy's floats. NaN says there that a value is missing, and integers with a gap are floats."""
    found = pa.array(values, from_pandas=True)
    if type.kind != "int" or not found.null_count:
        return found
    try:
        return found.cast(pa.int64())
    except pa.ArrowInvalid:  # not whole: the error names the first of them
        return found


def _arrow_from_array(values: np.ndarray[Any, Any], type: Type, column: str) -> Any:
    if len(values) == 0:
        return pa.nulls(0)  # an empty NumPy array has a type nobody chose
    kind = values.dtype.kind
    if kind == "O":
        return _arrow_from_list(values.tolist(), type, column)
    if not values.dtype.isnative:
        values = values.astype(values.dtype.newbyteorder("="))
    if kind == "M":
        unit, count = np.datetime_data(values.dtype)
        if count != 1 or unit not in ("D", "s", "ms", "us", "ns"):
            values = _coarse_moments(values, unit, column)
    try:
        return pa.array(values)
    except (pa.ArrowException, TypeError, ValueError):
        raise IncorrectError(
            f"column {column!r}: expected {type}, found a NumPy array of {values.dtype}: {words.advice(type)}"
        ) from None


def _coarse_moments(values: np.ndarray[Any, Any], unit: str, column: str) -> np.ndarray[Any, Any]:
    """Moments in a unit that Arrow lacks, converted to one that it has."""
    target = "M8[D]" if unit in ("Y", "M", "W", "D") else "M8[s]" if unit in ("h", "m", "s") else "M8[ns]"
    moments: np.ndarray[Any, Any] = values.astype(target)
    if (moments.astype(values.dtype) != values)[~np.isnat(values)].any():
        raise IncorrectError(
            f"column {column!r}: found moments of {values.dtype} that {target} cannot hold: use M8[us]"
        )
    return moments


def _arrow_from_list(values: list[Any], type: Type, column: str, nan_is_null: bool = False) -> Any:
    known = None  # the Arrow type, unless the values must be inspected one by one
    if type.kind in python_values.KINDS or (type.interned and type != String):
        try:
            return python_values.arrow_values(_without_missing(values), type, column, _arrow_from_list)
        except (pa.ArrowException, TypeError, ValueError, OverflowError, AttributeError) as error:
            raise _misfit(values, type, column, error) from None
    if type.kind in ("date", "timestamp"):
        # Arrow gets these wrong in silence: it cuts the time off a datetime in a list that begins with a date, cuts the
        # nanoseconds off pandas' timestamps, and takes pandas' NaT for a moment.
        classes = set(map(_class, values))
        if not classes <= _PLAIN_MOMENTS:
            values = _without_missing(values)
            classes = set(map(_class, values))
            for row, value in enumerate(values):
                if getattr(value, "nanosecond", 0):
                    raise IncorrectError(
                        f"column {column!r}: expected {type}, found {value} in row {row}, which is not a whole number of "
                        "microseconds: round it"
                    )
        if datetime.date in classes and any(issubclass(kind, datetime.datetime) for kind in classes):
            raise IncorrectError(
                f"column {column!r}: expected {type}, found both dates and datetimes: give one of them"
            )
        if not classes <= {datetime.date, _class(None)}:
            # Arrow takes the zone of the first value for that of all.
            zoned = next((row for row, value in enumerate(values) if getattr(value, "tzinfo", None) is not None), None)
            if zoned is not None:
                raise words.zoned(values[zoned].isoformat(), type, column, zoned)
        if np.datetime64 in classes and classes <= {np.datetime64, _class(None)}:
            return _arrow_from_array(np.array(values, "M8"), type, column)
    elif type.kind == "string" and set(map(_class, values)) == {str}:
        known = pa.string()
    try:
        try:
            arrow = pa.array(values, known, from_pandas=nan_is_null)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            arrow = pa.array(_without_missing(values), from_pandas=nan_is_null)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise _misfit(values, type, column, error) from None
    return arrow


def _without_missing(values: list[Any]) -> list[Any]:
    """The values with None for pandas' NA and NaT."""
    if _pandas() is None:
        return values
    return [None if _is_pandas_missing(value) else value for value in values]


_PLAIN_MOMENTS: Final = {datetime.date, datetime.datetime, type(None)}
_CLASSES: Final[dict[str, tuple[type, ...]]] = {
    "int": (int, np.integer),
    "float": (float, int, np.floating, np.integer),
    "bool": (bool, np.bool_),
    "date": (datetime.date, np.datetime64),
    "timestamp": (datetime.date, np.datetime64),
    "decimal": (decimal.Decimal, int, np.integer),
    "string": (str,),
    **python_values.CLASSES,
}


def _misfit(values: Any, type: Type, column: str, error: Exception | None = None) -> IncorrectError:
    """The error for a column that cannot be encoded. For a list, it names the first value of a wrong class."""
    return _misfitting(values, type, column, error).about(name=column)


def _misfitting(values: Any, type: Type, column: str, error: Exception | None) -> IncorrectError:
    if isinstance(values, np.ndarray) and values.dtype == object:
        values = values.tolist()
    value: Any
    for row, value in enumerate(values if isinstance(values, list) else ()):
        found = f"column {column!r}: expected {type}, found {_shown(value)} ({value.__class__.__name__}) in row {row}"
        if value is None or _is_pandas_missing(value):
            continue
        if not isinstance(value, _CLASSES[type.kind]) or (
            isinstance(value, bool) and type.kind not in ("bool", "json")
        ):
            return IncorrectError(f"{found}: {words.advice(type)}")
        if type.kind == "int" and not _is_word(value):
            return IncorrectError(
                f"{found}, which does not fit in 64 bits: use a decimal, a float or a string ({words.INT_RANGE})"
            ).about(condition="numeric-value-out-of-range")
        if isinstance(value, decimal.Decimal) and not value.is_finite():
            return IncorrectError(f"{found}, which is not a finite number: use None for a missing value")
        if isinstance(value, str) and not _is_unicode(value):
            return IncorrectError(f"{found}, which has no UTF-8 form (a surrogate without its other half)")
    if isinstance(error, IncorrectError):
        return error
    if type.kind in ("uuid", "json"):
        return IncorrectError(
            f"column {column!r}: expected {type}, found {_shown(values)}, of which one is none: {error}"
        ).about(condition="invalid-text-representation")
    return IncorrectError(f"column {column!r}: expected {type}, found values of different kinds ({error})")


def _is_word(number: Any) -> bool:
    return bool(NULL <= number < -NULL)


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _pandas() -> Any:
    """The module pandas, if it has been imported: not while another thread is about to."""
    found = sys.modules.get("pandas")
    return found if hasattr(found, "NaT") and hasattr(found, "DataFrame") else None


def _is_pandas(data: Any, name: str) -> bool:
    """Whether `data` is an instance of this pandas class. Does not import pandas: if there is an instance, it is imported."""
    pandas = _pandas()
    return pandas is not None and isinstance(data, getattr(pandas, name))


def _is_pandas_missing(value: Any) -> bool:
    pandas = _pandas()
    return pandas is not None and (value is pandas.NA or value is pandas.NaT)


def _wrong_arity(names: Sequence[str], found: int, where: str) -> IncorrectError:
    plural = "" if len(names) == 1 else "s"
    return IncorrectError(f"expected {len(names)} column{plural} ({_listed(names)}), found {found}{where}")


def _listed(names: Iterable[Any]) -> str:
    return ", ".join(map(str, names)) or "none"


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:80] + "..."


def named_rows(rows: Iterable[tuple[Any, ...]], names: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """Rows as tuples that also say the names of their columns, which pandas takes: `pandas.DataFrame(view)`.

    >>> next(named_rows([(1, "a")], ["id", "name"]))
    (1, 'a')
    """
    kind: Any = type("Row", (tuple,), {"__slots__": (), "_fields": tuple(names), "__reduce__": _plain_tuple})
    return map(kind, rows)


def _plain_tuple(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple, (tuple(row),)


def python_rows(table: pa.Table, what: str, instead: str) -> list[tuple[Any, ...]]:
    """A table's rows as Python tuples. If Python has no such values, the error says that `what` can be read by `instead`."""
    try:
        return list(zip(*map(python_values.python_list, table.columns), strict=True))
    except OverflowError:
        raise UnsupportedError(
            f"{what} holds a date or timestamp outside the years 1 to 9999, where Python has none: read its {instead}"
        ) from None
