"""Staged: the executor that runs large parts of sweeps in stages, by processes that act as one shard each for one stage.

A sweep runs where it is cheapest. One with few rows to begin with runs in this process, on its own threads. A larger one is
sent away, together with all dataflows whose sweeps are large and those that read them; meanwhile this process may do other
things. When the part has ended, the files that its shards wrote are mapped as the dataflows' own traces: they are then where
they would be if the sweep had run here, and go on from there. Until then nothing has changed, so a part that fails is run again.
"""

from __future__ import annotations

import pickle
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress

from tektite.dataflow.flow import Dataflow
from tektite.dataflow.graph import Moment
from tektite.runtime.executor import Executor
from tektite.runtime.messages import StageReport
from tektite.runtime.open_files import Place
from tektite.runtime.shipment import Shipment
from tektite.runtime.staged_part import StagedPart
from tektite.runtime.stages import Graph, stages_of, waiting_rows
from tektite.runtime.sweep_files import SweepFiles
from tektite.storage.batchfile import FOLDER, TextSection, write_file
from tektite.storage.open_storage import OpenStorage
from tektite.storage.options import SWEEPS
from tektite.values.dictionary import Dictionary

Runner = Callable[[Shipment, str, str], list[StageReport]]
"""Runs all stages of a shipment, as a job with a group and a description, and hands over what the shards report."""

MOST_ROUNDS = 8
"""Rounds of a loop in one part: more would run in vain, once the loop has come to rest, than they save jobs."""


class Staged:
    """Runs large parts of an engine's sweeps in stages, and what is small on the executor that it is made from."""

    sends = True
    jobs = "jobs"
    """What users call that which runs a part."""
    pickler: type[pickle.Pickler] = pickle.Pickler
    """How functions travel."""

    def __init__(
        self, here: Executor, run: Runner, storage: OpenStorage, dictionary: Dictionary, shards: int, rows: int
    ) -> None:
        """`rows` is how many have to wait for a part of a sweep before it is sent away."""
        self.here = here
        self.map, self.spread = here.map, here.spread
        self.run = run
        self.storage = storage
        self.dictionary = dictionary
        self.shards = shards
        self.rows = rows
        self.why = f"fewer than {rows} rows waited for it"
        self.files = SweepFiles(storage.writer.store)
        self.files.clear()
        self.failures: weakref.WeakKeyDictionary[Dataflow, int] = weakref.WeakKeyDictionary()
        self.unsendable: weakref.WeakKeyDictionary[Dataflow, str] = weakref.WeakKeyDictionary()
        self._running: weakref.WeakSet[StagedPart] = weakref.WeakSet()
        self._unrolled: weakref.WeakKeyDictionary[Dataflow, tuple[Moment, int]] = weakref.WeakKeyDictionary()

    def cancel(self, group: str) -> None:
        """End the job of a group."""

    def reason(self, error: BaseException) -> str:
        """What users are told of a job that failed."""
        return f"{type(error).__name__}: {error}"

    def begin(self, flows: Sequence[Dataflow]) -> None:
        """Send away those dataflows that have much to do, and those that read them."""
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
            part = StagedPart(self, flows, [flow.root for flow in flows], [()], fresh=True)
        except Exception:  # a function that cannot be pickled, a full disk: this process needs neither
            self._find_unsendable(flows)
            for flow in flows:
                flow.high, flow.running = flow.low, False
            return
        self._running.add(part)
        for flow, high in zip(flows, highs, strict=True):
            flow.leave(part, high)
        part.start()

    def following(self, flow: Dataflow) -> StagedPart | None:
        """The next part of a sweep that has begun, if it is large enough: what waits at a moment of a scope. In a loop that has
        no other inside, it is several rounds: first one, then two, four, eight.
        """
        found = flow.root.upcoming(())
        graph = Graph.of([flow])
        if found is None or any(node.busy for node in graph.nodes):
            return None
        node, moment = found
        scope, position, rounds = node.scope, node.position, 1
        if not scope.nested:
            position = 0
            if moment:
                place, most = self._unrolled.get(flow, (moment[:-1], 1))
                rounds = min(most if place == moment[:-1] else 1, scope.limit - moment[-1] + 1)
        if rounds < 1:
            return None
        moments = [(*moment[:-1], moment[-1] + number) if moment else () for number in range(rounds)]
        if waiting_rows(graph, stages_of(graph, [scope], moments, position)) < max(self.rows, 1):
            self._unrolled.pop(flow, None)
            return None
        self._unrolled[flow] = (moment[:-1], min(2 * rounds, MOST_ROUNDS))
        try:
            part = StagedPart(self, [flow], [scope], moments, position)
        except OSError:  # a full disk: this process goes on in memory
            return None
        self._running.add(part)
        part.start()
        return part

    def _find_unsendable(self, flows: list[Dataflow]) -> None:
        """Note of dataflows that cannot be sent to other processes why not: they stay in this one."""
        for flow in flows:
            try:
                StagedPart(self, [flow], [flow.root], [()])
            except OSError:
                continue
            except Exception as error:
                self.unsendable[flow] = f"it cannot be sent to tasks: {type(error).__name__}: {error}"

    def texts(self) -> tuple[Place, ...]:
        """Where all texts are that the dictionary has: in files of the manifest, and what is not there yet in one more."""
        writer = self.storage.writer
        mark = writer.written_texts  # before the state: what a newer state has beyond the mark is told twice
        state = writer.manifest.state
        sections = [(FOLDER, live.file, state.files[live.file].length, live.index) for live in state.texts()]
        more, _ = self.dictionary.since(mark)
        if len(more):
            info = write_file(self.files.store, 0, "texts", 0, [TextSection(more)], SWEEPS)
            sections.append((SWEEPS, info.name, info.length, 0))
        return tuple(sections)

    def given_up(self, part: StagedPart) -> None:
        """A part has failed for good: remove what it has written."""
        self._running.discard(part)
        if all(other.done(0) for other in self._running):
            with suppress(OSError):
                self.files.tidy()

    def close(self) -> None:
        """End what runs, and delete what was written for it."""
        self.here.close()
        for part in list(self._running):
            if not part.done(0):
                self.cancel(part.group)
                part.done(float("inf"))
        with suppress(OSError):
            self.files.clear()
