"""Tables as JSON, rows of JSON as those of a table, and values of parameters. `json_values` has the form of each type.

Numbers are exact: a program in JavaScript, whose numbers are exact up to 2**53, casts longer ones to text in its query.
"""

from __future__ import annotations

import datetime
import decimal
import math
import uuid
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tektite.errors import IncorrectError, UnsupportedError
from tektite.values.columns import arrow_column
from tektite.values.intervals import IntervalValue
from tektite.values.python_values import python_list
from tektite.values.schema import Schema
from tektite.values.type_names import as_type
from tektite.values.types import Type
from tektite.values.words import arrow_field, type_of_field
from tektite.wire.json_values import READ, WRITE, as_json, from_json, read


def table_as_data(table: pa.Table) -> dict[str, Any]:
    """A table as JSON can hold it.

    >>> table_as_data(pa.table({"x": [1.5, float("nan")], "n": [1, None]}))
    {'columns': ['x', 'n'], 'types': ['float', 'int'], 'rows': [(1.5, 1), ('NaN', None)]}
    """
    kinds = [type_of_field(field) for field in table.schema]
    columns = [column_as_data(column, kind) for column, kind in zip(table.columns, kinds, strict=True)]
    rows = list(zip(*columns, strict=True)) if columns else [()] * table.num_rows
    return {"columns": table.column_names, "types": [str(kind) for kind in kinds], "rows": rows}


def column_as_data(column: pa.ChunkedArray[Any], type: Type) -> list[Any]:
    """The values of a column as JSON can hold them."""
    if type.kind == "timestamp":
        return pc.replace_substring(column.cast(pa.string()), " ", "T", max_replacements=1).to_pylist()
    if type.kind in ("decimal", "date"):
        return column.cast(pa.string()).to_pylist()
    if type.kind == "float" and (column.null_count == len(column) or pc.all(pc.is_finite(column)).as_py()):
        return column.to_pylist()
    convert = as_json(type)
    values = python_list(column)
    return values if convert is None else [None if value is None else convert(value) for value in values]


def table_from_data(data: Any) -> pa.Table:
    """A table that came as JSON."""
    if not isinstance(data, dict) or not all(isinstance(data.get(name), list) for name in ("columns", "types", "rows")):
        raise IncorrectError("a table in JSON has columns, types and rows")
    kinds = [as_type(kind) for kind in data["types"]]
    values = list(zip(*data["rows"], strict=True)) or [()] * len(kinds)
    fields = [arrow_field(name, kind) for name, kind in zip(data["columns"], kinds, strict=True)]
    arrays = [_array(list(given), kind, field) for given, kind, field in zip(values, kinds, fields, strict=True)]
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def _array(values: list[Any], type: Type, field: pa.Field[Any]) -> Any:
    convert = from_json(type)
    found = [read(convert, value, type, field.name) for value in values]
    array = arrow_column(found, type, field.name)
    return array if array.type == field.type else array.cast(field.type)


def rows_from_data(rows: Any, schema: Schema) -> Any:
    """Rows of JSON, lists or objects, as a table takes them: texts become dates, timestamps, decimals and floats.

    >>> rows_from_data([["2024-02-29", 1]], Schema({"day": "date", "n": int}))
    [(datetime.date(2024, 2, 29), 1)]
    """
    if not isinstance(rows, list) or not all([isinstance(row, list | dict) for row in rows]):
        raise IncorrectError('rows in JSON are a list of lists, or of objects, as in [[1, "tea"], [2, "salt"]]')
    special = {
        name: (kind, convert)
        for name, kind in zip(schema.names, schema.types, strict=True)
        if (convert := from_json(kind)) is not None
    }
    if not special or not rows:
        return rows

    def value(name: str, given: Any) -> Any:
        kind, convert = special.get(name, (None, None))
        return given if kind is None else read(convert, given, kind, name)

    if isinstance(rows[0], dict):
        return [{name: value(name, given) for name, given in row.items()} for row in rows]
    return [
        tuple(value(name, given) for name, given in zip(schema.names, row, strict=False)) + tuple(row[len(schema) :])
        for row in rows
    ]


def value_as_data(value: Any) -> Any:
    """A parameter's value as JSON can hold it: what JSON has no word for is an object with its type.

    >>> import datetime, decimal
    >>> value_as_data(3), value_as_data(datetime.date(2024, 2, 29)), value_as_data(decimal.Decimal("1.50"))
    (3, {'type': 'date', 'value': '2024-02-29'}, {'type': 'decimal', 'value': '1.50'})
    """
    if isinstance(value, float) and not math.isfinite(value):
        return {"type": "float", "value": WRITE["float"](value)}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return value_as_data(value.item())
    kind = KINDS.get(type(value)) or next((kind for known, kind in KINDS.items() if isinstance(value, known)), None)
    if kind == "timestamp" and value.tzinfo is not None:
        kind = "timestamptz"
    if kind is not None:
        return {"type": kind, "value": WRITE[kind](value)}
    if isinstance(value, Mapping):
        return {"type": "struct", "value": {str(name): value_as_data(part) for name, part in value.items()}}
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
    kind, given = str(data.get("type")), data.get("value")
    if kind == "struct" and isinstance(given, dict):
        return {name: value_from_data(part) for name, part in given.items()}
    made = READ.get(kind)
    if made is None or not isinstance(given, str):
        raise IncorrectError(
            f"a value is a number, a text, true, false, null, a list, or an object with type and value: {str(data)[:100]}"
        )
    try:
        return made(given)
    except (ValueError, ArithmeticError):
        raise IncorrectError(f"expected a {kind}, found {given[:100]!r}") from None


KINDS: dict[type, str] = {
    datetime.datetime: "timestamp", datetime.date: "date", datetime.time: "time", datetime.timedelta: "interval",
    IntervalValue: "interval", decimal.Decimal: "decimal", uuid.UUID: "uuid", bytes: "blob", bytearray: "blob",
}  # fmt: skip
"""Classes of values that JSON has no word for, and their types; a datetime is also a date."""
