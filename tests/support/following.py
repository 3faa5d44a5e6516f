"""What follows views in tests: deltas added up, functions in threads, who waits for changes."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import tektite as tk
from tektite.engine.core import core_of
from tests.support.patience import PATIENCE

Rows = Counter[tuple[Any, ...]]


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
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive(), "it still waits"
        if self.error is not None:
            raise self.error
        return self.found


def waiting(view: tk.View) -> bool:
    """Whether somebody waits for changes of a view, or for a time of it."""
    core = core_of(view)
    return bool(core.waiters) or any(feed.waiters for feed in list(core.feeds))
