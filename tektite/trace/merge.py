"""An incremental merge of two adjacent batches.

Promise: `advance` does at most about `fuel` rows of work on each of several merges in one kernel call. Once a merge is
`done`, its `result` is the batch that replaces both inputs. The inputs stay readable throughout.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from itertools import count

import numpy as np

from tektite.kernels.merge import merge as kernels
from tektite.kernels.merge import state as fields
from tektite.trace.addresses import addresses
from tektite.trace.batch import Batch
from tektite.trace.batch_memory import FEW_ROWS, BatchMemory, FileRoom
from tektite.trace.chunk import returning_chunks
from tektite.trace.times import Frontier
from tektite.values.words import Words

_ALL = 2**62
_merge_rows = returning_chunks(kernels.merge_rows)


class DiffOverflow(OverflowError):
    """A sum of diffs does not fit 64 bits."""


class Merge:
    """The inputs, state and result columns of one open merge. `frontier` (k x nt) compacts times; k == 0 keeps them. With a
    `memory` that is short, the result lies in a file.
    """

    __slots__ = ("_counted", "_file", "_memory", "_rooms", "a", "at", "b", "frontier", "n", "since", "state")

    def __init__(
        self,
        a: Batch,
        b: Batch,
        shape: tuple[int, int, int],
        frontier: Words,
        since: Frontier | Words,
        memory: BatchMemory | None = None,
    ) -> None:
        self.a = a
        self.b = b
        self.n = a.n + b.n
        self.frontier = frontier
        self.since = since
        self.state: Words = kernels.open_merge(a.at, b.at, *shape, frontier, a.latest_epoch(), b.latest_epoch())
        self.at: int = self.state.ctypes.data
        rooms = self.state[fields.FIELDS + fields.ROOM : -sum(shape) : fields.PER_COLUMN]
        needed = np.flatnonzero(rooms == fields.NEEDED).tolist()
        self._memory = memory
        self._file: FileRoom | None = None
        self._counted: object = None
        columns: list[Words] | None = None
        if memory is not None and (size := a.bytes + b.bytes) >= memory.least:
            if memory.is_short(size):
                self._file = memory.file_room([self.n + 2] * len(needed))
            if self._file is not None:
                columns = self._file.columns
            else:
                self._counted = memory.counted(None, size)
        if columns is None:
            # Memory that is never written costs nothing, so every column has room for the longest possible result.
            columns = [np.empty(self.n + 2, np.int64) for _ in needed]
        self._rooms: dict[int, Words] = dict(zip(needed, columns, strict=True))
        for j, column in self._rooms.items():
            rooms[j] = column.ctypes.data

    @property
    def done(self) -> bool:
        """Whether the result is ready."""
        status = self.state[fields.STATUS]
        if status == fields.OVERFLOWN:
            raise DiffOverflow("merging batches: a sum of diffs does not fit 64 bits")
        return bool(status == fields.DONE)

    @property
    def taken(self) -> int:
        """Rows of the inputs that it has gone through."""
        return int(self.state[fields.TAKEN_A] + self.state[fields.TAKEN_B])

    @property
    def bytes(self) -> int:
        """Memory of the result so far."""
        columns = int(self.state[fields.COLUMNS])
        live = self.state[fields.FIELDS + fields.LIVE : -columns : fields.PER_COLUMN]
        steps = self.state[fields.FIELDS + fields.STEP : -columns : fields.PER_COLUMN]
        return self.state.nbytes + int(self.state[fields.ROWS]) * int(live @ steps)

    def result(self) -> Batch:
        """The merged batch. The merge must be done."""
        rows = int(self.state[fields.ROWS])
        if self._file is not None:
            return self._in_file(self._file, rows)
        columns = []
        for j, room in self._rooms.items():
            base = fields.FIELDS + fields.PER_COLUMN * j
            if self.state[base + fields.VARIES]:
                # Frees the memory after the last row in place: no row is copied, and nobody else refers to the array.
                room.resize(rows * int(self.state[base + fields.STEP]) // 8 + 2, refcheck=False)
                self.state[base + fields.ROOM] = room.ctypes.data
                columns.append(room)
        head = kernels.merged_head(self.state)
        kept: object = columns
        if self._counted is not None and self._memory is not None:
            kept = self._memory.counted(columns, rows * int(head[4::3].sum()))
        return Batch(head, kept, self.a.lower, self.b.upper, self.since)

    def _in_file(self, file: FileRoom, rows: int) -> Batch:
        """The merged batch of columns in a file."""
        used = []
        for j in self._rooms:
            base = fields.FIELDS + fields.PER_COLUMN * j
            used.append(rows * int(self.state[base + fields.STEP]) if self.state[base + fields.VARIES] else 0)
        head = kernels.merged_head(self.state)
        return Batch(head, file.end(used), self.a.lower, self.b.upper, self.since)


def advance(merges: Sequence[Merge], fuel: int = _ALL) -> int:
    """Advance each merge by about `fuel` input rows; returns how many are done."""
    ended: int = kernels.advance_merges(addresses(merges), fuel)
    return ended


def merge_now(
    a: Batch,
    b: Batch,
    shape: tuple[int, int, int],
    frontier: Words,
    since: Frontier | Words,
    memory: BatchMemory | None = None,
) -> Batch:
    """Merge two batches at once. For small batches that is cheaper than opening a merge."""
    if memory is not None and (rows := a.n + b.n) >= FEW_ROWS and 8 * rows * sum(shape) >= memory.least:
        merge = Merge(a, b, shape, frontier, since, memory)
        while not merge.done:
            advance([merge])
        return merge.result()
    merged = Batch.of(_merge_rows(a.at, b.at, *shape, frontier), a.lower, b.upper, since)
    if merged.n < 0:
        raise DiffOverflow("merging batches: a sum of diffs does not fit 64 bits")
    return merged


def nothing_after(batch: Batch) -> Batch:
    """An empty batch that follows `batch`: merging with it rewrites the batch at another frontier."""
    return Batch(_empty_head(len(batch.head) // 3 - 1), None, batch.upper, batch.upper, batch.since)


def _empty_head(columns: int) -> Words:
    """The head of no rows."""
    head = np.zeros(3 + 3 * columns, np.int64)
    at = head.ctypes.data
    head[1:3] = at, columns
    head[3::3] = at + 8 * np.arange(5, 5 + 3 * columns, 3)
    return head


def merge_all(
    batches: Sequence[Batch], shape: tuple[int, int, int], since: Frontier, memory: BatchMemory | None = None
) -> Batch:
    """One batch with the rows of neighbouring ones, or of a single one, oldest first. It distinguishes times from `since` on."""
    if len(batches) == 1 and since:
        batches = [*batches, nothing_after(batches[0])]
    frontier = np.array(since, np.int64).reshape(len(since), shape[1])
    lower, upper = batches[0].lower, batches[-1].upper
    order = count()
    heap = [(batch.n, next(order), batch) for batch in batches]
    heapq.heapify(heap)
    while len(heap) > 1:
        (_, _, a), (_, _, b) = heapq.heappop(heap), heapq.heappop(heap)
        both = merge_now(a, b, shape, frontier, since, memory)
        # The two need not be neighbours, so what they cover is not an interval that the result could name.
        both = Batch(both.head, both.memory, lower, upper, since)
        heapq.heappush(heap, (both.n, next(order), both))
    [(_, _, whole)] = heap
    return Batch(whole.head, whole.memory, lower, upper, since or batches[0].since)
