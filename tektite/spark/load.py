"""Load: makes the rows of a DataFrame one epoch of a table.

Either all rows count, or none if one is wrong or a job fails. Nothing is written before the columns have been checked.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_type

from tektite.engine.core import core_of
from tektite.engine.stored_inputs import adopt
from tektite.engine.write_set import WriteSet
from tektite.errors import ConflictError, IncorrectError, UnsupportedError
from tektite.spark.bulk import RUNS, HeldBatches, Loaded, Target, discard, held_by, write
from tektite.spark.encoded import Encoded, collect
from tektite.spark.failures import explained
from tektite.spark.feed import Feed
from tektite.spark.positions import ReadPositions, commit, recorded
from tektite.spark.progress import Shown, watched
from tektite.spark.session import classic, described, is_connect
from tektite.storage.leases import Lease
from tektite.values.words import NULL, encode, type_from_arrow

if TYPE_CHECKING:
    from tektite.engine.table import Table

_TURNS: WeakKeyDictionary[Table, threading.RLock] = WeakKeyDictionary()
"""The locks of `turn`, by table."""

LEASE: Final = 7 * 86400.0
"""The most seconds for which the files that a load reads are kept if its driver dies; longer than a load takes."""


def load(
    source: Table,
    frame: DataFrame,
    diff: str | None,
    operation: str | None,
    order: str | None,
    position: str | None,
    upto: Any,
    once: str | None,
    extra: str,
    progress: bool | Shown | None,
) -> int:
    """See `tektite.Table.load`."""
    if getattr(frame, "isStreaming", False):
        raise IncorrectError(f"table {source.name!r}: the DataFrame is a stream, which has no end: use follow")
    feed = feed_of(source, frame, diff, operation, order, position, extra)
    if upto is not None and position is None:
        raise IncorrectError(f"table {source.name!r}: upto is a position: say in which column it is, position='...'")
    engine = core_of(source.engine)
    before = recorded(source)
    if (once is not None and once in before.once) or (position is not None and before.query is not None):
        return 0  # an earlier run did it; from its position on, the stream provides the rows
    if position is not None:
        if before.column not in (None, position):
            raise ConflictError(
                f"table {source.name!r} was loaded up to a position of column {before.column!r}, not of {position!r}"
            )
        last = None if upto is None else position_word(source, frame, position, upto)
        feed = replace(feed, after=before.position, upto=last)
    spark = frame.sparkSession
    group = f"tektite load {source.name} {uuid.uuid4().hex[:8]}"
    by_files = by_tasks(source)

    def run() -> Encoded | Loaded:
        with (
            described(spark, group, f"tektite: epoch {engine.epoch}, load {source.name}", "tektite loads"),
            watched(spark, group, f"load {source.name}", progress),
            explained(f"table {source.name!r}"),
        ):
            return write_files(source, feed, frame) if by_files else collect(feed, frame, engine.dictionary)

    def take(found: Encoded | Loaded) -> None:
        def noted(now: ReadPositions) -> ReadPositions:
            """The record including this load, unless somebody has loaded or followed the same rows meanwhile."""
            moved = position is not None and replace(now, once=()) != replace(before, once=())
            if moved or (once is not None and once in now.once):
                raise ConflictError(f"table {source.name!r} has been loaded or followed by another caller meanwhile")
            if once is not None:
                now = replace(now, once=(*now.once, once))
            return (
                now
                if position is None or found.latest == NULL
                else replace(now, column=position, position=found.latest)
            )

        apply(source, found, noted)

    with engine.dictionary.adding():
        return run_and_take(source, run, take)


def run_and_take(source: Table, run: Callable[[], Encoded | Loaded], take: Callable[[Encoded | Loaded], None]) -> int:
    """Run the job of a load, and close an epoch with what it found; the number of rows.

    If what it found depends on the table's rows and somebody changed these meanwhile, the job runs again, a few times. Streams
    into the table then wait until it is done: each of their micro-batches would be such a change.
    """
    core, into = core_of(source.engine), core_of(source)
    with ExitStack() as alone:
        for last in (*[False] * (RUNS - 1), True):
            found = run()
            with core.lock.held:
                core.lock.roll_forward()
                if last or isinstance(found, Encoded) or found.writes in (None, into.writes):
                    take(found)
                    break
            discard(core.store, found.load)
            alone.enter_context(turn(source))
    return found.rows


@contextmanager
def turn(source: Table) -> Iterator[None]:
    """Held while a micro-batch is written to a table, and by a load that others have been in the way of."""
    with _TURNS.setdefault(source, threading.RLock()):
        yield


def by_tasks(source: Table) -> bool:
    """Whether tasks can write the rows to their final place."""
    return core_of(source.engine).store is not None and not core_of(source).is_stream


def write_files(source: Table, feed: Feed, frame: DataFrame) -> Loaded:
    """Run the job that writes the files of the open epoch."""
    engine, core, into = source.engine, core_of(source.engine), core_of(source)
    assert core.storage is not None
    store, manifest = core.storage.writer.store, core.storage.writer.manifest
    held: HeldBatches = ()
    with core.lock.held:
        core.lock.roll_forward()
        while core.scheduled.rows(into) and into.is_due:
            core.commit(WriteSet())  # files of an epoch hold the load alone
        looks = into.semantics != "bag" or into.rules.repeats or (into.rules.checked and not feed.only_adds)
        if looks:
            engine.sync()  # tasks can only read files
            held = held_by(manifest.state, source.name)
        version, writes = manifest.state.version, into.writes
        target = Target(
            store,
            into.name,
            into.columns,
            into.sharded_by,
            core.workers,
            into.low,
            core.epoch,
            held,
            into.rules,
        )
    with Lease(store, version, LEASE) if any(held) else nullcontext():
        found = write(feed, frame, target)
    return replace(found, writes=writes) if looks else found


def apply(
    source: Table,
    found: Encoded | Loaded,
    noted: Callable[[ReadPositions], ReadPositions],
    beside: Callable[[WriteSet], None] | None = None,
) -> None:
    """Close an epoch with the rows found, and what is written `beside` them, together with the record of their source: all, or
    nothing.
    """
    core, into = core_of(source.engine), core_of(source)
    with core.lock.held:
        core.lock.roll_forward()
        after = noted(recorded(source))
        if isinstance(found, Loaded):
            adopt(core, into, found.files, found.epoch, {source.name: after.to_json()}, found.writes)
            return

        words, diffs = found.settled(into.current_rows, core.dictionary)
        together = WriteSet()
        into.update_words(words, diffs, into=together)
        if beside is not None:
            beside(together)
        commit(source, after, together)


def feed_of(
    source: Table,
    frame: DataFrame,
    diff: str | None,
    operation: str | None,
    order: str | None,
    position: str | None,
    extra: str,
) -> Feed:
    """The checked feed of a DataFrame into a table."""
    if is_connect(frame):
        raise UnsupportedError(
            f"table {source.name!r}: the DataFrame is one of a Spark Connect session, whose driver is another process: make "
            "it with a classic session, such as tektite.spark.session()"
        )
    if not isinstance(frame, DataFrame):
        raise no_frame(source, frame)
    into = core_of(source)
    into.check_open("take rows from Spark")
    classic(frame.sparkSession)
    if extra not in ("error", "ignore"):
        raise IncorrectError(f"table {source.name!r}: extra is 'error' or 'ignore', not {extra!r}")
    feed = Feed(
        into.name, into.schema, into.semantics, into.key_columns if into.semantics == "upsert" else (),
        diff, operation, order, position, ignore_extra=extra == "ignore", told_apart=into.told_apart,
        required=into.rules.required, append=into.rules.append,
    )  # fmt: skip
    feed.check(frame)
    return feed


def no_frame(source: Table, found: object) -> IncorrectError:
    """The error for something that is not a Spark DataFrame."""
    kind = type(found)
    return IncorrectError(
        f"table {source.name!r}: expected a Spark DataFrame, found {kind.__module__}.{kind.__qualname__}: read it with Spark, "
        "or insert() rows, columns, Arrow tables and pandas frames"
    )


def position_word(source: Table, frame: DataFrame, column: str, value: Any) -> int:
    """A position that the user passed, as a word that compares like its column's values."""
    arrow = to_arrow_type(frame.schema[column].dataType, timezone="UTC")
    try:
        values = pa.array([value]).cast(arrow)
        if pa.types.is_timestamp(arrow):
            values = values.cast(pa.timestamp("us"))
    except (pa.ArrowException, TypeError) as error:
        raise IncorrectError(
            f"table {source.name!r}: upto={value!r} is no {arrow} as column {column!r} holds: {error}"
        ) from None
    return int(encode(values, type_from_arrow(values.type), column)[0])
