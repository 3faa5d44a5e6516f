"""Notices: who is told when an epoch has closed.

To wait, a thread or task registers a `Waiter`, then checks, and waits only if there was nothing: a later event wakes it.
Threads wait for an event and tasks for a future, without the engine's lock. The engine gives notices behind each commit and
each turn of views, with the lock held. Two kinds are told: followers of views that have changed (`woken`), and those who want to
know about every epoch (`at_each_epoch`). Without any of them, an epoch costs two looks at empty containers.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    import asyncio

    from tektite.runtime.coordinator import Coordinator

T = TypeVar("T")


class Waiter(Protocol):
    """Somebody who wants to be told."""

    def notify(self) -> None:
        """Something has happened. May be called by any thread, also in vain."""


class Follower(Waiter, Protocol):
    """A waiter that is woken by changes."""

    def is_waiting(self) -> bool:
        """Whether it has to be told again, because what woke it can not be read yet."""


class Notices:
    """The threads, tasks and callbacks that wait for changes of one engine. Adding to the containers needs no lock."""

    def __init__(self) -> None:
        self.woken: deque[Follower] = deque()
        """Followers with changes that they have not been told of."""
        self._again: deque[Follower] = deque()
        """Followers that have to be told once more the next time."""
        self.at_each_epoch: dict[Waiter, None] = {}
        """Told whenever an epoch closes, whatever it changes."""
        self._giving: Any = threading.RLock()
        """Held by whoever tells."""

    @property
    def is_due(self) -> bool:
        """Whether there is somebody to tell."""
        return bool(self.woken or self._again or self.at_each_epoch)

    def give(self, coordinator: Coordinator) -> None:
        """Tell everybody. The caller holds the lock. Callbacks count as work, inside which no epoch can be closed."""
        if coordinator.working:
            return  # a callback, or a dataflow at work, has brought a view up to date: whoever called that goes on
        try:
            try:
                if self._giving.acquire(blocking=False):  # otherwise a callback waits, and whoever called that goes on
                    self._give(coordinator)
            finally:
                self._end_giving()
        finally:  # an interrupt may have come before
            self._end_giving()

    def _end_giving(self) -> None:
        if self._giving._is_owned():
            self._giving.release()

    def _give(self, coordinator: Coordinator) -> None:
        with coordinator.turns.held:
            while self._again:  # an interrupt between the two lines tells somebody twice
                self.woken.append(self._again[0])
                self._again.popleft()
            while self.woken:
                follower = self.woken[0]
                follower.notify()
                if follower.is_waiting():
                    self._again.append(follower)
                self.woken.popleft()  # behind the notice, which an interrupt may end
            for waiter in list(self.at_each_epoch):
                waiter.notify()


class ThreadWaiter:
    """A thread that waits. An interrupt of `threading.Event` may leave the lock inside it taken, so that whoever notifies the
    thread would wait for ever, with the engine's lock. This is one lock of C's, which is free once something has happened.
    """

    def __init__(self) -> None:
        self._calm = threading.Lock()
        self._calm.acquire()

    def notify(self) -> None:
        """Let the thread look again."""
        with suppress(RuntimeError):  # it may have been told already
            self._calm.release()

    def look(self) -> None:
        """Forget what has happened so far: the thread is about to look for itself."""
        self._calm.acquire(blocking=False)

    def wait(self, seconds: float | None) -> bool:
        """Wait until something happens, or for some seconds; whether it has, since the last look or wait."""
        return self._calm.acquire(timeout=-1 if seconds is None else seconds)


class TaskWaiter:
    """A task of an event loop that waits, without holding up the loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._future: asyncio.Future[None] = loop.create_future()
        self._is_notified = False
        """Whether something has happened since the last look: the loop need not be told twice, however late it is."""

    def notify(self) -> None:
        """Let the task look again, if its loop still runs."""
        if self._is_notified:
            return
        self._is_notified = True
        try:
            self._loop.call_soon_threadsafe(self._set)
        except RuntimeError:
            return  # the loop is closed, and with it the task

    def _set(self) -> None:
        if not self._future.done():
            self._future.set_result(None)

    def look(self) -> None:
        """Forget what has happened so far: the task is about to look for itself."""
        self._future = self._loop.create_future()
        self._is_notified = False

    async def wait(self) -> None:
        """Wait until something happens."""
        await self._future


def is_over(deadline: float | None) -> bool:
    """Whether a deadline of `time.monotonic` has passed, if there is one."""
    return deadline is not None and time.monotonic() >= deadline


def wait_in_thread(
    waiters: list[dict[Waiter, None]],
    look: Callable[[float | None], T],
    timeout: float | None,
    check_may_wait: Callable[[], None],
) -> T | None:
    """Call `look` with the deadline until its result is not None, and return that; None after `timeout` seconds. Meanwhile a
    waiter is in all of `waiters`. `check_may_wait` raises where nothing could happen.
    """
    deadline = None if timeout is None else time.monotonic() + timeout
    waiter = ThreadWaiter()
    try:
        for registered in waiters:
            registered[waiter] = None
        while True:
            waiter.look()
            found = look(deadline)
            if found is not None:
                return found
            if is_over(deadline):
                return None
            check_may_wait()
            waiter.wait(None if deadline is None else max(deadline - time.monotonic(), 0))
    finally:
        for registered in waiters:
            registered.pop(waiter, None)


async def wait_in_task(waiters: list[dict[Waiter, None]], step: Callable[[], None], look: Callable[[], T | None]) -> T:
    """Call `look` until its result is not None, and return that. Before each call `step` runs in a thread of the loop's executor,
    where it may wait for the engine's lock; a task that is cancelled meanwhile loses nothing of what it has done.
    """
    import asyncio

    loop = asyncio.get_running_loop()
    waiter = TaskWaiter(loop)
    try:
        for registered in waiters:
            registered[waiter] = None
        while True:
            waiter.look()
            await loop.run_in_executor(None, step)
            found = look()
            if found is not None:
                return found
            await waiter.wait()
    finally:
        for registered in waiters:
            registered.pop(waiter, None)
