"""The tests can fail: each rule of the engine, broken on purpose, is caught by a check that passes when it holds."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

import tektite as tk
from tektite.dataflow.arrange import Reader
from tektite.dataflow.flow import Dataflow
from tektite.dataflow.graph import Scope
from tektite.dataflow.loop import Leave, Variable
from tektite.dataflow.pipeline_actions import Versions
from tektite.dataflow.reduce import ReduceNode
from tektite.trace.trace import Handle, Trace
from tests.dataflow.test_three_coordinates import OPERATIONS, Grid, at_random
from tests.engine.test_memory import Replacing
from tests.query.test_random_programs import run_at_random, world

Patch = pytest.MonkeyPatch
Check = Callable[[], None]


# ---------------------------------------------------------------------------------------------------- checks


def both_sides_change_at_once() -> None:
    with tk.Engine() as engine:
        a, b = engine.input("a", x=tk.Int), engine.input("b", x=tk.Int)
        view = engine.install("view", a.join(b, on="x"))
        a.insert([(1,)])
        b.insert([(1,)])
        engine.advance()
        assert view.multiplicities() == {(1,): 1}


def three_clauses_change_at_once() -> None:
    with tk.Engine() as engine:
        edges = engine.input("edges", src=tk.Int, dst=tk.Int)
        hops = [(edges, ("a", "b")), (edges, ("b", "c")), (edges, ("c", "d"))]
        view = engine.install("view", tk.match(*hops, strategy="delta"))
        edges.insert([(1, 2), (2, 3)])
        engine.advance()
        edges.insert([(3, 4), (4, 5)])
        engine.advance()
        assert view.multiplicities() == {(1, 2, 3, 4): 1, (2, 3, 4, 5): 1}


def one_side_is_ahead() -> None:
    with tk.Engine() as engine:
        a, b = engine.input("a", x=tk.Int), engine.input("b", x=tk.Int)
        view = engine.install("view", a.concat(b))
        a.insert([(1,)], time=0)
        a.insert([(2,)], time=1)
        a.advance(2)
        b.advance(1)
        assert view.multiplicities() == {(1,): 1}


def history_comes_up_again() -> None:
    grid = Grid(OPERATIONS["count"])
    grid.update(0, (7, 0), (0, 2, 0), 1)
    grid.update(0, (7, 1), (1, 0, 0), 1)
    for epoch in (1, 2):
        grid.engine.advance(epoch)
        grid.engine.settle()
    assert grid.got((1, 2, 0)) == {(7, 2): 1}


def times_meet_where_nothing_happens() -> None:
    grid = Grid(OPERATIONS["count"])
    grid.update(0, (7, 0), (0, 0, 1), 1)
    grid.update(0, (7, 1), (0, 1, 0), 1)
    grid.engine.advance()
    grid.engine.settle()
    assert grid.got((0, 1, 1)) == {(7, 2): 1}


def joins_leave_at_later_rounds() -> None:
    for seed in range(8):
        at_random(seed, OPERATIONS["join"], leave=True)


def joins_meet_at_the_right_epoch() -> None:
    """Two epochs in one sweep, on an arrangement of the view's own that is merged while the sweep runs."""
    with tk.Engine(merging="eager") as engine:
        a, b = engine.input("a", x=tk.Int), engine.input("b", x=tk.Int)
        view = engine.install("view", a.select(x=tk.col("x") + 1).join(b.select(x=tk.col("x") + 1), on="x"))
        changes = view.changes()
        a.insert([(1,)])
        engine.advance()
        a.insert([(2,)], time=1)
        b.insert([(1,)], time=1)
        engine.advance(3)
        assert [tuple(change) for change in changes] == [((2,), 1, 1)]


def an_entered_arrangement_grows() -> None:
    with tk.Engine() as engine:
        edges = engine.input("edges", src=tk.Int, dst=tk.Int)
        roots = engine.input("roots", node=tk.Int)

        def step(found: tk.Collection) -> tk.Collection:
            return found.join(edges, on=("node", "src")).select(node="dst").concat(roots).distinct()

        view = engine.install("reach", roots.distinct().iterate(step))
        roots.insert([(1,)])
        engine.advance()
        edges.insert([(1, 2)])
        engine.advance()
        assert view.multiplicities() == {(1,): 1, (2,): 1}


def an_install_answers_at_once() -> None:
    with tk.Engine() as engine:
        a = engine.input("a", x=tk.Int)
        a.insert([(1,)])
        engine.advance(5)
        assert engine.install("view", a.count()).rows() == [(1,)]


def an_install_finds_its_time() -> None:
    """A view of two inputs, one of which is behind, speaks from the last epoch that the other one has closed."""
    with tk.Engine(merging="eager") as engine:
        a, b = engine.input("a", x=tk.Int), engine.input("b", x=tk.Int)
        for epoch in range(3):
            a.insert([(epoch,)])
            a.advance()
        changes = engine.install("view", a.join(b, on=[]).count()).changes()
        b.insert([(1,)], time=0)
        b.advance(3)
        assert [tuple(change) for change in changes] == [((3,), 2, 1)]


def a_loop_comes_to_rest_on_two_workers() -> None:
    """Its body adds each row where one column sends it and takes it away where the other does."""
    with tk.Engine(workers=2) as engine:
        rows = [(i, 7 * i) for i in range(20)]
        a = engine.input("a", x=tk.Int, y=tk.Int)

        def step(found: tk.Collection) -> tk.Collection:
            return found.concat(found.arrange(by="y"), found.arrange(by="x").negate())

        view = engine.install("view", a.iterate(step, limit=50))
        a.insert(rows)
        engine.advance()
        assert sorted(view.rows()) == rows


def memory_is_steady() -> None:
    with tk.Engine() as engine:
        data = Replacing(engine)
        data.run(500)
        assert data.source.trace.rows < 500


def random_programs() -> None:
    for seed in range(150):
        with world(seed, 8, 8) as w:
            run_at_random(w, random.Random(seed))


# ---------------------------------------------------------------------------------------------------- faults


def old_is_the_newest_version(patch: Patch) -> None:
    take = Handle.take_before

    def broken(self: Handle, shard: int, epoch: int) -> Any:
        _, delta, new = take(self, shard, epoch)
        return new, delta, new

    patch.setattr(Handle, "take_before", broken)


def pipelines_see_everything_as_it_is(patch: Patch) -> None:
    patch.setattr(Versions, "table", lambda self, lookup, shard: self.taken[lookup.reader][shard][2])


def queues_are_never_split(patch: Patch) -> None:
    patch.setattr(Handle, "take_before", lambda self, shard, epoch: self.take(shard))


def nothing_is_put_off(patch: Patch) -> None:
    patch.setattr(ReduceNode, "put_off", lambda self, shard, todo: None)


def leave_speaks_at_the_present_round(patch: Patch) -> None:
    def receive(self: Leave, shard: int, chunk: Any, moment: Any) -> None:
        now = self.scope.moment
        self.buffer.add(shard, chunk.select(self.without_round), now)
        self.scope.schedule(self.position, now)

    patch.setattr(Leave, "receive", receive)


def readers_hold_one_epoch_too_late(patch: Patch) -> None:
    frontier = Scope.frontier
    patch.setattr(Scope, "frontier", lambda self: tuple((t[0] + 1, *t[1:]) for t in frontier(self)))


def entered_arrangements_wake_nobody(patch: Patch) -> None:
    wake = Reader.wake
    patch.setattr(Reader, "wake", lambda self, moment=(): None if self.lift else wake(self, moment))


def installs_start_at_the_open_epoch(patch: Patch) -> None:
    def settle_start(self: Dataflow) -> None:
        self.first = self.low = self.high = max(source.low for source in self.sources)

    patch.setattr(Dataflow, "settle_start", settle_start)


def installs_start_at_the_slowest_input(patch: Patch) -> None:
    def settle_start(self: Dataflow) -> None:
        self.first = self.low = self.high = max(min(source.low for source in self.sources) - 1, 0)

    patch.setattr(Dataflow, "settle_start", settle_start)


def feedback_is_not_exchanged(patch: Patch) -> None:
    patch.setattr(
        Variable, "exchange", lambda self, shard, chunk, moment, outbox: outbox.append((self, shard, chunk, moment))
    )


def nothing_is_compacted(patch: Patch) -> None:
    since = Trace.since
    patch.setattr(Trace, "since", lambda self: since(self) and ((0,) * self.times,))


CASES: list[tuple[Callable[[Patch], None], Check]] = [
    (old_is_the_newest_version, both_sides_change_at_once),
    (old_is_the_newest_version, random_programs),
    (pipelines_see_everything_as_it_is, three_clauses_change_at_once),
    (queues_are_never_split, one_side_is_ahead),
    (queues_are_never_split, random_programs),
    (nothing_is_put_off, history_comes_up_again),
    (nothing_is_put_off, times_meet_where_nothing_happens),
    (nothing_is_put_off, random_programs),
    (leave_speaks_at_the_present_round, joins_leave_at_later_rounds),
    (readers_hold_one_epoch_too_late, joins_meet_at_the_right_epoch),
    (readers_hold_one_epoch_too_late, random_programs),
    (entered_arrangements_wake_nobody, an_entered_arrangement_grows),
    (installs_start_at_the_open_epoch, an_install_answers_at_once),
    (installs_start_at_the_slowest_input, an_install_finds_its_time),
    (feedback_is_not_exchanged, a_loop_comes_to_rest_on_two_workers),
    (nothing_is_compacted, memory_is_steady),
]


@pytest.mark.parametrize("check", dict.fromkeys(check for _, check in CASES), ids=lambda check: check.__name__)
def test_the_check_passes(check: Check) -> None:
    check()


@pytest.mark.parametrize(("fault", "check"), CASES, ids=lambda part: part.__name__)
def test_the_fault_is_caught(fault: Callable[[Patch], None], check: Check, monkeypatch: Patch) -> None:
    fault(monkeypatch)
    with pytest.raises((AssertionError, tk.TektiteError, KeyError)):
        check()
