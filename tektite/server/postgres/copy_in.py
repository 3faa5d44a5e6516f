"""COPY ... FROM STDIN: what a client sends, as text, CSV or binary, becomes rows.

Data is parsed in pieces that end with a row, so that only what is written, not what is sent, is in memory.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Sequence
from csv import QUOTE_NONE
from typing import Any

import pyarrow as pa
from pyarrow import csv

from tektite.errors import IncorrectError
from tektite.server.postgres.copy_options import CopyOptions
from tektite.server.postgres.copy_out import SIGNATURE
from tektite.server.postgres.types import READ_BINARY, TOLD, reader_of, text_reader
from tektite.sql.statements.csv_lines import bad_line, first_invalid, with_column
from tektite.values.columns import arrow_column
from tektite.values.schema import Schema
from tektite.values.words import arrow_type

PIECE_BYTES = 8 << 20
"""Bytes that are collected before they are parsed."""
TRUE = ["t", "true", "T", "TRUE", "True", "y", "yes", "on", "1"]
FALSE = ["f", "false", "F", "FALSE", "False", "n", "no", "off", "0"]
END_MARK = b"\\."
UNESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v"}


class CopyParser:
    """Turns what arrives into tables with the columns of a schema."""

    def __init__(self, schema: Schema, options: CopyOptions, what: str, zone: str = "UTC") -> None:
        self._schema = schema
        self._options = options
        self._what = what
        self._zone = zone
        self._buffer = bytearray()
        self._begins = True
        self._line = 1
        """The number of the first line that has not been parsed."""

    def feed(self, data: bytes) -> bool:
        """Take what has arrived; whether there is enough to parse a piece."""
        self._buffer += data
        return len(self._buffer) >= PIECE_BYTES

    def parse(self, is_last: bool = False) -> pa.Table:
        """The rows that are complete."""
        if self._options.form == "binary":
            return self._binary(is_last)
        data = self._lines(is_last)
        if self._begins and data:
            self._begins = False
            if self._options.header:
                begin = self._row_end(data, 0)
                self._line += data.count(b"\n", 0, begin)
                data = data[begin:]
        if not data:
            return self._schema.arrow.empty_table()
        try:
            table = self._texts(data) if self._options.form == "text" else self._csv(data)
        except (pa.ArrowInvalid, pa.ArrowKeyError, UnicodeDecodeError) as error:
            why = with_column(str(error), self._schema.names)
            state = "22P02" if "invalid value" in why else "22P04"
            raise self._wrong(f"{self._line_of(data, str(error))}{why}", state) from None
        self._line += data.count(b"\n")
        return table

    def _line_of(self, data: bytes, error: str) -> str:
        """The line of the data that Arrow's error is about, as text for messages; empty if it is not found."""
        options = self._options
        dialect: dict[str, Any] = {"delimiter": options.delimiter, "quoting": QUOTE_NONE}
        if options.form == "csv":
            dialect = {"delimiter": options.delimiter, "quotechar": options.quote}
            if options.escape != options.quote:
                dialect |= {"doublequote": False, "escapechar": options.escape}
        lines = io.StringIO(data.decode(errors="surrogateescape"), newline="")
        line = bad_line(lines, len(self._schema.names), error, **dialect)
        return "" if line is None else f"line {self._line + line - 1}: "

    def _wrong(self, why: str, state: str = "22P04") -> IncorrectError:
        error = IncorrectError(f"{self._what}: {why}")
        error.details["sqlstate"] = state
        return error

    # ------------------------------------------------------------------ lines

    def _lines(self, is_last: bool) -> bytes:
        """The lines that are complete, taken out of the buffer."""
        data = bytes(self._buffer)
        if is_last:
            end = len(data)
        else:
            end = data.rfind(b"\n") + 1
            quote = self._options.quote.encode()
            while self._options.form == "csv" and end and data.count(quote, 0, end) % 2:
                end = data.rfind(b"\n", 0, end - 1) + 1
        del self._buffer[:end]
        data = data[:end].replace(b"\r\n", b"\n") if b"\r\n" in data[:end] else data[:end]
        mark = data.rstrip(b"\n")
        if mark == END_MARK or mark.endswith(b"\n" + END_MARK):
            data = mark[: -len(END_MARK)]
        return data

    def _row_end(self, data: bytes, begin: int) -> int:
        """The end of the row that begins at a place."""
        quote = self._options.quote.encode()
        end = data.find(b"\n", begin)
        while self._options.form == "csv" and end >= 0 and data.count(quote, begin, end) % 2:
            end = data.find(b"\n", end + 1)
        return len(data) if end < 0 else end + 1

    def _csv(self, data: bytes) -> pa.Table:
        options = self._options
        return self._read(
            data,
            csv.ParseOptions(
                delimiter=options.delimiter, quote_char=options.quote, double_quote=options.escape == options.quote,
                escape_char=False if options.escape == options.quote else options.escape, newlines_in_values=True,
                ignore_empty_lines=False,
            ),
        )  # fmt: skip

    def _texts(self, data: bytes) -> pa.Table:
        if data.count(b"\\") != data.count(b"\\N") or self._options.null != "\\N":
            return self._escaped(data)
        form = csv.ParseOptions(
            delimiter=self._options.delimiter, quote_char=False, escape_char=False, ignore_empty_lines=False
        )
        return self._read(data, form)

    def _read(self, data: bytes, form: csv.ParseOptions) -> pa.Table:
        """Parse lines by Arrow."""
        schema = self._schema.arrow
        told = [at for at, type in enumerate(self._schema.types) if type.kind in TOLD]
        for at in told:
            schema = schema.set(at, pa.field(schema.names[at], pa.string()))
        table = csv.read_csv(
            io.BytesIO(data),
            read_options=csv.ReadOptions(column_names=schema.names, use_threads=False),
            parse_options=form,
            convert_options=csv.ConvertOptions(
                column_types=schema, null_values=[self._options.null], strings_can_be_null=True,
                quoted_strings_can_be_null=False, true_values=TRUE, false_values=FALSE,
            ),
        )  # fmt: skip
        for name, column in zip(table.column_names, table.columns, strict=True):
            if pa.types.is_decimal(column.type) and (row := first_invalid(column)) is not None:
                raise self._wrong(f"column {name!r}: {column[row].as_py()} has too many digits", "22003")
        for at in told:
            name, type = self._schema.names[at], self._schema.types[at]
            read = text_reader(type, self._zone)
            texts = table.column(at).to_pylist()
            try:
                values = [None if text is None else read(text) for text in texts]
            except (ValueError, ArithmeticError) as error:
                raise self._wrong(f"invalid input for column {name!r}: {error}", "22P02") from None
            table = table.set_column(at, name, arrow_column(values, type, name))
        return table

    def _escaped(self, data: bytes) -> pa.Table:
        """Parse lines in which something stands behind a backslash."""
        options, names = self._options, self._schema.names
        readers = [text_reader(type, self._zone) for type in self._schema.types]
        columns: list[list[Any]] = [[] for _ in names]
        for number, line in enumerate(data.decode().removesuffix("\n").split("\n"), self._line):
            cells = split_cells(line, options.delimiter)
            if len(cells) != len(names):
                raise self._wrong(f"line {number}: expected {len(names)} columns, found {len(cells)} in {line[:60]!r}")
            for column, read, cell in zip(columns, readers, cells, strict=True):
                try:
                    column.append(None if cell == options.null else read(unescaped(cell)))
                except (ValueError, ArithmeticError):
                    raise self._wrong(f"line {number}: invalid input: {cell[:60]!r}", "22P02") from None
        return self._table(columns)

    def _table(self, columns: list[list[Any]]) -> pa.Table:
        """Values of each column as a table."""
        pairs = zip(columns, self._schema.names, self._schema.types, strict=True)
        arrays = [
            arrow_column(column, type, name) if type.kind in TOLD else pa.array(column, arrow_type(type))
            for column, name, type in pairs
        ]
        return pa.Table.from_arrays(arrays, names=list(self._schema.names))

    # ------------------------------------------------------------------ binary

    def _binary(self, is_last: bool) -> pa.Table:
        """Parse the tuples that are complete."""
        data, at = bytes(self._buffer), 0
        if self._begins:
            if len(data) < 19:
                if is_last:
                    raise self._wrong("it has no head of COPY's binary format")
                return self._schema.arrow.empty_table()
            if not data.startswith(SIGNATURE):
                raise self._wrong("it does not begin as COPY's binary format does")
            at = 19 + struct.unpack_from("!i", data, 15)[0]
            self._begins = False
        rows, at = self._tuples(data, at)
        del self._buffer[:at]
        if is_last and bytes(self._buffer) not in (b"", struct.pack("!h", -1)):
            raise self._wrong("it ends within a row")
        return self._table(rows)

    def _tuples(self, data: bytes, at: int) -> tuple[list[list[Any]], int]:
        """The values of each column, of the tuples that are complete; and where those end."""
        readers = [reader_of(type) for type in self._schema.types]
        narrow = [{2: READ_BINARY[21], 4: READ_BINARY[23]} if t.kind == "int" else {4: READ_BINARY[700]} if t.kind == "float"
                  else {} for t in self._schema.types]  # fmt: skip
        columns: list[list[Any]] = [[] for _ in readers]
        size = len(data)
        while at + 2 <= size:
            (many,) = struct.unpack_from("!h", data, at)
            if many == -1:
                break
            if many != len(readers):
                raise self._wrong(f"expected {len(readers)} columns, found {many}")
            place = at + 2
            row: list[Any] = []
            for read, narrower in zip(readers, narrow, strict=True):
                if place + 4 > size:
                    return columns, at
                (length,) = struct.unpack_from("!i", data, place)
                place += 4
                if length == -1:
                    row.append(None)
                    continue
                if length < 0 or place + length > size:
                    if length < 0:
                        raise self._wrong(f"a value of {length} bytes")
                    return columns, at
                try:
                    row.append(narrower.get(length, read)(data[place : place + length]))
                except (ValueError, struct.error, ArithmeticError):
                    raise self._wrong("a value of another type than the column's", "22P03") from None
                place += length
            for column, value in zip(columns, row, strict=True):
                column.append(value)
            at = place
        return columns, at


def split_cells(line: str, delimiter: str) -> list[str]:
    """The values of a line. One behind a backslash divides nothing.

    >>> split_cells("a\\\\,b,c", ",")
    ['a\\\\,b', 'c']
    """
    if "\\" + delimiter not in line:
        return line.split(delimiter)
    found, begin, at = [], 0, 0
    while at < len(line):
        if line[at] == "\\":
            at += 1
        elif line[at] == delimiter:
            found.append(line[begin:at])
            begin = at + 1
        at += 1
    return [*found, line[begin:]]


def unescaped(text: str) -> str:
    """A value without its backslashes.

    >>> unescaped("a\\\\tb\\\\\\\\")
    'a\\tb\\\\'
    """
    if "\\" not in text:
        return text
    found: list[str] = []
    at = 0
    while at < len(text):
        if text[at] == "\\" and at + 1 < len(text):
            at += 1
            found.append(UNESCAPED.get(text[at], text[at]))
        else:
            found.append(text[at])
        at += 1
    return "".join(found)


def wanted_columns(all_names: Sequence[str], asked: Sequence[str], what: str) -> list[str]:
    """The columns that a COPY names, or all of them."""
    for name in asked:
        if name not in all_names:
            error = IncorrectError(f"{what}: there is no column {name!r}; there are: {', '.join(all_names)}").about(
                condition="undefined-column"
            )
            error.details["sqlstate"] = "42703"
            raise error
    return list(asked) if asked else list(all_names)
