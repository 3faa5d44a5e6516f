"""Subscriptions: every change once, for threads; waiting, and what ends it. Callbacks and tasks have a module of their own."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tektite as tk
from tektite.engine.core import core_of
from tests.support.executors import make_engine
from tests.support.following import Running, changed, polled, summed, waiting
from tests.support.patience import PATIENCE, until
from tests.support.row_changes import row_changes

pytestmark = pytest.mark.executors


@pytest.fixture
def engine() -> Iterator[tk.Engine]:
    with make_engine(autocommit=True) as made:
        yield made


# -- what is told ----------------------------------------------------------------------------------------------------------


def test_begins_with_the_contents_and_goes_on_time_by_time(engine: tk.Engine) -> None:
    table = engine.create_table("t", {"k": tk.Int, "x": tk.String})
    view = engine.install("n", table.count(by="k"))
    table.insert([(1, "a"), (1, "b"), (2, "c")])
    subscription = view.subscribe()
    table.insert([(1, "d")])
    table.remove([(2, "c")])
    first, second, third = polled(subscription)
    assert (first.time, changed(first)) == (0, {(1, 2): 1, (2, 1): 1})
    assert (second.time, changed(second)) == (1, {(1, 2): -1, (1, 3): 1})
    assert (third.time, changed(third)) == (2, {(2, 1): -1})
    assert third.table.column_names == ["k", "count", "diff"]
    assert subscription.poll(0) is None and subscription.time == 2


def test_without_snapshot_only_what_comes(engine: tk.Engine) -> None:
    table = engine.create_table("t", {"x": tk.Int})
    view = engine.install("all", table)
    table.insert([(1,)])
    subscription = view.subscribe(snapshot=False)
    assert subscription.poll(0) is None
    table.insert([(2,)])
    assert summed(polled(subscription)) == {1: {(2,): 1}}


def test_since_a_time_tells_what_came_behind_it(engine: tk.Engine) -> None:
    table = engine.create_table("t", {"x": tk.Int})
    view = engine.install("all", table)
    table.insert([(0,)])
    with engine.hold(view):
        for x in range(1, 6):
            table.insert([(x,)])
            table.remove([(x - 1,)])
        later = polled(view.subscribe(since=6))
        assert [(delta.time, changed(delta)) for delta in later] == [
            (7, {(4,): 1}), (8, {(3,): -1}), (9, {(5,): 1}), (10, {(4,): -1}),
        ]  # fmt: skip
        with_contents = summed(polled(view.subscribe(since=6, snapshot=True)))
        assert with_contents == {at: Counter(view.rows(at=at)) for at in range(6, 11)}
        assert polled(view.subscribe(since=10)) == []
        with pytest.raises(tk.IncorrectError, match="can be read at times 0 to 10, not at 11"):
            view.subscribe(since=11)
    while engine.idle():
        pass
    with pytest.raises(tk.IncorrectError, match="not at 6; .*engine.hold keeps earlier times readable"):
        view.subscribe(since=6)


def test_progress_tells_times_at_which_nothing_changed(engine: tk.Engine) -> None:
    table, other = engine.create_table("t", {"x": tk.Int}), engine.create_table("other", {"x": tk.Int})
    view = engine.install("all", table)
    plain, told = view.subscribe(), view.subscribe(progress=True)
    other.insert([(1,)])
    assert [(delta.time, delta.table.num_rows) for delta in polled(told)] == [(0, 0)]
    table.insert([(1,)])
    other.insert([(2,)])
    other.insert([(3,)])
    assert [(delta.time, delta.table.num_rows) for delta in polled(told)] == [(1, 1), (3, 0)]
    assert [delta.time for delta in polled(plain)] == [1]
    assert told.poll(0) is None


def test_table_has_all_that_waits(engine: tk.Engine) -> None:
    table = engine.create_table("t", {"x": tk.Int, "time": tk.Int})
    view = engine.install("all", table)
    subscription = view.subscribe()
    assert subscription.table().column_names == ["x", "time", "time_", "diff"]
    table.insert([(1, 5)])
    table.insert([(2, 5), (3, 5)])
    assert subscription.poll(0) is not None
    table.insert([(4, 5)])
    found = subscription.table().to_pylist() + subscription.table().to_pylist()
    assert [(row["x"], row["time_"], row["diff"]) for row in found] == [(2, 1, 1), (3, 1, 1), (4, 2, 1)]


def test_a_view_that_is_not_kept_has_no_contents_to_begin_with(engine: tk.Engine) -> None:
    table = engine.create_table("t", {"x": tk.Int})
    view = engine.install("all", table.filter(tk.col("x") > 0), keep=False)
    table.insert([(1,)])
    with pytest.raises(tk.ConflictError, match="keep=False, so that it has no contents"):
        view.subscribe(snapshot=True)
    with pytest.raises(tk.ConflictError, match="keep=False"):
        view.subscribe(since=0)
    subscription = view.subscribe()
    table.insert([(2,)])
    assert summed(polled(subscription)) == {1: {(2,): 1}}


@pytest.mark.executors("stages", spark=[1])
@pytest.mark.parametrize("workers", [1, 3])
def test_sums_of_changes_are_the_snapshots_at_every_time(workers: int) -> None:
    engine = make_engine(workers)
    table = engine.create_table("t", {"k": tk.Int, "x": tk.Int})
    view = engine.install("sums", table.group_by("k").agg(s=tk.sum("x"), n=tk.count()))
    table.insert([(0, 0)])
    engine.advance()
    held = engine.hold(view)
    readers = {pace: view.subscribe() for pace in (1, 3, 7)}
    told: dict[int, list[tk.Delta]] = {pace: [] for pace in readers}
    present = [(0, 0)]
    for epoch in range(1, 22):
        if epoch % 3 == 2:
            table.remove([present.pop()])
        new = [(epoch % 4, epoch), (epoch % 5, 1)]
        table.insert(new)
        present += new
        engine.advance()
        for pace, reader in readers.items():
            if epoch % pace == 0:
                told[pace] += polled(reader)
    for deltas in told.values():
        found = summed(deltas)
        assert set(found) == set(range(22))
        assert found == {at: Counter(view.rows(at=at)) for at in found}
    held.release()
    engine.close()


# -- rows that fail --------------------------------------------------------------------------------------------------------


def test_a_row_that_fails_raises_once_an_epoch_and_nothing_is_lost(engine: tk.Engine) -> None:
    table = engine.create_table("t", {"x": tk.String})
    view = engine.install("numbers", table.select(y=tk.col("x").cast(tk.Int)))
    subscription = view.subscribe()
    table.insert([("1",), ("bad",)])
    with pytest.raises(tk.IncorrectError, match="'bad'"):
        subscription.poll(0)
    assert subscription.poll(0) is None
    table.insert([("2",)])
    with pytest.raises(tk.IncorrectError, match="'bad'"):
        subscription.poll(0)
    table.remove([("bad",)])
    assert summed(polled(subscription)) == {0: {(1,): 1}, 1: {(1,): 1, (2,): 1}}


def test_who_asks_when_a_failing_row_is_gone_hears_of_no_error(engine: tk.Engine) -> None:
    table = engine.create_table("t", {"x": tk.String})
    view = engine.install("numbers", table.select(y=tk.col("x").cast(tk.Int)))
    subscription = view.subscribe()
    table.insert([("1",), ("bad",)])
    table.insert([("2",)])
    table.remove([("bad",)])
    assert summed(polled(subscription)) == {0: {(1,): 1}, 1: {(1,): 1, (2,): 1}}
    assert sorted(view.rows()) == [(1,), (2,)]


def test_who_waits_is_told_of_a_row_that_fails_and_that_it_is_gone(engine: tk.Engine) -> None:
    table = engine.create_table("t", {"x": tk.String})
    view = engine.install("numbers", table.select(y=tk.col("x").cast(tk.Int)))
    subscription = view.subscribe(progress=True)
    running = Running(lambda: next(subscription))
    until(lambda: waiting(view))
    table.insert([("bad",)])
    with pytest.raises(tk.IncorrectError, match="'bad'"):
        running.result()
    running = Running(lambda: next(subscription))
    until(lambda: waiting(view))
    table.remove([("bad",)])
    assert running.result().time == 1


# -- threads ---------------------------------------------------------------------------------------------------------------


def test_iteration_waits_for_the_next_change(engine: tk.Engine) -> None:
    table = engine.create_table("t", {"x": tk.Int})
    view = engine.install("all", table)
    subscription = view.subscribe()
    running = Running(lambda: [next(subscription) for _ in range(2)])
    until(lambda: waiting(view))
    table.insert([(1,)])
    table.insert([(2,)])
    assert summed(running.result()) == {0: {(1,): 1}, 1: {(1,): 1, (2,): 1}}
    assert not waiting(view)


def test_other_views_do_not_wake_who_waits(engine: tk.Engine) -> None:
    table, other = engine.create_table("t", {"x": tk.Int}), engine.create_table("other", {"x": tk.Int})
    view = engine.install("all", table)
    engine.install("others", other)
    subscription = view.subscribe()
    running = Running(lambda: subscription.poll(PATIENCE))
    until(lambda: waiting(view))
    (waiter,) = [waiter for feed in core_of(view).feeds for waiter in feed.waiters]
    notified: list[int] = []
    waiter.notify = lambda: notified.append(1)  # type: ignore[method-assign]
    for x in range(3):
        other.insert([(x,)])
    assert notified == []
    del waiter.notify
    table.insert([(1,)])
    assert running.result().time == 3


def test_poll_ends_after_its_timeout(engine: tk.Engine) -> None:
    view = engine.install("all", engine.create_table("t", {"x": tk.Int}))
    subscription = view.subscribe()
    assert subscription.poll(0.01) is None
    for wrong in (-1, float("nan"), "1"):
        with pytest.raises(tk.IncorrectError, match="a timeout is a number of seconds"):
            subscription.poll(wrong)  # type: ignore[arg-type]


def test_threads_that_read_at_different_paces_see_every_change_once(engine: tk.Engine) -> None:
    table = engine.create_table("t", {"k": tk.Int, "x": tk.Int})
    view = engine.install("n", table.count(by="k"))
    epochs = 120

    def read(pause: float) -> list[tk.Delta]:
        found: list[tk.Delta] = []
        with view.subscribe() as subscription:
            started.release()
            for delta in subscription:
                found.append(delta)
                time.sleep(pause)
        return found

    def write(k: int) -> None:
        for x in range(epochs):
            table.insert([(k, x)])
            if x % 2:
                table.remove([(k, x - 1)])

    started = threading.Semaphore(0)
    readers = [Running(lambda pause=pause: read(pause)) for pause in (0, 0, 0.0005, 0.003)]  # type: ignore[misc]
    for _ in readers:
        started.acquire()
    writers = [Running(lambda k=k: write(k)) for k in range(3)]  # type: ignore[misc]
    for writer in writers:
        writer.result()
    last = engine.next_epoch - 1
    table.finish()  # the view can change no more: iteration ends
    held = Counter(view.rows())
    for reader in readers:
        deltas = reader.result()
        times = [delta.time for delta in deltas]
        assert times == sorted(set(times)) and times[-1] == last
        assert summed(deltas)[last] == held
        assert sum(changed(delta).total() for delta in deltas) == len(held)


def test_a_view_that_is_always_behind_is_followed_while_others_write() -> None:
    with make_engine(autocommit=True, turn=0) as engine:
        table = engine.create_table("t", {"k": tk.Int, "x": tk.Int})
        view = engine.install("pairs", table.join(table, on="k").count(by="k"))
        subscription = view.subscribe()
        reader = Running(lambda: list(subscription))
        waiter = Running(lambda: view.wait(399))
        writers = [Running(lambda k=k: [table.insert([(k, x)]) for x in range(200)]) for k in range(2)]  # type: ignore[misc]
        for writer in writers:
            writer.result()
        assert waiter.result() is True
        table.finish()
        deltas = reader.result()
        assert [delta.time for delta in deltas] == list(range(400))
        assert summed(deltas)[399] == Counter(view.rows()) == {(0, 200**2): 1, (1, 200**2): 1}


def test_the_answer_of_a_datalog_query_is_followed(engine: tk.Engine) -> None:
    edge = engine.create_table("edge", {"src": tk.Int, "dst": tk.Int})
    engine.datalog("reach(x, y) :- edge(x, y).  reach(x, z) :- reach(x, y), edge(y, z).")
    edge.insert([(1, 2)])
    with engine.query("reach(1, ?)") as query:
        subscription = query.subscribe()
        edge.insert([(2, 3)])
        assert [(delta.time, len(delta.table)) for delta in polled(subscription)] == [(0, 1), (1, 1)]


def test_several_threads_share_the_deltas_of_one_subscription(engine: tk.Engine) -> None:
    table = engine.create_table("t", {"x": tk.Int})
    view = engine.install("all", table)
    subscription = view.subscribe()
    readers = [Running(lambda: list(subscription)) for _ in range(3)]
    for x in range(200):
        table.insert([(x,)])
    table.finish()
    told = [delta for reader in readers for delta in reader.result()]
    assert sorted(delta.time for delta in told) == list(range(200))


def test_a_change_that_cannot_be_read_yet_is_told_when_it_can() -> None:
    with make_engine() as engine:
        left, right = engine.create_table("left", {"x": tk.Int}), engine.create_table("right", {"x": tk.Int})
        view = engine.install("both", left.concat(right))
        subscription = view.subscribe()
        running = Running(lambda: next(subscription))
        until(lambda: waiting(view))
        left.insert([(1,)])
        left.advance()  # the other input has not closed the epoch
        assert running.found is None
        right.insert([(2,)])
        right.advance()
        assert changed(running.result()) == {(1,): 1, (2,): 1}


# -- the end ---------------------------------------------------------------------------------------------------------------


def test_closing_ends_who_waits(engine: tk.Engine) -> None:
    table = engine.create_table("t", {"x": tk.Int})
    view = engine.install("all", table)
    subscription = view.subscribe()
    running = Running(lambda: list(subscription))
    until(lambda: waiting(view))
    subscription.close()
    assert running.result() == []
    assert subscription.closed and list(subscription) == []
    with pytest.raises(tk.ConflictError, match="the subscription to view 'all' has ended: it was closed"):
        subscription.poll()
    assert not core_of(view).feeds and not core_of(view).trace.handles
    subscription.close()
    table.insert([(1,)])


def test_dropping_the_view_raises_where_somebody_waits(engine: tk.Engine) -> None:
    table = engine.create_table("t", {"x": tk.Int})
    view = engine.install("all", table)
    subscription, lagging = view.subscribe(), view.subscribe()
    running, other = Running(lambda: next(subscription)), Running(lambda: view.wait(7))
    until(lambda: core_of(view).waiters and any(feed.waiters for feed in core_of(view).feeds))
    with engine.transaction():
        table.insert([(1,)])
    assert changed(running.result()) == {(1,): 1}
    running = Running(lambda: next(subscription))
    until(lambda: any(feed.waiters for feed in core_of(view).feeds))
    view.drop()
    for each in (running, other):
        with pytest.raises(tk.ConflictError, match="view 'all' was dropped"):
            each.result()
    assert changed(next(lagging)) == {(1,): 1}  # what was collected before
    with pytest.raises(tk.ConflictError, match="view 'all' was dropped"):
        next(lagging)


@pytest.mark.parametrize("end", ["drop", "remove", "close"])
def test_texts_that_nobody_else_has_are_told(end: str) -> None:
    engine = make_engine(autocommit=True)
    core_of(engine).texts.be_eager()
    table = engine.create_table("t", {"x": tk.String})
    view = engine.install("all", table.select(y=tk.concat(tk.col("x"), "!")))
    subscription, changes = view.subscribe(), row_changes(view)
    table.insert([("only here",)])
    told: list[Any] = []
    if end == "remove":
        table.remove([("only here",)])
        told = [{"y": "only here!", "time": 1, "diff": -1}]
    elif end == "drop":
        view.drop()
        table.remove([("only here",)])
        for x in range(3):
            table.insert([(f"other {x}",)])
        assert [tuple(change) for change in changes] == [(("only here!",), 0, 1)]
    else:
        engine.close()
    assert subscription.table().to_pylist() == [{"y": "only here!", "time": 0, "diff": 1}, *told]
    engine.close()


def test_closing_the_engine_ends_who_waits() -> None:
    engine = make_engine(autocommit=True)
    view = engine.install("all", engine.create_table("t", {"x": tk.Int}))
    subscription = view.subscribe()
    running, other = Running(lambda: list(subscription)), Running(lambda: view.wait(7))
    until(lambda: core_of(view).waiters and any(feed.waiters for feed in core_of(view).feeds))
    engine.close()
    assert running.result() == []
    with pytest.raises(tk.ConflictError, match="the engine is closed"):
        other.result()
    with pytest.raises(tk.ConflictError, match="the engine was closed"):
        subscription.poll()
    with pytest.raises(tk.ConflictError, match="the engine is closed"):
        view.subscribe()


def test_a_view_that_fails_raises_where_somebody_waits_behind_what_it_had_finished(engine: tk.Engine) -> None:
    table = engine.create_table("t", {"x": tk.Int})
    view = engine.install(
        "loop", table.iterate(lambda rows: rows.select(x=tk.col("x") + 1).filter(tk.col("x") > 0), max_rounds=5)
    )
    subscription, lagging = view.subscribe(), view.subscribe()
    table.insert([(-7,)])
    assert subscription.poll(0) is None
    running, other = Running(lambda: next(subscription)), Running(lambda: view.wait(7))
    until(lambda: core_of(view).waiters and any(feed.waiters for feed in core_of(view).feeds))
    table.insert([(1,)])
    for each in (running, other):
        with pytest.raises(tk.TektiteError, match="'loop'"):
            each.result()
    with pytest.raises(tk.TektiteError, match="'loop'"):
        lagging.poll()
    assert set(engine.failures) == {"loop"} and engine.failures["loop"] is view.failure


def test_the_last_changes_come_before_the_end(engine: tk.Engine) -> None:
    table = engine.create_table("t", {"x": tk.Int})
    view = engine.install("all", table)
    subscription = view.subscribe()
    running = Running(lambda: list(subscription))
    until(lambda: waiting(view))
    table.insert([(1,)])
    table.finish()
    assert summed(running.result()) == {0: {(1,): 1}}
    with pytest.raises(tk.ConflictError, match="every table that the view reads has ended"):
        subscription.poll()


def test_a_subscription_that_nobody_holds_holds_nothing(engine: tk.Engine) -> None:
    table = engine.create_table("t", {"x": tk.Int})
    view = engine.install("evens", table.filter(tk.col("x") % 2 == 0))
    found: list[Any] = [view.subscribe(), view.subscribe(progress=True), row_changes(view)]
    table.insert([(2,)])
    core = core_of(view)
    references = [weakref.ref(each) for each in found]
    queues = [feed.handle for feed in core.feeds]
    found.clear()
    gc.collect()
    assert [reference() for reference in references] == [None] * 3
    assert not any(handle.waiting() for handle in queues)
    table.insert([(4,)])
    assert not core.feeds and not core.engine.notices.at_each_epoch and not core.engine.notices.woken
    assert not set(queues) & set(core.trace.handles)


SCRIPT = """
import threading, _thread, time
import tektite
from tektite.engine.core import core_of

engine = tektite.Engine()
table = engine.create_table("t", {"x": tektite.Int})
view = engine.install("all", table)
subscription = view.subscribe()

def interrupt():
    core = core_of(view)
    while not (core.waiters or any(feed.waiters for feed in core.feeds)):
        time.sleep(0.001)
    print("waits", flush=True)

for wait in (lambda: next(subscription), lambda: view.wait(5), lambda: view.snapshot(at=5, timeout=60)):
    threading.Thread(target=interrupt).start()
    try:
        wait()
    except KeyboardInterrupt:
        core = core_of(view)
        left = len(core.waiters) + sum(len(feed.waiters) for feed in core.feeds) + len(core.engine.notices.at_each_epoch)
        print("interrupted", left, flush=True)
table.insert([(1,)])
print(subscription.poll(0).time, view.rows())
"""


def test_ctrl_c_ends_a_wait_and_nothing_else(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(tk.__file__).parents[1])}
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT], stdout=subprocess.PIPE, text=True, cwd=tmp_path, env=environment
    ) as process:
        assert process.stdout is not None
        for _ in range(3):
            assert process.stdout.readline() == "waits\n"
            process.send_signal(signal.SIGINT)
            assert process.stdout.readline() == "interrupted 0\n"
        assert process.stdout.read() == "0 [(1,)]\n"
