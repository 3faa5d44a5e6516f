"""Operators inside a doubly nested loop, with updates at chosen times (epoch, round, round), at every point of the grid.

Random loops rarely produce times that are incomparable in all coordinates, so the updates are put there: a test-only
operator reads the rounds from two columns of the data and emits each row at them. What the operator under test emits
is then accumulated up to every point of the grid and compared with brute force over the updates up to that point.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tektite as tk
from tektite.dataflow.arrange import Buffer
from tektite.dataflow.graph import Moment, Outbox, Scope
from tektite.dataflow.join import emit_by_moment
from tektite.dataflow.node import Node
from tektite.dataflow.output import InspectNode
from tektite.engine.catalog import RecordingCatalog
from tektite.engine.core import core_of
from tektite.plan import algebra as plan
from tektite.plan.render import Renderer, Stream
from tektite.trace.chunk import Chunk, column_spec
from tektite.trace.times import Time, before
from tests.support.brute import Bag, Brute, Row, bag
from tests.support.executors import examples, make_engine
from tests.support.nightly import by_day_or_night
from tests.support.programs import odd_ones, spread

pytestmark = pytest.mark.executors

MOST = settings.default.max_examples if settings.default is not None else 100


@dataclass(eq=False, frozen=True)
class Delayed(plan.Operator):
    """The rows (k, v) of an input (k, v, r1, r2), each in the rounds (r1, r2) of a loop in a loop."""

    source: Any
    of: plan.Loop

    @cached_property
    def loop(self) -> plan.Loop | None:
        return self.of


class Delay(Node):
    """Puts rows at the rounds that their last two data columns name."""

    retime = column_spec([0, 1, 4, 2, 3, 7])  # k, v, r1, r2, epoch, 0, 0, diff -> k, v, epoch, r1, r2, diff

    def __init__(self, scope: Scope, shards: int) -> None:
        super().__init__(scope, shards, "delay")
        self.buffer = Buffer(self, 4)

    def receive(self, shard: int, chunk: Chunk, moment: Moment) -> None:
        self.buffer.add(shard, chunk, moment)
        self.scope.schedule(self.position, moment)

    def run(self, moment: Moment) -> None:
        waiting = self.buffer.take(moment) or [[] for _ in range(self.shards)]

        def work(shard: int, outbox: Outbox) -> None:
            for chunk in waiting[shard]:
                emit_by_moment(self.port, shard, chunk.select(self.retime), 2, 3, outbox)

        self.each_shard(work, 0)


class Capture(InspectNode):
    """Shows every update that arrives to a function, at its moment."""

    def receive(self, shard: int, chunk: Chunk, moment: Moment) -> None:
        for words in chunk.to_array().T.tolist():
            assert tuple(words[-1 - len(moment) : -1]) == moment, "a chunk says another moment than its rows"
        super().receive(shard, chunk, moment)


class GridRenderer(Renderer):
    """A renderer that knows the test's operator."""

    def _render(self, operator: plan.Operator) -> Stream:
        if not isinstance(operator, Delayed):
            return super()._render(operator)
        scope = self.scope(operator)
        stream = self.entered(operator.source.operator, scope)
        node = Delay(scope, self.shards)
        stream.feed(node)
        return Stream(scope, [(node.port, (), 0)], None)


class GridBrute(Brute):
    """Brute force at one point: a delayed collection is what has arrived up to there."""

    def _evaluate(self, operator: plan.Operator) -> Bag:
        return self.contents[operator.source] if isinstance(operator, Delayed) else super()._evaluate(operator)


Operation = Callable[[tk.Collection, tk.Collection], tk.Collection]


def two_joins(a: tk.Collection, b: tk.Collection) -> tk.Collection:
    return a.join(b, left_on="v", right_on="k").select("k", v="v_right").join(a, left_on="v", right_on="k")


def counts_of_counts(a: tk.Collection, b: tk.Collection) -> tk.Collection:
    return a.count(by="k", name="n").reduce(spread, by="n", r0=tk.Int, r1=tk.Int)


def least_of_counts(a: tk.Collection, b: tk.Collection) -> tk.Collection:
    return a.concat(b).count(by="v", name="n").select("n", "v").min("v", by="n")


def conjunction(strategy: str, cyclic: bool) -> Operation:
    def build(a: tk.Collection, b: tk.Collection) -> tk.Collection:
        last = ("z", "x") if cyclic else ("z", None)
        return tk.match((a, ("x", "y")), (b, ("y", "z")), (a, last), without=[(b, ("x", "y"))], joins=strategy)

    return build


OPERATIONS: dict[str, Operation] = {
    "count": lambda a, b: a.count(by="k"),
    "count of all": lambda a, b: a.count(),
    "sums": lambda a, b: a.group_by("k").agg(n=tk.count(), s=tk.sum("v"), d=tk.count_distinct("v")),
    "min": lambda a, b: a.min("v", by="k"),
    "max": lambda a, b: a.concat(b).max("v", by="k"),
    "distinct": lambda a, b: a.distinct(),
    "threshold": lambda a, b: a.select("k").threshold(2),
    "reduce": lambda a, b: a.reduce(spread, by="k", r0=tk.Int, r1=tk.Int),
    "reduce sometimes": lambda a, b: a.reduce(odd_ones, by="k", r0=tk.Int, r1=tk.Int),
    "join": lambda a, b: a.join(b, left_on="v", right_on="k"),
    "self-join": lambda a, b: a.join(a, left_on="v", right_on="k"),
    "semi-join": lambda a, b: a.join(b, left_on="v", right_on="k", how="semi"),
    "anti-join": lambda a, b: a.join(b, on="k", how="anti"),
    "join of joins": two_joins,
    "join of counts": lambda a, b: a.count(by="k", name="n").join(b.count(by="k", name="m"), on="k"),
    "delta pipelines": conjunction("delta", cyclic=False),
    "hector pipelines": conjunction("hector", cyclic=True),
    "counts of counts": counts_of_counts,
    "least of counts": least_of_counts,
}


class Grid:
    """An engine with a doubly nested loop into which updates can be injected."""

    def __init__(self, operation: Operation, leave: bool = False, **options: Any) -> None:
        self.engine = make_engine(**options)
        columns = {"k": tk.Int, "v": tk.Int, "r1": tk.Int, "r2": tk.Int}
        self.inputs = [self.engine.create_table(name, columns) for name in ("a", "b", "a minus", "b minus")]
        self.log: list[tuple[int, Row, Time, int]] = []
        with tk.Loop("outer") as outer, tk.Loop("inner") as inner:
            self.loops = (outer._plan, inner._plan)
            a, b, a_minus, b_minus = (self.delayed(source, inner) for source in self.inputs)
            result = operation(a.concat(a_minus.negate()), b.concat(b_minus.negate()))
            self.result = inner.leave(result) if leave else result
        catalog = core_of(self.engine).catalog
        self.flow = catalog.new_flow("grid")
        renderer = GridRenderer(self.flow, RecordingCatalog(catalog, self.flow), core_of(self.engine).dictionary)
        stream = renderer.stream(self.result.operator)
        self.updates: list[tuple[Row, Time, int]] = []
        schema = self.result.schema
        stream.feed(Capture(stream.scope, self.engine.workers, schema, self.take, core_of(self.engine).dictionary))
        renderer.finish([])
        self.flow.settle_start()
        core_of(self.engine).coordinator.add(self.flow)

    def take(self, changes: pa.Table) -> None:
        """Keep what was captured: (row, time, diff)."""
        data = len(self.result.schema.names)
        for *words, diff in zip(*(column.to_pylist() for column in changes.columns), strict=True):
            self.updates.append((tuple(words[:data]), tuple(words[data:]), diff))

    def delayed(self, source: tk.Table, loop: tk.Loop) -> tk.Collection:
        return tk.Collection(self.engine, Delayed(source.schema.select("k", "v"), source, loop._plan))

    def update(self, which: int, row: Row, time: Time, diff: int) -> None:
        """Change `row` of collection `which` (0 or 1) by `diff` (1 or -1) at a time of three coordinates."""
        source = self.inputs[which if diff > 0 else which + 2]
        source.update([(*row, *time[1:])], times=[time[0]], diffs=[1])
        self.log.append((which if diff > 0 else which + 2, row, time, 1))

    def want(self, point: Time) -> Bag:
        """The result of all updates up to a point."""
        contents = {
            source: bag((row, diff) for which, row, time, diff in self.log if which == i and before(time, point))
            for i, source in enumerate(self.inputs)
        }
        brute = GridBrute(contents)
        for loop in self.loops:
            brute.frames[loop] = {}
        operator = self.result.operator
        return brute.value(operator.inner if isinstance(operator, plan.Leave) else operator)

    def got(self, point: Time) -> Bag:
        return bag((row, diff) for row, time, diff in self.updates if before(time, point))


def at_random(seed: int, operation: Operation, leave: bool) -> None:
    rng = random.Random(seed)
    rounds, epochs, keys = rng.choice([2, 3, 4]), rng.choice([2, 3, 5]), rng.choice([1, 2, 3])
    grid = Grid(operation, leave, workers=rng.choice([1, 1, 2]), merging=rng.choice(["eager", "default", "lazy"]),
                turn=rng.choice([0.0, 0.05]))  # fmt: skip
    there: dict[int, list[Row]] = {0: [], 1: []}
    for epoch in range(epochs):
        for which in (0, 1):
            for _ in range(rng.choice([0, 1, 3])):
                row = (rng.randrange(keys), rng.randrange(keys))
                time = (epoch, rng.randrange(rounds), rng.randrange(rounds))
                remove = bool(there[which]) and rng.random() < 0.4
                if remove:
                    row = there[which].pop(rng.randrange(len(there[which])))
                else:
                    there[which].append(row)
                grid.update(which, row, time, -1 if remove else 1)
    while grid.flow.low < epochs:
        source = rng.choice(grid.inputs)
        to = min(source.next_epoch + rng.choice([1, 1, 2, 5]), epochs)
        if to > source.next_epoch:
            source.advance(to)
        for _ in range(rng.choice([0, 1, 3])):
            grid.engine.run()
        if all(source.next_epoch == epochs for source in grid.inputs):
            grid.engine.settle()
        assert grid.flow.failure is None, grid.flow.failure
    for epoch in range(epochs):
        for r1 in range(rounds):
            for r2 in [rounds] if leave else range(rounds):
                point = (epoch, r1, r2)
                got = grid.got(point[:2] if leave else point)
                assert got == grid.want(point), (point, grid.log)
    grid.engine.close()


@pytest.mark.executors(
    stages=[
        "count", "sums", "max", "reduce", "join", "anti-join", "join of joins", "join of counts", "delta pipelines",
        "hector pipelines", "counts of counts",
    ],
    spark=["max", "reduce sometimes"],
)  # fmt: skip
@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operator_in_a_nested_loop_is_right_at_every_point(name: str) -> None:
    @settings(max_examples=examples(by_day_or_night(MOST // 2, MOST)))
    @given(seed=st.integers(0, 2**32 - 1))
    def check(seed: int) -> None:
        at_random(seed, OPERATIONS[name], leave=False)

    check()


@pytest.mark.executors(stages=["count", "join of joins"])
@pytest.mark.parametrize("name", ["join", "count", "join of joins", "delta pipelines", "reduce"])
def test_what_leaves_a_nested_loop_is_right_at_every_point(name: str) -> None:
    @settings(max_examples=examples(by_day_or_night(MOST // 2, MOST)))
    @given(seed=st.integers(0, 2**32 - 1))
    def check(seed: int) -> None:
        at_random(seed, OPERATIONS[name], leave=True)

    check()


@pytest.mark.executors("stages")
def test_two_changes_meet_where_neither_of_them_is() -> None:
    """A key gains a row at (0, 0, 1) and another at (0, 1, 0): at (0, 1, 1), where nothing happens, it has both."""
    grid = Grid(OPERATIONS["count"])
    grid.update(0, (7, 0), (0, 0, 1), 1)
    grid.update(0, (7, 1), (0, 1, 0), 1)
    grid.engine.advance()
    grid.engine.settle()
    assert grid.got((0, 1, 1)) == {(7, 2): 1}


@pytest.mark.executors(stages=["True-count", "False-reduce", "True-min"], spark=["True-count"])
@pytest.mark.parametrize("name", ["count", "reduce", "min", "counts of counts", "join of counts"])
@pytest.mark.parametrize("together", [True, False])
def test_joins_of_joins_of_times_count_too(name: str, together: bool) -> None:
    """Three times of which each two meet somewhere, and all three somewhere else again."""
    grid = Grid(OPERATIONS[name])
    for epoch, (row, rounds) in enumerate([((1, 1), (0, 2)), ((1, 2), (1, 1)), ((1, 3), (2, 0)), ((1, 0), (0, 0))]):
        grid.update(0, row, (epoch, *rounds), 1)
        grid.update(1, row, (3 - epoch, *rounds), 1)
    for epoch in [4] if together else [1, 2, 3, 4]:
        grid.engine.advance(epoch)
        grid.engine.settle()
    for point in [(e, r1, r2) for e in range(4) for r1 in range(4) for r2 in range(4)]:
        assert grid.got(point) == grid.want(point), point


@pytest.mark.executors("stages")
@pytest.mark.parametrize("name", ["count", "distinct", "reduce"])
def test_history_that_is_not_visible_yet_brings_a_key_up_again(name: str) -> None:
    """A key changes in epoch 0 at round (2, 0), and in epoch 1 at (0, 0) and (0, 1)."""
    grid = Grid(OPERATIONS[name])
    grid.update(0, (7, 0), (0, 2, 0), 1)
    grid.update(0, (7, 1), (1, 0, 0), 1)
    grid.update(0, (7, 2), (1, 0, 1), 1)
    for epoch in (1, 2):
        grid.engine.advance(epoch)
        grid.engine.settle()
    for point in [(e, r1, r2) for e in range(2) for r1 in range(3) for r2 in range(3)]:
        assert grid.got(point) == grid.want(point), point
