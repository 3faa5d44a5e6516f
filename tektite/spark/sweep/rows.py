"""Rows: what tasks send each other, and what the last of them report.

A row of the shuffle is fat: all that one shard has for one node of another one, consolidated, its columns as narrow as their
words allow. Its bytes follow from its rows alone. What is large lies in a file of the storage, and the row says where: on their
way through the shuffle bytes are copied between Python and Java half a dozen times. Control rows say what a task did; each is
sent on, from stage to stage within its shard, until the driver has it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from tektite.dataflow.graph import Moment
from tektite.storage.rows import WIDTHS, Column, columns_of, head_over
from tektite.trace.chunk import Chunk

SCHEMA: Final = (
    "dest int, due int, node int, action int, moment string, "
    "stage int, source int, number int, payload binary, control string, place string"
)
_TYPES: Final = [pa.int32()] * 4 + [pa.string()] + [pa.int32()] * 3 + [pa.binary(), pa.string(), pa.string()]
_NAMES: Final = [column.split()[0] for column in SCHEMA.split(",")]

LARGEST: Final = 1 << 26
"""Bytes of one payload, about: well below the 2 GiB that a column of binary values can hold in a batch of Arrow's."""

_HEADER: Final = struct.Struct("<qq")
_COLUMN: Final = struct.Struct("<qq")


class Row(NamedTuple):
    """Rows for a node of shard `dest`, due in a stage, by whom they were sent; or what a task has done (`control`)."""

    dest: int
    due: int
    node: int
    action: int
    """The action of a conjunction that the rows wait for; -1 for what waits in a node's buffer, -2 for keys put off."""
    moment: Moment
    stage: int
    source: int
    number: int
    payload: bytes | None
    control: str | None
    place: str | None = None
    """Where the rows lie, if they are not in the payload: the name and length of a file of sweeps, and the section, as JSON."""

    @property
    def order(self) -> tuple[Any, ...]:
        """Arrival order varies; this one does not."""
        return (self.control is not None, self.stage, self.source, self.node, self.action, self.moment, self.number)


def to_arrow(row: Row) -> pa.RecordBatch:
    """A row as a batch of its own: payloads are large."""
    values = row._replace(moment=" ".join(map(str, row.moment)))  # type: ignore[arg-type]
    return pa.record_batch([pa.array([value], type) for value, type in zip(values, _TYPES, strict=True)], _NAMES)


def from_arrow(batches: Iterator[pa.RecordBatch]) -> list[Row]:
    """All rows of an inbox, in the order in which they came."""
    rows = []
    for batch in batches:
        for values in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            row = Row(*values)
            rows.append(row._replace(moment=tuple(map(int, values[4].split()))))
    return rows


def packed(chunk: Chunk) -> Iterator[bytes]:
    """The rows of a chunk as payloads."""
    width = sum(int(step) or 1 for step in chunk.head[4::3])
    most = max(LARGEST // width, 1)
    for start in range(0, chunk.n, most):
        part = chunk if chunk.n <= most else chunk.slice(start, min(start + most, chunk.n))
        columns = columns_of(part.head, part.keep)
        pieces = [_HEADER.pack(part.n, len(columns))]
        for column in columns:
            pieces.append(_COLUMN.pack(0, column) if isinstance(column, int) else _COLUMN.pack(column.itemsize, 0))
        for column in columns:
            if not isinstance(column, int):
                data = column.tobytes()
                pieces += [data, bytes(-len(data) % 8 + 8)]  # kernels read eight bytes at a time
        yield b"".join(pieces)


def unpacked(payload: bytes) -> Chunk:
    """The chunk that a payload holds, over its bytes."""
    rows, count = _HEADER.unpack_from(payload)
    at = _HEADER.size + count * _COLUMN.size
    columns: list[Column] = []
    for number in range(count):
        width, word = _COLUMN.unpack_from(payload, _HEADER.size + number * _COLUMN.size)
        if not width:
            columns.append(word)
            continue
        columns.append(np.frombuffer(payload, WIDTHS[width], rows, at))
        size = rows * width
        at += size + (-size % 8 + 8)
    head, keep = head_over(rows, columns)
    return Chunk(head, (keep, payload))
