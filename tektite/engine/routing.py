"""Router: the changes of one view, sent to those who follow one value of its first column.

A view that answers many at once has the number of who asked in its first column. If everybody followed it by a feed of their own,
everybody would look at everybody's changes. A router takes each change once and gives it to the followers of its number: an epoch
costs what changed and who is concerned. Nobody is given a row of another number. Followers get rows without that column.

A view that keeps more than it may fails for all of them. If there is a `recovery`, the next follower that reads calls it, and it
lets the router go on with another view (`change_to`): followers are told the difference.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa

from tektite.dataflow.failures import KeepsTooMuch
from tektite.dataflow.output import changes_table
from tektite.engine.change_feed import ChangeFeed
from tektite.engine.lock import StepByStep
from tektite.engine.notices import Waiter
from tektite.engine.versions import in_schema_order, read_lead
from tektite.errors import TektiteError
from tektite.values.words import Words

if TYPE_CHECKING:
    from tektite.engine.view_core import ViewCore
    from tektite.values.schema import Schema

LARGE = 1 << 20
"""Bytes from which on a follower's part of some changes is copied: a part that is not holds on to all of them."""


class RoutedAnswer(Protocol):
    """The part of a view that followers of one value hold, as others hold a view."""

    @property
    def name(self) -> str:
        """Its name in messages."""

    @property
    def schema(self) -> Schema:
        """Its columns."""

    @property
    def time(self) -> int | None:
        """The last time that it answers for."""

    @property
    def _core(self) -> ViewCore:
        """The view that it is a part of."""


class RoutedFeed:
    """The changes that one follower of a value has not got yet. A subscription uses it as it uses a `ChangeFeed`."""

    def __init__(self, router: Router, value: int, source: RoutedAnswer) -> None:
        self.source = source
        """The answer that its follower holds."""
        self.schema = source.schema
        """The columns of the rows that it tells of."""
        self.waiters: dict[Waiter, None] = {}
        """Threads and tasks that wait for changes."""
        self.is_open = True
        self.upto: int | None = None
        self.reason: TektiteError | None = None
        """Why it has ended, if it alone has."""
        self.start = 0
        """Earlier changes count as changes at this time."""
        self._router = router
        self._value = value
        self._parts: dict[int, tuple[pa.Table, int, int]] = {}
        """The parts that it was given, by the router's numbers."""
        self._told = -1
        """The number of the last part that its follower was told."""

    @property
    def view(self) -> ViewCore:
        """The view whose changes it tells."""
        return self._router.view

    @property
    def low(self) -> int:
        """The first epoch that it can not tell of yet, or ever."""
        return self._router.low if self.upto is None else self.upto

    def give(self, number: int, table: pa.Table, begin: int, end: int) -> None:
        """Keep some rows of a table of changes until they are done. May be repeated."""
        if number > self._told:
            self._parts[number] = table, begin, end

    def look(self) -> tuple[pa.Table | None, Callable[[], None]]:
        """The changes since the last call; see `ChangeFeed.look`. The caller holds the lock."""
        if self.is_open:
            self._router.route()
        parts = dict(self._parts)
        if not parts:
            return None, lambda: None
        named = [table.slice(begin, end - begin).select(self._columns(table)) for table, begin, end in parts.values()]
        return pa.concat_tables(named), partial(self._done, max(parts))

    def _done(self, last: int) -> None:
        self._told = last
        for number in [each for each in self._parts if each <= last]:
            self._parts.pop(number, None)

    def _columns(self, table: pa.Table) -> list[int]:
        """The places of its own columns in a table of changes, with time and diff."""
        names = [*self.schema.names, *table.column_names[-2:]]
        return [table.column_names.index(name) for name in names]

    def recover(self) -> None:
        """Go on with another view, if this one keeps too much. The caller holds the lock."""
        self._router.recover()

    def empty(self) -> pa.Table:
        """A table of no changes."""
        found = self._router.empty
        return found.select(self._columns(found))

    def end(self, forget: bool = False) -> None:
        """Collect no more changes; see `ChangeFeed.end`. The caller holds the lock; may be repeated."""
        if self.is_open:
            if not forget:
                self._router.route()
            self.upto = self._router.low
            self.is_open = False
            self._router.remove(self._value, self)
        if forget:
            self._parts.clear()
        for waiter in list(self.waiters):
            waiter.notify()

    def abandon(self) -> None:
        """Nobody reads it any more. Called by garbage collection, in any thread at any line, and so without the lock."""
        self.is_open = False
        self._parts.clear()

    def why_ended(self) -> TektiteError | None:
        """The error that ended it."""
        view = self.view
        if self.reason is not None or self._router.reason is not None:
            return self.reason or self._router.reason
        if view.failure is not None:
            return view.failure
        return view.drop_error() if view.dropped and not view.engine.is_closed else None


class Router:
    """The followers of one view, by the values of its first column, which is a whole number. Used with the engine's lock held."""

    def __init__(self, view: ViewCore) -> None:
        self.view = view
        self.reason: TektiteError | None = None
        """Why it was closed, if followers are to be told more than that the view was dropped."""
        self.recovery: Callable[[], None] | None = None
        """Replaces the view when it keeps too much, or closes the router."""
        self._last: dict[int, Words] | None = None
        """The rows of each follower when the view failed, until the recovery."""
        self._stopped = 0
        """The first epoch that the view had no answer for then."""
        self._followers: dict[int, list[RoutedFeed]] = {}
        self._numbers = itertools.count()
        """Of parts, for feeds to know them again."""
        self._last_number = -1
        """The number of the parts of what the view told last of all."""
        self._feed = self._fed_by(view)
        self.empty = self._feed.empty()

    def _fed_by(self, view: ViewCore) -> ChangeFeed:
        feed = ChangeFeed(view, snapshot=False)
        feed.call(self.route, self.route)
        feed.waiters[self] = None
        return feed

    @property
    def low(self) -> int:
        """The first epoch that followers cannot be told of yet."""
        return self.view.low if self._last is None else self._stopped

    def _forget_feed(self) -> None:
        self._feed.waiters.pop(self, None)
        self._feed.end(forget=True)

    def notify(self) -> None:
        """The view may have failed or gone: then its followers end, behind what it had finished."""
        if self._feed.is_open:
            return
        left, done = self._feed.look()
        if left is not None:
            order = np.argsort(left.column(0).to_numpy(), kind="stable")
            if self._last_number < 0:
                self._last_number = next(self._numbers)
            self._shared(left.take(order), self._last_number)()
        done()
        if self._last is not None:
            return
        if self.recovery is not None and isinstance(self.view.failure, KeepsTooMuch):
            self._stopped = self.view.low
            self._last = {value: self._part(value) for value in self._followers}
            for feeds in self._followers.values():
                self._wake(feeds)
            return
        for feeds in list(self._followers.values()):
            for feed in feeds:
                feed.end()

    def _part(self, value: int) -> Words:
        """The rows of the view's last answer with a value in the first column."""
        view = self.view
        if view.failure is None:
            return view.words(None, True, value).copy()
        if view.low == view.first:
            return np.empty((len(view.columns) + 2, 0), np.int64)
        return in_schema_order(read_lead(view.trace, view.low - 1, value), view.columns).copy()

    @staticmethod
    def _wake(feeds: list[RoutedFeed]) -> None:
        for feed in feeds:
            if feed.waiters:
                for waiter in list(feed.waiters):
                    waiter.notify()

    def recover(self) -> None:
        """Replace a view that keeps too much, unless a callback asks: inside of one, nothing is installed."""
        if self._last is not None and self.recovery is not None and not self.view.engine.coordinator.working:
            self.recovery()

    def end(self, value: int, reason: TektiteError) -> None:
        """Follow a value no more; its followers are told why."""
        for feed in self._followers.get(value, [])[:]:
            feed.reason = reason
            feed.end()

    def follow(self, value: int, source: RoutedAnswer, snapshot: bool = True, since: int | None = None) -> RoutedFeed:
        """A feed of the rows with a value in the first column: those that are there, or were at a time `since`, if a snapshot is
        wanted; then each change behind that time.
        """
        view = self.view
        view.engine.finish(view)
        self.route()
        made = RoutedFeed(self, value, source)
        last = max(view.low - 1, view.first)
        made.start = (last if since is None else since) + (0 if snapshot else 1)
        if snapshot:
            words = view.words(since, True, value).copy()
            words[-2] = made.start
            self._give(made, words)
        if since is not None and since < last:
            past = ChangeFeed(view, snapshot=False, since=since)
            words = past.words()
            past.end(forget=True)
            self._give(made, words[:, words[0] == value])
        self._followers.setdefault(value, []).append(made)
        return made

    def _give(self, feed: RoutedFeed, words: Words) -> None:
        if words.shape[1]:
            feed.give(next(self._numbers), self._decoded(words), 0, words.shape[1])

    def remove(self, value: int, feed: RoutedFeed) -> None:
        """A follower has ended."""
        left = [other for other in self._followers.get(value, ()) if other is not feed]
        if left:
            self._followers[value] = left
        else:
            self._followers.pop(value, None)

    def route(self) -> None:
        """Give each change to its followers."""
        if not self._feed.is_open:
            return
        words = self._feed.words()
        done = partial(self._feed.done, self._feed.low)
        if not words.shape[1]:
            done()
            return
        table = self._decoded(words[:, np.argsort(words[0], kind="stable")])
        self.view.lock.decide(StepByStep(self._shared(table, next(self._numbers)), done))

    def _shared(self, table: pa.Table, number: int) -> Callable[[], None]:
        """A step that gives changes, which are ordered by the first column, to the followers of its values. May be repeated."""
        lead = table.column(0).to_numpy()
        cuts = [0, *(np.flatnonzero(lead[1:] != lead[:-1]) + 1).tolist(), table.num_rows]
        is_large = len(cuts) > 2 and table.nbytes > LARGE
        # Columns instead of an object for each follower: thousands of new objects would have Python look for garbage.
        feeds: list[RoutedFeed] = []
        begins: list[int] = []
        ends: list[int] = []
        gone: list[tuple[int, RoutedFeed]] = []
        for value, begin, end in zip(lead[cuts[:-1]].tolist(), cuts[:-1], cuts[1:], strict=True):
            for feed in self._followers.get(value, ()):
                if feed.is_open:
                    feeds.append(feed)
                    begins.append(begin)
                    ends.append(end)
                else:
                    gone.append((value, feed))
        for value, feed in gone:
            self.remove(value, feed)
        copies = (
            [table.take(np.arange(begin, end)) for begin, end in zip(begins, ends, strict=True)] if is_large else None
        )

        def give() -> None:
            for at, feed in enumerate(feeds):
                if copies is None:
                    feed.give(number, table, begins[at], ends[at])
                else:
                    feed.give(number, copies[at], 0, ends[at] - begins[at])
            self._wake(feeds)

        return give

    def change_to(self, view: ViewCore) -> None:
        """Follow another view in place of this one: what followers had is retracted, and what the other has is told, in the last
        epoch that has closed.
        """
        before = self._last
        view.engine.finish(view)
        if before is None:
            view.engine.finish(self.view)
            self.route()
            before = {value: self._part(value) for value in self._followers}
        self._last = None
        self._forget_feed()
        self.view = view
        self._feed, self._last_number = self._fed_by(view), -1
        for value, feeds in self._followers.items():
            old, new = before[value], view.words(None, True, value).copy()
            old[-1] *= -1
            words = np.concatenate([old, new], axis=1)
            words[-2] = view.low - 1
            table = self._decoded(words)
            for feed in feeds:
                feed.give(next(self._numbers), table, 0, table.num_rows)
            self._wake(feeds)

    def _decoded(self, words: Words) -> pa.Table:
        dictionary = self.view.engine.dictionary
        with dictionary.text_use():
            return changes_table(np.ascontiguousarray(words), self.view.schema, dictionary)

    def close(self, reason: TektiteError | None = None) -> None:
        """Follow the view no more; its followers end, with a reason if there is one."""
        self.reason = reason
        for feeds in list(self._followers.values()):
            for feed in feeds:
                feed.end()
        self._forget_feed()
