"""Follow: makes each micro-batch of a stream an epoch of a table, exactly once.

Spark gives a micro-batch the same rows whenever it runs it again, and numbers it in the stream's checkpoint. The number of
the last micro-batch is stored together with its rows. A micro-batch that Spark runs again, because it did not learn of its
success, is skipped. That works only while checkpoint and engine belong together, which is checked before the stream starts.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote
from weakref import WeakKeyDictionary

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from tektite.engine.core import core_of
from tektite.engine.write_set import WriteSet
from tektite.errors import ConflictError, FaultError, IncorrectError, TektiteError
from tektite.spark import checkpoint as checkpoints
from tektite.spark.encoded import collect
from tektite.spark.failures import explained, failed_job, reason
from tektite.spark.feed import Feed
from tektite.spark.load import apply, feed_of, turn
from tektite.spark.positions import ReadPositions, commit, recorded
from tektite.spark.progress import EpochProgress, OnProgress, Steps
from tektite.spark.session import described
from tektite.storage.store import PosixStore
from tektite.unknown_names import explains_names

if TYPE_CHECKING:
    from tektite.engine.table import Table

_FOLLOWED: WeakKeyDictionary[Table, Following] = WeakKeyDictionary()

RECENT = 100
"""Epochs whose figures a stream keeps; as many as Spark does."""

BAD_ROWS = ("stop", "keep")
BAD_ROW_COLUMNS = {"batch": int, "row": str, "reason": str}

INTERRUPTED = "py4j.protocol.Py4JJavaError: An error occurred while calling: java.lang.InterruptedException"
"""By these words Spark recognises a micro-batch that ended because its stream was stopped, and says nothing of it. It looks for
them with a regular expression that needs stack for each character between the first and the last, so they stand close together.
"""

START_TIMEOUT = 60.0
"""Seconds that a first micro-batch waits for the call that started its stream to return."""


class StreamStopped(Exception):
    """Ends a micro-batch of a stream that is being stopped. Nothing of the micro-batch counts."""

    def __init__(self) -> None:
        super().__init__(INTERRUPTED)


@explains_names
class Following:
    """A stream that a table follows. Made by `Table.follow`."""

    query: StreamingQuery

    def __init__(
        self,
        source: Table,
        feed: Feed,
        lag: int,
        on_progress: OnProgress | None = None,
        bad_rows: Table | None = None,
        most_bad: int = 0,
    ) -> None:
        self.source = source
        self.feed = feed
        self.lag = lag
        self.on_progress = on_progress
        self.bad_rows = bad_rows
        """The table of rows that did not fit, if these are kept."""
        self.most_bad = most_bad
        self.rows = 0
        """Rows taken in since the start."""
        self.rejected = 0
        """Rows that did not fit since the start."""
        self.epochs = 0
        """Micro-batches that became epochs since the start."""
        self.recent: deque[EpochProgress] = deque(maxlen=RECENT)
        """Figures of the last epochs, newest last."""
        self.failure: TektiteError | None = None
        self._started = threading.Event()
        self._stopping = False
        self._busy = threading.RLock()

    def start(self, query: StreamingQuery) -> None:
        """Let micro-batches run: the stream's id is known."""
        self.query = query
        self._started.set()

    def __repr__(self) -> str:
        state = "running" if self.active else "stopped" if self.failure is None else f"stopped: {self.failure}"
        return f"<Following of table {self.source.name!r}, {self.epochs} epochs, {self.rows} rows, {state}>"

    @property
    def active(self) -> bool:
        """Whether the stream is running."""
        return bool(self.query.isActive)

    @property
    def batch(self) -> int | None:
        """The last micro-batch that counts."""
        return recorded(self.source).batch

    def take(self, frame: DataFrame, batch: int) -> None:
        """Make a micro-batch an epoch. Spark calls this from its own thread."""
        with self._busy, turn(self.source):
            if self._stopping:
                raise StreamStopped
            self._take_or_fail(frame, batch)

    def _take_or_fail(self, frame: DataFrame, batch: int) -> None:
        try:
            if not self._started.wait(START_TIMEOUT):
                raise FaultError(f"table {self.source.name!r}: the stream began before its start had finished")
            self._take(frame, batch)
        except IncorrectError as error:
            self.failure = IncorrectError(f"{error}; found in micro-batch {batch}, of which nothing counts")
            raise self.failure from None
        except TektiteError as error:
            self.failure = error
            raise
        except Exception as error:
            if self._stopping:  # Spark interrupts the jobs of a stream that is being stopped: that is not a failure
                raise StreamStopped from None
            self.failure = failed_job(f"table {self.source.name!r}, micro-batch {batch}", error)
            self.failure.__cause__ = error
            raise

    def _take(self, frame: DataFrame, batch: int) -> None:
        engine = self.source.engine
        before = recorded(self.source)
        if before.query == self.query.id and before.batch is not None and batch <= before.batch:
            self._make_durable()  # it counts, but the storage may have failed when it first arrived
            return
        if before.batch is not None and batch != before.batch + 1:
            raise ConflictError(
                f"table {self.source.name!r}: expected micro-batch {before.batch + 1}, got {batch}: rows are missing"
            )

        def noted(now: ReadPositions) -> ReadPositions:
            if (now.query, now.batch) != (before.query, before.batch):
                raise ConflictError(f"table {self.source.name!r} has followed another stream meanwhile")
            return replace(now, query=self.query.id, batch=batch)

        def reject(into: WriteSet) -> None:
            if self.bad_rows is not None and found.rejected:
                core_of(self.bad_rows).write([(batch, *bad) for bad in found.rejected], None, 1, "insert", into)

        steps = Steps()
        what = f"tektite: epoch {engine.next_epoch}, follow {self.source.name}, batch {batch}"
        dictionary = core_of(engine).dictionary
        with dictionary.adding():
            left = None if self.bad_rows is None else max(self.most_bad - self.rejected, 0)
            with described(frame.sparkSession, None, what):
                found = collect(self.feed, frame, dictionary, at_once=True, most_bad=left)
            encode = steps.next()
            apply(self.source, found, noted, reject)
        epoch, update = self.source.next_epoch - 1, steps.next()
        self._make_durable()
        durable = steps.next()
        self._wait_for_views()
        self.rows += found.rows
        self.rejected += len(found.rejected)
        self.epochs += 1
        done = EpochProgress(
            self.source.name, batch, epoch, found.rows, encode, update, durable, steps.next(), self.behind()
        )
        self.recent.append(done)
        if self.on_progress is not None:
            try:
                self.on_progress(done)
            except Exception as error:
                raise FaultError(
                    f"table {self.source.name!r}, micro-batch {batch} counts, but on_progress raised "
                    f"{type(error).__name__}: {error}"
                ) from error

    def _make_durable(self) -> None:
        """Wait until the storage has what counts: Spark forgets the rows of a micro-batch once it has been taken."""
        if core_of(self.source.engine).store is not None:
            self.source.engine.sync()

    def _wait_for_views(self) -> None:
        """Delay the stream while some view is too far behind. Others may use the engine meanwhile."""
        engine = self.source.engine
        while self.behind() > self.lag and not self._stopping:
            engine.run()
            time.sleep(0)

    def behind(self) -> int:
        """The number of closed epochs that the slowest view lacks."""
        core = core_of(self.source.engine)
        with core.lock.held:
            views = [view for view in core.views.values() if view.failure is None and not core.is_current(view)]
            waiting = [core.epoch - view.low for view in views]
        return max(waiting, default=0)

    def await_termination(self, timeout: float | None = None) -> bool:
        """Wait until the stream has ended, or for some seconds; returns whether it has. Raises if it failed."""
        try:
            ended = self.query.awaitTermination(timeout)  # type: ignore[arg-type] # fractions of a second work
        except Exception as error:
            raise self._failed(error) from error
        return timeout is None or bool(ended)

    def process_all_available(self) -> None:
        """Wait until everything that the source holds has been taken in. Raises if that failed."""
        try:
            self.query.processAllAvailable()
        except Exception as error:
            raise self._failed(error) from error

    def stop(self) -> None:
        """End the stream after the current micro-batch. Follow again to continue."""
        self._stopping = True
        self.query.stop()
        with self._busy:
            pass

    def _failed(self, error: Exception) -> TektiteError:
        if self.failure is not None:
            return self.failure
        return FaultError(f"table {self.source.name!r}: the stream failed: {reason(error)}")

    def __enter__(self) -> Following:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def follow(
    source: Table,
    stream: DataFrame,
    diff: str | None,
    operation: str | None,
    order: str | None,
    position: str | None,
    extra: str,
    checkpoint: str | None,
    trigger: dict[str, Any] | None,
    lag: int,
    reset: bool,
    on_progress: OnProgress | None,
    bad_rows: str,
    max_bad_rows: int,
) -> Following:
    """See `tektite.Table.follow`."""
    feed = feed_of(source, stream, diff, operation, order, position, extra)
    if not stream.isStreaming:
        raise IncorrectError(f"table {source.name!r}: the DataFrame is not a stream (spark.readStream): use load")
    if isinstance(lag, bool) or not isinstance(lag, int) or lag < 0:
        raise IncorrectError(f"table {source.name!r}: lag is a number of epochs from 0 on, not {lag!r}")
    if bad_rows not in BAD_ROWS:
        raise IncorrectError(f"table {source.name!r}: bad_rows is one of {', '.join(BAD_ROWS)}, not {bad_rows!r}")
    if isinstance(max_bad_rows, bool) or not isinstance(max_bad_rows, int) or max_bad_rows < 0:
        raise IncorrectError(f"table {source.name!r}: max_bad_rows is a number of rows, not {max_bad_rows!r}")
    running = _FOLLOWED.get(source)
    if running is not None and running.active:
        raise ConflictError(f"table {source.name!r} follows a stream already: stop that first")
    record = recorded(source)
    if record.column is not None and position is None:
        raise ConflictError(
            f"table {source.name!r} was loaded up to a position of column {record.column!r}: name it, "
            f"position={record.column!r}, so that no row counts twice"
        )
    if record.column is not None and record.column != position:
        raise ConflictError(
            f"table {source.name!r} was loaded up to a position of column {record.column!r}, not of {position!r}"
        )
    spark = stream.sparkSession
    folder = checkpoint or default_checkpoint(source)
    if reset:
        if folder is not None and checkpoint is None:
            checkpoints.delete(spark, folder)
        forget(source, record)
    elif folder is not None:
        with explained(f"table {source.name!r}: the checkpoint {folder} cannot be read", ""):
            found = checkpoints.read(spark, folder)
        check_together(source.name, record, found, folder)
    elif record.query is not None:
        raise ConflictError(
            f"table {source.name!r} has followed another stream, which this one would count again: give its checkpoint, "
            "or say reset=True"
        )
    kept = None
    if bad_rows == "keep":
        kept = source.engine.create_table(f"{source.name}_bad_rows", BAD_ROW_COLUMNS, mode="append", if_exists="keep")
    following = Following(source, replace(feed, after=record.position), lag, on_progress, kept, max_bad_rows)
    writer = stream.writeStream.foreachBatch(following.take).queryName(free_name(spark, f"tektite_{source.name}"))
    if folder is not None:
        writer = writer.option("checkpointLocation", folder)
    if trigger is not None:
        try:
            writer = writer.trigger(**trigger)
        except Exception as error:
            raise IncorrectError(
                f"table {source.name!r}: trigger is what Spark's DataStreamWriter.trigger takes, such as "
                f"{{'availableNow': True}}, not {trigger!r}: {reason(error)}"
            ) from None
    with explained(f"table {source.name!r}: the stream cannot start", ""):
        following.start(writer.start())
    _FOLLOWED[source] = following
    core_of(source.engine).hooks.on_close.append(following.stop)
    return following


def free_name(spark: SparkSession, name: str) -> str:
    """A stream name that is unused in the session: another engine may follow a stream into a table of the same name."""
    taken = any(query.name == name for query in spark.streams.active)
    return f"{name}_{uuid.uuid4().hex[:8]}" if taken else name


def default_checkpoint(source: Table) -> str | None:
    """The default folder of a stream's checkpoint: in the engine's storage."""
    store = core_of(source.engine).store
    if store is None:
        return None
    if not isinstance(store, PosixStore):
        raise IncorrectError(
            f"table {source.name!r}: say where the stream's checkpoint lies, checkpoint='...': Spark may not know the storage "
            f"{store.url} by this name"
        )
    return f"{store.url}/checkpoints/{quote(source.name, safe='')}"


def check_together(name: str, record: ReadPositions, found: checkpoints.StreamCheckpoint, folder: str) -> None:
    """Refuse a checkpoint that does not belong to the rows of the table."""
    if record.query is not None and found.query != record.query:
        what = f"is that of stream {found.query}" if found.query else "is new"
        raise ConflictError(
            f"table {name!r} has followed stream {record.query}, but the checkpoint {folder} {what}: it would begin again "
            "and count rows twice. Give the checkpoint of that stream, or say reset=True if this is meant"
        )
    if found.committed is not None and found.committed > (-1 if record.batch is None else record.batch):
        known = "no micro-batch" if record.batch is None else f"micro-batch {record.batch}"
        raise ConflictError(
            f"table {name!r} holds {known} of its stream, but the checkpoint {folder} is at {found.committed}: the rows "
            "between would be missing. Use the storage that belongs to the checkpoint, another checkpoint, or reset=True"
        )


def forget(source: Table, record: ReadPositions) -> None:
    """Forget the followed stream, so that another may begin."""
    if record.query is not None:
        commit(source, replace(record, query=None, batch=None), WriteSet())
