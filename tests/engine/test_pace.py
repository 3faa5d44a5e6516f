"""Views over inputs that each have their own pace: one far ahead, one that ends, views that come late or fall behind."""

from __future__ import annotations

import pytest

import tektite as tk
from tektite.engine.core import core_of
from tests.support.brute import Bag, Row, bag
from tests.support.executors import make_engine
from tests.support.row_changes import row_changes

pytestmark = pytest.mark.executors("stages")


def two_rates(name: str) -> tuple[tk.Engine, tk.Table, tk.Table, tk.View]:
    engine = make_engine()
    a = engine.create_table("a", {"k": tk.Int, "x": tk.Int})
    b = engine.create_table("b", {"k": tk.Int, "y": tk.Int})
    plans = {
        "join": lambda: a.join(b, on="k"),
        "self": lambda: a.join(a, left_on="x", right_on="k").join(b, on="k"),
        "anti": lambda: a.join(b, on="k", how="anti").select("k", "x", y=tk.lit(None, tk.Int)),
        "count": lambda: a.count(by="k").join(b, on="k"),
    }
    return engine, a, b, engine.install("view", plans[name]())


@pytest.mark.executors(spark=["anti"])
@pytest.mark.parametrize("name", ["join", "anti", "count", "self"])
def test_one_input_far_ahead_of_the_other(name: str) -> None:
    """All epochs of `a` come in one batch, those of `b` one by one: each sweep takes its share of a's."""
    engine, a, b, view = two_rates(name)
    rows = [((1, 1), 0, 1), ((1, 2), 1, 1), ((1, 1), 2, -1), ((2, 1), 3, 1), ((1, 2), 4, -1), ((1, 1), 5, 2)]
    a.update([row for row, _, _ in rows], times=[t for _, t, _ in rows], diffs=[d for _, _, d in rows])
    a.advance(6)
    other = [((1, 9), 1, 1), ((2, 8), 2, 1), ((1, 9), 3, -1), ((1, 7), 4, 1)]
    for row, time, diff in other:
        b.update([row], times=[time], diffs=[diff])

    def at(log: list[tuple[Row, int, int]], epoch: int) -> Bag:
        return bag((row, diff) for row, time, diff in log if time <= epoch)

    for epoch in range(6):
        b.advance(epoch + 1)
        one, two = at(rows, epoch), at(other, epoch)
        if name == "join":
            want = bag(((k, x, y), m * n) for (k, x), m in one.items() for (j, y), n in two.items() if k == j)
        elif name == "anti":
            want = {(k, x, None): m for (k, x), m in one.items() if all(k != j for j, _ in two)}
        elif name == "count":
            counts = bag(((k,), m) for (k, _), m in one.items())
            want = bag(((k, n, y), m) for (k,), n in counts.items() for (j, y), m in two.items() if k == j)
        else:
            pairs = [((k, x, z), m * n) for (k, x), m in one.items() for (u, z), n in one.items() if x == u]
            want = bag(((*r, y), m * n) for r, m in pairs for (j, y), n in two.items() if r[0] == j)
        assert view.multiplicities() == want, epoch
    engine.close()


# ---------------------------------------------------------------------------------------------------- installing late


@pytest.mark.parametrize("merging", ["eager", "default", "lazy"])
def test_a_view_installed_on_compacted_history_answers_at_once(merging: str) -> None:
    with make_engine(merging=merging) as engine:
        edges = engine.create_table("edges", {"src": tk.Int, "dst": tk.Int})
        for epoch in range(60):
            edges.insert([(epoch % 5, epoch)])
            if epoch >= 5:
                edges.remove([(epoch % 5, epoch - 5)])
            engine.advance()
        while engine.idle():
            pass
        assert core_of(edges).trace.rows <= 20
        view = engine.install("degrees", edges.count(by="src"))
        assert view.first == 59 and core_of(view).low == 60
        assert [tuple(change) for change in row_changes(view)] == [((k, 1), 59, 1) for k in range(5)]
        edges.insert([(0, 99)])
        engine.advance()
        assert view.multiplicities() == {(k, 2 if k == 0 else 1): 1 for k in range(5)}


def test_the_first_answer_waits_for_the_slowest_input() -> None:
    with make_engine() as engine:
        a = engine.create_table("a", {"x": tk.Int})
        b = engine.create_table("b", {"x": tk.Int})
        a.insert([(1,), (2,)])
        a.advance(5)
        while engine.idle():
            pass
        view = engine.install("both", a.join(b, on="x"))
        later = engine.install("later", view.count())
        b.insert([(1,)])
        b.advance(3)
        for waiting in (view, later):
            with pytest.raises(tk.IncorrectError, match="first one will be as of time 4"):
                waiting.rows()
        b.insert([(2,)], time=4)
        b.advance(5)
        assert sorted(view.rows()) == [(1,), (2,)]
        assert later.rows() == [(2,)]


def test_an_arrangement_is_shared_and_lives_as_long_as_its_readers() -> None:
    with make_engine() as engine:
        edges = engine.create_table("edges", {"src": tk.Int, "dst": tk.Int})
        edges.insert([(1, 2), (2, 3)])
        engine.advance()
        one = engine.install("one", edges.join(edges, left_on="dst", right_on="src"))
        before = [info.name for info in engine.indexes()]
        two = engine.install("two", edges.join(edges, on="dst").count())
        made = [info for info in engine.indexes() if "one" in info.readers and "two" in info.readers]
        assert made and {info.name for info in engine.indexes()} == {*before, "two"}
        one.drop()
        edges.insert([(5, 3)])
        engine.advance()
        assert two.rows() == [(5,)]
        two.drop()
        assert [info.name for info in engine.indexes()] == ["edges"]


# ---------------------------------------------------------------------------------------------------- closed inputs


@pytest.mark.parametrize("ended", ["a", "b"])
def test_a_join_goes_on_answering_after_one_input_has_ended(ended: str) -> None:
    with make_engine() as engine:
        a = engine.create_table("a", {"k": tk.Int, "x": tk.Int})
        b = engine.create_table("b", {"k": tk.Int, "y": tk.Int})
        view = engine.install("join", a.join(b, on="k"))
        a.insert([(1, 10)])
        b.insert([(1, 20), (2, 30)])
        engine.advance()
        gone, going = (a, b) if ended == "a" else (b, a)
        gone.finish()
        going.advance()
        while engine.idle():
            pass
        going.insert([(1, 11), (2, 12)])
        going.advance()
        want = {(1, 10, 20): 1, (1, 10, 11): 1} if ended == "a" else {(1, 10, 20): 1, (1, 11, 20): 1, (2, 12, 30): 1}
        assert view.multiplicities() == want
        fresh = engine.install("fresh", a.join(b, on="k"))
        assert fresh.multiplicities() == want
        going.finish()
        assert view.closed and view.multiplicities() == want
        assert engine.install("last", a.join(b, on="k")).multiplicities() == want
        with pytest.raises(tk.ConflictError, match="closed"):
            gone.insert([(1, 1)])


def test_updates_ahead_of_time_count_when_an_input_ends() -> None:
    with make_engine() as engine:
        a = engine.create_table("a", {"x": tk.Int})
        view = engine.install("view", a.count())
        changes = row_changes(view)
        a.update([(1,), (2,)], times=[7, 3])
        a.finish()
        assert view.rows() == [(2,)]
        assert [tuple(c) for c in changes] == [((1,), 3, 1), ((1,), 7, -1), ((2,), 7, 1)]


# ---------------------------------------------------------------------------------------------------- lagging readers


def chain(engine: tk.Engine) -> tuple[tk.Table, tk.View, tk.View]:
    """A cheap view, and one that needs many steps for each epoch."""
    edges = engine.create_table("edges", {"src": tk.Int, "dst": tk.Int})
    quick = engine.install("quick", edges)

    def step(reach: tk.Collection) -> tk.Collection:
        return reach.join(edges, left_on="dst", right_on="src").select("src", dst="dst_right").concat(edges).distinct()

    slow = engine.install("slow", edges.iterate(step))
    return edges, quick, slow


@pytest.mark.parametrize("workers", [1, 2])
def test_a_slow_view_falls_behind_alone_and_answers_for_where_it_is(workers: int) -> None:
    with make_engine(workers=workers, turn=0.0) as engine:
        edges, quick, slow = chain(engine)
        answers: list[set[Row]] = []
        there: set[Row] = set()
        lagged = 0
        for epoch in range(12):
            edges.insert([(epoch, epoch + 1)])
            there.add((epoch, epoch + 1))
            answers.append({(a, b) for a in range(epoch + 1) for b in range(a + 1, epoch + 2)})
            engine.advance()
            for _ in range(5):
                engine.run()
            assert core_of(quick).low == epoch + 1 and {*quick.rows()} == there
            low = core_of(slow).low
            lagged += low <= epoch
            found = slow.snapshot(wait=False)
            assert core_of(slow).low == low, "reading without waiting does no work"
            rows = set(zip(*(column.to_pylist() for column in found.columns), strict=True))
            assert rows == (answers[low - 1] if low else set())
        assert lagged > 6
        assert {*slow.rows()} == answers[-1]
        assert slow.current and core_of(slow).low == 12


def test_a_suspended_sweep_is_not_disturbed_by_what_happens_meanwhile() -> None:
    """While a sweep stands still its inputs move on and are compacted, and views come and go."""
    with make_engine(turn=0.0) as engine:
        edges, quick, slow = chain(engine)
        changes = row_changes(slow)
        edges.insert([(i, i + 1) for i in range(6)])
        engine.advance()
        for epoch in range(1, 40):
            engine.run()
            edges.remove([(epoch % 6, epoch % 6 + 1)])
            edges.insert([((epoch - 1) % 6, (epoch - 1) % 6 + 1)] if epoch > 1 else [])
            engine.advance()
            engine.idle()
            if epoch % 7 == 3:
                engine.install("guest", edges.join(quick, left_on="dst", right_on="src").count()).rows()
            if epoch % 7 == 5:
                engine.drop("guest")
        said = [tuple(change) for change in changes]
        for epoch in range(core_of(slow).low):
            gone = epoch % 6 if epoch else None
            present = [i for i in range(6) if i != gone]
            want: set[Row] = set()
            for start in present:
                stop = start
                while stop in present:
                    stop += 1
                    want.add((start, stop))
            got = bag((row, diff) for row, time, diff in said if time <= epoch)
            assert got == dict.fromkeys(want, 1), epoch


@pytest.mark.executors("spark")
def test_a_stream_is_seen_from_the_installation_on() -> None:
    with make_engine() as engine:
        events = engine.create_table("events", {"x": tk.Int}, mode="stream")
        first = engine.install("first", events.count())
        events.insert([(1,), (2,)])
        engine.advance()
        second = engine.install("second", events.count())
        events.insert([(3,)])
        engine.advance()
        assert first.rows() == [(3,)]
        assert second.rows() == [(1,)]
        assert core_of(events).trace.rows == 0
