"""Resharding: moves stored rows to another number of shards, by Spark's tasks. No row passes the driver.

One job with one shuffle for all inputs:

1. A task of the first stage reads a part of a stored batch and addresses its rows to their new shards. After them it tells
   every receiver how many it sent.
2. A task of the second stage is one shard of one input. It checks that it got what was sent, sorts, and writes one file.
3. The driver gets exactly one report from each, and commits all files, or none.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import SparkSession

from tektite.errors import FaultError, TektiteError
from tektite.runtime.wire import pack_rows, unpack_rows
from tektite.spark.bulk import MESSAGE, REPORT, Task, arrived, given_up_repeated, message, report
from tektite.spark.failures import error_from_text, error_text, explained
from tektite.spark.session import described
from tektite.storage.batchfile import FileInfo
from tektite.storage.files import Files
from tektite.storage.manifest import Manifest
from tektite.storage.partition import Move, Moving
from tektite.storage.store import Store
from tektite.trace.chunk import Chunk
from tektite.values.words import NULL

ROWS_AT_ONCE: Final = 1 << 20
"""Rows that one task of the first stage moves: few enough that a large batch occupies many tasks."""

PART: Final = "input int, file string, section int, start long, stop long"


def moved_by(spark: SparkSession) -> Move:
    """A function that moves rows by Spark's tasks."""

    def move(manifest: Manifest, files: Files, moving: list[Moving], shards: int) -> list[FileInfo]:
        parts = list(parts_of(manifest, moving))
        if not parts:
            return []
        frame = spark.createDataFrame(parts, PART).repartition(len(parts))
        receivers = len(moving) * shards
        what = f"tektite: epoch {manifest.state.epoch}, from {manifest.state.shards} to {shards} shards"
        with (
            described(spark, "tektite shards", what, "tektite loads"),
            explained(f"storage {manifest.store.url} keeps its {manifest.state.shards} shards"),
        ):
            sent = frame.mapInArrow(sender(manifest.store, moving, shards), MESSAGE)
            received = sent.repartitionById(receivers, "dest")
            reports = given_up_repeated(
                lambda: received.mapInArrow(receiver(manifest.store, moving, shards), REPORT).collect()
            )
        for found in reports:
            if found.error is not None:
                raise error_from_text(
                    found.error, f"storage {manifest.store.url} keeps its {manifest.state.shards} shards"
                )
        tasks = sorted(found.dest for found in reports)
        if tasks != list(range(receivers)):
            raise FaultError(f"tasks {tasks} reported, instead of each of {receivers} once")
        ordered = sorted(reports, key=lambda found: found.dest)
        return [FileInfo.from_json(json.loads(found.file)) for found in ordered if found.file]

    return move


def parts_of(manifest: Manifest, moving: list[Moving]) -> Iterator[tuple[int, str, int, int, int]]:
    """The work in parts for tasks: input, file as JSON, section, rows from and to."""
    for number, one in enumerate(moving):
        for live in one.lives:
            info = json.dumps(manifest.state.files[live.file].to_json())
            for start in range(0, live.section.rows, ROWS_AT_ONCE):
                yield number, info, live.index, start, min(start + ROWS_AT_ONCE, live.section.rows)


def sender(store: Store, moving: list[Moving], shards: int) -> Task:
    """The task of the first stage."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        source = context.partitionId() if context is not None else 0
        sent = [0] * (len(moving) * shards)
        number = 0
        files = Files(store)
        try:
            for part in (row for batch in batches for row in batch.to_pylist()):
                batch = files.open(FileInfo.from_json(json.loads(part["file"]))).batch(part["section"])
                rows = Chunk(batch.head, batch.memory).slice(part["start"], part["stop"])
                for shard, piece in moving[part["input"]].pieces(rows, shards):
                    dest = part["input"] * shards + shard
                    sent[dest] += piece.n
                    yield message(dest, source, number, shard, piece.n, pack_rows(piece))
                    number += 1
        except TektiteError as error:
            for dest in range(len(sent)):  # so that no task writes anything
                yield message(dest, source, number, error=error_text(error))
        for dest, rows_sent in enumerate(sent):
            yield message(dest, source, number, sent=rows_sent)

    return run


def receiver(store: Store, moving: list[Moving], shards: int) -> Task:
    """The task of the second stage."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        dest = context.partitionId() if context is not None else 0
        try:
            yield receive(store, moving, shards, dest, [row for batch in batches for row in batch.to_pylist()])
        except TektiteError as error:
            yield report(dest, 0, NULL, None, error_text(error))

    return run


def receive(
    store: Store, moving: list[Moving], shards: int, dest: int, messages: list[dict[str, Any]]
) -> pa.RecordBatch:
    """Write what was sent to one shard of an input to a file; the task's report."""
    parts = arrived(dest, messages)
    chunks = [unpack_rows(row.pop("words")) for row in parts]
    info = moving[dest // shards].write(store, dest % shards, chunks) if chunks else None
    return report(
        dest, sum(row["rows"] for row in parts), NULL, None if info is None else json.dumps(info.to_json()), None
    )
