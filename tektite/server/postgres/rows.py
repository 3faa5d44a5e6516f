"""Results as messages: the description of their columns, and their rows."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

import pyarrow as pa

from tektite.server.postgres.messages import row_description
from tektite.server.postgres.types import SIZES, TEXT, modifier_of, oid_of, writer
from tektite.sql.catalog.pg_types import told_type
from tektite.values.types import Type
from tektite.values.words import type_from_arrow

Columns = Sequence[tuple[str, Type]]
NULL = struct.pack("!i", -1)
_LENGTH = struct.Struct("!i")
_HEAD = struct.Struct("!cih")
PIECE_ROWS = 4096
"""Rows that are written at a time: enough for the loop, few enough to keep memory bounded."""


def columns_of(table: pa.Table) -> list[tuple[str, Type]]:
    """The names and types of a result's columns."""
    found = []
    for field in table.schema:
        declared = (field.metadata or {}).get(b"pg_type", b"").decode()
        found.append((field.name, told_type(type_from_arrow(field.type), declared)))
    return found


def formats_of(asked: Sequence[int], columns: int) -> list[int]:
    """The format of each column, of the formats that a client asked for: none, one for all, or one for each."""
    if not asked:
        return [TEXT] * columns
    return list(asked) * columns if len(asked) == 1 else list(asked)


def described(columns: Columns, formats: Sequence[int]) -> bytes:
    """The description of a result's columns."""
    return row_description(
        (name, oid_of(type), SIZES[oid_of(type)], modifier_of(type), form)
        for (name, type), form in zip(columns, formats_of(formats, len(columns)), strict=True)
    )


def data_rows(table: pa.Table, types: Sequence[Type], formats: Sequence[int]) -> Iterator[bytes]:
    """The rows of a result as messages, in pieces."""
    writers = [writer(type, form) for type, form in zip(types, formats_of(formats, len(types)), strict=True)]
    if not writers:
        yield _HEAD.pack(b"D", 6, 0) * table.num_rows
        return
    for start in range(0, table.num_rows, PIECE_ROWS):
        piece = table.slice(start, PIECE_ROWS)
        cells = [
            [NULL if value is None else sized(write(value)) for value in column.to_pylist()]
            for column, write in zip(piece.columns, writers, strict=True)
        ]
        yield b"".join([data_row(row) for row in zip(*cells, strict=True)])


def sized(data: bytes) -> bytes:
    """A value behind its length."""
    return _LENGTH.pack(len(data)) + data


def data_row(cells: Sequence[bytes]) -> bytes:
    """One row of values that stand behind their lengths."""
    body = b"".join(cells)
    return _HEAD.pack(b"D", len(body) + 6, len(cells)) + body
