"""Arrange sorts updates into a trace; readers give other operators its versions and changes.

Arrange buffers updates until their moment comes, then sorts and consolidates them into one batch per shard and moment, however
many logical times the batch covers. The buffer consolidates as it grows. Its memory is proportional to the number of distinct
updates, not to the number received.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, lru_cache, partial
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from tektite.dataflow.away import LONG
from tektite.dataflow.graph import Moment, Outbox, Scope, common_guard
from tektite.dataflow.node import Node
from tektite.errors import IncorrectError
from tektite.expr.guards import Guard
from tektite.kernels.ready import calls
from tektite.kernels.seek.moments import partition_moments
from tektite.kernels.seek.route import route
from tektite.kernels.sort.build import build
from tektite.kernels.sort.combined import FEW_EQUAL, combine
from tektite.trace.addresses import addresses
from tektite.trace.batch import Batch
from tektite.trace.batch_memory import FEW_ROWS, BatchMemory
from tektite.trace.chunk import Chunk, Consolidated, returning_chunks
from tektite.trace.merge import DiffOverflow, merge_all
from tektite.trace.records import Version
from tektite.trace.trace import Handle, Trace
from tektite.values.shared_values import shared
from tektite.values.words import Words

build_rows = returning_chunks(build, rows=Consolidated)
"""The rows at some addresses, sorted and consolidated."""
combine_rows = returning_chunks(combine)
"""The rows at some addresses, each once, in no order."""
partition_chunk = returning_chunks(partition_moments, "rvm")
"""The rows of a chunk by moment: a chunk, where each part begins, and the moments. Columns may stay where they are."""

TOO_LARGE = "a multiplicity or a sum does not fit into 64 bits"

CONSOLIDATE_AT = 1 << 17
"""Rows that a buffer receives before it first consolidates: two or three chunks of a join, well within the L2 cache."""


EVERYTHING = 1 << 62
"""More rows than there are."""
COMBINE_FROM = 4096
"""Rows of a chunk from which on it is tried whether many are equal."""
ASKED = 1 << 16
"""Of a chunk with more rows an eighth, and at least so many, are looked at first, where rows change shards."""
TRY_ONE_OF = 64
"""Of so many chunks one is tried while few of their rows are equal: about one percent of the work of sorting them."""


_NOTHING: dict[Moment, list[list[Chunk]]] = {}
_NOTHING_RAW: dict[tuple[Moment, int], tuple[int, int]] = {}
"""What empty buffers have in common. Nobody adds to it."""


if TYPE_CHECKING:

    class Buffering:
        """The part of every buffer that is written in C, for few rows; see native/nodes.c."""

        def add(self, shard: int, chunk: Chunk, moment: Moment) -> None:
            """Add a chunk. Many rows and many chunks are counted, by `_count`."""

    class Arranging:
        """The part of an `ArrangeNode` that is written in C, for few rows; see native/nodes.c."""

        def receive(self, shard: int, chunk: Chunk, moment: Moment) -> None:
            """Buffer a chunk and schedule the node."""

        def run(self, moment: Moment) -> None:
            """Sort what waits at a moment, append it to the trace as a batch, and wake its readers."""

else:
    Buffering = calls().Buffering
    Arranging = calls().Arranging


class Buffer(Buffering):
    """Updates of one shape that wait at a node, by moment and shard."""

    # There is one for each of ten thousand small views.
    __slots__ = ("_full", "_most", "_raw", "_waiting", "flow", "shape", "shards")

    def __init__(self, node: Node, data: int, diffs: int = 1, shards: int | None = None) -> None:
        self.flow = node.flow
        self.shards = node.shards if shards is None else shards
        self.shape = shared((data, node.times, diffs))
        self._waiting = _NOTHING
        self._raw = _NOTHING_RAW
        self._full: tuple[tuple[Moment, int], ...] = ()
        memory = self.flow.memory
        self._most = EVERYTHING if memory is None else memory.piece_rows(sum(self.shape))
        """Rows that may wait unsorted, however many are sorted."""
        node.buffers += (self,)

    def __getstate__(self) -> tuple[None, dict[str, Any]]:
        kept = {name: getattr(self, name) for name in ("_most", "flow", "shape", "shards")}
        return None, kept | {"_waiting": {}, "_raw": {}, "_full": ()}

    def _count(self, shard: int, chunk: Chunk, moment: Moment) -> None:
        """Count a chunk that was added. Once the rows added since the last consolidation outnumber those left by it, mark the
        buffer as full.
        """
        kept, raw = self._raw.get((moment, shard), (0, 0))
        raw += chunk.n
        if self._raw is _NOTHING_RAW:
            self._raw = {}
        self._raw[moment, shard] = (kept, raw)
        if len(self._waiting[moment][shard]) > 1 and raw > max(min(kept, self._most), CONSOLIDATE_AT):
            if not self._full:
                self.flow.full_buffers += (self,)
            if (moment, shard) not in self._full:
                self._full += ((moment, shard),)

    def _new(self, moment: Moment) -> list[list[Chunk]]:
        """The places of a moment for which there is nothing yet."""
        if self._waiting is _NOTHING:
            self._waiting = {}
        made: list[list[Chunk]] = [[]] if self.shards == 1 else [[] for _ in range(self.shards)]
        self._waiting[moment] = made
        return made

    def consolidations(self) -> list[Callable[[], None]]:
        """Independent tasks that together consolidate all full places."""
        full, self._full = sorted(self._full), ()
        return [partial(self.consolidate_at, *place) for place in full]

    def consolidate_at(self, moment: Moment, shard: int) -> None:
        """Consolidate the rows of one moment and shard."""
        chunks, memory = self._waiting[moment][shard], self.flow.memory
        built: list[Chunk]
        if memory is not None and sum([chunk.n for chunk in chunks]) > self._most:
            built = [*sorted_runs(chunks, self.shape, self.flow.reached, memory)]
        else:
            built = self._combined(chunks)
        self._waiting[moment][shard] = built
        self._raw[moment, shard] = (sum([chunk.n for chunk in built]), 0)

    def _combined(self, chunks: list[Chunk]) -> list[Chunk]:
        """The rows of some chunks, each once: unsorted if many are equal, since they are sorted with those that follow. If few
        are, all of them are sorted when their moment comes.
        """
        found: Chunk = combine_rows(addresses(chunks), *self.shape, self.flow.reached)
        if found.n == FEW_EQUAL:
            return chunks
        return [consolidate(chunks, self.shape, self.flow.reached) if found.n < 0 else found]

    def put(self, shard: int, chunk: Chunk, moment: Moment) -> None:
        """Add a chunk that needs no consolidation here."""
        (self._waiting.get(moment) or self._new(moment))[shard].append(chunk)

    def waiting(self, moment: Moment) -> list[list[Chunk]]:
        """The chunks of a moment, by shard. They stay in the buffer."""
        return self._waiting.get(moment, [])

    def gathered(self, moment: Moment, shard: int) -> list[Chunk]:
        """The rows of a moment and shard as one chunk, which does not depend on the order of their arrival."""
        chunks = self._waiting[moment][shard]
        return [consolidate(chunks, self.shape, self.flow.reached, self.flow.memory)] if chunks else []

    @property
    def bytes(self) -> int:
        """About what its rows take."""
        waiting = [chunk for by_shard in self._waiting.values() for chunks in by_shard for chunk in chunks]
        return sum([chunk.bytes for chunk in waiting])

    def moments(self) -> list[Moment]:
        """The moments for which there are rows, in order."""
        return sorted(self._waiting)

    def take(self, moment: Moment) -> list[list[Chunk]] | None:
        """Remove and return the chunks of a moment, by shard."""
        if self._raw:
            for shard in range(self.shards):
                self._raw.pop((moment, shard), None)
        taken = self._waiting.pop(moment, None)
        if not self._waiting:
            self._waiting = _NOTHING  # an emptied dict keeps its table
        return taken

    def take_shard(self, shard: int, moment: Moment) -> list[Chunk]:
        """Remove and return the chunks of a moment for one shard."""
        waiting = self._waiting.get(moment)
        if waiting is None:
            return []
        chunks, waiting[shard] = waiting[shard], []
        self._raw.pop((moment, shard), None)
        return chunks

    def forget(self, moment: Moment) -> None:
        """Drop the rows of a moment."""
        self.take(moment)

    def clear(self) -> None:
        """Drop all rows."""
        self._waiting, self._raw, self._full = _NOTHING, _NOTHING_RAW, ()


def consolidate(chunks: list[Chunk], shape: tuple[int, int, int], low: int, memory: BatchMemory | None = None) -> Chunk:
    """The rows of some chunks as one sorted, consolidated chunk. Epochs before `low` become `low`. Where memory is limited, many
    rows are sorted in pieces, and the pieces are merged.
    """
    if len(chunks) == 1 and isinstance(chunks[0], Consolidated) and chunks[0].low >= low:
        return chunks[0]
    if (
        memory is not None
        and (len(chunks) > 1 or (chunks and chunks[0].n > FEW_ROWS))
        and is_large(chunks, shape, memory)
    ):
        return merged_runs(sorted_runs(chunks, shape, low, memory), shape, low, memory)
    built: Consolidated = build_rows(addresses(chunks), *shape, low)
    if built.n < 0:
        raise IncorrectError(TOO_LARGE)
    built.low = low
    return built


def rows_of(waiting: Sequence[Sequence[Chunk]]) -> int:
    """The number of rows of some chunks, by shard."""
    return sum([chunk.n for chunks in waiting for chunk in chunks])


def is_large(chunks: Sequence[Chunk | Batch], shape: tuple[int, int, int], memory: BatchMemory) -> bool:
    """Whether there are more rows than are sorted at a time."""
    rows = sum([chunk.n for chunk in chunks])
    return rows > FEW_ROWS and rows > memory.piece_rows(sum(shape))


def sorted_runs(chunks: list[Chunk], shape: tuple[int, int, int], low: int, memory: BatchMemory) -> list[Consolidated]:
    """The rows of some chunks as sorted, consolidated chunks of bounded size, each where there is room. Chunks that are sorted
    already stay as they are.
    """
    most = memory.piece_rows(sum(shape))
    runs: list[Consolidated] = []
    some: list[Chunk] = []
    rows = 0

    def sort() -> None:
        nonlocal some, rows
        run = memory.placed(consolidate(some, shape, low))
        assert isinstance(run, Consolidated)
        if run.n:
            runs.append(run)
        some, rows = [], 0

    for chunk in chunks:
        if isinstance(chunk, Consolidated) and chunk.low >= low:
            runs.append(chunk)
            continue
        start = 0
        while start < chunk.n:
            stop = min(chunk.n, start + most - rows)
            some.append(chunk if stop - start == chunk.n else Chunk.slice(chunk, start, stop))
            rows += stop - start
            start = stop
            if rows == most:
                sort()
    if some:
        sort()
    return runs


def merged_runs(runs: list[Consolidated], shape: tuple[int, int, int], low: int, memory: BatchMemory) -> Chunk:
    """One sorted, consolidated chunk of several."""
    if not runs:
        return consolidate([], shape, low)
    try:
        whole = merge_all([Batch(run.head, run.memory, (), (), ()) for run in runs], shape, (), memory)
    except DiffOverflow:
        raise IncorrectError(TOO_LARGE) from None
    return Consolidated(whole.head, whole.memory, low)


class ArrangementReader:
    """A node's access to an arrangement, which may belong to an outer scope or to another dataflow."""

    __slots__ = ("_guard", "_scope", "handle", "imported", "lift", "node", "trace")

    def __init__(self, node: Node, arranged: Arranged, reads_versions: bool = True) -> None:
        self.node = node
        self.trace = arranged.trace
        self.imported = arranged.imported
        self.lift = node.scope.depth - arranged.scope.depth
        self._scope = arranged.scope if reads_versions else None
        self._guard: Guard | None = None
        self.begin()
        node.reads += (self,)
        if self.imported:
            node.flow.imports += (self,)
        else:
            arranged.add_reader(self)

    def begin(self) -> None:
        """Open a handle on the trace. Its present history is the first delta."""
        flow = self.node.flow
        frontier = None if self._scope is None else self._scope.frontier
        self.handle = Handle(self.trace, frontier, flow if self.imported else None)
        flow.handles += (self.handle,)
        if self._guard is not None:
            self.handle.guard(*self._guard)

    def guard(self, guard: Guard) -> None:
        """Leave batches alone that have no word of some intervals in a column: the node would drop all of their rows."""
        self._guard = guard
        self.handle.guard(*guard)

    def handle_on(self, trace: Trace) -> Handle:
        """A handle on another trace, all of whose contents the node has consumed."""
        flow = self.node.flow
        frontier = None if self._scope is None else self._scope.frontier
        handle = Handle(trace, frontier, flow if self.imported else None)
        handle.forget()
        flow.handles += (handle,)
        return handle

    def move(self, handle: Handle) -> None:
        """Read by another handle from here on. May be repeated."""
        old, self.handle, self.trace = self.handle, handle, handle.trace
        if old is not handle:
            old.drop()

    def wake(self, moment: Moment = ()) -> None:
        """Schedule the node if batches wait in the handle's queue."""
        if any(self.handle.queues):
            node = self.node
            node.scope.schedule(node.position, moment + (0,) * self.lift if self.lift else moment)

    def take(self, shard: int) -> tuple[Version, tuple[Batch, ...], Version]:
        """Old, delta and new for this run. Of another dataflow's arrangement, only the epochs of this sweep."""
        if self.imported:
            return self.handle.take_before(shard, self.node.flow.high)
        return self.handle.take(shard)


class Arranged:
    """An arrangement as operators see it: a trace, its scope, and the order of its columns.

    `columns` says which column of the collection each data column of the trace is. The key columns come first.
    """

    __slots__ = ("_renamed", "columns", "imported", "readers", "scope", "sharded_by", "trace")

    def __init__(self, trace: Trace, scope: Scope, columns: tuple[int, ...], sharded_by: int, imported: bool) -> None:
        self.trace = trace
        self.scope = scope
        self.columns = columns
        self.sharded_by = sharded_by
        self.imported = imported
        self.readers: tuple[ArrangementReader, ...] = ()
        self._renamed: Arranged | None = None
        """The arrangement that this is another name of."""

    def add_reader(self, reader: ArrangementReader) -> None:
        """Wake a reader in this dataflow when there is a new batch."""
        (self._renamed or self).readers += (reader,)

    def renamed(self, positions: dict[int, int]) -> Arranged:
        """The same arrangement for a collection with the same columns in another order."""
        columns = tuple(positions[column] for column in self.columns)
        other = Arranged(self.trace, self.scope, columns, self.sharded_by, self.imported)
        other._renamed = self._renamed or self
        return other

    def mint(self, shard: int, rows: Chunk) -> None:
        """Append sorted, consolidated rows of the scope's current moment to the trace, as a batch."""
        self.trace.mint(shard, rows, self.scope.passed())

    def wake_readers(self, moment: Moment) -> None:
        """Schedule the readers in this dataflow, because there is a new batch."""
        for reader in self.readers:
            reader.wake(moment)


class AnyArrangement(Protocol):
    """The interface that arrangements of a dataflow and arrangements of the catalog share."""

    @property
    def trace(self) -> Trace:
        """The trace that holds it."""

    @property
    def columns(self) -> tuple[int, ...]:
        """For each data column of the trace, the number of that column in the collection."""

    @property
    def sharded_by(self) -> int:
        """The number of leading columns that decide the shard."""


def serves(arranged: AnyArrangement, lead: tuple[int, ...], sharded_by: int | None, key: int) -> bool:
    """Whether an arrangement begins with the columns `lead` and is sharded by `sharded_by` columns. None means any number up
    to `key`.
    """
    if arranged.columns[: len(lead)] != lead:
        return False
    if arranged.trace.shards == 1:
        return True
    return arranged.sharded_by == sharded_by if sharded_by is not None else arranged.sharded_by <= key


class ArrangeNode(Arranging, Node):
    """Sends rows to the shard of their key, buffers them until their moment comes, and mints a batch."""

    _build = build_rows

    def __init__(
        self,
        scope: Scope,
        shards: int,
        columns: tuple[int, ...],
        key: int,
        name: str,
        prepare: Callable[[Chunk], Chunk] | None = None,
        data: int | None = None,
        diffs: int = 1,
        settled: bool = False,
    ) -> None:
        """`prepare` puts a chunk's columns into the order of the trace. The first `key` columns decide the shard. Input that is
        `settled` arrives at the right shard already.
        """
        super().__init__(scope, shards, name)
        width = len(columns) if data is None else data
        self.trace = self.mints = Trace(width, self.times, diffs, shards, self.flow.effort, self.flow.memory)
        self.flow.traces += (self.trace,)
        self.arranged = Arranged(self.trace, scope, columns, key, imported=False)
        self.prepare = prepare
        self.settled = settled or shards == 1
        self.routes = not self.settled
        self.key = leading(key)
        self.buffer = Buffer(self, width, diffs)
        self._as_they_are = 0
        """How many chunks are sent as they are before it is tried again whether many of their rows are equal."""

    def mint_into(self, trace: Trace) -> None:
        self.trace = self.mints = self.arranged.trace = trace

    def exchange(self, shard: int, chunk: Chunk, moment: Moment, outbox: Outbox) -> None:
        if self.prepare is not None:
            chunk = self.prepare(chunk)
        if chunk.n >= COMBINE_FROM:
            chunk = self._combined(chunk)
        if self.settled:
            outbox.append((self, shard, chunk, moment))
        else:
            exchange_by(self, self.key, chunk, moment, outbox)

    def _combined(self, chunk: Chunk) -> Chunk:
        """A chunk whose rows are added up by whoever made them, if many are equal. Otherwise all rows of a frequent key, or of a
        group of everything, would be added up by the one shard that they go to. Where few are equal, this is seldom tried.
        """
        if self._as_they_are > 0:
            self._as_they_are -= 1
            return chunk
        if not self.settled and chunk.n > ASKED:
            # What is sorted here is sorted again where it goes to. So a part of the rows says whether that pays.
            some = chunk.slice(0, max(ASKED, chunk.n // 8))
            if 2 * consolidate([some], self.buffer.shape, self.flow.reached).n > some.n:
                self._as_they_are = TRY_ONE_OF
                return chunk
        found = consolidate([chunk], self.buffer.shape, self.flow.reached)
        if 2 * found.n > chunk.n:
            self._as_they_are = TRY_ONE_OF
        return found

    def _run(self, moment: Moment) -> None:
        """`run` for any number of rows and shards."""
        waiting = self.buffer.take(moment)
        if waiting is None:
            return
        low, memory = self.flow.reached, self.flow.memory
        rows = 0
        for chunks in waiting:
            for chunk in chunks:
                rows += chunk.n

        def sort(shard: int) -> None:
            if waiting[shard]:
                batch = consolidate(waiting[shard], self.buffer.shape, low, memory)
                waiting[shard] = [batch if memory is None else memory.placed(batch)]

        def mint(shard: int, outbox: Outbox) -> None:
            if waiting[shard]:
                batch = consolidate(waiting[shard], self.buffer.shape, low, memory)
                if batch.n:
                    self.arranged.mint(shard, batch)

        if rows >= LONG:
            self.call_out(sort, rows)
        self.each_shard(mint, rows)
        self.arranged.wake_readers(moment)


@lru_cache(maxsize=1 << 10)
def shared_words(*numbers: int) -> Words:
    """Some numbers as kernels take them. Many views have the same. Nobody changes them."""
    return np.array(numbers, np.int64)


@cache
def leading(columns: int) -> Words:
    """The numbers of so many leading columns. Nobody changes them."""
    return np.arange(columns, dtype=np.int64)


def exchange_by(node: Node, key: Words, chunk: Chunk, moment: Moment, outbox: Outbox) -> None:
    """Address each row of a chunk to the shard of its key."""
    buf, head, offsets = route(chunk.at, key, node.shards)
    routed = Chunk(head, (chunk.memory, buf))
    for shard in range(node.shards):
        start, stop = int(offsets[shard]), int(offsets[shard + 1])
        if stop > start:
            outbox.append((node, shard, routed.slice(start, stop), moment))


class ChangesNode(Node):
    """Emits an arrangement's updates as they are minted, in the collection's own column order."""

    def __init__(self, scope: Scope, shards: int, arranged: Arranged, name: str) -> None:
        super().__init__(scope, shards, name)
        self.reader = ArrangementReader(self, arranged, reads_versions=False)
        self.left: Sequence[list[Chunk]] = ()
        """What has been taken and not emitted, the next chunk last. Where memory is limited, a run emits a bounded part."""

    @property
    def busy(self) -> bool:
        return any(self.left)

    def clear(self) -> None:
        super().clear()
        self.left = ()

    def choose_rows(self) -> None:
        if self.reader.imported and (found := common_guard([edge.steps for edge in self.port.edges])) is not None:
            self.reader.guard(found)

    def run(self, moment: Moment) -> None:
        memory = self.flow.memory
        rows = self.reader.handle.queued
        if (
            self.shards == 1 and not self.left and rows < LONG and (memory is None or rows < FEW_ROWS)
        ):  # all of it, at once
            outbox: Outbox = []
            for batch in self.reader.take(0)[1]:
                self.port.emit(0, Chunk.of_batch(batch), moment, self.times, outbox)
            self.deliver([outbox])
            return
        if not self.left:
            self.left = [self._taken(shard) for shard in range(self.shards)]
        most = EVERYTHING if memory is None else memory.piece_rows(sum(self.reader.trace.shape))

        def work(shard: int, outbox: Outbox) -> None:
            left, room = self.left[shard], most
            while left and room > 0:
                chunk = left.pop()
                if chunk.n > room:
                    left.append(chunk.slice(room, chunk.n))
                    chunk = chunk.slice(0, room)
                room -= chunk.n
                self.port.emit(shard, chunk, moment, self.times, outbox)

        self.work_out(work, rows_of(self.left))
        if any(self.left):
            self.scope.schedule(self.position, moment)
        else:
            self.left = ()

    def _taken(self, shard: int) -> list[Chunk]:
        """Takes the batches that wait in a shard, the newest first."""
        _, delta, _ = self.reader.take(shard)
        return [Chunk.of_batch(batch) for batch in reversed(delta)]
