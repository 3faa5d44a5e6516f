"""COPY ... TO STDOUT: tables, queries and subscriptions as text, CSV or binary, one row a message."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tektite.server.postgres.copy_options import CopyOptions
from tektite.server.postgres.messages import message
from tektite.server.postgres.rows import PIECE_ROWS, copy_texts, write_integers, written_cells
from tektite.server.postgres.text_columns import lengths_and_bytes, text_column
from tektite.server.postgres.types import BINARY
from tektite.values.types import Type

SIGNATURE = b"PGCOPY\n\xff\r\n\0"
BINARY_HEAD = SIGNATURE + struct.pack("!ii", 0, 0)
BINARY_END = struct.pack("!h", -1)


def copy_head(names: Sequence[str], options: CopyOptions) -> bytes:
    """Bytes before the first row."""
    if options.form == "binary" or not options.header:  # the head of the binary format is sent with the first row
        return b""
    titles = pa.table({str(at): pa.array([name], pa.large_string()) for at, name in enumerate(names)})
    return row_messages(joined(list(titles.columns), options))


def copy_end(options: CopyOptions, is_first: bool) -> bytes:
    """Bytes after the last row; there may have been none."""
    if options.form != "binary":
        return b""
    return message(b"d", BINARY_HEAD + BINARY_END if is_first else BINARY_END)


def copy_rows(table: pa.Table, types: Sequence[Type], options: CopyOptions, is_first: bool) -> Iterator[bytes]:
    """The rows of a table as messages, in pieces."""
    for start in range(0, table.num_rows, PIECE_ROWS):
        piece = table.slice(start, PIECE_ROWS)
        if options.form == "binary":
            head = struct.pack("!h", len(types))
            cells = written_cells(piece, types, [BINARY] * len(types))
            rows = [head + b"".join(row) for row in zip(*cells, strict=True)]
            if is_first and not start:
                rows[0] = BINARY_HEAD + rows[0]
            yield b"".join([message(b"d", row) for row in rows])
        else:
            texts = [text_column(column, type) for column, type in zip(piece.columns, types, strict=True)]
            yield row_messages(joined(texts, options))


def joined(texts: Sequence[Any], options: CopyOptions) -> Any:
    """Each row of some columns of texts as one line."""
    write = csv_values if options.form == "csv" else plain_values
    columns = [write(each, options) for each in texts]
    lines = pc.binary_join_element_wise(*columns, large(options.delimiter)) if len(columns) > 1 else columns[0]
    ended = pc.binary_join_element_wise(lines, large("\n"), large(""))
    return ended.combine_chunks() if isinstance(ended, pa.ChunkedArray) else ended


def large(text: str) -> Any:
    """A text as Arrow's functions want it beside columns of texts."""
    return pa.scalar(text, pa.large_string())


def plain_values(texts: Any, options: CopyOptions) -> Any:
    """Values as COPY's text format has them: some characters behind a backslash."""
    found = texts
    for character, written in (("\\", "\\\\"), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t")):
        found = pc.replace_substring(found, character, written)
    if options.delimiter != "\t":
        found = pc.replace_substring(found, options.delimiter, "\\" + options.delimiter)
    return pc.fill_null(found, options.null)


def csv_values(texts: Any, options: CopyOptions) -> Any:
    """Values as CSV: in quotes where they hold a special character, or look like NULL."""
    special = "[" + "".join(f"\\x{ord(c):02x}" for c in (options.delimiter, options.quote, "\n", "\r")) + "]"
    quoted = pc.replace_substring(texts, options.quote, options.escape + options.quote)
    quoted = pc.binary_join_element_wise(large(options.quote), quoted, large(options.quote), large(""))
    needs = pc.or_(pc.match_substring_regex(texts, special), pc.equal(texts, large(options.null)))
    return pc.fill_null(pc.if_else(needs, quoted, texts), options.null)


def row_messages(lines: Any) -> bytes:
    """Lines as messages, one each."""
    array = lines.cast(pa.large_string())
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    lengths, data = lengths_and_bytes(array)
    begins = np.cumsum(lengths + 5) - (lengths + 5)
    found = np.empty(int((lengths + 5).sum()), np.uint8)
    found[begins] = ord("d")
    write_integers(found, begins + 1, lengths + 4, 4)
    copy_texts(found, begins + 5, lengths, data)
    return found.tobytes()
