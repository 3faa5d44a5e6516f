"""Backlog: the changes that a subscription has been told of and has not yielded yet, each once, whatever ends a call.

What a feed has is taken by a decision, with the engine's lock. What a call was given, and did not return because something ended
it, is given to the next call.
"""

from __future__ import annotations

import threading
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from tektite.engine.change_feed import ChangeFeed
from tektite.engine.lock import StepByStep
from tektite.engine.routing import RoutedFeed
from tektite.unknown_names import explains_names


@explains_names
class Delta(NamedTuple):
    """The changes of a view at one time.

    >>> import tektite as tk
    >>> engine = tk.Engine()
    >>> sales = engine.create_table("sales", {"shop": str, "amount": int})
    >>> subscription = sales.subscribe()
    >>> _ = sales.insert([("north", 3)])
    >>> time, table = subscription.poll(0)
    >>> time, table.to_pylist()
    (0, [{'shop': 'north', 'amount': 3, 'diff': 1}])
    """

    time: int
    """The epoch. All that changed in it is here."""
    table: pa.Table
    """The rows that changed, and by how much each: the view's columns, and `diff`. Empty where a subscription tells progress."""


Span = tuple[int, int]
"""Some times of a backlog, by number."""


class _Part:
    """The changes of some times, and which of them were given to whom. `spans` and `given` change at once."""

    def __init__(self, table: pa.Table, times: list[int], cuts: list[int]) -> None:
        self.table, self.times, self.cuts = table, times, cuts
        self.state: tuple[tuple[Span, ...], dict[int, tuple[object, tuple[Span, ...]]]] = (((0, len(times)),), {})
        """The times that no call was given; and by thread, the last call with the times that it was given."""

    def give(self, call: object, given: tuple[Span, ...], left: tuple[Span, ...]) -> None:
        """Some times are given to a call."""
        self.state = left, self.state[1] | {threading.get_ident(): (call, given)}


class Backlog:
    """Changes that a feed has been asked for, and that were not yet yielded. Several threads may yield them."""

    def __init__(self, feed: ChangeFeed | RoutedFeed, progress: bool) -> None:
        self.told = feed.start - 1
        """The last time of which everything was taken."""
        self._feed = feed
        self._progress = progress
        self._lock = threading.Lock()
        self._part: _Part | None = None

    def __len__(self) -> int:
        part = self._part
        return 0 if part is None else sum([end - begin for begin, end in part.state[0]])

    def fill(self) -> None:
        """Take what the feed has, when everything before has been yielded: all of it, or nothing if something ends the call. The
        caller holds the engine's lock.
        """
        feed, view = self._feed, self._feed.view
        low, width = feed.low, len(feed.schema.names)
        changes, done = feed.look()
        tells_progress = self._progress and low > max(view.first, self.told + 1)
        if changes is None and not tells_progress:
            done()
            return
        if changes is None:
            changes = feed.empty()
        found, first = np.unique(changes.column(width).to_numpy(), return_index=True)
        times, cuts = found.tolist(), [*first.tolist(), changes.num_rows]
        if tells_progress and (not times or times[-1] < low - 1):
            times.append(low - 1)
            cuts.append(changes.num_rows)
        part = _Part(changes.remove_column(width), times, cuts)

        def keep() -> None:
            self._part, self.told = part, low - 1

        view.lock.decide(StepByStep(keep, done))

    def clear(self) -> None:
        """Forget all of them."""
        self._part = None

    def pop(self, call: object = None) -> Delta | None:
        """The changes of the next time, for a call."""
        with self._lock:
            part = self._part
            if part is None or not part.state[0]:
                self._part = None
                return None
            (at, end), *others = part.state[0]
            delta = Delta(part.times[at], part.table.slice(part.cuts[at], part.cuts[at + 1] - part.cuts[at]))
            part.give(call, ((at, at + 1),), ((at + 1, end), *others) if at + 1 < end else tuple(others))
            return delta

    def rest(self, call: object, empty: pa.Table) -> pa.Table:
        """All of them at once, with their times as the last column but one; the rows of `empty` where there are none."""
        with self._lock:
            part = self._part
            if part is None or not part.state[0]:
                return empty
            tables, times, spans = [], [], part.state[0]
            for begin, end in spans:
                counts = np.diff(part.cuts[begin : end + 1])
                tables.append(part.table.slice(part.cuts[begin], part.cuts[end] - part.cuts[begin]))
                times.append(np.repeat(np.array(part.times[begin:end], np.int64), counts))
            table = pa.concat_tables(tables)
            place = table.num_columns - 1
            found = table.add_column(place, empty.column_names[place], pa.array(np.concatenate(times)))
            part.give(call, spans, ())
            return found

    def give_back(self, call: object) -> None:
        """Take back the times of a call that was ended before its caller got them: another call gets them."""
        with self._lock:
            part = self._part
            if part is not None:
                left, given = part.state
                by, spans = given.get(threading.get_ident(), (None, ()))
                if by is call:
                    part.state = tuple(sorted([*spans, *left])), {}
