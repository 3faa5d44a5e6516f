"""Change and Changes: a view's changes row by row, as far as there are any. `View.subscribe` is the newer way."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from tektite.engine.change_feed import ChangeFeed
from tektite.engine.lock import EngineLock, guarded

if TYPE_CHECKING:
    from tektite.engine.view_core import ViewCore


class Change(NamedTuple):
    """One row of a view changed its multiplicity by `diff` at `time`."""

    row: tuple[Any, ...]
    time: int
    diff: int


class Changes:
    """The changes of a view. Iterating yields those of all epochs that have closed since the last time, and does not wait."""

    def __init__(self, view: ViewCore, history: bool) -> None:
        self.view = view
        self._feed = feed = ChangeFeed(view, history)
        self._told: deque[Change] = deque()
        weakref.finalize(self, feed.abandon).atexit = False

    @property
    def lock(self) -> EngineLock:
        """The engine's, which guards everything that changes it."""
        return self.view.engine.lock

    @guarded
    def table(self) -> pa.Table:
        """What has changed since the last call, as a table with the columns `time` and `diff` behind the data. While some row
        that the view depends on fails, this raises its error; what has changed is told once it is gone.
        """
        self.view.check_rows(self.view.low - 1)
        return self._feed.table()

    def __iter__(self) -> Iterator[Change]:
        self.view.check()
        self.view.engine.finish(self.view)
        self.view.check()
        columns = [column.to_pylist() for column in self.table().columns]
        width = len(self.view.schema.names)
        self._told.extend(Change(v[:width], v[width], v[width + 1]) for v in zip(*columns, strict=True))
        while self._told:
            yield self._told.popleft()

    @guarded
    def close(self) -> None:
        """Stop collecting changes."""
        self._feed.end()
