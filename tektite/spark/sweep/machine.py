"""Machine: one shard in one stage of a job. (Its traces, a stage, an inbox) -> (new batches, an outbox).

Promise: it depends on nothing else. What a task writes has names that follow from its content, and what it sends has an order and
bytes that do not depend on the order in which its inbox came, so that a task that runs twice, or on another executor, does no
harm. It takes note of what it did (`Report`), in the order in which it did it; whoever applies the reports of all stages to the
same shard has the same traces and handles as the machine had at its end, the driver included.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from tektite import errors
from tektite.dataflow.actions import Item, Versions
from tektite.dataflow.arrange import Buffer, consolidate
from tektite.dataflow.flow import Dataflow, explained
from tektite.dataflow.graph import Moment, Node
from tektite.dataflow.pipelines import Pipelines
from tektite.errors import FaultError, TektiteError
from tektite.spark.sweep.files import opened
from tektite.spark.sweep.graph import Graph, actions_of
from tektite.spark.sweep.parcel import Parcel, Unpacked
from tektite.spark.sweep.rows import Row, packed, unpacked
from tektite.storage.batchfile import FileInfo, Opened, Rows, Texts, write_file
from tektite.storage.options import SWEEPS
from tektite.times import Frontier
from tektite.trace.batch import Batch
from tektite.trace.chunk import Chunk
from tektite.trace.trace import Trace

REPORT, TEXTS = -1, -2
"""Control rows, in place of a node: what a task has done, and where it has put texts."""
BUFFER = -1
"""Where the rows of a payload go that are for no action of a conjunction: into a node's buffer."""


@dataclass(frozen=True)
class Waiting:
    """Rows for a node that runs in no stage of the job."""

    node: int
    moment: Moment
    shard: int
    section: int


@dataclass(frozen=True)
class Report:
    """What one shard did in one stage. `log` lists the nodes that ran, ("ran", node), and the batches that they minted,
    ("mint", trace, section), in that order; `failures` are dataflows that failed here, with the error's class and text.
    """

    stage: int
    shard: int
    file: FileInfo | None = None
    log: list[tuple[Any, ...]] = field(default_factory=list)
    waiting: list[Waiting] = field(default_factory=list)
    failures: list[tuple[int, str, str]] = field(default_factory=list)
    rows: int = 0
    """Rows that were sent to be run in later stages."""

    def to_json(self) -> str:
        """As a control row carries it."""
        return json.dumps(
            {
                "stage": self.stage,
                "shard": self.shard,
                "file": None if self.file is None else self.file.to_json(),
                "log": self.log,
                "waiting": [[w.node, w.moment, w.shard, w.section] for w in self.waiting],
                "failures": self.failures,
                "rows": self.rows,
            },
            separators=(",", ":"),
        )

    @staticmethod
    def from_json(text: str) -> Report:
        """What `to_json` wrote."""
        plain = json.loads(text)
        file = None if plain["file"] is None else FileInfo.from_json(plain["file"])
        waiting = [Waiting(node, tuple(moment), shard, section) for node, moment, shard, section in plain["waiting"]]
        return Report(
            plain["stage"], plain["shard"], file, [tuple(entry) for entry in plain["log"]], waiting,
            [(flow, kind, text) for flow, kind, text in plain["failures"]], plain["rows"],
        )  # fmt: skip

    @property
    def texts(self) -> int | None:
        """The section of new texts, if there is one."""
        sections = () if self.file is None else self.file.sections
        return next((place for place, section in enumerate(sections) if section.kind == "texts"), None)


def replay(graph: Graph, report: Report, file: Opened | None, only: Dataflow | None = None) -> None:
    """Bring the traces and handles of a shard to where a stage left them, of one dataflow or of all."""
    for what, number, *rest in report.log:
        if what == "ran":
            node = graph.nodes[number]
            if only is None or node.flow is only:
                for reader in node.reads:
                    reader.take(report.shard)
        elif only is None or graph.traces[number] in only.traces:
            assert file is not None
            batch = file.batch(rest[0])
            graph.traces[number].mint(report.shard, batch.head, batch.keep, batch.upper)


class Machine:
    """A shard in a stage."""

    def __init__(self, parcel: Parcel, shard: int, stage: int) -> None:
        self.parcel = parcel
        self.shard = shard
        self.stage = stage
        self.stages = parcel.stages
        unpacked = Unpacked(parcel, shard)
        self.graph = unpacked.graph
        self.texts = unpacked.texts
        self.failed: set[int] = set()
        self._sections: list[Rows | Texts] = []
        self._log: list[tuple[Any, ...]] = []
        self._waiting: list[Waiting] = []
        self._failures: list[tuple[int, str, str]] = []
        self._versions: dict[int, Versions] = {}
        self._aside: dict[tuple[int, int, int], list[Chunk]] = {}
        for number, trace in enumerate(self.graph.traces):
            self._record(number, trace)

    def _record(self, number: int, trace: Trace) -> None:
        """Take note of what is minted from here on."""
        mint = trace.mint

        def noted(shard: int, head: Any, keep: object, upper: Frontier) -> None:
            if self._noting:
                lower = trace._uppers[shard]
                batch = Batch(head, keep, lower, upper, lower)
                self._log.append(("mint", number, len(self._sections)))
                shape = (trace.data, trace.times, trace.diffs)
                self._sections.append(Rows(f"trace {number}", shard, shape, batch))
            mint(shard, head, keep, upper)

        trace.mint = noted  # type: ignore[method-assign]

    _noting = False

    def run(self, inbox: Sequence[Row]) -> Iterator[Row]:
        """Run the stage; what is sent, to other shards and to this one's next stage, and at last the report."""
        ordered = sorted(inbox, key=lambda row: row.order)
        later = [row for row in ordered if row.control is not None or row.due > self.stage]
        for row in ordered:
            if row.control is not None:
                self._note_texts(row.control) if row.node == TEXTS else self._catch_up(Report.from_json(row.control))
        for row in ordered:
            if row.payload is not None and row.due <= self.stage:
                self._deliver(row, unpacked(row.payload))
        self._noting = True
        self._run_nodes()
        sent = list(self._sent())
        texts = self.texts.added()
        if len(texts):
            self._sections.append(Texts(pa.chunked_array([texts])))
        file = None
        if self._sections:
            stage = f"{self.parcel.token}-{self.stage}"
            file = write_file(self.parcel.store, self.parcel.epoch, stage, self.shard, self._sections, SWEEPS)
        report = Report(self.stage, self.shard, file, self._log, self._waiting, self._failures, sum(n for n, _ in sent))
        for row in later:
            yield row._replace(dest=self.shard)
        for _, row in sent:
            yield row
        others = [dest for dest in range(self.parcel.shards) if dest != self.shard] if len(texts) else []
        for dest in others:
            assert file is not None
            place = json.dumps((SWEEPS, file.name, file.length, report.texts))
            yield self._control(dest, TEXTS, place)
        yield self._control(self.shard, REPORT, report.to_json())

    def _control(self, dest: int, what: int, text: str) -> Row:
        return Row(dest, self.stage + 1, what, BUFFER, (), self.stage, self.shard, 0, None, text)

    # ------------------------------------------------------------------ before

    def _note_texts(self, place: str) -> None:
        """Rows that come from another shard may hold texts that were made there."""
        self.texts.note(tuple(json.loads(place)))

    def _catch_up(self, report: Report) -> None:
        """Apply what this shard did in an earlier stage."""
        file = None
        if report.file is not None:
            file = opened(self.parcel.store, SWEEPS, report.file.name, report.file.length)
            if report.texts is not None:
                self.texts.note((SWEEPS, report.file.name, report.file.length, report.texts))
        self.failed |= {flow for flow, _, _ in report.failures}
        for entry in report.log:
            node = self.graph.nodes[entry[1]] if entry[0] == "ran" else None
            if isinstance(node, Pipelines) and self.stages.active(entry[1], self.stage):
                if entry[1] not in self._versions:
                    self._versions[entry[1]] = node.take()
            else:
                replay(self.graph, Report(report.stage, report.shard, log=[entry]), file)

    def _deliver(self, row: Row, chunk: Chunk) -> None:
        node = self.graph.nodes[row.node]
        if isinstance(node, Pipelines):
            if row.node not in self._versions:
                self._versions[row.node] = node.take()
            item = Item(actions_of(node)[row.action], [chunk], self._versions[row.node])
            node.stacks[self.shard].append(item)
        else:
            buffer_of(node).add(self.shard, chunk, row.moment)
        node.scope.schedule(node.position, row.moment)

    # ------------------------------------------------------------------ the stage

    def _run_nodes(self) -> None:
        for number, flow in enumerate(self.graph.flows):
            if number in self.failed:
                continue
            try:
                self._run_flow(flow)
            except Exception as error:
                found = explained(error, flow.name)
                text = Exception.__str__(found)
                self._failures.append((number, type(found).__name__, text))
                self.failed.add(number)

    def _run_flow(self, flow: Dataflow) -> None:
        number = self.graph.number
        for node in self.graph.nodes:
            if node.flow is flow and self.stages.first.get(number[id(node)]) == self.stage:
                for reader in node.reads:
                    reader.wake()
        while (found := flow.root.next(())) is not None:
            member, moment = found
            if isinstance(member, Node) and self.stages.active(number[id(member)], self.stage):
                self._log.append(("ran", number[id(member)]))
                member.run(moment)
                if isinstance(member, Pipelines):
                    self._set_aside(number[id(member)], member)

    def _set_aside(self, number: int, node: Pipelines) -> None:
        """Take the rows of a conjunction that are for other shards off its stacks: it would run until they are gone."""
        for shard, stack in enumerate(node.stacks):
            if shard != self.shard:
                for item in stack:
                    place = next(at for at, action in enumerate(actions_of(node)) if action is item.action)
                    self._aside.setdefault((number, place, shard), []).extend(item.chunks)
                stack.clear()

    # ------------------------------------------------------------------ after

    def _sent(self) -> Iterator[tuple[int, Row]]:
        """What waits at nodes that this stage does not run, with the number of rows."""
        for number, node in enumerate(self.graph.nodes):
            if self.graph.number[id(node.flow)] in self.failed:
                continue
            if isinstance(buffer := getattr(node, "buffer", None), Buffer):
                for moment, shards in sorted(buffer._waiting.items()):
                    for shard, chunks in enumerate(shards):
                        if chunks:
                            chunk = consolidate(chunks, buffer.shape, node.flow.low)
                            yield from self._addressed(number, BUFFER, moment, shard, chunk, buffer.shape)
        for (number, place, shard), chunks in sorted(self._aside.items(), key=lambda found: found[0]):
            node = self.graph.nodes[number]
            if self.graph.number[id(node.flow)] not in self.failed:
                assert isinstance(node, Pipelines)
                shape = (actions_of(node)[place].lookup.data, node.times, 1)
                yield from self._addressed(number, place, (), shard, consolidate(chunks, shape, node.flow.low), shape)

    def _addressed(
        self, number: int, action: int, moment: Moment, shard: int, chunk: Chunk, shape: tuple[int, int, int]
    ) -> Iterator[tuple[int, Row]]:
        if not chunk.n:
            return
        if number not in self.stages.first:
            self._waiting.append(Waiting(number, moment, shard, len(self._sections)))
            self._sections.append(Rows(f"node {number}", shard, shape, Batch(chunk.head, chunk.keep, (), (), ())))
            return
        due = max(self.stages.first[number], self.stage + 1)
        assert due <= self.stages.last[number], f"rows for {self.graph.nodes[number].name} come after its last stage"
        for place, payload in enumerate(packed(chunk)):
            row = Row(shard, due, number, action, moment, self.stage, self.shard, place, payload, None)
            yield chunk.n if not place else 0, row


def buffer_of(node: Node) -> Buffer:
    """Where rows wait that come to a node."""
    buffer: Buffer = node.buffer  # type: ignore[attr-defined]
    return buffer


def raised(kind: str, text: str, view: str) -> TektiteError:
    """The error that a task has reported."""
    if kind == "FaultError":
        return FaultError(text, view)
    found: TektiteError = getattr(errors, kind)(text)
    return found
