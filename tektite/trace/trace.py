"""Trace and Handle: the history of one arrangement, and a reader's access to it.

A trace has one spine per shard. At every step, a handle's reader sees exactly *old*, *delta* and *new*:

* delta comes from the handle's queue of minted batches, never from the merged spine. Merging never touches a queue.
* old is the version that was pinned when the queue became non-empty. While the queue is empty, old is the trace's newest
  version.
* new is old plus the delta: the newest version, once the whole queue has been taken.

A trace keeps spines only while some handle reads versions. When the last of these is dropped, the history is freed. Minting
continues for handles that only follow the queue.

A copy of a trace in another process starts at the state of the original (`Trace.load_state`, `Handle.from_state`). It holds
nothing and merges nothing. `on_mint` reports what is minted there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Protocol

import numpy as np

from tektite.kernels.seek.route import split_epoch
from tektite.kernels.sort.build import build
from tektite.trace.addresses import addresses
from tektite.trace.batch import LATEST, Batch
from tektite.trace.batch_memory import BatchMemory
from tektite.trace.chunk import Chunk, KernelRows
from tektite.trace.merge import DiffOverflow, nothing_after
from tektite.trace.records import EMPTY, NO_BATCHES, HandleRecord, Mint, TraceRecord, Version
from tektite.trace.routes import Intervals, Routes
from tektite.trace.spine import BatchShape, Spine, Unmerged
from tektite.trace.times import Frontier, antichain, first_frontier
from tektite.values.shared_values import shared
from tektite.values.words import Words

ASKED = 64
"""Holds that are asked for their frontiers at each merge: a tenth of a millisecond."""
MANY = 24
"""The most batches of a version that belongs to one reader: about what a spine has at a million rows."""


SMALL_TRACE = 1 << 10
"""Rows of a trace in which small batches that wait to be merged may be a good part."""
SKEWED_ROWS = 10_000
"""An arrangement with fewer rows is small on whatever shard they are."""


_FEW = 4
"""So many holds, or handles, are in a tuple: there may be ten thousand traces, most with one or none."""


@lru_cache(maxsize=64)
def _beginning(times: int, shards: int) -> tuple[Frontier, ...]:
    """Up to where each shard of a new trace has been minted."""
    return (first_frontier(times),) * shards


@lru_cache(maxsize=64)
def _no_pins(shards: int) -> list[Version]:
    """The pins of handles that do not read versions. Nobody changes them."""
    return [EMPTY] * shards


class Trace(TraceRecord):
    """The multiversioned index of one collection, sharded, shared by any number of handles."""

    __slots__ = ("__weakref__",)

    def __init__(
        self, data: int, times: int, diffs: int, shards: int, effort: str, memory: BatchMemory | None = None
    ) -> None:
        """`memory` says where large batches lie; without one, all lie in memory."""
        self.data = data
        self.times = times
        self.diffs = diffs
        self.shards = shards
        self.effort = effort
        self.memory = memory
        self.on_mint: Callable[[int, Batch], None] | None = None
        """Called with every batch before it is minted, and its shard."""
        self.begin()

    def begin(self) -> None:
        """Start without history and without readers."""
        self.handles: tuple[Handle, ...] | dict[Handle, None] = ()
        """A tuple while they are few, as of most views."""
        self.unguarded: tuple[Handle, ...] | dict[Handle, None] = self.handles
        """The handles that get every batch: the same until one is guarded."""
        self.routes: Routes | None = None
        """The others, by what they want of a batch, once there are some."""
        self.holds: tuple[Hold, ...] | dict[Hold, None] = ()
        """A tuple while they are few, as of most views."""
        self._asked: AskedHolds | None = None
        """What holds have said, if there are many."""
        self.spines: Sequence[Spine] | None = None
        self._uppers = _beginning(self.times, self.shards)
        self.minted = 0
        """Updates that were minted so far."""

    @property
    def shape(self) -> BatchShape:
        """Its data, time and diff columns."""
        return self.data, self.times, self.diffs

    def _placed(self, rows: KernelRows) -> KernelRows:
        """Rows of a batch where they are to lie. They are many, and memory is limited."""
        assert self.memory is not None
        return self.memory.placed(Chunk(rows.head, rows.memory))

    def _put_routed(self, shard: int, batch: Batch, version: Version) -> None:
        """Queue a batch that is minted for guarded handles."""
        if self.routes:
            for handle, part in self.routes.wanted(batch):
                handle.put(shard, [part], version)

    def _routed(self, batches: list[Batch]) -> dict[Handle, list[Batch]]:
        """The parts of batches that each guarded handle is to get."""
        routed: dict[Handle, list[Batch]] = {}
        if self.routes:
            for batch in batches:
                for handle, part in self.routes.wanted(batch):
                    routed.setdefault(handle, []).append(part)
        return routed

    def _put_prepared(self, mint: Mint) -> None:
        """Queue what was prepared for guarded handles, unless they have it."""
        for handle, parts in mint.routed.items():
            queue = handle.queues[mint.shard]
            if not queue or queue[-1] is not parts[-1]:
                handle.put(mint.shard, parts, mint.version)

    def _settle(self, shard: int) -> None:
        """`settle` where there is something to merge."""
        if self.spines is not None:
            try:
                self.spines[shard].settle()
            except DiffOverflow:
                return

    def restore(self, shard: int, batches: Iterable[Batch], upper: Frontier) -> None:
        """Start with history that was minted before this trace existed, up to `upper`, and without readers."""
        self._uppers = (*self._uppers[:shard], upper, *self._uppers[shard + 1 :])
        if self.spines is not None:
            self.spines[shard].restore(batches)
            self.spines[shard].upper = upper

    @property
    def uppers(self) -> tuple[Frontier, ...]:
        """Up to which frontier each shard has been minted."""
        return self._uppers

    def load_state(self, uppers: Sequence[Frontier], versions: Sequence[Iterable[Batch]] | None) -> None:
        """Start at the state of a trace in another process: minted up to `uppers`, with these batches of each shard as
        history; None if nobody reads versions. Later batches are not merged.
        """
        self._uppers = tuple(uppers)
        self.spines = None if versions is None else [Unmerged(self.shape, batches) for batches in versions]

    def frontier(self) -> Words:
        """The times that some reader may still distinguish, as the rows of an array. Merges compact to them."""
        if self.times == 1 and self.holds:
            found = np.empty((1, 1), np.int64)  # of which NumPy would make three arrays
            found[0, 0] = self._reached()
            return found
        times = self.since()
        return np.array(times, np.int64).reshape(len(times), self.times)

    def _reached(self) -> int:
        """An epoch that all holds have reached. Of thousands, some are asked each time: holds only move on, so that what they
        once said is early enough.
        """
        if len(self.holds) <= ASKED:
            self._asked = None
            return min([hold.frontier()[0][0] for hold in self.holds])
        if self._asked is None:
            assert isinstance(self.holds, dict)
            self._asked = AskedHolds(self.holds)
        return self._asked.answer()

    def since(self) -> Frontier:
        """The frontier from which on reads are correct."""
        if self.times == 1:
            return (min([hold.frontier()[0] for hold in self.holds]),) if self.holds else ()
        # Most holds are of one loop, and at the same moment.
        frontiers = {hold.frontier() for hold in self.holds}
        return frontiers.pop() if len(frontiers) == 1 else antichain(t for frontier in frontiers for t in frontier)

    def add_hold(self, hold: Hold) -> None:
        """Keep history for a reader of versions."""
        holds = self.holds
        if isinstance(holds, tuple) and len(holds) < _FEW:
            self.holds = (*holds, hold)
        else:
            if isinstance(holds, tuple):
                holds = self.holds = dict.fromkeys(holds)
            holds[hold] = None
        if self._asked is not None:
            self._asked.add(hold)
        if self.spines is None:
            self.spines = self._new_spines()

    def _new_spines(self) -> tuple[Spine, ...]:
        """Spines without batches."""
        shape = shared(self.shape)
        return tuple([Spine(shape, self.effort, self, memory=self.memory) for _ in range(self.shards)])

    def add_handle(self, handle: Handle) -> None:
        """Queue what is minted from here on for a reader."""
        same = self.unguarded is self.handles
        self.handles = _with(self.handles, handle)
        self.unguarded = self.handles if same else _with(self.unguarded, handle)

    def guard_handle(self, handle: Handle) -> None:
        """Queue for a reader only what `routes` says it wants."""
        if self.unguarded is self.handles and isinstance(self.handles, dict):
            self.unguarded = self.handles.copy()
        self.unguarded = _without(self.unguarded, handle)

    def remove_handle(self, handle: Handle) -> None:
        """Queue nothing any more for a reader. May be repeated."""
        same = self.unguarded is self.handles
        self.handles = _without(self.handles, handle)
        self.unguarded = self.handles if same else _without(self.unguarded, handle)

    def release(self, hold: Hold) -> None:
        """Remove a reader of versions. Without any, history is dropped."""
        holds = self.holds
        if isinstance(holds, dict):
            holds.pop(hold, None)
        else:
            self.holds = tuple([other for other in holds if other is not hold])
        if self._asked is not None:
            self._asked.new.pop(hold, None)
        if not self.holds:
            self.spines = None

    def idle(self, fuel: int) -> bool:
        """Spend `fuel` rows of merging on each shard; whether more can be done."""
        return any([spine.idle(fuel) for spine in self.spines or ()])

    def version_of_lead(self, shard: int, lead: int) -> Version:
        """A version with at least the rows that begin with the word `lead`."""
        return self.version(shard)

    def keep_batches(self) -> None:
        """Keep batches from here on, whether or not somebody reads them, as long as somebody may."""

    def held_batches(self) -> list[Batch]:
        """Everything that it keeps for anybody: its newest versions, and what waits in the queues and pins of its handles."""
        found = [batch for shard in range(self.shards) for batch in self.version(shard).batches]
        for handle in self.handles:
            for queue in handle.queues:
                found += queue
            for version in handle.pins:
                found += version.batches
        return list({id(batch): batch for batch in found}.values())

    @property
    def rows(self) -> int:
        """Updates in the newest version."""
        return sum(spine.version.rows for spine in self.spines or ())

    @property
    def count(self) -> int:
        """The number of rows of the newest version, repeated rows included: the sum of its diffs. The number of updates, if
        diffs have several columns.
        """
        if self.diffs != 1:
            return self.rows
        column = self.data + self.times
        return sum([batch.net(column) for spine in self.spines or () for batch in spine.version.batches])

    @property
    def size(self) -> int:
        """About how many rows it holds: updates that cancel each other count until they are merged. In a small trace those that
        wait for that are merged first, because there they are most of it. The caller holds the engine's lock.
        """
        if self.rows < SMALL_TRACE:
            for spine in self.spines or ():
                with suppress(DiffOverflow):
                    spine.join_waiting()
        return self.rows

    @property
    def is_empty(self) -> bool:
        """Whether it keeps no updates."""
        return not any([spine.version.batches for spine in self.spines or ()])

    @property
    def skew(self) -> tuple[int, int] | None:
        """The rows of the fullest shard and those of all, if the fullest is closer to having all than to having its share."""
        rows = [spine.version.rows for spine in self.spines or ()]
        largest, everything = max(rows, default=0), sum(rows)
        if len(rows) < 2 or everything < SKEWED_ROWS or largest / everything <= (1 + 1 / len(rows)) / 2:
            return None
        return largest, everything

    @property
    def batches(self) -> int:
        """Batches of the newest version in the fullest shard."""
        return max((len(spine.version.table) for spine in self.spines or ()), default=0)

    @property
    def bytes(self) -> int:
        """Memory of the spines, including merges in progress."""
        return sum(spine.bytes + spine.bytes_in_progress for spine in self.spines or ())


class Hold:
    """A claim on history. `frontier` is called whenever a merge starts; it says from which times on the owner distinguishes
    times.
    """

    __slots__ = ("frontier", "trace")

    def __init__(self, trace: Trace, frontier: Callable[[], Frontier]) -> None:
        self.trace = trace
        self.frontier = frontier
        trace.add_hold(self)

    def drop(self) -> None:
        """Release the claim; dropping twice is harmless."""
        self.trace.release(self)


def _with(handles: tuple[Handle, ...] | dict[Handle, None], handle: Handle) -> tuple[Handle, ...] | dict[Handle, None]:
    if isinstance(handles, tuple) and len(handles) < _FEW:
        return (*handles, handle)
    found = dict.fromkeys(handles) if isinstance(handles, tuple) else handles
    found[handle] = None
    return found


def _without(
    handles: tuple[Handle, ...] | dict[Handle, None], handle: Handle
) -> tuple[Handle, ...] | dict[Handle, None]:
    if isinstance(handles, tuple):
        return tuple([other for other in handles if other is not handle])
    handles.pop(handle, None)
    return handles


class AskedHolds:
    """Asks many holds for their frontiers, some at a time: an epoch that all of them have reached."""

    __slots__ = ("_counted", "_epoch", "_holds", "_least", "_waiting", "new")

    def __init__(self, holds: dict[Hold, None]) -> None:
        self._holds = holds
        self._ask_all()

    def _ask_all(self) -> None:
        self._least = self._epoch = min([hold.frontier()[0][0] for hold in self._holds])
        self._waiting: list[Hold] = []
        """Those that the present round has still to ask."""
        self._counted: list[Hold] = []
        """New ones that the present round asks."""
        self.new: dict[Hold, None] = {}
        """Holds that were added after the round that the epoch is of began. They are asked each time."""

    def add(self, hold: Hold) -> None:
        """There is another one."""
        self.new[hold] = None

    def answer(self) -> int:
        """Ask the next ones. An interrupt may end this after any step: who is not asked then is asked again."""
        holds = self._holds
        if len(self.new) > 4 * ASKED:
            self._ask_all()
        if not self._waiting:
            self._counted = list(self.new)
            self._waiting = list(holds)
            self._least = LATEST
        part = self._waiting[-ASKED:]
        self._least = min([self._least, *[hold.frontier()[0][0] for hold in part if hold in holds]])
        del self._waiting[-ASKED:]
        if not self._waiting:
            self._epoch = self._least
            for hold in self._counted:
                self.new.pop(hold, None)
        return min([self._epoch, *[hold.frontier()[0][0] for hold in self.new]])


class SleepingFlow(Protocol):
    """A dataflow, which reads."""

    def wake(self) -> None:
        """Note that there is something to do."""


class Handle(HandleRecord):
    """One reader's place in a trace: the queue of batches not consumed yet and, with `frontier`, a hold on versions.

    The history that exists at the start is the first delta.
    """

    __slots__ = ()

    def __init__(
        self,
        trace: Trace,
        frontier: Callable[[], Frontier] | None,
        wake: Callable[[], None] | SleepingFlow | None = None,
    ) -> None:
        """`wake` is called, or a dataflow is woken, when a queue that was empty is about to get a batch."""
        self.guarded_by: int | None = None
        """The column by which it chooses rows, if it does."""
        self.trace = trace
        self.wake = wake
        self.queues: list[list[Batch]] = [NO_BATCHES] * trace.shards
        for shard in range(trace.shards):
            batches = trace.version(shard).batches
            if batches:
                self.queues[shard] = [batch for batch in batches if batch.n]
        self.reads_versions = frontier is not None
        self.pins: list[Version] = [EMPTY] * trace.shards if self.reads_versions else _no_pins(trace.shards)
        self.hold = None if frontier is None else Hold(trace, frontier)
        trace.add_handle(self)

    def guard(self, column: int, intervals: Intervals) -> None:
        """From here on, take only batches with words of some intervals in a column, and of large batches only these rows. For
        readers that filter by such a condition: for them, versions without the other rows are the same.
        """
        self.guarded_by = column
        trace = self.trace
        trace.guard_handle(self)
        if trace.routes is None:
            trace.routes = Routes()
        trace.routes.add(self, column, intervals)

    @classmethod
    def from_state(
        cls, trace: Trace, reads_versions: bool, queues: Sequence[Iterable[Batch]], pins: Sequence[Iterable[Batch]]
    ) -> Handle:
        """The copy of a reader's place in another process, with its queue and its pinned version by shard. It holds
        nothing, because such a trace is not merged.
        """
        handle = cls(trace, None)
        handle.reads_versions = reads_versions
        handle.queues = [list(queue) for queue in queues]
        handle.pins = [Version(tuple(pin)) for pin in pins]
        return handle

    def old(self, shard: int) -> Version:
        """The version consumed so far."""
        return self.pins[shard] if self.queues[shard] else self.trace.version(shard)

    def _take_part(self, shard: int, epoch: int) -> tuple[Version, tuple[Batch, ...], Version]:
        """`take_before` where some of what waits may stay."""
        old = self.pins[shard]
        now, later = self._divided(shard, epoch)
        if not later:
            return self.take(shard)
        new = shortened(Version((*old.batches, *now)), self.trace) if now else old
        self.queues[shard] = later
        if self.reads_versions:
            self.pins[shard] = new
        return old, tuple(now), new

    def before(self, shard: int, epoch: int) -> list[Batch]:
        """The updates before `epoch` that wait. They go on waiting."""
        return self._divided(shard, epoch)[0]

    def _divided(self, shard: int, epoch: int) -> tuple[list[Batch], list[Batch]]:
        """The queue of a shard before `epoch`, and from there on."""
        now: list[Batch] = []
        later: list[Batch] = []
        for batch in self.queues[shard]:
            if batch.upper[0][0] <= epoch:
                now.append(batch)
            elif batch.lower[0][0] >= epoch:
                later.append(batch)
            else:
                first, second = split_batch(batch, self.trace.data, epoch)
                now.append(first)
                later.append(second)
        return [b for b in now if b.n], [b for b in later if b.n]

    def forget(self) -> None:
        """Release what has not been taken, after the handle was dropped."""
        self.queues = [NO_BATCHES] * self.trace.shards
        if self.reads_versions:
            self.pins = [EMPTY] * self.trace.shards

    def drop(self) -> None:
        """Stop reading; dropping twice is harmless."""
        self.trace.remove_handle(self)
        if self.guarded_by is not None and self.trace.routes is not None:
            self.trace.routes.remove(self, self.guarded_by)
        if self.hold is not None:
            self.hold.drop()


def split_at(batch: Batch, time_at: int, epoch: int) -> tuple[Batch, Batch]:
    """`split_batch`, for a batch that may lie on one side of `epoch` as a whole."""
    if batch.upper[0][0] <= epoch or batch.lower[0][0] >= epoch:
        nothing = nothing_after(batch)
        return (batch, nothing) if batch.upper[0][0] <= epoch else (nothing, batch)
    return split_batch(batch, time_at, epoch)


def split_batch(batch: Batch, time_at: int, epoch: int) -> tuple[Batch, Batch]:
    """Split a batch of the outermost scope into the updates before `epoch` and the others. Both stay sorted."""
    buf, head, cut = split_epoch(batch.at, time_at, epoch)
    whole = Chunk(head, (batch.memory, buf))
    first, second = whole.slice(0, int(cut)), whole.slice(int(cut), batch.n)
    middle: Frontier = ((epoch,),)
    return (
        Batch(first.head, first.memory, batch.lower, middle, batch.since),
        Batch(second.head, second.memory, middle, batch.upper, batch.since),
    )


def shortened(version: Version, trace: Trace) -> Version:
    """A version that only its owner sees, with its smaller batches joined once there are many.

    A reader that is always behind continues from its own versions, which no spine merges.
    """
    if len(version.batches) <= MANY:
        return version
    ordered = sorted(version.batches, key=lambda batch: batch.n)
    small, large = ordered[: MANY // 2], ordered[MANY // 2 :]
    table = addresses(small)
    buf, head = build(table, trace.data, trace.times, trace.diffs, 0)
    joined = Batch(head, buf, small[0].lower, small[-1].upper, small[0].since)
    return Version((*large, joined))
