"""Sources of shared arrangements that are no input and no view: a dataflow made for readers, and rows that never change."""

from __future__ import annotations

import numpy as np

from tektite.dataflow.arrange import consolidate
from tektite.dataflow.flow import Dataflow, LastClosed
from tektite.errors import TektiteError
from tektite.kernels.seek.route import route
from tektite.plan import algebra as plan
from tektite.plan.algebra import ColumnNumbers
from tektite.trace.chunk import Chunk
from tektite.trace.trace import Hold, Trace


class MadeSource:
    """The result of a shared arrangement's dataflow, as a source. Another dataflow may take over the work."""

    def __init__(self, flow: Dataflow) -> None:
        self.name = flow.name
        self.flow = flow

    @property
    def first(self) -> int:
        """The first epoch that it has an answer for."""
        return self.flow.first

    @property
    def low(self) -> int:
        """The first epoch that is not closed."""
        return self.flow.low

    @property
    def closed(self) -> bool:
        """Whether it will never change again."""
        return self.flow.closed

    @property
    def failure(self) -> TektiteError | None:
        """The error that stopped it, if one did."""
        return self.flow.failure


class ConstantSource:
    """Rows that never change, as a source: all there before the first epoch ends, and closed for good."""

    first = 0
    low = 1
    closed = True
    failure = None
    flow = None

    def __init__(self, name: str, operator: plan.Rows, columns: ColumnNumbers, sharded_by: int, shards: int) -> None:
        self.name = name
        width = len(columns)
        self.trace = Trace(width, 1, 1, shards, "default")
        self.hold = Hold(
            self.trace, LastClosed(self)
        )  # before anything is minted: a trace that nobody holds keeps nothing
        rows = operator.words.shape[1]
        times = np.zeros((1, rows), np.int64)
        chunk = Chunk.of_array(np.ascontiguousarray(np.vstack([operator.words[list(columns)], times, times + 1])))
        if not rows:
            return
        buf, head, offsets = route(chunk.at, np.arange(sharded_by, dtype=np.int64), shards)
        routed = Chunk(head, (chunk.memory, buf))
        for shard in range(shards):
            part = routed.slice(int(offsets[shard]), int(offsets[shard + 1]))
            if part.n:
                built = consolidate([part], (width, 1, 1), 0)
                self.trace.mint(shard, built, ((1,),))
