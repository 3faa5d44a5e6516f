"""SharedFeed: the changes of a table or a view for all its subscribers, collected once and encoded once.

A feed keeps the history of the last `lease_seconds` readable. So a subscriber that was disconnected, or did not read for a while,
goes on from the last time that it was told completely, without loss or repetition; later than that it is told that the history is
gone. With a storage, nothing is told before it is durable: what a subscriber knows survives the process.

When nobody is interested any more, a feed waits as long for somebody to come back, and then goes, with the dataflow that was
installed for it.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from tektite.engine.core import core_of
from tektite.engine.subscription import Subscription, is_current, unwatch, watch
from tektite.errors import IncorrectError, TektiteError
from tektite.server.granularity import Granularity, coalesced
from tektite.server.work import CancellableCall
from tektite.sql.statements.shared_queries import SharedAnswer
from tektite.wire.failures import HistoryGone
from tektite.wire.messages import arrow_bytes, text_of
from tektite.wire.rows import table_as_data

if TYPE_CHECKING:
    from tektite.engine.holds import Held
    from tektite.engine.table import Table
    from tektite.engine.view import View
    from tektite.server.server import Server

Form = Literal["json", "arrow"]
"""The format of tables that a client asked for."""

TELLING = 1e-4
"""Seconds that telling one subscriber counts for at most: it takes a tenth, and what a busy machine adds to that is no reason to
let few subscribers wait.
"""
SHORT = 500
"""Rows up to which changes are encoded in the event loop: that takes about as long as a worker's turn."""


class FeedSource(NamedTuple):
    """The table, view or query that a feed reads."""

    relation: Table | View | SharedAnswer
    release: Callable[[], None] | None
    """Removes the dataflow that was installed for the feed; called when the last subscriber has gone."""
    disclosed: Callable[[TektiteError], TektiteError] = lambda error: error
    """Removes from an error what the users of the feed may not see. Called with the engine's lock held."""


@dataclass
class FeedChanges:
    """The changes after one time, up to another."""

    start: int
    """The last time before."""
    told: int
    """The last time that is complete."""
    table: pa.Table
    """The changed rows, with the columns `time` and `diff`."""
    error: TektiteError | None = None
    """The error of a row that the view depends on: nothing is told while it is there."""
    end: TektiteError | Literal[True] | None = None
    """That nothing follows, and why, if it is an error."""
    encoded: dict[Form, bytes] = field(default_factory=dict)

    def encode(self, form: Form) -> bytes:
        """The table in a form, made once."""
        found = self.encoded.get(form)
        if found is None:
            found = arrow_bytes(self.table) if form == "arrow" else text_of(table_as_data(self.table))
            self.encoded[form] = found
        return found


class DataflowReplaced(Exception):  # noqa: N818 # no client sees it
    """Another dataflow answers, from a time on that the feed has not come to."""


class Subscriber(Protocol):
    """The subscribers."""

    form: Form

    def deliver(self, changes: FeedChanges) -> None:
        """Take changes, in the event loop, without waiting."""


def collected(subscription: Subscription, start: int) -> FeedChanges:
    """The changes of a subscription after the last time that was delivered. Called with the engine's lock held."""
    try:
        table = subscription.table()
    except TektiteError as error:
        empty = subscription.schema.arrow.empty_table()
        if subscription.closed:
            return FeedChanges(start, start, empty, end=error)
        return FeedChanges(start, start, empty, error=error)
    end: TektiteError | Literal[True] | None = None
    if subscription.closed:  # why is said behind the last changes
        end = True
        try:
            while (more := subscription.table()).num_rows:
                table = pa.concat_tables([table, more])
        except TektiteError as error:
            end = error
    told = max(subscription.time, start)
    names = [*subscription.schema.names, "time", "diff"]
    return FeedChanges(start, told, table.rename_columns(names), end=end)


class SharedFeed:
    """One feed. All methods are called in the event loop, but those that say otherwise."""

    def __init__(self, server: Server, source: FeedSource, granularity: Granularity, progress: bool) -> None:
        """Called in a worker with the engine's lock held."""
        self._server = server
        self._loop = server.loop
        self._core = core_of(server.engine)
        self.source = source
        self._granularity = granularity
        self._progress = progress
        self._subscription = source.relation.subscribe(snapshot=False, progress=True)
        self.told = self._subscription.time
        """The last time that all subscribers can be told of."""
        self.end: TektiteError | Literal[True] | None = None
        self.error: TektiteError | None = None
        """The error after the last time that was delivered. Nothing is delivered until it is gone."""
        self.subscribers: dict[Subscriber, None] = {}
        self._waiting: list[pa.Table] = []
        """FeedChanges that the granularity holds back."""
        self._held: Held | None = None
        self._holding: object = None
        """The relation whose history is held."""
        self._past: deque[tuple[float, int]] = deque()
        """Moments of the clock, each with the time that was delivered then. The hold moves by them."""
        self._hold(self.told)
        self._is_closed = False
        self._is_woken = False
        self._is_collecting = False
        self._is_due_again = False
        self._heartbeat: asyncio.TimerHandle | None = None
        self._later: asyncio.TimerHandle | None = None
        self.cost = 0.0
        """Seconds that a delivery to all subscribers takes: a moving average."""
        self._rested = 0.0
        """The moment at which the last delivery to all subscribers ended."""
        self._begun = self._done = 0
        """Counts of collections and of deliveries."""
        self._refreshing: list[asyncio.Future[None]] = []
        self._empty = collected(self._subscription, self.told).table
        watch(self._subscription, self, each_epoch=progress)

    # ------------------------------------------------------------------ collecting

    def notify(self) -> None:
        """There may be changes. Called in any thread, with the engine's lock held."""
        if not self._is_woken:
            self._is_woken = True
            self._loop.call_soon_threadsafe(self._wake)

    def is_waiting(self) -> bool:
        """Always false: the engine does not have to repeat a notification."""
        return False

    def _wake(self) -> None:
        if self._later is None and not self._is_collecting:
            delay = max(self._granularity.seconds, self._rested + self._server.feeds.pause - time.monotonic())
            if delay > 0:
                self._later = self._loop.call_later(delay, self._collect)
            else:
                self._collect()
        else:
            self._is_due_again = True

    def _collect(self) -> None:
        """Take what has changed: here, if the engine is free and the view up to date, or else in a worker."""
        self._later = None
        self._is_woken = self._is_due_again = False
        if self.end is not None or self._core.is_closed:
            return
        self._is_collecting = True
        self._begun += 1
        held = self._core.lock.held
        if held.acquire(blocking=False):
            try:
                self._core.lock.roll_forward()
                changes = self._take() if is_current(self._subscription) else None
            except Exception as error:
                changes = self._failed(error)
            finally:
                held.release()
            if changes is not None:
                self._encode(changes)
                return
        self._in_worker(self._take_in_worker, self._encode)

    def _failed(self, error: BaseException) -> FeedChanges:
        """The end of the feed, which could not be told anything."""
        self._server.log.error("internal error", where="feed", error=repr(error))
        end = HistoryGone("the subscription failed: the server's log says more")
        return FeedChanges(self.told, self.told, pa.table({}), end=end)

    def _in_worker(self, function: Callable[[], FeedChanges], then: Callable[[FeedChanges], None]) -> None:
        future = self._server.workers.start(CancellableCall(function))

        def done(future: asyncio.Future[FeedChanges]) -> None:
            if future.cancelled():
                return  # the server stops
            error = future.exception()
            then(future.result() if error is None else self._failed(error))

        future.add_done_callback(done)

    def _take_in_worker(self) -> FeedChanges:
        with self._core.lock.held:
            self._core.lock.roll_forward()
            return self._take()

    def _take(self) -> FeedChanges:
        """Called with the engine's lock held."""
        found = self._disclosed(collected(self._subscription, self.told))
        if found.error is None and self._held is not None:
            self._move_hold()
        told = self._granularity.cut(found, self._waiting)
        if self._granularity.epochs > 1 and not self._is_closed:
            # Any epoch may be the one at which what waits is told, also one that changes nothing here.
            unwatch(self._subscription, self)
            watch(self._subscription, self, each_epoch=self._progress or bool(self._waiting))
        return told

    def _disclosed(self, changes: FeedChanges) -> FeedChanges:
        """Changes with errors as the feed's users may know them. Called with the engine's lock held."""
        if changes.error is not None:
            changes.error = self.source.disclosed(changes.error)
        if isinstance(changes.end, TektiteError):
            changes.end = self.source.disclosed(changes.end)
        return changes

    def _encode(self, changes: FeedChanges) -> None:
        if changes.table.num_rows <= SHORT:
            self._until_durable(changes)
            return
        forms: set[Form] = {subscriber.form for subscriber in self.subscribers}

        def encode() -> FeedChanges:
            for form in forms:
                changes.encode(form)
            return changes

        self._in_worker(encode, self._until_durable)

    def _until_durable(self, changes: FeedChanges) -> None:
        waiting = self._server.epochs.durable_soon()
        if waiting is None or not (changes.told > self.told or changes.table.num_rows):
            self._tell(changes)
        else:
            waiting.add_done_callback(lambda done: None if done.cancelled() else self._tell(changes))

    def _tell(self, changes: FeedChanges) -> None:
        self._is_collecting = False
        if changes.error is not None or changes.told > self.told:  # a subscription says an error once
            self.error = changes.error
        self.told = max(changes.told, self.told)
        if changes.end is not None:
            self.end = changes.end
        began = time.monotonic()
        for subscriber in list(self.subscribers):
            subscriber.deliver(changes)
        self._rested = time.monotonic()
        if changes.table.num_rows:
            taken = min(self._rested - began, TELLING * len(self.subscribers))
            self._set_cost(0.8 * self.cost + 0.2 * taken)
        self._done += 1
        told, self._refreshing = self._refreshing, []
        for future in told:
            if not future.done():
                future.set_result(None)
        if self._is_due_again and self.end is None:
            self._is_due_again = False
            self._wake()

    def _set_cost(self, seconds: float) -> None:
        self._server.feeds.cost += seconds - self.cost
        self.cost = seconds

    # ------------------------------------------------------------------ subscribers

    async def refresh(self) -> None:
        """Wait until everything that was committed before this call is told, as far as the granularity lets it."""
        awaited = self._begun + 1
        while self._done < awaited and self.end is None:
            done = self._loop.create_future()
            self._refreshing.append(done)
            self._is_due_again = True
            if not self._is_collecting:
                if self._later is not None:
                    self._later.cancel()
                self._collect()
            await done

    def fetch(self, since: int | None, upto: int, slow: bool) -> FeedChanges:
        """The changes after `since`, or the contents without it, up to a time that was delivered to all. A slow subscriber gets
        them as of that time alone. Called in a worker, with the engine's lock held. Raises `DataflowReplaced` if another one has
        begun to answer behind that time: the feed is about to tell the difference.
        """
        relation, core = self.source.relation, core_of(self.source.relation)
        start = -1 if since is None else since
        begun = relation.begun if isinstance(relation, SharedAnswer) else 0
        if upto < begun:
            raise DataflowReplaced
        if since is not None and since < begun:
            self.check_held(since)
        if upto < core.first or (since is None and core.is_stream):
            return FeedChanges(start, upto, self._empty)
        is_new = since is None or since < core.first
        try:
            subscription = relation.subscribe(snapshot=is_new, progress=True, since=upto if is_new else since)
        except TektiteError as error:
            if isinstance(relation, SharedAnswer) and core.dropped:
                raise DataflowReplaced from None  # the feed is about to tell what follows, or why nothing does
            if core.dropped or core.failure is not None:
                raise self.source.disclosed(error) from None
            raise HistoryGone(
                f"the changes of {relation.name!r} behind time {start} are not held ({error}): subscribe again, with a snapshot"
            ) from None
        try:
            found = self._disclosed(collected(subscription, start))
        finally:
            subscription.close()
        if found.error is not None:
            return found
        kept = found.table.filter(pc.less_equal(found.table.column(-2), pa.scalar(upto)))
        found = FeedChanges(start, upto, kept)
        return coalesced(found) if slow or self._granularity.is_some else found

    def check_held(self, since: int) -> None:
        """Refuse a time behind which the changes cannot be told. Called in a worker, with the engine's lock held."""
        core, name = core_of(self.source.relation), self.source.relation.name
        if since > self.told:
            raise IncorrectError(f"time {since} is not closed yet: {name!r} has been told up to time {self.told}")
        try:
            core.check_readable(since)
            if isinstance(self.source.relation, SharedAnswer):
                self.source.relation.check_held(since)
        except TektiteError as error:
            raise HistoryGone(
                f"the changes of {name!r} behind time {since} are not held ({error}): subscribe again, with a snapshot"
            ) from None

    def add(self, subscriber: Subscriber) -> None:
        """Tell somebody from here on."""
        self.subscribers[subscriber] = None
        if self._heartbeat is None and self._server.plan.limits.lease_seconds:
            self._heartbeat = self._loop.call_later(self._server.plan.limits.lease_seconds / 4, self._beat)

    def remove(self, subscriber: Subscriber) -> None:
        """Tell somebody no more. May be repeated."""
        self.subscribers.pop(subscriber, None)

    def _beat(self) -> None:
        """Tell everybody now and then how far time has come, so that they can resume though nothing has changed."""
        lease = self._server.plan.limits.lease_seconds
        self._heartbeat = self._loop.call_later(lease / 4, self._beat)
        if not self._is_collecting and self._later is None:
            self._collect()

    def close(self) -> None:
        """End it, and what was installed for it. Closing twice is harmless."""
        if self._is_closed:
            return
        self._is_closed = True
        self.end = self.end or True
        self._set_cost(0.0)
        for timer in (self._heartbeat, self._later):
            if timer is not None:
                timer.cancel()

        def end() -> None:
            with self._core.lock.held:
                self._core.lock.roll_forward()
                unwatch(self._subscription, self)
                self._subscription.close()
                held, self._held = self._held, None  # what is collected behind this moves no hold
                if held is not None:
                    held.release()
                if self.source.release is not None:
                    self.source.release()

        self._server.release(end)

    # ------------------------------------------------------------------ history

    def _hold(self, at: int) -> None:
        """Keep the history from a time on readable. Called with the engine's lock held."""
        core = core_of(self.source.relation)
        if core.is_stream or not self._server.plan.limits.lease_seconds:
            return
        before, self._holding = self._held, core
        readable = max(min([t[0] for t in core.trace.since()], default=0), core.first, 0)
        self._held = self._server.engine.hold(core.facade, max(at, readable))
        self._past.append((time.monotonic(), self._held.at))
        if before is not None:
            before.release()

    def _move_hold(self) -> None:
        """Let go of history that is older than the lease. Called with the engine's lock held."""
        if (
            core_of(self.source.relation) is not self._holding
        ):  # another dataflow answers: of the one before there is no history
            self._past.clear()
            self._hold(0)
        moment, lease = time.monotonic(), self._server.plan.limits.lease_seconds
        told = max(self.told, 0)
        if told > self._past[-1][1] and moment - self._past[-1][0] > lease / 8:
            self._past.append((moment, told))
        old = None
        while len(self._past) > 1 and self._past[1][0] < moment - lease:
            self._past.popleft()
            old = self._past[0][1]
        if old is not None:
            before, self._held = self._held, self._server.engine.hold(core_of(self.source.relation).facade, old)
            if before is not None:
                before.release()
