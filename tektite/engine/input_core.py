"""InputCore: an input's declaration and trace, and its part in closing epochs.

Updates wait in a write set until it is committed. Committing checks them, sorts them, and mints them as one batch into the
input's base arrangement, however many epochs the batch covers. A call that fails changes nothing. `tektite.engine.epochs` says
who calls `write`, `prepare`, `changes_by` and `current_rows`, and when.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tektite.dataflow.arrange import consolidate
from tektite.dataflow.errors import ErrorSource
from tektite.dataflow.flow import LastClosed
from tektite.engine.change_feed import ChangeFeed
from tektite.engine.constraints import RowChecks, Rules, check_time
from tektite.engine.epoch_batches import batches_of, split_at_epoch
from tektite.engine.epochs import AdoptedRows, Batches, PreparedInput
from tektite.engine.lock import EngineLock, guarded
from tektite.engine.pending_updates import PendingUpdates, net_changes
from tektite.engine.row_encoding import encode, encode_keys, integers, is_beyond, with_equal_keys
from tektite.engine.row_slices import is_small, row_slices
from tektite.engine.small_writes import few_columns
from tektite.engine.unique_keys import check_unique_keys
from tektite.engine.versions import in_schema_order, read_first, read_lead, read_version
from tektite.engine.write_set import WriteSet
from tektite.errors import ConflictError, IncorrectError, TektiteError
from tektite.kernels.layout.input_heads import arriving_operations, arriving_rows
from tektite.plan import algebra as plan
from tektite.storage.batchfile import FileInfo
from tektite.storage.description import InputDescription
from tektite.trace.chunk import Chunk, column_spec, returning_chunks
from tektite.trace.records import Version
from tektite.trace.trace import Hold, Trace, split_at
from tektite.values.schema import Schema
from tektite.values.words import Words

if TYPE_CHECKING:
    from tektite.engine.engine_core import EngineCore
    from tektite.engine.table import Table
    from tektite.engine.view_core import ViewCore

LARGEST_DIFF = 2**48

_NONE: Words = np.empty(0, np.int64)
_arriving_rows = returning_chunks(arriving_rows, "h")
REFRESH = "refresh"
"""The verb with which the engine writes to system relations."""


class InputCore:
    """An input: its declaration and its trace. A source of dataflows and what plans read."""

    facade: Table
    """The input as users hold it. Set by `EngineCore.add_input`."""
    # The types are said here because modules that import each other read them: mypy infers them in no certain order.
    trace: Trace
    low: int
    columns: tuple[int, ...]
    kind = "table"
    first = 0
    failure: TektiteError | None = None
    flow = None
    errors: Sequence[ErrorSource] = ()

    is_single = False
    """Whether it always holds exactly one row, which moves: the time of an SQL session does."""

    def __init__(
        self, engine: EngineCore, name: str, declared: InputDescription, epoch: int, *, is_stored: bool = True
    ) -> None:
        self.engine = engine
        self.lock: EngineLock = engine.lock
        self.name = name
        self.declared = declared
        self.schema: Schema = declared.schema
        self.operator = plan.Read(declared.schema, self)
        """The plan that reads it."""
        self.semantics = declared.semantics
        self.is_stream = declared.stream
        self.is_stored = is_stored
        """Whether a storage keeps it; what a language needs for itself is made anew each time."""
        self.is_system = False
        """Whether it says something about the engine itself, which alone writes to it."""
        self.low = epoch
        """The open epoch."""
        self.closed = declared.closed
        schema = declared.schema
        width = len(schema.names)
        self.lead = lead = tuple(schema.index(column) for column in declared.key)
        self.key_columns = tuple(range(width)) if self.semantics == "set" else lead
        keyed = lead if declared.unique or self.semantics == "upsert" else ()
        told_apart = self.key_columns if self.semantics == "set" else lead
        self.told_apart = tuple(column for column in told_apart if schema.types[column].has_keys)
        """Columns that tell rows apart, and have several words for equal values: they hold one of them."""
        self.columns = declared.column_order
        self.operation_keys = self.key_columns if self.semantics == "upsert" else self.columns
        """The columns by which operations on a set or an upsert input find the row that they replace or remove."""
        self._epoch_column = len(self.columns if self.semantics == "bag" else self.operation_keys)
        """The column of its updates in a write set that holds their epochs."""
        self._keyed_columns = keyed
        self.declare(declared)
        # Queries need few columns of a stream and exchange those; its rows stay where they come in.
        self.sharded_by = 0 if self.is_stream else declared.sharded_by
        self.trace = Trace(width, 1, 1, engine.workers, engine.merging, engine.memory)
        self.hold = None if self.is_stream else Hold(self.trace, LastClosed(self, engine.catalog.earliest))
        self.update_shape = (width + (0 if self.semantics == "bag" else 3), 1, 1)
        """The shape of its updates in a write set: operations on sets and upserts have columns of their own."""
        self.unique_indexes: dict[tuple[str, ...], ViewCore] = {}
        """The indexes that tell whether a value of unique columns is there; made when they are first needed."""
        self.writes = 0
        """How often its contents have changed since the engine began."""
        self.changed = -1
        """The last epoch in which that happened."""
        self.change_number = 0
        """How often inputs of the engine had changed then."""
        self.feeds: dict[ChangeFeed, None] = {}
        """Who follows its changes."""
        self._column_order = np.array(self.columns, np.int64)
        self._values = np.array([c for c in self.columns if c not in self.operation_keys], np.int64)
        self._arrivals = 0

    @property
    def unique(self) -> tuple[int, ...] | None:
        """The columns that tell its rows apart, if its declaration says that some do."""
        if self.declared.unique:
            return self.lead
        return None if self.semantics == "bag" else self.key_columns

    @property
    def orders(self) -> list[tuple[int, ...]]:
        """The orders of columns in which it is arranged for everybody."""
        return self.engine.catalog.orders_of(self.operator)

    @property
    def size(self) -> int:
        """About how many rows it holds: updates that cancel each other count until they are merged."""
        return self.trace.size

    @property
    def most_rows(self) -> int:
        """At least as many as its size: updates that cancel each other count."""
        return self.trace.rows

    @property
    def is_due(self) -> bool:
        """Whether an update with a time of its own is due in the open epoch."""
        found = self.engine.scheduled.updates.get(self)
        return found is not None and bool(split_at_epoch(found.chunks, self.low + 1, self._epoch_column)[0])

    def describe(self) -> InputDescription:
        """Its declaration, for a manifest."""
        return replace(self.declared, checked=self.rules.checked, closed=self.closed)

    def check_open(self, verb: str) -> None:
        """Refuse to do something to an input that has ended."""
        if self.is_system and verb != REFRESH:
            raise ConflictError(f"cannot {verb}: {self.name!r} is a system relation, which the engine writes itself")
        if self.closed or self.engine.is_closed:
            what = f"table {self.name!r}" if self.closed else "its engine"
            raise ConflictError(f"cannot {verb}: {what} is closed")

    @property
    def dropped(self) -> bool:
        """Whether there is no such table any more."""
        return self.engine.inputs.get(self.name) is not self

    def drop_error(self) -> ConflictError:
        """The error that a reader gets after it was dropped."""
        return ConflictError(f"table {self.name!r} was dropped")

    def error_at(self, epoch: int) -> TektiteError | None:
        """The error that a read at an epoch raises: none, because rows of a table do not fail."""
        return None

    def check(self) -> None:
        """Refuse to read a table that was dropped."""
        if self.dropped:
            raise self.drop_error()

    def check_usable(self) -> None:
        """Refuse to read a table that was dropped, or whose engine is closed."""
        if self.engine.is_closed:
            self.engine.check_running()
        self.check()

    def check_rows_kept(self) -> None:
        """Refuse to read the rows of a stream, which has none."""
        if self.is_stream:
            raise ConflictError(f"table {self.name!r} is a stream, which keeps no rows: install a view of it")

    def check_readable(self, epoch: int) -> None:
        """Refuse an epoch that is not closed, or can not be told apart from later ones any more."""
        check_time(epoch, f"table {self.name!r}: ")
        self.check_rows_kept()
        since = min((t[0] for t in self.trace.since()), default=0)
        if epoch < since or (epoch >= self.low and not self.closed):
            remedy = "engine.hold keeps earlier times readable" if epoch < since else "that time is not closed yet"
            raise IncorrectError(
                f"table {self.name!r} can be read at times {since} to {self.low - 1}, not at {epoch}; {remedy}"
            )

    def release(self) -> None:
        """Let go of everything it holds, for good."""
        self.end_feeds()
        self.closed = True
        self.engine.writes.forget(self)
        self.engine.scheduled.forget(self)
        if self.hold is not None:
            self.hold.drop()

    def end_feeds(self) -> None:
        """End all subscriptions."""
        for feed in list(self.feeds):
            feed.end()

    # ------------------------------------------------------------------ writing

    @guarded
    def write(self, data: Any, time: int | None, diff: int, verb: str, into: WriteSet | None = None) -> None:
        """Put rows to insert (`diff` 1) or to remove (-1) into a write set (the engine's, where left out): at `time`, or in the
        epoch that its commit closes.
        """
        self.check_open(verb)
        epoch = self.low if time is None else self._time(time)
        memory = self.engine.memory
        if memory is None or is_small(data):
            self._write_part(data, epoch, diff, into)
            return
        found: list[tuple[Chunk, int]] = []
        for start, part in row_slices(data, memory.piece_rows(sum(self.update_shape))):
            if start:
                # What is written so far is sorted and takes less memory, or none.
                found = [(memory.placed(consolidate([chunk], self.update_shape, 0)), last) for chunk, last in found]
            one = WriteSet()
            try:
                self._write_part(part, epoch, diff, one)
            except IncorrectError as error:
                if start:
                    error.args = (f"{error}; rows are counted from row {start} of the data on",)
                raise
            found += one.updates.get(self, ())
        if found:
            pending = (into or self.engine.writes).of(self)
            for chunk, last in found:
                pending.add(chunk, last)

    def _write_part(self, data: Any, epoch: int, diff: int, into: WriteSet | None) -> None:
        if diff < 0 and self.semantics == "upsert":
            words = encode_keys(self, data)
        else:
            words = encode(self, data)
        rows = words.shape[1]
        if not rows:
            return
        words = with_equal_keys(self, words)
        self._check_rows(words, diff)
        if self.semantics == "bag":
            self._bag(into, words, epoch, diff)
        else:
            self._keyed(into, words, epoch, 1 if diff > 0 else 0)

    def declare(self, declared: InputDescription) -> None:
        """Check rows from here on as a declaration says, which has the same columns and the same key."""
        schema = declared.schema
        self.declared = declared
        required = (*self._keyed_columns, *(schema.index(column) for column in declared.required))
        self.rules = Rules(
            self.name, schema, self.semantics, self.columns, required, declared.append,
            len(self.lead) if declared.unique else 0, declared.checked and not declared.stream,
        )  # fmt: skip
        self._checks: RowChecks | None = None
        if declared.checks:
            self._checks = RowChecks(self.name, schema, declared.checks, self.engine.dictionary)
        self.is_simple = self.semantics == "bag" and not declared.uniques and self.engine.workers == 1
        """Whether an epoch of a few of its rows is closed by `small_epoch`."""
        self._checks_batches = self.rules.checked
        self._checks_rows = bool(self.rules.append or self.rules.required or declared.checks)
        self.few_columns = few_columns(self, required)
        """What `write_few` knows of its columns."""

    def _check_rows(self, words: Words, diffs: Words | int) -> None:
        """Refuse rows that the declaration does not allow, whatever others there are."""
        if not self._checks_rows:
            return
        self.rules.check_rows(words, diffs)
        if self._checks is not None:
            self._checks.check_rows(words, diffs)

    @guarded
    def begin_with(self, data: Any, at_once: bool = False) -> None:
        """Rows that a new input holds from the start, as if the last closed epoch had brought them: a query that is
        installed next answers with them at once. Before any epoch has closed they wait for the first one to close; with
        `at_once` they are that epoch, and it closes for this input.
        """
        if self.trace.rows or self.engine.writes.rows(self) or self.engine.scheduled.rows(self):
            raise ConflictError(f"table {self.name!r} has begun already")
        self.low = max(self.low - 1, 0)
        target = max(self.engine.epoch, int(at_once))
        writes = WriteSet() if target > self.low else self.engine.scheduled
        self.write(data, None, 1, "insert", writes)
        if target > self.low:
            self.engine.close_epochs([self], target, writes)

    @guarded
    def update(self, data: Any, times: Any = None, diffs: Any = None, into: WriteSet | None = None) -> None:
        """Put rows with times and multiplicities of their own into a write set."""
        self.check_open("update")
        if self.semantics != "bag" and diffs is not None:
            raise IncorrectError(
                f"table {self.name!r} has mode {self.semantics!r}: diffs are for bags; use insert and remove"
            )
        words = encode(self, data)
        rows = words.shape[1]
        by = None if diffs is None else integers(self, diffs, rows, "diffs")
        if by is not None and is_beyond(by, LARGEST_DIFF):
            raise IncorrectError(f"table {self.name!r}: a diff is at most {LARGEST_DIFF}, so that sums of them fit")
        at = None if times is None else integers(self, times, rows, "times")
        if rows and at is not None and at.min() < self.low:
            late = int(at[at < self.low][0])
            raise IncorrectError(f"table {self.name!r}: time {late} is before the open epoch {self.low}")
        if rows and at is not None:
            check_time(int(at.max()), f"table {self.name!r}: ")
        self._take(into, words, by, at)

    @guarded
    def update_words(
        self, words: Words, diffs: Words | None = None, *, times: Words | None = None, into: WriteSet | None = None
    ) -> None:
        """`update` with rows that are encoded already (columns x rows). The dictionary has their texts, and the caller has seen
        to that they stay: see `Dictionary.adding` and `Dictionary.pin`.

        The words are not copied and must stay as they are. In a set or upsert input a positive diff puts its row and
        another one removes it, in the order given.
        """
        self.check_open("update")
        self._take(into, words, diffs, times)

    def _take(self, into: WriteSet | None, words: Words, diffs: Words | None, times: Words | None) -> None:
        """Put encoded updates into a write set."""
        rows = words.shape[1]
        if not rows:
            return
        words = with_equal_keys(self, words)
        self._check_rows(words, 1 if diffs is None else diffs)
        if self.semantics != "bag":
            puts = None if diffs is None else (diffs > 0).astype(np.int64)
            self._keyed(into, words, self.low, 1, times, puts)
        else:
            self._bag(into, words, self.low, 1, times, diffs)

    def _bag(
        self,
        into: WriteSet | None,
        words: Words,
        epoch: int,
        diff: int,
        times: Words | None = None,
        diffs: Words | None = None,
    ) -> None:
        """Add updates, each with its own time and diff or all with the same. The words stay where they are."""
        words = np.ascontiguousarray(words)
        at = _NONE if times is None else times.copy()
        by = _NONE if diffs is None else diffs.copy()
        rows = _arriving_rows(words, self._column_order, at, by, epoch, diff)
        rows.memory = (words, at, by)
        pending = (into or self.engine.writes).of(self)
        pending.add(rows, epoch if times is None else int(at.max()))

    def equal_words(self, data: Any) -> Words:
        """The words of rows, by which they are told apart."""
        return with_equal_keys(self, encode(self, data))

    def _keyed(
        self,
        into: WriteSet | None,
        words: Words,
        epoch: int,
        put: int,
        times: Words | None = None,
        puts: Words | None = None,
    ) -> None:
        """Add operations with their order of arrival, each with its own time and kind or all with the same. The words stay
        where they are.
        """
        words = np.ascontiguousarray(words)
        rows = words.shape[1]
        arrivals = np.arange(self._arrivals, self._arrivals + rows)
        self._arrivals += rows
        at = _NONE if times is None else np.array(times)
        kinds = _NONE if puts is None else puts
        keys = np.array(self.operation_keys, np.int64)
        head = arriving_operations(words, keys, self._values, at, arrivals, kinds, epoch, put)
        pending = (into or self.engine.writes).of(self)
        pending.add(Chunk(head, (words, at, arrivals, kinds)), epoch if times is None else int(at.max()))

    def _time(self, time: int) -> int:
        check_time(time, f"table {self.name!r}: ")
        if time < self.low:
            raise IncorrectError(f"table {self.name!r}: time {time} is before the open epoch {self.low}")
        return int(time)

    # ------------------------------------------------------------------ closing epochs

    @guarded
    def advance(self, to: int | None = None) -> int:
        """Close its epochs before `to` (the open one, where left out); the last one of them."""
        self.check_open("advance")
        self.engine.check_no_transaction()
        self.engine.check_no_callback()
        to = self.low + 1 if to is None else self._time(to)
        self.engine.close_epochs([self], to, self.engine.writes)
        return self.low - 1

    @guarded
    def close(self) -> None:
        """End it, behind the last epoch that it has updates of."""
        self.check_open("close again")
        self.engine.check_no_transaction()
        self.engine.check_no_callback()
        writes = self.engine.writes
        waiting = [*writes.updates.get(self, ()), *self.engine.scheduled.updates.get(self, ())]
        to = max([self.low, *(last + 1 for _, last in waiting)])
        self.engine.close_epochs([self], to, writes, ending=self)

    def prepare(self, high: int, writes: WriteSet, at: int | None = None) -> PreparedInput:
        """Computes what closing the epochs before `high` would make of the input, as it is or as it was `at` a time, with the
        updates of a write set. Nothing changes.
        """
        pending, adopted = writes.updates.get(self), writes.adopted.get(self)
        now, later = ([], []) if pending is None else split_at_epoch(pending.chunks, high, self._epoch_column)
        left = PendingUpdates(self.update_shape, later, self.engine.memory) if later else None
        scheduled = None if at is not None else self.engine.scheduled.updates.get(self)
        postponed = None
        if scheduled is not None and adopted is None:
            due, rest = split_at_epoch(scheduled.chunks, high, self._epoch_column)
            now = [*due, *now]
            postponed = PendingUpdates(self.update_shape, rest, self.engine.memory) if rest else None
        if adopted is None:
            found = batches_of(self, now, at)
            if self.declared.uniques:
                check_unique_keys(self, found, at)
            return PreparedInput(self, high, found, left, [], [], postponed=postponed)
        if now or adopted.writes not in (None, self.writes):
            raise ConflictError(f"table {self.name!r} was written to meanwhile: load it again")
        batches, more, files = self._as_of(adopted, high)
        if self._checks is not None or self.declared.uniques:
            self._check_adopted([*batches, *(batch for _, batch in more)])
        return PreparedInput(self, high, batches, left, more, files, adopted=True)

    def _check_adopted(self, batches: Batches) -> None:
        """Refuse rows that others have encoded, sorted and stored, for what they do not check."""
        width = len(self.columns)
        for batch in batches:
            if batch is not None and batch.n and self._checks is not None:
                words = batch.to_array()
                rows = np.empty((width, words.shape[1]), np.int64)
                rows[list(self.columns)] = words[:width]
                self._checks.check_rows(rows, words[width + 1])
        if self.declared.uniques:
            check_unique_keys(self, batches)

    def _checked_batch(self, batch: Chunk) -> None:
        """Refuse a sorted batch of the only shard that the declaration does not allow."""
        self.rules.check_batch(batch, self.trace.version(0).table, self.engine.dictionary)

    def settle(self) -> None:
        """Do the merging that new batches pay for."""
        trace = self.trace
        if trace.shards == 1:
            trace.settle(0)
        else:
            self.engine.each_shard(lambda shard, _: trace.settle(shard), 0 if self.is_stream else trace.rows)

    def changes_by(self, writes: WriteSet, at: int) -> tuple[Words, Words]:
        """The changes that a write set would make to the input as it was at a time: rows (columns x rows), and the diff of
        each. Updates that break the declaration are refused. Nothing changes.
        """
        batches = self.prepare(self.low + 1, writes, at).batches
        width = len(self.columns)
        found = [batch.to_array() for batch in batches if batch is not None and batch.n]
        words = np.concatenate(found, axis=1) if found else np.empty((width + 2, 0), np.int64)
        rows = np.empty((width, words.shape[1]), np.int64)
        rows[list(self.columns)] = words[:width]
        return rows, words[width + 1]

    @guarded
    def words(self, at: int | None, lead: int | None = None, rows: int | None = None) -> Words:
        """Its rows as of a closed epoch (the last one, where left out), with time and multiplicity behind the data columns; those
        alone whose first column in its own order is the word `lead`; or at least `rows` of them.
        """
        self.check_usable()
        self.check_rows_kept()
        epoch = self.low - 1 if at is None else at
        if at is not None:
            self.check_readable(at)
        if not self.low:
            return np.empty((len(self.columns) + 2, 0), np.int64)
        if rows is not None:
            found = read_first(self.trace, epoch, rows)
        else:
            found = read_version(self.trace, epoch) if lead is None else read_lead(self.trace, epoch, lead)
        return in_schema_order(found, self.columns)

    def version(self, shard: int, at: int | None = None) -> Version:
        """The version that a shard holds, or held at a time that is still readable."""
        version = self.trace.version(shard)
        if at is None or at >= self.changed:
            return version
        return Version(tuple(split_at(batch, self.trace.data, at + 1)[0] for batch in version.batches))

    def changed_since(self, epoch: int, pending: PendingUpdates) -> int:
        """Counts the keys that some operations write, or the rows that some updates of a bag remove, which others have changed
        in later epochs.
        """
        bag = self.semantics == "bag"
        keys = len(self.columns) if bag else len(self.operation_keys)
        recent = [
            split_at(batch, self.trace.data, epoch + 1)[1]
            for shard in range(self.trace.shards)
            for batch in self.trace.version(shard).batches
        ]
        both = []
        for chunks in (
            [Chunk(batch.head, batch.memory) for batch in recent if batch.n],
            [chunk for chunk, _ in pending],
        ):
            arrays = [chunk.to_array() for chunk in chunks]
            found = [array[:keys, array[-1] < 0] if bag else array[:keys] for array in arrays]
            if not found:
                return 0
            both.append(np.unique(np.concatenate(found, axis=1), axis=1))
        together = np.concatenate(both, axis=1)
        return int(together.shape[1] - np.unique(together, axis=1).shape[1])

    def current_rows(self, rows: Words) -> Words:
        """The rows that a set or an upsert input holds under the keys of some rows (columns x rows), in closed epochs."""
        keys = np.array(self.operation_keys, np.int64)
        rows, nothing = np.ascontiguousarray(rows), np.zeros(rows.shape[1], np.int64)
        head = arriving_operations(rows, keys, self._values, _NONE, nothing, nothing, self.low, 1)
        everywhere = Version(tuple(b for shard in range(self.trace.shards) for b in self.trace.version(shard).batches))
        (changes,) = net_changes([Chunk(head, (rows, nothing))], len(keys), len(self._values), everywhere)
        gone = changes.to_array()
        found = np.empty((len(self.columns), gone.shape[1]), np.int64)
        found[[*keys, *self._values]] = gone[: len(self.columns)]
        return found

    def _as_of(self, adopted: AdoptedRows, high: int) -> tuple[Batches, list[tuple[int, Chunk]], list[FileInfo]]:
        """Adopted rows, and their files; as of the epoch that is open, if others have closed the one they were made for. Files
        that say another epoch are of no use then.
        """
        if (adopted.low, adopted.epoch) == (self.low, high - 1):
            return list(adopted.batches), list(adopted.more), adopted.files
        width = len(self.columns)
        spec = column_spec([*range(width), -1, width + 1], (high - 1,))
        batches = [None if batch is None else batch.select(spec) for batch in adopted.batches]
        return batches, [(shard, batch.select(spec)) for shard, batch in adopted.more], []
