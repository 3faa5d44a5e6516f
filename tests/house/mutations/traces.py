"""Faults of times, spines and handles."""

from __future__ import annotations

from typing import Any

import pytest

import tektite as tk
from tektite.dataflow.join import JoinNode
from tektite.engine.core import core_of
from tektite.trace import trace
from tektite.trace.records import Version
from tektite.trace.trace import Handle
from tests.dataflow.test_three_coordinates import OPERATIONS, at_random
from tests.engine.test_memory import Replacing
from tests.house.mutations.dataflow import both_sides_change_at_once, one_side_is_ahead, random_programs
from tests.house.mutations.fault import Fault, altered, misled, nothing


def memory_is_steady() -> None:
    with tk.Engine(autocommit=False) as engine:
        data = Replacing(engine)
        data.run(500)
        assert core_of(data.source).trace.rows < 500


def batches_stay_few() -> None:
    with tk.Engine(autocommit=False) as engine:
        table = engine.create_table("t", {"x": tk.Int})
        engine.install("n", table.count())
        for n in range(200):
            table.insert([(n,)])
            engine.advance()
        assert core_of(table).trace.batches < 30


def a_reader_far_behind_sees_everything() -> None:
    """It goes on from versions of its own, whose batches are joined as they get many."""
    with pytest.MonkeyPatch.context() as patch, tk.Engine(autocommit=False) as engine:
        patch.setattr(trace, "MANY", 2)
        a, b = engine.create_table("a", {"x": tk.Int}), engine.create_table("b", {"x": tk.Int})
        view = engine.install("view", a.join(b, on="x"))
        for n in range(20):
            a.insert([(n,)], time=n)
        a.advance(20)
        for n in range(20):
            b.insert([(k,) for k in range(n + 1)], time=n)
            b.advance(n + 1)
            assert sum(view.multiplicities().values()) == sum(n + 1 - m for m in range(n + 1))


def a_hold_keeps_the_past_readable() -> None:
    with tk.Engine(merging="eager", autocommit=False) as engine:
        table = engine.create_table("t", {"x": tk.Int})
        view = engine.install("all", table)
        table.insert([(1,)])
        engine.advance()
        with engine.hold(view, at=0):
            for n in range(2, 6):
                table.insert([(n,)])
                engine.advance()
            assert view.rows(at=0) == [(1,)]


def a_released_hold_lets_the_past_go() -> None:
    with tk.Engine(merging="eager", autocommit=False) as engine:
        table = engine.create_table("t", {"x": tk.Int}, mode="upsert", primary_key=["x"])
        with engine.hold(engine.install("all", table), at=0):
            pass
        for n in range(60):
            (table.remove if n % 2 else table.insert)([(1,)])
            engine.advance()
        assert core_of(table).trace.rows < 10


def filters_get_what_they_want() -> None:
    with tk.Engine(autocommit=False) as engine:
        table = engine.create_table("t", {"k": tk.Int})
        views = [engine.install(f"v{c}", table.filter(tk.col("k") == c)) for c in range(40)]
        for n in range(3):
            table.insert([(c,) for c in range(10 * n, 10 * n + 100)])
            engine.advance()
        assert [len(view.rows()) for view in views[:30:10]] == [1, 2, 3]


def loops_in_loops_are_right() -> None:
    for seed in range(12):
        at_random(seed, OPERATIONS["join of counts"], leave=False)
        at_random(seed, OPERATIONS["count"], leave=False)


def old_is_new(there: Any) -> Any:
    def broken(self: Handle, shard: int, epoch: int) -> Any:
        _, delta, new = there(self, shard, epoch)
        return new, delta, new

    return broken


def joined_with_what_is_new(there: Any) -> Any:
    """The general path, which takes by methods that can be replaced."""

    def run(self: JoinNode, moment: Any) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Handle, "take_before", old_is_new(Handle.take_before))
            self._run(moment)

    return run


TRACE = "tektite.trace.trace"
FAULTS = [
    Fault("what was there before is what is there after", "tektite.dataflow.join JoinNode.run", joined_with_what_is_new,
          both_sides_change_at_once),
    Fault("what was there before is what is there after", "tektite.dataflow.join JoinNode.run", joined_with_what_is_new,
          random_programs),
    Fault("queues are never split", f"{TRACE} Handle.take_before",
          lambda there: lambda self, shard, epoch: self.take(shard), one_side_is_ahead),
    Fault("queues are never split", f"{TRACE} Handle.take_before",
          lambda there: lambda self, shard, epoch: self.take(shard), random_programs),
    Fault("batches are split an epoch late", f"{TRACE} split_batch",
          misled(lambda batch, time_at, epoch: (batch, time_at, epoch + 1)), one_side_is_ahead),
    Fault("small batches of a reader's own are lost", f"{TRACE} shortened",
          lambda there: lambda version, trace: Version(version.batches[:2]), a_reader_far_behind_sees_everything),
    Fault("nothing is compacted", f"{TRACE} Trace._reached", altered(lambda epoch: 0), memory_is_steady),
    Fault("holds hold nothing", f"{TRACE} Trace.add_hold", nothing, a_hold_keeps_the_past_readable),
    Fault("holds are never released", f"{TRACE} Trace.release", nothing, a_released_hold_lets_the_past_go),
    Fault("guarded readers get nothing", "tektite.trace.routes ColumnRoutes.wanted",
          lambda there: lambda self, batch: [], filters_get_what_they_want),
    Fault("a reader gets the rows of its neighbour", "tektite.trace.routes rows_by_owner",
          altered(lambda made: (*made[:2], made[2][::-1].copy(), made[3])), filters_get_what_they_want),
    Fault("small batches are never merged", "tektite.trace.spine Spine.join_waiting", nothing, batches_stay_few),
    Fault("a frontier has one time", "tektite.trace.times antichain", altered(lambda times: times[:1]), loops_in_loops_are_right),
    Fault("later rounds of outer loops are forgotten", "tektite.trace.times running_frontier",
          lambda there: lambda low, high, moment: ((low, *moment),), loops_in_loops_are_right),
]  # fmt: skip
