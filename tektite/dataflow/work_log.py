"""WorkLog: how often each operator ran, for how long, and how many rows it received and sent.

It counts only while somebody wants to know: `Journal.work` is None otherwise, and operators run as always.
"""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary, WeakSet

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tektite.dataflow.arrange import ArrangementReader
    from tektite.dataflow.flow import Dataflow
    from tektite.dataflow.graph import Moment, Outbox
    from tektite.dataflow.node import Node


@dataclass(slots=True)
class OperatorWork:
    """The work of one operator since the log began."""

    runs: int = 0
    seconds: float = 0.0
    received: int = 0
    """Rows that other operators sent it, and that it took from arrangements."""
    sent: int = 0
    """Rows that it sent to others."""
    sent_to: dict[int, int] = field(default_factory=dict)
    """The same by the id of the operator that received them. No references: these would keep a dropped dataflow."""
    taken: dict[int, int] = field(default_factory=dict)
    """Rows that it took from each of the arrangements that it reads, by their number."""
    left: int = 0
    """Bytes that its arrangement took when its dataflow was last dropped."""
    told: tuple[int, float, int, int] = (0, 0.0, 0, 0)
    """Its counts at the end of the last epoch, if work is counted for each epoch."""

    def take(self) -> tuple[int, float, int, int]:
        """The work since the last call: runs, seconds, rows received and sent."""
        runs, seconds, received, sent = self.told
        self.told = self.runs, self.seconds, self.received, self.sent
        return self.runs - runs, self.seconds - seconds, self.received - received, self.sent - sent


EpochLine = tuple[OperatorWork, int, float, int, int]


@dataclass(slots=True)
class EpochWork:
    """The work of operators for one epoch. It refers to their `OperatorWork`, because references to operators would keep a
    dropped dataflow.
    """

    epoch: int
    work: list[EpochLine]


KEPT_LINES = 1000
"""Lines of work of single epochs that are kept: ten epochs of a hundred operators, or one of many."""


class WorkLog:
    """The work of all operators of an engine that are still there."""

    def __init__(self) -> None:
        self._work: WeakKeyDictionary[Node, OperatorWork] = WeakKeyDictionary()
        self.users = 0
        """Profiles under way. Operators that go meanwhile stay in the log."""
        self._kept: list[Node] = []
        self.indexes: WeakSet[Dataflow] = WeakSet()
        """Dataflows of shared indexes that were made since the log began."""
        self.epochs: deque[EpochWork] | None = None
        """The work of the last epochs, if somebody wants it by epoch."""
        self._lines = 0
        self._touched: dict[int, OperatorWork] = {}
        """Operators that have done something since the last epoch."""

    def begin_epochs(self) -> None:
        """Count the work of each epoch from here on."""
        if self.epochs is None:
            self.epochs = deque()
            for work in self._work.values():
                work.take()

    def close(self, epoch: int) -> None:
        """An epoch has been closed, and what was done since the last one was done for it."""
        if self.epochs is None:
            return
        touched, self._touched = self._touched, {}
        self.epochs.append(EpochWork(epoch, [(work, *work.take()) for work in touched.values()]))
        self._lines += len(touched)
        while len(self.epochs) > 1 and self._lines > KEPT_LINES:
            self._lines -= len(self.epochs.popleft().work)

    def of(self, node: Node) -> OperatorWork:
        """The work of an operator. The object is updated as the operator runs."""
        found = self._work.get(node)
        if found is None:
            found = self._work[node] = OperatorWork()
            if self.users:
                self._kept.append(node)
        return found

    def _changed(self, node: Node) -> OperatorWork:
        """The work of an operator, noted as changed in this epoch."""
        found = self.of(node)
        if self.epochs is not None:
            self._touched[id(found)] = found
        return found

    def items(self) -> list[tuple[Node, OperatorWork]]:
        """All operators of the log, with what they have done."""
        return list(self._work.items())

    def forget(self) -> None:
        """Let operators go that are only in the log."""
        self._kept.clear()

    def before_drop(self, flow: Dataflow) -> None:
        """Note what the operators of a dataflow keep that is about to be dropped."""
        for scope in flow.root.scopes():
            for node in scope.nodes:
                if node.mints is not None and (work := self._work.get(node)) is not None:
                    work.left = node.mints.bytes

    def run(self, node: Node, moment: Moment) -> None:
        """Let an operator run, and count it."""
        work = self._changed(node)
        waited = [_waiting(reader) for reader in node.reads]
        began = time.perf_counter()
        try:
            node.run(moment)
        finally:
            work.runs += 1
            work.seconds += time.perf_counter() - began
            for number, rows in enumerate(waited):
                if rows and (taken := rows - _waiting(node.reads[number])):
                    work.received += taken
                    work.taken[number] = work.taken.get(number, 0) + taken

    def count_rows(self, node: Node, outboxes: Sequence[Outbox]) -> None:
        """Count the rows that an operator is about to send."""
        sender = self._changed(node)
        for outbox in outboxes:
            for target, _, chunk, _ in outbox:
                rows = chunk.n
                sender.sent += rows
                sender.sent_to[id(target)] = sender.sent_to.get(id(target), 0) + rows
                self._changed(target).received += rows


def _waiting(reader: ArrangementReader) -> int:
    """Rows of an arrangement that a reader has not taken."""
    return sum([batch.n for queue in reader.handle.queues for batch in queue])
