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
from tektite.dataflow.arrange import Buffer, consolidate
from tektite.dataflow.flow import Dataflow, explained
from tektite.dataflow.graph import Moment, Node
from tektite.dataflow.pipeline_actions import Item, Versions
from tektite.dataflow.pipelines import Pipelines
from tektite.dataflow.reduce import ReduceNode
from tektite.errors import FaultError, TektiteError
from tektite.spark.sweep.files import opened, opened_once
from tektite.spark.sweep.graph import Graph, actions_of
from tektite.spark.sweep.parcel import BUFFER, PUT_OFF, Parcel, Unpacked
from tektite.spark.sweep.rows import Row, packed, unpacked
from tektite.storage.batchfile import FileInfo, Opened, Rows, Shape, Texts, write_file
from tektite.storage.options import SWEEPS
from tektite.trace.batch import Batch
from tektite.trace.chunk import Chunk
from tektite.trace.times import Frontier
from tektite.trace.trace import Trace

REPORT, TEXTS = -1, -2
"""Control rows, in place of a node: what a task has done, and where it has put texts."""

LARGE = 1 << 13
"""Words that are sent by way of a file: writing and mapping one costs about what as many take through a shuffle."""


@dataclass(frozen=True)
class Waiting:
    """Rows for a node that runs in no stage of the job that would be theirs."""

    node: int
    kind: int
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
    sent: str | None = None
    """The file that holds those that did not go through the shuffle: of no use behind the job."""
    token: str = ""
    """The parcel's."""

    def to_json(self) -> str:
        """As a control row carries it."""
        return json.dumps(
            {
                "stage": self.stage,
                "shard": self.shard,
                "file": None if self.file is None else self.file.to_json(),
                "log": self.log,
                "waiting": [[w.node, w.kind, w.moment, w.shard, w.section] for w in self.waiting],
                "failures": self.failures,
                "rows": self.rows,
                "sent": self.sent,
                "token": self.token,
            },
            separators=(",", ":"),
        )

    @staticmethod
    def from_json(text: str) -> Report:
        """What `to_json` wrote."""
        plain = json.loads(text)
        file = None if plain["file"] is None else FileInfo.from_json(plain["file"])
        waiting = [Waiting(node, kind, tuple(moment), *place) for node, kind, moment, *place in plain["waiting"]]
        return Report(
            plain["stage"], plain["shard"], file, [tuple(entry) for entry in plain["log"]], waiting,
            [(flow, kind, text) for flow, kind, text in plain["failures"]], plain["rows"],
            plain["sent"], plain["token"],
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
        self._freight: list[Rows] = []
        self._log: list[tuple[Any, ...]] = []
        self._waiting: list[Waiting] = []
        self._failures: list[tuple[int, str, str]] = []
        self._versions: dict[int, Versions] = {}
        self._aside: dict[int, dict[tuple[int, int], list[Chunk]]] = {}
        self._number = stage // parcel.stages.levels
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
        for pending in self.parcel.pending:
            if pending.shard == self.shard and self.stages.due(pending.node, pending.moment, -1) == self.stage:
                batch = opened(self.parcel.store, *pending.place[:3]).batch(pending.place[3])
                self._deliver(pending.node, pending.kind, pending.moment, Chunk(batch.head, batch.keep))
        for row in ordered:
            if row.control is None and row.due <= self.stage:
                self._deliver(row.node, row.action, row.moment, self._arrived(row))
        self._noting = True
        self._run_nodes()
        sent = self._placed(list(self._sent()))
        texts = self.texts.added()
        if len(texts):
            self._sections.append(Texts(pa.chunked_array([texts])))
        file = None
        if self._sections:
            stage = f"{self.parcel.token}-{self.stage}"
            file = write_file(self.parcel.store, self.parcel.epoch, stage, self.shard, self._sections, SWEEPS)
        count, placed = sum(n for n, _ in sent), next((row.place for _, row in sent if row.place is not None), None)
        freight = None if placed is None else json.loads(placed)[0]
        report = Report(
            self.stage, self.shard, file, self._log, self._waiting, self._failures, count, freight, self.parcel.token
        )  # fmt: skip
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

    def _placed(self, sent: list[tuple[int, Row]]) -> list[tuple[int, Row]]:
        """What is sent, with what is too large for the shuffle in a file."""
        if not self._freight:
            return sent
        stage = f"{self.parcel.token}-{self.stage}-sent"
        file = write_file(self.parcel.store, self.parcel.epoch, stage, self.shard, self._freight, SWEEPS)
        places = (json.dumps((file.name, file.length, section)) for section in range(len(self._freight)))
        return [(n, row if row.payload is not None else row._replace(place=next(places))) for n, row in sent]

    # ------------------------------------------------------------------ before

    def _arrived(self, row: Row) -> Chunk:
        """The rows that were sent."""
        if row.place is None:
            assert row.payload is not None
            return unpacked(row.payload)
        name, length, section = json.loads(row.place)
        batch = opened_once(self.parcel.store, SWEEPS, name, length).batch(section)
        return Chunk(batch.head, batch.keep)

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
        this_moment = report.stage // self.stages.levels == self._number
        for entry in report.log:
            node = self.graph.nodes[entry[1]] if entry[0] == "ran" else None
            if isinstance(node, Pipelines) and this_moment and entry[1] not in self._versions:
                self._versions[entry[1]] = node.take()
            else:
                replay(self.graph, Report(report.stage, report.shard, log=[entry]), file)

    def _deliver(self, number: int, kind: int, moment: Moment, chunk: Chunk) -> None:
        """Put rows where they wait for their node."""
        node = self.graph.nodes[number]
        if isinstance(node, Pipelines):
            if number not in self._versions:
                self._versions[number] = node.take()
            node.stacks[self.shard].append(Item(actions_of(node)[kind], [chunk], self._versions[number], self.shard))
            node.scope.schedule(node.position, moment)
        else:
            put(node, kind, self.shard, moment, chunk)

    # ------------------------------------------------------------------ the stage

    def _run_nodes(self) -> None:
        for number, flow in enumerate(self.graph.flows):
            if number in self.failed:
                continue
            try:
                self._run_flow(flow)
            except Exception as error:
                self._fail(number, error)

    def _fail(self, number: int, error: Exception) -> None:
        """A dataflow has failed in this shard; the others go on."""
        found = explained(error, self.graph.flows[number].name)
        self._failures.append((number, type(found).__name__, Exception.__str__(found)))
        self.failed.add(number)

    def _run_flow(self, flow: Dataflow) -> None:
        number = self.graph.number
        scope = self.graph.scopes[self.stages.scopes[number[id(flow)]]]
        moment, level = self.stages.at(self.stage)
        for node in self.graph.nodes:
            begins = node.flow is flow and self.stages.first.get(number[id(node)]) == level
            if begins and any(reader.handle.waiting() for reader in node.reads):
                scope.schedule(node.position, moment)
        while (found := scope.next(moment[:-1])) is not None:
            member, at = found
            if at != moment:
                break  # what later rounds have to do waits for their stages
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
                    self._aside.setdefault(number, {}).setdefault((place, shard), []).extend(item.chunks)
                stack.clear()

    # ------------------------------------------------------------------ after

    def _sent(self) -> Iterator[tuple[int, Row]]:
        """What waits at nodes that this stage does not run, with the number of rows."""
        for number, node in enumerate(self.graph.nodes):
            flow = self.graph.number[id(node.flow)]
            if flow not in self.failed:
                try:
                    yield from self._sent_by(number, node)
                except TektiteError as error:  # a sum that does not fit
                    self._fail(flow, error)

    def _sent_by(self, number: int, node: Node) -> Iterator[tuple[int, Row]]:
        low = node.flow.low
        if isinstance(buffer := getattr(node, "buffer", None), Buffer):
            for moment in buffer.moments():
                for shard, chunks in enumerate(buffer.waiting(moment)):
                    if chunks:
                        chunk = consolidate(chunks, buffer.shape, low)
                        yield from self._addressed(number, BUFFER, moment, shard, 0, chunk, buffer.shape)
        if isinstance(node, ReduceNode):
            shape = (node.key, node.times, 0)
            for moment, todo in sorted(node.todo[self.shard].items()):
                for place, chunk in enumerate(todo):
                    yield from self._addressed(number, PUT_OFF, moment, self.shard, place, chunk, shape)
        if isinstance(node, Pipelines):
            moment = self.stages.at(self.stage)[0]
            for (place, shard), chunks in sorted(self._aside.get(number, {}).items(), key=lambda found: found[0]):
                shape = (actions_of(node)[place].lookup.data, node.times, 1)
                yield from self._addressed(number, place, moment, shard, 0, consolidate(chunks, shape, low), shape)

    def _addressed(
        self, number: int, kind: int, moment: Moment, shard: int, place: int, chunk: Chunk, shape: Shape
    ) -> Iterator[tuple[int, Row]]:
        if not chunk.n:
            return
        due = self.stages.due(number, moment, self.stage)
        if due is None:
            self._waiting.append(Waiting(number, kind, moment, shard, len(self._sections)))
            self._sections.append(Rows(f"node {number}", shard, shape, Batch(chunk.head, chunk.keep, (), (), ())))
            return
        if chunk.n * (len(chunk.head) // 3) >= LARGE:
            self._freight.append(Rows(f"node {number}", shard, shape, Batch(chunk.head, chunk.keep, (), (), ())))
            yield chunk.n, Row(shard, due, number, kind, moment, self.stage, self.shard, place << 16, None, None)
            return
        for part, payload in enumerate(packed(chunk)):
            at = (place << 16) + part
            row = Row(shard, due, number, kind, moment, self.stage, self.shard, at, payload, None)
            yield chunk.n if not part else 0, row


def put(node: Node, kind: int, shard: int, moment: Moment, chunk: Chunk) -> None:
    """Let rows wait at a node that is no conjunction."""
    if kind == PUT_OFF:
        assert isinstance(node, ReduceNode)
        node.todo[shard].setdefault(moment, []).append(chunk)
    else:
        buffer: Buffer = node.buffer  # type: ignore[attr-defined]
        buffer.put(shard, chunk, moment)
    node.scope.schedule(node.position, moment)


def raised(kind: str, text: str, view: str) -> TektiteError:
    """The error that a task has reported."""
    if kind == "FaultError":
        return FaultError(text, view)
    found: TektiteError = getattr(errors, kind)(text)
    return found
