"""Window functions whose results change near a change of a partition's rows alone, or behind it: evaluated for stretches of rows.

Two kinds of calls can be:

* Those over a frame that moves with its row, such as the last ten rows or the hour before, and `lag` and `lead`. A row's result
  depends on what lies between it and the ends of its frame.
* Those that run from the partition's first row to the row or its peers: row numbers, ranks, counts, sums, extremes. Each
  follows from the result of an earlier row, which the output has, and from the rows between.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tektite.dataflow.near_reduce import NearResults, Stretch
from tektite.dataflow.reduce import Groups
from tektite.errors import IncorrectError
from tektite.expr.literals import MAX_INT
from tektite.expr.steps import limit_of
from tektite.query.group_functions import ranks, sort_words
from tektite.query.window_calls import FROM_COLUMN, Away, Reach
from tektite.query.window_functions import Call, Partitions, Windows
from tektite.values import types
from tektite.values.dictionary import Dictionary
from tektite.values.types import DecimalType
from tektite.values.words import NULL, Words

RANKS = ("row_number", "rank", "dense_rank")
MOVING = ("first_value", "last_value", "nth_value", "min", "max", "count", "sum", "avg")


@dataclass(frozen=True)
class NearWindows(Windows):
    """Calls over one order, in which rows are arranged, that can all be evaluated for stretches."""

    @staticmethod
    def of(windows: Windows) -> NearWindows | None:
        """The same calls, if they can."""
        orders = {call.order for call in windows.calls}
        if len(orders) != 1:
            return None
        (order,) = orders
        columns = order_columns(order, windows.key)
        if (
            not columns
            or columns != tuple(range(windows.key, windows.key + len(columns)))
            or len({down for _, down, _ in order}) != 1
            or any(windows.types[column].interned for column in columns)
            or not all(moves(call) or runs(call, windows) for call in windows.calls)
        ):
            return None
        return NearWindows(windows.types, windows.key, windows.calls)

    @property
    def nulls_apart(self) -> tuple[int, ...]:
        """Columns of the order in which NULL has to stand at another end than its word, which is the least."""
        found = {column for column, down, nulls_first in self.calls[0].order if nulls_first == down}
        return tuple(sorted(column for column in found if column >= self.key))

    @property
    def to_end(self) -> bool:
        """Whether a change touches all rows behind it."""
        return any(not moves(call) for call in self.calls)

    def near(
        self, stretch: Stretch, earlier: Callable[[Words], Words | None], dictionary: Dictionary
    ) -> NearResults | None:
        """The results for a stretch of a partition; see `NearFunction`."""
        many = stretch.rows.shape[1]
        at = np.arange(many)
        one = np.zeros(many, np.int64)
        rows = Groups(one, stretch.rows, np.ones(many, np.int64), dictionary)
        partitions = Partitions(one, sort_words(rows, self.calls[0].order, self.types))
        base: tuple[int, Words] | None = None
        if self.to_end and not stretch.begins:
            base = self._base(stretch, partitions, earlier)
            if base is None:
                return None
        certain, touched = np.ones(many, bool), np.zeros(many, bool)
        first, last = stretch.place
        words = [stretch.rows[self.key :]]
        for number, call in enumerate(self.calls):
            if moves(call):
                found, low, high = self._moving(call, rows, partitions)
                certain &= (low > 0) | stretch.begins
            else:
                low = np.zeros(many, np.int64)
                if base is None:
                    begin, end = self.frame(call, rows, partitions)
                    found = self.value(call, rows, partitions, begin, end)
                else:
                    found = self._running(call, rows, base[0], int(base[1][number]))
                    certain &= at > base[0]
                high = at + 1 if call.kind in RANKS or call.frame[0] == "rows" else partitions.last
            certain &= (high < many) | stretch.ends
            touched |= (low < last) & (high > first) if last > first else (low < first) & (high > first)
            words.append(found.reshape(1, -1))
        return NearResults(np.vstack(words), certain, touched)

    def _moving(self, call: Call, rows: Groups, partitions: Partitions) -> tuple[Words, Words, Words]:
        """The results of a call over a frame that moves, and between which rows lies what each depends on."""
        at = partitions.at
        if call.kind in ("lag", "lead"):
            away = int(call.constants[0]) * (1 if call.kind == "lead" else -1)
            low, high = at + min(away, 0), at + max(away, 0) + 1
            found = self.value(call, rows, partitions, at, at + 1)
            return found, low, high
        begin, end = self.frame(call, rows, partitions)
        found = self.value(call, rows, partitions, begin, end)
        low, high = np.minimum(begin, at), np.maximum(end, at + 1)
        if call.options.exclude in ("group", "ties") or call.frame[0] != "rows":
            low, high = np.minimum(low, partitions.first), np.maximum(high, partitions.last)
        return found, low, high

    def _base(
        self, stretch: Stretch, partitions: Partitions, earlier: Callable[[Words], Words | None]
    ) -> tuple[int, Words] | None:
        """A row before the change that ends a whole group of peers, and the results that it has."""
        before = stretch.place[0]
        peers = int(partitions.peer[min(before, len(partitions.peer) - 1)])
        ends = np.flatnonzero(partitions.last[:before] == partitions.at[:before] + 1)
        # not the first group of peers, which may have begun before, nor the one of the row that changes
        ends = ends[(partitions.first[ends] > 0) & (partitions.peer[ends] < peers)]
        if not len(ends):
            return None
        found = earlier(np.ascontiguousarray(stretch.rows[:, ends[0]]))
        return None if found is None else (int(ends[0]), self._numbered(found, partitions, int(ends[0])))

    def _numbered(self, results: Words, partitions: Partitions, row: int) -> Words:
        """The results of a row, with its number in place of its rank."""
        results = results[-len(self.calls) :].copy()
        for number, call in enumerate(self.calls):
            if call.kind == "rank":
                results[number] += row - int(partitions.first[row])
        return results

    def _running(self, call: Call, rows: Groups, base: int, result: int) -> Words:
        """The results of a call that runs from the first row on, for the rows behind `base`, whose result is known."""
        start = base + 1
        many = len(rows.numbers)
        found = np.full(many, NULL)
        if start == many:
            return found
        rest = Groups(rows.numbers[start:], rows.columns[:, start:], rows.counts[start:], rows.dictionary)
        partitions = Partitions(rest.numbers, sort_words(rest, call.order, self.types))
        low, high = self.frame(call, rest, partitions)
        local = self.value(call, rest, partitions, low, high)
        if call.kind in (*RANKS, "count"):
            found[start:] = local + result
        elif call.kind == "first_value":
            found[start:] = result
        elif result == NULL:
            found[start:] = local
        elif call.kind == "sum":
            there = np.where(local == NULL, 0, local)
            total = there + result
            limit = limit_of(call.type) if isinstance(call.type, DecimalType) else MAX_INT
            wrapped = ((there ^ total) & (result ^ total)) < 0
            if (wrapped | (total > limit) | (total < -limit)).any():
                raise IncorrectError(f"{call.title}: the sum over a window does not fit {call.type}")
            found[start:] = total
        else:
            kind = self.types[call.arguments[0]]
            one, other = ranks(np.full(1, result), kind, rows.dictionary), ranks(local, kind, rows.dictionary)
            better = one <= other if call.kind == "min" else one >= other
            found[start:] = np.where(better | (local == NULL), result, local)
        return found


def order_columns(order: tuple[tuple[int, bool, bool], ...], key: int) -> tuple[int, ...]:
    """The columns of an order in which the rows of a partition differ."""
    return tuple(dict.fromkeys(column for column, _, _ in order if column >= key))


def moves(call: Call) -> bool:
    """Whether what a row's result depends on lies between the ends of a frame that moves with it."""
    if call.kind in ("lag", "lead"):
        return call.constants[0] != FROM_COLUMN and not call.options.ignores_nulls
    _, start, end = call.frame
    return call.kind in MOVING and all(
        edge is not None and not isinstance(edge, Away) and (edge.steady if isinstance(edge, Reach) else True)
        for edge in (start, end)
    )


def runs(call: Call, windows: Windows) -> bool:
    """Whether a row's result follows from that of an earlier row and the rows between."""
    if call.kind in RANKS:
        return True
    if call.frame[1:] != (None, 0) or call.options.exclude or call.options.distinct or call.options.ignores_nulls:
        return False
    if call.kind in ("count", "first_value"):
        return True
    kind = windows.types[call.arguments[0]] if call.arguments else types.Int
    # sums of floats are exact, and what is shown of them is rounded
    return not kind.interned and (call.kind in ("min", "max") or (call.kind == "sum" and kind != types.Float))
