"""Closing epochs: prepare everything that can fail, decide, then apply. This page is the protocol; the classes are its messages.

An epoch closes for several inputs together, and counts for all of them and for the storage, or for none. There are four phases,
all under the engine's lock:

1. **Prepare** (`prepare_epoch`). Every input that a write set has updates of says what closing would make of it:
   `InputCore.prepare` sorts, routes, resolves and checks the updates, and `Trace.prepare` makes room for the batches. The
   storage is asked for room, and the change for it is written out. This phase may fail, and may be interrupted: it changes
   nothing that anybody else can see. A `PreparedEpoch` that is not decided is dropped, and everything is as it was, the write set
   included.
2. **Decide** (`EngineLock.decide`). One assignment. Before it the epoch has not happened; after it the epoch has.
3. **Apply** (`PreparedEpoch.apply`). Every trace gets its batches, every input its next epoch, the write set what is left of it,
   the engine its clock, the storage the change. Each step may be repeated: what an exception leaves undone, whoever enters the
   engine next does first.
4. **Sweep** (`EngineCore.run`), after the traces have done the merging that their new batches pay for. Shared arrangements and
   views follow, each in a turn of its own. One that fails stops alone; the epoch stays closed. The catalog takes no part in
   closing: it knows an input's arrangement by the input's trace, into which applying mints, and that never becomes
   another trace.

=================  ===================================  ==================================  ============================
call               who, and when                        may fail                            changes
=================  ===================================  ==================================  ============================
input.write        sessions, at any time                yes: rows that do not fit           the write set it is given
input.prepare      prepare_epoch, transactions          yes: rows break the declaration     nothing
engine.commit      whoever has a write set              yes, and then nothing happened      the write set's inputs, clocks
input.changes_by   a transaction that reads its writes  yes: as prepare                     nothing
input.current_rows a load that needs what is under its  no, given encoded rows              nothing
                   keys; counts closed epochs alone
=================  ===================================  ==================================  ============================

Invariants, on which a transaction may rely:

* `prepare` is a function of the input's trace and of the updates it is given, and of nothing else. Called twice in a row it
  gives the same rows.
* Between preparing and deciding the lock is not released, so what was checked is true.
* `low` of an input that was read never falls, and moves in `apply` alone. Updates before `low` are in the trace.
  (`InputCore.begin_with` takes a new input back by an epoch.)
* `writes` grows with every epoch that changes the input's contents, so who remembers it knows whether what was read is
  current.
* A change reaches the storage in the order of epochs, and only if the epoch happened.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tektite.errors import IncorrectError
from tektite.runtime import allocator
from tektite.storage.batchfile import BatchSection, FileInfo
from tektite.storage.epoch_writer import DurableChange
from tektite.storage.open_storage import Position, checked_positions
from tektite.trace.batch import Batch
from tektite.trace.chunk import Chunk
from tektite.trace.records import Mint

if TYPE_CHECKING:
    from tektite.engine.engine_core import EngineCore
    from tektite.engine.input_core import InputCore
    from tektite.engine.pending_updates import PendingUpdates
    from tektite.engine.write_set import WriteSet
    from tektite.values.text_space import Mark

Batches = list[Chunk | None]
"""One batch for each shard, or None where a shard gets no rows."""


@dataclass(frozen=True)
class AdoptedRows:
    """Rows of one epoch that others have sorted, sharded and stored: the files' batches cover the epochs `low` to `epoch`."""

    batches: Batches
    more: list[tuple[int, Chunk]]
    """Further batches, each with its shard."""
    files: list[FileInfo]
    low: int
    epoch: int
    writes: int | None = None
    """The input's `writes` when the rows were made, if they follow from what it held."""


@dataclass(eq=False, slots=True)
class PreparedInput:
    """The state of one table after the epochs before `high` are closed."""

    source: InputCore
    high: int
    batches: Batches
    later: PendingUpdates | None
    """Updates of `high` and after, which stay in the write set."""
    more: list[tuple[int, Chunk]]
    """Further batches, each with its shard."""
    files: list[FileInfo]
    """Files that hold the batches already."""
    adopted: bool = False
    postponed: PendingUpdates | None = None
    """Updates of `high` and after, which stay scheduled, whoever closes their epochs."""
    mints: list[Mint] | None = None
    writes: int = 0

    def rows_to_store(self) -> list[BatchSection]:
        """The batches as they go into a file, unless files hold them. A stream's are not stored."""
        source = self.source
        if source.is_stream or self.files:
            return []
        low, upper = ((source.low,),), ((self.high,),)
        return [
            BatchSection(
                source.name, shard, (len(source.columns), 1, 1), Batch(batch.head, batch.memory, low, upper, low)
            )
            for shard, batch in [*enumerate(self.batches), *self.more]
            if batch is not None and batch.n
        ]

    def make_ready(self) -> None:
        """Do everything about applying that can fail."""
        source, upper = self.source, ((self.high,),)
        self.mints = mints = []
        for shard, batch in enumerate(self.batches):
            found = [] if batch is None or not batch.n else [batch]
            if self.more:
                found += [more for place, more in self.more if place == shard and more.n]
            if found:
                mints.append(source.trace.prepare(shard, found, upper))
        self.writes = source.writes + (1 if self.mints or self.adopted else 0)

    def apply(self) -> None:
        """Let the input have it. May be repeated."""
        assert self.mints is not None
        source = self.source
        for mint in self.mints:
            mint.apply()
        source.writes = self.writes
        if self.mints or self.adopted:
            source.changed = self.high - 1
            source.change_number = source.engine.changes + 1
        source.low = self.high


@dataclass(eq=False, slots=True)
class PreparedEpoch:
    """The effects of closing some epochs: on each table, the write set, the engine's clock and the storage. A `Decision`."""

    core: EngineCore
    inputs: list[PreparedInput]
    """Inputs with updates."""
    others: list[InputCore]
    """Inputs without any."""
    high: int
    """The open epoch of these inputs afterwards."""
    epoch: int
    """The engine's open epoch afterwards."""
    ending: InputCore | None
    """The input that ends with it."""
    durable: DurableChange | None
    """The change that becomes durable, if there is a storage."""
    writes: WriteSet
    left: dict[InputCore, PendingUpdates]
    """Updates that stay in the write set."""
    scheduled: dict[InputCore, PendingUpdates] | None
    """Updates that stay scheduled, if some of them were due."""
    changes: int
    """How often inputs have changed afterwards."""

    @property
    def changed(self) -> list[InputCore]:
        """The inputs with updates."""
        return [prepared.source for prepared in self.inputs]

    @property
    def rows(self) -> int:
        """The number of changes of tables, system relations left out."""
        ours = [each for each in self.inputs if not each.source.is_system]
        found = [
            batch for each in ours for batch in [*each.batches, *[more for _, more in each.more]] if batch is not None
        ]
        return sum([batch.n for batch in found])

    def apply(self) -> None:
        """Close the epochs. May be repeated."""
        core = self.core
        for prepared in self.inputs:
            prepared.apply()
        for source in self.others:
            source.low = self.high
        self.writes.updates = self.left
        self.writes.adopted = {}
        if self.scheduled is not None:
            core.scheduled.updates = self.scheduled
        core.epoch = self.epoch
        core.changes = self.changes
        if self.ending is not None:
            self.ending.closed = True
        if self.durable is not None and core.storage is not None:
            core.storage.append(self.durable)

    def settle(self) -> None:
        """Do the merging that new batches pay for, after the decision. The batches are let go, because traces merge them away."""
        changed, self.inputs = self.changed, []
        for source in changed:
            source.settle()


def prepare_epoch(
    core: EngineCore,
    sources: Sequence[InputCore],
    high: int,
    writes: WriteSet,
    ending: InputCore | None = None,
    positions: Mapping[str, Position | None] | None = None,
    known: tuple[Mark, Mark] | None = None,
) -> PreparedEpoch:
    """Everything about closing epochs that can fail. Nothing changes; the caller holds the lock until it decides."""
    if core.is_closed:
        core.check_running()
    storage, durable = core.storage, None
    if storage is not None:
        durable = DurableChange(core.epoch, positions=checked_positions(positions or {}), known=known)
        storage.writer.admit()
    elif positions:
        raise IncorrectError("positions are kept in a storage, and this engine has none: Engine(storage=path)")
    updates, adopted, scheduled = writes.updates, writes.adopted, core.scheduled.updates
    inputs, others, left = [], [], {}
    still = dict(scheduled) if scheduled else None
    rows = 0
    for source, pending in updates.items():
        rows += pending.rows
        left[source] = pending
    if rows >= allocator.BULK:
        core.trimmer.trim_soon()
    for source in sources:
        if source in updates or source in adopted or source in scheduled:
            prepared = source.prepare(high, writes)
            prepared.make_ready()
            inputs.append(prepared)
            left.pop(source, None)
            if prepared.later is not None:
                left[source] = prepared.later
            if still is not None and source not in adopted:
                still.pop(source, None)
                if prepared.postponed is not None:
                    still[source] = prepared.postponed
        else:
            others.append(source)
    epoch = max(core.epoch, high)
    if durable is not None and storage is not None:
        durable.epoch = epoch
        for prepared in inputs:
            if prepared.source.is_stored:
                durable.rows += prepared.rows_to_store()
                durable.files += prepared.files
        durable.lows = {source.name: high for source in sources if source.is_stored}
        if ending is not None:
            durable.arrangements[ending.name] = replace(ending.describe(), closed=True).to_json()
        storage.writer.number(durable)
    changes = core.changes + 1
    return PreparedEpoch(core, inputs, others, high, epoch, ending, durable, writes, left, still, changes)
