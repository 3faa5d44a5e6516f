"""Memory follows what is there, not what has happened: compaction, and what comes back when something is dropped."""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref

import pytest

import tektite as tk
from tektite.engine.core import core_of
from tektite.trace.trace import Trace
from tests.support.nightly import by_day_or_night
from tests.support.patience import PATIENT_TURN

ROWS = 40
"""Rows that the input holds at any time."""
ENOUGH = 1000
"""Updates that a trace of such an input may hold: a small multiple of the rows that are there, whatever the history."""


class Replacing:
    """An input of ROWS rows (i, something), one of which is replaced in each epoch."""

    def __init__(self, engine: tk.Engine) -> None:
        self.engine = engine
        self.source = engine.create_table("edges", {"src": tk.Int, "dst": tk.Int})
        self.rows = [(i, (i + 1) % ROWS) for i in range(ROWS)]
        self.source.insert(self.rows)
        engine.advance()

    def run(self, epochs: int, at_once: int = 1) -> None:
        last = self.engine.next_epoch + epochs
        while self.engine.next_epoch < last:
            first = self.engine.next_epoch
            for epoch in range(first, first + at_once):
                i = epoch % ROWS
                src, dst = self.rows[i]
                self.rows[i] = (src, (dst + 7) % ROWS)
                self.source.update([(src, dst), self.rows[i]], times=[epoch, epoch], diffs=[-1, 1])
            self.engine.advance(first + at_once)


def traces_of(view: tk.View) -> list[Trace]:
    """Every trace that a view reads or keeps inside."""
    return [core_of(view).trace, *(handle.trace for handle in core_of(view).flow.handles)]


def reach(edges: tk.Collection) -> tk.Collection:
    roots = edges.filter(tk.col("src") == 0).select(node="src")

    def step(found: tk.Collection) -> tk.Collection:
        return found.join(edges, left_on="node", right_on="src").select(node="dst").concat(roots).distinct()

    return roots.distinct().iterate(step)


def labels(edges: tk.Collection) -> tk.Collection:
    nodes = edges.select(n="src", label="src").distinct()

    def step(found: tk.Collection) -> tk.Collection:
        return (
            found.join(edges, left_on="n", right_on="src")
            .select(n="dst", label="label")
            .concat(nodes)
            .min("label", by="n")
        )

    return nodes.iterate(step)


@pytest.mark.slow
@pytest.mark.parametrize("merging", ["eager", "default", "lazy"])
def test_a_steady_collection_keeps_its_size_for_thousands_of_epochs(merging: str) -> None:
    epochs = by_day_or_night(2_000, 10_000)
    with tk.Engine(merging=merging, turn=PATIENT_TURN, autocommit=False) as engine:
        data = Replacing(engine)
        view = engine.install("counts", data.source.count(by="dst"))
        other = engine.install("distinct", data.source.select("dst").distinct())
        sizes = []
        for _ in range(10):
            data.run(epochs // 10)
            found = [*engine.indexes()]
            sizes.append(max([info.rows for info in found] + [t.rows for v in (view, other) for t in traces_of(v)]))
            assert max(info.batches for info in found) <= 16
        assert max(sizes) <= ENOUGH
        assert max(sizes[5:]) <= 2 * max(sizes[:5])
        assert engine.next_epoch > epochs
        assert sum(n for _, n in view.rows()) == ROWS


@pytest.mark.slow
@pytest.mark.parametrize("make", [reach, labels])
@pytest.mark.parametrize("at_once", [1, 20], ids=["epoch by epoch", "twenty epochs at once"])
def test_the_traces_inside_a_loop_keep_their_size(make: object, at_once: int) -> None:
    with tk.Engine(turn=PATIENT_TURN, autocommit=False) as engine:
        data = Replacing(engine)
        view = engine.install("loop", make(data.source))  # type: ignore[operator]
        sizes = []
        for _ in range(6):
            data.run(by_day_or_night(40, 100) * min(at_once, 5), at_once)
            view.rows()
            sizes.append(max(trace.rows for trace in traces_of(view)))
        fresh = engine.install("fresh", make(data.source))  # type: ignore[operator]
        assert sorted(fresh.rows()) == sorted(view.rows())
        assert max(sizes) <= at_once * ENOUGH
        assert max(sizes[3:]) <= 3 * max(sizes[:3])
        # At rest it is as if the view had just been installed.
        while engine.idle():
            pass
        assert max(t.rows for t in traces_of(view)) <= 2 * max(t.rows for t in traces_of(fresh)) + 2 * ROWS


def test_what_a_view_used_is_gone_after_it_was_dropped() -> None:
    with tk.Engine(turn=PATIENT_TURN, autocommit=False) as engine:
        data = Replacing(engine)
        names = {info.name for info in engine.indexes()}
        edges = data.source
        hops = edges.join(edges, left_on="dst", right_on="src").select("src", dst="dst_right")
        view = engine.install("loop", labels(edges.index_by("dst")))
        other = engine.install("hops", hops.count(by="dst"))
        data.run(20)
        assert {info.name for info in engine.indexes()} > names
        alive = [
            weakref.ref(trace) for v in (view, other) for trace in traces_of(v) if trace is not core_of(edges).trace
        ]
        assert alive and len(core_of(edges).trace.handles) and len(core_of(edges).trace.holds) > 1
        view.drop()
        other.drop()
        del view, other, hops
        gc.collect()
        assert [ref() for ref in alive if ref() is not None] == []
        assert {info.name for info in engine.indexes()} == names
        assert not core_of(edges).trace.handles and len(core_of(edges).trace.holds) == 1


def test_a_subscription_that_is_not_read_keeps_nothing_once_closed() -> None:
    with tk.Engine(turn=PATIENT_TURN, autocommit=False) as engine:
        data = Replacing(engine)
        view = engine.install("all", data.source)
        subscription = view.subscribe()
        (feed,) = core_of(view).feeds
        data.run(50)
        assert len(feed.handle.queues[0]) >= 50
        subscription.close()
        assert feed.handle not in core_of(view).trace.handles and not feed.handle.waiting()
        data.run(1)
        assert core_of(view).trace.rows <= ENOUGH


DROPPED = """
import gc
import numpy as np, pyarrow as pa
import tektite as tk
from tektite.runtime.allocator import figures

rows = 1_500_000
def memory():
    gc.collect()
    found = figures()
    return np.array([found.used + pa.total_allocated_bytes(), found.own])

with tk.Engine(autocommit=False) as engine:
    source = engine.create_table("pairs", {"a": tk.Int, "b": tk.Int})
    source.insert(np.random.default_rng(1).integers(0, 2**62, (rows, 2)))
    engine.advance()
    before = memory()
    view = engine.install("turned", source.select("b", "a").distinct().index_by("b"))
    engine.finish(view)
    grown = memory() - before
    view.drop()
    del view
    print(rows, *grown, *(memory() - before))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the size of the process is read from /proc")
def test_memory_comes_back_when_a_large_view_is_dropped() -> None:
    """In a process of its own: in another one, what tests before it have freed is used again, and nothing grows."""
    done = subprocess.run([sys.executable, "-c", DROPPED], capture_output=True, text=True, check=True)
    rows, used, resident, still_used, still_resident = map(int, done.stdout.split())
    assert used > 15 * rows and resident > 16 * rows
    assert still_used < used / 10, "all of it is free"
    assert still_resident < resident / 2, "and most of it went back to the system"


def test_idle_time_compacts_what_a_hold_has_kept_apart() -> None:
    with tk.Engine(turn=PATIENT_TURN, autocommit=False) as engine:
        data = Replacing(engine)
        with engine.hold(data.source) as held:
            first = dict.fromkeys(data.rows, 1)
            data.run(600)
            view = engine.install("all", data.source)
            assert core_of(data.source).trace.rows > 1000
            assert held.at == 0
        assert first != dict.fromkeys(data.rows, 1)
        while engine.idle():
            pass
        assert core_of(data.source).trace.rows <= 4 * ROWS
        assert view.multiplicities() == dict.fromkeys(data.rows, 1)


@pytest.mark.parametrize("at", [None, 0])
def test_what_was_dropped_is_not_held(at: int | None) -> None:
    with tk.Engine() as engine:
        table = engine.create_table("t", {"k": tk.Int})
        view = engine.install("v", table.count(by="k"))
        table.insert([(1,)])
        engine.drop("v")
        with pytest.raises(tk.ConflictError, match="view 'v' was dropped"):
            engine.hold(view, at)
        engine.drop("t")
        with pytest.raises(tk.ConflictError, match="table 't' was dropped"):
            engine.hold(table, at)


def test_a_hold_keeps_earlier_epochs_of_a_view_readable() -> None:
    with tk.Engine(turn=PATIENT_TURN, autocommit=False) as engine:
        data = Replacing(engine)
        view = engine.install("all", data.source)
        start = core_of(view).low - 1
        states = [dict.fromkeys(data.rows, 1)]
        with engine.hold(view):
            for _ in range(30):
                data.run(1)
                states.append(dict.fromkeys(data.rows, 1))
            engine.idle()
            for epoch, state in enumerate(states, start):
                assert view.multiplicities(at=epoch) == state
        while engine.idle():
            pass
        data.run(1)
        with pytest.raises(tk.IncorrectError, match="can be read at times"):
            view.multiplicities(at=start)
