"""Reads files from where they were read to: whole lines of CSV and JSON that were added, and Parquet files once.

A position says for each file how many bytes of it were taken, and for CSV with a header the columns that it names. A line without
its end is left for the next time.
"""

from __future__ import annotations

import io
import json as plain_json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import csv, json, parquet

from tektite.errors import IncorrectError
from tektite.expr.file_columns import csv_types, typed
from tektite.values.dictionary import Dictionary
from tektite.values.schema import Schema
from tektite.wire.rows import rows_from_data

FORMATS = {".csv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json", ".parquet": "parquet"}
PART = 8 << 20
"""Bytes that are read at a time: so large a part is one epoch."""


def files_of(place: str, form: str | None) -> list[Path]:
    """The files of a path: itself, those of a folder, or those that match a pattern; in the order of their names. Names that
    begin with a dot, or end in .tmp, are of files that are not complete.
    """
    path = Path(place)
    found = [path] if path.is_file() else list(path.iterdir()) if path.is_dir() else list(path.parent.glob(path.name))
    files = [file for file in found if file.is_file() and not file.name.startswith(".") and file.suffix != ".tmp"]
    return sorted([file for file in files if form is not None or file.suffix in FORMATS], key=lambda file: file.name)


def form_of(file: Path, form: str | None) -> str:
    """The format of a file."""
    return form or FORMATS.get(file.suffix, "csv")


def read_next(
    place: str, options: Mapping[str, str], schema: pa.Schema, position: Mapping[str, Any]
) -> tuple[pa.Table, dict[str, Any]] | None:
    """The next rows that a source has not taken, and its position behind them; None if there are none."""
    form = options.get("format")
    taken: dict[str, Any] = dict(position.get("files", {}))
    for file in files_of(place, form):
        known = taken.get(file.name, {})
        size = file.stat().st_size
        if size <= known.get("bytes", 0):
            continue
        kind = form_of(file, form)
        read = read_parquet if kind == "parquet" else read_lines
        for table, after in read(file, kind, options, schema, known, size):
            return table, {**position, "files": {**taken, file.name: after}}
    return None


def read_parquet(
    file: Path, kind: str, options: Mapping[str, str], schema: pa.Schema, known: Mapping[str, Any], size: int
) -> Iterator[tuple[pa.Table, dict[str, Any]]]:
    """A whole Parquet file, once."""
    if known:
        return
    try:
        found = parquet.read_table(file)
        missing = [name for name in schema.names if name not in found.column_names]
        if missing:
            raise IncorrectError(
                f"{file.name}: there is no column {missing[0]!r}: it has {', '.join(found.column_names)}"
            )
        yield typed(found.select(schema.names), Schema(schema), f"{file.name}: ").cast(schema), {"bytes": size}
    except pa.ArrowInvalid as error:
        raise IncorrectError(f"{file.name}: {error}") from None


def read_lines(
    file: Path, kind: str, options: Mapping[str, str], schema: pa.Schema, known: Mapping[str, Any], size: int
) -> Iterator[tuple[pa.Table, dict[str, Any]]]:
    """The whole lines that were added to a file, at most a part of them."""
    begin, columns = known.get("bytes", 0), known.get("columns")
    with file.open("rb") as opened:
        opened.seek(begin)
        data = opened.read(PART)
        if b"\n" not in data:
            data += opened.readline()
    data = data[: data.rfind(b"\n") + 1]
    if not data:
        return
    after: dict[str, Any] = {"bytes": begin + len(data)}
    delimiter = options.get("delimiter", ",")
    if kind == "csv" and columns is None and options.get("header", "true").lower() == "true":
        head, _, data = data.partition(b"\n")
        columns = [name.strip().strip('"') for name in head.decode().rstrip("\r").split(delimiter)]
        wrong = [name for name in columns if name not in schema.names]
        if wrong:
            raise IncorrectError(f"{file.name}: the table has no column {wrong[0]!r}: it has {', '.join(schema.names)}")
    if columns is not None:
        after["columns"] = columns
    try:
        yield (parsed_json(data, schema) if kind == "json" else parsed_csv(data, delimiter, columns, schema)), after
    except (pa.ArrowInvalid, UnicodeDecodeError) as error:
        raise IncorrectError(f"{file.name}, behind byte {begin}: {error}") from None


def parsed_csv(data: bytes, delimiter: str, columns: list[str] | None, schema: pa.Schema) -> pa.Table:
    names = columns or schema.names
    if not data.strip():
        return schema.empty_table()
    found = csv.read_csv(
        io.BytesIO(data),
        read_options=csv.ReadOptions(column_names=names),
        parse_options=csv.ParseOptions(delimiter=delimiter, newlines_in_values=False),
        convert_options=csv.ConvertOptions(
            column_types={name: kind for name, kind in csv_types(Schema(schema)).items() if name in names},
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )
    return completed(typed(found, Schema(schema)), schema)


def parsed_json(data: bytes, schema: pa.Schema) -> pa.Table:
    if not data.strip():
        return schema.empty_table()
    if not any(pa.types.is_nested(kind) or special(kind) for kind in schema.types):
        try:
            form = json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="error")
            return completed(json.read_json(io.BytesIO(data), parse_options=form), schema)
        except pa.ArrowInvalid:  # which says less of what is wrong, and does not read all that we write
            pass
    try:
        rows = [plain_json.loads(line) for line in data.splitlines() if line.strip()]
    except ValueError as error:
        raise pa.ArrowInvalid(f"it is not JSON: {error}") from None
    wrong = [name for row in rows for name in row if name not in schema.names]
    if wrong:
        raise pa.ArrowInvalid(f"the table has no column {wrong[0]!r}: it has {', '.join(schema.names)}")
    whole, dictionary = Schema(schema), Dictionary()
    given = [{name: row.get(name) for name in schema.names} for row in rows]
    return whole.decode(whole.encode(rows_from_data(given, whole), dictionary), dictionary)


def special(kind: pa.DataType) -> bool:
    """Whether Arrow reads values of a type from JSON otherwise than they are written."""
    kinds = pa.types
    return kinds.is_interval(kind) or kinds.is_binary(kind) or kinds.is_time(kind) or kinds.is_decimal(kind) or (
        kinds.is_timestamp(kind) and kind.tz is not None
    )  # fmt: skip


def completed(found: pa.Table, schema: pa.Schema) -> pa.Table:
    """Rows with all columns of a table: those that are not given are NULL."""
    arrays = [
        found.column(field.name).cast(field.type)
        if field.name in found.column_names
        else pa.nulls(found.num_rows, field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(arrays, schema=schema)
