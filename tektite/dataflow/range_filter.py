"""Range filter: rows whose value lies on one side of their group's bound, while both change.

The result is the join of rows A and bounds B by key, restricted to pairs that compare, and it is maintained like a join:
Δ = ΔA·B_old + A_new·ΔB. The second term is cheaper than in a join: when a bound moves, only the rows between its old and its new
value are read.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from tektite.dataflow.arrange import Arranged, ArrangementReader
from tektite.dataflow.away import LONG
from tektite.dataflow.graph import Moment, Outbox, Scope
from tektite.dataflow.join import PIECE, PIECES_PER_RUN, emit_by_moment
from tektite.dataflow.node import Node
from tektite.errors import IncorrectError
from tektite.kernels.operators.range_filter import (
    ABOVE,
    BEHIND,
    CURSORS,
    DONE,
    FLOATS,
    NEXT,
    OVERFLOWN,
    emit_segments,
    segments,
)
from tektite.trace.addresses import addresses
from tektite.trace.batch import Batch
from tektite.trace.chunk import Chunk
from tektite.trace.records import Version
from tektite.values.words import Words

COMPARISONS = {"<": 0, "<=": BEHIND, ">": ABOVE | BEHIND, ">=": ABOVE}

ROWS, BOUNDS = 0, 1
"""The two sides, by the position of their reader."""

NOTHING: Words = np.empty(0, np.int64)


class RangeTask:
    """The join of one side's delta with the other side's version, the segments found so far, and how far it has come."""

    __slots__ = ("delta", "found", "inputs", "other", "side", "state")

    def __init__(self, side: int, delta: tuple[Batch, ...], other: Version) -> None:
        self.side = side
        self.delta = addresses(delta)
        self.other = other.table
        self.inputs = (delta, other)
        self.found: Words = NOTHING
        self.state = np.zeros(CURSORS + len(delta), np.int64)


class RangeFilterNode(Node):
    """The rows of one arrangement that pass the bounds of another with the same first `key` columns."""

    def __init__(
        self,
        scope: Scope,
        shards: int,
        rows: Arranged,
        bounds: Arranged,
        key: int,
        comparison: str,
        floats: bool,
        bound_at: int,
        output: list[int],
        name: str,
    ) -> None:
        """Compares the data column of `rows` after the key with the data column `bound_at` of `bounds`. `output` lists the data
        columns of `rows` to produce.
        """
        super().__init__(scope, shards, name)
        self.key = key
        self.flags = COMPARISONS[comparison] | (FLOATS if floats else 0)
        self.bound_at = bound_at
        self.readers = (ArrangementReader(self, rows), ArrangementReader(self, bounds))
        self.spec = np.array(output, np.int64)
        self.tasks: list[deque[RangeTask]] = [deque() for _ in range(shards)]

    @property
    def busy(self) -> bool:
        return any(self.tasks)

    def clear(self) -> None:
        for tasks in self.tasks:
            tasks.clear()

    def run(self, moment: Moment) -> None:
        rows, bounds = self.readers
        much = LONG if any(self.tasks) else 0
        for shard in range(self.shards):
            _, delta_rows, new_rows = rows.take(shard)
            old_bounds, delta_bounds, _ = bounds.take(shard)
            if delta_rows and len(old_bounds.table):
                self.tasks[shard].append(RangeTask(ROWS, delta_rows, old_bounds))
            if delta_bounds and len(new_rows.table):
                self.tasks[shard].append(RangeTask(BOUNDS, delta_bounds, new_rows))
            much += sum(batch.n for batch in delta_rows) + sum(batch.n for batch in delta_bounds)
        self.work_out(self._work, much)
        if any(self.tasks):
            self.scope.schedule(self.position, moment)

    def _work(self, shard: int, outbox: Outbox) -> None:
        tasks = self.tasks[shard]
        trace = self.readers[ROWS].trace
        pieces = 0
        while tasks and pieces < PIECES_PER_RUN:
            task = tasks[0]
            self._find(task)
            buf, head = emit_segments(task.found, self.spec, trace.data, trace.times, self.times, PIECE, task.state)
            if head[0] < 0:
                raise IncorrectError(f"{self.name}: a product of multiplicities does not fit into 64 bits")
            if task.state[DONE] and self._is_written(task):
                tasks.popleft()
            pieces += 1
            emit_by_moment(self.port, shard, Chunk(head, buf), len(self.spec), self.times, outbox)

    def _is_written(self, task: RangeTask) -> bool:
        return bool(task.state[NEXT] * (self.times + 4) >= len(task.found))

    def _find(self, task: RangeTask) -> None:
        """Find segments of further keys once all known ones have been written."""
        if not self._is_written(task) or task.state[DONE]:
            return
        bounds = self.readers[BOUNDS].trace
        task.found = segments(
            task.delta, task.other, task.side, self.key, self.bound_at, bounds.data, bounds.times, self.times,
            self.flags, self.flow.reached, PIECE, task.state,
        )  # fmt: skip
        if task.state[OVERFLOWN]:
            raise IncorrectError(f"{self.name}: a sum of the multiplicities of bounds does not fit into 64 bits")
