"""Subscription: the changes of a view or a table, epoch by epoch, for a thread, a task or a callback.

What a subscription yields adds up: the sum of all deltas with times up to t is what the view or table holds at t. Each change
is told exactly once, however far behind its reader is, and whatever ends a call that reads. Waiting needs no thread and does
not hold the engine's lock.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import AsyncIterator, Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import pyarrow as pa

from tektite.engine.backlog import Backlog, Delta
from tektite.engine.change_feed import ChangeFeed
from tektite.engine.lock import EngineLock, guarded
from tektite.engine.notices import Waiter, wait_in_task, wait_in_thread
from tektite.engine.routing import RoutedAnswer, RoutedFeed
from tektite.errors import ConflictError, IncorrectError
from tektite.unknown_options import explains_options
from tektite.values.python_values import python_list

if TYPE_CHECKING:
    from tektite.engine.input_core import InputCore
    from tektite.engine.table import Table
    from tektite.engine.view import View
    from tektite.engine.view_core import ViewCore
    from tektite.values.schema import Schema


class Change(NamedTuple):
    """One row of a view changed its multiplicity by `diff` at `time`.

    >>> import tektite as tk
    >>> engine = tk.Engine()
    >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
    >>> subscription = sales.subscribe()
    >>> _ = sales.insert([("north", 3)])
    >>> subscription.changes()
    [Change(row=('north', 3), time=0, diff=1)]
    """

    row: tuple[Any, ...]
    time: int
    diff: int


class _End:
    """Stands for the end of a subscription where a delta could be."""


_END = _End()


@explains_options
class Subscription:
    """The changes of a view or a table as they happen. Made by `View.subscribe` and `Table.subscribe`.

    Iterating waits for the next `Delta`; it ends when the subscription or the engine is closed, or when the view can not change
    any more because its tables have ended. A view that is dropped or fails raises. `async for` does the same in a task.

    >>> import tektite as tk
    >>> engine = tk.Engine()
    >>> edges = engine.create_table("edges", {"src": tk.Int, "dst": tk.Int})
    >>> degrees = engine.install("degrees", edges.count(by="src"))
    >>> _ = edges.insert([(1, 2)])
    >>> with degrees.subscribe() as subscription:
    ...     print(subscription.poll(0))
    ...     _ = edges.insert([(1, 3)])
    ...     time, table = next(subscription)
    ...     print(time, table.to_pylist(), subscription.poll(0))
    Delta(time=0, table=pyarrow.Table
    src: int64
    count: int64
    diff: int64
    ----
    src: [[1]]
    count: [[1]]
    diff: [[1]])
    1 [{'src': 1, 'count': 1, 'diff': -1}, {'src': 1, 'count': 2, 'diff': 1}] None
    """

    def __init__(
        self,
        view: InputCore | ViewCore,
        snapshot: bool,
        progress: bool,
        since: int | None,
        feed: ChangeFeed | RoutedFeed | None = None,
    ) -> None:
        self._progress = progress
        self._feed = feed = feed or ChangeFeed(view, snapshot, since)
        self._backlog = Backlog(feed, progress)
        self._blamed: tuple[int, str] | None = None
        """The epoch and the message of the last row's error that was raised."""
        self._has_ended = False
        """Whether there is nothing more to collect."""
        self._is_closed = False
        weakref.finalize(self, feed.abandon).atexit = False
        self._release: Callable[[], object] | None = None

    @property
    def _view(self) -> InputCore | ViewCore:
        return self._feed.view

    @property
    def schema(self) -> Schema:
        """The columns of the rows whose changes it tells.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> sales.subscribe().schema.names
        ('shop', 'amount')
        """
        return self._feed.schema

    @property
    def lock(self) -> EngineLock:
        """The engine's, which guards everything that changes it."""
        return self._view.engine.lock

    @property
    def source(self) -> Table | View | RoutedAnswer:
        """The view or table whose changes it tells, or the part of a view that it follows.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> sales.subscribe().source.name
        'sales'
        """
        return self._feed.source

    @property
    def time(self) -> int:
        """The last time that it has told everything of, or will tell without waiting.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> subscription = sales.subscribe()
        >>> _ = sales.insert([("north", 3), ("south", 5)])
        >>> _ = subscription.poll(0)
        >>> subscription.time
        0
        """
        return self._backlog.told

    @property
    def closed(self) -> bool:
        """Whether nothing comes any more, but for what was collected before.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> subscription = sales.subscribe()
        >>> subscription.close()
        >>> subscription.closed
        True
        """
        return self._has_ended or not self._feed.is_open

    # ------------------------------------------------------------------ reading

    def poll(self, timeout: float | None = None) -> Delta | None:
        """The next delta. Waits for it, for at most `timeout` seconds, after which it returns None; `poll(0)` does not wait.

        While a row fails that the view depends on, this raises the row's error, once for every epoch; what changes meanwhile is
        told when the row is gone. Who asks only then hears of no error. A subscription that has ended raises a `ConflictError`.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> subscription = sales.subscribe()
        >>> subscription.poll(0) is None
        True
        >>> _ = sales.insert([("north", 3)])
        >>> subscription.poll(timeout=5).table.to_pylist()
        [{'shop': 'north', 'amount': 3, 'diff': 1}]
        """
        check_timeout(timeout)
        call = object()
        try:
            found = self._next(call, timeout)
            if isinstance(found, _End):
                raise ConflictError(
                    f"the subscription to {self._view.kind} {self._view.name!r} has ended: {self._reason()}"
                )
            return found
        except BaseException:
            self._backlog.give_back(call)
            raise

    def __iter__(self) -> Iterator[Delta]:
        return self

    def __next__(self) -> Delta:
        call = object()
        try:
            found = self._next(call, None)
            if found is None or isinstance(found, _End):
                raise StopIteration
            return found
        except BaseException:
            self._backlog.give_back(call)
            raise

    def __aiter__(self) -> AsyncIterator[Delta]:
        return self

    async def __anext__(self) -> Delta:
        call = object()
        try:
            delta = self._backlog.pop(call)
            if delta is not None:
                return delta
            found: Delta | _End = await wait_in_task(self._waiters(), self._collect, lambda: self._look(call))
            if isinstance(found, _End):
                raise StopAsyncIteration
            return found
        except BaseException:
            self._backlog.give_back(call)
            raise

    @guarded
    def table(self) -> pa.Table:
        """All that can be told without waiting, in one table: the columns `time` and `diff` stand behind the data. Raises if
        there is nothing more, because the view was dropped or has failed.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> subscription = sales.subscribe()
        >>> _ = sales.insert([("north", 3)])
        >>> _ = sales.remove([("north", 3)])
        >>> subscription.table().to_pylist()
        [{'shop': 'north', 'amount': 3, 'time': 0, 'diff': 1}, {'shop': 'north', 'amount': 3, 'time': 1, 'diff': -1}]
        """
        call = object()
        try:
            self._collect()
            if self._has_ended and not len(self._backlog):
                self._raise_why_ended()
            return self._backlog.rest(call, self._feed.empty())
        except BaseException:
            self._backlog.give_back(call)
            raise

    def changes(self) -> list[Change]:
        """All that can be told without waiting, row by row.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> edges = engine.create_table("edges", {"src": tk.Int, "dst": tk.Int})
        >>> subscription = engine.install("degrees", edges.count(by="src")).subscribe()
        >>> _ = edges.insert([(1, 2)])
        >>> subscription.changes()
        [Change(row=(1, 1), time=0, diff=1)]
        """
        columns = [python_list(column) for column in self.table().columns]
        return [Change(values[:-2], *values[-2:]) for values in zip(*columns, strict=True)]

    def _next(self, call: object, timeout: float | None) -> Delta | _End | None:
        delta = self._backlog.pop(call)
        if delta is not None:
            return delta

        def look(deadline: float | None) -> Delta | _End | None:
            self._collect(deadline)
            return self._look(call)

        found: Delta | _End | None = wait_in_thread(self._waiters(), look, timeout, self._view.engine.check_may_wait)
        return found

    def _waiters(self) -> list[dict[Waiter, None]]:
        """The registers of threads and tasks that wait. A row's error may appear and disappear in an epoch that does not change
        the view.
        """
        at_each_epoch = self._progress or bool(self._view.errors)
        found = [self._feed.waiters]
        return [*found, self._view.engine.notices.at_each_epoch] if at_each_epoch else found

    def _look(self, call: object) -> Delta | _End | None:
        """The collected changes; the end, if there is nothing more to collect."""
        has_ended = self._has_ended  # before the look: whoever sets it has filled the backlog
        found = self._backlog.pop(call)
        if found is not None or not has_ended:
            return found
        self._raise_why_ended()
        return _END

    def _raise_why_ended(self) -> None:
        """Raise the error that ended the subscription, if one did."""
        error = None if self._is_closed else self._feed.why_ended()
        if error is not None:
            raise error

    @guarded
    def _collect(self, deadline: float | None = None) -> None:
        """Bring the view up to date, or as far as it comes until the deadline, and take what has changed. Does nothing while
        something waits to be yielded.
        """
        feed = self._feed
        if len(self._backlog) or self._has_ended:
            return
        while True:
            if feed.is_open:
                feed.view.engine.finish(feed.view, deadline)
                feed.recover()
            view = feed.view
            if feed.is_open and self._is_blocked():
                return
            self._backlog.fill()
            if len(self._backlog) or not feed.is_open or view.engine.is_finished(view, deadline):
                break
        if not feed.is_open or view.closed:
            self._has_ended = True

    def _is_blocked(self) -> bool:
        """Whether a row fails that the view depends on. Raises its error, unless it has for this epoch."""
        view = self._view
        error = view.error_at(view.low - 1) if view.errors and view.low > view.first else None
        if error is None:
            self._blamed = None
            return False
        blamed = view.low, str(error)
        if blamed != self._blamed:
            self._blamed = blamed
            raise error
        return True

    def _reason(self) -> str:
        if self._is_closed:
            return "it was closed"
        if self._view.engine.is_closed:
            return "the engine was closed"
        return "every table that the view reads has ended" if self._view.kind == "view" else "the table has ended"

    # ------------------------------------------------------------------ the end

    @guarded
    def close(self) -> None:
        """Collect no more changes; whoever waits for one waits no longer. Closing twice is harmless.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> with sales.subscribe() as subscription:
        ...     pass
        >>> subscription
        <Subscription to table 'sales', closed>
        """
        self._is_closed = self._has_ended = True
        self._backlog.clear()
        self._feed.end(forget=True)
        if self._release is not None:
            self._release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        told = self._backlog.told
        state = "closed" if self.closed else f"told up to time {told}" if told >= 0 else "nothing told yet"
        return f"<Subscription to {self._view.kind} {self._view.name!r}, {state}>"


@explains_options
class Listener:
    """A callback with the changes of a view or a table, until it is closed. Made by `View.subscribe(callback)`.

    The view keeps it: a program that never ends the subscription need not hold this.

    >>> import tektite as tk
    >>> engine = tk.Engine()
    >>> edges = engine.create_table("edges", {"src": tk.Int, "dst": tk.Int})
    >>> degrees = engine.install("degrees", edges.count(by="src"))
    >>> listener = degrees.subscribe(lambda delta: print(delta.time, delta.table.to_pylist()))
    >>> _ = edges.insert([(1, 2)])
    0 [{'src': 1, 'count': 1, 'diff': 1}]
    >>> listener.close()
    >>> _ = edges.insert([(1, 3)])
    """

    def __init__(
        self,
        view: InputCore | ViewCore,
        function: Callable[[Delta], None],
        snapshot: bool,
        progress: bool,
        since: int | None,
    ) -> None:
        self._view = view
        self._feed = feed = ChangeFeed(view, snapshot, since)
        backlog = Backlog(feed, progress)

        def deliver() -> None:
            if not len(backlog):  # an interrupt may have left some
                backlog.fill()
            while feed.is_open and (delta := backlog.pop()) is not None:
                function(delta)

        feed.call(function, deliver)
        if progress:
            view.engine.notices.at_each_epoch[feed] = None

    def __repr__(self) -> str:
        return f"<Listener to {self._view.kind} {self._view.name!r}, {'closed' if self.closed else 'open'}>"

    @property
    def lock(self) -> EngineLock:
        """The engine's, which guards everything that changes it."""
        return self._view.engine.lock

    @property
    def closed(self) -> bool:
        """Whether it is called no more: it was closed or has raised, or the view was dropped or has failed.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> listener = sales.subscribe(print)
        >>> listener.closed
        False
        """
        return not self._feed.is_open

    @guarded
    def close(self) -> None:
        """Call it no more. Closing twice is harmless.

        >>> import tektite as tk
        >>> engine = tk.Engine()
        >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
        >>> listener = sales.subscribe(print)
        >>> listener.close()
        >>> _ = sales.insert([("north", 3)])
        """
        self._feed.end(forget=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def check_timeout(timeout: float | None) -> None:
    """Refuse a timeout that is no number of seconds."""
    if timeout is not None and (not isinstance(timeout, int | float) or not 0 <= timeout <= threading.TIMEOUT_MAX):
        raise IncorrectError(f"a timeout is a number of seconds from 0 on, or None to wait forever, not {timeout!r}")


def release_with(subscription: Subscription, function: Callable[[], None]) -> None:
    """Have a function called once, when a subscription is closed or nobody holds it any more: in any thread, without a lock."""
    finalizer = weakref.finalize(subscription, function)
    finalizer.atexit = False
    subscription._release = finalizer


def watch(subscription: Subscription, waiter: Waiter, each_epoch: bool) -> None:
    """Have a waiter notified whenever there may be something to collect: at each epoch, or when something has changed or a row
    may fail. Until `unwatch`.
    """
    view = subscription._view
    subscription._feed.waiters[waiter] = None
    if each_epoch or view.errors:
        view.engine.notices.at_each_epoch[waiter] = None


def unwatch(subscription: Subscription, waiter: Waiter) -> None:
    """Notify a waiter no more. May be repeated."""
    for registered in (subscription._feed.waiters, subscription._view.engine.notices.at_each_epoch):
        registered.pop(waiter, None)


def is_current(subscription: Subscription) -> bool:
    """Whether its view is up to date: collecting takes no longer than decoding what waits."""
    view = subscription._view
    return view.failure is None and view.engine.is_current(view)
