"""View as users hold it: a named, maintained result, and the ways to read it."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from tektite.dataflow.arrange import consolidate
from tektite.dataflow.output import changes_table
from tektite.engine.lock import EngineLock, guarded, guarded_by_core
from tektite.errors import TektiteError
from tektite.query.collection import Collection
from tektite.trace.chunk import Chunk
from tektite.trace.trace import Handle
from tektite.values.columns import python_rows
from tektite.values.words import Words

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from tektite.engine.engine import Engine
    from tektite.engine.view_core import ViewCore


class Change(NamedTuple):
    """One row of a view changed its multiplicity by `diff` at `time`."""

    row: tuple[Any, ...]
    time: int
    diff: int


class View(Collection):
    """A maintained result. Made by `Engine.install`; it is a collection that other views can be built on."""

    engine: Engine

    def __init__(self, engine: Engine, core: ViewCore) -> None:
        super().__init__(engine, core.operator)
        self._core = core

    @property
    def name(self) -> str:
        """What it was installed as."""
        return self._core.name

    @property
    def low(self) -> int:
        """The first epoch for which the view has no answer yet."""
        return self._core.low

    @property
    def first(self) -> int:
        """The first epoch that the view answers for."""
        return self._core.first

    @property
    def closed(self) -> bool:
        """Whether the view can never change again, because every input it reads has ended."""
        return self._core.closed

    @property
    def failure(self) -> TektiteError | None:
        """Why the view has stopped, if it has."""
        return self._core.failure

    @property
    def error(self) -> TektiteError | None:
        """What a read of the view raises: why it has stopped, or which row that it depends on fails; None if it can be read."""
        return self._core.error

    @property
    def current(self) -> bool:
        """Whether the view reflects every epoch that its sources have closed."""
        return self._core.engine.is_current(self._core)

    def snapshot(self, at: int | None = None, wait: bool = True) -> pa.Table:
        """The result as of the last closed epoch, or of an earlier one that a hold still keeps apart.

        With `wait=False` a view that has fallen behind answers as of the last epoch it has finished.
        """
        core = self._core
        with core.engine.dictionary.reading():
            table = core.decode(core.words(at, wait))
        return table if core.row_order is None else core.row_order(table)

    def rows(self, at: int | None = None) -> list[tuple[Any, ...]]:
        """The snapshot as Python tuples."""
        table = self.snapshot(at)
        return python_rows(table, f"view {self.name!r}", "snapshot(), or to_spark()")

    def multiplicities(self, at: int | None = None) -> dict[tuple[Any, ...], int]:
        """The snapshot as a mapping from row to multiplicity; these may be negative."""
        dictionary = self._core.engine.dictionary
        with dictionary.reading():
            words = self._core.words(at, True)
            width = len(self.schema.names)
            rows = self.schema.decode_rows(np.ascontiguousarray(words[:width]), dictionary)
        found: dict[tuple[Any, ...], int] = {}
        for row, times in zip(rows, words[width + 1].tolist(), strict=True):
            found[row] = found.get(row, 0) + times  # 0.0 and -0.0 are one key of a dict
        return found

    @guarded_by_core
    def changes(self, *, history: bool = True) -> Changes:
        """The view's changes from here on, beginning with its present contents unless `history` is false."""
        core = self._core
        core.check()
        core.engine.finish(core)
        core.check()
        return Changes(core, history)

    def on_change(self, function: Callable[[pa.Table], None]) -> None:
        """Call a function after each sweep with a table of the changes (data columns, `time`, `diff`)."""
        self._core.call_on_change(function, self.changes(history=False))

    def publish(self) -> None:
        """Store the view's contents, and its changes from here on, so that other processes can read them: Spark as the data
        source `tektite`. A view that was published by an earlier run goes on from what that has stored.
        """
        self._core.publish()

    def drop(self) -> None:
        """Remove the view, and everything that only it used."""
        self._core.check(failed=False)
        self._core.engine.drop(self.name)

    def to_spark(self, spark: SparkSession | None = None, *, at: int | None = None) -> DataFrame:
        """The snapshot as a Spark DataFrame, in the engine's session or another one.

        Timestamps come as Spark's `timestamp`, moments that are shown in the session's time zone.
        """
        from tektite.spark.view_frames import to_spark

        return to_spark(self, spark, at)

    def write_changes(
        self,
        format: str,
        path: str | None = None,
        *,
        options: Mapping[str, str] | None = None,
        checkpoint: str | None = None,
        trigger: dict[str, Any] | None = None,
        spark: SparkSession | None = None,
    ) -> StreamingQuery:
        """Have Spark write the view's changes, with the columns `time` and `diff`, to files or whatever it can stream to.

        The view is published first; what it holds comes before what changes. Files and Delta tables get every change
        exactly once, Kafka (as JSON in the column `value`) at least once. Spark looks for changes once a second, or as
        `trigger` says. What was written, and up to where, is in the `checkpoint`, which lies in the engine's storage
        unless told otherwise.
        """
        from tektite.spark.view_frames import write_changes

        return write_changes(self, format, path, options or {}, checkpoint, trigger, spark)


class Changes:
    """A subscription. Iterating yields the changes of all epochs that have closed since the last time. One that nobody holds
    any more is closed by itself.
    """

    def __init__(self, view: ViewCore, history: bool) -> None:
        self.view = view
        self.start = max(view.low - 1, view.first)
        self.handle = Handle(view.trace, None)
        self._told: deque[Change] = deque()
        if not history:
            self.start = view.low
            for shard in range(view.trace.shards):
                self.handle.take_before(shard, view.low)
        view.subscriptions.add(self)
        handle, endings, abandoned = self.handle, view.endings, view.engine.abandoned

        def end(gone: weakref.ref[Changes]) -> None:
            # Whoever drops the last reference may be inside the engine, so the engine lets go of the handle when it can.
            endings.discard(gone)
            abandoned.append(handle)

        endings.add(weakref.ref(self, end))

    @property
    def lock(self) -> EngineLock:
        """The engine's, which guards everything that changes it."""
        return self.view.engine.lock

    @guarded
    def table(self) -> pa.Table:
        """What has changed since the last call, as a table with the columns `time` and `diff` behind the data. While some row
        that the view depends on fails, this raises its error; what has changed is told once it is gone.
        """
        self.view.check_rows(self.view.low - 1)
        return self.collected()

    def collected(self) -> pa.Table:
        """`table`, whatever fails, for who holds the lock."""
        view = self.view
        batches = [batch for shard in range(view.trace.shards) for batch in self.handle.take_before(shard, view.low)[1]]
        width = len(view.columns)
        words: Words = np.empty((width + 2, 0), np.int64)
        if batches:
            chunks = [Chunk(batch.head, batch.memory) for batch in batches]
            found = consolidate(chunks, (width, 1, 1), self.start).to_array()
            words = found.copy()
            words[list(view.columns)] = found[:width]
            order = np.argsort(words[width], kind="stable")
            words = np.ascontiguousarray(words[:, order])
        return changes_table(words, view.schema, view.engine.dictionary)

    def __iter__(self) -> Iterator[Change]:
        self.view.check()
        self.view.engine.finish(self.view)
        self.view.check()
        columns = [column.to_pylist() for column in self.table().columns]
        width = len(self.view.schema.names)
        self._told.extend(Change(v[:width], v[width], v[width + 1]) for v in zip(*columns, strict=True))
        while self._told:
            yield self._told.popleft()

    @guarded
    def close(self) -> None:
        """Stop collecting changes."""
        self.let_go()

    def let_go(self) -> None:
        """`close`, for who holds the lock and is about to drop the view. May be repeated."""
        self.handle.drop()
        self.view.subscriptions.discard(self)
