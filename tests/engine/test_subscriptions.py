"""Subscriptions: every change once, for threads, tasks and callbacks; waiting, and what ends it."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tektite as tk
from tektite.engine.core import core_of
from tests.support.executors import make_engine
from tests.support.row_changes import row_changes

pytestmark = pytest.mark.executors

Rows = Counter[tuple[Any, ...]]
SOON = 30.0
"""Seconds within which something happens that a test waits for."""


@pytest.fixture
def engine() -> Iterator[tk.Engine]:
    with make_engine(autocommit=True) as made:
        yield made


def changed(delta: tk.Delta) -> Rows:
    """What a delta adds to a collection."""
    found: Rows = Counter()
    for *row, diff in zip(*(column.to_pylist() for column in delta.table.columns), strict=True):
        found[tuple(row)] += diff
    return found


def summed(deltas: list[tk.Delta]) -> dict[int, Rows]:
    """What a view holds at each time of its deltas."""
    held: Rows = Counter()
    found = {}
    for delta in deltas:
        for row, diff in changed(delta).items():
            held[row] += diff
        found[delta.time] = Counter({row: n for row, n in held.items() if n})
    return found


def polled(subscription: tk.Subscription) -> list[tk.Delta]:
    """What can be had without waiting."""
    found = []
    while (delta := subscription.poll(0)) is not None:
        found.append(delta)
    return found


class Running:
    """A function in a thread, with what it returns or raises."""

    def __init__(self, function: Callable[[], Any]) -> None:
        self.found: Any = None
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(function,), daemon=True)
        self._thread.start()

    def _run(self, function: Callable[[], Any]) -> None:
        try:
            self.found = function()
        except BaseException as error:
            self.error = error

    def result(self) -> Any:
        self._thread.join(SOON)
        assert not self._thread.is_alive(), "it still waits"
        if self.error is not None:
            raise self.error
        return self.found


def until(condition: Callable[[], Any]) -> None:
    """Wait until something is so."""
    deadline = time.monotonic() + SOON
    while not condition():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.001)


def waiting(view: tk.View) -> bool:
    """Whether somebody waits for changes of a view, or for a time of it."""
    core = core_of(view)
    return bool(core.waiters) or any(feed.waiters for feed in core.feeds)


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
    with pytest.raises(tk.IncorrectError, match="not at 6; engine.hold keeps earlier times readable"):
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
    running = Running(lambda: subscription.poll(SOON))
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
    with pytest.raises(tk.ConflictError, match="every input that the view reads has ended"):
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


# -- callbacks -------------------------------------------------------------------------------------------------------------


def test_a_callback_is_called_until_its_handle_is_closed(engine: tk.Engine) -> None:
    table, other = engine.create_table("t", {"x": tk.Int}), engine.create_table("other", {"x": tk.Int})
    view = engine.install("all", table)
    table.insert([(1,)])
    told: list[tk.Delta] = []
    progress: list[int] = []
    listener = view.subscribe(told.append)
    second = view.subscribe(lambda delta: progress.append(delta.time), snapshot=False, progress=True)
    table.insert([(2,)])
    other.insert([(9,)])
    assert summed(told) == {0: {(1,): 1}, 1: {(1,): 1, (2,): 1}}
    assert progress == [1, 2]
    listener.close()
    assert listener.closed and not second.closed
    table.insert([(3,)])
    assert len(told) == 2 and progress == [1, 2, 3]
    with second:
        pass
    table.insert([(4,)])
    assert progress == [1, 2, 3] and not core_of(view).feeds


def test_a_callback_that_raises_ends_its_subscription_alone(
    engine: tk.Engine, caplog: pytest.LogCaptureFixture
) -> None:
    table = engine.create_table("t", {"x": tk.Int})
    view = engine.install("all", table)
    told: list[int] = []

    def explode(delta: tk.Delta) -> None:
        raise RuntimeError("boom")

    bad, good = view.subscribe(explode), view.subscribe(lambda delta: told.append(delta.time))
    for x in range(3):
        table.insert([(x,)])
    assert bad.closed and not good.closed and told == [0, 1, 2]
    (entry,) = [record for record in caplog.records if record.name == "tektite"]
    assert "'all'" in entry.getMessage() and "explode" in entry.getMessage()


def test_a_callback_may_read_and_may_not_write_or_wait(engine: tk.Engine) -> None:
    table, log = engine.create_table("t", {"x": tk.Int}), engine.create_table("log", {"x": tk.Int})
    view, sums = engine.install("all", table), engine.install("sums", table.group_by([]).agg(s=tk.sum("x")))
    subscription = view.subscribe()
    found: list[Any] = []

    def attempt(delta: tk.Delta) -> None:
        found.append(sums.rows())
        calls: list[Callable[[], object]] = [
            lambda: log.insert([(1,)]), engine.advance, lambda: view.wait(99), lambda: [next(subscription) for _ in range(9)],
        ]  # fmt: skip
        for call in calls:
            try:
                call()
            except tk.ConflictError as error:
                found.append(str(error))

    view.subscribe(attempt, snapshot=False)
    table.insert([(5,)])
    rows, insert, advance, wait, iterate = found
    assert rows == [(5,)]
    assert "inside a function that the engine calls" in insert and insert == advance
    assert "cannot wait for what is yet to happen" in wait and wait == iterate
    assert log.insert([(1,)]) == 1


def test_a_callback_gets_what_a_slow_view_has_finished_once() -> None:
    with make_engine(autocommit=True, turn=0) as engine:
        table = engine.create_table("t", {"k": tk.Int, "x": tk.Int})
        view = engine.install("pairs", table.join(table, on="k").count(by="k"))
        told: list[tk.Delta] = []
        view.subscribe(told.append)
        for x in range(10):
            table.insert([(x % 3, x)])
        engine.settle()
        assert summed(told)[9] == Counter(view.rows())
        assert [delta.time for delta in told] == list(range(10))


def test_a_callback_closes_its_own_handle(engine: tk.Engine) -> None:
    table = engine.create_table("t", {"x": tk.Int})
    view = engine.install("all", table)
    told: list[int] = []

    def once(delta: tk.Delta) -> None:
        told.append(delta.time)
        listener.close()

    listener = view.subscribe(once)
    table.insert([(1,)])
    table.insert([(2,)])
    assert told == [0]


def test_an_interrupted_callback_leaves_the_view_as_it_is(engine: tk.Engine) -> None:
    table = engine.create_table("t", {"x": tk.Int})
    view = engine.install("all", table)
    told: list[int] = []

    def interrupted(delta: tk.Delta) -> None:
        raise KeyboardInterrupt

    first = view.subscribe(interrupted)
    view.subscribe(lambda delta: told.append(delta.time))
    with pytest.raises(KeyboardInterrupt):
        table.insert([(1,)])
    first.close()
    table.insert([(2,)])
    assert told == [0, 1] and sorted(view.rows()) == [(1,), (2,)]


def test_a_callback_that_was_interrupted_goes_on_with_the_next_time() -> None:
    with make_engine() as engine:
        table = engine.create_table("t", {"x": tk.Int})
        view = engine.install("all", table)
        told: list[int] = []

        def interrupted_once(delta: tk.Delta) -> None:
            told.append(delta.time)
            if delta.time == 1:
                raise KeyboardInterrupt

        view.subscribe(interrupted_once)
        table.update([(x,) for x in range(4)], times=range(4))
        with pytest.raises(KeyboardInterrupt):
            engine.advance(4)
        table.insert([(9,)])
        engine.advance()
        engine.advance()
        assert told == [0, 1, 2, 3, 4]


# -- tasks -----------------------------------------------------------------------------------------------------------------


def test_tasks_wait_while_the_loop_goes_on(engine: tk.Engine) -> None:
    table = engine.create_table("t", {"x": tk.Int})
    view = engine.install("all", table)

    async def read(pause: float) -> list[tk.Delta]:
        found = []
        async for delta in view.subscribe():
            found.append(delta)
            await asyncio.sleep(pause)
        return found

    async def main() -> tuple[list[list[tk.Delta]], int]:
        tasks = [asyncio.create_task(read(pause)) for pause in (0, 0, 0.001, 0.01)]
        turns = 0
        writer = Running(write)
        while writer.found is None and writer.error is None:
            turns += 1
            await asyncio.sleep(0)
        writer.result()
        return await asyncio.gather(*tasks), turns

    def write() -> bool:
        until(lambda: sum(bool(feed.waiters) for feed in list(core_of(view).feeds)) == 4)
        for x in range(100):
            table.insert([(x,)])
        table.finish()
        return True

    found, turns = asyncio.run(main())
    assert turns > 1
    for deltas in found:
        times = [delta.time for delta in deltas]
        assert times == sorted(set(times))
        assert summed(deltas)[99] == {(x,): 1 for x in range(100)}


def test_the_loop_does_not_wait_for_the_engine_s_lock(engine: tk.Engine) -> None:
    table = engine.create_table("t", {"x": tk.Int})
    view = engine.install("all", table)

    async def main() -> int:
        subscription = view.subscribe()
        release, held = threading.Event(), threading.Event()

        def hold() -> bool:
            with core_of(engine).lock.held:
                held.set()
                return release.wait(SOON)

        holder = Running(hold)
        held.wait(SOON)
        task = asyncio.create_task(anext(subscription))  # type: ignore[arg-type]
        for _ in range(10):
            await asyncio.sleep(0.001)
        release.set()
        assert holder.result(), "the loop had to wait"
        await asyncio.to_thread(table.insert, [(1,)])
        return (await task).time

    assert asyncio.run(main()) == 0


def test_a_task_that_is_cancelled_loses_no_change(engine: tk.Engine) -> None:
    table = engine.create_table("t", {"x": tk.Int})
    view = engine.install("all", table)

    async def main() -> list[tk.Delta]:
        subscription = view.subscribe()
        found = []
        for x in range(60):
            task = asyncio.create_task(anext(subscription))  # type: ignore[arg-type]
            for _ in range(x % 4):
                await asyncio.sleep(0)
            table.insert([(x,)])
            for _ in range(x % 5):
                await asyncio.sleep(0)
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                found.append(await task)
        table.finish()
        return found + [delta async for delta in subscription]

    deltas = asyncio.run(main())
    assert [delta.time for delta in deltas] == list(range(60))
    assert not core_of(view).feeds or not waiting(view)


def test_tasks_are_told_of_drops_and_times(engine: tk.Engine) -> None:
    table = engine.create_table("t", {"x": tk.Int})
    view = engine.install("all", table)

    async def main() -> None:
        subscription = view.subscribe()
        reader = asyncio.create_task(anext(subscription))  # type: ignore[arg-type]
        early, late = asyncio.create_task(view.wait_async(1)), asyncio.create_task(view.wait_async(5))
        await asyncio.to_thread(until, lambda: len(core_of(view).waiters) == 2)
        for x in range(2):
            await asyncio.to_thread(table.insert, [(x,)])
        await early
        assert (await reader).time == 0
        assert not late.done()
        await asyncio.to_thread(view.drop)
        with pytest.raises(tk.ConflictError, match="was dropped"):
            await late
        assert (await anext(subscription)).time == 1  # type: ignore[arg-type]
        with pytest.raises(tk.ConflictError, match="was dropped"):
            await anext(subscription)  # type: ignore[arg-type]

    asyncio.run(main())


def test_a_loop_that_is_closed_does_not_disturb_the_engine(engine: tk.Engine) -> None:
    table = engine.create_table("t", {"x": tk.Int})
    view = engine.install("all", table)
    subscription = view.subscribe()
    loop = asyncio.new_event_loop()
    task = loop.create_task(subscription.__anext__())

    async def pause() -> None:
        while not waiting(view):
            await asyncio.sleep(0.001)

    loop.run_until_complete(pause())
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()
    table.insert([(1,)])
    assert view.rows() == [(1,)]
    del task


# -- waiting for a time ------------------------------------------------------------------------------------------------------


def test_wait_returns_when_the_view_answers_for_a_time(engine: tk.Engine) -> None:
    table = engine.create_table("t", {"x": tk.Int})
    view = engine.install("all", table)
    assert view.wait(0, timeout=0) is False
    running = Running(lambda: view.wait(1))
    snapshot = Running(lambda: view.snapshot(at=1, timeout=SOON))
    until(lambda: len(core_of(view).waiters) == 2)
    at = table.insert([(1,)])
    assert at == 0 and view.wait(at) and view.rows(at=at) == [(1,)]
    table.insert([(2,)])
    assert running.result() is True
    assert sorted(snapshot.result().to_pylist(), key=str) == [{"x": 1}, {"x": 2}]
    assert not core_of(view).waiters and not core_of(engine).notices.at_each_epoch


def test_a_time_that_is_waited_for_stays_readable_though_others_write(
    engine: tk.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = engine.create_table("t", {"x": tk.Int})
    view = engine.install("all", table)
    table.insert([(0,)])
    wait = tk.View.wait

    def overtaken(self: tk.View, time: int, timeout: float | None = None) -> bool:
        for x in range(1, 40):
            table.insert([(x,)])
        while engine.idle():
            pass
        return wait(self, time, timeout)

    monkeypatch.setattr(tk.View, "wait", overtaken)
    assert sorted(view.rows(at=2, timeout=1)) == [(0,), (1,), (2,)]
    while engine.idle():
        pass
    with pytest.raises(tk.IncorrectError, match="not at 2"):
        view.rows(at=2)


def test_a_time_that_does_not_come_is_an_error(engine: tk.Engine) -> None:
    table = engine.create_table("t", {"x": tk.Int})
    view = engine.install("all", table)
    table.insert([(1,)])
    with pytest.raises(tk.IncorrectError, match="can be read at times 0 to 0, not at 1"):
        view.rows(at=1)
    with pytest.raises(
        tk.ConflictError, match=r"no answer for time 1 after 0\.01 seconds: its last one is as of time 0"
    ):
        view.rows(at=1, timeout=0.01)
    with pytest.raises(tk.IncorrectError, match="say which"):
        view.snapshot(timeout=1)
    with pytest.raises(tk.IncorrectError):
        view.wait(-1)
    table.finish()
    assert view.wait(99) and view.rows(at=99, timeout=1) == [(1,)]


def test_time_is_the_last_epoch_with_an_answer(engine: tk.Engine) -> None:
    table = engine.create_table("t", {"x": tk.Int})
    view = engine.install("all", table)
    assert view.time is None and table.time is None
    for _ in range(3):
        at = table.insert([(1,)])
        assert view.time == table.time == at
    later = engine.install("later", view.count())
    assert later.time == at == later.first


def test_subscribe_takes_a_function(engine: tk.Engine) -> None:
    view = engine.install("all", engine.create_table("t", {"x": tk.Int}))
    with pytest.raises(tk.IncorrectError, match="takes a function"):
        view.subscribe(True)  # type: ignore[call-overload]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_older_spellings_see_the_same(engine: tk.Engine) -> None:
    table = engine.create_table("t", {"x": tk.Int})
    view = engine.install("all", table)
    tables: list[pa.Table] = []
    view.on_change(tables.append)
    changes, subscription = view.changes(), view.subscribe()
    table.insert([(1,), (2,)])
    table.remove([(1,)])
    told = [(change.row, change.time, change.diff) for change in changes]
    assert told == [((1,), 0, 1), ((2,), 0, 1), ((1,), 1, -1)]
    assert [tuple(row.values()) for found in tables for row in found.to_pylist()] == [
        (*row, t, d) for row, t, d in told
    ]
    assert [
        (tuple(r.values())[:1], d.time, r["diff"]) for d in polled(subscription) for r in d.table.to_pylist()
    ] == told
