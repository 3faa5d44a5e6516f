"""Closing epochs: prepare everything that can fail, then commit. This page is the protocol; the classes are its messages.

An epoch closes for several inputs together, and counts for all of them or for none. There are three phases, all under the
engine's lock:

1. **Prepare** (`EngineCore.prepare_epoch`). Every input says what closing would make of it: `InputCore.prepare` sorts, routes,
   resolves and checks its due updates. The storage is asked for room, and the change for it is written out. This phase may
   fail, and may be interrupted: it changes nothing that anybody else can see. A `PreparedEpoch` that is not committed is
   dropped, and everything is as it was, pending updates included.
2. **Commit** (`PreparedEpoch.commit`). Every input takes its prepared part, the engine's clock moves, the storage gets the
   change. This phase has no reason to refuse anything: whatever could be wrong was found before.
3. **Sweep** (`EngineCore.run`). Shared arrangements and views follow, each in a turn of its own. One that fails stops alone;
   the epoch stays closed. The catalog takes no part in phases 1 and 2: it knows an input's arrangement by the input's trace,
   into which the commit mints, and that never becomes another trace.

=================  ===================================  ==================================  ============================
call               who, and when                        may fail                            changes
=================  ===================================  ==================================  ============================
input.prepare      prepare_epoch, dry_run               yes: rows break the declaration     nothing
input.commit       PreparedEpoch.commit, and the        no                                  trace, pending, low, writes
                   engine for an input nobody reads
input.adopt        a load whose tasks wrote files,      yes: the input was written to       what the next prepare finds
                   just before it closes the epoch      since the tasks looked at it        instead of pending updates
input.dry_run      a transaction, at each statement     yes: as insert, remove, prepare     nothing
input.current_rows a load that needs what is under its  no, given encoded rows              nothing
                   keys; counts closed epochs alone
input.savepoint    whoever writes and then closes, so   no                                  nothing
                   that a refusal can be undone
input.rollback     the same, when closing was refused;  no                                  pending updates, adopted
                   `Input.rollback` by users                                                rows
=================  ===================================  ==================================  ============================

Invariants, on which a transaction may rely:

* `prepare(high)` is a function of the input's trace, its pending updates and its adopted rows, and of nothing else. Called
  twice in a row it gives the same rows.
* Between a prepare and its commit the lock is not released and nothing is written to the input, so what was checked is true.
* `low` of an input that was read never falls, and moves in a commit alone. Updates before `low` are in the trace, others are
  pending. (`InputCore.begin_with` takes a new input back by an epoch.)
* `writes` grows in every commit that changes the input's contents, so who remembers it knows whether what was read is current.
* A change reaches the storage in the order of commits, and only if the commit happened.

A commit still does what can fail in principle (docs/design/sessions-and-errors.md is the plan that removes it):

* `Trace.mint` pays for a share of merging (`Spine.insert`). A merge allocates, and finds multiplicities that overflow only
  when it adds them up.
* With several shards, the minting of many rows runs on the executor's threads.
* An interrupt (Ctrl-C) is raised between any two steps of Python.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tektite.storage.batchfile import BatchSection, FileInfo
from tektite.trace.batch import Batch
from tektite.trace.chunk import Chunk

if TYPE_CHECKING:
    from tektite.engine.engine_core import EngineCore
    from tektite.engine.input_core import InputCore
    from tektite.engine.pending_updates import PendingUpdates
    from tektite.storage.epoch_writer import DurableChange

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


@dataclass(eq=False)
class PreparedInput:
    """What closing the epochs before `high` makes of one input."""

    source: InputCore
    high: int
    batches: Batches
    later: PendingUpdates
    """What stays pending: updates of `high` and after."""
    more: list[tuple[int, Chunk]]
    """Further batches, each with its shard."""
    files: list[FileInfo]
    """Files that hold the batches already."""
    adopted: bool = False

    @property
    def changes_contents(self) -> bool:
        """Whether rows come or go."""
        return self.adopted or any([batch is not None and batch.n for batch in self.batches])

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

    def commit(self) -> None:
        """Let the input have it."""
        self.source.commit(self)
        self.batches.clear()  # what the trace has merged already need not stay until the other inputs are committed
        self.more.clear()


@dataclass(eq=False)
class PreparedEpoch:
    """What closing some epochs does: to each input, to the engine's clock and to the storage."""

    inputs: list[PreparedInput]
    epoch: int
    """The engine's open epoch afterwards."""
    ending: InputCore | None
    """The input that ends with it."""
    durable: DurableChange | None
    """What becomes durable, if there is a storage."""

    def commit(self, core: EngineCore) -> None:
        """Close the epochs."""
        for prepared in self.inputs:
            prepared.commit()
        core.epoch = self.epoch
        if self.ending is not None:
            self.ending.closed = True
        if self.durable is not None and core.storage is not None:
            core.storage.append(self.durable)
        self.inputs.clear()
