"""Results as messages: the description of their columns, and their rows.

A small result is written value by value. A large one in text is put together column by column: the texts of each column lie
behind each other, and are copied to their places in the messages of all rows at once.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from tektite.server.postgres.messages import row_description
from tektite.server.postgres.text_columns import lengths_and_bytes, text_column
from tektite.server.postgres.types import TEXT, catalog_type, modifier_of, oid_of, size_of, sized, writer
from tektite.values.python_values import python_list
from tektite.values.types import Type
from tektite.values.words import type_of_field

RowColumns = Sequence[tuple[str, Type]]
NULL = struct.pack("!i", -1)
_HEAD = struct.Struct("!cih")
PIECE_ROWS = 8192
"""Rows that are written at a time: enough for the loop, few enough to keep memory bounded."""
FEW = 64
"""Rows up to which writing value by value is faster."""


def columns_of(table: pa.Table) -> list[tuple[str, Type]]:
    """The names and types of a result's columns."""
    found = []
    for field in table.schema:
        declared = (field.metadata or {}).get(b"pg_type", b"").decode()
        type = type_of_field(field)
        found.append((field.name, catalog_type(type, declared) if declared else type))
    return found


def formats_of(asked: Sequence[int], columns: int) -> list[int]:
    """The format of each column, of the formats that a client asked for: none, one for all, or one for each."""
    if not asked:
        return [TEXT] * columns
    return list(asked) * columns if len(asked) == 1 else list(asked)


def described(columns: RowColumns, formats: Sequence[int]) -> bytes:
    """The description of a result's columns."""
    return row_description(
        (name, oid_of(type), size_of(type), modifier_of(type), form)
        for (name, type), form in zip(columns, formats_of(formats, len(columns)), strict=True)
    )


def data_rows(table: pa.Table, types: Sequence[Type], formats: Sequence[int]) -> Iterator[bytes]:
    """The rows of a result as messages, in pieces."""
    forms = formats_of(formats, len(types))
    if not types:
        yield _HEAD.pack(b"D", 6, 0) * table.num_rows
        return
    for start in range(0, table.num_rows, PIECE_ROWS):
        piece = table.slice(start, PIECE_ROWS)
        if piece.num_rows > FEW and not any(forms):
            yield text_rows(piece, types)
            continue
        cells = written_cells(piece, types, forms)
        yield b"".join([data_row(row) for row in zip(*cells, strict=True)])


class RowShape:
    """The form of rows on the wire: their columns, each with its format and the function that writes it."""

    def __init__(self, columns: RowColumns, formats: Sequence[int]) -> None:
        self.description = described(columns, formats)
        forms = formats_of(formats, len(columns))
        self._writers = [writer(type, form) for (_, type), form in zip(columns, forms, strict=True)]

    def rows(self, rows: Sequence[tuple[Any, ...]]) -> bytes:
        """Rows as messages."""
        writers = self._writers
        return b"".join(
            [
                data_row([NULL if v is None else sized(write(v)) for v, write in zip(row, writers, strict=True)])
                for row in rows
            ]
        )


def written_cells(table: pa.Table, types: Sequence[Type], formats: Sequence[int]) -> list[list[bytes]]:
    """The values of each column, each behind its length."""
    writers = [writer(type, form) for type, form in zip(types, formats, strict=True)]
    return [
        [NULL if value is None else sized(write(value)) for value in python_list(column)]
        for column, write in zip(table.columns, writers, strict=True)
    ]


def data_row(cells: Sequence[bytes]) -> bytes:
    """One row of values that stand behind their lengths."""
    body = b"".join(cells)
    return _HEAD.pack(b"D", len(body) + 6, len(cells)) + body


def text_rows(table: pa.Table, types: Sequence[Type]) -> bytes:
    """Many rows as messages, every value as text. A message is a type, its length, the number of values, and for each value its
    length (-1 for NULL) and its bytes.
    """
    texts = [text_column(column, type) for column, type in zip(table.columns, types, strict=True)]
    parts = [lengths_and_bytes(each) for each in texts]
    lengths = np.array([length for length, _ in parts])
    sizes = 7 + 4 * len(types) + lengths.sum(axis=0)
    begins = np.cumsum(sizes) - sizes
    found = np.empty(int(sizes.sum()), np.uint8)
    found[begins] = ord("D")
    write_integers(found, begins + 1, sizes - 1, 4)
    write_integers(found, begins + 5, np.full(len(sizes), len(types)), 2)
    at = begins + 7
    for each, (length, data) in zip(texts, parts, strict=True):
        is_null = each.is_null().to_numpy(zero_copy_only=False)
        write_integers(found, at, np.where(is_null, -1, length), 4)
        copy_texts(found, at + 4, length, data)
        at = at + 4 + length
    return found.tobytes()


def write_integers(into: Any, at: Any, values: Any, size: int) -> None:
    """Write numbers, the highest byte first, each at its place."""
    for byte in range(size):
        into[at + byte] = (values >> (8 * (size - 1 - byte))) & 0xFF


def copy_texts(into: Any, at: Any, lengths: Any, data: Any) -> None:
    """Copy texts that lie behind each other, each to its place."""
    moved = at - (np.cumsum(lengths) - lengths)
    into[np.repeat(moved, lengths) + np.arange(len(data))] = data
