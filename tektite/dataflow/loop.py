"""Loops: feedback into the next round, entry in a round that a column says, and the exit from a loop.

A variable of a loop is what its definition was one round earlier. Entering a scope appends round 0 to every time, or what a
column of the row says. Feedback adds one to the last round, and leaving drops it. All of these consolidate their rows, so that
a loop ends once all changes cancel.
"""

from __future__ import annotations

import numpy as np

from tektite.dataflow.arrange import Buffer, consolidate, exchange_by, partition_chunk, rows_of
from tektite.dataflow.graph import Moment, Outbox, Scope
from tektite.dataflow.node import Node
from tektite.kernels.seek.shift import shift
from tektite.trace.chunk import Chunk, column_spec, returning_chunks

_shift = returning_chunks(shift)


class FeedbackNode(Node):
    """A loop's variable: emits at each round what it received in the round before."""

    for_next_round = True

    def __init__(self, scope: Scope, shards: int, data: int, name: str) -> None:
        super().__init__(scope, shards, name)
        self.data = data
        self.routes = shards > 1
        self.buffer = Buffer(self, data)
        self.row = np.arange(data, dtype=np.int64)

    def exchange(self, shard: int, chunk: Chunk, moment: Moment, outbox: Outbox) -> None:
        """Send equal rows to one shard. Otherwise a change and its retraction could circulate forever."""
        if self.shards == 1:
            outbox.append((self, 0, chunk, moment))
        else:
            exchange_by(self, self.row, chunk, moment, outbox)

    def receive(self, shard: int, chunk: Chunk, moment: Moment) -> None:
        later = _shift(chunk.at, self.data + self.times - 1, 1)
        later.memory = chunk.memory
        following = (*moment[:-1], moment[-1] + 1)
        self.buffer.add(shard, later, following)
        self.scope.schedule(self.position, following)

    def run(self, moment: Moment) -> None:
        release(self, self.buffer, moment)


class EntryNode(Node):
    """Rows from outside a loop, each of which enters in the round that one of its columns says."""

    def __init__(self, scope: Scope, shards: int, data: int, column: int, name: str) -> None:
        """`column` holds rounds: integers from 0 on."""
        super().__init__(scope, shards, name)
        self.data = data
        columns = list(range(data + self.times + 1))
        columns[data + scope.depth] = column
        self._with_rounds = column_spec(columns)
        """All columns, with that of `column` in place of this scope's rounds."""
        self.buffer = Buffer(self, data)

    def exchange(self, shard: int, chunk: Chunk, moment: Moment, outbox: Outbox) -> None:
        """Address the rows of each round to its moment. They stay in their shard."""
        entering = chunk.select(self._with_rounds)
        parts, begins, moments = partition_chunk(entering.at, self.data, self.times)
        parts.memory = chunk.memory
        for number, found in enumerate(moments.tolist()):
            part = parts.slice(int(begins[number]), int(begins[number + 1]))
            outbox.append((self, shard, part, tuple(found)))

    def receive(self, shard: int, chunk: Chunk, moment: Moment) -> None:
        self.buffer.add(shard, chunk, moment)
        self.scope.schedule(self.position, moment)

    def run(self, moment: Moment) -> None:
        release(self, self.buffer, moment)


class LeaveNode(Node):
    """The exit from a loop: a node of the outer scope that collects rows of all inner rounds at each outer moment."""

    def __init__(self, scope: Scope, shards: int, data: int, name: str) -> None:
        """`scope` is the outer scope."""
        super().__init__(scope, shards, name)
        self.buffer = Buffer(self, data)
        self.without_round = column_spec([c for c in range(data + self.times + 2) if c != data + self.times])

    def receive(self, shard: int, chunk: Chunk, moment: Moment) -> None:
        outer = moment[:-1]
        self.buffer.add(shard, chunk.select(self.without_round), outer)
        self.scope.schedule(self.position, outer)

    def run(self, moment: Moment) -> None:
        release(self, self.buffer, moment)


def release(node: Node, buffer: Buffer, moment: Moment) -> None:
    """Emit the rows of a moment, consolidated."""
    waiting = buffer.take(moment)
    if waiting is None:
        return

    def work(shard: int, outbox: Outbox) -> None:
        if waiting[shard]:
            chunk = consolidate(waiting[shard], buffer.shape, node.flow.reached)
            node.port.emit(shard, chunk, moment, node.times, outbox)

    node.each_shard(work, rows_of(waiting) if node.shards > 1 else 0)
