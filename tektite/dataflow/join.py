"""Join: pairs of updates with equal keys, at the least upper bound of their times.

Versions, not times, separate old from new: Δ(AB) = ΔA·B_old + A_new·ΔB. This is exact for any partial order, for many epochs in
one batch, and for shared traces that run ahead. Output comes in pieces of bounded size, which the next buffers consolidate as
they arrive. So memory does not grow with the raw output of the join.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from tektite.dataflow.arrange import EVERYTHING, Arranged, ArrangementReader, partition_chunk
from tektite.dataflow.away import LONG
from tektite.dataflow.graph import Moment, Outbox, Port, Scope, common_guard
from tektite.dataflow.joined_rows import JoinedRows, share_tasks
from tektite.dataflow.node import Node
from tektite.errors import IncorrectError
from tektite.kernels.operators.join import JOIN_STATE
from tektite.kernels.operators.join import join as join_kernel
from tektite.kernels.ready import calls
from tektite.trace.batch import Batch
from tektite.trace.chunk import Chunk, returning_chunks
from tektite.trace.records import Version
from tektite.values.words import Words

PIECE = 1 << 15
"""Rows of one piece of output. Its columns stay in the L2 cache while the filters and projections after the join run."""
PIECES_PER_RUN = 16
"""Pieces before the dataflow may be suspended: about ten milliseconds, and 20 MiB a shard that are not delivered yet."""

NULLS_MATCH = 1
_join = returning_chunks(join_kernel)


class JoinTask:
    """The join of one side's delta with the other side's version, of one shard, and how far it has come."""

    __slots__ = ("rows", "shard", "side")

    def __init__(self, side: int, shard: int, rows: JoinedRows) -> None:
        self.side = side
        self.shard = shard
        self.rows = rows

    def divided(self) -> JoinTask | None:
        """About a half of what is left, which is no longer this task's; None if that is too little."""
        rows = self.rows.divided()
        return None if rows is None else JoinTask(self.side, self.shard, rows)


if TYPE_CHECKING:

    class Joining:
        """The part of a `JoinNode` that is written in C, for few rows; see native/nodes.c."""

        def run(self, moment: Moment) -> None:
            """Join what is new on each side with the other side, and send the pairs on."""

else:
    Joining = calls().Joining


class JoinNode(Joining, Node):
    """The join of two arrangements on their first `key` columns."""

    _join = _join
    state_words = JOIN_STATE

    def __init__(
        self,
        scope: Scope,
        shards: int,
        left: Arranged,
        right: Arranged,
        key: int,
        output: tuple[tuple[int, int], ...],
        name: str,
        nulls_match: bool = False,
    ) -> None:
        """`output` lists the columns to produce as (side, data column of that side's trace)."""
        super().__init__(scope, shards, name)
        self.key = key
        self.flags = NULLS_MATCH if nulls_match else 0
        for side in (left, right):
            ArrangementReader(self, side)
        self.readers = self.reads
        widths = (left.trace.data, right.trace.data)
        self.specs = _specs(output, widths)
        self.data = len(output)
        self.output = output
        self.tasks: Sequence[list[JoinTask]] = ()
        """Those of each shard, in order; nothing between runs that leave none. Two for each run, and so no deques, of which an
        empty one takes 600 bytes.
        """
        self._most = EVERYTHING
        """About how many rows a worker makes in a run. A few may make many: then others use the engine while the rest is made."""

    @property
    def piece(self) -> int:
        """Rows of one piece of output."""
        return PIECE

    @property
    def busy(self) -> bool:
        return any(self.tasks)

    def clear(self) -> None:
        self.tasks = ()

    def choose_rows(self) -> None:
        found = common_guard([edge.steps for edge in self.port.edges])
        if found is not None:
            side, column = self.output[found[0]]
            guard = found if found[0] == column else (column, found[1])
            for number, reader in enumerate(self.readers):
                if reader.imported and (number == side or column < self.key):
                    reader.guard(guard)

    def _run(self, moment: Moment) -> None:
        """`run` for any number of rows and shards, and for what goes on."""
        left, right = self.readers
        rows = LONG if any(self.tasks) else 0
        if not self.tasks:
            self.tasks = [[] for _ in range(self.shards)]
        elif rows and self.flow.workers.has_all_shards:
            share_tasks(self.tasks, JoinTask.divided)
        for shard in range(self.shards):
            _, delta_left, new_left = left.take(shard)
            old_right, delta_right, _ = right.take(shard)
            if delta_left and len(old_right.table):
                self.tasks[shard].append(JoinTask(0, shard, JoinedRows(delta_left, old_right.batches, old_right.table)))
            if delta_right and len(new_left.table):
                self.tasks[shard].append(JoinTask(1, shard, JoinedRows(delta_right, new_left.batches, new_left.table)))
            rows += sum([batch.n for batch in delta_left]) + sum([batch.n for batch in delta_right])
        self._most = LONG if rows < LONG else EVERYTHING
        self.work_out(self._work, rows)
        if any(self.tasks):
            self.scope.schedule(self.position, moment)
        else:
            self.tasks = ()

    def _work(self, worker: int, outbox: Outbox) -> None:
        tasks = self.tasks[worker]
        pieces = made = 0
        while tasks and pieces < PIECES_PER_RUN and made < self._most:
            task = tasks[0]
            near, far = self.readers[task.side].trace, self.readers[1 - task.side].trace
            rows = task.rows
            found = _join(
                rows.near, rows.far, self.key, near.data, far.data, near.times, far.times, self.times,
                self.specs[task.side], self.flow.reached, PIECE, self.flags, rows.state,
            )  # fmt: skip
            if found.n < 0:
                self.refuse()
            if rows.state[0] == 1:
                del tasks[0]
            pieces += 1
            made += found.n
            emit_by_moment(self.port, task.shard, found, self.data, self.times, outbox)

    def go_on(self, side: int, near: tuple[Batch, ...], far: Version, state: Words) -> None:
        """Leave the rest of a join of the only shard to the next run."""
        rows = JoinedRows(near, far.batches, far.table)
        rows.state = state
        self.tasks = [[*self.tasks[0], JoinTask(side, 0, rows)]] if self.tasks else [[JoinTask(side, 0, rows)]]

    def refuse(self) -> NoReturn:
        """Fail because of a product of multiplicities."""
        raise IncorrectError(f"{self.name}: a product of multiplicities does not fit into 64 bits")

    def _by_moment(self, port: Port, shard: int, chunk: Chunk, data: int, times: int, outbox: Outbox) -> None:
        emit_by_moment(port, shard, chunk, data, times, outbox)


@lru_cache(maxsize=1 << 10)
def _specs(output: tuple[tuple[int, int], ...], widths: tuple[int, int]) -> tuple[Words, ...]:
    """The places at which a kernel finds the columns to produce, for changes of either side. A tuple, because the C code that
    runs few rows reads it as one.
    """
    return tuple([np.array([c if s == side else widths[side] + c for s, c in output], np.int64) for side in (0, 1)])


def emit_by_moment(port: Port, shard: int, chunk: Chunk, data: int, times: int, outbox: Outbox) -> None:
    """Emit rows of several rounds, in one chunk for each moment."""
    if not chunk.n:
        return
    if times == 1:
        port.emit(shard, chunk, (), times, outbox)
        return
    constants = chunk.constants(data + 1, times - 1)
    if constants is not None:
        port.emit(shard, chunk, constants, times, outbox)
        return
    parts, offsets, moments = partition_chunk(chunk.at, data, times)
    parts.memory = chunk.memory
    for i, found in enumerate(moments.tolist()):
        port.emit(shard, parts.slice(int(offsets[i]), int(offsets[i + 1])), tuple(found), times, outbox)
