"""Staged part: the part of some dataflows' sweeps that one job runs, for some moments of one scope of each.

Promise: until `apply`, the dataflows do not change. After it, they are in the state that they would have reached in this process.
"""

from __future__ import annotations

import threading
import time
import uuid
from concurrent.futures import Future
from contextlib import suppress
from typing import TYPE_CHECKING

from tektite.dataflow.flow import Dataflow
from tektite.dataflow.graph import Moment, Outbox, Scope
from tektite.errors import FaultError
from tektite.runtime.messages import StageReport, raised, replay
from tektite.runtime.shard import deliver
from tektite.runtime.shipment import Shipment, pack
from tektite.runtime.stages import Graph, decisions, stages_of
from tektite.storage.batchfile import Opened
from tektite.trace.chunk import Chunk

if TYPE_CHECKING:
    from tektite.runtime.staged import Staged

ATTEMPTS = 3
"""Failed jobs after which a sweep fails. Each job has tried every task several times."""


class StagedPart:
    """A part of sweeps that one job runs: made, started, waited for, and applied to each dataflow."""

    def __init__(
        self,
        executor: Staged,
        flows: list[Dataflow],
        scopes: list[Scope],
        moments: list[Moment],
        position: int = 0,
        fresh: bool = False,
    ) -> None:
        """`fresh` says that the sweeps begin with this part."""
        self.executor = executor
        self.fresh = fresh
        self.graph = Graph.of(flows)
        self.stages = stages_of(self.graph, scopes, moments, position)
        self.epoch = max(flow.high for flow in flows) - 1
        packed = pack(self.graph, self.stages, executor.files, self.epoch, executor.pickler)
        self._used = packed.used
        token = uuid.uuid4().hex[:8]
        self.shipment = Shipment(
            executor.files.store, token, executor.shards, self.epoch, packed.content, self.stages,
            decisions(self.graph, self.stages), packed.waiting, executor.texts() if packed.reads_texts else (),
        )  # fmt: skip
        self.names = [flow.name for flow in flows]
        low = min(flow.low for flow in flows)
        epochs = f"epoch {low}" if low == self.epoch else f"epochs {low} to {self.epoch}"
        self.group = f"tektite sweep {token}"
        what = f"sweep in {self.stages.count} stages"
        if moments[0]:
            what = (
                f"rounds {moments[0][-1]} to {moments[-1][-1]} of loop {scopes[0].name!r} in {self.stages.count} stages"
            )
        self.description = f"tektite: {epochs}, {what}, views {', '.join(self.names)}"
        self._future: Future[list[StageReport]] = Future()
        self._files: dict[str, Opened] = {}

    def start(self) -> None:
        """Start the job in a thread of its own."""
        threading.Thread(target=self._run, name="tektite-sweep", daemon=True).start()

    def _run(self) -> None:
        try:
            reports = self.executor.run(self.shipment, self.group, self.description)
            self.executor.files.delete([report.sent for report in reports if report.sent is not None])
            self._future.set_result(reports)
        except BaseException as error:
            self._future.set_exception(error)

    def ended(self, flow: Dataflow, deadline: float) -> bool:
        """Whether the job has ended, and has been applied to everything that the dataflow reads."""
        return self.done(deadline) and not any(
            source.flow is not None and source.flow.part is self for source in flow.sources
        )

    def done(self, deadline: float) -> bool:
        """Wait for the job until the deadline. Returns whether it has ended."""
        left = None if deadline == float("inf") else max(deadline - time.perf_counter(), 0)
        with suppress(TimeoutError):
            self._future.exception(left)
        return self._future.done()

    def apply(self, flow: Dataflow) -> None:
        """Bring a dataflow to the state in which the job left it."""
        error = self._future.exception()
        if error is not None:
            self._failed(flow, error)
            return
        for source in flow.sources:
            if source.failure is not None:
                raise FaultError(f"it reads {source.name!r}, which failed: {source.failure}", flow.name)
        reports = self._future.result()
        self._note(flow, reports)
        number = self.graph.number[id(flow)]
        for report in reports:
            for failed, kind, text in report.failures:
                if failed == number:
                    raise raised(kind, text, flow.name)
        dictionary = self.executor.dictionary
        if not self._files:  # open all: a file is deleted once unused, and other dataflows need it
            self._files = {r.file.name: self.executor.files.open(r.file) for r in reports if r.file is not None}
        self._strike(flow)
        files = [None if report.file is None else self._files[report.file.name] for report in reports]
        for report, file in zip(reports, files, strict=True):
            if file is not None and report.texts is not None:
                dictionary.add(file.texts(report.texts))

        def catch_up(shard: int, _: Outbox) -> None:
            for report, file in zip(reports, files, strict=True):
                if report.shard == shard:
                    replay(self.graph, self.stages, report, file, flow)

        rows = sum(section.rows for file in files if file is not None for section in file.info.sections)
        flow.workers.map(
            catch_up, self.executor.shards, rows
        )  # in parallel: minting merges batches, which is most of the work
        for report, file in zip(reports, files, strict=True):
            for address, section in report.waiting:
                if self.graph.nodes[address.node].flow is flow:
                    assert file is not None
                    batch = file.batch(section)
                    deliver(self.graph, address, Chunk(batch.head, batch.memory))
        self._wake(flow)
        self.executor.failures.pop(flow, None)

    def _note(self, flow: Dataflow, reports: list[StageReport]) -> None:
        """Record what the job did for the journal. What dataflows share counts for the first one."""
        sweep = flow.sweep
        if sweep is not None:
            sweep.jobs += (self.group,)
            sweep.stages += self.stages.count
            sweep.why = f"at least {self.executor.rows} rows waited for it, or for what it reads"
            if flow is self.graph.flows[0]:
                sweep.sent += sum(report.rows for report in reports)
                sweep.written += sum(report.file.length for report in reports if report.file is not None)

    def _scope(self, flow: Dataflow) -> Scope:
        """The scope of a dataflow that the job ran."""
        return self.graph.scopes[self.stages.scopes[self.graph.number[id(flow)]]]

    def _strike(self, flow: Dataflow) -> None:
        """Drop the rows that the job has processed, and take its nodes off the agenda."""
        scope = self._scope(flow)
        ran = [self.graph.nodes[number] for number in self.stages.first if self.graph.nodes[number].flow is flow]
        for node in ran:
            for buffer in node.buffers:
                for moment in self.stages.moments:
                    buffer.forget(moment)
        scope.strike({node.position for node in ran}, self.stages.moments)
        if scope.depth:
            flow.rounds += len(self.stages.moments)
            scope.rounds += len(self.stages.moments)

    def _wake(self, flow: Dataflow) -> None:
        """Schedule nodes that the job did not run and that have something to read. What is left in the queues of nodes that it
        ran belongs to later sweeps.
        """
        scope = self._scope(flow)
        if scope.depth:
            scope.moment = self.stages.moments[-1]
        for number, node in enumerate(self.graph.nodes):
            if node.flow is flow and number not in self.stages.first:
                for reader in node.reads:
                    of = [*node.scope.enclosing()][reader.lift]
                    if of is scope:
                        reader.wake(scope.moment)

    def _failed(self, flow: Dataflow, error: BaseException) -> None:
        """Let the sweep start again, in a job of its own. After `ATTEMPTS` failures, raise an error."""
        executor = self.executor
        executor.given_up(self)
        count = executor.failures[flow] = executor.failures.get(flow, 0) + 1
        if count >= ATTEMPTS:
            raise FaultError(
                f"{count} {executor.jobs} for its sweep failed, the last with: {executor.reason(error)}", flow.name
            ) from error
        if self.fresh:
            flow.running = False
            flow.high = flow.low

    def next_part(self, flow: Dataflow) -> StagedPart | None:
        """The next part of the dataflow's sweep, if it is large enough."""
        return self.executor.next_part(flow)
