"""Wire: rows as bytes, to send them between processes. Columns are as narrow as their words allow, and used in place on arrival.

The format is a sequence of little-endian words:

* the numbers of rows and columns;
* for each column its width in bytes and its offset; or 0 and a word, if all its words are that one;
* the columns, each at a multiple of eight bytes;
* eight bytes of padding, because kernels read eight bytes at a time.

The bytes depend only on the rows and their order.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tektite.storage.rows import WIDTHS, Column, columns_of, head_over
from tektite.trace.chunk import Chunk

ALIGNMENT = 8

LARGEST = 1 << 26
"""The approximate size of one piece in bytes: well below the 2 GiB that a binary column of an Arrow batch can hold."""


def pack_rows(chunk: Chunk) -> bytes:
    """Rows as bytes.

    >>> rows = np.array([[1, 2, 3], [7, 7, 7]])
    >>> len(pack_rows(Chunk.of_array(rows))), unpack_rows(pack_rows(Chunk.of_array(rows))).to_array().tolist()
    (64, [[1, 2, 3], [7, 7, 7]])
    """
    columns = columns_of(chunk.head, chunk.memory)
    head = np.empty(2 + 2 * len(columns), "<i8")
    head[:2] = chunk.n, len(columns)
    parts: list[bytes | memoryview] = [head.data]
    length = head.nbytes
    for at, column in enumerate(columns):
        if isinstance(column, int):
            head[2 + 2 * at : 4 + 2 * at] = 0, column
            continue
        head[2 + 2 * at : 4 + 2 * at] = column.itemsize, length
        gap = -column.nbytes % ALIGNMENT
        parts += [column.data, bytes(gap)]
        length += column.nbytes + gap
    return b"".join([*parts, bytes(ALIGNMENT)])


def pack_pieces(chunk: Chunk) -> Iterator[bytes]:
    """Rows as bytes, in pieces of about `LARGEST` bytes."""
    width = sum(int(step) or 1 for step in chunk.head[4::3])
    most = max(LARGEST // width, 1)
    if chunk.n <= most:
        yield pack_rows(chunk)
        return
    for start in range(0, chunk.n, most):
        yield pack_rows(chunk.slice(start, min(start + most, chunk.n)))


def unpack_rows(data: bytes) -> Chunk:
    """The rows that `pack_rows` packed, over the same bytes."""
    rows, count = np.frombuffer(data, "<i8", 2).tolist()
    columns: list[Column] = []
    for width, at in np.frombuffer(data, "<i8", 2 * count, 16).reshape(count, 2).tolist():
        columns.append(np.frombuffer(data, WIDTHS[width], rows, at) if width else at)
    head, memory = head_over(rows, columns)
    return Chunk(head, (memory, data))
