"""Whatever ends a call that reads, tells or stores changes, at whatever line: each change is told once.

The lines of each call are counted; then it is ended at some of them, each time in an engine of its own, and what its followers
are told by then and later is compared with what there is.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tektite as tk
from tektite.engine.core import core_of
from tektite.trace.chunk import Chunk
from tests.engine.test_interrupts import ERRORS, points
from tests.support.fault_injection import Injector

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

Row = tuple[Any, ...]


class Followed:
    """A table, a view that counts its rows, and what a follower was told."""

    def __init__(self, folder: Path | None = None) -> None:
        self.engine = tk.Engine(storage=folder)
        self.table = self.engine.create_table("t", {"k": tk.Int, "s": tk.String})
        self.view = self.engine.install("v", self.table.count(by=("k", "s")))
        self.table.insert([(1, "a"), (2, "b")])
        self.told: Counter[Row] = Counter()

    def change(self) -> None:
        """Two epochs."""
        self.table.insert([(1, "c")])
        self.table.remove([(1, "a")])

    def note(self, table: pa.Table) -> None:
        """Add changes up, whose last column is the diff."""
        for *row, diff in zip(*[column.to_pylist() for column in table.columns], strict=True):
            self.told[tuple(row)] += diff

    def wanted(self) -> Counter[Row]:
        """What the view should hold."""
        return Counter({(*row, many): 1 for row, many in Counter(self.table.rows()).items()})


def each_ended(prepare: Callable[[], tuple[Followed, Callable[[], Any]]], error: type[BaseException]) -> Any:
    """Worlds in which a call was ended at some line, and where that was."""
    injector = Injector()
    world, call = prepare()
    injector.call(call)
    world.engine.close()
    assert injector.lines > 20
    for at in points(injector.lines):
        world, call = prepare()
        injector.call(call, at, error)
        yield world, injector.where
        world.engine.close()


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("way", ["poll", "next", "table", "part of a view"])
def test_a_subscription_tells_each_change_once(way: str, error: type[BaseException]) -> None:
    def prepare() -> tuple[Followed, Callable[[], Any]]:
        world = Followed()
        if way == "part of a view":
            subscription = world.engine.sql("SUBSCRIBE SELECT k, s FROM t WHERE k = $1", [1]).subscription
            assert subscription is not None
        else:
            subscription = world.view.subscribe()
        subscriptions[world] = subscription
        if way != "table":
            drain(world)
        world.change()

        def read() -> None:
            if way == "table":
                table = subscription.table()
                world.note(table.remove_column(table.num_columns - 2))
            else:
                delta = next(subscription) if way == "next" else subscription.poll(0)
                assert delta is not None
                world.note(delta.table)

        return world, read

    def drain(world: Followed) -> None:
        while (delta := subscriptions[world].poll(0)) is not None:
            world.note(delta.table)

    subscriptions: dict[Followed, tk.Subscription] = {}
    for world, where in each_ended(prepare, error):
        world.table.insert([(1, "d")])
        drain(world)
        rows = Counter(row for row in world.table.rows() if row[0] == 1)
        wanted = rows if way == "part of a view" else world.wanted()
        assert {row: many for row, many in world.told.items() if many} == wanted, where
        subscriptions.pop(world).close()


def test_who_waits_holds_no_lock_that_an_interrupt_could_leave_taken() -> None:
    found: list[str] = []

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code.co_filename == threading.__file__:  # locks of threading.Event are taken by code of Python
            found.append(f"{frame.f_code.co_qualname} {event}")
        return None

    world = Followed()
    subscription = world.view.subscribe(snapshot=False)
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        assert subscription.poll(0.01) is None
        assert not world.view.wait(1000, 0.01)
    finally:
        sys.settrace(before)
        world.engine.close()
    assert not found


@pytest.mark.parametrize("error", ERRORS)
def test_a_callback_that_goes_on_is_told_each_change_once(
    error: type[BaseException], caplog: pytest.LogCaptureFixture
) -> None:
    def prepare() -> tuple[Followed, Callable[[], Any]]:
        world = Followed()
        listeners[world] = world.view.subscribe(lambda delta: world.note(delta.table))
        return world, lambda: world.table.insert([(1, "c")])

    caplog.set_level(logging.CRITICAL)
    listeners: dict[Followed, tk.Listener] = {}
    for world, where in each_ended(prepare, error):
        world.table.insert([(1, "d")])
        if (
            not listeners.pop(world).closed and "subscription.py" not in where
        ):  # the line on which the function is called
            assert {row: many for row, many in world.told.items() if many} == world.wanted(), where


@pytest.mark.parametrize("error", ERRORS)
def test_a_published_view_is_stored_as_it_is(tmp_path: Path, error: type[BaseException]) -> None:
    def prepare() -> tuple[Followed, Callable[[], Any]]:
        world = Followed(tmp_path / str(len(folders)))
        folders[world] = tmp_path / str(len(folders))
        world.view.persist()
        world.engine.sync()
        return world, world.change

    folders: dict[Followed, Path] = {}
    for world, where in each_ended(prepare, error):
        world.table.insert([(1, "d")])
        wanted = None if world.view.failure is not None else Counter(world.view.multiplicities())
        world.engine.close()
        if wanted is not None:
            assert stored(folders[world]) == wanted, where


def stored(folder: Path) -> Counter[Row]:
    """What a storage holds of the view, by its words and texts."""
    with tk.Engine(storage=folder) as engine:
        storage = core_of(engine).storage
        assert storage is not None
        state, files = storage.writer.manifest.state, storage.writer.files
        parts = [files.batch(state, live) for live in state.live("v", 0)]
        words = np.concatenate([Chunk(part.head, part.memory).to_array() for part in parts], axis=1)
        rows = tk.Schema(k=int, s=str, count=int).decode_rows(
            np.ascontiguousarray(words[:3]), core_of(engine).dictionary
        )
        found: Counter[Row] = Counter()
        for row, diff in zip(rows, words[-1].tolist(), strict=True):
            found[row] += diff
        return Counter({row: many for row, many in found.items() if many})


@pytest.mark.parametrize("error", ERRORS)
def test_a_block_that_nobody_disturbs_is_over_when_it_is_left(error: type[BaseException]) -> None:
    def prepare() -> tuple[Followed, Callable[[], Any]]:
        world = Followed()
        return world, lambda: world.table.set(tk.col("k") == 1, s="z")

    for world, where in each_ended(prepare, error):
        lock = core_of(world.engine).lock
        free: list[bool] = []
        other = threading.Thread(target=take_all, args=([lock.held, lock.undisturbed], free))
        other.start()
        other.join()
        assert free == [True, True], where
        assert sorted(world.table.rows()) in ([(1, "a"), (2, "b")], [(1, "z"), (2, "b")]), where


def take_all(locks: list[Any], free: list[bool]) -> None:
    """Note of each lock whether this thread can have it."""
    for lock in locks:
        free.append(lock.acquire(timeout=10))
        if free[-1]:
            lock.release()
