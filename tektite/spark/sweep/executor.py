"""Executor: which sweeps become Spark jobs, and what the driver makes of their results.

A sweep runs where it is cheapest. One with few rows to begin with runs in the driver, on its own threads. A larger one is a job,
shared by all dataflows whose sweeps are large and by those that read them; meanwhile the driver may do other things. When the job
has ended, the driver maps the files that its tasks wrote as its own traces: it is then where it would be if it had run
the sweep itself, and goes on from there. Until then nothing has changed, so a job that fails is run again.
"""

from __future__ import annotations

import threading
import time
import uuid
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress

from tektite.dataflow.flow import Dataflow
from tektite.dataflow.pipelines import Pipelines
from tektite.dictionary import Dictionary
from tektite.errors import FaultError, TektiteError
from tektite.spark.sweep.graph import Graph, Stages, outermost
from tektite.spark.sweep.machine import Report, buffer_of, raised, replay
from tektite.spark.sweep.parcel import Parcel, Yard, pack
from tektite.spark.sweep.texts import Library
from tektite.storage.batchfile import FOLDER, Opened, Texts, write_file
from tektite.storage.options import SWEEPS
from tektite.storage.session import Session
from tektite.trace.chunk import Chunk

Runner = Callable[[Parcel, str, str], list[Report]]
"""Runs the tasks of a job, which has a group and a description, and hands over what they report."""

ATTEMPTS = 3
"""Jobs that may fail under a sweep before its dataflow does: each has tried every task several times."""


class Sweeps:
    """Runs the large sweeps of an engine as jobs."""

    def __init__(self, run: Runner, session: Session, dictionary: Dictionary, shards: int, rows: int) -> None:
        self.run = run
        self.session = session
        self.dictionary = dictionary
        self.shards = shards
        self.rows = rows
        self.yard = Yard(session.keeper.store)
        self.yard.clear()
        self.failures: weakref.WeakKeyDictionary[Dataflow, int] = weakref.WeakKeyDictionary()
        self._running: weakref.WeakSet[Part] = weakref.WeakSet()

    def begin(self, flows: Sequence[Dataflow]) -> None:
        """Start a job for those dataflows that have much to do, and for those that read them."""
        ahead: dict[Dataflow | None, int] = {}
        chosen: list[Dataflow] = []
        suspects: list[tuple[Dataflow, int]] = []
        for flow in flows:
            if flow.failure is not None or flow.running or any(source.failure for source in flow.sources):
                continue
            high = flow.available(ahead)
            reads_chosen = any(source.flow in ahead for source in flow.sources)
            if high <= flow.low or not (reads_chosen or waiting_rows(flow) >= max(self.rows, 1)):
                continue
            if self.failures.get(flow):
                if not reads_chosen:
                    suspects.append((flow, high))
                continue
            chosen.append(flow)
            if complete(flow):
                ahead[flow] = high
        if chosen:
            self._start(chosen, [flow.available(ahead) for flow in chosen])
        for flow, high in suspects:
            self._start([flow], [high])

    def _start(self, flows: list[Dataflow], highs: list[int]) -> None:
        before = [(flow.high, flow.running) for flow in flows]
        for flow, high in zip(flows, highs, strict=True):
            flow.high, flow.running = high, True
        try:
            part = Part(self, flows)
        except BaseException:
            for flow, (high, running) in zip(flows, before, strict=True):
                flow.high, flow.running = high, running
            raise
        if not part.stages.count:
            for flow, (high, running) in zip(flows, before, strict=True):
                flow.high, flow.running = high, running
            return
        self._running.add(part)
        for flow, high in zip(flows, highs, strict=True):
            flow.leave(part, high)
        part.start()

    def library(self) -> Library:
        """Where all texts are that the dictionary has: in files of the manifest, and what is not there yet in one more."""
        keeper = self.session.keeper
        mark = keeper.written_texts  # before the state: what a newer state has beyond the mark is told twice
        state = keeper.manifest.state
        sections = [(FOLDER, live.file, state.files[live.file].length, live.index) for live in state.texts()]
        more, _ = self.dictionary.since(mark)
        if len(more):
            info = write_file(self.yard.store, 0, "texts", 0, [Texts(more)], SWEEPS)
            sections.append((SWEEPS, info.name, info.length, 0))
        return Library(tuple(sections))

    def given_up(self, part: Part) -> None:
        """A job has failed for good: remove what it has written."""
        self._running.discard(part)
        if all(other.done(0) for other in self._running):
            with suppress(OSError):
                self.yard.tidy()

    def close(self) -> None:
        """Wait for the jobs that run, and delete what they have written."""
        for part in list(self._running):
            part.done(float("inf"))
        with suppress(OSError):
            self.yard.clear()


def complete(flow: Dataflow) -> bool:
    """Whether a job can run all nodes of a dataflow."""
    graph = Graph.of([flow])
    return len(outermost(graph).first) == len(graph.nodes)


def waiting_rows(flow: Dataflow) -> int:
    """How many rows a sweep would begin with."""
    return sum(batch.n for reader in flow.imports for queue in reader.handle.queues for batch in queue)


class Part:
    """The part of some dataflows' sweeps that one job runs."""

    def __init__(self, sweeps: Sweeps, flows: list[Dataflow]) -> None:
        self.sweeps = sweeps
        self.graph = Graph.of(flows)
        self.stages: Stages = outermost(self.graph)
        if not self.stages.count:
            return
        self.epoch = max(flow.high for flow in flows) - 1
        content, reads_texts, self._keep = pack(self.graph, ranks(self.graph), sweeps.yard, self.epoch)
        library = sweeps.library() if reads_texts else Library()
        token = uuid.uuid4().hex[:8]
        self.parcel = Parcel(sweeps.yard.store, token, sweeps.shards, self.epoch, content, self.stages, library)
        self.names = [flow.name for flow in flows]
        low = min(flow.low for flow in flows)
        epochs = f"epoch {low}" if low == self.epoch else f"epochs {low} to {self.epoch}"
        self.group = f"tektite sweep {token}"
        self.description = f"tektite: {epochs}, sweep in {self.stages.count} stages, views {', '.join(self.names)}"
        self._future: Future[list[Report]] = Future()
        self._files: dict[str, Opened] = {}

    def start(self) -> None:
        """Run the job, beside whatever else happens here."""
        threading.Thread(target=self._run, name="tektite-sweep", daemon=True).start()

    def _run(self) -> None:
        try:
            self._future.set_result(self.sweeps.run(self.parcel, self.group, self.description))
        except BaseException as error:
            self._future.set_exception(error)

    def ended(self, flow: Dataflow, deadline: float) -> bool:
        """Whether the job has ended, and what the dataflow may read has been brought to where the job left it."""
        return self.done(deadline) and not any(
            other.away is self for other in self.graph.flows[: self.graph.number[id(flow)]]
        )

    def done(self, deadline: float) -> bool:
        """Wait for the end of the job until the deadline; whether it has come."""
        left = None if deadline == float("inf") else max(deadline - time.perf_counter(), 0)
        with suppress(TimeoutError):
            self._future.exception(left)
        return self._future.done()

    def apply(self, flow: Dataflow) -> None:
        """Bring a dataflow to where the job left it."""
        error = self._future.exception()
        if error is not None:
            self._failed(flow, error)
            return
        for source in flow.sources:
            if source.failure is not None:
                raise FaultError(f"it reads {source.name!r}, which failed: {source.failure}", flow.name)
        reports = self._future.result()
        number = self.graph.number[id(flow)]
        for report in reports:
            for failed, kind, text in report.failures:
                if failed == number:
                    raise raised(kind, text, flow.name)
        dictionary = self.sweeps.dictionary
        if not self._files:  # all of them: they go when nothing of them is used, and other dataflows will use them
            self._files = {r.file.name: self.sweeps.yard.open(r.file) for r in reports if r.file is not None}
        for report in reports:
            file = None if report.file is None else self._files[report.file.name]
            if file is not None and report.texts is not None:
                dictionary.add(file.texts(report.texts))
            replay(self.graph, report, file, flow)
            for waiting in report.waiting:
                node = self.graph.nodes[waiting.node]
                if node.flow is flow:
                    assert file is not None
                    batch = file.batch(waiting.section)
                    chunk = Chunk(batch.head, batch.keep)
                    buffer_of(node).add(waiting.shard, chunk, waiting.moment)
                    node.scope.schedule(node.position, waiting.moment)
        for node in self.graph.nodes:
            if node.flow is flow:
                for reader in node.reads:
                    if reader.trace.times == 1:
                        reader.wake()
        self.sweeps.failures.pop(flow, None)

    def _failed(self, flow: Dataflow, error: BaseException) -> None:
        """The job was given up: the sweep begins anew, in a job of its own, unless that has been tried often enough."""
        sweeps = self.sweeps
        sweeps.given_up(self)
        count = sweeps.failures[flow] = sweeps.failures.get(flow, 0) + 1
        if count >= ATTEMPTS:
            raise FaultError(
                f"{count} Spark jobs for its sweep failed, the last with: {reason(error)}", flow.name
            ) from error
        flow.running = False
        flow.high = flow.low

    def following(self, flow: Dataflow) -> Part | None:
        """What comes next runs in the driver."""
        return None


def reason(error: BaseException) -> str:
    """What a failed job says, without the traces of its stack."""
    if isinstance(error, TektiteError):
        return str(error)
    lines = [line.strip() for line in str(error).splitlines()]
    kept = [line for line in lines if line and not line.startswith(("at ", "File ", "Traceback", "..."))]
    told = [line for line in kept if "Error" in line or "Exception" in line or "crashed" in line]
    return (told or kept or [type(error).__name__])[-1]


def ranks(graph: Graph) -> dict[int, Sequence[int]]:
    """The order in which the relations of each conjunction count as changed: any is right, but all shards have to take the same.

    Where all begin with nothing, one that is known to be small is last, so that its pipeline alone has something to find.
    """
    made = {id(node.mints) for node in graph.nodes if node.mints is not None}
    found: dict[int, Sequence[int]] = {}
    for number, node in enumerate(graph.nodes):
        if not isinstance(node, Pipelines):
            continue
        order = list(range(node.relations))
        positive = [source for source in node.sources if source.relation >= node.negated]
        handles = [node.readers[source.reader].handle for source in positive]
        known = [
            (sum(batch.n for queue in handle.queues for batch in queue), source.relation)
            for source, handle in zip(positive, handles, strict=True)
            if id(handle.trace) not in made
        ]
        nothing = not any(len(handle.old(shard).table) for handle in handles for shard in range(node.shards))
        if nothing and known:
            order[min(known)[1]] = node.relations
        found[number] = order
    return found
