"""What a statement gives back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tektite.engine.changes import Changes
from tektite.engine.subscription import Subscription
from tektite.engine.view import View
from tektite.query.former_names import former_name
from tektite.values.columns import python_rows

SHOWN_ROWS = 40
"""Rows that a printed result shows."""


@dataclass(frozen=True)
class Result:
    """What a statement gave: rows as a `table`, a `view`, or a `subscription`; and a `message` always.

    Iterating yields rows as tuples; of a subscription, what iterating that does: deltas, for which it waits.
    """

    message: str
    table: pa.Table | None = None
    view: View | None = None
    subscription: Subscription | None = None
    is_temporary: bool = False
    """Whether the view was installed for this subscription alone: it is dropped by whoever ends that."""

    def __iter__(self) -> Iterator[Any]:
        if self.subscription is not None:
            return iter(self.subscription)
        return iter(self.rows())

    @property
    @former_name("result.subscription")
    def changes(self) -> Changes | None:
        """The changes of a subscription row by row, by a former name."""
        return None if self.subscription is None else Changes(self.subscription)

    def rows(self) -> list[tuple[Any, ...]]:
        """The rows of the table, as tuples; none where there is no table."""
        if self.table is None:
            return []
        if not self.table.num_columns:
            return [()] * self.table.num_rows
        return python_rows(self.table, "the result", "table")

    def __str__(self) -> str:
        if self.table is None:
            return self.message
        if self.message == "EXPLAIN":
            return "\n".join(row[0] for row in self.rows())
        return show_table(self.table)


def show_table(table: pa.Table) -> str:
    """A table as text, columns aligned."""
    shown = table.slice(0, SHOWN_ROWS)
    cells = [[name, *("NULL" if v is None else str(v) for v in column.to_pylist())]
             for name, column in zip(table.column_names, shown.columns, strict=True)]  # fmt: skip
    widths = [max(map(len, column)) for column in cells]
    lines = [" | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
             for row in zip(*cells, strict=True)]  # fmt: skip
    lines.insert(1, "-+-".join("-" * width for width in widths))
    more = f", {SHOWN_ROWS} shown" if table.num_rows > SHOWN_ROWS else ""
    return "\n".join([*lines, f"({table.num_rows} row{'s' * (table.num_rows != 1)}{more})"])
