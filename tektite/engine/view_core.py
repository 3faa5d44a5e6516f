"""ViewCore: what an engine keeps of a view: its definition, its dataflow, its trace, and how that is read."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol
from weakref import WeakSet

import numpy as np
import pyarrow as pa

from tektite.dataflow.arrange import Arranged, consolidate
from tektite.dataflow.errors import ErrorSource, standing_errors
from tektite.dataflow.flow import Dataflow, last_closed
from tektite.dataflow.join import PIECE
from tektite.dataflow.linear import function_name
from tektite.engine.constraints import check_time
from tektite.engine.lock import EngineLock, guarded
from tektite.errors import ConflictError, FaultError, IncorrectError, TektiteError
from tektite.kernels.operators.join import JOIN_STATE, join
from tektite.kernels.seek.route import split_epoch
from tektite.plan import algebra as plan
from tektite.plan.unique import unique_columns
from tektite.trace.addresses import addresses
from tektite.trace.chunk import Chunk
from tektite.trace.trace import Handle, Hold, Trace
from tektite.values.words import Words

if TYPE_CHECKING:
    from tektite.engine.engine_core import EngineCore
    from tektite.engine.publication import Publication
    from tektite.engine.view import View


LOG = logging.getLogger("tektite")


class Subscription(Protocol):
    """Who follows a view's changes."""

    handle: Handle
    """Has the changes that have not been told."""

    def collected(self) -> pa.Table:
        """What has changed since the last call."""

    def let_go(self) -> None:
        """Stop following. May be repeated."""


class ViewCore:
    """A view: a source of dataflows, and what plans read."""

    facade: View
    """The view as users hold it. Set by `EngineCore.install_together`."""
    # The types are said here because modules that import each other read them: mypy infers them in no certain order.
    flow: Dataflow
    trace: Trace
    columns: tuple[int, ...]
    sharded_by: int
    is_single = False

    def __init__(
        self,
        engine: EngineCore,
        name: str,
        definition: plan.Operator,
        flow: Dataflow,
        arranged: Arranged,
        keep: bool,
        together: Sequence[ViewCore],
        errors: Sequence[ErrorSource],
    ) -> None:
        self.engine = engine
        self.errors = errors
        """The errors that its rows depend on."""
        self.name = name
        self.together = together
        """The views that its dataflow makes, itself included."""
        self.definition = definition
        self.schema = definition.schema
        self.operator = plan.Read(definition.schema, self)
        """The plan that reads it."""
        self.flow = flow
        self.trace = arranged.trace
        self.columns = arranged.columns
        self.sharded_by = arranged.sharded_by
        self.is_stream = not keep
        self.hold = Hold(self.trace, last_closed(self, engine.snapshots.earliest)) if keep else None
        self.dropped = False
        self.row_order: Callable[[pa.Table], pa.Table] | None = None
        """Puts the rows of a snapshot in order, where the definition says one."""
        self.publication: Publication | None = None
        self.subscriptions: WeakSet[Subscription] = WeakSet()
        """Those that somebody holds."""
        self.endings: set[weakref.ref[Any]] = set()
        """What drops the handles of the others."""
        flow.on_failed.append(self._let_go)

    @property
    def lock(self) -> EngineLock:
        """The engine's, which guards everything that changes it."""
        return self.engine.lock

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
    def failure(self) -> TektiteError | None:
        """Why the view has stopped, if it has."""
        return self.flow.failure

    @property
    def unique(self) -> tuple[int, ...] | None:
        """The columns that tell its rows apart, if its definition says that some do."""
        return unique_columns(self.definition)

    @property
    def orders(self) -> list[tuple[int, ...]]:
        """The orders of columns in which it is arranged for everybody."""
        return self.engine.catalog.orders_of(self.operator)

    @property
    def size(self) -> int:
        """About how many rows it holds: updates that cancel each other count until they are merged."""
        return self.trace.rows

    @property
    def count(self) -> int | None:
        """How many rows its last answer has, those that fail left out; None if it keeps none, or has stopped."""
        if self.is_stream or self.flow.failure is not None:
            return None
        if self.low <= self.first:
            return 0
        return int(read_version(self.trace, self.low - 1)[-1].sum())

    # ------------------------------------------------------------------ reading

    def lookup(self, number: int) -> pa.Table:
        """The rows of the snapshot whose leading column, an integer, has this value: only those are looked at."""
        with self.engine.dictionary.reading():
            return self.decode(self.words(None, True, number))

    def decode(self, words: Words) -> pa.Table:
        """Rows as a table, each as often as it is there."""
        width = len(self.schema.names)
        counts = words[width + 1]
        if len(counts) and counts.min() < 0:
            raise IncorrectError(f"view {self.name!r} holds a row with a negative multiplicity: it is not a collection")
        rows = words[:width]
        if len(counts) and counts.max() > 1:
            rows = np.repeat(rows, counts, axis=1)
        return self.schema.decode(np.ascontiguousarray(rows), self.engine.dictionary)

    @guarded
    def words(self, at: int | None, wait: bool, lead: int | None = None) -> Words:
        """The rows of the snapshot as of an epoch, with time and multiplicity behind the data columns; those alone that begin
        with the word `lead`, if one is given.
        """
        self.check()
        if self.is_stream:
            raise ConflictError(f"view {self.name!r} was installed with keep=False: only its changes can be read")
        if at is not None:
            check_time(at, f"view {self.name!r}: ")
        if wait and (at is None or at >= self.flow.low):
            self.engine.finish(self)
            self.check()
        width = len(self.columns)
        if not self.flow.low:
            return np.empty((width + 2, 0), np.int64)
        if self.flow.low == self.flow.first:
            raise IncorrectError(
                f"view {self.name!r} has no answer yet: its first one will be as of time {self.flow.first}, once every "
                "input it reads has closed that"
            )
        epoch = self.flow.low - 1 if at is None else at
        since = max(min((t[0] for t in self.trace.since()), default=0), self.flow.first)
        if epoch < since or (epoch >= self.flow.low and not self.flow.closed):
            raise IncorrectError(
                f"view {self.name!r} can be read at times {since} to {self.flow.low - 1}, not at {epoch}; "
                "engine.hold keeps earlier times readable"
            )
        self.check_rows(epoch)
        words = read_version(self.trace, epoch) if lead is None else read_lead(self.trace, epoch, lead)
        if not words.shape[1]:
            return words
        ordered = words.copy()
        ordered[list(self.columns)] = words[:width]
        return ordered

    def check(self, failed: bool = True) -> None:
        """Refuse to read a view that was dropped or, unless that does not matter, has failed."""
        if self.dropped:
            raise ConflictError(f"view {self.name!r} was dropped")
        if failed and self.flow.failure is not None:
            raise self.flow.failure

    @property
    def error(self) -> TektiteError | None:
        """What a read of its last answer raises, if anything."""
        return self.flow.failure or (self.error_at(self.low - 1) if self.low > self.first else None)

    def check_rows(self, epoch: int) -> None:
        """Refuse to read the view at an epoch at which some row that it depends on fails."""
        error = self.error_at(epoch)
        if error is not None:
            raise error

    def error_at(self, epoch: int) -> TektiteError | None:
        """What a read at an epoch finds instead of an answer; None if there is an answer."""
        found = standing_errors(self.errors, epoch) if self.errors else None
        if found is None:
            return None
        own = found.flow in (self.name, ", ".join([view.name for view in self.together]))
        origin = "" if own else f"in {found.flow!r}, which it reads: "
        more = "" if found.count == 1 else f"; {found.count - 1} more fail"
        message = f"{origin}{found.message}{more}. Reads work again once what fails is deleted or corrected"
        if issubclass(found.kind, FaultError):
            return FaultError(message, self.name)
        return IncorrectError(f"view {self.name!r}: {message}")

    # ------------------------------------------------------------------ what goes along with it

    @guarded
    def publish(self) -> None:
        """Store contents and changes from here on; see `View.publish`."""
        self.check()
        if self.is_stream:
            raise ConflictError(f"view {self.name!r} was installed with keep=False: it has no contents to store")
        if self.publication is None:
            self.publication = self.engine.publish(self)

    def call_on_change(self, function: Callable[[pa.Table], None], changes: Subscription) -> None:
        """Call a function after each sweep with what a subscription has collected, if that is anything. A function that raises
        is not called again.
        """

        def deliver() -> None:
            table = changes.collected()
            if table.num_rows:
                try:
                    function(table)
                except Exception:
                    self.flow.on_swept.remove(deliver)
                    self.flow.remove_outlet(changes.handle)
                    changes.let_go()
                    LOG.exception(
                        "view %r: callback %s raised; it is not called again", self.name, function_name(function)
                    )

        self.flow.on_swept.append(deliver)
        self.flow.add_outlet(changes.handle)

    def release(self) -> None:
        """Let go of the trace and of all subscriptions, for good."""
        self.dropped = True
        self._let_go()

    def _let_go(self) -> None:
        for subscription in list(self.subscriptions):
            subscription.let_go()
        if self.hold is not None:
            self.hold.drop()


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
                chunks.append(Chunk(batch.head, batch.memory))
            else:
                buf, head, cut = split_epoch(batch.at, width, epoch + 1)
                if cut:
                    chunks.append(Chunk(head, (batch.memory, buf)).slice(0, int(cut)))
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
            keys = addresses([wanted])
            columns = np.arange(1, width + 1)
            buf, head = join(keys, table, 1, 1, width, 1, 1, 1, columns, 0, PIECE, 0, state)
            found = Chunk(head, buf).to_array()
            chunks.append(Chunk.of_array(np.ascontiguousarray(found[:, found[width] <= epoch])))
    chunks = [chunk for chunk in chunks if chunk.n]
    return consolidate(chunks, (width, 1, 1), epoch).to_array() if chunks else np.empty((width + 2, 0), np.int64)
