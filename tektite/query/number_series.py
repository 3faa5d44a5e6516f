"""The numbers from one bound to another, and the elements of lists, for each row: SQL's generate_series and unnest, `explode`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from tektite.errors import IncorrectError, UnsupportedError
from tektite.expr import Expr, coalesce, col, greatest, lit
from tektite.plan.names import free_name
from tektite.query.builders import project
from tektite.query.columns import ColumnNames, column_list
from tektite.values import types

if TYPE_CHECKING:
    from tektite.query.collection import Collection

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


def with_series(
    collection: Collection, name: str, start: Expr, end: Expr, step: Expr, exclusive: bool = False
) -> Collection:
    """Each row with every number from `start` to `end` in steps, as a column; none where a bound is NULL."""
    kept = list(collection.schema.names)
    bounds = [("#start", start), ("#end", end), ("#step", step)]
    wide = project(collection, [*((column, col(column)) for column in kept), *bounds])
    kinds = dict(zip(kept, collection.schema.types, strict=True))
    return wide.flat_map(NumberSeries(tuple(kept), name, exclusive), **kinds, **{name: types.Int})


def exploded(collection: Collection, lists: Sequence[ColumnNames]) -> Collection:
    """Each row once for each place of the longest of some lists, with the elements there in place of the lists."""
    schema = collection.schema
    columns = [name for names in lists for name in column_list(names)]
    for column in columns:
        kind = schema.types[schema.index(column)]
        if not isinstance(kind, types.ListType):
            raise IncorrectError(
                f"explode: column {column!r} is {kind}, not a list; .str.split(',') makes one of a text"
            )
    if not columns:
        raise IncorrectError("explode: name a column of lists")
    longest = reduce(greatest, [coalesce(Expr("list_length", (col(column),)), 0) for column in columns])
    place = free_name("#place", schema.names)
    rows = with_series(collection, place, lit(1), longest, lit(1))
    elements = [
        (name, Expr("list_element", (col(name), col(place))) if name in columns else col(name)) for name in schema.names
    ]
    return project(rows, elements)
