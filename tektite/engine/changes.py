"""Changes: what `View.changes`, the former name of `View.subscribe`, returns."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

import pyarrow as pa

from tektite.engine.subscription import Change, Subscription


class Changes:
    """The changes of a view. Iterating yields those of all epochs that have closed since the last time, and does not wait."""

    def __init__(self, subscription: Subscription) -> None:
        self._subscription = subscription
        self._told: deque[Change] = deque()

    def __iter__(self) -> Iterator[Change]:
        self._told.extend(self._subscription.changes())
        while self._told:  # what a loop that breaks off has not seen comes next time
            yield self._told.popleft()

    def table(self) -> pa.Table:
        """The changes since the last call, as a table: the data, then the columns `time` and `diff`."""
        return self._subscription.table()

    def close(self) -> None:
        """Stop collecting changes."""
        self._subscription.close()
