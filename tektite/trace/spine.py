"""The spine: the batches of one shard's trace, merged as they arrive.

Promises:

* The batches of `version` add up to the updates inserted so far. Times are compacted no further than the readers' frontier.
* There are at most logarithmically many batches, and a few small ones.
* An insertion does at most (constant x its size x logarithm of the trace's size) rows of merging.

Batches have levels: level k holds up to 64 * 2**k rows. From the oldest batch to the newest, levels fall. Two neighbours out
of order are merged. A merge is opened and then paid for: each inserted row buys a few rows of work (the *effort*) on every
open merge. Batches of the lowest level wait until there are several at the end, and become one.

Why an effort of two is enough: a merge of s rows ends before s / 2 more rows are inserted. Its result is needed when a
neighbour of its level has formed after it, which takes about s rows. The merges that form this neighbour, of s / 2, s / 4,
... rows, delay it no less than they delay us. One is the least effort that keeps up with insertions at all. Both bounds
assume that merges run side by side, so that each level has at most one open merge and one waiting batch. If cancellation
causes something worse, the smallest merges are finished at once until the bound on batches holds.

An exception (Ctrl-C, no memory) may end any call between two steps. The list of units changes by one assignment at a time,
each of which keeps the first promise; everything else follows from the list and is worked out again.

The default effort is eight: merges that end sooner leave readers fewer batches, and release their inputs sooner. Counting 10M
keys in epochs of 10k updates:

    effort    updates a second    memory     tail
    2         1.2 million         660 MiB
    8         1.6 million         560 MiB    within three times the median
    16                                       begins to grow
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import numpy as np

from tektite.kernels.merge.merge import advance_merges
from tektite.kernels.sort.build import build
from tektite.trace.addresses import addresses
from tektite.trace.batch import LATEST, Batch
from tektite.trace.batch_memory import BatchMemory
from tektite.trace.chunk import returning_chunks
from tektite.trace.merge import DiffOverflow, Merge, merge_now, nothing_after
from tektite.trace.records import SpineRecord, Version
from tektite.trace.times import Frontier
from tektite.values.words import Words

BatchShape = tuple[int, int, int]

# Merging this many rows at once is cheaper than tracking an open merge (about 50 microseconds).
SMALL = 4096
# Merging this many rows at once when a trace is restored takes some milliseconds, and saves readers many batches.
AT_START = 1 << 16
# A batch pays ahead for merges of no more rows than these, which take half a millisecond. Counting a million keys in epochs of
# 10,000 updates, readers find 5.3 batches in place of 6.8, and an epoch takes 0.92 of the time.
PAID_AHEAD = 1 << 16
# Batches of the lowest level that may wait at the end to be merged together. One call for all of them saves most of the time that
# an insertion of one row spends on merging; eight more batches take a reader of one key a third of a microsecond.
WAITING = 8
# Rows of fuel that are worth a kernel call; below that, insertions accumulate debt.
_PAYABLE = 256
# At rest, neighbours are merged unless the older one is this many times larger: about log8(rows) batches remain.
_IDLE_RATIO = 8
_EFFORTS = {"lazy": 1, "default": 8, "eager": 0}
_ALL = 2**62
_build = returning_chunks(build)
_NONE_OPEN: Words = np.empty(0, np.int64)


def _level(rows: int) -> int:
    return (rows >> 6).bit_length()


class Distinguishing(Protocol):
    """A reader of a spine."""

    def frontier(self) -> Words:
        """The times (k x nt) from which on it must distinguish times; k == 0 if it must distinguish all."""


class Spine(SpineRecord):
    """The trace of one shard for updates of `shape` (data, time and diff columns).

    `reader` is asked for its frontier whenever a merge starts. Without one, all times are distinguished. The array is not copied:
    a frontier that moves is another array.

    `effort` is "default", "lazy" (less work at each insertion, more batches for readers) or "eager" (all merges at once).
    """

    __slots__ = ()

    def __init__(
        self,
        shape: BatchShape,
        effort: str = "default",
        reader: Distinguishing | None = None,
        upper: Frontier = (),
        memory: BatchMemory | None = None,
    ) -> None:
        if effort not in _EFFORTS:
            raise ValueError(f"effort {effort!r}: need one of {', '.join(_EFFORTS)}")
        self.shape = shape
        self.upper = upper
        self._memory = memory
        self._effort = _EFFORTS[effort]
        self._at_once = _ALL if effort == "eager" else SMALL
        self._may_wait = 0 if effort == "eager" else WAITING
        self._reader = reader
        self._units: list[Batch | Merge] = []  # oldest first
        # The merges among the units; not valid while `_stale`.
        self._open: tuple[Merge, ...] = ()
        self._open_table = _NONE_OPEN
        self._stale = False
        self._joined = 0  # the number of units when the newest ones were last in order
        self._owed = 0
        self.fresh = 0
        """Rows that were inserted in this sweep."""
        self._allowed = 0
        self.known: Version | None = None
        """`version`, if that has been asked for since the units changed."""
        self.merged = 0
        """Rows of merges that were done step by step."""

    def _frontier(self) -> Words:
        return np.empty((0, self.shape[1]), np.int64) if self._reader is None else self._reader.frontier()

    def _insert_large(self, batch: Batch) -> None:
        """`insert` for a batch that is not of the lowest level, or while merges are open."""
        self.make_room(batch.n)
        self.append([batch])
        self.settle()

    def _make_large_room(self, rows: int) -> None:
        """`make_room` for a batch that is not of the lowest level, or while merges are open."""
        if self._stale:
            self._refresh()
        self.fresh += rows
        if self._open:
            self._owed += rows * self._effort
            if self._owed >= _PAYABLE:
                fuel, self._owed = self._owed, 0
                self._pay(fuel)
        if rows >= 64 and len(self._units) > 1:
            self._clear_the_way(_level(rows))

    def restore(self, batches: Iterable[Batch]) -> None:
        """Start with batches that were merged before. Large ones stay as they are, and are merged as insertions pay for it."""
        self._units = [batch for batch in batches if batch.n]
        self._stale = True
        self._refresh()
        at_once, self._at_once = self._at_once, max(self._at_once, AT_START)
        try:
            self._join_all()
        finally:
            self._at_once = at_once

    def settle(self) -> None:
        """Merge what the batch that was appended last has put out of order. The contents stay."""
        if self._stale:
            self._refresh()
        units = self._units
        if len(units) > 1 and (units[-1].n >= 64 or len(units) - self._joined > self._may_wait):
            self.join_waiting()

    def join_waiting(self) -> None:
        """Merge what is out of order, also small batches that may wait. The contents stay."""
        if self._stale:
            self._refresh()
        units = self._units
        if self._may_wait:
            self._join_small()
        self._join_newest()
        if len(units) + len(self._open) > self._allowed:
            self._enforce_bound()
        self._joined = len(units)

    def _find_version(self) -> Version:
        """`version` while merges may be open."""
        if self._stale:
            self._refresh()
        batches: list[Batch] = []
        for unit in self._units:
            if isinstance(unit, Merge):
                batches += (unit.a, unit.b) if unit.b.n else (unit.a,)
            else:
                batches.append(unit)
        version = self.known = Version(tuple(batches))
        return version

    @property
    def rows(self) -> int:
        """Rows of the current version."""
        return self.version.rows

    @property
    def bytes(self) -> int:
        """Memory of the current version."""
        return self.version.bytes

    @property
    def bytes_in_progress(self) -> int:
        """Memory of the results of open merges so far."""
        return sum(unit.bytes for unit in self._units if isinstance(unit, Merge))

    @property
    def batches(self) -> int:
        """The number of batches of the current version; an open merge counts as its two inputs."""
        return len(self.version.batches)

    @property
    def merges(self) -> list[Merge]:
        """Merges in progress."""
        return [unit for unit in self._units if isinstance(unit, Merge)]

    @property
    def open_merges(self) -> int:
        """The number of merges in progress."""
        return len(self.merges)

    def idle(self, fuel: int) -> bool:
        """Spend about `fuel` rows of work on each open merge. If none is open, start one that saves memory or batches.
        Returns whether more can be done.
        """
        if self._stale:
            self._refresh()
        if not self._open:
            self._start_at_rest()
        if self._open:
            self._pay(fuel)
            return bool(self._open) or self._rest_candidate() is not None
        return False

    def rest(self) -> None:
        """Called at the end of a sweep. If its insertions rewrote existing rows, merge everything now, which costs at most
        three times their rows: rows that were inserted for an argument and removed again disappear before the next argument
        reads both. A lazy spine does only what insertions pay for.
        """
        fresh, self.fresh = self.fresh, 0
        if fresh >= SMALL and 0 < self.rows - fresh <= 2 * fresh and self._effort != _EFFORTS["lazy"]:
            self.compact_now()

    def compact_now(self) -> None:
        """Merge everything into one batch at the current frontier, whatever it costs."""
        if self._stale:
            self._refresh()
        self._finish_all()
        frontier = self._frontier()
        while len(self._units) > 1:
            sizes = [unit.n for unit in self._units]
            place = min(range(len(sizes) - 1), key=lambda i: sizes[i] + sizes[i + 1])
            self._merge_at(place, frontier)
        if self._units and isinstance(unit := self._units[0], Batch):
            self._replace(0, 1, self._merged(unit, nothing_after(unit), frontier))

    def _pay(self, fuel: int) -> None:
        if advance_merges(self._open_table, fuel):
            self._collect()

    def _collect(self) -> None:
        """Put the results of finished merges in place of their inputs, and merge further where they are out of order."""
        failed: DiffOverflow | None = None
        self._stale = True
        for merge in self._open:
            try:
                if not merge.done:
                    continue
                result = [merge.result()]
                self.merged += merge.n
            except DiffOverflow as error:
                failed = error
                result = [merge.a, merge.b]
            self.known = None
            place = self._units.index(merge)
            self._units[place : place + 1] = [batch for batch in result if batch.n]
        self._refresh()
        if failed is not None:
            raise failed
        self._join_all()

    def _refresh(self) -> None:
        """Work out what follows from the units, after they have changed."""
        self.known = None
        self._allowed = 0
        self._joined = 0
        self._open = tuple([unit for unit in self._units if isinstance(unit, Merge)])
        self._open_table = addresses(self._open) if self._open else _NONE_OPEN
        self._stale = False

    def _open_at(self, place: int, frontier: Words, other: Batch | None = None) -> None:
        """Open a merge of the batch at `place` with the next one, or with `other`."""
        a = self._units[place]
        b = other or self._units[place + 1]
        assert isinstance(a, Batch) and isinstance(b, Batch)
        merge = Merge(a, b, self.shape, frontier, frontier, self._memory)
        self._stale = True
        self._units[place : place + (1 if other else 2)] = [merge]
        self._refresh()

    def _merge_at(self, place: int, frontier: Words) -> None:
        """Merge the batch at `place` with the next one at once."""
        a, b = self._units[place : place + 2]
        assert isinstance(a, Batch) and isinstance(b, Batch)
        self._replace(place, 2, self._merged(a, b, frontier))

    def _merged(self, a: Batch, b: Batch, frontier: Words) -> Batch:
        return merge_now(a, b, self.shape, frontier, frontier, self._memory)

    def _replace(self, place: int, count: int, batch: Batch) -> None:
        self.known = None
        self._units[place : place + count] = [batch] if batch.n else []

    def _join_small(self) -> None:
        """Make one batch of the newest ones of the lowest level."""
        units = self._units
        first = len(units)
        while first and units[first - 1].n < 64 and type(units[first - 1]) is not Merge:
            first -= 1
        small: list[Batch] = units[first:]  # type: ignore[assignment]
        if len(small) > 2:
            frontier = self._frontier()
            # Rounds of loops are compacted by the merges that follow.
            low = min(frontier[:, 0].tolist(), default=0)
            rows = _build(addresses(small), *self.shape, low)
            batch = Batch.of(rows, small[0].lower, small[-1].upper, frontier)
            if batch.n < 0:
                raise DiffOverflow("merging batches: a sum of diffs does not fit 64 bits")
            self._replace(first, len(small), batch)

    def _join_newest(self) -> None:
        """Merge the newest batches while they are out of order: small ones at once, otherwise open one merge."""
        units = self._units
        # What the next batch of this size would pay for is done now, and spares the readers in between a batch or two.
        at_once = max(self._at_once, min(units[-1].n * self._effort, PAID_AHEAD)) if units else 0
        while len(units) > 1:
            a = units[-2]
            b = units[-1]
            if type(a) is Merge or type(b) is Merge or (a.n >> 6).bit_length() > (b.n >> 6).bit_length():
                return
            frontier = self._frontier()
            if a.n + b.n > at_once:
                self._open_at(len(units) - 2, frontier)
                return
            batch = merge_now(a, b, self.shape, frontier, frontier, self._memory)  # type: ignore[arg-type]
            self.known = None
            units[-2:] = (batch,) if batch.n else ()

    def _join_all(self) -> None:
        """Merge all neighbours that are out of order."""
        units = self._units
        place = 0
        while place + 1 < len(units):
            a = units[place]
            b = units[place + 1]
            if isinstance(a, Merge) or isinstance(b, Merge) or _level(a.n) > _level(b.n):
                place += 1
            elif a.n + b.n <= self._at_once:
                self._merge_at(place, self._frontier())
                place = max(place - 1, 0)
            else:
                self._open_at(place, self._frontier())
                place += 1

    def _clear_the_way(self, level: int) -> None:
        """Make one batch of all the newest ones below `level`, because a batch of that level is about to follow. Together
        they are no larger than a few times that batch, which pays for it.
        """
        units = self._units
        while len(units) > 1 and _level(units[-1].n) < level and _level(units[-2].n) < level:
            if not self._finish(units[-1]) and not self._finish(units[-2]):
                self._merge_at(len(units) - 2, self._frontier())
        if units and _level(units[-1].n) < level:
            self._finish(units[-1])

    def _finish(self, unit: Batch | Merge) -> bool:
        """Complete the unit if it is a merge; returns whether it was."""
        if isinstance(unit, Merge):
            advance_merges(addresses([unit]), _ALL)
            self._collect()
            return True
        return False

    def _finish_all(self) -> None:
        while self._open:
            self._pay(_ALL)

    def _enforce_bound(self) -> None:
        """Finish the smallest merges while there are more than three batches a level, plus a few."""
        self._allowed = 6 + WAITING + 3 * _level(sum(unit.n for unit in self._units))
        while self._open and len(self._units) + len(self._open) > self._allowed:
            self._finish(min(self._open, key=lambda merge: merge.n))

    def _rest_candidate(self) -> tuple[int, bool] | None:
        """The next merge if none is open: (place, whether the batch is rewritten alone)."""
        units = self._units
        frontier = self._frontier()
        if len(frontier):
            floor = int(frontier[:, 0].min())
            for place, unit in enumerate(units):
                if isinstance(unit, Batch) and unit.varies_in(self.shape[0]) and _worth_compacting(unit, floor):
                    return place, True
        pairs = [
            (a.n + b.n, place)
            for place, (a, b) in enumerate(zip(units, units[1:], strict=False))
            if a.n < _IDLE_RATIO * b.n
        ]
        return (min(pairs)[1], False) if pairs else None

    def _start_at_rest(self) -> None:
        candidate = self._rest_candidate()
        if candidate is not None:
            place, alone = candidate
            unit = self._units[place]
            assert isinstance(unit, Batch)
            self._open_at(place, self._frontier(), nothing_after(unit) if alone else None)


class Unmerged(Spine):
    """A spine whose batches somebody else merges: it keeps them as they are."""

    __slots__ = ()

    def __init__(self, shape: BatchShape, batches: Iterable[Batch]) -> None:
        super().__init__(shape)
        self._units = [batch for batch in batches if batch.n]

    def make_room(self, rows: int) -> None:
        """Leave everything as it is."""

    def settle(self) -> None:
        """Leave everything as it is."""

    def join_waiting(self) -> None:
        """Leave everything as it is."""

    def rest(self) -> None:
        """Leave everything as it is."""

    def idle(self, fuel: int) -> bool:
        """Merge nothing."""
        return False


def _worth_compacting(batch: Batch, floor: int) -> bool:
    """Whether the frontier has moved at least half way through the epochs that the batch distinguishes.

    Requiring half bounds the number of rewrites by the logarithm of the batch's epochs while the frontier advances.
    """
    since = batch.since or batch.lower
    low = max(min((time[0] for time in frontier), default=floor) for frontier in (since, batch.lower))
    latest = batch.latest_epoch()
    return latest != LATEST and floor > low and 2 * (floor - low) >= latest - low
