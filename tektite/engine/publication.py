"""Publication: a view's contents and changes as a stored arrangement, for other processes to read.

The stored rows add up, at the epoch in the manifest, to the view's answer at that epoch. A run that publishes
a view which an earlier one has published stores the difference between what it finds and what the view holds. While a row that
the view depends on fails, the view has no answer, and what is stored stays as it is.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from tektite.dataflow.arrange import consolidate
from tektite.engine.lock import StepByStep
from tektite.errors import ConflictError
from tektite.storage.batchfile import BatchSection
from tektite.storage.description import ViewDescription
from tektite.storage.epoch_writer import DurableChange
from tektite.storage.open_storage import OpenStorage
from tektite.trace.batch import Batch
from tektite.trace.chunk import Chunk
from tektite.trace.trace import Handle

if TYPE_CHECKING:
    from tektite.engine.view_core import ViewCore


LOG = logging.getLogger("tektite")


class Publication:
    """Stores what a view changes after each of its sweeps."""

    def __init__(self, view: ViewCore, storage: OpenStorage) -> None:
        self.view = view
        self.storage = storage
        self.description = ViewDescription(view.schema, view.columns, view.sharded_by)
        manifest = storage.writer.manifest
        found = manifest.state.arrangements.get(view.name)
        if found is not None and found["kind"] != "view":
            raise ConflictError(f"view {view.name!r} cannot be persisted: the storage holds a table of this name")
        self.handle = Handle(view.trace, None)
        self.low: int | None = None
        """The epoch up to which the view is stored; None until the first answer."""
        self.waits = False
        """Whether it waits until the view has an answer again."""
        view.flow.on_swept += (self.publish,)
        view.flow.add_outlet(self.handle)
        view.flow.on_failed += (self,)
        self.publish()
        if self.low is None and found is None and not self.waits:  # readers find a view that is empty so far
            described = self.description.to_json()
            storage.append(DurableChange(view.engine.epoch, arrangements={view.name: described}, lows={view.name: 0}))

    def flow_failed(self) -> None:
        """Follow the view no further."""
        self.handle.drop()

    def publish(self) -> None:
        """Store what the view has changed since the last time."""
        view = self.view
        if view.low <= view.first:
            return  # no answer yet
        error = view.error_at(view.low - 1)
        if error is not None:
            if not self.waits:
                LOG.warning("%s. What is stored of the view stays as it is until then", error)
            self.waits = True
            return
        self.waits = False
        low = view.low
        changes = self._begun() if self.low is None else self._changes(self.low)

        def taken() -> None:
            if changes or self.low is None:
                self.low = low
            for shard in range(view.trace.shards):
                self.handle.take_before(shard, low)

        view.lock.decide(StepByStep(*[view.engine.to_storage(change) for change in changes], taken))

    def _changes(self, stored: int) -> list[DurableChange]:
        """The view's changes since an epoch."""
        view = self.view
        rows = self._rows(self._waiting(), stored)
        return [DurableChange(view.engine.epoch, rows=rows, lows={view.name: view.low})] if rows else []

    def _begun(self) -> list[DurableChange]:
        """The changes that bring the stored rows to those of the view."""
        view, writer = self.view, self.storage.writer
        state = writer.manifest.state
        chunks = self._waiting()
        epoch = view.engine.epoch
        described = self.description.to_json()
        known = state.arrangements.get(view.name)
        stored = state.lows.get(view.name, 0)
        if known == described:
            old = [
                [negated(writer.files.batch(state, live)) for live in state.live(view.name, shard)]
                for shard in range(view.trace.shards)
            ]
            rows = self._rows([new + gone for new, gone in zip(chunks, old, strict=True)], stored)
            if not rows and stored <= view.low:
                return []
            if stored < view.low:
                return [DurableChange(epoch, rows=rows, lows={view.name: view.low})]
        found = []
        if known is not None:  # another query had the name, or the same one ran with other data: begin again
            found.append(DurableChange(epoch, arrangements={view.name: None}))
        rows = self._rows(chunks, 0)
        lows = {view.name: view.low}
        return [*found, DurableChange(epoch, rows=rows, arrangements={view.name: described}, lows=lows)]

    def _waiting(self) -> list[list[Chunk]]:
        """The changes that are not stored yet, by shard."""
        shards = range(self.view.trace.shards)
        return [[Chunk(b.head, b.memory) for b in self.handle.before(shard, self.view.low)] for shard in shards]

    def _rows(self, chunks: list[list[Chunk]], lower: int) -> list[BatchSection]:
        """One batch of each shard that has changed, from the epoch `lower` up to what the view has answered."""
        view = self.view
        shape = (len(view.columns), 1, 1)
        frontiers = ((lower,),), ((view.low,),), ((lower,),)
        found = []
        for shard, some in enumerate(chunks):
            if some:
                batch = consolidate(some, shape, lower)
                if batch.n:
                    found.append(BatchSection(view.name, shard, shape, Batch(batch.head, batch.memory, *frontiers)))
        return found


def negated(batch: Batch) -> Chunk:
    """A batch with its multiplicities negated."""
    words = Chunk(batch.head, batch.memory).to_array()
    words[-1] *= -1
    return Chunk.of_array(words)
