"""Results as text: an aligned table for people, CSV and JSON for programs."""

from __future__ import annotations

import csv
import datetime
import json
import math
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TextIO

import pyarrow as pa

from tektite.values.python_values import python_list

FORMATS = ("table", "expanded", "csv", "json")

# Rows whose columns are laid out together: a result of millions of rows is not held as text.
BLOCK = 10_000


def show(table: pa.Table, form: str, out: TextIO) -> None:
    """Write a result in one of the FORMATS.

    >>> import sys
    >>> show(pa.table({"item": ["tea", None], "price": [3, 12]}), "table", sys.stdout)
     item | price
    ------+-------
     tea  |     3
          |    12
    (2 rows)
    """
    {"table": _aligned, "expanded": _expanded, "csv": _csv, "json": _json}[form](table, out)


def rows_of(table: pa.Table) -> Iterator[tuple[Any, ...]]:
    """The rows of a table as Python values, without holding all of them."""
    for batch in table.to_batches(max_chunksize=BLOCK):
        columns = [python_list(column) for column in batch.columns]
        yield from zip(*columns, strict=True) if columns else [()] * batch.num_rows


def text(value: Any) -> str:
    """A value as people read it.

    >>> [text(v) for v in (None, True, 0.1, datetime.date(2026, 11, 15), datetime.datetime(2026, 11, 15, 12))]
    ['', 'true', '0.1', '2026-11-15', '2026-11-15 12:00:00']
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime.datetime):
        return value.isoformat(sep=" ")
    return str(value)


def width(shown: str) -> int:
    """The number of columns that a text takes on a terminal.

    >>> width("tea"), width("茶"), width("e\\u0301")
    (3, 2, 1)
    """
    if shown.isascii():
        return len(shown)
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in shown)


def visible(shown: str) -> str:
    """A text on one line, its control characters escaped: what data holds must not drive the terminal.

    >>> visible("a\\nb\\x1b[2J")
    'a\\\\nb\\\\x1b[2J'
    """
    if shown.isprintable():
        return shown
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in shown)


def _blocks(table: pa.Table) -> Iterator[list[list[str]]]:
    """The cells of a table, some rows at a time, as texts."""
    block: list[list[str]] = []
    for row in rows_of(table):
        block.append([visible(text(value)) for value in row])
        if len(block) == BLOCK:
            yield block
            block = []
    yield block


def _aligned(table: pa.Table, out: TextIO) -> None:
    numeric = [is_number(kind) for kind in table.schema.types]
    names = [visible(name) for name in table.schema.names]
    widths = [width(name) for name in names]
    for number, block in enumerate(_blocks(table)):
        widths = [max([least, *(width(cell) for cell in cells)]) for least, cells in _columns(widths, block)]
        if number == 0:
            out.write(_line([_centre(name, size) for name, size in zip(names, widths, strict=True)]))
            out.write("+".join("-" * (size + 2) for size in widths) + "\n")
        for row in block:
            out.write(_line([_pad(*cell) for cell in zip(row, widths, numeric, strict=True)]))
    out.write(f"({table.num_rows} row{'' if table.num_rows == 1 else 's'})\n")


def _columns(widths: Sequence[int], block: list[list[str]]) -> Iterator[tuple[int, Iterable[str]]]:
    return zip(widths, zip(*block, strict=True) if block else [()] * len(widths), strict=True)


def _line(cells: Sequence[str]) -> str:
    return (" " + " | ".join(cells)).rstrip() + "\n"


def _pad(cell: str, size: int, right: bool) -> str:
    space = " " * (size - width(cell))
    return space + cell if right else cell + space


def _centre(name: str, size: int) -> str:
    space = size - width(name)
    return " " * (space // 2) + name + " " * (space - space // 2)


def _expanded(table: pa.Table, out: TextIO) -> None:
    names = [visible(name) for name in table.schema.names]
    widest = max(map(width, names), default=0)
    number = 0
    for block in _blocks(table):
        for row in block:
            number += 1
            out.write(f"-[ row {number} ]\n")
            for name, cell in zip(names, row, strict=True):
                out.write(f"{_pad(name, widest, False)} | {cell}".rstrip() + "\n")
    if not number:
        out.write("(0 rows)\n")


def _csv(table: pa.Table, out: TextIO) -> None:
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(table.schema.names)
    writer.writerows([text(value) for value in row] for row in rows_of(table))


def _json(table: pa.Table, out: TextIO) -> None:
    """One object a line."""
    names = table.schema.names
    for row in rows_of(table):
        out.write(json.dumps(dict(zip(names, map(_plain, row), strict=True)), ensure_ascii=False) + "\n")


def _plain(value: Any) -> Any:
    """A value that JSON has. Decimals stay exact as texts; what is not a number in JSON becomes null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else text(value)


def is_number(kind: pa.DataType) -> bool:
    """Whether values of an Arrow type stand at the right of their column."""
    checks: tuple[Callable[[pa.DataType], bool], ...] = (
        pa.types.is_integer,
        pa.types.is_floating,
        pa.types.is_decimal,
    )
    return any(check(kind) for check in checks)
