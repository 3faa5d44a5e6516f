"""Stage task: one shard in one stage, as a pure function. (Shipment, stage, inbox) -> (new batches, outbox).

Promise: the result depends on nothing else, not even on the order of the inbox. The names of files depend on their contents. So
a task may run twice, or in another process. Its report says what it did. Applying the reports of all stages to the same shard,
or to the engine's dataflow, leads to the same traces and handles.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from tektite.runtime.messages import REPORT, TEXTS, Message, StageReport, replay
from tektite.runtime.open_files import opened, opened_once
from tektite.runtime.shard import OneShard, Shard, deliver
from tektite.runtime.shipment import Address, Shipment, Unpacked, rows_at
from tektite.runtime.sweep_files import as_batch
from tektite.runtime.wire import pack_pieces, unpack_rows
from tektite.storage.batchfile import BatchSection, TextSection, write_file
from tektite.storage.options import SWEEPS
from tektite.trace.chunk import Chunk
from tektite.trace.spine import BatchShape

LARGE = 1 << 13
"""Words from which on rows are sent in a file: writing and mapping one then costs no more than the shuffle."""


class StageTask:
    """One shard in one stage."""

    def __init__(self, shipment: Shipment, shard: int, stage: int) -> None:
        self.shipment = shipment
        self.stage = stage
        self.stages = shipment.stages
        unpacked = Unpacked(shipment, shard, OneShard(shard))
        self.texts = unpacked.texts
        self.shard = Shard(unpacked.graph, shard)
        self._large: list[BatchSection] = []
        self._waiting: list[tuple[Address, BatchSection]] = []

    def run(self, inbox: Sequence[Message]) -> Iterator[Message]:
        """Run the stage. Yields messages to other shards and to later stages of this one, and the report at the end."""
        shard, shipment, number = self.shard, self.shipment, self.shard.shard
        ordered = sorted(inbox, key=lambda message: message.sort_key)
        later = [message for message in ordered if message.control is not None or message.due > self.stage]
        shard.begin(self.stages, shipment.decisions)
        self._catch_up([message for message in ordered if message.control is not None])
        for address, place in shipment.waiting:
            if address.shard == number and self.stages.due(address.node, address.moment, -1) == self.stage:
                deliver(shard.graph, address, rows_at(shipment.store, place))
        for message in ordered:
            if message.control is None and message.due <= self.stage:
                deliver(shard.graph, message.address, self._arrived(message))
        shard.record()
        shard.run(self.stage)
        sent, large = self._placed([found for outgoing in shard.collect() for found in self._addressed(*outgoing)])
        texts = self.texts.added()
        rows = sum(n for n, _ in sent)
        report = write_report(shipment, self.stage, shard, self._waiting, texts, rows, large)
        for message in later:
            yield message._replace(dest=number)
        for _, message in sent:
            yield message
        others = [dest for dest in range(shipment.shards) if dest != number] if len(texts) else []
        for dest in others:
            assert report.file is not None
            yield self._control(dest, TEXTS, json.dumps((SWEEPS, report.file.name, report.file.length, report.texts)))
        yield self._control(number, REPORT, report.to_json())

    def _catch_up(self, messages: Sequence[Message]) -> None:
        """Apply the reports of this shard's earlier stages, and record the texts that others have added."""
        for message in messages:
            assert message.control is not None
            if message.node == TEXTS:
                self.texts.note(tuple(json.loads(message.control)))
                continue
            report = StageReport.from_json(message.control)
            file = None
            if report.file is not None:
                file = opened(self.shipment.store, SWEEPS, report.file.name, report.file.length)
                if report.texts is not None:
                    self.texts.note((SWEEPS, report.file.name, report.file.length, report.texts))
            self.shard.failed |= {flow for flow, _, _ in report.failures}
            replay(self.shard.graph, self.stages, report, file)

    def _arrived(self, message: Message) -> Chunk:
        """The rows of a message."""
        if message.place is None:
            assert message.payload is not None
            return unpack_rows(message.payload)
        name, length, section = json.loads(message.place)
        batch = opened_once(self.shipment.store, SWEEPS, name, length).batch(section)
        return Chunk(batch.head, batch.memory)

    def _addressed(self, address: Address, part: int, chunk: Chunk, shape: BatchShape) -> Iterator[tuple[int, Message]]:
        """Messages with rows for a later stage, each with its number of rows. Rows for no stage are left for the engine."""
        due = self.stages.due(address.node, address.moment, self.stage)
        rows = BatchSection(f"node {address.node}", address.shard, shape, as_batch(chunk))
        if due is None:
            self._waiting.append((address, rows))
            return
        number, buffer, moment, dest = address
        message = Message(
            dest, due, number, buffer, moment, self.stage, self.shard.shard, part << 16, None, None
        )  # fmt: skip
        if chunk.n * (len(chunk.head) // 3) >= LARGE:
            self._large.append(rows)
            yield chunk.n, message
            return
        for piece, payload in enumerate(pack_pieces(chunk)):
            yield 0 if piece else chunk.n, message._replace(number=(part << 16) + piece, payload=payload)

    def _placed(self, sent: list[tuple[int, Message]]) -> tuple[list[tuple[int, Message]], str | None]:
        """Write large rows to a file. Returns the messages, which refer to it, and its name."""
        if not self._large:
            return sent, None
        shipment, stage = self.shipment, f"{self.shipment.token}-{self.stage}-sent"
        file = write_file(shipment.store, shipment.epoch, stage, self.shard.shard, self._large, SWEEPS)
        places = (json.dumps((file.name, file.length, section)) for section in range(len(self._large)))
        found = [(n, m if m.payload is not None else m._replace(place=next(places))) for n, m in sent]
        return found, file.name

    def _control(self, dest: int, what: int, text: str) -> Message:
        return Message(dest, self.stage + 1, what, -1, (), self.stage, self.shard.shard, 0, None, text)


def write_report(
    shipment: Shipment,
    stage: int,
    shard: Shard,
    waiting: Sequence[tuple[Address, BatchSection]],
    texts: pa.Array[Any],
    sent: int = 0,
    large: str | None = None,
) -> StageReport:
    """Write the batches that a shard minted in a stage, the rows that no stage processes, and new texts into one file.
    Returns the report.
    """
    sections: list[BatchSection | TextSection] = [
        BatchSection(f"trace {trace}", shard.shard, shard.graph.traces[trace].shape, batch)
        for trace, batch in shard.minted
    ]
    places = [(address, len(sections) + place) for place, (address, _) in enumerate(waiting)]
    sections += [rows for _, rows in waiting]
    if len(texts):
        sections.append(TextSection(pa.chunked_array([texts])))
    file = None
    if sections:
        name = f"{shipment.token}-{stage}"
        file = write_file(shipment.store, shipment.epoch, name, shard.shard, sections, SWEEPS)
    return StageReport(stage, shard.shard, file, shard.log, places, shard.failures, sent, large, shipment.token)
