"""Rows: messages between shards as rows of a shuffle.

A row is fat: all that one shard has for one buffer of a node of another one. On their way through a shuffle bytes are copied
between Python and Java half a dozen times, which is why what is large goes by file (`tektite.runtime.stage_task.LARGE`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pyarrow as pa

from tektite.runtime.messages import Message

SCHEMA: Final = (
    "dest int, due int, node int, buffer int, moment string, "
    "stage int, source int, number int, payload binary, control string, place string"
)
_TYPES: Final = [pa.int32()] * 4 + [pa.string()] + [pa.int32()] * 3 + [pa.binary(), pa.string(), pa.string()]
_NAMES: Final = [column.split()[0] for column in SCHEMA.split(",")]


def to_arrow(message: Message) -> pa.RecordBatch:
    """A message as a batch of its own: payloads are large."""
    values = message._replace(moment=" ".join(map(str, message.moment)))  # type: ignore[arg-type]
    return pa.record_batch([pa.array([value], type) for value, type in zip(values, _TYPES, strict=True)], _NAMES)


def from_arrow(batches: Iterator[pa.RecordBatch]) -> list[Message]:
    """All messages of an inbox, in the order in which they came."""
    messages = []
    for batch in batches:
        for values in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            message = Message(*values)
            messages.append(message._replace(moment=tuple(map(int, values[4].split()))))
    return messages
