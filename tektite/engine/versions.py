"""The rows of a trace as of one epoch: all of them, those with one leading value, or the first few.

Every function returns data columns in the order of the trace, the epoch, and multiplicities; rows that cancel out are left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa

from tektite.dataflow.arrange import consolidate
from tektite.dataflow.join import PIECE
from tektite.errors import IncorrectError
from tektite.kernels.operators.join import JOIN_STATE, join
from tektite.kernels.seek.route import split_epoch
from tektite.trace.addresses import addresses
from tektite.trace.chunk import Chunk
from tektite.trace.trace import Trace
from tektite.values.words import Words

if TYPE_CHECKING:
    from tektite.engine.engine_core import EngineCore
    from tektite.values.schema import Schema


class Decodable(Protocol):
    """An object whose rows can be decoded."""

    @property
    def engine(self) -> EngineCore:
        """Has the dictionary of texts."""

    @property
    def schema(self) -> Schema:
        """Names and types of the columns."""


def chunks_before(trace: Trace, shard: int, epoch: int) -> list[Chunk]:
    """A shard's updates before an epoch, each batch sorted."""
    chunks = []
    for batch in trace.version(shard).batches:
        if not batch.n:
            continue
        if batch.upper[0][0] <= epoch:
            chunks.append(Chunk(batch.head, batch.memory))
        else:
            buf, head, cut = split_epoch(batch.at, trace.data, epoch)
            if cut:
                chunks.append(Chunk(head, (batch.memory, buf)).slice(0, int(cut)))
    return chunks


def read_version(trace: Trace, epoch: int) -> Words:
    """The rows to which a trace of the outermost scope accumulates at `epoch`: data columns, the epoch, multiplicities."""
    width = trace.data
    parts = []
    for shard in range(trace.shards):
        chunks = chunks_before(trace, shard, epoch + 1)
        if chunks:
            parts.append(consolidate(chunks, (width, 1, 1), epoch).to_array())
    if len(parts) == 1:
        return parts[0]
    return np.concatenate(parts, axis=1) if parts else np.empty((width + 2, 0), np.int64)


def read_lead(trace: Trace, epoch: int, lead: int) -> Words:
    """The rows of `read_version` whose first column is the word `lead`."""
    width = trace.data
    wanted = Chunk.of_array(np.array([[lead], [0], [1]], np.int64))
    keys, columns = addresses([wanted]), np.arange(1, width + 1)
    chunks = []
    for shard in range(trace.shards):
        version = trace.version_of_lead(shard, lead)
        table = version.table
        is_past = any([batch.upper[0][0] > epoch + 1 for batch in version.batches])
        state = np.zeros(JOIN_STATE, np.int64)
        while len(table) and not state[0]:
            buf, head = join(keys, table, 1, 1, width, 1, 1, 1, columns, 0, PIECE, 0, state)
            found = Chunk(head, buf)
            if is_past and found.n:
                words = found.to_array()
                found = Chunk.of_array(np.ascontiguousarray(words[:, words[width] <= epoch]))
            if found.n:
                chunks.append(found)
    return consolidate(chunks, (width, 1, 1), epoch).to_array() if chunks else np.empty((width + 2, 0), np.int64)


def read_first(trace: Trace, epoch: int, rows: int) -> Words:
    """At least so many rows of `read_version`, if it has as many: those with the smallest leading columns, or all of them. Only
    the beginnings of batches are looked at.
    """
    width = trace.data
    if not width:
        return read_version(trace, epoch)
    chunks = [chunk for shard in range(trace.shards) for chunk in chunks_before(trace, shard, epoch + 1)]
    size = 4 * rows + 16
    while True:
        cut = [chunk.slice(0, size) for chunk in chunks if chunk.n > size]
        # Behind the last row of a beginning there may be more that belong to its leading value.
        bound = min([int(chunk.slice(size - 1, size).to_array()[0, 0]) for chunk in cut], default=None)
        some = [*cut, *(chunk for chunk in chunks if chunk.n <= size)]
        found = consolidate(some, (width, 1, 1), epoch).to_array() if some else np.empty((width + 2, 0), np.int64)
        if bound is None:
            return found
        found = found[:, found[0] < bound]
        if np.maximum(found[width + 1], 0).sum() >= rows:
            return np.ascontiguousarray(found)
        size *= 8


def decoded(source: Decodable, words: Words, what: str, rows: int | None = None) -> pa.Table:
    """Rows in the order of the schema as a table, each as often as it is there; the first `rows` of them, if that is said."""
    width = len(source.schema.names)
    counts = words[width + 1]
    if len(counts) and counts.min() < 0:
        at = int(counts.argmin())
        (row,) = source.schema.decode_rows(np.ascontiguousarray(words[:width, at : at + 1]), source.engine.dictionary)
        raise IncorrectError(
            f"{what}: row {row} has multiplicity {counts[at]}; a snapshot needs 0 or more. Read multiplicities() instead"
        )
    data = words[:width]
    if rows is not None:
        data, counts = data[:, :rows], counts[:rows]
    if len(counts) and counts.max() > 1:
        data = np.repeat(data, counts if rows is None else np.minimum(counts, rows), axis=1)
    if rows is not None:
        data = data[:, :rows]
    return source.schema.decode(np.ascontiguousarray(data), source.engine.dictionary)


def in_schema_order(words: Words, columns: tuple[int, ...]) -> Words:
    """Rows whose data columns are as the schema has them, of rows as a trace has them."""
    if not words.shape[1]:
        return words
    ordered = words.copy()
    ordered[list(columns)] = words[: len(columns)]
    return ordered
