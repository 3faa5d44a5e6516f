"""Granularity: how often a subscriber is told, and what its changes are taken together to.

| said | changes are told |
|---|---|
| nothing | at each time |
| a number n | at times that are multiples of n, taken together: what comes and goes in between is not told |
| a text such as "100 ms" | at most that often, taken together as of the last time |
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tektite.engine.ticker import seconds_said
from tektite.errors import IncorrectError

if TYPE_CHECKING:
    from tektite.server.feeds import FeedChanges


@dataclass(frozen=True)
class Granularity:
    """The granularity of a subscription: how often it gets changes.

    >>> Granularity.parse(10), Granularity.parse("100 ms").seconds
    (Granularity(epochs=10, seconds=0.0), 0.1)
    """

    epochs: int = 1
    seconds: float = 0.0

    @staticmethod
    def parse(said: Any) -> Granularity:
        """The setting of a client: nothing, a number of epochs, or a duration."""
        if said is None:
            return Granularity()
        if isinstance(said, int) and not isinstance(said, bool) and 1 <= said <= 1 << 40:
            return Granularity(said)
        if isinstance(said, str):
            seconds = seconds_said(said)
            if seconds:
                return Granularity(1, seconds)
        raise IncorrectError(f"a granularity is a number of epochs, or a time such as '100 ms' or '1 s', not {said!r}")

    @property
    def is_some(self) -> bool:
        """Whether several times are combined."""
        return self.epochs > 1 or self.seconds > 0

    def cut(self, found: FeedChanges, waiting: list[pa.Table]) -> FeedChanges:
        """The part of some changes that is delivered, with the changes that are `waiting`. The rest is appended to `waiting`."""
        if not self.is_some or found.error is not None:
            return found
        if self.seconds:
            return coalesced(found)
        if waiting and found.table.num_rows:
            found = replace(found, table=pa.concat_tables([*waiting, found.table]))
        elif waiting:
            found = replace(found, table=pa.concat_tables(waiting))
        waiting.clear()
        if found.end is not None:
            return coalesced(found)
        last = (found.told + 1) // self.epochs * self.epochs - 1
        rows = found.table.column(-2).to_numpy() <= last if found.table.num_rows else np.empty(0, bool)
        later = found.table.filter(pa.array(~rows))
        if later.num_rows:
            waiting.append(later)
        if last <= found.start:
            return replace(found, told=found.start, table=found.table.schema.empty_table())
        return coalesced(replace(found, told=last, table=found.table.filter(pa.array(rows))))


def coalesced(found: FeedChanges) -> FeedChanges:
    """FeedChanges taken together, as of their last time. A relation may have columns that are called time or diff, too."""
    table = found.table
    times = table.column(-2).to_numpy()
    if not len(times) or (times == found.told).all():
        return found  # what is of one time is together
    names = [f"c{at}" for at in range(table.num_columns - 2)]
    if names:
        grouped = (
            table.rename_columns([*names, "time", "diff"])
            .group_by(names, use_threads=False)
            .aggregate([("diff", "sum")])
        )
        diffs = grouped.column("diff_sum")
        grouped = grouped.filter(pc.not_equal(diffs, pa.scalar(0)))
    else:
        grouped = pa.table({"diff_sum": [pc.sum(table.column(-1)).as_py()]})
    last = pa.array(np.full(grouped.num_rows, found.told, np.int64))
    columns = [grouped.column(name) for name in names]
    return replace(
        found,
        table=pa.Table.from_arrays([*columns, last, grouped.column("diff_sum")], schema=table.schema),
        encoded={},
    )
