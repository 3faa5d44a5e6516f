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

from tektite.dataflow.arrange import Buffer
from tektite.dataflow.flow import Dataflow
from tektite.dataflow.graph import Moment, Outbox, Scope
from tektite.dataflow.join import Join
from tektite.dataflow.pipelines import Pipelines
from tektite.dataflow.range_filter import RangeFilter
from tektite.dataflow.reduce import ReduceNode
from tektite.errors import FaultError
from tektite.spark.failures import reason
from tektite.spark.sweep.graph import Graph, Stages, enclosing, stages_of
from tektite.spark.sweep.machine import Report, put, raised, replay
from tektite.spark.sweep.parcel import Parcel, Yard, pack
from tektite.spark.sweep.texts import Library
from tektite.storage.batchfile import FOLDER, Opened, Texts, write_file
from tektite.storage.open_storage import OpenStorage
from tektite.storage.options import SWEEPS
from tektite.trace.chunk import Chunk
from tektite.values.dictionary import Dictionary

Runner = Callable[[Parcel, str, str], list[Report]]
"""Runs the tasks of a job, which has a group and a description, and hands over what they report."""

MOST_ROUNDS = 8
"""Rounds of a loop in one job: more would run in vain, once the loop has come to rest, than they save jobs."""

ATTEMPTS = 3
"""Jobs that may fail under a sweep before its dataflow does: each has tried every task several times."""


class Sweeps:
    """Runs the large sweeps of an engine as jobs."""

    def __init__(
        self,
        run: Runner,
        storage: OpenStorage,
        dictionary: Dictionary,
        shards: int,
        rows: int,
        cancel: Callable[[str], None] = lambda group: None,
    ) -> None:
        """`rows` is how many have to wait for a part of a sweep to become a job; `cancel` ends the job of a group."""
        self.run = run
        self.cancel = cancel
        self.storage = storage
        self.dictionary = dictionary
        self.shards = shards
        self.rows = rows
        self.why = f"fewer than {rows} rows waited for it"
        self.yard = Yard(storage.writer.store)
        self.yard.clear()
        self.failures: weakref.WeakKeyDictionary[Dataflow, int] = weakref.WeakKeyDictionary()
        self.unsendable: weakref.WeakKeyDictionary[Dataflow, str] = weakref.WeakKeyDictionary()
        self._running: weakref.WeakSet[Part] = weakref.WeakSet()
        self._unrolled: weakref.WeakKeyDictionary[Dataflow, tuple[Moment, int]] = weakref.WeakKeyDictionary()

    def begin(self, flows: Sequence[Dataflow]) -> None:
        """Start a job for those dataflows that have much to do, and for those that read them."""
        ahead: dict[Dataflow | None, int] = {}
        chosen: list[Dataflow] = []
        suspects: list[tuple[Dataflow, int]] = []
        for flow in flows:
            if flow.failure is not None or flow.away is not None or any(source.failure for source in flow.sources):
                continue
            if flow in self.unsendable:
                if flow.sweep is not None:
                    flow.sweep.why = self.unsendable[flow]
                continue
            if flow.running:
                flow.away = self.following(flow)
                continue
            high = flow.available(ahead)
            reads_chosen = any(source.flow in ahead for source in flow.sources)
            if high <= flow.low or not (reads_chosen or flow.queued() >= max(self.rows, 1)):
                continue
            if self.failures.get(flow):
                if not reads_chosen:
                    suspects.append((flow, high))
                continue
            graph = Graph.of([flow])
            found = len(stages_of(graph, [flow.root], [()]).first)
            if not found:  # all of it is in loops
                if flow.begin():
                    flow.away = self.following(flow)
                continue
            chosen.append(flow)
            if found == len(graph.nodes):
                ahead[flow] = high
        if chosen:
            self._start(chosen, [flow.available(ahead) for flow in chosen])
        for flow, high in suspects:
            self._start([flow], [high])

    def _start(self, flows: list[Dataflow], highs: list[int]) -> None:
        """Begin sweeps with what no loop has to run before."""
        for flow, high in zip(flows, highs, strict=True):
            flow.high, flow.running = high, True
            self._unrolled.pop(flow, None)
        try:
            part = Part(self, flows, [flow.root for flow in flows], [()], fresh=True)
        except Exception:  # a function that cannot be pickled, a full disk: the driver needs neither
            self._find_unsendable(flows)
            for flow in flows:
                flow.high, flow.running = flow.low, False
            return
        self._running.add(part)
        for flow, high in zip(flows, highs, strict=True):
            flow.leave(part, high)
        part.start()

    def following(self, flow: Dataflow) -> Part | None:
        """The next part of a sweep that has begun, as a job, if it is large enough: what waits at a moment of a scope. In a loop
        that has no other inside, it is several rounds: first one, then two, four, eight.
        """
        found = flow.root.upcoming(())
        if found is None or not at_rest(flow):
            return None
        node, moment = found
        scope, position, rounds = node.scope, node.position, 1
        if not any(isinstance(member, Scope) for member in scope.body):
            position = 0
            if moment:
                place, most = self._unrolled.get(flow, (moment[:-1], 1))
                rounds = min(most if place == moment[:-1] else 1, scope.limit - moment[-1] + 1)
        if rounds < 1:
            return None
        moments = [(*moment[:-1], moment[-1] + number) if moment else () for number in range(rounds)]
        graph = Graph.of([flow])
        if waiting_rows(graph, stages_of(graph, [scope], moments, position)) < max(self.rows, 1):
            self._unrolled.pop(flow, None)
            return None
        self._unrolled[flow] = (moment[:-1], min(2 * rounds, MOST_ROUNDS))
        try:
            part = Part(self, [flow], [scope], moments, position)
        except OSError:  # a full disk: the driver goes on in memory
            return None
        self._running.add(part)
        part.start()
        return part

    def _find_unsendable(self, flows: list[Dataflow]) -> None:
        """Note of dataflows that cannot be sent to tasks why not: they stay in the driver."""
        for flow in flows:
            try:
                Part(self, [flow], [flow.root], [()])
            except OSError:
                continue
            except Exception as error:
                self.unsendable[flow] = f"it cannot be sent to tasks: {type(error).__name__}: {error}"

    def library(self) -> Library:
        """Where all texts are that the dictionary has: in files of the manifest, and what is not there yet in one more."""
        writer = self.storage.writer
        mark = writer.written_texts  # before the state: what a newer state has beyond the mark is told twice
        state = writer.manifest.state
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
        """End the jobs that run, and delete what they have written."""
        for part in list(self._running):
            if not part.done(0):
                self.cancel(part.group)
                part.done(float("inf"))
        with suppress(OSError):
            self.yard.clear()


def waiting_rows(graph: Graph, stages: Stages) -> int:
    """How many rows wait for the nodes of some stages at the first moment. What other dataflows have made of later epochs is for
    later sweeps.
    """
    rows = 0
    moment = stages.moments[0] if stages.moments else ()
    for number in stages.first:
        node = graph.nodes[number]
        high = node.flow.high
        rows += sum(
            batch.n
            for reader in node.reads
            for queue in reader.handle.queues
            for batch in queue
            if not reader.imported or batch.lower[0][0] < high
        )
        if isinstance(buffer := getattr(node, "buffer", None), Buffer):
            rows += sum(chunk.n for chunks in buffer.waiting(moment) for chunk in chunks)
        if isinstance(node, ReduceNode):
            rows += sum(chunk.n for todo in node.todo for chunk in todo.get(moment, ()))
    return rows


def at_rest(flow: Dataflow) -> bool:
    """Whether no node has stopped in the middle of its work."""
    for node in Graph.of([flow]).nodes:
        halves = (
            node.tasks if isinstance(node, Join | RangeFilter) else node.stacks if isinstance(node, Pipelines) else ()
        )
        if any(halves):
            return False
    return True


class Part:
    """The part of some dataflows' sweeps that one job runs: some moments of a scope of each."""

    def __init__(
        self,
        sweeps: Sweeps,
        flows: list[Dataflow],
        scopes: list[Scope],
        moments: list[Moment],
        position: int = 0,
        fresh: bool = False,
    ) -> None:
        """`fresh` sweeps begin with this part."""
        self.sweeps = sweeps
        self.fresh = fresh
        self.graph = Graph.of(flows)
        self.stages: Stages = stages_of(self.graph, scopes, moments, position)
        self.epoch = max(flow.high for flow in flows) - 1
        packed = pack(self.graph, self.stages, ranks(self.graph), sweeps.yard, self.epoch)
        content, reads_texts, pending, self._keep = packed
        library = sweeps.library() if reads_texts else Library()
        token = uuid.uuid4().hex[:8]
        self.parcel = Parcel(
            sweeps.yard.store, token, sweeps.shards, self.epoch, content, self.stages, tuple(pending), library
        )
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
        self._future: Future[list[Report]] = Future()
        self._files: dict[str, Opened] = {}

    def start(self) -> None:
        """Run the job, beside whatever else happens here."""
        threading.Thread(target=self._run, name="tektite-sweep", daemon=True).start()

    def _run(self) -> None:
        try:
            reports = self.sweeps.run(self.parcel, self.group, self.description)
            self.sweeps.yard.delete([report.sent for report in reports if report.sent is not None])
            self._future.set_result(reports)
        except BaseException as error:
            self._future.set_exception(error)

    def ended(self, flow: Dataflow, deadline: float) -> bool:
        """Whether the job has ended, and what the dataflow reads has been brought to where the job left it."""
        return self.done(deadline) and not any(
            source.flow is not None and source.flow.away is self for source in flow.sources
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
        self._note(flow, reports)
        number = self.graph.number[id(flow)]
        for report in reports:
            for failed, kind, text in report.failures:
                if failed == number:
                    raise raised(kind, text, flow.name)
        dictionary = self.sweeps.dictionary
        if not self._files:  # all of them: they go when nothing of them is used, and other dataflows will use them
            self._files = {r.file.name: self.sweeps.yard.open(r.file) for r in reports if r.file is not None}
        self._strike(flow)
        files = [None if report.file is None else self._files[report.file.name] for report in reports]
        for report, file in zip(reports, files, strict=True):
            if file is not None and report.texts is not None:
                dictionary.add(file.texts(report.texts))

        def catch_up(shard: int, _: Outbox) -> None:
            for report, file in zip(reports, files, strict=True):
                if report.shard == shard:
                    replay(self.graph, report, file, flow)

        rows = sum(section.rows for file in files if file is not None for section in file.info.sections)
        flow.executor.map(catch_up, self.sweeps.shards, rows)  # minting merges, which is most of it
        for report, file in zip(reports, files, strict=True):
            for waiting in report.waiting:
                node = self.graph.nodes[waiting.node]
                if node.flow is flow:
                    assert file is not None
                    batch = file.batch(waiting.section)
                    chunk = Chunk(batch.head, batch.keep)
                    put(node, waiting.kind, waiting.shard, waiting.moment, chunk)
        self._wake(flow)
        self.sweeps.failures.pop(flow, None)

    def _note(self, flow: Dataflow, reports: list[Report]) -> None:
        """Take down what the job did; what dataflows share counts as the first one's."""
        sweep = flow.sweep
        if sweep is not None:
            sweep.jobs.append(self.group)
            sweep.stages += self.stages.count
            sweep.why = f"at least {self.sweeps.rows} rows waited for it, or for what it reads"
            if flow is self.graph.flows[0]:
                sweep.sent += sum(report.rows for report in reports)
                sweep.written += sum(report.file.length for report in reports if report.file is not None)

    def _strike(self, flow: Dataflow) -> None:
        """Forget what waited here for what the job has run."""
        scope = self.graph.scopes[self.stages.scopes[self.graph.number[id(flow)]]]
        ran = [self.graph.nodes[number] for number in self.stages.first if self.graph.nodes[number].flow is flow]
        for node in ran:
            for moment in self.stages.moments:
                if isinstance(buffer := getattr(node, "buffer", None), Buffer):
                    buffer.take(moment)
                if isinstance(node, ReduceNode):
                    for todo in node.todo:
                        todo.pop(moment, None)
        scope.strike({node.position for node in ran}, self.stages.moments)
        if scope.depth:
            flow.rounds += len(self.stages.moments)

    def _wake(self, flow: Dataflow) -> None:
        """Put on the agenda what the job did not run and has something to read. What is left in the queues of nodes that it ran
        belongs to later sweeps.
        """
        scope = self.graph.scopes[self.stages.scopes[self.graph.number[id(flow)]]]
        if scope.depth:
            scope.moment = self.stages.moments[-1]
        for number, node in enumerate(self.graph.nodes):
            if node.flow is flow and number not in self.stages.first:
                for reader in node.reads:
                    of = [*enclosing(node)][reader.lift]
                    if of is scope:
                        reader.wake(scope.moment)

    def _failed(self, flow: Dataflow, error: BaseException) -> None:
        """The job was given up: the sweep begins anew, in a job of its own, unless that has been tried often enough."""
        sweeps = self.sweeps
        sweeps.given_up(self)
        count = sweeps.failures[flow] = sweeps.failures.get(flow, 0) + 1
        if count >= ATTEMPTS:
            raise FaultError(
                f"{count} Spark jobs for its sweep failed, the last with: {reason(error)}", flow.name
            ) from error
        if self.fresh:
            flow.running = False
            flow.high = flow.low

    def following(self, flow: Dataflow) -> Part | None:
        """What comes next."""
        return self.sweeps.following(flow)


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
