"""Faults of dataflows: operators, loops, and the kernels that they call."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any

import pytest

import tektite as tk
from tektite.dataflow import function_reduce, kept_results
from tektite.dataflow.reduce import KernelQuestion
from tektite.engine.core import core_of
from tests.dataflow.test_three_coordinates import OPERATIONS, Grid, at_random
from tests.house.mutations.fault import Fault, altered, being, misled, nothing, returning
from tests.query.test_loop_entries import first_rounds
from tests.query.test_random_programs import run_at_random, world
from tests.support.row_changes import row_changes


def a_window_changes_where_its_rows_do() -> None:
    with tk.Engine() as engine:
        table = engine.create_table("t", {"o": tk.Int, "x": tk.Int})
        table.insert([(n, n) for n in range(0, 20_000, 2)])
        query = "SELECT o, x, sum(x) OVER (ORDER BY o ROWS 40 PRECEDING) AS s FROM t"
        view = engine.sql(f"CREATE MATERIALIZED VIEW v AS {query}").view
        assert view is not None
        table.insert([(9001, 1)])
        assert sorted(view.rows()) == sorted(engine.sql(query).rows())


def the_pairs_of_a_hub_are_found_once() -> None:
    with tk.Engine(2) as engine:
        edges = engine.create_table("edges", {"src": tk.Int, "dst": tk.Int})
        edges.insert([(0, node) for node in range(2, 1502)] + [(node, 0) for node in range(2, 1502)])
        hops = edges.join(edges.select(middle="src", end="dst"), left_on="dst", right_on="middle")
        assert engine.install("count", hops.count()).rows() == [(1500 * 1500 + 1500,)]


def results_that_nobody_reads(read: Callable[[tk.Engine, tk.Table, tk.View], None]) -> Callable[[], None]:
    """A check that reads results which are not kept just now."""

    def check() -> None:
        with pytest.MonkeyPatch.context() as patch, tk.Engine(autocommit=False) as engine:
            patch.setattr(kept_results, "LEAST", 1)
            table = engine.create_table("t", {"k": tk.Int})
            view = engine.create_view("counts", table.count(by="k"))
            for _ in range(4):
                table.insert([(1,), (2,)])
                engine.advance()
                engine.finish(view)
            read(engine, table, view)

    return check


def by_a_transaction(engine: tk.Engine, table: tk.Table, view: tk.View) -> None:
    session = engine.session()
    session.sql("BEGIN")
    table.insert([(1,)])
    engine.advance()
    engine.finish(view)
    assert sorted(session.sql("SELECT * FROM counts").rows()) == [(1, 4), (2, 4)]


def while_a_sweep_runs(engine: tk.Engine, table: tk.Table, view: tk.View) -> None:
    core, found = core_of(view), []
    with pytest.MonkeyPatch.context() as patch:
        there = KernelQuestion.answer

        def answer(self: KernelQuestion) -> None:
            there(self)
            found.append(core.decode(core.words(None, False)).to_pylist())

        patch.setattr(KernelQuestion, "answer", answer)
        table.insert([(k,) for k in range(3000)])
        engine.advance()
        engine.finish(view)
    assert found == [[{"k": 1, "count": 4}, {"k": 2, "count": 4}]]


def kept_by_both(there: Any) -> Any:
    """A half that is given away is still one's own."""

    def divided(self: Any) -> Any:
        state = self.state.copy()
        found = there(self)
        self.state[:] = state
        return found

    return divided


def rows_enter_a_loop_in_their_rounds() -> None:
    with tk.Engine() as engine:
        rows, clock = engine.values({"x": [1, 2], "round": [0, 3]}), engine.values({"n": [0]})
        assert sorted(engine.install("first", first_rounds(rows, clock)).rows()) == [(1, 0), (2, 3)]


def both_sides_change_at_once() -> None:
    with tk.Engine(autocommit=False) as engine:
        a, b = engine.create_table("a", {"x": tk.Int}), engine.create_table("b", {"x": tk.Int})
        view = engine.install("view", a.join(b, on="x"))
        a.insert([(1,)])
        b.insert([(1,)])
        engine.advance()
        assert view.multiplicities() == {(1,): 1}


def three_clauses_change_at_once() -> None:
    with tk.Engine(autocommit=False) as engine:
        edges = engine.create_table("edges", {"src": tk.Int, "dst": tk.Int})
        hops = [(edges, ("a", "b")), (edges, ("b", "c")), (edges, ("c", "d"))]
        view = engine.install("view", tk.match(*hops, joins="delta"))
        edges.insert([(1, 2), (2, 3)])
        engine.advance()
        edges.insert([(3, 4), (4, 5)])
        engine.advance()
        assert view.multiplicities() == {(1, 2, 3, 4): 1, (2, 3, 4, 5): 1}


def one_side_is_ahead() -> None:
    with tk.Engine(autocommit=False) as engine:
        a, b = engine.create_table("a", {"x": tk.Int}), engine.create_table("b", {"x": tk.Int})
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
    with tk.Engine(merging="eager", autocommit=False) as engine:
        a, b = engine.create_table("a", {"x": tk.Int}), engine.create_table("b", {"x": tk.Int})
        view = engine.install("view", a.select(x=tk.col("x") + 1).join(b.select(x=tk.col("x") + 1), on="x"))
        changes = row_changes(view)
        a.insert([(1,)])
        engine.advance()
        a.insert([(2,)], time=1)
        b.insert([(1,)], time=1)
        engine.advance(3)
        assert [tuple(change) for change in changes] == [((2,), 1, 1)]


def an_entered_arrangement_grows() -> None:
    with tk.Engine(autocommit=False) as engine:
        edges = engine.create_table("edges", {"src": tk.Int, "dst": tk.Int})
        roots = engine.create_table("roots", {"node": tk.Int})

        def step(found: tk.Collection) -> tk.Collection:
            return found.join(edges, left_on="node", right_on="src").select(node="dst").concat(roots).distinct()

        view = engine.install("reach", roots.distinct().iterate(step))
        roots.insert([(1,)])
        engine.advance()
        edges.insert([(1, 2)])
        engine.advance()
        assert view.multiplicities() == {(1,): 1, (2,): 1}


def an_install_answers_at_once() -> None:
    with tk.Engine(autocommit=False) as engine:
        a = engine.create_table("a", {"x": tk.Int})
        a.insert([(1,)])
        engine.advance(5)
        assert engine.install("view", a.count()).rows() == [(1,)]


def an_install_finds_its_time() -> None:
    """A view of two inputs, one of which is behind, speaks from the last epoch that the other one has closed."""
    with tk.Engine(merging="eager", autocommit=False) as engine:
        a, b = engine.create_table("a", {"x": tk.Int}), engine.create_table("b", {"x": tk.Int})
        engine.hold(a)
        for epoch in range(3):
            a.insert([(epoch,)])
            a.advance()
        changes = row_changes(engine.install("view", a.join(b, how="cross").count()))
        b.insert([(1,)], time=0)
        b.advance(3)
        assert [tuple(change) for change in changes] == [((3,), 2, 1)]


def a_loop_comes_to_rest_on_two_workers() -> None:
    """Its body adds each row where one column sends it and takes it away where the other does."""
    with tk.Engine(workers=2, autocommit=False) as engine:
        rows = [(i, 7 * i) for i in range(20)]
        a = engine.create_table("a", {"x": tk.Int, "y": tk.Int})

        def step(found: tk.Collection) -> tk.Collection:
            return found.concat(found.index_by("y"), found.index_by("x").negate())

        view = engine.install("view", a.iterate(step, max_rounds=50))
        a.insert(rows)
        engine.advance()
        assert sorted(view.rows()) == rows


def random_programs() -> None:
    for seed in range(60):
        with world(seed, 8, 8) as w:
            run_at_random(w, random.Random(seed))


def workers_exchange_by_key() -> None:
    with tk.Engine(workers=3, autocommit=False) as engine:
        a = engine.create_table("a", {"x": tk.Int, "y": tk.Int})
        view = engine.install("n", a.select(y=tk.col("y") % 5).count(by="y"))
        for n in range(4):
            a.insert([(10 * n + i, i) for i in range(10)])
            engine.advance()
        assert sorted(view.rows()) == [(y, 8) for y in range(5)]


def what_is_taken_away_is_gone() -> None:
    with tk.Engine(autocommit=False) as engine:
        a, b = engine.create_table("a", {"x": tk.Int}), engine.create_table("b", {"x": tk.Int})
        view = engine.install("view", a.concat(b.negate()))
        a.insert([(1,), (2,)])
        b.insert([(2,)])
        engine.advance()
        assert view.multiplicities() == {(1,): 1}


def null_joins_nothing() -> None:
    with tk.Engine(autocommit=False) as engine:
        a, b = engine.create_table("a", {"x": tk.Int}), engine.create_table("b", {"x": tk.Int})
        view = engine.install("view", a.join(b, on="x"))
        a.insert([(None,), (1,)])
        b.insert([(None,), (1,)])
        engine.advance()
        assert view.multiplicities() == {(1,): 1}


def null_is_null_to_set_operations() -> None:
    with tk.Engine(autocommit=False) as engine:
        engine.sql("CREATE TABLE a (x int); CREATE TABLE b (x int)")
        engine.sql("INSERT INTO a VALUES (NULL), (1); INSERT INTO b VALUES (NULL), (2)")
        assert engine.sql("SELECT x FROM a INTERSECT SELECT x FROM b").rows() == [(None,)]


def each_epoch_of_a_sweep_has_its_groups() -> None:
    with tk.Engine(autocommit=False) as engine:
        a = engine.create_table("a", {"x": tk.Int})
        changes = row_changes(engine.install("n", a.count(by="x")))
        for epoch in range(3):
            a.insert([(1,)], time=epoch)
        engine.advance(3)
        net: dict[tuple[Any, int], int] = {}
        for row, time, diff in map(tuple, changes):
            net[row, time] = net.get((row, time), 0) + diff
        assert net == {((1, 1), 0): 1, ((1, 1), 1): -1, ((1, 2), 1): 1, ((1, 2), 2): -1, ((1, 3), 2): 1}


def a_threshold_counts_as_often_as_said() -> None:
    with tk.Engine(autocommit=False) as engine:
        a = engine.create_table("a", {"x": tk.Int})
        view = engine.install("view", a.threshold(2))
        a.insert([(1,), (2,), (2,)])
        engine.advance()
        assert view.rows() == [(2,)]


def least_and_greatest_are_told_apart() -> None:
    with tk.Engine(autocommit=False) as engine:
        a = engine.create_table("a", {"x": tk.Int})
        least, most = engine.install("least", a.min("x")), engine.install("most", a.max("x"))
        a.insert([(1,), (3,), (2,)])
        engine.advance()
        assert (least.rows(), most.rows()) == ([(1,)], [(3,)])


def a_group_is_given_whole() -> None:
    with pytest.MonkeyPatch.context() as patch, tk.Engine(autocommit=False) as engine:
        patch.setattr(function_reduce, "TOGETHER", 4)
        engine.sql("CREATE TABLE t (g int, s varchar)")
        rows = ", ".join(f"({n % 2}, 'text {n:02}')" for n in range(20))
        engine.sql(f"INSERT INTO t VALUES {rows}")
        found = engine.sql("SELECT g, string_agg(s, ' ' ORDER BY s) AS m FROM t GROUP BY g").rows()
        assert dict(found) == {g: " ".join(f"text {n:02}" for n in range(g, 20, 2)) for g in (0, 1)}


def bounds_are_themselves_within() -> None:
    with tk.Engine(autocommit=False) as engine:
        rows, bounds = engine.create_table("rows", {"v": tk.Int}), engine.create_table("bounds", {"b": tk.Int})
        view = engine.install("view", rows.filter_by_bound("v", "<=", bounds, "b", by=[]))
        rows.insert([(1,), (2,), (3,)])
        bounds.insert([(2,)])
        engine.advance()
        assert sorted(view.rows()) == [(1,), (2,)]


def an_arrangement_serves_those_it_is_sharded_for() -> None:
    with tk.Engine(workers=3, autocommit=False) as engine:
        a, b = (
            engine.create_table("a", {"x": tk.Int, "y": tk.Int}, order_by=["x", "y"]),
            engine.create_table("b", {"x": tk.Int}),
        )
        view = engine.install("view", a.join(b, on="x"))
        a.insert([(x, y) for x in range(8) for y in range(4)])
        b.insert([(x,) for x in range(8)])
        engine.advance()
        assert len(view.rows()) == 32


def sums_of_floats_are_exact() -> None:
    with tk.Engine(autocommit=False) as engine:
        a = engine.create_table("a", {"x": tk.Float})
        view = engine.install("sum", a.group_by().agg(s=tk.sum("x")))
        a.insert([(1e16,), (1.0,), (0.5,)])
        engine.advance()
        a.remove([(1e16,)])
        engine.advance()
        assert view.rows() == [(1.5,)]


def exchanged_anyhow(there: Any) -> Any:
    def broken(node: Any, key: Any, chunk: Any, moment: Any, outbox: Any) -> None:
        outbox.append((node, random.Random(chunk.n * 7 + len(outbox)).randrange(node.shards), chunk, moment))

    return broken


def cut_anywhere(there: Any) -> Any:
    def broken(numbers: Any) -> Iterator[tuple[int, int]]:
        for start in range(0, len(numbers), 4):
            yield start, min(start + 4, len(numbers))

    return broken


def at_the_present_round(there: Any) -> Any:
    def receive(self: Any, shard: int, chunk: Any, moment: Any) -> None:
        now = self.scope.moment
        self.buffer.add(shard, chunk.select(self.without_round), now)
        self.scope.schedule(self.position, now)

    return receive


def started_at(epoch: Any) -> Any:
    def settle_start(self: Any, earliest: int | None = None) -> None:
        self.first = self.reached = self.high = epoch([source.low for source in self.sources])

    return being(settle_start)


FLOW = "tektite.dataflow"


def no_signal_stops_a_view() -> None:
    def interrupt(_: object) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    with tk.Engine(autocommit=False) as engine:
        table = engine.create_table("t", {"x": tk.Int})
        view = engine.install("v", table.inspect(interrupt).count())
        table.insert([(1,)])
        with pytest.raises(KeyboardInterrupt):
            engine.advance()
        assert view.rows() == [(1,)]


def rows_of_an_interrupted_function_stay() -> None:
    interrupts = [True]

    def interrupted(rows: Any) -> Any:
        if interrupts and interrupts.pop():
            raise KeyboardInterrupt
        return rows

    with tk.Engine(autocommit=False) as engine:
        table = engine.create_table("t", {"x": tk.Int})
        view = engine.install("v", table.map_batches(interrupted, x=tk.Int))
        table.insert([(1,)])
        with pytest.raises(KeyboardInterrupt):
            engine.advance()
        assert view.rows() == [(1,)]


FAULTS = [
    Fault("results sleep while a transaction reads them", f"{FLOW}.kept_results KeptResults._reads_earlier",
          returning(False), results_that_nobody_reads(by_a_transaction)),
    Fault("results are those of a sweep that has not ended", f"{FLOW}.kept_results KeptResults.prepare",
          nothing, results_that_nobody_reads(while_a_sweep_runs)),
    Fault("pipelines see everything as it is", f"{FLOW}.pipeline_actions Versions.table",
          being(lambda self, lookup, shard: self.taken[lookup.reader][shard][2]), three_clauses_change_at_once),
    Fault("relations count as changed in no order", f"{FLOW}.pipelines PipelinesNode._ranks",
          altered(lambda ranks: [0] * len(ranks)), three_clauses_change_at_once),
    Fault("nothing is put off", f"{FLOW}.reduce ReduceNode.defer", nothing, history_comes_up_again),
    Fault("nothing is put off", f"{FLOW}.reduce ReduceNode.defer", nothing, times_meet_where_nothing_happens),
    Fault("nothing is put off", f"{FLOW}.reduce ReduceNode.defer", nothing, random_programs),
    Fault("what leaves a loop does so at the present round", f"{FLOW}.loop LeaveNode.receive", at_the_present_round,
          joins_leave_at_later_rounds),
    Fault("readers hold one epoch too late", f"{FLOW}.graph Scope.frontier",
          altered(lambda times: tuple((t[0] + 1, *t[1:]) for t in times)), joins_meet_at_the_right_epoch),
    Fault("readers hold one epoch too late", f"{FLOW}.graph Scope.frontier",
          altered(lambda times: tuple((t[0] + 1, *t[1:]) for t in times)), random_programs),
    Fault("entered arrangements wake nobody", f"{FLOW}.arrange ArrangementReader.wake",
          lambda there: lambda self, moment=(): None if self.lift else there(self, moment), an_entered_arrangement_grows),
    Fault("installs start at the open epoch", f"{FLOW}.flow Dataflow.settle_start", started_at(max), an_install_answers_at_once),
    Fault("installs start at the slowest input", f"{FLOW}.flow Dataflow.settle_start",
          started_at(lambda lows: max(min(lows) - 1, 0)), an_install_finds_its_time),
    Fault("feedback is not exchanged", f"{FLOW}.loop FeedbackNode.exchange",
          being(lambda self, shard, chunk, moment, outbox: outbox.append((self, shard, chunk, moment))),
          a_loop_comes_to_rest_on_two_workers),
    Fault("rows enter a loop in its first round", f"{FLOW}.loop EntryNode.exchange",
          being(lambda self, shard, chunk, moment, outbox: outbox.append((self, shard, chunk, moment))),
          rows_enter_a_loop_in_their_rounds),
    Fault("rows go to any worker", f"{FLOW}.arrange exchange_by", exchanged_anyhow, workers_exchange_by_key),
    Fault("arrangements serve whatever they are sharded by", f"{FLOW}.arrange serves",
          being(lambda arranged, lead, sharded_by, key: arranged.columns[: len(lead)] == lead),
          an_arrangement_serves_those_it_is_sharded_for),
    Fault("work that is given away is done twice", f"{FLOW}.joined_rows JoinedRows._half_of_key", kept_by_both,
          the_pairs_of_a_hub_are_found_once),
    Fault("negation changes nothing", f"{FLOW}.linear NegateStep.__call__", being(lambda self, chunk, times: chunk),
          what_is_taken_away_is_gone),
    Fault("NULL joins NULL", f"{FLOW}.join JoinNode.__init__",
          lambda there: lambda self, *args, **kwargs: there(self, *args[:7], nulls_match=True), null_joins_nothing),
    Fault("NULL joins NULL nowhere", f"{FLOW}.join NULLS_MATCH", being(0), null_is_null_to_set_operations),
    Fault("a reduction sees one epoch of a sweep", f"{FLOW}.reduce _reduce_rows",
          misled(lambda *args: (*args[:-1], args[-2] + 1)), each_epoch_of_a_sweep_has_its_groups),
    Fault("a threshold is one too high", f"{FLOW}.reduce at_least", misled(lambda times: (times + 1,)),
          a_threshold_counts_as_often_as_said),
    Fault("the greatest is the least", f"{FLOW}.reduce first", misled(lambda count, last, *rest: (count, not last, *rest)),
          least_and_greatest_are_told_apart),
    Fault("a stretch of a group is taken for the group", f"{FLOW}.near_reduce KeyRows.around",
          altered(lambda found: found and (*found[:3], True, True)), a_window_changes_where_its_rows_do),
    Fault("groups are cut anywhere", f"{FLOW}.function_reduce whole_groups", cut_anywhere, a_group_is_given_whole),
    Fault("a bound is not within itself", f"{FLOW}.range_filter COMPARISONS",
          lambda there: there | {"<=": there["<"], ">=": there[">"]}, bounds_are_themselves_within),
    Fault("a sum of floats is their average", f"{FLOW}.reduce linear",
          misled(lambda kinds: (tuple([("avg of floats", *k[1:]) if k[0] == "sum of floats" else k for k in kinds]),)),
          sums_of_floats_are_exact),
    Fault("signals do not wait", f"{FLOW}.interrupts _HELD", being(nullcontext()), no_signal_stops_a_view),
    Fault("a function that was interrupted has answered", f"{FLOW}.flow Dataflow.call_function",
          lambda there: lambda *given: there(*given) or True, rows_of_an_interrupted_function_stay),
    Fault("multiplicities do not count in sums", f"{FLOW}.linear Accumulate.__call__",
          lambda there: lambda self, chunk: there(self, chunk.slice(0, min(chunk.n, 1))), sums_of_floats_are_exact),
]  # fmt: skip
