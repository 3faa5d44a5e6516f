"""Callbacks and tasks are told of every change once; what waits for a time of a view."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

import tektite as tk
from tektite.engine.core import core_of
from tests.support.executors import make_engine
from tests.support.following import Running, polled, summed, waiting
from tests.support.patience import PATIENCE, until

pytestmark = pytest.mark.executors


@pytest.fixture
def engine() -> Iterator[tk.Engine]:
    with make_engine(autocommit=True) as made:
        yield made


# -- callbacks -------------------------------------------------------------------------------------------------------------


@pytest.mark.executors("stages", "spark")
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


def test_a_callback_cannot_create_a_table_with_rows_and_leaves_none_without(engine: tk.Engine) -> None:
    table, old = engine.create_table("t", {"x": tk.Int}), engine.create_table("old", {"x": tk.Int})
    old.insert([(7,)])
    found: list[str] = []

    def attempt(_: tk.Delta) -> None:
        for text in ("CREATE TABLE made AS SELECT 1 AS x", "CREATE OR REPLACE TABLE old AS SELECT 1 AS x"):
            with pytest.raises(tk.ConflictError) as refused:
                engine.sql(text)
            found.append(str(refused.value))

    table.subscribe(attempt, snapshot=False)
    table.insert([(5,)])
    assert len(found) == 2 and all("inside a function that the engine calls" in message for message in found)
    assert "made" not in engine.tables
    assert old.rows() == [(7,)]


def test_values_that_a_callback_could_not_bind_are_answered_later(engine: tk.Engine) -> None:
    table = engine.create_table("t", {"k": tk.Int})
    engine.sql("PREPARE of AS SELECT k FROM t WHERE k = $1")

    def attempt(_: tk.Delta) -> None:
        with pytest.raises(tk.ConflictError, match="inside a function that the engine calls"):
            engine.sql("EXECUTE of(5)")

    with table.subscribe(attempt, snapshot=False):
        table.insert([(5,)])
    assert engine.sql("EXECUTE of(5)").rows() == [(5,)]


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

    turns = 0

    async def main() -> list[list[tk.Delta]]:
        nonlocal turns
        tasks = [asyncio.create_task(read(pause)) for pause in (0, 0, 0.001, 0.01)]
        writer = Running(write)
        while writer.found is None and writer.error is None:
            turns += 1
            await asyncio.sleep(0)
        writer.result()
        return await asyncio.gather(*tasks)

    def write() -> bool:
        until(lambda: sum(bool(feed.waiters) for feed in list(core_of(view).feeds)) == 4)
        waited = turns + 10
        until(lambda: turns > waited)  # the tasks wait, the loop does not
        for x in range(100):
            table.insert([(x,)])
        table.finish()
        return True

    found = asyncio.run(main())
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
                return release.wait(PATIENCE)

        holder = Running(hold)
        held.wait(PATIENCE)
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


def test_a_task_waits_for_a_time_as_long_as_it_wants(engine: tk.Engine) -> None:
    table = engine.create_table("t", {"x": tk.Int})
    view = engine.install("all", table)
    time = table.insert([(1,)])

    async def main() -> list[bool]:
        return [
            await view.wait_async(at, timeout)
            for at, timeout in ((time, None), (time, 0), (time + 1, 0), (time + 1, 0.01))
        ]

    assert asyncio.run(main()) == [True, True, False, False]
    with pytest.raises(tk.IncorrectError, match="a timeout is a number of seconds"):
        asyncio.run(view.wait_async(time, "1"))  # type: ignore[arg-type]


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
    snapshot = Running(lambda: view.snapshot(at=1, timeout=PATIENCE))
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
