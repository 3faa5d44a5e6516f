"""An operator that nobody else knows of runs on every executor: what it says of itself as a node is enough."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tektite as tk
from tektite.dataflow.arrange import Arranged, Buffer, consolidate, exchange_by
from tektite.dataflow.graph import Moment, Outbox, Scope
from tektite.dataflow.linear import SelectStep
from tektite.dataflow.node import Node
from tektite.dataflow.output import InspectNode
from tektite.engine.catalog import RecordingCatalog
from tektite.engine.core import core_of
from tektite.plan.render import Renderer
from tektite.plan.stream import Stream
from tektite.trace.chunk import Chunk
from tektite.trace.trace import Hold, Trace
from tests.support.executors import make_engine

pytestmark = pytest.mark.executors("stages", spark=[2])

AT_ONCE = 2
"""Keys that a run looks at, so that most runs leave something half done."""


class HighWater(Node):
    """Of each key the largest value that it ever had: (key, value) rows in, changes of (key, mark) out. Removals are ignored.

    Its input is exchanged by key and waits in a buffer, its state is a trace that it reads back, and it stops after a few keys.
    """

    def __init__(self, scope: Scope, shards: int, name: str) -> None:
        super().__init__(scope, shards, name)
        self.routes = shards > 1
        self.buffer = Buffer(self, 2)
        self.mints = Trace(2, self.times, 1, shards, self.flow.effort)
        self.flow.traces += (self.mints,)
        self.flow.holds += (Hold(self.mints, scope.frontier),)
        self.marks = Arranged(self.mints, scope, (0, 1), 1, imported=False)
        self.left: list[list[tuple[int, int, int]]] = [[] for _ in range(shards)]

    def exchange(self, shard: int, chunk: Chunk, moment: Moment, outbox: Outbox) -> None:
        exchange_by(self, np.zeros(1, np.int64), chunk, moment, outbox)

    def receive(self, shard: int, chunk: Chunk, moment: Moment) -> None:
        self.buffer.add(shard, chunk, moment)
        self.scope.schedule(self.position, moment)

    def consults(self) -> list[Trace]:
        return [self.marks.trace]

    @property
    def busy(self) -> bool:
        return any(self.left)

    def clear(self) -> None:
        super().clear()
        self.left = [[] for _ in self.left]

    def run(self, moment: Moment) -> None:
        for shard, chunks in enumerate(self.buffer.take(moment) or ()):
            for chunk in chunks:
                rows = chunk.to_array().T.tolist()
                self.left[shard] += [(epoch, key, value) for key, value, epoch, diff in rows if diff > 0]
        self.each_shard(lambda shard, outbox: self.raise_marks(shard, moment, outbox), 0)
        if self.busy:
            self.scope.schedule(self.position, moment)

    def raise_marks(self, shard: int, moment: Moment, outbox: Outbox) -> None:
        left = sorted(self.left[shard])
        chosen = sorted({key for _, key, _ in left})[:AT_ONCE]
        self.left[shard] = [found for found in left if found[1] not in chosen]
        marks = self.held(shard)
        changes: list[tuple[int, int, int, int]] = []
        for epoch, key, value in left:
            mark = marks.get(key)
            if key in chosen and (mark is None or value > mark):
                changes += [] if mark is None else [(key, mark, epoch, -1)]
                changes.append((key, value, epoch, 1))
                marks[key] = value
        if changes:
            columns = np.ascontiguousarray(np.array(changes, np.int64).T)
            built = consolidate([Chunk.of_array(columns)], self.buffer.shape, self.flow.low)
            self.marks.mint(shard, built)
            self.port.emit(shard, built, moment, self.times, outbox)

    def held(self, shard: int) -> dict[int, int]:
        """The marks of a shard, from its trace."""
        marks: Counter[tuple[int, int]] = Counter()
        for batch in self.marks.trace.version(shard).batches:
            for key, mark, _, diff in Chunk(batch.head, batch.memory).to_array().T.tolist():
                marks[key, mark] += diff
        return {key: mark for (key, mark), count in marks.items() if count}


class Marks:
    """An engine with two of them, one behind the other: the second gets the first's marks as keys."""

    def __init__(self, workers: int) -> None:
        self.engine = make_engine(workers)
        self.rows = self.engine.create_table("rows", {"k": tk.Int, "v": tk.Int})
        self.schema = self.rows.schema
        catalog, operator = core_of(self.engine).catalog, self.rows.operator
        self.flow = catalog.new_flow("marks")
        renderer = Renderer(self.flow, RecordingCatalog(catalog, self.flow), core_of(self.engine).dictionary)
        first = HighWater(self.flow.root, workers, "first")
        renderer.stream(operator).feed(first)
        second = HighWater(self.flow.root, workers, "second")
        Stream(self.flow.root, [(first.port, (), 0)], None).then(SelectStep([1, 0]), None).feed(second)
        self.got: list[Counter[tuple[int, ...]]] = [Counter(), Counter()]
        for node, place in ((first, 0), (second, 1)):
            self.show(node, place)
        self.flow.settle_start()
        core_of(self.engine).coordinator.add(self.flow)

    def show(self, node: HighWater, place: int) -> None:
        def take(changes: pa.Table) -> None:
            for k, v, time, diff in zip(*(column.to_pylist() for column in changes.columns), strict=True):
                self.got[place][k, v, time] += diff

        seen = InspectNode(self.flow.root, node.shards, self.schema, take, core_of(self.engine).dictionary)
        Stream(self.flow.root, [(node.port, (), 0)], None).feed(seen)


def raised(updates: list[tuple[int, int, int]]) -> Counter[tuple[int, ...]]:
    """What `HighWater` makes of (epoch, key, value): changes (key, mark, epoch), by brute force."""
    changes: Counter[tuple[int, ...]] = Counter()
    marks: dict[int, int] = {}
    for epoch, key, value in sorted(updates):
        if key not in marks or value > marks[key]:
            if key in marks:
                changes[key, marks[key], epoch] -= 1
            changes[key, value, epoch] += 1
            marks[key] = value
    return Counter({change: diff for change, diff in changes.items() if diff})


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_own_operator_answers_as_brute_force_does(workers: int, executor: str) -> None:
    pick = random.Random(workers)
    marks = Marks(workers)
    updates: list[tuple[int, int, int]] = []
    sweeps: list[Any] = []
    with marks.engine as engine:
        engine.on_sweep(sweeps.append)
        for _ in range(4):
            epoch = marks.rows.next_epoch
            for later in range(pick.choice([1, 1, 3])):
                new = [(pick.randrange(12), pick.randrange(40)) for _ in range(pick.randrange(30))]
                marks.rows.update(new, times=[epoch + later] * len(new), diffs=[1] * len(new))
                updates += [(epoch + later, *row) for row in new]
            engine.advance(epoch + 3)
            engine.settle()
            assert marks.flow.failure is None, marks.flow.failure
            first = raised(updates)
            assert nonzero(marks.got[0]) == first
            assert nonzero(marks.got[1]) == raised([(t, mark, k) for (k, mark, t), diff in first.items() if diff > 0])
        where = {sweep.where for sweep in sweeps if sweep.name == "marks"}
        assert where == {"driver" if executor == "threads" else "jobs"}


def nonzero(changes: Counter[tuple[int, ...]]) -> Counter[tuple[int, ...]]:
    return Counter({change: diff for change, diff in changes.items() if diff})
