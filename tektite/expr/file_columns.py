"""Columns for files that have no form for their values: as the texts that SQL shows, and back.

CSV has texts alone; Parquet has all types but intervals. `for_csv` and `for_parquet` give a table that the file can hold, and
`typed` gives back the values of a schema's types, whichever of both forms the file has.
"""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

from tektite.errors import IncorrectError
from tektite.expr.interned_texts import parse_interned, shown_payloads
from tektite.expr.literals import parse
from tektite.expr.zones import moment_said
from tektite.values import composites
from tektite.values.columns import arrow_column
from tektite.values.python_values import python_list
from tektite.values.schema import Schema
from tektite.values.types import TimestampTz, Type, contains
from tektite.values.words import type_of_field

TOLD: Final = frozenset({"list", "struct", "interval", "blob", "timestamptz", "time"})
"""Kinds of values that are texts in CSV files."""


def for_csv(table: pa.Table) -> pa.Table:
    """A table for a CSV file.

    >>> for_csv(pa.table({"l": [[1, None]], "n": [7]})).to_pylist()
    [{'l': '[1, NULL]', 'n': 7}]
    """
    return _with_texts(table, lambda type: type.kind in TOLD)


def for_parquet(table: pa.Table) -> pa.Table:
    """A table for a Parquet file."""
    return _with_texts(table, lambda type: contains(type, "interval"))


def _with_texts(table: pa.Table, chosen: Any) -> pa.Table:
    for at, field in enumerate(table.schema):
        type = type_of_field(field)
        if chosen(type):
            payloads = composites.texts_of(table.column(at), type)
            table = table.set_column(at, field.name, shown_payloads(payloads, type).cast(pa.string()))
    return table


def csv_types(schema: Schema) -> dict[str, pa.DataType]:
    """The types by which Arrow reads the columns of a CSV file."""
    pairs = zip(schema.arrow, schema.types, strict=True)
    return {field.name: pa.string() if type.kind in TOLD else field.type for field, type in pairs}


def typed(table: pa.Table, schema: Schema, where: str = "", zone: str = "UTC") -> pa.Table:
    """A table with the columns of a schema that it has, those that came as texts as values of their types. Moments without an
    offset are what the clocks of `zone` show.
    """
    for name, type in zip(schema.names, schema.types, strict=True):
        if name not in table.column_names:
            continue
        column: Any = table.column(name)
        is_text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
        if is_text and (type.kind in TOLD or type.kind in ("json", "uuid")):
            values = [None if text is None else _parsed(text, type, name, where, zone) for text in python_list(column)]
            table = table.set_column(table.column_names.index(name), name, arrow_column(values, type, name))
    return table


def _parsed(text: str, type: Type, column: str, where: str, zone: str) -> Any:
    try:
        if type == TimestampTz:
            return moment_said(text, zone)
        return parse_interned(text, type) if type.interned else parse(text, type)
    except (ValueError, ArithmeticError):
        raise IncorrectError(f"{where}column {column!r}: expected {type}, found {text[:60]!r}") from None
