"""An incremental merge of two adjacent batches.

Promise: `advance` does at most about `fuel` rows of work on each of several merges in one kernel call. Once a merge is
`done`, its `result` is the batch that replaces both inputs. The inputs stay readable throughout.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tektite.kernels.merge import merge as kernels
from tektite.kernels.merge import state as fields
from tektite.trace.addresses import addresses
from tektite.trace.batch import Batch
from tektite.trace.times import Frontier
from tektite.values.words import Words

_ALL = 2**62


class DiffOverflow(OverflowError):
    """A sum of diffs does not fit 64 bits."""


class Merge:
    """The inputs, state and result columns of one open merge. `frontier` (k x nt) compacts times; k == 0 keeps them."""

    __slots__ = ("_rooms", "a", "at", "b", "frontier", "n", "since", "state")

    def __init__(
        self, a: Batch, b: Batch, shape: tuple[int, int, int], frontier: Words, since: Frontier | Words
    ) -> None:
        self.a = a
        self.b = b
        self.n = a.n + b.n
        self.frontier = frontier
        self.since = since
        self.state: Words = kernels.open_merge(a.at, b.at, *shape, frontier, a.latest_epoch(), b.latest_epoch())
        self.at: int = self.state.ctypes.data
        rooms = self.state[fields.FIELDS + fields.ROOM : -sum(shape) : fields.PER_COLUMN]
        # Memory that is never written costs nothing, so every column has room for the longest possible result.
        self._rooms: dict[int, Words] = {}
        for j in np.flatnonzero(rooms == fields.NEEDED).tolist():
            self._rooms[j] = np.empty(self.n + 2, np.int64)
            rooms[j] = self._rooms[j].ctypes.data

    @property
    def done(self) -> bool:
        """Whether the result is ready."""
        status = self.state[fields.STATUS]
        if status == fields.OVERFLOWN:
            raise DiffOverflow("merging batches: a sum of diffs does not fit 64 bits")
        return bool(status == fields.DONE)

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
        columns = []
        for j, room in self._rooms.items():
            base = fields.FIELDS + fields.PER_COLUMN * j
            if self.state[base + fields.VARIES]:
                # Frees the memory after the last row in place: no row is copied, and nobody else refers to the array.
                room.resize(rows * int(self.state[base + fields.STEP]) // 8 + 2, refcheck=False)
                self.state[base + fields.ROOM] = room.ctypes.data
                columns.append(room)
        head = kernels.merged_head(self.state)
        return Batch(head, columns, self.a.lower, self.b.upper, self.since)


def advance(merges: Sequence[Merge], fuel: int = _ALL) -> int:
    """Advance each merge by about `fuel` input rows; returns how many are done."""
    ended: int = kernels.advance_merges(addresses(merges), fuel)
    return ended


def merge_now(a: Batch, b: Batch, shape: tuple[int, int, int], frontier: Words, since: Frontier | Words) -> Batch:
    """Merge two batches at once. For small batches that is cheaper than opening a merge."""
    buf, head = kernels.merge_rows(a.at, b.at, *shape, frontier)
    merged = Batch(head, buf, a.lower, b.upper, since)
    if merged.n < 0:
        raise DiffOverflow("merging batches: a sum of diffs does not fit 64 bits")
    return merged
