"""Fact files in Soufflé's convention: one fact a line, columns between tabs, texts as they are.

A file is read as a whole or not at all: the first line that does not fit is named with its file, number and column.
"""

from __future__ import annotations

import io
import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from tektite.datalog import ir
from tektite.errors import IncorrectError, NotFoundError, UnsupportedError
from tektite.schema import Schema
from tektite.types import Float, Int, String, Type
from tektite.words import arrow_type

LARGEST = 2**63 - 1
SHOWN = 60


def input_path(directive: ir.Directive, folder: Path) -> Path:
    """Where an `.input` reads from: its filename, or NAME.facts, in the folder of facts."""
    _check_kind(directive, ("file",))
    return folder / directive.option("filename", f"{directive.predicate}.facts")


def output_path(directive: ir.Directive, folder: Path | None) -> Path | None:
    """Where an `.output` writes to: its filename, or NAME.csv, in the folder of results; None is the terminal."""
    _check_kind(directive, ("file", "stdout"))
    if folder is None or directive.option("IO", "file") == "stdout":
        return None
    return folder / directive.option("filename", f"{directive.predicate}.csv")


def _check_kind(directive: ir.Directive, supported: tuple[str, ...]) -> None:
    kind = directive.option("IO", "file")
    if kind not in supported:
        raise UnsupportedError(
            f"{directive.position}: .{directive.kind} {directive.predicate} with IO={kind} is not supported; there is: "
            f"{', '.join(supported)}"
        )


def delimiter(directive: ir.Directive) -> str:
    """What stands between columns."""
    found = directive.option("delimiter", "\t").replace("\\t", "\t")
    if len(found) != 1:
        raise UnsupportedError(f"{directive.position}: a delimiter is one character, not {found!r}")
    return found


def read_facts(path: Path, schema: Schema, separator: str = "\t") -> pa.Table:
    """The facts of a file."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise NotFoundError(
            f"there is no fact file {str(path)!r}; facts are looked for in the folder given by -F"
        ) from None
    except OSError as error:
        raise NotFoundError(f"cannot read the fact file {str(path)!r}: {error.strerror}") from None
    if not data.strip(b"\n\r"):
        return schema.arrow.empty_table()
    if any(type not in (Int, Float, String) for type in schema.types) or schema.types == (String,):
        return _read_slowly(path, data, schema, separator)
    try:
        table = csv.read_csv(
            io.BytesIO(data),
            csv.ReadOptions(column_names=list(schema.names)),
            csv.ParseOptions(delimiter=separator, quote_char=False, double_quote=False, ignore_empty_lines=False),
            csv.ConvertOptions(
                column_types={n: arrow_type(t) for n, t in zip(schema.names, schema.types, strict=True)},
                null_values=[], strings_can_be_null=False, check_utf8=True,
            ),
        )  # fmt: skip
    except pa.ArrowInvalid:
        return _read_slowly(path, data, schema, separator)
    if table.num_columns != len(schema.names) or any(column.null_count for column in table.columns):
        return _read_slowly(path, data, schema, separator)
    return table


def _read_slowly(path: Path, data: bytes, schema: Schema, separator: str) -> pa.Table:
    """Line by line: for what the quick way does not read, and to name the line that nothing reads."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        number = data.count(b"\n", 0, error.start) + 1
        raise IncorrectError(f"{path}:{number}: the line is not UTF-8 text") from None
    lines = text.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    rows: list[tuple[Any, ...]] = []
    for number, line in enumerate(lines, start=1):
        line = line.removesuffix("\r")
        fields = line.split(separator)
        if len(fields) != len(schema.names):
            names = ", ".join(schema.names)
            raise IncorrectError(
                f"{path}:{number}: expected {len(schema.names)} columns ({names}), found {len(fields)}: {shorten(line)}"
            )
        rows.append(tuple(
            _value(field, type, name, path, number)
            for field, type, name in zip(fields, schema.types, schema.names, strict=True)
        ))  # fmt: skip
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(schema.names)
    return pa.table(
        [pa.array(c, arrow_type(t)) for c, t in zip(columns, schema.types, strict=True)], list(schema.names)
    )


def _value(text: str, type: Type, name: str, path: Path, number: int) -> Any:
    if type == String:
        return text
    if type not in (Int, Float):
        raise UnsupportedError(f"{path}: column {name!r} is {type}, which fact files do not hold")
    try:
        value = int(text) if type == Int else float(text)
    except ValueError:
        raise IncorrectError(f"{path}:{number}: column {name!r}: expected {type}, found {shorten(text)}") from None
    if type == Int and abs(value) > LARGEST:
        raise IncorrectError(f"{path}:{number}: column {name!r}: {text} does not fit into 64 bits")
    return value


def shorten(text: str) -> str:
    """A text for a message."""
    return repr(text if len(text) <= SHOWN else text[:SHOWN] + "...")


def write_facts(path: Path, table: pa.Table, separator: str = "\t") -> None:
    """Write facts, sorted, as Soufflé would read them."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for batch in ordered(table).to_batches(max_chunksize=1 << 16):
            columns = [list(map(shown, column.to_pylist())) for column in batch.columns]
            file.writelines(separator.join(row) + "\n" for row in zip(*columns, strict=True))


def ordered(table: pa.Table) -> pa.Table:
    """A table in the order of its columns."""
    keys = [(name, "ascending") for name in table.column_names]
    return table.take(pc.sort_indices(table, sort_keys=keys)) if table.num_rows else table  # type: ignore[arg-type]


def shown(value: Any) -> str:
    """A value as a fact file has it.

    >>> shown(3), shown(0.5), shown("a b"), shown(None)
    ('3', '0.5', 'a b', '')
    """
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else {"inf": "inf", "-inf": "-inf", "nan": "nan"}[str(value)]
    return "" if value is None else str(value)
