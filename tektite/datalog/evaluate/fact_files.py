"""Fact files in Soufflé's convention: one fact a line, columns between tabs, texts as they are.

A file is read as a whole or not at all: the first line that does not fit is named with its file, number and column.
"""

from __future__ import annotations

import csv as plain_csv
import io
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from tektite.datalog.syntax import statements
from tektite.errors import IncorrectError, NotFoundError, TektiteError, UnsupportedError
from tektite.expr.literals import literal_value, parse
from tektite.values.python_values import python_list
from tektite.values.schema import Schema
from tektite.values.types import Bool, Float, Int, String, Type
from tektite.values.words import arrow_type

LARGEST = 2**63 - 1
SHOWN = 60
PARAMETERS: dict[str, tuple[str, ...]] = {
    "input": ("IO", "filename", "dbname", "format", "delimiter", "headers", "columns", "rfc4180"),
    "output": ("IO", "filename", "dbname", "format", "delimiter", "headers", "rfc4180"),
    "printsize": (),
}
WHOLE = re.compile(r"[-+]?[0-9]+|0[xX][0-9a-fA-F]+")
FRACTION = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?|[-+]?(inf|infinity|nan)", re.IGNORECASE)


@dataclass(frozen=True)
class FileForm:
    """The format of the lines of a fact file. `columns` says where in a line each column of the relation stands; `quoted` texts
    stand within double quotes, as RFC 4180 has it; `unsigned` columns hold no negative number.
    """

    separator: str = "\t"
    headers: bool = False
    columns: tuple[int, ...] | None = None
    quoted: bool = False
    unsigned: tuple[str, ...] = ()


def form(directive: statements.Directive, declared: statements.Declaration | None = None) -> FileForm:
    """The form that a directive asks for. A parameter that is not understood is refused, because what it says of a file
    would be read or written otherwise.
    """
    where = f"{directive.position}: .{directive.kind} {directive.predicate}"
    understood = PARAMETERS[directive.kind]
    for name, _ in directive.options:
        if name not in understood:
            raise UnsupportedError(
                f"{where}: parameter {name!r} is not supported; there are: {', '.join(understood) or 'none'}"
            )
    flags = {}
    for name in ("headers", "rfc4180"):
        text = directive.option(name, "false")
        if text not in ("true", "false"):
            raise IncorrectError(f"{where}: {name} is true or false, not {text!r}")
        flags[name] = text == "true"
    separator = directive.option("delimiter", "," if flags["rfc4180"] else "\t").replace("\\t", "\t")
    if len(separator) != 1:
        raise UnsupportedError(f"{where}: a delimiter is one character, not {separator!r}")
    columns = places(directive, declared, where)
    unsigned = () if declared is None else declared.unsigned
    return FileForm(separator, flags["headers"], columns, flags["rfc4180"], unsigned)


def places(
    directive: statements.Directive, declared: statements.Declaration | None, where: str
) -> tuple[int, ...] | None:
    """`columns="2:0"`: the places in a line that the relation's columns are read from, in their order."""
    text = directive.option("columns", "")
    if not text:
        return None
    found = text.split(":")
    if not all(place.isdecimal() for place in found) or len(set(found)) < len(found):
        raise IncorrectError(f"{where}: columns are different places in a line, such as 1:0, not {text!r}")
    if declared is not None and len(found) != len(declared.columns):
        names = ", ".join(name for name, _ in declared.columns)
        raise IncorrectError(f"{where}: columns={text!r} gives {len(found)} places for the columns {names}")
    return tuple(map(int, found))


def read_facts(path: Path, schema: Schema, form: FileForm = FileForm()) -> pa.Table:  # noqa: B008 - it cannot change
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
        return _read_slowly(path, data, schema, form)
    if form.quoted and data.count(b'"') % 2:  # one is not closed, which the quick way does not mind
        return _read_slowly(path, data, schema, form)
    taken = [f"f{at}" for at in (range(len(schema.names)) if form.columns is None else form.columns)]
    try:
        table = csv.read_csv(
            io.BytesIO(data),
            csv.ReadOptions(autogenerate_column_names=True, skip_rows=int(form.headers)),
            csv.ParseOptions(
                delimiter=form.separator, quote_char='"' if form.quoted else False, double_quote=form.quoted,
                newlines_in_values=form.quoted, ignore_empty_lines=False,
            ),
            csv.ConvertOptions(
                column_types={name: arrow_type(type) for name, type in zip(taken, schema.types, strict=True)},
                null_values=[], strings_can_be_null=False, check_utf8=True,
                include_columns=[] if form.columns is None else taken,
            ),
        )  # fmt: skip
    except (pa.ArrowInvalid, pa.ArrowKeyError):
        return _read_slowly(path, data, schema, form)
    if table.num_columns != len(taken) or any(column.null_count for column in table.columns):
        return _read_slowly(path, data, schema, form)
    table = table.rename_columns(list(schema.names))
    for name, type in zip(schema.names, schema.types, strict=True):
        if type == Int and table.num_rows:
            least = pc.min(table[name]).as_py()
            # The quick way takes 0xffffffffffffffff for -1.
            wrapped = least < 0 and (b"0x" in data or b"0X" in data)
            if wrapped or least < (0 if name in form.unsigned else -LARGEST):
                return _read_slowly(path, data, schema, form)
    return table


def _read_slowly(path: Path, data: bytes, schema: Schema, form: FileForm) -> pa.Table:
    """Line by line: for what the quick way does not read, and to name the line that nothing reads."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        number = data.count(b"\n", 0, error.start) + 1
        raise IncorrectError(f"{path}:{number}: the line is not UTF-8 text") from None
    taken = range(len(schema.names)) if form.columns is None else form.columns
    rows: list[tuple[Any, ...]] = []
    for number, fields in _fields(path, text, form):
        wanted = len(taken) if form.columns is None else max(taken) + 1
        if len(fields) != wanted and (form.columns is None or len(fields) < wanted):
            named = f" ({', '.join(schema.names)})" if form.columns is None else " at least"
            line = form.separator.join(fields)
            raise IncorrectError(
                f"{path}:{number}: expected {wanted} columns{named}, found {len(fields)}: {shorten(line)}"
            )
        rows.append(tuple(
            _value(fields[at], type, name, f"{path}:{number}", form)
            for at, type, name in zip(taken, schema.types, schema.names, strict=True)
        ))  # fmt: skip
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(schema.names)
    return pa.table(
        [pa.array(c, arrow_type(t)) for c, t in zip(columns, schema.types, strict=True)], list(schema.names)
    )


def _fields(path: Path, text: str, form: FileForm) -> Iterator[tuple[int, Sequence[str]]]:
    """The fields of each fact, with the number of its line, behind the headers."""
    if not form.quoted:
        lines = text.removesuffix("\n").split("\n")
        for number, line in enumerate(lines, start=1):
            if number > form.headers:
                yield number, line.removesuffix("\r").split(form.separator)
        return
    reader = plain_csv.reader(io.StringIO(text, newline=""), delimiter=form.separator, strict=True)
    number = 1
    try:
        for at, fields in enumerate(reader):
            if at or not form.headers:
                yield number, fields or [""]
            number = reader.line_num + 1
    except plain_csv.Error as error:
        raise IncorrectError(f"{path}:{number}: {error}") from None


def _value(text: str, type: Type, name: str, where: str, form: FileForm) -> Any:
    if type == String:
        return text
    if type not in (Int, Float):
        try:
            return parse(text, type) if type == Bool else literal_value(text, type)
        except (TektiteError, ValueError):
            raise IncorrectError(f"{where}: column {name!r}: expected {type}, found {shorten(text)}") from None
    # Python reads more than a number: 1_0, for one.
    number = text.strip(" \t")
    if not (WHOLE if type == Int else FRACTION).fullmatch(number):
        raise IncorrectError(f"{where}: column {name!r}: expected {type}, found {shorten(text)}")
    if type == Float:
        return float(number)
    base = 16 if number[:2] in ("0x", "0X") else 10
    value = int(number, base) if len(number) <= SHOWN else LARGEST + 1
    if abs(value) > LARGEST:
        raise IncorrectError(f"{where}: column {name!r}: {shorten(number)[1:-1]} does not fit into 64 bits")
    if value < 0 and name in form.unsigned:
        raise IncorrectError(f"{where}: column {name!r}: expected unsigned, found {shorten(text)}")
    return value


def shorten(text: str) -> str:
    """A text for a message."""
    return repr(text if len(text) <= SHOWN else text[:SHOWN] + "...")


def write_facts(path: Path, table: pa.Table, form: FileForm = FileForm()) -> None:  # noqa: B008 - it cannot change
    """Write facts, sorted, as Soufflé would read them."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="\n") as file:
        if form.headers:
            file.write(form.separator.join(table.column_names) + "\n")
        file.writelines(line + "\n" for line in lines(table, form))


def lines(table: pa.Table, form: FileForm, exact: bool = False) -> Iterator[str]:
    """Facts as lines, sorted. With `exact`, floats are written as Soufflé writes them."""
    show = quoted if form.quoted else in_digits if exact else shown
    for batch in sorted_facts(table).to_batches(max_chunksize=1 << 16):
        columns = [list(map(show, python_list(column))) for column in batch.columns]
        yield from map(form.separator.join, zip(*columns, strict=True))


def sorted_facts(table: pa.Table) -> pa.Table:
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
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def in_digits(value: Any) -> str:
    """A value as Soufflé prints it: a float with as many digits as tell it from any other.

    >>> in_digits(2.0), in_digits(0.1), in_digits("a")
    ('2', '0.10000000000000001', 'a')
    """
    return format(value, ".17g") if isinstance(value, float) else shown(value)


def quoted(value: Any) -> str:
    """A value as RFC 4180 has it: a text within double quotes.

    >>> print(quoted(3), quoted('5" wide'))
    3 "5"" wide"
    """
    return '"' + value.replace('"', '""') + '"' if isinstance(value, str) else shown(value)
