"""A view whose plan no longer suits the sizes of its tables gets another one while it runs, and nobody who uses it notices."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

import tektite as tk
from tektite.engine.core import core_of
from tests.support.executors import make_engine
from tests.support.fault_injection import Injector
from tests.support.nightly import size

pytestmark = pytest.mark.executors

Rows = Counter[tuple[int, ...]]

POINTS = size("TEKTITE_INTERRUPTS", 12)
"""Lines at which the switch is interrupted."""


class World:
    """Three tables that are joined by x, and what they hold. A plan is looked at again from 40 rows on."""

    def __init__(self, engine: tk.Engine) -> None:
        self.engine = engine
        core_of(engine).replanner.rows = 40
        self.held: dict[str, Rows] = {name: Counter() for name in "abc"}
        self.tables = {name: engine.create_table(name, {"x": tk.Int, name * 2: tk.Int}) for name in "abc"}
        self.random = random.Random(3)

    def joined(self) -> tk.Collection:
        a, b, c = self.tables.values()
        return tk.match((a, ("x", "a")), (b, ("x", "b")), (c, ("x", "c")))

    def wanted(self) -> Rows:
        """The join, computed from scratch."""
        found: Rows = Counter()
        for (x, a), n in self.held["a"].items():
            for (y, b), m in self.held["b"].items():
                for (z, c), k in self.held["c"].items():
                    if x == y == z:
                        found[x, a, b, c] += n * m * k
        return +found

    def change(self, name: str, rows: int) -> None:
        """Bring a table to a number of rows, and change some of what stays."""
        held, table = self.held[name], self.tables[name]
        some = list(held.elements())
        self.random.shuffle(some)
        gone = some[: max(len(some) - rows, 0) + min(len(some), 2)]
        new = [(self.random.randrange(8), self.random.randrange(1000)) for _ in range(rows - len(some) + len(gone))]
        table.remove(gone)
        table.insert(new)
        held.subtract(gone)
        held.update(new)
        self.held[name] = +held

    def turns(self) -> Iterator[None]:
        """Epochs in which each table in turn is the largest."""
        for sizes in ((3, 3, 3), (60, 3, 3), (70, 2, 5), (3, 50, 2), (2, 60, 3), (2, 3, 70), (0, 4, 60), (5, 3, 2)):
            for name, rows in zip("abc", sizes, strict=True):
                self.change(name, rows)
            self.engine.advance()
            yield
            for _ in range(3):  # the other plan takes its turns
                self.change("c", sum(self.held["c"].values()))
                self.engine.advance()
                yield


def plans(engine: tk.Engine, name: str) -> tuple[int, str]:
    """How many plans a view has had before, and the one that it has."""
    core = core_of(engine)
    plan = core.catalog.plans[core.views[name].flow]
    return plan.replaced, plan.text


def follow(feed: tk.Subscription, told: Rows) -> None:
    """Add what a subscription tells, in the order of times."""
    for change in feed.changes():
        told[change.row] += change.diff


@pytest.mark.executors("stages")
@pytest.mark.parametrize("workers", [1, 2, 3])
def test_nobody_notices_when_sizes_turn_round(workers: int) -> None:
    engine = make_engine(workers)
    world = World(engine)
    view = engine.install("v", world.joined())
    counts = engine.install("counts", view.group_by("x").agg(n=tk.count()))
    again = engine.install("again", view.join(counts, on="x").select("x", "n", "a"))
    flow = core_of(view).flow
    told = {name: Counter[tuple[int, ...]]() for name in ("v", "counts")}
    feeds = {name: engine.view(name).subscribe() for name in told}
    history: dict[int, Rows] = {}
    held = None
    for _ in world.turns():
        wanted = world.wanted()
        assert Counter(view.rows()) == wanted
        groups = _groups(wanted)
        assert dict(counts.rows()) == dict(groups)
        pairs: Rows = Counter()
        for (x, a, *_), n in wanted.items():
            pairs[x, groups[x], a] += n
        assert Counter(again.rows()) == pairs
        for name, feed in feeds.items():
            follow(feed, told[name])
        assert +told["v"] == wanted
        assert +told["counts"] == Counter(counts.rows())
        if held is None and wanted:
            held = engine.hold(view)
        if held is not None:
            history[engine.next_epoch - 1] = wanted
            for time, rows in history.items():
                assert Counter(view.rows(at=time)) == rows
    replaced, _ = plans(engine, "v")
    assert replaced >= 3
    assert core_of(view).flow is not flow
    assert core_of(engine).replanner.candidate is None
    engine.close()


def turned(world: World) -> None:
    """Make another table the largest, and go on until the plan is another."""
    for name, rows in zip("abc", (3, 2, 80), strict=True):
        world.change(name, rows)
    world.engine.advance()
    world.engine.settle()


@pytest.mark.executors("stages", "spark")
def test_a_view_goes_on_by_another_plan() -> None:
    engine = make_engine(2)
    world = World(engine)
    view = engine.install("v", world.joined())
    above = engine.install("above", view.group_by("x").agg(n=tk.count()))
    for sizes in ((4, 4, 4), (60, 3, 3), (60, 3, 4)):
        for name, rows in zip("abc", sizes, strict=True):
            world.change(name, rows)
        engine.advance()
        engine.settle()
        assert Counter(view.rows()) == world.wanted()
        assert dict(above.rows()) == _groups(world.wanted())
    assert plans(engine, "v")[0] == 1


@pytest.mark.parametrize("workers", [1, 2])
def test_views_that_one_dataflow_makes_are_replaced_together(workers: int) -> None:
    engine = make_engine(workers)
    world = World(engine)
    joined = world.joined().select("x", "a", "b").distinct()
    made = {
        "pairs": joined,
        "counts": joined.group_by("x").agg(n=tk.count()),
        "again": joined.filter(tk.col("a") > 500),
    }
    pairs, counts, again = core_of(engine).install_together(made)
    told: Rows = Counter()
    feed = counts.subscribe()
    for _ in world.turns():
        wanted = {row[:3] for row in world.wanted()}
        assert set(pairs.rows()) == wanted
        assert set(again.rows()) == {row for row in wanted if row[1] > 500}
        follow(feed, told)
        assert +told == Counter(counts.rows()) == Counter(_groups(Counter(wanted)).items())
    assert plans(engine, "pairs")[0] >= 3


def test_many_views_are_replaced_one_by_one() -> None:
    engine = make_engine()
    world = World(engine)
    joined = world.joined()
    views = [engine.install(f"v{n}", joined.filter(tk.col("a") % 30 == n)) for n in range(30)]
    turned(world)
    for _ in range(40):
        world.change("a", 4)
        engine.advance()
    assert all(plans(engine, view.name)[0] == 1 for view in views)
    found: Rows = Counter()
    for view in views:
        found.update(view.rows())
    assert found == world.wanted()


def test_a_switch_turns_replanning_off() -> None:
    engine = make_engine(replan=False)
    world = World(engine)
    view = engine.install("v", world.joined())
    before = plans(engine, "v")
    for _ in world.turns():
        assert Counter(view.rows()) == world.wanted()
    assert plans(engine, "v") == before


def test_sizes_of_about_the_same_do_not_make_another_plan() -> None:
    engine = make_engine()
    world = World(engine)
    turned(world)
    engine.install("v", world.joined())
    before = plans(engine, "v")
    for rows in (60, 300, 90, 500, 41):
        world.change("c", rows)
        engine.advance()
        engine.settle()
        assert plans(engine, "v") == before
    world.change("c", 700)
    engine.advance()
    engine.settle()
    assert plans(engine, "v") == before  # the largest one is so much larger: the plan that comes out is the same


def test_a_plan_whose_order_its_author_chose_stays() -> None:
    engine = make_engine()
    world = World(engine)
    a, b, c = world.tables.values()
    chosen = tk.match((a, ("x", "a")), (b, ("x", "b")), (c, ("x", "c")), order=[2, 1, 0])
    view = engine.install("v", chosen)
    for _ in world.turns():
        assert Counter(view.rows()) == world.wanted()
    assert core_of(view).flow not in core_of(engine).catalog.plans


def test_a_view_of_a_stream_keeps_its_plan() -> None:
    engine = make_engine()
    world = World(engine)
    stream = engine.create_table("s", {"x": tk.Int, "s": tk.Int}, mode="stream")
    a, b, _ = world.tables.values()
    view = engine.install("v", tk.match((stream, ("x", "s")), (a, ("x", "a")), (b, ("x", "b"))))
    stream.insert([(x, x) for x in range(8)])
    world.change("a", 5)
    world.change("b", 5)
    engine.advance()
    before = Counter(view.rows())
    world.change("b", 80)
    engine.advance()
    engine.settle()
    assert core_of(view).flow not in core_of(engine).catalog.plans
    assert set(before) <= set(view.rows()) | {row for row in before if (row[0], row[3]) not in world.held["b"]}


def test_a_loop_gets_another_plan() -> None:
    engine = make_engine(2)
    core_of(engine).replanner.rows = 40
    edges = engine.create_table("edge", {"a": tk.Int, "b": tk.Int})
    few = engine.create_table("few", {"a": tk.Int, "k": tk.Int})
    grown = edges.iterate(
        lambda reach: edges.concat(
            tk.match((reach, ("x", "y")), (few, ("y", None)), (edges, ("y", "z")), find=["x", "z"]).select(a="x", b="z")
        ).distinct()
    )
    view = engine.install("reach", grown)
    above = engine.install("above", grown.index_by("b").group_by("b").agg(n=tk.count()))
    random.seed(5)
    held: set[tuple[int, int]] = set()
    allowed: set[tuple[int, int]] = set()
    for many, some in ((3, 3), (60, 2), (90, 3), (4, 60), (5, 80), (70, 2), (80, 1)):
        for _ in range(3):
            new = {(random.randrange(12), random.randrange(12)) for _ in range(many)}
            keep = {(random.randrange(12), random.randrange(100)) for _ in range(some)}
            edges.remove(list(held - new))
            edges.insert(list(new - held))
            few.remove(list(allowed - keep))
            few.insert(list(keep - allowed))
            held, allowed = new, keep
            engine.advance()
            engine.settle()
            found = set(held)
            nodes = {node for node, _ in allowed}
            while True:
                more = found | {(x, z) for x, y in found for w, z in held if y == w and y in nodes}
                if more == found:
                    break
                found = more
            assert set(view.rows()) == found
            assert dict(above.rows()) == Counter(b for _, b in found)
    found_plans = core_of(engine).catalog.plans
    assert {flow.name: plan.replaced > 1 for flow, plan in found_plans.items()} == {
        "reach": True,
        "iterate by (b)": True,
    }


def test_errors_of_rows_stand_before_and_after_a_switch() -> None:
    engine = make_engine()
    core_of(engine).replanner.rows = 40
    world = World(engine)
    texts = engine.create_table("texts", {"x": tk.Int, "t": tk.String})
    a, b, _ = world.tables.values()
    numbers = tk.match((texts, ("x", "t")), (a, ("x", "a")), (b, ("x", "b"))).select("x", n=tk.col("t").cast(tk.Int))
    view = engine.install("v", numbers)
    above = engine.install("above", view.group_by("x").agg(n=tk.count()))
    texts.insert([(1, "1"), (2, "two"), (3, "3")])
    a.insert([(1, 1), (2, 2), (3, 3)])
    b.insert([(1, 1), (3, 3)])
    sound = engine.advance()
    with engine.hold(view), engine.hold(above):
        assert sorted(view.rows()) == [(1, 1), (3, 3)]
        b.insert([(2, 2)])
        failing = engine.advance()
        flow = core_of(view).flow
        a.insert([(x, 7) for x in range(100, 200)])
        engine.advance()
        engine.settle()
        assert core_of(view).flow is not flow
        for found in (view, above):
            with pytest.raises(tk.IncorrectError, match=r"'two'"):
                found.rows()
            with pytest.raises(tk.IncorrectError, match=r"'two'"):
                found.rows(at=failing)
        assert sorted(view.rows(at=sound)) == [(1, 1), (3, 3)]
        assert sorted(above.rows(at=sound)) == [(1, 1), (3, 1)]
        b.remove([(2, 2)])
        engine.advance()
        assert sorted(view.rows()) == [(1, 1), (3, 3)]
        assert sorted(above.rows()) == [(1, 1), (3, 1)]
        b.insert([(2, 2)])
        engine.advance()
        for found in (view, above):
            with pytest.raises(tk.IncorrectError, match=r"'two'"):
                found.rows()
            assert len(found.rows(at=sound)) == 2
    late = engine.install("late", above.filter(tk.col("n") > 0))
    with pytest.raises(tk.IncorrectError, match=r"'two'"):
        late.rows()


def test_a_transaction_reads_on_while_the_plan_changes() -> None:
    engine = make_engine(autocommit=True)
    world = World(engine)
    view = engine.install("v", world.joined())
    for name in "abc":
        world.change(name, 4)
    wanted = world.wanted()
    session = engine.session()
    with session.transaction():
        assert Counter(session.sql("SELECT * FROM v").rows()) == wanted
        other = Thread(target=turned, args=(world,))
        other.start()
        other.join()
        assert plans(engine, "v")[0] == 1
        assert Counter(session.sql("SELECT * FROM v").rows()) == wanted
    assert Counter(view.rows()) == world.wanted()


def test_a_published_view_is_stored_by_both_plans(tmp_path: Path) -> None:
    engine = make_engine(storage=tmp_path)
    world = World(engine)
    view = engine.install("v", world.joined())
    view.persist()
    for _ in world.turns():
        pass
    assert plans(engine, "v")[0] >= 2
    wanted = world.wanted()
    engine.sync()
    engine.close()
    with make_engine(storage=tmp_path) as reopened:
        tables = [reopened.create_table(name, {"x": tk.Int, name * 2: tk.Int}) for name in "abc"]
        a, b, c = tables
        again = reopened.install("v", tk.match((a, ("x", "a")), (b, ("x", "b")), (c, ("x", "c"))))
        assert Counter(again.rows()) == wanted
        again.persist()  # refused, or stored anew, if what is stored were not what the view holds
        assert Counter(again.rows()) == wanted


def test_a_view_that_is_dropped_while_another_plan_is_made_leaves_nothing() -> None:
    engine = make_engine(turn=0.0)
    world = World(engine)
    engine.install("v", world.joined())
    for name, rows in zip("abc", (90, 3, 3), strict=True):
        world.change(name, rows)
    engine.advance()
    while core_of(engine).replanner.candidate is None:
        core_of(engine).run()
    engine.drop("v")
    for name in "abc":
        engine.drop(name)
    assert core_of(engine).replanner.candidate is None
    assert not core_of(engine).coordinator.flows
    assert not core_of(engine).catalog.plans


def test_a_plan_that_fails_leaves_the_view_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = make_engine(turn=0.0)
    world = World(engine)
    view = engine.install("v", world.joined())
    flow = core_of(view).flow
    for name, rows in zip("abc", (90, 3, 3), strict=True):
        world.change(name, rows)
    engine.advance()
    while core_of(engine).replanner.candidate is None:
        core_of(engine).run()
    _, new = core_of(engine).replanner.candidate or (None, None)
    assert new is not None
    new.fail(MemoryError("injected"))
    for _ in world.turns():
        assert Counter(view.rows()) == world.wanted()
    assert core_of(view).flow is flow
    assert view.failure is None
    assert core_of(engine).replanner.candidate is None


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_an_interrupt_of_the_switch_leaves_a_view_that_goes_on(error: type[BaseException]) -> None:
    def world_before_the_switch() -> World:
        engine = make_engine()
        world = World(engine)
        view = engine.install("v", world.joined())
        engine.install("n", view.group_by("x").agg(n=tk.count()))
        for name, rows in zip("abc", (60, 3, 3), strict=True):
            world.change(name, rows)
        engine.advance()
        return world

    injector = Injector(("engine/replanning", "engine/catalog", "dataflow/succession", "runtime/coordinator"))
    world = world_before_the_switch()
    assert injector.call(world.engine.settle) is False
    assert plans(world.engine, "v")[0] == 1
    lines = injector.lines
    for point in range(1, lines + 1, max(1, lines // POINTS)):
        world = world_before_the_switch()
        injector.call(world.engine.settle, point, error)
        for _ in range(3):
            world.change("a", 50)
            world.change("b", 4)
            world.engine.advance()
            world.engine.settle()
            view = world.engine.view("v")
            if view.failure is None:  # one that lacked memory says that it failed
                assert Counter(view.rows()) == world.wanted(), injector.where
                assert dict(world.engine.view("n").rows()) == dict(_groups(world.wanted())), injector.where
            else:
                assert error is MemoryError
        world.engine.drop("n")
        world.engine.drop("v")
        for name in "abc":
            world.engine.drop(name)


def _groups(rows: Rows) -> Counter[int]:
    found: Counter[int] = Counter()
    for (x, *_), n in rows.items():
        found[x] += n
    return found
