"""The coordinator decides which dataflow runs next, and for how long.

Dataflows run one by one, sources before their readers. Each gets a turn of bounded length. A dataflow that does not finish
continues in its next turn; the others do not wait for it. Its handles keep the history that it still needs.
"""

from __future__ import annotations

import math
import time

from tektite.dataflow.flow import Dataflow
from tektite.dataflow.journal import Journal
from tektite.runtime.executor import Executor


class Coordinator:
    """All dataflows of an engine, sources before readers."""

    def __init__(self, turn: float, executor: Executor) -> None:
        self.turn = turn
        self.executor = executor
        self.flows: list[Dataflow] = []
        self.journal: Journal | None = None

    def add(self, flow: Dataflow) -> None:
        """Add a dataflow. What it reads must have been added before."""
        flow.journal = self.journal
        self.flows.append(flow)

    def watch(self) -> Journal:
        """Record every sweep from now on."""
        if self.journal is None:
            self.journal = Journal(self.executor.why)
            for flow in self.flows:
                flow.journal = self.journal
        return self.journal

    def remove(self, flow: Dataflow) -> None:
        """Drop a dataflow and release everything it holds."""
        flow.drop()
        if flow in self.flows:
            self.flows.remove(flow)

    def run(self) -> bool:
        """Give every dataflow one turn. Returns whether all of them are current."""
        current = True
        turn = self.turn
        self.executor.begin(self.flows)
        for flow in list(self.flows):  # a callback may install or drop views
            if flow not in self.flows:
                continue
            if not flow.work(time.perf_counter() + turn):
                current = False
        return current

    def start(self, flow: Dataflow) -> None:
        """Give a new dataflow and what it reads a turn."""
        upstream = self._upstream(flow)
        self.executor.begin(upstream)
        for needed in upstream:
            needed.work(time.perf_counter() + self.turn)

    def finish(self, flow: Dataflow) -> None:
        """Run `flow` and what it reads until it is current, however long that takes."""
        upstream = self._upstream(flow)
        while not self.current(flow) and flow.failure is None:
            self.executor.begin(upstream)
            for needed in upstream:
                whole = needed.part is not None or not self.executor.sends
                needed.work(math.inf if whole else time.perf_counter() + self.turn)

    def current(self, flow: Dataflow) -> bool:
        """Whether `flow` and everything it reads include all epochs that the inputs have closed."""
        return all(not needed.running and needed.available() <= needed.low for needed in self._upstream(flow))

    def _upstream(self, flow: Dataflow) -> list[Dataflow]:
        """What `flow` reads, directly or indirectly, and `flow` itself at the end."""
        needed = {id(flow)}
        for other in reversed(self.flows):
            if id(other) in needed:
                needed.update(id(source.flow) for source in other.sources)
        return [other for other in self.flows if id(other) in needed]
