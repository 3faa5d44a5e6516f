"""Staged: the executor that runs large parts of sweeps in stages, in processes that act as one shard for one stage.

A sweep runs where it is cheapest. A sweep that starts with few rows runs on the threads of this process. Larger ones are sent
to other processes, together with the sweeps of all dataflows that read their results. Meanwhile this process may do other work.
When the part has ended, the files that its shards wrote become batches of the dataflows' own traces, as if the sweep had run
here. Until then nothing changes, so a part that fails can be run again.
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
from tektite.runtime.open_files import FilePlace
from tektite.runtime.shipment import Shipment
from tektite.runtime.staged_part import StagedPart
from tektite.runtime.stages import Graph, stages_of, waiting_rows
from tektite.runtime.sweep_files import SweepFiles
from tektite.storage.batchfile import FOLDER, TextSection, write_file
from tektite.storage.open_storage import OpenStorage
from tektite.storage.options import SWEEPS
from tektite.values.dictionary import Dictionary

Runner = Callable[[Shipment, str, str], list[StageReport]]
"""Runs all stages of a shipment as a job with a group and a description. Returns the reports of all shards."""

NEVER = 1 << 62
"""More rows than ever wait: nothing is sent."""

MOST_ROUNDS = 8
"""The most rounds of a loop in one part. With more, the rounds after the loop has ended cost more than fewer jobs save."""


class Staged:
    """Runs large parts of an engine's sweeps in stages, and small ones on the executor `here`."""

    sends = True
    has_all_shards = True
    jobs = "jobs"
    """What errors call the runs of parts."""
    pickler: type[pickle.Pickler] = pickle.Pickler
    """Packs functions."""

    def __init__(
        self, here: Executor, run: Runner, storage: OpenStorage, dictionary: Dictionary, shards: int, rows: int
    ) -> None:
        """A part of a sweep is sent to other processes if at least `rows` rows wait for it."""
        self.here = here
        self.map, self.spread = here.map, here.spread
        self.run = run
        self.storage = storage
        self.dictionary = dictionary
        self.shards = shards
        self.rows = rows
        self.why = f"fewer than {rows} rows waited for it" if rows < NEVER else "no sweep is large enough to be sent"
        self.files = SweepFiles(storage.writer.store)
        self.files.clear()
        self.failures: weakref.WeakKeyDictionary[Dataflow, int] = weakref.WeakKeyDictionary()
        self.unsendable: weakref.WeakKeyDictionary[Dataflow, str] = weakref.WeakKeyDictionary()
        self._running: weakref.WeakSet[StagedPart] = weakref.WeakSet()
        self._unrolled: weakref.WeakKeyDictionary[Dataflow, tuple[Moment, int]] = weakref.WeakKeyDictionary()

    def cancel(self, group: str) -> None:
        """Cancel the job of a group."""

    def reason(self, error: BaseException) -> str:
        """The reason for which a job failed, as users see it."""
        return f"{type(error).__name__}: {error}"

    def begin(self, flows: Sequence[Dataflow]) -> None:
        """Send sweeps with many rows to other processes, and those of dataflows that read their results."""
        ahead: dict[Dataflow | None, int] = {}
        chosen: list[Dataflow] = []
        suspects: list[tuple[Dataflow, int]] = []
        for flow in flows:
            if flow.failure is not None or flow.part is not None or any(source.failure for source in flow.sources):
                continue
            if flow in self.unsendable:
                if flow.sweep is not None:
                    flow.sweep.why = self.unsendable[flow]
                continue
            if flow.running:
                flow.part = self.next_part(flow)
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
            if not found:  # all its nodes depend on a loop
                if flow.begin():
                    flow.part = self.next_part(flow)
                continue
            chosen.append(flow)
            if found == len(graph.nodes):
                ahead[flow] = high
        if chosen:
            self._start(chosen, [flow.available(ahead) for flow in chosen])
        for flow, high in suspects:
            self._start([flow], [high])

    def _start(self, flows: list[Dataflow], highs: list[int]) -> None:
        """Start sweeps with the part that depends on no loop."""
        for flow, high in zip(flows, highs, strict=True):
            flow.wake()
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
            flow.run_elsewhere(part, high)
        part.start()

    def next_part(self, flow: Dataflow) -> StagedPart | None:
        """The next part of a sweep that has begun, if it is large enough: what waits at a moment of a scope. In a loop without
        nested loops it has several rounds: first one, then two, four, eight.
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
        except OSError:  # a full disk: this process continues in memory
            return None
        self._running.add(part)
        part.start()
        return part

    def _find_unsendable(self, flows: list[Dataflow]) -> None:
        """Record why dataflows cannot be sent to other processes. They stay in this one."""
        for flow in flows:
            try:
                StagedPart(self, [flow], [flow.root], [()])
            except OSError:
                continue
            except Exception as error:
                self.unsendable[flow] = f"it cannot be sent to tasks: {type(error).__name__}: {error}"

    def texts(self) -> tuple[FilePlace, ...]:
        """The places of all texts of the dictionary: in files of the manifest, and in one more file with those not stored yet."""
        writer = self.storage.writer
        mark = writer.written_texts  # before the state: texts between the mark and a newer state are sent twice
        state = writer.manifest.state
        sections = [(FOLDER, live.file, state.files[live.file].length, live.index) for live in state.texts()]
        more, _ = self.dictionary.since(mark)
        if len(more):
            info = write_file(self.files.store, 0, "texts", 0, [TextSection(more)], SWEEPS)
            sections.append((SWEEPS, info.name, info.length, 0))
        return tuple(sections)

    def given_up(self, part: StagedPart) -> None:
        """Remove the files of a part that has failed."""
        self._running.discard(part)
        if all(other.done(0) for other in self._running):
            with suppress(OSError):
                self.files.tidy()

    def close(self) -> None:
        """Cancel all jobs and delete their files."""
        self.here.close()
        for part in list(self._running):
            if not part.done(0):
                self.cancel(part.group)
                part.done(float("inf"))
        with suppress(OSError):
            self.files.clear()
