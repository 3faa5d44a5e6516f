"""ChangeFeed: the changes of a view, or of a table, from one moment on, for one follower.

A feed tells every change exactly once. Changes that nobody was told of wait in the queue of its handle, in the batches of the
view, until somebody says that they are done. So a slow follower costs only the memory of what it has not read, and an interrupt
while they are decoded loses nothing. The view keeps its feeds, and a feed knows nobody who reads it but waiters and a callback:
a subscription that nobody holds any more is found by Python's garbage collection, and its feed is let go with the next epoch.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from tektite.dataflow.arrange import consolidate
from tektite.dataflow.linear import function_name
from tektite.dataflow.output import changes_table
from tektite.engine.notices import Waiter
from tektite.errors import TektiteError
from tektite.trace.chunk import Chunk
from tektite.trace.trace import Handle
from tektite.values.words import Words

if TYPE_CHECKING:
    from tektite.engine.input_core import InputCore
    from tektite.engine.lock import EngineLock
    from tektite.engine.table import Table
    from tektite.engine.view import View
    from tektite.engine.view_core import ViewCore
    from tektite.values.schema import Schema

LOG = logging.getLogger("tektite")


class ChangeFeed:
    """The changes that one follower of a view or a table has not got yet. Made with the engine's lock held."""

    def __init__(self, view: InputCore | ViewCore, snapshot: bool, since: int | None = None) -> None:
        """Begins with the view's contents, as insertions, or behind them; as of its last answer, or of a time `since`."""
        self.view = view
        self.handle = Handle(view.trace, None, self._wake)
        self.waiters: dict[Waiter, None] = {}
        """Threads and tasks that wait for changes."""
        self.deliver: Callable[[], None] | None = None
        """A callback that takes what there is."""
        self.is_open = True
        self.upto: int | None = None
        """The first epoch that it does not tell of, once it has ended."""
        self._left: pa.Table | None = None
        """The changes that were collected before the end."""
        last = max(view.low - 1, view.first) if since is None else since
        self.start = last if snapshot else (view.low if since is None else since + 1)
        """Earlier changes count as changes at this time."""
        if not snapshot:
            for shard in range(view.trace.shards):
                self.handle.take_before(shard, self.start)
        view.feeds[self] = None

    @property
    def lock(self) -> EngineLock:
        """The engine's, which guards everything that changes it."""
        return self.view.engine.lock

    @property
    def source(self) -> Table | View:
        """The table or the view that its follower holds."""
        return self.view.facade

    @property
    def schema(self) -> Schema:
        """The columns of the rows that it tells of."""
        return self.view.schema

    @property
    def low(self) -> int:
        """The first epoch that it can not tell of yet, or ever."""
        return self.view.low if self.upto is None else self.upto

    # ------------------------------------------------------------------ changes

    def look(self) -> tuple[pa.Table | None, Callable[[], None]]:
        """The changes since the last call, in the order of times, as a table with the columns `time` and `diff` after the
        data, or None if nothing has; and what to call when somebody has been told, which may be repeated. Until then it is
        looked at again. The caller holds the lock.
        """
        if not self.is_open:
            return self._left, self._forget_left
        return self._changes(), partial(self.done, self.view.low)

    def _changes(self) -> pa.Table | None:
        dictionary = self.view.engine.dictionary
        with dictionary.text_use():
            words = self.words()
            return changes_table(words, self.view.schema, dictionary) if words.shape[1] else None

    def _forget_left(self) -> None:
        self._left = None

    def table(self) -> pa.Table:
        """The changes that `look` finds; without rows, if there are none."""
        found = self.look()[0]
        return self.empty() if found is None else found

    def empty(self) -> pa.Table:
        """A table of no changes."""
        words = np.empty((len(self.view.columns) + 2, 0), np.int64)
        return changes_table(words, self.view.schema, self.view.engine.dictionary)

    def words(self) -> Words:
        """The changes that wait, until they are `done`: data columns, time, diff."""
        view = self.view
        low = view.low
        batches = [batch for shard in range(view.trace.shards) for batch in self.handle.before(shard, low)]
        width = len(view.columns)
        words: Words = np.empty((width + 2, 0), np.int64)
        if batches:
            chunks = [Chunk(batch.head, batch.memory) for batch in batches]
            found = consolidate(chunks, (width, 1, 1), self.start).to_array()
            words = found.copy()
            words[list(view.columns)] = found[:width]
            order = np.argsort(words[width], kind="stable")
            words = np.ascontiguousarray(words[:, order])
        return words

    def done(self, upto: int) -> None:
        """Let go of the changes before an epoch. May be repeated."""
        for shard in range(self.view.trace.shards):
            self.handle.take_before(shard, upto)

    def recover(self) -> None:
        """Do what a feed of many followers does when its view has failed: this one has ended with it."""

    # ------------------------------------------------------------------ being told

    def _wake(self) -> None:
        self.view.engine.notices.woken.append(self)

    def notify(self) -> None:
        """Tell the callback and whoever waits; let go of a feed that nobody reads any more. The caller holds the lock."""
        if not self.is_open:
            self.handle.drop()
            self.view.feeds.pop(self, None)
        elif self.deliver is not None:
            self.deliver()
        for waiter in list(self.waiters):
            waiter.notify()

    def is_waiting(self) -> bool:
        """Whether a callback waits for changes that the view has not finished."""
        return self.is_open and self.deliver is not None and self.handle.waiting()

    def call(self, function: Callable[..., None], deliver: Callable[[], None]) -> None:
        """Have `deliver` call a user's function with what there is, from here on. If that raises, it is not called again."""

        def deliver_safely() -> None:
            try:
                deliver()
            except Exception:
                self.end(forget=True)
                LOG.exception(
                    "%s %r: callback %s raised; it is not called again",
                    self.view.kind,
                    self.view.name,
                    function_name(function),
                )

        self.deliver = deliver_safely
        self._wake()

    # ------------------------------------------------------------------ the end

    def end(self, forget: bool = False) -> None:
        """Collect no more changes. What was collected can be read, unless it is to be forgotten; its texts may go with the view,
        so that it is decoded here. The caller holds the lock; may be repeated.
        """
        if self.is_open:
            self._left = None if forget else self._changes()
            self.upto = self.view.low
            self.is_open = False
        if forget:
            self._left = None
        self.handle.drop()
        self.handle.forget()
        notices = self.view.engine.notices
        notices.at_each_epoch.pop(self, None)
        self.view.feeds.pop(self, None)
        for waiter in list(self.waiters):
            waiter.notify()

    def abandon(self) -> None:
        """Nobody reads it any more. Called by garbage collection, in any thread at any line, and so without the lock: what waits
        is let go here, and the handle by the next notice.
        """
        if self.is_open:
            self.is_open = False
            self.handle.forget()
            self.view.engine.notices.at_each_epoch.pop(self, None)
            self.view.engine.notices.woken.append(self)

    def why_ended(self) -> TektiteError | None:
        """The error that ended it: the view has failed, or was dropped; None if the follower or the engine was closed."""
        view = self.view
        if view.failure is not None:
            return view.failure
        return view.drop_error() if view.dropped and not view.engine.is_closed else None
