"""Tables as JSON, and rows of JSON as those of a table.

| type | in JSON |
|---|---|
| int, bool, string | number, true or false, text |
| float | number; "NaN", "Infinity" and "-Infinity" as texts |
| decimal | text, such as "12.50" |
| date, timestamp | text, such as "2024-02-29" and "2024-02-29T12:00:00.000000" |
| NULL | null |

Numbers are exact: a program in JavaScript, whose numbers are exact up to 2**53, casts longer ones to text in its query.
"""

from __future__ import annotations

import datetime
import decimal
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tektite.errors import IncorrectError, UnsupportedError
from tektite.values.schema import Schema
from tektite.values.words import arrow_type

SPECIAL = {math.inf: "Infinity", -math.inf: "-Infinity"}
FROM_TEXT = ("date", "timestamp", "decimal", "float")
"""Types whose values JSON may hold as texts."""


def table_as_data(table: pa.Table) -> dict[str, Any]:
    """A table as JSON can hold it.

    >>> table_as_data(pa.table({"x": [1.5, float("nan")], "n": [1, None]}))
    {'columns': ['x', 'n'], 'types': ['float', 'int'], 'rows': [(1.5, 1), ('NaN', None)]}
    """
    kinds = (
        [str(kind) for kind in Schema(table.schema).types] if len(set(table.column_names)) == table.num_columns else []
    )
    columns = [column_as_data(column) for column in table.columns]
    rows = list(zip(*columns, strict=True)) if columns else [()] * table.num_rows
    return {"columns": table.column_names, "types": kinds, "rows": rows}


def column_as_data(column: pa.ChunkedArray[Any]) -> list[Any]:
    """The values of a column as JSON can hold them."""
    kind = column.type
    if pa.types.is_floating(kind):
        values = column.to_pylist()
        if column.null_count == len(column) or pc.all(pc.is_finite(column)).as_py():
            return values
        return [v if v is None or math.isfinite(v) else SPECIAL.get(v, "NaN") for v in values]
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_string(kind):
        return column.to_pylist()
    if pa.types.is_timestamp(kind):
        return pc.replace_substring(column.cast(pa.string()), " ", "T", max_replacements=1).to_pylist()
    if pa.types.is_dictionary(kind) or pa.types.is_large_string(kind):
        return column.cast(pa.string()).to_pylist()
    if pa.types.is_decimal(kind) or pa.types.is_date(kind):
        return column.cast(pa.string()).to_pylist()
    return [None if value is None else str(value) for value in column.to_pylist()]


def table_from_data(data: Any) -> pa.Table:
    """A table that came as JSON."""
    if not isinstance(data, dict) or not all(isinstance(data.get(name), list) for name in ("columns", "types", "rows")):
        raise IncorrectError("a table in JSON has columns, types and rows")
    schema = Schema(dict(zip(data["columns"], data["types"], strict=True)))
    values = list(zip(*data["rows"], strict=True)) or [()] * len(schema)
    arrays = [_array(list(given), kind) for given, kind in zip(values, schema.arrow.types, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema.arrow)


def _array(values: list[Any], kind: pa.DataType) -> pa.Array[Any]:
    if values and any(isinstance(value, str) for value in values) and not pa.types.is_string(kind):
        return pa.array([None if v is None else str(v) for v in values], pa.string()).cast(kind)
    return pa.array(values, kind)


def rows_from_data(rows: Any, schema: Schema) -> Any:
    """Rows of JSON, lists or objects, as a table takes them: texts become dates, timestamps, decimals and floats.

    >>> rows_from_data([["2024-02-29", 1]], Schema({"day": "date", "n": int}))
    [(datetime.date(2024, 2, 29), 1)]
    """
    if not isinstance(rows, list) or not all([isinstance(row, list | dict) for row in rows]):
        raise IncorrectError('rows in JSON are a list of lists, or of objects, as in [[1, "tea"], [2, "salt"]]')
    special = {
        name: arrow_type(kind) for name, kind in zip(schema.names, schema.types, strict=True) if kind.kind in FROM_TEXT
    }
    if not special or not rows:
        return rows
    if isinstance(rows[0], dict):
        return [{name: _value(v, special.get(name), name) for name, v in row.items()} for row in rows]
    places = [special.get(name) for name in schema.names]
    return [
        tuple(_value(v, kind, name) for v, kind, name in zip(row, places, schema.names, strict=False))
        + tuple(row[len(places) :])
        for row in rows
    ]


def _value(value: Any, kind: pa.DataType | None, column: str) -> Any:
    if kind is None or not isinstance(value, str):
        return value
    try:
        return pa.scalar(value).cast(kind).as_py()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OverflowError):
        raise IncorrectError(f"column {column!r}: expected {kind}, found {value!r}") from None


def value_as_data(value: Any) -> Any:
    """A parameter's value as JSON can hold it: what JSON has no word for is an object with its type.

    >>> import datetime, decimal
    >>> value_as_data(3), value_as_data(datetime.date(2024, 2, 29)), value_as_data(decimal.Decimal("1.50"))
    (3, {'type': 'date', 'value': '2024-02-29'}, {'type': 'decimal', 'value': '1.50'})
    """
    if isinstance(value, float) and not math.isfinite(value):
        return {"type": "float", "value": SPECIAL.get(value, "NaN")}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return value_as_data(value.item())
    if isinstance(value, datetime.datetime):
        if value.tzinfo is not None:
            raise IncorrectError(
                f"{value!r} has a time zone, and timestamps have none: convert it by "
                "astimezone(UTC).replace(tzinfo=None)"
            )
        return {"type": "timestamp", "value": value.isoformat()}
    if isinstance(value, datetime.date):
        return {"type": "date", "value": value.isoformat()}
    if isinstance(value, decimal.Decimal):
        return {"type": "decimal", "value": str(value)}
    if isinstance(value, list | tuple):
        return [value_as_data(each) for each in value]
    raise UnsupportedError(f"a value of type {type(value).__name__} cannot be sent to a server: {value!r}")


def value_from_data(data: Any) -> Any:
    """The value that `value_as_data` was given.

    >>> value_from_data({"type": "date", "value": "2024-02-29"})
    datetime.date(2024, 2, 29)
    """
    if isinstance(data, list):
        return [value_from_data(each) for each in data]
    if not isinstance(data, dict):
        return data
    made = PARSERS.get(str(data.get("type")))
    if made is None or not isinstance(data.get("value"), str):
        raise IncorrectError(
            f"a value is a number, a text, true, false, null, or an object with type and value: {str(data)[:100]}"
        )
    try:
        return made(data["value"])
    except (ValueError, ArithmeticError):
        raise IncorrectError(f"expected a {data['type']}, found {data['value'][:100]!r}") from None


PARSERS: dict[str, Callable[[str], Any]] = {
    "date": datetime.date.fromisoformat,
    "timestamp": datetime.datetime.fromisoformat,
    "decimal": decimal.Decimal,
    "float": float,
}
