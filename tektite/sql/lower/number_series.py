"""The numbers from one bound to another, for each row of a batch that has such bounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from tektite.errors import IncorrectError, UnsupportedError

MOST = 10_000_000
"""Numbers that the rows of one batch may have together: they are in memory."""


@dataclass(frozen=True)
class NumberSeries:
    """Gives each row of a batch with the columns #start, #end and #step once for each number, in a column of its own."""

    kept: tuple[str, ...]
    name: str
    exclusive: bool

    def __call__(self, batch: pa.Table) -> tuple[pa.Table, np.ndarray[Any, Any]]:
        bounds = [batch[name].to_numpy() for name in ("#start", "#end", "#step")]
        nulls = [np.asarray(batch[name].is_null().to_numpy(), bool) for name in ("#start", "#end", "#step")]
        sources = np.flatnonzero(~(nulls[0] | nulls[1] | nulls[2]))
        start, end, step = (bound[sources].astype(np.int64) for bound in bounds)
        if not step.all():
            raise IncorrectError("generate_series: the step cannot be 0")
        # with Python's numbers where words would overflow: bounds may be as far apart as words can be
        distance = (end.astype(object) - start.astype(object)) * np.where(step > 0, 1, -1)
        size = abs(step.astype(object))
        counts = (distance + size - 1) // size if self.exclusive else distance // size + 1
        counts = np.maximum(counts, 0) if len(counts) else counts
        if len(counts) and counts.sum() > MOST:
            raise UnsupportedError(f"generate_series of {counts.sum()} numbers (at most {MOST} in a batch)")
        many = counts.astype(np.int64)
        rows = np.repeat(sources, many)
        first = np.repeat(np.cumsum(many) - many, many)
        numbers = np.repeat(start, many) + (np.arange(len(rows)) - first) * np.repeat(step, many)
        kept = batch.select(list(self.kept)).take(pa.array(rows, pa.int64()))
        return kept.append_column(self.name, pa.array(numbers, pa.int64())), rows
