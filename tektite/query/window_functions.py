"""Computing window functions: for all partitions that changed at once, over arrays of words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from tektite.dataflow.reduce import GroupResults, Groups
from tektite.errors import IncorrectError
from tektite.expr.literals import MAX_INT, literal_value, literal_word
from tektite.expr.steps import limit_of
from tektite.kernels.operators import window_frames as kernel
from tektite.plan.algebra import Narrowed
from tektite.query.group_functions import Order, of_columns, ranks, sort_words, sorted_rows, starts_of
from tektite.query.window_calls import (
    FROM_COLUMN,
    PLAIN_OPTIONS,
    Away,
    Edge,
    Frame,
    Reach,
    WindowCall,
    WindowOptions,
    columns_of_frame,
    of_frame,
)  # fmt: skip
from tektite.values import types
from tektite.values.columns import text_of
from tektite.values.types import DecimalType, Type
from tektite.values.words import NULL, Words, encode


@dataclass(frozen=True)
class Call:
    """A window function over columns by number."""

    kind: str
    arguments: tuple[int, ...]
    order: tuple[Order, ...]
    frame: Frame[int]
    type: Type
    constants: tuple[Any, ...]
    title: str = field(default="", compare=False)
    options: WindowOptions = PLAIN_OPTIONS

    @property
    def columns(self) -> set[int]:
        """The columns that it reads."""
        return {*self.arguments, *(column for column, _, _ in self.order), *columns_of_frame(self.frame)}

    def over(self, places: Mapping[int, int]) -> Call:
        """The same function over columns that have other numbers."""
        arguments = tuple(places[column] for column in self.arguments)
        frame = of_frame(self.frame, places.__getitem__)
        return replace(self, arguments=arguments, order=of_columns(self.order, places), frame=frame)


@dataclass(frozen=True)
class Windows:
    """The rows of each partition, each as often as it is there, with the results of some calls behind its columns."""

    types: tuple[Type, ...]
    key: int
    calls: tuple[Call, ...]

    @staticmethod
    def over(columns: Mapping[str, Type], key: int, calls: Sequence[WindowCall]) -> Windows:
        """The calls over columns of these names, of which the first are those that partitions are made by."""
        places = {name: at for at, name in enumerate(columns)}
        found = []
        for call in calls:
            order = tuple((places[o.column], o.descending, o.nulls_first) for o in call.order)
            arguments = tuple(places[argument] for argument in call.arguments)
            frame = of_frame(call.frame, places.__getitem__)
            found.append(Call(call.kind, arguments, order, frame, call.type, call.constants, call.title, call.options))
        return Windows(tuple(columns.values()), key, tuple(found))

    def narrowed(self, outputs: set[int]) -> Narrowed:
        """The calls that are read, over the columns that are read or that these calls need."""
        width = len(self.types)
        calls = [call for at, call in enumerate(self.calls, width) if at in outputs]
        if not calls:
            rows = tuple(sorted(outputs)) or (0,)
            return Narrowed(None, rows, rows)
        read = {column for call in calls for column in call.columns}
        inputs = tuple(sorted({*range(self.key), *(at for at in outputs if at < width), *read}))
        places = {column: at for at, column in enumerate(inputs)}
        function = replace(
            self, types=tuple(self.types[column] for column in inputs), calls=tuple(call.over(places) for call in calls)
        )
        made = tuple(at for at in sorted(outputs) if at >= width)
        return Narrowed(function, inputs, (*inputs, *made))

    def __call__(self, groups: Groups) -> GroupResults:
        every = np.repeat(np.arange(len(groups.counts)), groups.counts)
        rows = Groups(groups.numbers[every], groups.columns[:, every], np.ones_like(every), groups.dictionary)
        orders: dict[tuple[Order, ...], OrderedRows] = {}  # calls over the same window share the sort
        results = [self.result(call, rows, orders) for call in self.calls]
        return rows.numbers, np.vstack([rows.columns[self.key :], *results]), rows.counts

    @property
    def backward(self) -> bool:
        """Whether all orders are descending. Rows that are equal in them are then taken in descending order, too, so that the
        order is the reverse of the one in which rows are arranged.
        """
        downs = [down for call in self.calls for _, down, _ in call.order]
        return bool(downs) and all(downs)

    def result(self, call: Call, rows: Groups, orders: dict[tuple[Order, ...], OrderedRows]) -> Words:
        """A call's result for every row. `orders` has the orders of earlier calls."""
        if call.order not in orders:
            by = sort_words(rows, call.order, self.types)
            order = sorted_rows(rows, by, self.backward)
            orders[call.order] = OrderedRows(
                order,
                Groups(rows.numbers[order], rows.columns[:, order], rows.counts[order], rows.dictionary),
                Partitions(rows.numbers[order], [words[order] for words in by]),
            )
        ordered = orders[call.order]
        low, high = self.frame(call, ordered.rows, ordered.partitions)
        found = np.empty(len(ordered.order), np.int64)
        found[ordered.order] = self.value(call, ordered.rows, ordered.partitions, low, high)
        return found

    def frame(self, call: Call, rows: Groups, partitions: Partitions) -> tuple[Words, Words]:
        """The first row of each row's frame, and the row behind its last, for rows in the order of a call."""
        counted = {edge.offset for edge in call.frame[1:] if isinstance(edge, Away)}

        def placed(column: int) -> Words:
            words = rows.columns[column]
            return whole_offsets(words, call) if column in counted else self._placed(words, column, call, rows)

        return partitions.frame(*of_frame(call.frame, placed))

    def value(self, call: Call, rows: Groups, partitions: Partitions, low: Words, high: Words) -> Words:
        """The results of a call for rows in its order, given their frames."""
        given = [rows.columns[argument] for argument in call.arguments] or [np.zeros(len(low), np.int64)]
        kind = self.types[call.arguments[0]] if call.arguments else types.Int
        return value_of(call, partitions, partitions.segments(low, high, call.options.exclude), given, kind, rows)

    def _placed(self, words: Words, column: int, call: Call, rows: Groups) -> Words:
        """A column that a frame reaches along, as words that grow from row to row in the order of a call."""
        found = ranks(words, self.types[column], rows.dictionary)
        return np.where(found == NULL, NULL, ~found) if call.order[0][1] else found


def whole_offsets(words: Words, call: Call) -> Words:
    """The checked offset of a frame's end for each row."""
    if np.any(words < 0):
        found = "NULL" if np.any(words == NULL) else str(int(words[words < 0][0]))
        raise IncorrectError(f"{call.title}: the offset of a frame is a number that is not negative; found {found}")
    return words


class Partitions:
    """Rows in order, partition by partition: where each row's partition and its peers begin and end."""

    def __init__(self, numbers: Words, by: Sequence[Words]) -> None:
        self.at = np.arange(len(numbers))
        self.start = starts_of(numbers)
        self.stop = stops_of(self.start)
        differs = np.zeros(len(numbers), bool)
        differs[self.start] = True
        for words in by:
            differs[1:] |= words[1:] != words[:-1]
        self.peer: Words = np.cumsum(differs)
        self.first = starts_of(self.peer)
        self.last = stops_of(self.first)

    def frame(self, kind: str, start: Edge[Words], end: Edge[Words]) -> tuple[Words, Words]:
        """The first row of each row's frame, and the row behind its last."""
        low = self.start if start is None else self._edge(kind, start, first=True)
        high = self.stop if end is None else self._edge(kind, end, first=False)
        return low, np.maximum(low, high)

    def segments(self, low: Words, high: Words, exclude: str) -> list[tuple[Words, Words]]:
        """Each row's frame as stretches of rows, in order, without the rows that EXCLUDE leaves out. Some may be empty."""
        if not exclude:
            return [(low, high)]
        first, last = (self.at, self.at + 1) if exclude == "current row" else (self.first, self.last)
        before, behind = (low, np.clip(first, low, high)), (np.clip(last, low, high), high)
        if exclude != "ties":
            return [before, behind]
        return [before, (np.clip(self.at, low, high), np.clip(self.at + 1, low, high)), behind]

    def _edge(self, kind: str, edge: int | Reach[Words] | Away[Words], first: bool) -> Words:
        """The place where each frame begins, or the one behind its last row."""
        if isinstance(edge, Reach):
            return self._reached(edge, first)
        # more rows than there are is as far as all of them
        away: Words | int = edge.sign * np.minimum(edge.offset, len(self.at)) if isinstance(edge, Away) else edge
        if kind == "rows":
            place: Words = np.clip(self.at + (away if first else away + 1), self.start, self.stop)
            return place
        if kind == "range" or isinstance(edge, int) and not edge:
            return self.first if first else self.last
        begins = np.append(np.flatnonzero(self.first == self.at), len(self.at))
        group = self.peer - 1 + (away if first else away + 1)
        found: Words = begins[np.clip(group, self.peer[self.start] - 1, self.peer[self.stop - 1])]
        return found

    def _reached(self, edge: Reach[Words], first: bool) -> Words:
        """The first row of each partition whose value is at or behind the row's bound; or, of an end, the first one whose value
        is behind it. NULLs are peers of each other, and no value reaches them.
        """
        present = edge.value != NULL
        before = np.concatenate(([0], np.cumsum(present)))
        different, ranked = np.unique(np.concatenate((edge.value, edge.bound)), return_inverse=True)
        base = np.cumsum(self.at == self.start) * len(different)
        values, bounds = base + ranked[: len(base)], base + ranked[len(base) :]
        found = np.searchsorted(values[present], bounds, "left" if first else "right")
        # the values of a partition stand together, its NULLs before or behind them
        nulls = self.stop - self.start - (before[self.stop] - before[self.start])
        begins = np.where(present[self.start], self.start, self.start + nulls)
        return np.where(present, begins + found - before[self.start], self.first if first else self.last)


@dataclass(frozen=True)
class OrderedRows:
    """The row number at each place of an order, the rows in that order, and their partitions."""

    order: Words
    rows: Groups
    partitions: Partitions


def stops_of(starts: Words) -> Words:
    """Behind the last row of each row's run, given where the run begins."""
    begins = np.flatnonzero(starts == np.arange(len(starts)))
    return np.repeat(np.append(begins[1:], len(starts)), np.diff(np.append(begins, len(starts))))


def value_of(
    call: Call,
    partitions: Partitions,
    segments: list[tuple[Words, Words]],
    given: list[Words],
    kind: Type,
    rows: Groups,
) -> Words:
    """The results of a call for rows in its order; `given` are its arguments, `segments` the stretches of its frames."""
    at, start, stop = partitions.at, partitions.start, partitions.stop
    match call.kind:
        case "row_number":
            return at - start + 1
        case "rank":
            return partitions.first - start + 1
        case "dense_rank":
            return partitions.peer - partitions.peer[start] + 1
        case "percent_rank":
            return floats((partitions.first - start) / np.maximum(stop - start - 1, 1))
        case "cume_dist":
            return floats((partitions.last - start) / (stop - start))
        case "ntile":
            # of so many buckets the first ones have one row more where the rows cannot be shared out
            least, longer = np.divmod(stop - start, call.constants[0])
            place = at - start
            ahead = longer * (least + 1)
            behind = longer + (place - ahead) // np.maximum(least, 1)
            bucket: Words = np.where(place < ahead, place // (least + 1), behind) + 1
            return bucket
        case "lag" | "lead":
            return shifted(call, partitions, given, kind, rows)
        case "first_value" | "last_value" | "nth_value":
            return picked(call, segments, given)
        case "min" | "max":
            return extremes(call, segments, given[0], kind, rows)
    return totals(call, segments, given[0], kind)


def shifted(call: Call, partitions: Partitions, given: list[Words], kind: Type, rows: Groups) -> Words:
    """The value of a row some rows away; of rows with a value, if the others do not count."""
    values, *columns = given
    offset, default = call.constants
    distance = columns.pop(0) if offset == FROM_COLUMN else np.full(len(values), offset)
    otherwise = columns.pop(0) if default == FROM_COLUMN else np.full(len(values), constant(default, kind, rows))
    # beyond all rows is as far as any number goes
    ahead = np.clip(distance, -len(values) - 1, len(values) + 1) * (1 if call.kind == "lead" else -1)
    counted = np.flatnonzero(values != NULL) if call.options.ignores_nulls else partitions.at
    before = np.searchsorted(counted, partitions.at)
    behind = np.searchsorted(counted, partitions.at, "right")
    number = np.where(ahead > 0, behind + ahead - 1, before + ahead)
    inside = (number >= np.searchsorted(counted, partitions.start)) & (
        number < np.searchsorted(counted, partitions.stop)
    )
    # a row that does not count is not away from itself
    found = values[np.where(inside, counted[np.where(inside, number, 0)], 0) if len(counted) else partitions.at]
    found = np.where(ahead == 0, values, np.where(inside, found, otherwise))
    return np.where(distance == NULL, NULL, found)


def picked(call: Call, segments: list[tuple[Words, Words]], given: list[Words]) -> Words:
    """The first, last or n-th value of each frame; of rows with a value, if the others do not count."""
    values = given[0]
    if call.options.ignores_nulls:
        counted = np.flatnonzero(values != NULL)
        segments = [(np.searchsorted(counted, low), np.searchsorted(counted, high)) for low, high in segments]
        values = values[counted]
    sizes = [np.maximum(high - low, 0) for low, high in segments]
    if call.kind == "last_value":
        number = np.sum(sizes, axis=0)
    elif call.kind == "first_value":
        number = np.ones(len(given[0]), np.int64)
    else:
        number = given[1] if call.constants[0] == FROM_COLUMN else np.full(len(given[0]), call.constants[0])
    found = np.full(len(given[0]), NULL)
    for (low, _), size in zip(segments, sizes, strict=True):
        here = (number >= 1) & (number <= size)
        found[here] = values[(low + number - 1)[here]]
        number = np.where(number > size, number - size, 0)
    return found


def floats(values: Any) -> Words:
    return encode(pa.array(values, pa.float64()), types.Float)


def constant(value: Any, kind: Type, rows: Groups) -> int:
    """The word of a constant."""
    if value is None:
        return NULL
    if kind.interned:
        return int(rows.dictionary.add(pa.array([text_of(value, kind)]))[0])
    return int(literal_word(literal_value(value, kind), kind))


def extremes(call: Call, segments: list[tuple[Words, Words]], given: Words, kind: Type, rows: Groups) -> Words:
    """The least or greatest value of each frame."""
    placed = np.ascontiguousarray(ranks(given, kind, rows.dictionary))
    code = kernel.MIN if call.kind == "min" else kernel.MAX
    best = np.empty_like(given)
    low, high = segments[0]
    if len(segments) == 1 and np.all(low[1:] >= low[:-1]) and np.all(high[1:] >= high[:-1]):
        kernel.frame_extremes(placed, low, high, code, best)
    else:
        kernel.extremes_anywhere(placed, *bounds_of(segments), code, best)
    return np.where(best < 0, NULL, given[best])


def totals(call: Call, segments: list[tuple[Words, Words]], given: Words, kind: Type) -> Words:
    """The count, sum or average of each frame."""
    of_floats = kind == types.Float
    code = {
        "count": kernel.COUNT,
        "sum": kernel.SUM_FLOAT if of_floats else kernel.SUM,
        "avg": kernel.AVG_FLOAT if of_floats else kernel.AVG,
    }[call.kind]
    limit = limit_of(call.type) if isinstance(call.type, DecimalType) else MAX_INT
    divisor = 10**kind.scale if isinstance(kind, DecimalType) else 1
    found = np.empty_like(given)
    same = np.empty(0, np.int64)
    if call.options.distinct:
        keys = np.where(given == -1, 0, given) if of_floats else given  # -0.0 is 0.0
        same = np.unique(keys, return_inverse=True)[1].astype(np.int64)
    low, high = bounds_of(segments)
    if kernel.frame_totals(np.ascontiguousarray(given), same, low, high, code, limit, divisor, found) >= 0:
        raise IncorrectError(f"{call.title}: the sum over a window does not fit {call.type}")
    return found


def bounds_of(segments: list[tuple[Words, Words]]) -> tuple[Words, Words]:
    """The starts and the ends of the stretches of all frames: stretches x rows."""
    low = np.stack([low for low, _ in segments])
    return low, np.maximum(low, np.stack([high for _, high in segments]))
