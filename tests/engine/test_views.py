"""Views: snapshots, changes, callbacks, holds, sharing, and falling behind."""

from __future__ import annotations

import pyarrow as pa
import pytest

import tektite as tk
from tektite.engine.core import core_of
from tests.support.executors import make_engine
from tests.support.row_changes import row_changes

pytestmark = pytest.mark.executors("stages")


def graph(**options: object) -> tuple[tk.Engine, tk.Table]:
    engine = make_engine(**options)  # type: ignore[arg-type]
    return engine, engine.create_table("edges", {"src": tk.Int, "dst": tk.Int})


def two_hops(edges: tk.Collection) -> tk.Collection:
    return edges.join(edges, left_on="dst", right_on="src").select("src", dst="dst_right")


def test_installed_on_history_is_right_from_its_first_answer_on() -> None:
    engine, edges = graph()
    for i in range(20):
        edges.insert([(i, i + 1)])
        engine.advance()
    hops = engine.install("hops", two_hops(edges))
    assert sorted(hops.rows()) == [(i, i + 2) for i in range(19)]
    edges.remove([(0, 1)])
    engine.advance()
    assert sorted(hops.rows()) == [(i, i + 2) for i in range(1, 19)]


@pytest.mark.executors("spark")
def test_a_hold_keeps_earlier_times_readable() -> None:
    engine, edges = graph()
    view = engine.install("all", edges)
    edges.insert([(1, 1)])
    engine.advance()
    with engine.hold(view) as held:
        for i in range(2, 40):
            edges.insert([(i, i)])
            edges.remove([(i - 1, i - 1)])
            engine.advance()
        assert held.at == 0
        for epoch in range(39):
            assert view.rows(at=epoch) == [(epoch + 1, epoch + 1)]
    while engine.idle():
        pass
    with pytest.raises(tk.IncorrectError, match="not at 3"):
        view.snapshot(at=3)
    assert view.rows() == [(39, 39)]


def test_changes_begin_with_the_contents_and_go_on_from_there() -> None:
    engine, edges = graph()
    edges.insert([(1, 2), (1, 3)])
    engine.advance()
    view = engine.install("degrees", edges.count(by="src"))
    changes, news = row_changes(view), row_changes(view, snapshot=False)
    assert [*changes] == [((1, 2), 0, 1)] and [*news] == []
    edges.remove([(1, 2)])
    engine.advance()
    expected = {((1, 2), 1, -1), ((1, 1), 1, 1)}
    assert {*changes} == expected and {*news} == expected
    assert [*changes] == []


def test_a_callback_sees_each_change_once() -> None:
    engine, edges = graph()
    view = engine.install("all", edges)
    seen: list[dict[str, int]] = []

    def remember(delta: tk.Delta) -> None:
        seen.extend({**row, "time": delta.time} for row in delta.table.to_pylist())

    view.subscribe(remember)
    edges.insert([(1, 2)])
    engine.advance()
    engine.advance()
    edges.remove([(1, 2)])
    engine.advance()
    assert seen == [
        {"src": 1, "dst": 2, "time": 0, "diff": 1},
        {"src": 1, "dst": 2, "time": 2, "diff": -1},
    ]


def test_a_view_that_is_not_kept_tells_its_changes_from_the_first_answer_on() -> None:
    engine, edges = graph()
    edges.insert([(1, 2), (1, 3)])
    engine.advance()
    seen: list[dict[str, int]] = []
    view = engine.install(
        "degrees", edges.count(by="src"), keep=False, on_change=lambda table: seen.extend(table.to_pylist())
    )
    assert seen == [{"src": 1, "count": 2, "time": 0, "diff": 1}]
    edges.remove([(1, 2)])
    engine.advance()
    assert {(c["count"], c["time"], c["diff"]) for c in seen[1:]} == {(2, 1, -1), (1, 1, 1)}
    with pytest.raises(tk.ConflictError, match="'degrees' was installed with keep=False"):
        view.snapshot()
    assert core_of(view).trace.rows == 0


def test_an_unchecked_input_trusts_its_caller() -> None:
    engine = make_engine()
    rows = engine.create_table("rows", {"x": tk.Int}, checked=False)
    view = engine.install("all", rows)
    rows.remove([(1,)])
    engine.advance()
    assert view.multiplicities() == {(1,): -1}


def test_a_callback_that_raises_loses_its_subscription_and_nothing_else(caplog: pytest.LogCaptureFixture) -> None:
    engine, edges = graph()
    view, other = engine.install("view", edges), engine.install("other", edges)
    calls: list[str] = []
    told: list[int] = []

    def explode(delta: tk.Delta) -> None:
        calls.append("explode")
        raise RuntimeError("boom")

    view.subscribe(explode)
    view.subscribe(lambda delta: told.append(delta.table.num_rows))
    for epoch in range(3):
        edges.insert([(1, epoch)])
        engine.advance()
    assert calls == ["explode"]
    assert told == [1, 1, 1]
    assert view.failure is None and view.error is None
    assert len(view.rows()) == len(other.rows()) == 3
    (entry,) = [record for record in caplog.records if record.name == "tektite"]
    assert "'view'" in entry.getMessage() and "explode" in entry.getMessage()
    assert entry.exc_info is not None and "boom" in str(entry.exc_info[1])


def test_queries_share_one_arrangement_and_the_last_reader_frees_it() -> None:
    engine, edges = graph()
    engine.install("first", two_hops(edges))
    names = [a.name for a in engine.indexes()]
    assert names == ["edges", "edges by (dst)", "first"]
    engine.install("second", edges.join(edges, on="dst"))
    by_dst = next(a for a in engine.indexes() if a.name == "edges by (dst)")
    assert set(by_dst.readers) == {"first", "second"}
    engine.drop("first")
    assert "edges by (dst)" in [a.name for a in engine.indexes()]
    engine.drop("second")
    assert [a.name for a in engine.indexes()] == ["edges"]


def test_an_explicit_arrangement_of_a_derived_collection_is_shared() -> None:
    engine, edges = graph()
    loops = edges.filter(tk.col("src") != tk.col("dst")).index_by("dst")
    engine.install("a", edges.join(loops, left_on="src", right_on="dst"))
    before = len(engine.indexes())
    again = edges.filter(tk.col("src") != tk.col("dst")).index_by("dst")
    engine.install("b", edges.join(again, left_on="src", right_on="dst", how="semi"))
    engine.install("c", edges.join(again, left_on="src", right_on="dst"))
    created = {a.name for a in engine.indexes()} - {"a", "b", "c"}
    assert len([name for name in created if name.startswith("project")]) == 1
    assert len(engine.indexes()) == before + 2


@pytest.mark.executors("spark")
def test_collections_that_differ_in_what_a_name_means_do_not_share() -> None:
    engine, edges = graph()
    edges.insert([(1, 2)])
    engine.advance()
    first = edges.select(a="src", b="dst").select(x="a").index_by("x")
    second = edges.select(b="src", a="dst").select(x="a").index_by("x")
    assert engine.install("first", first).rows() == [(1,)]
    assert engine.install("second", second).rows() == [(2,)]


def test_dropping_one_reader_of_a_derived_arrangement_leaves_the_other() -> None:
    engine, edges = graph()
    base = edges.filter(tk.col("src") > 0).index_by("src")
    one = engine.install("one", base.select("src", x=tk.col("dst") + 1).index_by("src"))
    two = engine.install("two", base.select("src", x=tk.col("dst") + 2).index_by("src"))
    one.drop()
    edges.insert([(1, 2)])
    engine.advance()
    assert two.rows() == [(1, 4)]


def test_a_drop_that_is_refused_names_what_can_be_dropped_and_not_the_indexes_between() -> None:
    engine, edges = graph()
    hops = engine.install("hops", two_hops(edges))
    far = engine.install("far", hops.join(edges, left_on="dst", right_on="src").select("src", dst="dst_right"))
    assert {reader for index in engine.indexes(edges) for reader in index.readers} > {"hops", "far"}
    with pytest.raises(tk.ConflictError, match=r"cannot drop table 'edges': '(hops', 'far|far', 'hops)' read it$"):
        engine.drop_table("edges")
    far.drop()
    with pytest.raises(tk.ConflictError, match=r"cannot drop table 'edges': 'hops' reads it$"):
        engine.drop_table("edges")
    hops.drop()
    engine.drop_table("edges")
    assert engine.tables == ()


def test_an_interrupt_stops_the_view_it_hits_and_no_other() -> None:
    engine, edges = graph()
    other = engine.install("other", edges)

    def interrupt(table: pa.Table) -> pa.Table:
        raise KeyboardInterrupt

    edges.insert([(1, 2)])
    engine.advance()
    with pytest.raises(KeyboardInterrupt):
        engine.install("hit", edges.inspect(interrupt))
    assert other.rows() == [(1, 2)]
    edges.insert([(2, 3)])
    engine.advance()
    assert sorted(other.rows()) == [(1, 2), (2, 3)]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_what_a_broken_off_iteration_did_not_see_comes_next_time() -> None:
    engine, edges = graph()
    changes = engine.install("all", edges).changes()
    edges.insert([(i, i) for i in range(5)])
    engine.advance()
    for change in changes:
        if change.row == (1, 1):
            break
    assert [change.row for change in changes] == [(2, 2), (3, 3), (4, 4)]


def test_a_reader_that_is_always_behind_keeps_few_batches() -> None:
    engine, edges = graph()
    slow = engine.create_table("slow", {"src": tk.Int})
    view = engine.install("both", edges.join(slow, on="src"))
    for epoch in range(100):
        edges.insert([(epoch % 7, epoch)])
        edges.advance(epoch + 2)
        slow.insert([(epoch % 7,)])
        slow.advance(epoch + 1)
    engine.finish(view)
    assert max(len(pin.batches) for handle in core_of(view).flow.handles for pin in handle.pins) <= 25
    slow.advance(edges.next_epoch)
    expected = sum(1 for e in range(100) for s in range(100) if e % 7 == s % 7)
    assert sum(view.multiplicities().values()) == expected


def test_views_are_built_on_views() -> None:
    engine, edges = graph(turn=0.0)
    degrees = engine.install("degrees", edges.count(by="src"))
    histogram = engine.install("histogram", degrees.count(by="count", name="nodes"))
    for i in range(30):
        edges.insert([(i % 7, i)])
        engine.advance()
        assert sum(n for _, n in histogram.rows()) == min(i + 1, 7)
    assert sorted(histogram.rows()) == [(4, 5), (5, 2)]


def test_a_slow_view_falls_behind_alone() -> None:
    engine, edges = graph(turn=0.0)

    def step(reach: tk.Collection) -> tk.Collection:
        return two_hops_of(reach, edges).concat(edges).distinct()

    slow = engine.install("slow", edges.iterate(step))
    fast = engine.install("fast", edges)
    edges.insert([(i, i + 1) for i in range(30)])
    engine.advance()
    assert len(fast.snapshot(wait=False)) == 30 and fast.current
    assert len(slow.snapshot(wait=False)) == 0 and not slow.current
    edges.insert([(100, 101)])
    engine.advance()
    assert len(fast.snapshot(wait=False)) == 31
    assert len(slow.snapshot()) == 31 * 30 // 2 + 1 and slow.current


def two_hops_of(left: tk.Collection, right: tk.Collection) -> tk.Collection:
    return left.join(right, left_on="dst", right_on="src").select("src", dst="dst_right")


def test_a_stream_input_keeps_no_history() -> None:
    engine = make_engine()
    events = engine.create_table("events", {"kind": tk.Int}, mode="stream")
    kinds = engine.create_table("kinds", {"kind": tk.Int, "name": tk.String})
    early = engine.install("early", events.join(kinds, on="kind").count(by="name"))
    kinds.insert([(1, "one"), (2, "two")])
    events.insert([(1,), (2,)])
    engine.advance()
    late = engine.install("late", events.join(kinds, on="kind").count(by="name"))
    events.insert([(1,)])
    engine.advance()
    assert sorted(early.rows()) == [("one", 2), ("two", 1)]
    assert late.rows() == [("one", 1)]
    assert next(a for a in engine.indexes() if a.name == "events").rows == 0


def test_a_closed_input_holds_nobody_up() -> None:
    engine, edges = graph()
    names = engine.create_table("names", {"src": tk.Int, "name": tk.String})
    view = engine.install("named", edges.join(names, on="src"))
    names.insert([(1, "a")])
    names.finish()
    for i in range(5):
        edges.insert([(1, i)])
        engine.advance()
    assert sorted(view.rows()) == [(1, i, "a") for i in range(5)]
    edges.finish()
    assert view.closed


def test_inputs_may_move_at_different_rates() -> None:
    engine, edges = graph()
    other = engine.create_table("other", {"src": tk.Int})
    view = engine.install("both", edges.join(other, on="src"))
    edges.insert([(1, 2)])
    edges.advance(5)
    assert view.rows() == []
    other.insert([(1,)], time=3)
    other.advance(2)
    assert view.rows() == []
    other.advance(4)
    changes = row_changes(view)
    assert view.rows() == [(1, 2)] and [c.time for c in changes] == [3]


def test_future_and_disordered_times_count_when_their_epoch_closes() -> None:
    engine, edges = graph()
    view = engine.install("degrees", edges.count(by="src"))
    changes = row_changes(view)
    edges.update([(1, 1), (1, 2), (1, 3), (1, 1)], times=[4, 0, 2, 6], diffs=[1, 1, 1, -1])
    engine.advance(3)
    assert view.rows() == [(1, 2)]
    engine.advance(10)
    found = sorted((c.time, c.diff, c.row) for c in changes)
    assert found == [
        (0, 1, (1, 1)),
        (2, -1, (1, 1)), (2, 1, (1, 2)),
        (4, -1, (1, 2)), (4, 1, (1, 3)),
        (6, -1, (1, 3)), (6, 1, (1, 2)),
    ]  # fmt: skip


def test_inspect_shows_changes_inside_a_loop() -> None:
    engine, edges = graph()
    rounds: list[int] = []

    def step(reach: tk.Collection) -> tk.Collection:
        longer = two_hops_of(reach, edges).concat(edges).distinct()
        return longer.inspect(lambda table: rounds.extend(table["round"].to_pylist()))

    engine.install("reach", edges.iterate(step))
    edges.insert([(i, i + 1) for i in range(4)])
    engine.advance()
    assert sorted(set(rounds)) == [0, 1, 2]


@pytest.mark.executors("spark")
def test_a_python_reduce_gets_columns_in_order_however_they_were_rearranged_below() -> None:
    engine = make_engine()
    people = engine.create_table("people", {"id": tk.Int, "name": tk.String, "age": tk.Int})
    towns = engine.create_table("towns", {"id": tk.Int, "town": tk.String})
    joined = people.join(towns, on="id").select("name", "age", "town").select("age", "town", "name")
    view = engine.install("oldest", joined.sort("age", "town", descending=[True, False]).limit(1))
    people.insert([(1, "ann", 50), (2, "bob", 60)])
    towns.insert([(1, "york"), (2, "bath")])
    engine.advance()
    assert view.rows() == [(60, "bath", "bob")]


def test_a_plan_that_uses_its_parts_over_and_over_is_rendered_once() -> None:
    """Each of 40 steps uses the one before it twice: everything that follows the plan has to see that they are the same."""
    with make_engine() as engine:
        table = engine.create_table("t", {"a": tk.Int, "b": tk.Int})
        table.insert([(1, 1), (2, 3)])
        engine.advance()
        found: tk.Collection = table
        for _ in range(40):
            found = found.distinct().join(found, on="a").select("a", "b")
        assert len(found.explain()) < 100_000
        view = engine.install("deep", found)
        engine.settle()
        assert sorted(view.rows()) == [(1, 1), (2, 3)]


def test_filters_may_follow_each_other_by_the_hundred() -> None:
    with make_engine() as engine:
        table = engine.create_table("t", {"a": tk.Int})
        found: tk.Collection = table
        for least in range(150):
            found = found.filter(tk.col("a") > least).select("a")
        view = engine.install("deep", found)
        table.insert([(1,), (149,), (150,)])
        engine.advance()
        assert view.rows() == [(150,)]


def test_moments_that_python_lacks_are_named() -> None:
    import pyarrow as pa

    engine = make_engine()
    table = engine.create_table("t", {"t": tk.Timestamp})
    view = engine.install("all", table)
    table.insert(pa.table({"t": pa.array([253402318800000000], pa.timestamp("us"))}))  # the year 10000
    engine.advance()
    assert view.snapshot().num_rows == 1
    with pytest.raises(tk.UnsupportedError, match="view 'all' holds a date or timestamp outside the years 1 to 9999"):
        view.rows()


def test_progress_has_sweeps_from_before_anybody_asked() -> None:
    engine = make_engine(autocommit=True)
    source = engine.create_table("t", {"n": tk.Int})
    view = engine.install("doubled", source.select(n=tk.col("n") * 2))
    source.insert([(1,), (2,)])
    assert sorted(view.rows()) == [(2,), (4,)]
    assert [(sweep.name, sweep.rows) for sweep in engine.progress if sweep.rows] == [("doubled", 2)]
