"""`row_changes`: a view's changes row by row, as far as there are any when somebody looks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

import tektite as tk


class RowChanges:
    """Iterating yields all changes since the last time, and does not wait for more."""

    def __init__(self, subscription: tk.Subscription) -> None:
        self.subscription = subscription

    def __iter__(self) -> Iterator[tk.Change]:
        return iter(self.subscription.changes())

    def table(self) -> pa.Table:
        return self.subscription.table()

    def close(self) -> None:
        self.subscription.close()


def row_changes(view: Any, snapshot: bool | None = None) -> RowChanges:
    """The changes of a view, a table or a query, beginning with its contents unless `snapshot` is false."""
    return RowChanges(view.subscribe(snapshot=snapshot))
