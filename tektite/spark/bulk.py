"""Bulk: loads history by Spark's tasks, into batch files. No row passes the driver.

One job with one shuffle:

1. A task of the first stage encodes rows and addresses them to their shards, and new texts to the shards of their ids. After
   its last row it tells every shard how many it sent.
2. A task of the second stage is one shard. It checks that it got what was sent, sorts, and writes one file. The file's name
   is derived from its content, so a task that runs twice leaves one file.
3. The driver gets exactly one report from each task and commits all files, or none.

No key makes one task do most of the work:

* Inserts into a bag beyond twice a shard's share go to helper tasks in turn, which write further batches of that shard.
* Where rows must meet (those with one key of an upsert, equal ones of a set or with diffs) and the shard depends on fewer
  columns, several tasks share each shard by hash.
* If a sender has many rows of one key at once, it sends only the last ones.

What rows of a set or an upsert change depends on what the input holds, and so do checks of unique keys and removals. A task
of the second stage maps the stored batches of its shard and looks there: a row that exists adds nothing, a new value retracts
the old one.

The second stage begins when the whole first stage has ended. Wrong values, such as a NULL in a key, are found by the first
stage; then nothing is written. What shows only when rows meet is found by the second stage, while other tasks may write; the
driver deletes the files of a load that fails.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame

from tektite.dataflow.arrange import consolidate
from tektite.engine import pending_updates
from tektite.engine.constraints import UNKNOWN, Rules, with_texts
from tektite.errors import FaultError, TektiteError
from tektite.kernels.layout.input_heads import arriving_operations
from tektite.kernels.seek.route import route
from tektite.runtime.open_files import opened
from tektite.runtime.wire import pack_rows, unpack_rows
from tektite.spark.failures import error_from_text, error_text
from tektite.spark.feed import Feed, pack_texts, unpack_texts
from tektite.spark.last_rows import key_ends, moments, settled
from tektite.storage.batchfile import FOLDER, BatchSection, FileInfo, TextSection, write_file
from tektite.storage.manifest import ManifestState
from tektite.storage.store import Store
from tektite.trace.batch import Batch
from tektite.trace.chunk import Chunk, column_spec
from tektite.trace.records import Version
from tektite.values.dictionary import Dictionary, text_ids
from tektite.values.text_space import START
from tektite.values.words import NULL, Words

MESSAGE: Final = (
    "dest int, source int, number int, shard int, rows long, words binary, texts binary, "
    "sent long, latest long, error string"
)
REPORT: Final = "dest int, rows long, latest long, file string, error string"
_MESSAGE_TYPES: Final = [pa.int32()] * 4 + [pa.int64()] + [pa.binary()] * 2 + [pa.int64()] * 2 + [pa.string()]
_REPORT_TYPES: Final = [pa.int32(), pa.int64(), pa.int64(), pa.string(), pa.string()]

ROWS_AT_ONCE = 1 << 16
"""Rows that are addressed together: enough that the part for one shard is worth a row of the shuffle, and no more than
Spark passes at once, so that they need not be concatenated first.
"""

RUNS: Final = 3
"""How often a job is run if Spark gives it up."""

WAYS: Final = 8
"""The most tasks that share the rows of a shard. If one shard gets everything, a task then does an eighth of the work, and
the shard has at most eight batches to merge.
"""

Task = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


@dataclass(frozen=True)
class StoredBatch:
    """The place of a stored batch: a file by its name and length, and the section in it."""

    file: str
    length: int
    section: int


HeldBatches = tuple[tuple[StoredBatch, ...], ...]
"""The stored batches of every shard."""


def held_by(state: ManifestState, arrangement: str) -> HeldBatches:
    """The places of an arrangement's batches at a version of the storage."""
    batches = state.batches()
    return tuple(
        tuple(
            StoredBatch(live.file, state.files[live.file].length, live.index)
            for live in batches.get((arrangement, shard), [])
        )
        for shard in range(state.shards)
    )


@dataclass(frozen=True)
class Target:
    """The destination of rows: the arrangement, its column order and sharding, the epoch of the rows, the first epoch that it
    has not closed, and its stored rows where they matter.
    """

    store: Store
    arrangement: str
    columns: tuple[int, ...]
    sharded_by: int
    shards: int
    low: int
    epoch: int
    held: HeldBatches = ()
    rules: Rules | None = None
    """The constraints of the input's declaration."""
    load: str = field(default_factory=lambda: uuid.uuid4().hex[:12])
    """Identifies the files of one load, so that those of a failed load can be deleted."""
    fair: int = 1 << 16
    """Rows that a sender sends to a shard before it checks whether that is more than its share."""

    @property
    def unique(self) -> int:
        """The columns of a unique key, if there is one."""
        return 0 if self.rules is None else self.rules.unique

    def spreads(self, feed: Feed) -> bool:
        """Whether rows may go to any task, because their effect does not depend on other rows."""
        return feed.only_adds and not (self.rules is not None and self.rules.repeats)

    def tasks(self, feed: Feed) -> int:
        """The number of tasks that receive rows: one for each shard, and as many helpers where rows may spread."""
        return 2 * self.shards if self.spreads(feed) and self.shards > 1 else self.shards

    def keys(self, feed: Feed) -> int:
        """Of rows that agree in so many columns, the last one counts. In a bag they add up."""
        return len(feed.keys) if feed.semantics == "upsert" else len(self.columns)

    def routed_columns(self, feed: Feed) -> int:
        """Rows that agree in so many columns must go to the same task. As one batch they show whether a row that replaces
        another under a unique key leaves one.
        """
        return min(self.keys(feed), self.unique or len(self.columns))

    def version(self, shard: int) -> Version:
        """The stored rows of a shard, mapped into this process."""
        places = self.held[shard] if self.held else ()
        return Version(tuple(opened(self.store, FOLDER, at.file, at.length).batch(at.section) for at in places))


@dataclass(frozen=True)
class Loaded:
    """The result of a bulk load: files that no manifest names yet, in the order of tasks."""

    files: tuple[FileInfo, ...]
    rows: int
    latest: int
    epoch: int
    load: str
    writes: int | None = None
    """The input's write count when tasks read its stored rows, if they did."""


def write(feed: Feed, frame: DataFrame, target: Target) -> Loaded:
    """Run the job. A wrong row is an error: nothing counts, and no file stays."""
    feed, frame = feed.needed(frame)
    sent = frame.mapInArrow(sender(feed, target), MESSAGE)
    count = target.tasks(feed)
    try:
        reports = given_up_repeated(
            lambda: sent.repartitionById(count, "dest").mapInArrow(receiver(feed, target), REPORT).collect()
        )
        reports.sort(key=lambda report: report.dest)
        infos = [FileInfo.from_json(json.loads(report.file)) for report in reports if report.file]
        refused = [report.error for report in reports if report.error is not None]
        if refused:
            raise error_from_text(with_texts_of(refused, infos, target.store), f"table {feed.name!r}")
        tasks = [report.dest for report in reports]
        if reports and tasks != list(range(count)):
            raise FaultError(f"table {feed.name!r}: tasks {tasks} reported, instead of each of {count} once")
    except BaseException:
        discard(target.store, target.load)
        raise
    latest = max((report.latest for report in reports), default=NULL)
    return Loaded(tuple(infos), sum(report.rows for report in reports), latest, target.epoch, target.load)


def with_texts_of(refused: list[str], infos: list[FileInfo], store: Store) -> str:
    """A task's report with the texts that other tasks have: every text of the load went to one of them."""
    dictionary = Dictionary()
    if any(UNKNOWN.search(message) for message in refused):
        for info in infos:
            for place, section in enumerate(info.sections):
                if section.kind == "texts":
                    dictionary.add(opened(store, FOLDER, info.name, info.length).texts(place))
        refused = [with_texts(message, dictionary) for message in refused]
    known = [message for message in refused if not UNKNOWN.search(message)]
    return known[0] if known else UNKNOWN.sub("(some text)", refused[0])


def discard(store: Store | None, load: str) -> None:
    """Delete the files of a load that does not count. Files of tasks that still run are left to `vacuum`."""
    if store is not None:
        store.delete([f"{FOLDER}/{name}" for name in store.sizes(FOLDER) if f"-load-{load}-" in name])


def given_up_repeated(job: Callable[[], list[Any]]) -> list[Any]:
    """The reports of a job's tasks. Spark gives a job up if an executor or shuffle files are lost after its last stage has
    reported in part and rows have no fixed order. The job is then run again, which leaves the same files.
    """
    for _ in range(RUNS - 1):
        try:
            return job()
        except Exception as error:
            if "indeterminate output" not in str(error):
                raise
    return job()


def sender(feed: Feed, target: Target) -> Task:
    """The task of the first stage."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        source = context.partitionId() if context is not None else 0
        dictionary, mark = Dictionary(), START
        tasks = target.tasks(feed)
        sent, taken = [0] * tasks, [0] * target.shards
        number, place, latest = 0, 0, NULL
        waiting: list[Words] = []

        def address() -> Iterator[pa.RecordBatch]:
            nonlocal number, mark
            words = waiting[0] if len(waiting) == 1 else np.concatenate(waiting, axis=1)
            waiting.clear()
            texts, mark = dictionary.since(mark)
            pieces, packed = by_shard(words, target), texts_by_shard(texts, target.shards)
            total = sum(taken) + words.shape[1]
            for shard, (piece, some) in enumerate(zip(pieces, packed, strict=True)):
                taken[shard] += piece.n
                if target.spreads(feed):
                    shares = in_turn(piece, shard, sent, total, target, source + number)
                else:
                    many = target.shards > 1 and 2 * target.shards * piece.n > 3 * words.shape[1]
                    # without an order, all rows of a key may have to be counted
                    many &= feed.order is not None or feed.operation is None
                    shares = by_hash(latest_of(feed, target, piece) if many else piece, shard, feed, target)
                for dest, share in shares:
                    if share.n or some:
                        sent[dest] += share.n
                        yield message(dest, source, number, shard, share.n, pack_rows(share), some)
                        some = b""
            number += 1

        try:
            for batch in batches:
                words, last = feed.encode(batch, dictionary)
                place += 1
                latest = max(latest, last)
                waiting.append(words)
                if sum(words.shape[1] for words in waiting) >= ROWS_AT_ONCE:
                    yield from address()
            if waiting:
                yield from address()
        except TektiteError as error:
            wrong = error_text(error, f" (partition {source}, batch {place})")
            for dest in range(tasks):  # so that no task writes anything
                yield message(dest, source, number, error=wrong)
        for dest in range(tasks):
            rows = taken[dest] if dest < target.shards else 0
            yield message(dest, source, number, rows=rows, sent=sent[dest], latest=latest)

    return run


def by_shard(words: Words, target: Target) -> list[Chunk]:
    """Encoded rows (columns, diff, perhaps order) by shard, with columns in the order of the trace."""
    beside = range(len(target.columns), len(words))
    chunk = Chunk.of_array(words).select(column_spec([*target.columns, *beside]))
    buf, head, offsets = route(chunk.at, np.arange(target.sharded_by), target.shards)
    routed = Chunk(head, (words, buf))
    return [routed.slice(start, stop) for start, stop in pairwise(offsets.tolist())]


def in_turn(rows: Chunk, shard: int, sent: list[int], total: int, target: Target, turn: int) -> list[tuple[int, Chunk]]:
    """Inserts for their shard's task. Those beyond twice its share go to helper tasks, in parts."""
    helpers = range(target.shards, len(sent))
    room = max(target.fair, 2 * total // target.shards) - sent[shard] if helpers else rows.n
    here = min(max(room, 0), rows.n)
    bounds = [here + (rows.n - here) * part // target.shards for part in range(target.shards + 1)]
    return [(shard, rows.slice(0, here))] + [
        (helpers[(turn + place) % len(helpers)], rows.slice(start, stop))
        for place, (start, stop) in enumerate(pairwise(bounds))
        if stop > start
    ]


def by_hash(rows: Chunk, shard: int, feed: Feed, target: Target) -> list[tuple[int, Chunk]]:
    """Rows of a shard for the tasks that share it. Rows that must meet go to the same task."""
    columns, ways = target.routed_columns(feed), min(target.shards, WAYS)
    if target.sharded_by >= columns or ways == 1:
        return [(shard, rows)]
    buf, head, offsets = route(rows.at, np.arange(columns), ways)
    routed = Chunk(head, (rows.memory, buf))
    parts = [routed.slice(start, stop) for start, stop in pairwise(offsets.tolist())]
    return [((shard + way) % target.shards, part) for way, part in enumerate(parts)]


def latest_of(feed: Feed, target: Target, rows: Chunk) -> Chunk:
    """The rows without those that a later row with the same key replaces. In a bag, all rows."""
    if feed.semantics == "bag":
        return rows
    words = rows.to_array()
    width, keys = len(target.columns), words[: target.keys(feed)]
    # Without an order all rows are needed, to see whether they contradict each other.
    when = moments(feed, words) if feed.order is not None else np.zeros(rows.n, np.int64)
    order = np.lexsort([*words[: width + 1], when, *keys])
    ends = key_ends(keys[:, order])
    last = np.repeat(when[order][ends], np.diff(ends, prepend=-1))
    ordered = words[:, order]
    keep = when[order] == last
    keep[1:] &= ~(keep[:-1] & (ordered[:, 1:] == ordered[:, :-1]).all(axis=0))  # of equal rows one is enough
    return Chunk.of_array(np.ascontiguousarray(ordered[:, keep]))


def texts_by_shard(texts: pa.ChunkedArray[Any], shards: int) -> list[bytes]:
    """Packed texts by the shard of their ids: equal texts go to the same shard."""
    if shards == 1 or not len(texts):
        return [pack_texts(texts)] + [b""] * (shards - 1)
    owner = text_ids(texts) % shards
    return [pack_texts(texts.filter(pa.array(owner == shard))) for shard in range(shards)]


def receiver(feed: Feed, target: Target) -> Task:
    """The task of the second stage."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        dest = context.partitionId() if context is not None else 0
        rows = [row for batch in batches for row in batch.to_pylist()]
        if not rows:
            return
        try:
            yield receive(feed, target, dest, rows)
        except TektiteError as error:
            yield report(dest, 0, NULL, None, error_text(error))

    return run


def receive(feed: Feed, target: Target, dest: int, messages: list[dict[str, Any]]) -> pa.RecordBatch:
    """Write everything that was sent to a task to a file; the task's report."""
    messages.sort(key=lambda row: (row["source"], row["number"], row["sent"] is not None, row["shard"]))
    parts = arrived(dest, messages)
    latest = max((row["latest"] for row in messages if row["latest"] is not None), default=NULL)
    dictionary = Dictionary()
    for row in parts:
        if row["texts"]:
            dictionary.add(unpack_texts(row.pop("texts")))
    width = len(target.columns)
    frontiers = ((target.low,),), ((target.epoch + 1,),), ((target.low,),)
    sections: list[BatchSection | TextSection] = []
    for shard in sorted({row["shard"] for row in parts}):
        chunks = [unpack_rows(row.pop("words")) for row in parts if row["shard"] == shard]
        rows = sorted_rows(feed, target, shard, chunks, dictionary)
        if target.rules is not None:
            target.rules.check_batch(rows, target.version(shard).table, dictionary)
        if rows.n:
            batch = Batch(rows.head, rows.memory, *frontiers)
            sections.append(BatchSection(target.arrangement, shard, (width, 1, 1), batch))
    texts = dictionary.since()[0]
    if len(texts):
        sections.append(TextSection(texts))
    info = write_file(target.store, target.epoch, f"load-{target.load}", dest, sections) if sections else None
    taken = sum(row["rows"] for row in messages if row["sent"] is not None)
    return report(dest, taken, latest, None if info is None else json.dumps(info.to_json()), None)


def arrived(dest: int, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """All parts that were sent to a task, or the error of a sender."""
    failed = next((row["error"] for row in messages if row["error"] is not None), None)
    if failed is not None:
        raise error_from_text(failed)
    promised = sum(row["sent"] for row in messages if row["sent"] is not None)
    parts = [row for row in messages if row["sent"] is None]
    found = sum(row["rows"] for row in parts)
    if found != promised:
        raise FaultError(f"task {dest} got {found} rows of {promised} that were sent")
    return parts


def sorted_rows(feed: Feed, target: Target, shard: int, chunks: list[Chunk], dictionary: Dictionary) -> Chunk:
    """The changes of the rows for a shard, as a batch: all rows of a bag, otherwise the differences from the stored rows."""
    width = len(target.columns)
    if feed.semantics != "bag":
        words = np.concatenate([chunk.to_array() for chunk in chunks], axis=1)
        chunks = [resolved(feed, target, shard, words, dictionary)]
    else:
        spec = column_spec([*range(width), -1, width], (target.epoch,))
        chunks = [chunk.select(spec) for chunk in chunks]
    return consolidate(chunks, (width, 1, 1), target.epoch)


def resolved(feed: Feed, target: Target, shard: int, words: Words, dictionary: Dictionary) -> Chunk:
    """The updates that bring a shard from its stored rows to the last row of each key. Key columns come first."""
    width, version = len(target.columns), target.version(shard)
    stored = [*target.columns, *range(width, len(words))]  # where each column of the words belongs in the schema
    plain = np.empty_like(words)
    plain[stored] = words

    def held(rows: Words) -> Words:
        found = np.empty_like(rows, shape=(width, 0))
        if version.batches:
            gone = operations(feed, target, rows[list(target.columns)], np.zeros(rows.shape[1], np.int64))
            (changes,) = pending_updates.net_changes([gone], target.keys(feed), width - target.keys(feed), version)
            words = changes.to_array()
            found = np.empty((width, words.shape[1]), np.int64)
            found[list(target.columns)] = words[:width]
        return found

    plain = settled(feed, plain, held, dictionary)
    when = moments(feed, plain)
    arrived = operations(feed, target, plain[stored], (plain[width] > 0).astype(np.int64), when)
    (changes,) = pending_updates.net_changes([arrived], target.keys(feed), width - target.keys(feed), version)
    return changes


def operations(feed: Feed, target: Target, words: Words, puts: Words, when: Words | None = None) -> Chunk:
    """Rows, with columns as they are stored, as operations that put or remove, in an order."""
    kept, at = np.ascontiguousarray(words), np.zeros(words.shape[1], np.int64) if when is None else when
    keys, columns = target.keys(feed), np.arange(len(target.columns))
    head = arriving_operations(kept, columns[:keys], columns[keys:], columns[:0], at, puts, target.epoch, 1)
    return Chunk(head, (kept, at, puts))


def message(
    dest: int,
    source: int,
    number: int,
    shard: int = -1,
    rows: int = 0,
    words: bytes | None = None,
    texts: bytes | None = None,
    sent: int | None = None,
    latest: int | None = None,
    error: str | None = None,
) -> pa.RecordBatch:
    """One row of the shuffle: rows and texts for a shard, or a sender's final message."""
    values = (dest, source, number, shard, rows, words, texts, sent, latest, error)
    return _row(values, MESSAGE, _MESSAGE_TYPES)


def report(dest: int, rows: int, latest: int, file: str | None, error: str | None) -> pa.RecordBatch:
    """A task's report to the driver."""
    return _row((dest, rows, latest, file, error), REPORT, _REPORT_TYPES)


def _row(values: tuple[Any, ...], schema: str, types: list[Any]) -> pa.RecordBatch:
    names = [column.split()[0] for column in schema.split(",")]
    return pa.record_batch([pa.array([value], type) for value, type in zip(values, types, strict=True)], names)
