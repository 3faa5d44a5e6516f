"""Makes sorted, checked batches of pending updates, one for each shard. Nothing here changes an input."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from tektite.dataflow.arrange import consolidate
from tektite.dataflow.graph import Outbox
from tektite.engine.epochs import Batches
from tektite.engine.pending_updates import net_changes
from tektite.kernels.seek.route import route, split_epoch
from tektite.trace.chunk import Chunk
from tektite.trace.records import EMPTY

if TYPE_CHECKING:
    from tektite.engine.input_core import InputCore


def split_at_epoch(
    pending: Iterable[tuple[Chunk, int]], high: int, time_at: int
) -> tuple[list[Chunk], list[tuple[Chunk, int]]]:
    """The pending updates of epochs before `high`, and the others; a row's epoch is in column `time_at`."""
    now: list[Chunk] = []
    straddling: list[tuple[Chunk, int]] = []
    for chunk, last in pending:
        if last < high:
            now.append(chunk)
        else:
            straddling.append((chunk, last))
    later: list[tuple[Chunk, int]] = []
    for chunk, last in straddling:
        buf, head, cut = split_epoch(chunk.at, time_at, high)
        parts = Chunk(head, (chunk.memory, buf))
        if cut:
            now.append(parts.slice(0, int(cut)))
        if cut < chunk.n:
            later.append((parts.slice(int(cut), chunk.n), last))
    return now, later


def batches_of(source: InputCore, chunks: list[Chunk], at: int | None = None) -> Batches:
    """The batches that some updates make of an input, as it is or as it was at a time; or what is wrong with them."""
    shards = source.trace.shards
    if not chunks:
        return [None] * shards
    if shards == 1:
        return [_batch(source, 0, chunks, at)]
    pieces = _by_shard(source, chunks)
    batches: Batches = [None] * shards

    def work(shard: int, _: Outbox) -> None:
        if pieces[shard]:
            batches[shard] = _batch(source, shard, pieces[shard], at)

    passes = source.is_stream and len(chunks) == 1
    source.engine.each_shard(work, 0 if passes else sum(chunk.n for chunk in chunks))
    return batches


def _by_shard(source: InputCore, chunks: list[Chunk]) -> list[list[Chunk]]:
    """The rows of each shard; every worker routes its share of each chunk. A stream's shares stay as they are."""
    shards = source.trace.shards
    if source.is_stream:
        return [
            [chunk.slice(chunk.n * shard // shards, chunk.n * (shard + 1) // shards) for chunk in chunks]
            for shard in range(shards)
        ]
    key = np.arange(source.sharded_by, dtype=np.int64)
    parts: list[list[list[Chunk]]] = [[[] for _ in range(shards)] for _ in range(shards)]
    memory, shape = source.engine.memory, source.update_shape
    most = sum([chunk.n for chunk in chunks])
    large = memory is not None and most > memory.piece_rows(sum(shape))
    if memory is not None and large:
        most = memory.piece_rows(sum(shape)) // shards

    def work(worker: int, _: Outbox) -> None:
        for chunk in chunks:
            first, last = chunk.n * worker // shards, chunk.n * (worker + 1) // shards
            for begin in range(first, last, most):
                share = chunk.slice(begin, min(begin + most, last))
                buf, head, offsets = route(share.at, key, shards)
                routed = Chunk(head, (chunk.memory, buf))
                for shard, (start, stop) in enumerate(pairwise(offsets.tolist())):
                    if stop > start:
                        part = routed.slice(start, stop)
                        if memory is not None and large:
                            part = memory.placed(consolidate([part], shape, 0))
                        parts[shard][worker].append(part)

    source.engine.each_shard(work, sum(chunk.n for chunk in chunks))
    return [[chunk for worker in workers for chunk in worker] for workers in parts]


def _batch(source: InputCore, shard: int, chunks: list[Chunk], at: int | None) -> Chunk:
    """The batch of one shard."""
    rules = source.rules
    if source.semantics == "bag" and not rules.checked:
        version = EMPTY
    else:
        version = source.version(shard, at)
    if source.semantics == "bag":
        if source.is_stream and len(chunks) == 1:
            # Nobody looks anything up in a stream, so its rows may pass in the order in which they came.
            return chunks[0]
    else:
        keys = len(source.operation_keys)
        chunks = net_changes(chunks, keys, len(source.columns) - keys, version, source.engine.memory)
    batch = consolidate(chunks, (len(source.columns), 1, 1), source.low, source.engine.memory)
    if rules.checked:
        rules.check_batch(batch, version.table, source.engine.dictionary)
    return batch
