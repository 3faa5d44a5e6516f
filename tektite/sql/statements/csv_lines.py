"""Finds the line and the column of a CSV text that Arrow complains of: its messages have a number for the column, at best."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any

import pyarrow as pa

_PLACE = re.compile(r"column #(\d+): .*?(?:(?:invalid value|offset in) '(.*)'|invalid UTF8)", re.DOTALL)
_CONVERSION = re.compile(r"In CSV column #(\d+): (?:Row #\d+: )?CSV conversion error to (.+?): (.*)", re.DOTALL)
_NOT_UTF8 = re.compile("[\udc80-\udcff]")


def bad_line(lines: Iterable[str], width: int, error: str, skip: int = 0, **dialect: Any) -> int | None:
    r"""The number of the line at which the record begins that an error is about, counted from 1; None if it is not found.

    `lines` are decoded with errors="surrogateescape". A record has `width` fields, and the first `skip` records are a head.
    An error that says no place is about a record that is too short or too long, or that is not UTF-8.

    >>> bad_line(["1,2\n", "3,x\n"], 2, "In CSV column #1: CSV conversion error to int64: invalid value 'x'")
    2
    >>> bad_line(['1,"two\n', 'lines"\n', "3\n"], 2, "Expected 2 columns, got 1: 3")
    3
    """
    place = _PLACE.search(error)
    for line, fields in _records(lines, skip, dialect):
        if place is None:
            is_bad = len(fields) != width or any(map(_NOT_UTF8.search, fields))
        elif len(fields) <= int(place[1]):
            is_bad = False
        else:
            field = fields[int(place[1])]
            is_bad = bool(_NOT_UTF8.search(field)) if place[2] is None else _shown(field) == place[2]
        if is_bad:
            return line
    return None


def with_column(error: str, names: Sequence[str]) -> str:
    """An error of Arrow's with the name of the column that it is about.

    >>> with_column("In CSV column #1: Row #2: CSV conversion error to int64: invalid value 'x'", ["id", "amount"])
    "column 'amount': invalid value 'x' for int64"
    >>> with_column("Expected 2 columns, got 1: 3", ["id", "amount"])
    'Expected 2 columns, got 1: 3'
    """
    found = _CONVERSION.fullmatch(error)
    if found is None or int(found[1]) >= len(names):
        return error
    return f"column {names[int(found[1])]!r}: {found[3]} for {found[2]}"


def _shown(field: str) -> str:
    """A field as an error of Arrow's shows it."""
    return field.encode(errors="surrogateescape").decode(errors="replace") if _NOT_UTF8.search(field) else field


def record_line(lines: Iterable[str], record: int, skip: int = 0, **dialect: Any) -> int | None:
    r"""The number of the line at which a record begins, counted from 1; empty lines are no records.

    >>> record_line(["a,b\n", '1,"two\n', 'lines"\n', "\n", "3,4\n"], 1, skip=1)
    5
    """
    found = next(islice(_records(lines, skip, dialect), record, None), None)
    return None if found is None else found[0]


def _records(lines: Iterable[str], skip: int, dialect: dict[str, Any]) -> Iterator[tuple[int, list[str]]]:
    """The records behind the first `skip` ones, each with the number of its first line, up to one that is no CSV."""
    records = csv.reader(lines, **dialect)
    begins = 1
    with suppress(csv.Error):
        for number, fields in enumerate(records):
            line, begins = begins, records.line_num + 1
            if number >= skip and fields:
                yield line, fields


def first_invalid(column: pa.ChunkedArray[Any]) -> int | None:
    """The first row with a decimal of more digits than the column's type has, if there is one: Arrow reads them from CSV."""

    def is_valid(begin: int, end: int) -> bool:
        try:
            column.slice(begin, end - begin).combine_chunks().validate(full=True)
        except pa.ArrowInvalid:
            return False
        return True

    begin, end = 0, len(column)
    if is_valid(begin, end):
        return None
    while end - begin > 1:
        middle = (begin + end) // 2
        if is_valid(begin, middle):
            begin = middle
        else:
            end = middle
    return begin
