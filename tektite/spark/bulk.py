"""Bulk: history encoded, partitioned, sorted and written as batch files by Spark's tasks; no row of it passes the driver.

One job with one shuffle. A task of the first stage encodes rows and addresses them to their shards, new texts to the shard
that their ids fall to; behind its last row it tells every shard how many it sent. A task of the second stage is one shard: it
checks that it got what was sent, sorts, and writes one file, whose name follows from its content, so that a task that runs
twice leaves one file. The driver gets exactly one report from each task and makes the files count, or none of them.

No key makes one task do most of the work. Inserts into a bag that would give a shard more than twice its share go to as many
tasks again, in turn, which sort and write what they get as further batches of that shard. Where rows have to meet to know what
they come to (those with one key of an upsert, equal ones of a set or with diffs), but the shard goes by less than that, several
tasks share each shard by hash. Of the rows with one key that a sender has at once, it sends the last ones alone if they are many.

What the rows of a set or an upsert change depends on what the input holds, and so does whether a key that must be unique is
repeated, or a row is removed that is not there. A task of the second stage maps the stored batches of its shard and looks
there: a row that is there adds nothing, a new value retracts the old one.

No task of the second stage begins before all of the first have ended. What a value alone tells to be wrong, a NULL in a key for
one, is found by the first stage, and every task of the second is told: nobody writes anything then. What only shows when
rows meet is found by the second stage, beside which others may write: the driver deletes the files of a load that fails.
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
from tektite.spark.failures import told, untold
from tektite.spark.feed import Feed, pack_texts, unpack_texts
from tektite.spark.ordering import key_ends, moments, settled
from tektite.storage.batchfile import FOLDER, FileInfo, Rows, Texts, write_file
from tektite.storage.manifest import State
from tektite.storage.store import Store
from tektite.trace.batch import Batch
from tektite.trace.chunk import Chunk, column_spec
from tektite.trace.spine import Version
from tektite.values.dictionary import START, Dictionary, text_ids
from tektite.values.words import NULL, Words

MESSAGE: Final = (
    "dest int, source int, number int, shard int, rows long, words binary, texts binary, "
    "sent long, latest long, error string"
)
REPORT: Final = "dest int, rows long, latest long, file string, error string"
_MESSAGE_TYPES: Final = [pa.int32()] * 4 + [pa.int64()] + [pa.binary()] * 2 + [pa.int64()] * 2 + [pa.string()]
_REPORT_TYPES: Final = [pa.int32(), pa.int64(), pa.int64(), pa.string(), pa.string()]

ROWS_AT_ONCE = 1 << 16
"""Rows that are addressed together: enough that what goes to one shard is worth a row of the shuffle, and no more than Spark
hands over at once, so that they need not be put together first."""

RUNS: Final = 3
"""How often a job is run that Spark gives up."""

WAYS: Final = 8
"""Tasks that share the rows of a shard at most: one that gets everything then keeps one task busy for an eighth of the work, and
a shard has no more batches to merge than that."""

Task = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


@dataclass(frozen=True)
class Place:
    """Where a stored batch lies: a file by its name and length, and the section of it."""

    file: str
    length: int
    section: int


Held = tuple[tuple[Place, ...], ...]
"""The stored batches of every shard."""


def held_by(state: State, arrangement: str) -> Held:
    """Where an arrangement's batches lie at a version of the storage."""
    batches = state.batches()
    return tuple(
        tuple(
            Place(live.file, state.files[live.file].length, live.index)
            for live in batches.get((arrangement, shard), [])
        )
        for shard in range(state.shards)
    )


@dataclass(frozen=True)
class Target:
    """Where rows go: the arrangement, its order of columns and sharding, the epoch that they count at, the first one that it has
    not closed, and what it holds, as far as that matters for what the rows change."""

    store: Store
    arrangement: str
    columns: tuple[int, ...]
    sharded_by: int
    shards: int
    low: int
    epoch: int
    held: Held = ()
    rules: Rules | None = None
    """What the input's declaration demands of its rows."""
    load: str = field(default_factory=lambda: uuid.uuid4().hex[:12])
    """Names the files of one load, so that those of one that fails can be told from all others."""
    fair: int = 1 << 16
    """Rows that a sender sends to a shard before it asks whether that is more than its share."""

    @property
    def unique(self) -> int:
        """Columns of a key that no two rows may share, if there is one."""
        return 0 if self.rules is None else self.rules.unique

    def spreads(self, feed: Feed) -> bool:
        """Whether rows may go to any task: none has to meet another to know what it comes to."""
        return feed.only_adds and not (self.rules is not None and self.rules.repeats)

    def tasks(self, feed: Feed) -> int:
        """How many tasks receive rows: one for each shard, and as many for inserts that are too many for one."""
        return 2 * self.shards if self.spreads(feed) and self.shards > 1 else self.shards

    def keys(self, feed: Feed) -> int:
        """Of rows that agree in so many columns, the last one counts; in a bag they add up."""
        return len(feed.keys) if feed.semantics == "upsert" else len(self.columns)

    def meeting(self, feed: Feed) -> int:
        """Rows that agree in so many columns have to come to the same task: where they are one batch, it can be told
        whether a row that replaces another under a unique key leaves one."""
        return min(self.keys(feed), self.unique or len(self.columns))

    def version(self, shard: int) -> Version:
        """What a shard holds, mapped into this process."""
        places = self.held[shard] if self.held else ()
        return Version(tuple(opened(self.store, FOLDER, at.file, at.length).batch(at.section) for at in places))


@dataclass(frozen=True)
class Loaded:
    """What a bulk load has written: files that no manifest names yet, in the order of tasks."""

    files: tuple[FileInfo, ...]
    rows: int
    latest: int
    epoch: int
    load: str
    writes: int | None = None
    """How often the input had been written to when tasks looked at what it holds, if they did."""


def write(feed: Feed, frame: DataFrame, target: Target) -> Loaded:
    """Run the job. A row that is wrong is an error: nothing counts, and no file of it stays."""
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
            raise untold(with_texts_of(refused, infos, target.store), f"input {feed.name!r}")
        tasks = [report.dest for report in reports]
        if reports and tasks != list(range(count)):
            raise FaultError(f"input {feed.name!r}: tasks {tasks} reported, instead of each of {count} once")
    except BaseException:
        discard(target.store, target.load)
        raise
    latest = max((report.latest for report in reports), default=NULL)
    return Loaded(tuple(infos), sum(report.rows for report in reports), latest, target.epoch, target.load)


def with_texts_of(refused: list[str], infos: list[FileInfo], store: Store) -> str:
    """What one of the tasks has to say, with the texts that others have: every text of the load fell to one of them."""
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
    """Delete what the tasks of a load have written that counts nowhere. Whoever still writes is left to `vacuum`."""
    if store is not None:
        store.delete([f"{FOLDER}/{name}" for name in store.sizes(FOLDER) if f"-load-{load}-" in name])


def given_up_repeated(job: Callable[[], list[Any]]) -> list[Any]:
    """What a job's tasks report. Spark gives a job up, however good its tasks are, if an executor or shuffle files are lost when
    its last stage has reported in part and rows came in no certain order; it is run again then, which leaves the same files.
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
                    # without an order, all that came and went of a key may have to be counted
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
            wrong = told(error, f" (partition {source}, batch {place})")
            for dest in range(tasks):  # so that nobody writes anything
                yield message(dest, source, number, error=wrong)
        for dest in range(tasks):
            rows = taken[dest] if dest < target.shards else 0
            yield message(dest, source, number, rows=rows, sent=sent[dest], latest=latest)

    return run


def by_shard(words: Words, target: Target) -> list[Chunk]:
    """Encoded rows (columns, diff, perhaps order) by the shard they belong to, their columns in the order of the trace."""
    beside = range(len(target.columns), len(words))
    chunk = Chunk.of_array(words).select(column_spec([*target.columns, *beside]))
    buf, head, offsets = route(chunk.at, np.arange(target.sharded_by), target.shards)
    routed = Chunk(head, (words, buf))
    return [routed.slice(start, stop) for start, stop in pairwise(offsets.tolist())]


def in_turn(rows: Chunk, shard: int, sent: list[int], total: int, target: Target, turn: int) -> list[tuple[int, Chunk]]:
    """Inserts for their shard's task; those beyond twice its share of all, in parts for the tasks that help out."""
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
    """Rows of a shard for the tasks that share it: those that have to meet go to the same one."""
    meeting, ways = target.meeting(feed), min(target.shards, WAYS)
    if target.sharded_by >= meeting or ways == 1:
        return [(shard, rows)]
    buf, head, offsets = route(rows.at, np.arange(meeting), ways)
    routed = Chunk(head, (rows.keep, buf))
    parts = [routed.slice(start, stop) for start, stop in pairwise(offsets.tolist())]
    return [((shard + way) % target.shards, part) for way, part in enumerate(parts)]


def latest_of(feed: Feed, target: Target, rows: Chunk) -> Chunk:
    """The rows without those that a later one with the same key makes pointless; all rows of a bag."""
    if feed.semantics == "bag":
        return rows
    words = rows.to_array()
    width, keys = len(target.columns), words[: target.keys(feed)]
    # Without an order all rows are needed, to find out whether they contradict each other.
    when = moments(feed, words) if feed.order is not None else np.zeros(rows.n, np.int64)
    order = np.lexsort([*words[: width + 1], when, *keys])
    ends = key_ends(keys[:, order])
    last = np.repeat(when[order][ends], np.diff(ends, prepend=-1))
    ordered = words[:, order]
    keep = when[order] == last
    keep[1:] &= ~(keep[:-1] & (ordered[:, 1:] == ordered[:, :-1]).all(axis=0))  # of equal rows one is enough
    return Chunk.of_array(np.ascontiguousarray(ordered[:, keep]))


def texts_by_shard(texts: pa.ChunkedArray[Any], shards: int) -> list[bytes]:
    """Texts, packed, by the shard that their ids fall to: the same text always meets itself."""
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
            yield report(dest, 0, NULL, None, told(error))

    return run


def receive(feed: Feed, target: Target, dest: int, messages: list[dict[str, Any]]) -> pa.RecordBatch:
    """Everything that was sent to a task becomes a file; the task's report."""
    messages.sort(key=lambda row: (row["source"], row["number"], row["sent"] is not None, row["shard"]))
    parts = arrived(dest, messages)
    latest = max((row["latest"] for row in messages if row["latest"] is not None), default=NULL)
    dictionary = Dictionary()
    for row in parts:
        if row["texts"]:
            dictionary.add(unpack_texts(row.pop("texts")))
    width = len(target.columns)
    frontiers = ((target.low,),), ((target.epoch + 1,),), ((target.low,),)
    sections: list[Rows | Texts] = []
    for shard in sorted({row["shard"] for row in parts}):
        chunks = [unpack_rows(row.pop("words")) for row in parts if row["shard"] == shard]
        rows = sorted_rows(feed, target, shard, chunks, dictionary)
        if target.rules is not None:
            target.rules.check_batch(rows, target.version(shard).table, dictionary)
        if rows.n:
            batch = Batch(rows.head, rows.keep, *frontiers)
            sections.append(Rows(target.arrangement, shard, (width, 1, 1), batch))
    texts = dictionary.since()[0]
    if len(texts):
        sections.append(Texts(texts))
    info = write_file(target.store, target.epoch, f"load-{target.load}", dest, sections) if sections else None
    taken = sum(row["rows"] for row in messages if row["sent"] is not None)
    return report(dest, taken, latest, None if info is None else json.dumps(info.to_json()), None)


def arrived(dest: int, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The parts that were sent to a task, all of them, or what went wrong with a sender."""
    failed = next((row["error"] for row in messages if row["error"] is not None), None)
    if failed is not None:
        raise untold(failed)
    promised = sum(row["sent"] for row in messages if row["sent"] is not None)
    parts = [row for row in messages if row["sent"] is None]
    found = sum(row["rows"] for row in parts)
    if found != promised:
        raise FaultError(f"task {dest} got {found} rows of {promised} that were sent")
    return parts


def sorted_rows(feed: Feed, target: Target, shard: int, chunks: list[Chunk], dictionary: Dictionary) -> Chunk:
    """What the rows for a shard change, as a batch: of a bag all of them, of others what differs from what the shard holds."""
    width = len(target.columns)
    if feed.semantics != "bag":
        words = np.concatenate([chunk.to_array() for chunk in chunks], axis=1)
        chunks = [resolved(feed, target, shard, words, dictionary)]
    else:
        spec = column_spec([*range(width), -1, width], (target.epoch,))
        chunks = [chunk.select(spec) for chunk in chunks]
    return consolidate(chunks, (width, 1, 1), target.epoch)


def resolved(feed: Feed, target: Target, shard: int, words: Words, dictionary: Dictionary) -> Chunk:
    """The updates that bring a shard from what it holds to what the last row of each key says. The key's columns come first."""
    width, version = len(target.columns), target.version(shard)
    stored = [*target.columns, *range(width, len(words))]  # where each column of the words belongs in the schema
    plain = np.empty_like(words)
    plain[stored] = words

    def held(rows: Words) -> Words:
        found = np.empty_like(rows, shape=(width, 0))
        if version.batches:
            gone = operations(feed, target, rows[list(target.columns)], np.zeros(rows.shape[1], np.int64))
            words = pending_updates.net_changes(
                [gone], target.keys(feed), width - target.keys(feed), version
            ).to_array()
            found = np.empty((width, words.shape[1]), np.int64)
            found[list(target.columns)] = words[:width]
        return found

    plain = settled(feed, plain, held, dictionary)
    when = moments(feed, plain)
    return pending_updates.net_changes(
        [operations(feed, target, plain[stored], (plain[width] > 0).astype(np.int64), when)],
        target.keys(feed),
        width - target.keys(feed),
        version,
    )


def operations(feed: Feed, target: Target, words: Words, puts: Words, when: Words | None = None) -> Chunk:
    """Rows, with columns as they are stored, as operations that put or remove, each at its place in an order."""
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
    """One row of the shuffle: rows and texts for a shard, or what a sender has to say at its end."""
    values = (dest, source, number, shard, rows, words, texts, sent, latest, error)
    return _row(values, MESSAGE, _MESSAGE_TYPES)


def report(dest: int, rows: int, latest: int, file: str | None, error: str | None) -> pa.RecordBatch:
    """What a task tells the driver."""
    return _row((dest, rows, latest, file, error), REPORT, _REPORT_TYPES)


def _row(values: tuple[Any, ...], schema: str, types: list[Any]) -> pa.RecordBatch:
    names = [column.split()[0] for column in schema.split(",")]
    return pa.record_batch([pa.array([value], type) for value, type in zip(values, types, strict=True)], names)
