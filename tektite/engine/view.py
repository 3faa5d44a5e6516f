"""View: a named, maintained result, and the ways to read it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from tektite.dataflow.arrange import Arranged, consolidate
from tektite.dataflow.flow import Dataflow, last_closed
from tektite.dataflow.join import PIECE
from tektite.dataflow.linear import function_name
from tektite.dataflow.output import changes_table
from tektite.engine.constraints import check_time
from tektite.engine.lock import guarded
from tektite.errors import ConflictError, FaultError, IncorrectError, TektiteError
from tektite.kernels.operators.join import JOIN_STATE, join
from tektite.kernels.seek.route import split_epoch
from tektite.plan import algebra as plan
from tektite.plan.unique import unique_columns
from tektite.query.collection import Collection
from tektite.trace.chunk import Chunk
from tektite.trace.trace import Handle, Hold, Trace
from tektite.values.columns import python_rows
from tektite.values.words import Words

if TYPE_CHECKING:
    from tektite.engine.engine import Engine
    from tektite.engine.publication import Publication


class Change(NamedTuple):
    """One row of a view changed its multiplicity by `diff` at `time`."""

    row: tuple[Any, ...]
    time: int
    diff: int


class View(Collection):
    """A maintained result. Made by `Engine.install`; it is a collection that other views can be built on."""

    engine: Engine

    def __init__(
        self, engine: Engine, name: str, definition: plan.Operator, flow: Dataflow, arranged: Arranged, keep: bool
    ) -> None:
        super().__init__(engine, plan.Read(definition.schema, self))
        self.name = name
        self.definition = definition
        self.flow = flow
        self.trace = arranged.trace
        self.columns = arranged.columns
        self.sharded_by = arranged.sharded_by
        self.is_stream = not keep
        self.hold = Hold(self.trace, last_closed(self)) if keep else None
        self.dropped = False
        self.present: Callable[[pa.Table], pa.Table] | None = None
        """What a snapshot goes through before it is handed out, such as an order."""
        self.publication: Publication | None = None
        self._subscriptions: list[Changes] = []
        flow.on_failed.append(self._let_go)

    @property
    def lock(self) -> Any:
        """The engine's, which guards everything that changes it."""
        return self.engine.lock

    @guarded
    def publish(self) -> None:
        """Store the view's contents, and its changes from here on, so that other processes can read them: Spark as the data
        source `tektite`. A view that was published by an earlier run goes on from what that has stored.
        """
        self._check()
        if self.is_stream:
            raise ConflictError(f"view {self.name!r} was installed with keep=False: it has no contents to store")
        if self.publication is None:
            self.publication = self.engine.publish(self)

    # A view is a source for the views built on it.
    @property
    def low(self) -> int:
        """The first epoch for which the view has no answer yet."""
        return self.flow.low

    @property
    def first(self) -> int:
        """The first epoch that the view answers for."""
        return self.flow.first

    @property
    def closed(self) -> bool:
        """Whether the view can never change again, because every input it reads has ended."""
        return self.flow.closed

    @property
    def unique(self) -> tuple[int, ...] | None:
        """The columns that tell its rows apart, if its definition says that some do."""
        return unique_columns(self.definition)

    is_single = False

    @property
    def orders(self) -> list[tuple[int, ...]]:
        """The orders of columns in which it is arranged for everybody."""
        found: list[tuple[int, ...]] = self.engine.orders_of(self)
        return found

    @property
    def size(self) -> int:
        """About how many rows it holds: updates that cancel each other count until they are merged."""
        return self.trace.rows

    @property
    def failure(self) -> TektiteError | None:
        """Why the view has stopped, if it has."""
        return self.flow.failure

    @property
    def current(self) -> bool:
        """Whether the view reflects every epoch that its sources have closed."""
        return self.engine.is_current(self)

    def snapshot(self, at: int | None = None, wait: bool = True) -> pa.Table:
        """The result as of the last closed epoch, or of an earlier one that a hold still keeps apart.

        With `wait=False` a view that has fallen behind answers as of the last epoch it has finished.
        """
        table = self._decoded(self._words(at, wait))
        return table if self.present is None else self.present(table)

    def lookup(self, number: int) -> pa.Table:
        """The rows of the snapshot whose leading column, an integer, has this value: only those are looked at."""
        return self._decoded(self._words(None, True, number))

    def _decoded(self, words: Words) -> pa.Table:
        """Rows as a table, each as often as it is there."""
        width = len(self.schema.names)
        counts = words[width + 1]
        if len(counts) and counts.min() < 0:
            raise IncorrectError(f"view {self.name!r} holds a row with a negative multiplicity: it is not a collection")
        rows = words[:width]
        if len(counts) and counts.max() > 1:
            rows = np.repeat(rows, counts, axis=1)
        return self.schema.decode(np.ascontiguousarray(rows), self.engine.dictionary)

    def rows(self, at: int | None = None) -> list[tuple[Any, ...]]:
        """The snapshot as Python tuples."""
        table = self.snapshot(at)
        return python_rows(table, f"view {self.name!r}", "snapshot(), or to_spark()")

    def multiplicities(self, at: int | None = None) -> dict[tuple[Any, ...], int]:
        """The snapshot as a mapping from row to multiplicity; these may be negative."""
        words = self._words(at, True)
        width = len(self.schema.names)
        rows = self.schema.decode_rows(np.ascontiguousarray(words[:width]), self.engine.dictionary)
        found: dict[tuple[Any, ...], int] = {}
        for row, times in zip(rows, words[width + 1].tolist(), strict=True):
            found[row] = found.get(row, 0) + times  # 0.0 and -0.0 are one key of a dict
        return found

    @guarded
    def _words(self, at: int | None, wait: bool, lead: int | None = None) -> Words:
        self._check()
        if self.is_stream:
            raise ConflictError(f"view {self.name!r} was installed with keep=False: only its changes can be read")
        if wait:
            self.engine.finish(self)
            self._check()
        width = len(self.columns)
        if not self.flow.low:
            return np.empty((width + 2, 0), np.int64)
        if self.flow.low == self.flow.first:
            raise IncorrectError(
                f"view {self.name!r} has no answer yet: its first one will be as of time {self.flow.first}, once every "
                "input it reads has closed that"
            )
        if at is not None:
            check_time(at, f"view {self.name!r}: ")
        epoch = self.flow.low - 1 if at is None else at
        since = max(min((t[0] for t in self.trace.since()), default=0), self.flow.first)
        if not since <= epoch < self.flow.low:
            raise IncorrectError(
                f"view {self.name!r} can be read at times {since} to {self.flow.low - 1}, not at {epoch}; "
                "engine.hold keeps earlier times readable"
            )
        words = read_version(self.trace, epoch) if lead is None else read_lead(self.trace, epoch, lead)
        if not words.shape[1]:
            return words
        ordered = words.copy()
        ordered[list(self.columns)] = words[:width]
        return ordered

    @guarded
    def changes(self, *, history: bool = True) -> Changes:
        """The view's changes from here on, beginning with its present contents unless `history` is false."""
        self._check()
        self.engine.finish(self)
        self._check()
        return Changes(self, history)

    def on_change(self, function: Callable[[pa.Table], None]) -> None:
        """Call a function after each sweep with a table of the changes (data columns, `time`, `diff`)."""
        self.call_on_change(function, self.changes(history=False))

    def call_on_change(self, function: Callable[[pa.Table], None], changes: Changes) -> None:
        """Call a function after each sweep with what a subscription has collected, if that is anything."""

        def deliver() -> None:
            table = changes.table()
            if table.num_rows:
                try:
                    function(table)
                except Exception as error:
                    self.flow.fail(FaultError(f"callback {function_name(function)} raised {error!r}", self.name))

        self.flow.on_swept.append(deliver)

    def drop(self) -> None:
        """Remove the view, and everything that only it used."""
        self._check(failed=False)
        self.engine.drop(self.name)

    def release(self) -> None:
        """Let go of the trace and of all subscriptions, for good."""
        self.dropped = True
        self._let_go()

    def _let_go(self) -> None:
        for subscription in list(self._subscriptions):
            subscription.close()
        if self.hold is not None:
            self.hold.drop()

    def _check(self, failed: bool = True) -> None:
        if self.dropped:
            raise ConflictError(f"view {self.name!r} was dropped")
        if failed and self.flow.failure is not None:
            raise self.flow.failure


class Changes:
    """A subscription. Iterating yields the changes of all epochs that have closed since the last time."""

    def __init__(self, view: View, history: bool) -> None:
        self.view = view
        self.start = max(view.low - 1, view.first)
        self.handle = Handle(view.trace, None)
        self._told: deque[Change] = deque()
        if not history:
            self.start = view.low
            for shard in range(view.trace.shards):
                self.handle.take_before(shard, view.low)
        view._subscriptions.append(self)

    @property
    def lock(self) -> Any:
        """The engine's, which guards everything that changes it."""
        return self.view.engine.lock

    @guarded
    def table(self) -> pa.Table:
        """What has changed since the last call, as a table with the columns `time` and `diff` behind the data."""
        view = self.view
        batches = [batch for shard in range(view.trace.shards) for batch in self.handle.take_before(shard, view.low)[1]]
        width = len(view.columns)
        words: Words = np.empty((width + 2, 0), np.int64)
        if batches:
            chunks = [Chunk(batch.head, batch.keep) for batch in batches]
            found = consolidate(chunks, (width, 1, 1), self.start).to_array()
            words = found.copy()
            words[list(view.columns)] = found[:width]
            order = np.argsort(words[width], kind="stable")
            words = np.ascontiguousarray(words[:, order])
        return changes_table(words, view.schema, view.engine.dictionary)

    def __iter__(self) -> Iterator[Change]:
        self.view._check()
        self.view.engine.finish(self.view)
        self.view._check()
        columns = [column.to_pylist() for column in self.table().columns]
        width = len(self.view.schema.names)
        self._told.extend(Change(v[:width], v[width], v[width + 1]) for v in zip(*columns, strict=True))
        while self._told:
            yield self._told.popleft()

    @guarded
    def close(self) -> None:
        """Stop collecting changes."""
        self.handle.drop()
        if self in self.view._subscriptions:
            self.view._subscriptions.remove(self)


def read_version(trace: Trace, epoch: int) -> Words:
    """What a trace of the outermost scope accumulates to at `epoch`: data columns, the epoch, multiplicities."""
    width = trace.data
    parts = []
    for shard in range(trace.shards):
        chunks = []
        for batch in trace.version(shard).batches:
            if not batch.n:
                continue
            if batch.upper[0][0] <= epoch + 1:
                chunks.append(Chunk(batch.head, batch.keep))
            else:
                buf, head, cut = split_epoch(batch.at, width, epoch + 1)
                if cut:
                    chunks.append(Chunk(head, (batch.keep, buf)).slice(0, int(cut)))
        if chunks:
            parts.append(consolidate(chunks, (width, 1, 1), epoch).to_array())
    if len(parts) == 1:
        return parts[0]
    return np.concatenate(parts, axis=1) if parts else np.empty((width + 2, 0), np.int64)


def read_lead(trace: Trace, epoch: int, lead: int) -> Words:
    """What `read_version` gives of the rows whose first column is the word `lead`."""
    width = trace.data
    wanted = Chunk.of_array(np.array([[lead], [0], [1]], np.int64))
    chunks = []
    for shard in range(trace.shards):
        table = trace.version(shard).table
        state = np.zeros(JOIN_STATE, np.int64)
        while len(table) and not state[0]:
            keys = np.array([wanted.at], np.int64)
            columns = np.arange(1, width + 1)
            buf, head = join(keys, table, 1, 1, width, 1, 1, 1, columns, 0, PIECE, 0, state)
            found = Chunk(head, buf).to_array()
            chunks.append(Chunk.of_array(np.ascontiguousarray(found[:, found[width] <= epoch])))
    chunks = [chunk for chunk in chunks if chunk.n]
    return consolidate(chunks, (width, 1, 1), epoch).to_array() if chunks else np.empty((width + 2, 0), np.int64)
