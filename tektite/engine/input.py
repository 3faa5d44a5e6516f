"""Input: a collection that changes from outside, and the epochs in which it does.

Updates are buffered until their epoch is closed. Closing checks them, sorts them, and mints them as one batch into the input's
base arrangement, however many epochs the batch covers. A call that fails changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from tektite.dataflow.arrange import consolidate
from tektite.dataflow.flow import last_closed
from tektite.dataflow.graph import Outbox
from tektite.engine.constraints import Rules, check_time
from tektite.engine.lock import guarded
from tektite.engine.pending_updates import Pending, resolved
from tektite.errors import ConflictError, IncorrectError, TektiteError
from tektite.kernels.layout.input_heads import arriving_operations, arriving_rows
from tektite.kernels.seek.route import route, split_epoch
from tektite.plan import algebra as plan
from tektite.query.collection import Collection
from tektite.storage.batchfile import FileInfo, Rows
from tektite.storage.description import InputDescription
from tektite.trace.batch import Batch
from tektite.trace.chunk import Chunk, column_spec
from tektite.trace.spine import Version
from tektite.trace.trace import Hold, Trace
from tektite.values import types
from tektite.values.words import Words, float_keys

if TYPE_CHECKING:
    from tektite.engine.engine import Engine

LARGEST_DIFF = 2**48

Batches = list[Chunk | None]

_NONE: Words = np.empty(0, np.int64)
_FEW = 16
"""Numbers up to which Python finds the largest before NumPy has begun."""


def _beyond(numbers: Words, most: int) -> bool:
    """Whether one of the numbers is more than `most` away from 0."""
    if len(numbers) <= _FEW:
        return any([abs(number) > most for number in numbers.tolist()])
    return max(int(numbers.max()), -int(numbers.min())) > most


@dataclass(frozen=True)
class Adopted:
    """Rows of one epoch that are sorted, sharded and in files already: the files' batches cover low to epoch. `more` are
    further batches of some shards. `writes` is the input's count when others looked at what it holds, if they did.
    """

    batches: Batches
    more: list[tuple[int, Chunk]]
    files: list[FileInfo]
    low: int
    epoch: int
    writes: int | None = None


class Input(Collection):
    """A changing collection that the program writes to. Made by `Engine.input`.

    >>> import tektite as tk
    >>> engine = tk.Engine()
    >>> prices = engine.input("prices", key=["item"], semantics="upsert", item=tk.String, price=tk.Int)
    >>> prices.insert([("tea", 3), ("salt", 1)])
    >>> engine.advance()
    1
    >>> prices.insert([("tea", 4)])
    >>> engine.advance()
    2
    >>> sorted(engine.install("all", prices).rows())
    [('salt', 1), ('tea', 4)]
    """

    first = 0
    is_stored = True
    """Whether a storage keeps it; what a language needs for itself is made anew each time."""
    engine: Engine
    failure: TektiteError | None = None
    flow = None

    def __init__(self, engine: Engine, name: str, declared: InputDescription, epoch: int) -> None:
        self.name = name
        self.declared = declared
        self.semantics = declared.semantics
        self.is_stream = declared.stream
        self.low = epoch
        self.closed = declared.closed
        schema = declared.schema
        super().__init__(engine, plan.Read(schema, self))
        width = len(schema.names)
        self.lead = lead = tuple(schema.index(column) for column in declared.key)
        self.key_columns = tuple(range(width)) if self.semantics == "set" else lead
        keyed = lead if declared.unique or self.semantics == "upsert" else ()
        told_apart = self.key_columns if self.semantics == "set" else keyed
        self.float_keys = tuple(column for column in told_apart if schema.types[column] == types.Float)
        self.columns = declared.order
        required = (*keyed, *(schema.index(column) for column in declared.required))
        self.rules = Rules(
            name, schema, self.semantics, self.columns, required, declared.append, len(lead) if declared.unique else 0,
            declared.checked and not declared.stream,
        )  # fmt: skip
        # Queries need few columns of a stream and exchange those; its rows stay where they come in.
        self.sharded_by = 0 if self.is_stream else declared.sharded_by
        self.trace = Trace(width, 1, 1, engine.workers, engine.merging)
        self.hold = None if self.is_stream else Hold(self.trace, last_closed(self))
        self._order = np.array(self.columns, np.int64)
        self._pending = Pending((width + (0 if self.semantics == "bag" else 3), 1, 1))
        self._adopted: Adopted | None = None
        self._arrivals = 0
        self.writes = 0
        """How often its contents have changed since the engine began."""

    @property
    def lock(self) -> Any:
        """The engine's, which guards everything that changes it."""
        return self.engine.lock

    @property
    def epoch(self) -> int:
        """The open epoch: the earliest time that an update may still have."""
        return self.low

    @property
    def unique(self) -> tuple[int, ...] | None:
        """The columns that tell its rows apart, if its declaration says that some do."""
        if self.declared.unique:
            return self.lead
        return None if self.semantics == "bag" else self.key_columns

    is_single = False
    """Whether it always holds exactly one row, which moves: the time of an SQL session does."""

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
    def pending(self) -> int:
        """Updates that wait for their epoch to close."""
        return self._pending.rows

    @property
    def is_due(self) -> bool:
        """Whether an update waits for the open epoch, rather than a later one."""
        return any(chunk.n for chunk in self._due(self.low + 1)[0])

    # ------------------------------------------------------------------ writing

    @guarded
    def insert(self, data: Any, *, time: int | None = None) -> None:
        """Add rows: tuples, dicts, columns, NumPy arrays, Arrow tables or pandas frames.

        In an upsert input a row replaces the one that has its key; in a set input a row that is there already stays as it is.
        """
        self._write(data, time, 1, "insert")

    @guarded
    def begin_with(self, data: Any) -> None:
        """Rows that a new input holds from the start, as if the last closed epoch had brought them: a query that is
        installed next answers with them at once. Before any epoch has closed they wait for the first one to close.
        """
        if self.trace.rows or self.pending:
            raise ConflictError(f"input {self.name!r} has begun already")
        self.low = max(self.low - 1, 0)
        self.insert(data)
        if self.engine.epoch > self.low:
            self.engine.close_epochs({self: self.engine.epoch})

    @guarded
    def remove(self, data: Any, *, time: int | None = None) -> None:
        """Take rows away. In an upsert input the key columns alone decide, and `data` may hold only those."""
        self._write(data, time, -1, "remove")

    @guarded
    def update(self, data: Any, *, times: Any = None, diffs: Any = None) -> None:
        """Change multiplicities: row i by `diffs[i]` at epoch `times[i]` (by 1, in the open epoch, where left out).

        Times may come in any order and may lie ahead; each counts when its epoch closes. Diffs are for bag inputs.
        """
        self.check_open("update")
        if self.semantics != "bag" and diffs is not None:
            raise IncorrectError(
                f"input {self.name!r} has {self.semantics} semantics: diffs are for bag inputs; use insert and remove"
            )
        words = self._encode(data)
        rows = words.shape[1]
        by = None if diffs is None else self._integers(diffs, rows, "diffs")
        if by is not None and _beyond(by, LARGEST_DIFF):
            raise IncorrectError(f"input {self.name!r}: a diff is at most {LARGEST_DIFF}, so that sums of them fit")
        at = None if times is None else self._integers(times, rows, "times")
        if rows and at is not None and at.min() < self.low:
            late = int(at[at < self.low][0])
            raise IncorrectError(f"input {self.name!r}: time {late} is before the open epoch {self.low}")
        if rows and at is not None:
            check_time(int(at.max()), f"input {self.name!r}: ")
        self._take(words, by, at)

    @guarded
    def update_words(self, words: Words, diffs: Words | None = None, *, times: Words | None = None) -> None:
        """`update` with rows that are encoded already (columns x rows); the dictionary has their texts.

        The words are not copied and must stay as they are. In a set or upsert input a positive diff puts its row and
        another one removes it, in the order given.
        """
        self.check_open("update")
        self._take(words, diffs, times)

    def _take(self, words: Words, diffs: Words | None, times: Words | None) -> None:
        """Buffer encoded updates."""
        rows = words.shape[1]
        if not rows:
            return
        words = self._with_equal_keys(words)
        self.rules.check_rows(words, 1 if diffs is None else diffs)
        if self.semantics != "bag":
            self._keyed(words, self.low, 1, times, None if diffs is None else (diffs > 0).astype(np.int64))
        else:
            self._bag(words, self.low, 1, times, diffs)

    def _bag(self, words: Words, epoch: int, diff: int, times: Words | None = None, diffs: Words | None = None) -> None:
        """Buffer updates, each with its own time and diff or all with the same. The words stay where they are."""
        words = np.ascontiguousarray(words)
        at = _NONE if times is None else np.array(times)
        by = _NONE if diffs is None else np.array(diffs)
        head = arriving_rows(words, self._order, at, by, epoch, diff)
        self._pending.add(Chunk(head, (words, at, by)), epoch if times is None else int(at.max()))

    def _write(self, data: Any, time: int | None, diff: int, verb: str) -> None:
        self.check_open(verb)
        epoch = self.low if time is None else self._time(time)
        if diff < 0 and self.semantics == "upsert":
            words = self._encode_keys(data)
        else:
            words = self._encode(data)
        rows = words.shape[1]
        if not rows:
            return
        words = self._with_equal_keys(words)
        self.rules.check_rows(words, diff)
        if self.semantics == "bag":
            self._bag(words, epoch, diff)
        else:
            self._keyed(words, epoch, 1 if diff > 0 else 0)

    def _encode(self, data: Any) -> Words:
        """The words of rows; those of a NumPy array of integers, which are as they are, are copied by all workers."""
        schema, shards = self.schema, self.trace.shards
        ints = schema.int_columns(data) if shards > 1 else None
        if ints is None:
            return schema.encode(data, self.engine.dictionary)
        rows = ints.shape[1]
        words = np.empty(ints.shape, np.int64)

        def work(worker: int, _: Outbox) -> None:
            schema.encode_ints(ints, words, rows * worker // shards, rows * (worker + 1) // shards)

        self.engine.each_shard(work, rows)
        return words

    def _with_equal_keys(self, words: Words) -> Words:
        """Rows with -0.0 as 0.0 in the columns that tell rows apart, since the two are equal."""
        for column in self.float_keys:
            keys = float_keys(words[column])
            if not np.array_equal(keys, words[column]):
                words = words.copy()
                words[column] = keys
        return words

    def _encode_keys(self, data: Any) -> Words:
        """Rows to remove from an upsert input: whole rows, or keys alone. Other columns become NULL."""
        keys = self.schema.select(*(self.schema.names[c] for c in self.key_columns))
        if not hasattr(data, "__len__"):
            data = list(data)
        try:
            words = self.schema.encode(data, self.engine.dictionary)
        except TektiteError as error:
            try:
                found = keys.encode(data, self.engine.dictionary)
            except TektiteError:
                raise error from None
            words = np.full((len(self.schema.names), found.shape[1]), -(2**63), np.int64)
            words[list(self.key_columns)] = found
        return words

    def _keyed(self, words: Words, epoch: int, put: int, times: Words | None = None, puts: Words | None = None) -> None:
        """Buffer operations with their order of arrival, each with its own time and kind or all with the same. The words stay
        where they are.
        """
        words = np.ascontiguousarray(words)
        rows = words.shape[1]
        arrivals = np.arange(self._arrivals, self._arrivals + rows)
        self._arrivals += rows
        at = _NONE if times is None else np.array(times)
        kinds = _NONE if puts is None else puts
        keys = np.array(self._operation_keys(), np.int64)
        values = np.array([c for c in self.columns if c not in self._operation_keys()], np.int64)
        head = arriving_operations(words, keys, values, at, arrivals, kinds, epoch, put)
        self._pending.add(Chunk(head, (words, at, arrivals, kinds)), epoch if times is None else int(at.max()))

    def _time(self, time: int) -> int:
        check_time(time, f"input {self.name!r}: ")
        if time < self.low:
            raise IncorrectError(f"input {self.name!r}: time {time} is before the open epoch {self.low}")
        return int(time)

    def _integers(self, values: Any, rows: int, what: str) -> Words:
        found = np.asarray(values)
        if found.ndim == 0:
            found = np.full(rows, found)
        if found.shape != (rows,):
            raise IncorrectError(f"input {self.name!r}: {rows} rows, but {what} has shape {found.shape}")
        if rows and found.dtype.kind not in "iu":
            raise IncorrectError(f"input {self.name!r}: {what} must be integers, not {found.dtype}")
        if found.dtype == np.uint64 and rows and found.max() > np.iinfo(np.int64).max:
            raise IncorrectError(f"input {self.name!r}: {what} must fit into 64 bits; found {found.max()}")
        return found.astype(np.int64, copy=False)

    def check_open(self, verb: str) -> None:
        """Refuse to do something to an input that has ended."""
        if self.closed or self.engine.is_closed:
            what = f"input {self.name!r}" if self.closed else "its engine"
            raise ConflictError(f"cannot {verb}: {what} is closed")

    def release(self) -> None:
        """Let go of everything it holds, for good."""
        self.closed = True
        self.rollback()
        if self.hold is not None:
            self.hold.drop()

    def waiting(self) -> list[tuple[Chunk, int]]:
        """The updates that wait for their epoch to close, to go back to by `rollback`."""
        return list(self._pending)

    @guarded
    def rollback(self, to: Sequence[tuple[Chunk, int]] = ()) -> None:
        """Forget every update whose epoch has not been closed, but for those that were `waiting` earlier."""
        self._pending.replace(to)
        self._adopted = None

    @guarded
    def trial(self, writes: Sequence[tuple[str, Any]]) -> tuple[Words, Words]:
        """What some writes, each "insert" or "remove" and its data, would change in what the input holds: rows (columns x
        rows), and by how much each. What breaks the declaration is refused; nothing is kept, and what waits stays so.
        """
        before = self._pending, self._adopted
        self._pending, self._adopted = Pending(self._pending.shape), None
        try:
            for verb, data in writes:
                self._write(data, None, 1 if verb == "insert" else -1, verb)
            batches, _ = self.prepare(self.low + 1)
        finally:
            self._pending, self._adopted = before
        width = len(self.columns)
        found = [batch.to_array() for batch in batches if batch is not None and batch.n]
        words = np.concatenate(found, axis=1) if found else np.empty((width + 2, 0), np.int64)
        ordered = np.empty((width, words.shape[1]), np.int64)
        ordered[list(self.columns)] = words[:width]
        return ordered, words[width + 1]

    def adopt(self, adopted: Adopted) -> None:
        """Take rows that others have sorted, sharded and stored as the updates of the open epoch."""
        self.check_open("adopt files")
        if self.is_due or adopted.writes not in (None, self.writes):
            raise ConflictError(f"input {self.name!r} was written to meanwhile: load it again")
        self._adopted = adopted

    @property
    def adopted_files(self) -> list[FileInfo]:
        """The files that hold what the open epoch adds, if they say so of the epoch that is being closed."""
        adopted = self._adopted
        return adopted.files if adopted is not None and adopted.low == self.low else []

    def held(self, rows: Words) -> Words:
        """The rows that a set or an upsert input holds under the keys of some rows (columns x rows), in closed epochs."""
        keys = np.array(self._operation_keys(), np.int64)
        values = np.array([c for c in self.columns if c not in self._operation_keys()], np.int64)
        rows, nothing = np.ascontiguousarray(rows), np.zeros(rows.shape[1], np.int64)
        head = arriving_operations(rows, keys, values, _NONE, nothing, nothing, self.low, 1)
        everywhere = Version(tuple(b for shard in range(self.trace.shards) for b in self.trace.version(shard).batches))
        gone = resolved([Chunk(head, (rows, nothing))], len(keys), len(values), everywhere).to_array()
        found = np.empty((len(self.columns), gone.shape[1]), np.int64)
        found[[*keys, *values]] = gone[: len(self.columns)]
        return found

    # ------------------------------------------------------------------ time

    @guarded
    def advance(self, to: int | None = None) -> int:
        """Close this input's epochs before `to` (the open one, where left out); its new open epoch."""
        self.check_open("advance")
        to = self.low + 1 if to is None else self._time(to)
        self.engine.close_epochs({self: to})
        return self.low

    @guarded
    def close(self) -> None:
        """End the input: what it holds stays, and it holds nobody up any longer."""
        self.check_open("close again")
        to = max([self.low, *(last + 1 for _, last in self._pending)])
        self.engine.close_epochs({self: to}, ending=self)

    def prepare(self, high: int) -> tuple[Batches, list[tuple[Chunk, int]]]:
        """The batches that closing the epochs before `high` would mint, and what would stay pending."""
        now, later = self._due(high)
        if self._adopted is not None:
            if now:
                raise ConflictError(f"input {self.name!r} was written to meanwhile: load it again")
            return self._adopted_batches(self._adopted, high), later
        if not now:
            return [None] * self.trace.shards, later
        make = self._bag_batch if self.semantics == "bag" else self._keyed_batch
        if self.trace.shards == 1:
            return [make(0, now)], later
        pieces = self._by_shard(now)
        batches: Batches = [None] * self.trace.shards

        def work(shard: int, _: Outbox) -> None:
            if pieces[shard]:
                batches[shard] = make(shard, pieces[shard])

        passes = self.is_stream and len(now) == 1
        self.engine.each_shard(work, 0 if passes else sum(chunk.n for chunk in now))
        return batches, later

    def _due(self, high: int) -> tuple[list[Chunk], list[tuple[Chunk, int]]]:
        """The pending updates of epochs before `high`, and the others."""
        now = [chunk for chunk, last in self._pending if last < high]
        later: list[tuple[Chunk, int]] = []
        time_at = len(self.schema.names) if self.semantics == "bag" else len(self._operation_keys())
        for chunk, last in self._pending:
            if last >= high:
                buf, head, cut = split_epoch(chunk.at, time_at, high)
                parts = Chunk(head, (chunk.keep, buf))
                if cut:
                    now.append(parts.slice(0, int(cut)))
                if cut < chunk.n:
                    later.append((parts.slice(int(cut), chunk.n), last))
        return now, later

    def _adopted_batches(self, adopted: Adopted, high: int) -> Batches:
        """Adopted rows; as of the epoch that is open, if others have closed the one they were made for."""
        width = len(self.columns)
        batches = list(adopted.batches)
        if (adopted.low, adopted.epoch) != (self.low, high - 1):
            spec = column_spec([*range(width), -1, width + 1], (high - 1,))
            batches = [None if batch is None else batch.select(spec) for batch in batches]
            more = [(shard, batch.select(spec)) for shard, batch in adopted.more]
            self._adopted = Adopted(batches, more, [], self.low, high - 1)
        return batches

    def _operation_keys(self) -> tuple[int, ...]:
        return self.key_columns if self.semantics == "upsert" else self.columns

    def _by_shard(self, chunks: list[Chunk]) -> list[list[Chunk]]:
        """The rows of each shard; every worker routes its share of each chunk. A stream's shares stay as they are."""
        shards = self.trace.shards
        if self.is_stream:
            return [
                [chunk.slice(chunk.n * shard // shards, chunk.n * (shard + 1) // shards) for chunk in chunks]
                for shard in range(shards)
            ]
        key = np.arange(self.sharded_by, dtype=np.int64)
        parts: list[list[list[Chunk]]] = [[[] for _ in range(shards)] for _ in range(shards)]

        def work(worker: int, _: Outbox) -> None:
            for chunk in chunks:
                share = chunk.slice(chunk.n * worker // shards, chunk.n * (worker + 1) // shards)
                if share.n:
                    buf, head, offsets = route(share.at, key, shards)
                    routed = Chunk(head, (chunk.keep, buf))
                    for shard, (start, stop) in enumerate(pairwise(offsets.tolist())):
                        if stop > start:
                            parts[shard][worker].append(routed.slice(start, stop))

        self.engine.each_shard(work, sum(chunk.n for chunk in chunks))
        return [[chunk for worker in workers for chunk in worker] for workers in parts]

    def _bag_batch(self, shard: int, chunks: list[Chunk]) -> Chunk:
        if self.is_stream and len(chunks) == 1:
            # Nobody looks anything up in a stream, so its rows may pass in the order in which they came.
            return chunks[0]
        batch = consolidate(chunks, (len(self.columns), 1, 1), self.low)
        self.rules.check_batch(batch, self.trace.version(shard).table, self.engine.dictionary)
        return batch

    def _keyed_batch(self, shard: int, chunks: list[Chunk]) -> Chunk:
        keys = len(self._operation_keys())
        values = len(self.columns) - keys
        changes = resolved(chunks, keys, values, self.trace.version(shard))
        batch = consolidate([changes], (keys + values, 1, 1), self.low)
        self.rules.check_batch(batch, self.trace.version(shard).table, self.engine.dictionary)
        return batch

    def commit(self, high: int, batches: Batches, later: list[tuple[Chunk, int]]) -> None:
        """Mint what `prepare` made and open epoch `high`."""

        def mint(shard: int, _: Outbox) -> None:
            batch = batches[shard]
            if batch is not None and batch.n:
                self.trace.mint(shard, batch.head, batch.keep, ((high,),))

        if self._adopted is not None or any([batch is not None and batch.n for batch in batches]):
            self.writes += 1
        if len(batches) == 1:
            mint(0, [])
        else:
            rows = sum([batch.n for batch in batches if batch is not None])
            self.engine.each_shard(mint, 0 if self.is_stream else rows)
        for shard, batch in self._adopted.more if self._adopted is not None else ():
            self.trace.mint(shard, batch.head, batch.keep, ((high,),))
        self._pending.replace(later)
        self._adopted = None
        self.low = high

    # ------------------------------------------------------------------ storage

    def describe(self) -> InputDescription:
        """How it was declared, for a manifest."""
        return replace(self.declared, checked=self.rules.checked, closed=self.closed)

    def stored(self, batches: Batches, high: int) -> list[Rows]:
        """The batches that `prepare` made, as they go into a file. A stream's are not kept."""
        if self.is_stream or self.adopted_files:
            return []
        low, upper = ((self.low,),), ((high,),)
        more = [] if self._adopted is None else self._adopted.more
        return [
            Rows(self.name, shard, (len(self.columns), 1, 1), Batch(batch.head, batch.keep, low, upper, low))
            for shard, batch in [*enumerate(batches), *more]
            if batch is not None and batch.n
        ]
