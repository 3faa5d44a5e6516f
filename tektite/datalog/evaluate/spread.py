"""Median, variance and standard deviation of groups, as EDN queries have them: of all values, as floats.

The variance is that of the whole group, not an estimate from a sample. The median of an even number of values is the mean of
the two in the middle.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tektite.dataflow.reduce import GroupResults, Groups
from tektite.expr import Expr, col, greatest
from tektite.query.aggregates import ColumnAggregate
from tektite.query.builders import reduce_groups
from tektite.query.collection import Collection
from tektite.query.column_aggregates import column_aggregates
from tektite.query.interned_aggregates import is_summable
from tektite.values.types import Float
from tektite.values.words import float_words, word_floats

KINDS = ("median", "variance", "stddev")
CALLED = {"avg": "mean", "count_distinct": "n_unique"}
"""Aggregates of columns by their names in expressions, where these differ."""
WHOLE = "the whole"
"""The key column of an answer that is one group. No text can name a column with a space in it."""


@dataclass(frozen=True)
class Median:
    """The median of the one value column behind `key` key columns, which holds floats."""

    key: int

    def __call__(self, groups: Groups) -> GroupResults:
        values = word_floats(groups.columns[self.key])
        rows = np.lexsort((values, groups.numbers))
        values, numbers = values[rows], groups.numbers[rows]
        until = np.cumsum(groups.counts[rows])  # places behind each row, over all groups
        begins = np.flatnonzero(np.concatenate(([True], numbers[1:] != numbers[:-1])))
        ends = until[np.append(begins[1:], len(numbers)) - 1]
        starts = np.concatenate(([0], ends[:-1]))
        middle = (ends - starts - 1) // 2, (ends - starts) // 2
        low, high = (values[np.searchsorted(until, starts + place, side="right")] for place in middle)
        # Halves first: the sum of two large floats may not be one.
        found = np.where(low == high, low, low / 2 + high / 2)
        return numbers[begins], float_words(found).reshape(1, -1), np.ones(len(begins), np.int64)


def grouped(
    rows: Collection, keys: Sequence[str], taken: Mapping[str, ColumnAggregate], spread: Mapping[str, tuple[str, str]]
) -> Collection:
    """One row for each group: aggregates, and for each name in `spread` one of KINDS of a column."""
    schema = rows.schema
    wide = [a for a in taken.values() if a.kind in ("sum", "avg") and a.column is not None
            and is_summable(schema.types[schema.index(a.column)])]  # fmt: skip
    if not spread and wide:
        calls = {name: Expr("aggregate", () if a.column is None else (col(a.column),), (CALLED.get(a.kind, a.kind),))
                 for name, a in taken.items()}  # fmt: skip
        return rows.group_by(*keys).agg(**calls)
    if not spread:
        return column_aggregates(rows, keys, taken)
    if not keys:  # one group: it has a key, so that medians may be joined to the other aggregates
        keys = [WHOLE]
        rows = rows.with_columns(**{WHOLE: 1})
    sums: dict[str, ColumnAggregate] = dict(taken)
    outputs: dict[str, Expr] = {name: col(name) for name in taken}
    medians = {name: column for name, (kind, column) in spread.items() if kind == "median"}
    squares = {}
    for name, (kind, column) in spread.items():
        if kind == "median":
            continue
        squares[f"square {name}"] = col(column).cast(Float) * col(column).cast(Float)
        sums |= {
            f"count {name}": ColumnAggregate("count"),
            f"sum {name}": ColumnAggregate("sum", column),
            f"squares {name}": ColumnAggregate("sum", f"square {name}"),
        }
        mean = col(f"sum {name}").cast(Float) / col(f"count {name}")
        variance = greatest(col(f"squares {name}") / col(f"count {name}") - mean * mean, 0.0)
        outputs[name] = variance.sqrt() if kind == "stddev" else variance
    sums = sums or {"count": ColumnAggregate("count")}
    found = column_aggregates(rows.with_columns(**squares), keys, sums)
    found = found.select(*keys, **(outputs or {"count": col("count")}))
    for name, column in medians.items():
        values = rows.select(*keys, **{name: col(column).cast(Float)})
        medians_of = reduce_groups(values, Median(len(keys)), list(keys), {name: Float})
        found = found.join(medians_of, on=list(keys)).select(*found.schema.names, name)
    return found
