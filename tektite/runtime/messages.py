"""Messages: rows that shards send each other between stages, and their reports to the engine.

A message has all rows that one shard sends to one buffer of another, consolidated. Its bytes depend only on the rows. Large
messages refer to a file of the storage. A control message reports what a shard did. Each shard forwards its control messages
from stage to stage until they reach the engine.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tektite import errors
from tektite.dataflow.flow import Dataflow
from tektite.dataflow.graph import Moment
from tektite.errors import FaultError, TektiteError
from tektite.runtime.shard import LogEntry, ShardFailure
from tektite.runtime.shipment import Address
from tektite.runtime.stages import Graph, Stages
from tektite.storage.batchfile import FileInfo, Opened

REPORT, TEXTS = -1, -2
"""The node numbers of control messages: a shard's report, and the place of its new texts."""


class Message(NamedTuple):
    """Rows for a buffer of a node of shard `dest`, due in a stage, from a stage and shard; or a control message (`control`)."""

    dest: int
    due: int
    node: int
    buffer: int
    moment: Moment
    stage: int
    source: int
    number: int
    payload: bytes | None
    control: str | None
    place: str | None = None
    """Where the rows are, if not in the payload: the name and length of a file of sweeps, and the section, as JSON."""

    @property
    def sort_key(self) -> tuple[Any, ...]:
        """A sort key, because messages arrive in any order."""
        return (self.control is not None, self.stage, self.source, self.node, self.buffer, self.moment, self.number)

    @property
    def address(self) -> Address:
        """The place where the rows are to wait."""
        return Address(self.node, self.buffer, self.moment, self.dest)


@dataclass(frozen=True)
class StageReport:
    """The report of one shard on one stage. The log refers to batches by their sections in the file."""

    stage: int
    shard: int
    file: FileInfo | None = None
    log: list[LogEntry] = field(default_factory=list)
    waiting: list[tuple[Address, int]] = field(default_factory=list)
    """Rows for nodes that run in no stage of this part, by their section."""
    failures: list[ShardFailure] = field(default_factory=list)
    rows: int = 0
    """The number of rows sent to later stages."""
    sent: str | None = None
    """The file with rows that were too large for messages. It is not used after the part."""
    token: str = ""
    """The token of the shipment."""

    def to_json(self) -> str:
        """The report as the text of a control message."""
        plain = dict(self.__dict__)
        plain["file"] = None if self.file is None else self.file.to_json()
        return json.dumps(plain, separators=(",", ":"))

    @staticmethod
    def from_json(text: str) -> StageReport:
        """The report that `to_json` wrote."""
        plain = json.loads(text)
        plain["file"] = None if plain["file"] is None else FileInfo.from_json(plain["file"])
        plain["log"] = list(map(tuple, plain["log"]))
        plain["waiting"] = [
            (Address(node, buffer, tuple(moment), shard), section)
            for (node, buffer, moment, shard), section in plain["waiting"]
        ]
        plain["failures"] = [(flow, kind, said) for flow, kind, said in plain["failures"]]
        return StageReport(**plain)

    @property
    def texts(self) -> int | None:
        """The section with new texts, if there is one."""
        sections = () if self.file is None else self.file.sections
        return next((place for place, section in enumerate(sections) if section.kind == "texts"), None)


def replay(
    graph: Graph, stages: Stages, report: StageReport, file: Opened | None, only: Dataflow | None = None
) -> None:
    """Repeat on the traces and handles of a shard what it did in a stage, for one dataflow or for all."""
    for what, number, *rest in report.log:
        if what == "ran":
            node = graph.nodes[number]
            if only is None or node.flow is only:
                node.replay(report.shard, stages.at(report.stage)[0])
        elif only is None or graph.traces[number] in only.traces:
            assert file is not None
            batch = file.batch(rest[0])
            graph.traces[number].mint(report.shard, batch, batch.upper)


def raised(kind: str, text: str, view: str) -> TektiteError:
    """The error that a shard reported."""
    made = getattr(errors, kind)
    found: TektiteError = made(text, view) if issubclass(made, FaultError) else made(text)
    return found
