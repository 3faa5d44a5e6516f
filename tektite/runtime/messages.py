"""Messages: what shards send each other between two stages, and what they report to the engine.

A message holds all that one shard has for one buffer of a node of another one, consolidated; its bytes follow from its rows
alone. What is large lies in a file of the storage, and the message says where. Control messages say what a shard did; each is
sent on, from stage to stage within its shard, until the engine has it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tektite import errors
from tektite.dataflow.flow import Dataflow
from tektite.dataflow.graph import Moment
from tektite.errors import FaultError, TektiteError
from tektite.runtime.shard import Entry, Failure
from tektite.runtime.shipment import Address
from tektite.runtime.stages import Graph, Stages
from tektite.storage.batchfile import FileInfo, Opened

REPORT, TEXTS = -1, -2
"""Control messages, in place of a node: what a shard has done, and where it has put texts."""


class Message(NamedTuple):
    """Rows for a buffer of a node of shard `dest`, due in a stage, by whom they were sent; or what a shard did (`control`)."""

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
    """Where the rows lie, if they are not in the payload: the name and length of a file of sweeps, and the section, as JSON."""

    @property
    def order(self) -> tuple[Any, ...]:
        """Arrival order varies; this one does not."""
        return (self.control is not None, self.stage, self.source, self.node, self.buffer, self.moment, self.number)

    @property
    def address(self) -> Address:
        """Where the rows wait."""
        return Address(self.node, self.buffer, self.moment, self.dest)


@dataclass(frozen=True)
class StageReport:
    """What one shard did in one stage: its log, in which batches go by their sections in the file."""

    stage: int
    shard: int
    file: FileInfo | None = None
    log: list[Entry] = field(default_factory=list)
    waiting: list[tuple[Address, int]] = field(default_factory=list)
    """Rows that run in no stage of this part, by their section."""
    failures: list[Failure] = field(default_factory=list)
    rows: int = 0
    """Rows that were sent to be run in later stages."""
    sent: str | None = None
    """The file that holds those that were too large for messages: of no use behind the part."""
    token: str = ""
    """The shipment's."""

    def to_json(self) -> str:
        """As a control message carries it."""
        plain = dict(self.__dict__)
        plain["file"] = None if self.file is None else self.file.to_json()
        return json.dumps(plain, separators=(",", ":"))

    @staticmethod
    def from_json(text: str) -> StageReport:
        """What `to_json` wrote."""
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
        """The section of new texts, if there is one."""
        sections = () if self.file is None else self.file.sections
        return next((place for place, section in enumerate(sections) if section.kind == "texts"), None)


def replay(
    graph: Graph, stages: Stages, report: StageReport, file: Opened | None, only: Dataflow | None = None
) -> None:
    """Bring the traces and handles of a shard to where a stage left them, of one dataflow or of all."""
    for what, number, *rest in report.log:
        if what == "ran":
            node = graph.nodes[number]
            if only is None or node.flow is only:
                node.replay(report.shard, stages.at(report.stage)[0])
        elif only is None or graph.traces[number] in only.traces:
            assert file is not None
            batch = file.batch(rest[0])
            graph.traces[number].mint(report.shard, batch.head, batch.memory, batch.upper)


def raised(kind: str, text: str, view: str) -> TektiteError:
    """The error that a shard has reported."""
    if kind == "FaultError":
        return FaultError(text, view)
    found: TektiteError = getattr(errors, kind)(text)
    return found
