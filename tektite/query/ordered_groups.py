"""Aggregates of the values of a group in an order: string_agg, quantile_cont, quantile_disc, mode, first and earliest.

They are functions of whole groups: where a group changes, its aggregate is computed anew from all of its values. Ties in the
order are broken in a fixed but unspecified way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tektite.dataflow.reduce import GroupResults, Groups
from tektite.query.aggregate_calls import AggregateCall
from tektite.query.group_functions import Order, sort_words, sorted_rows
from tektite.values import types
from tektite.values.schema import Schema
from tektite.values.types import DecimalType, Type
from tektite.values.words import NULL, Words, float_words, word_floats


@dataclass(frozen=True)
class Gathered:
    """For each group one row: the aggregate `kind` of the values in column `value`, taken in an order."""

    single = True
    kind: str
    types: tuple[Type, ...]
    value: int
    order: tuple[Order, ...]
    distinct: bool
    constant: Any

    @staticmethod
    def over(
        schema: Schema, key: int, value: str, order: Sequence[tuple[str, bool, bool]], call: AggregateCall
    ) -> Gathered:
        """A call over columns of these names, the first `key` of which make the groups."""
        places = tuple((schema.index(name), descending, nulls_first) for name, descending, nulls_first in order)
        return Gathered(call.kind, tuple(schema.types), schema.index(value), places, call.distinct, call.constant)

    def __call__(self, groups: Groups) -> GroupResults:
        rows = sorted_rows(groups, sort_words(groups, self.order, self.types))
        numbers, values = groups.numbers[rows], groups.columns[self.value, rows]
        counts = np.ones_like(rows) if self.distinct else groups.counts[rows]
        every, first = np.unique(numbers, return_index=True)
        found = np.full(len(every), NULL)
        if self.kind == "first":
            found[:] = values[first]
        else:
            there = np.flatnonzero(values != NULL)
            if len(there):
                values, counts = values[there], counts[there]
                some, starts = np.unique(numbers[there], return_index=True)
                ends = np.append(starts[1:], len(there))
                found[np.searchsorted(every, some)] = self._of_values(values, counts, starts, ends, groups)
        return every, found.reshape(1, -1), np.ones_like(every)

    def _of_values(self, values: Words, counts: Words, starts: Words, ends: Words, groups: Groups) -> Words:
        """The result of each group that has values; those of one stand between its start and its end."""
        if self.kind == "earliest":
            return values[starts]
        if self.kind == "string_agg":
            every = np.repeat(values, counts)
            before = np.concatenate(([0], np.cumsum(counts)))
            offsets = pa.array(np.append(before[starts], len(every)), pa.int64())
            texts = groups.dictionary.lookup(every).cast(pa.large_string())
            joined = pc.binary_join(
                pa.LargeListArray.from_arrays(offsets, texts), pa.scalar(self.constant, pa.large_string())
            )
            return groups.dictionary.add(joined)
        if self.kind == "mode":
            # the rows of one value stand together; of the most frequent values the first is taken
            runs = np.flatnonzero(np.concatenate(([True], values[1:] != values[:-1])))
            runs = np.union1d(runs, starts)
            totals = np.add.reduceat(counts, runs)
            group = np.searchsorted(starts, runs, side="right")
            best = np.lexsort((np.arange(len(runs)), -totals, group))
            _, chosen = np.unique(group[best], return_index=True)
            return values[runs[best[chosen]]]
        return self._quantile(values, counts, starts, ends)

    def _quantile(self, values: Words, counts: Words, starts: Words, ends: Words) -> Words:
        """The value below which a share of a group's values lies: one of them, or between two of them in proportion."""
        behind = np.cumsum(counts)
        before = behind - counts
        total = behind[ends - 1] - before[starts]
        if self.kind == "quantile_disc":
            place = np.maximum(np.ceil(total * self.constant - 1e-9).astype(np.int64) - 1, 0)
            found: Words = values[np.searchsorted(behind, before[starts] + place, side="right")]
            return found
        exact = (total - 1) * self.constant
        low = np.floor(exact).astype(np.int64)
        numbers = self._numbers(values)
        ends_of = [
            numbers[np.searchsorted(behind, before[starts] + place, side="right")]
            for place in (low, np.minimum(low + 1, total - 1))
        ]
        share = exact - low
        between = np.where(share == 0, ends_of[0], ends_of[0] + (ends_of[1] - ends_of[0]) * share)
        return float_words(between)

    def _numbers(self, values: Words) -> Any:
        kind = self.types[self.value]
        if kind == types.Float:
            return word_floats(values)
        return values / 10**kind.scale if isinstance(kind, DecimalType) else values.astype(np.float64)
