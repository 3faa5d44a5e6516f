"""Reduce: one result for the rows of each key, arranged.

At each moment a node evaluates the keys that changed and the keys that earlier moments deferred. A key is deferred to the moment
at which more of its history becomes visible. Outside of loops all history is visible, and old results are computed from the old
version of the input. In loops, and for Python functions, old results are read from the node's own output.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tektite.dataflow.arrange import Arranged, ArrangementReader, consolidate
from tektite.dataflow.deferred_keys import DeferredKeys
from tektite.dataflow.graph import Moment, Outbox
from tektite.dataflow.linear import function_name
from tektite.dataflow.node import Node
from tektite.errors import FaultError, IncorrectError
from tektite.kernels.operators import aggregate as aggregate_kernel
from tektite.kernels.operators import reduce as reduce_kernel
from tektite.kernels.operators.collect import collect, settle
from tektite.kernels.seek.route import partition_moments
from tektite.trace.chunk import Chunk, column_spec
from tektite.trace.spine import Version
from tektite.trace.trace import Hold, Trace
from tektite.values.words import Words

if TYPE_CHECKING:
    from tektite.values.dictionary import Dictionary
    from tektite.values.schema import Schema

NOTHING: Words = np.empty(0, np.int64)
# Rows of groups for one call of a function. Its intermediate arrays then stay in the cache.
TOGETHER = 1 << 15


@dataclass(frozen=True)
class Groups:
    """The rows of many groups, one group after the other: the number of each row's group, its key and value columns as words,
    and its multiplicity, which is positive.
    """

    numbers: Words
    columns: Words
    counts: Words
    dictionary: Dictionary


GroupResults = tuple[Words, Words, Words]
"""The results for groups: for each row the number of its group, its value columns and its multiplicity."""


@dataclass(frozen=True)
class Operation:
    """A built-in reduction: the kernel's code, its parameters, and the number of value columns it produces."""

    code: int
    params: Words
    values: int


def at_least(times: int) -> Operation:
    """The key itself, once, if its multiplicity is at least `times`."""
    return Operation(reduce_kernel.AT_LEAST, np.array([times], np.int64), 0)


def first(count: int, last: bool, values: int, ties: int = 0) -> Operation:
    """The first or last rows in the order of their value columns. With `ties`, also all rows that agree with the last of these
    in that many columns.
    """
    code = reduce_kernel.LAST if last else reduce_kernel.FIRST
    return Operation(code, np.array([count, ties], np.int64), values)


def linear(kinds: Sequence[tuple[Any, ...]]) -> Operation:
    """Aggregates from accumulated diff columns: ("count", column), ("sum" | "avg", present, low limb, digits), or
    ("sum of floats" | "avg of floats", present, number of the float column).
    """
    params: list[int] = []
    for kind in kinds:
        if kind[0] == "count":
            params += [aggregate_kernel.COUNT, kind[1], 0, 0, 0]
        elif kind[0].endswith("of floats"):
            code = aggregate_kernel.SUM_FLOAT if kind[0] == "sum of floats" else aggregate_kernel.AVG_FLOAT
            params += [code, kind[2], 0, kind[1], 0]
        else:
            code = aggregate_kernel.SUM if kind[0] == "sum" else aggregate_kernel.AVG
            params += [code, kind[2], kind[2] + 1, kind[1], kind[3]]
    return Operation(reduce_kernel.LINEAR, np.array(params, np.int64), len(kinds))


class ReduceNode(Node):
    """What all reductions share: the input, the output arrangement, and deferred keys."""

    def __init__(
        self,
        source: Arranged,
        shards: int,
        key: int,
        values: int,
        columns: tuple[int, ...],
        own_history: bool,
        name: str,
    ) -> None:
        scope = source.scope
        super().__init__(scope, shards, name)
        self.key = key
        self.values = values
        self.reader = ArrangementReader(self, source)
        trace = self.mints = Trace(key + values, self.times, 1, shards, self.flow.effort)
        self.flow.traces.append(trace)
        self.output = Arranged(trace, scope, columns, min(source.sharded_by, key), imported=False)
        self.own_history = own_history
        self._hold_output()
        self.todo = DeferredKeys(self, key)

    def _hold_output(self) -> None:
        if self.own_history:
            self.flow.holds.append(Hold(self.output.trace, self.scope.frontier))

    def begin(self) -> None:
        super().begin()
        self._hold_output()

    def run(self, moment: Moment) -> None:
        rows = sum(batch.n for queue in self.reader.handle.queues for batch in queue)
        rows += self.todo.rows(moment)
        self.each_shard(lambda shard, outbox: self._shard(shard, moment, outbox), rows)
        if self.todo.has_new:
            for later in self.todo.unscheduled():
                self.scope.schedule(self.position, later)
        self.output.wake_readers(moment)

    def consults(self) -> Sequence[Trace]:
        return (self.output.trace,) if self.own_history else ()

    def _shard(self, shard: int, moment: Moment, outbox: Outbox) -> None:
        old, delta, new = self.reader.take(shard)
        todo = self.todo.take(shard, moment)
        if not delta and not todo:
            return
        work = np.array([batch.at for batch in delta] + [chunk.at for chunk in todo], np.int64)
        widths = np.array([self.reader.trace.data] * len(delta) + [self.key] * len(todo), np.int64)
        result = self._evaluate(shard, work, widths, old, new, moment)
        if result.n:
            self.output.mint(shard, result)
            self.port.emit(shard, result, moment, self.times, outbox)

    def _evaluate(self, shard: int, work: Words, widths: Words, old: Version, new: Version, moment: Moment) -> Chunk:
        raise NotImplementedError

    def defer(self, shard: int, todo: Chunk) -> None:
        """Defer keys to later moments. Each part stays sorted by key."""
        if not todo.n:
            return
        buf, head, offsets, moments = partition_moments(todo.at, self.key, self.times)
        parts = Chunk(head, (todo.memory, buf))
        for i, moment in enumerate(map(tuple, moments.tolist())):
            self.todo.add(shard, parts.slice(int(offsets[i]), int(offsets[i + 1])), moment)


class BuiltinReduce(ReduceNode):
    """A reduction that the kernel evaluates."""

    def __init__(
        self, source: Arranged, shards: int, key: int, operation: Operation, columns: tuple[int, ...], name: str
    ) -> None:
        super().__init__(source, shards, key, operation.values, columns, source.scope.depth > 0, name)
        self.operation = operation
        trace = source.trace
        self.shape = np.array(
            [key, trace.data, self.times, trace.times, trace.diffs, operation.values, int(self.own_history),
             operation.code],
            np.int64,
        )  # fmt: skip

    def _evaluate(self, shard: int, work: Words, widths: Words, old: Version, new: Version, moment: Moment) -> Chunk:
        past = self.output.trace.version(shard) if self.own_history else old
        flow = self.flow
        buf, head, todo_buf, todo_head, status = reduce_kernel.reduce(
            work, widths, new.table, past.table, self.shape, self.operation.params, np.array(moment, np.int64),
            flow.low, flow.high,
        )  # fmt: skip
        if status[0]:
            raise IncorrectError(
                f"{self.name}: a sum does not fit into 64 bits, in the group with the key words {status[1:].tolist()}"
            )
        if todo_head[0]:
            self.defer(shard, Chunk(todo_head, todo_buf))
        return Chunk(head, buf)


class FunctionReduce(ReduceNode):
    """A reduction by a Python function, called for each group at each time at which the group may have changed.

    Old results are read from the node's output, so the function is not called again for them.
    """

    def __init__(
        self,
        source: Arranged,
        shards: int,
        key: int,
        function: Callable[..., Any],
        given: Schema,
        wanted: Schema,
        dictionary: Dictionary,
        name: str,
    ) -> None:
        values = len(wanted.names) - key
        super().__init__(source, shards, key, values, tuple(range(key + values)), True, name)
        self.function = function
        names = given.names
        self.key_schema = given.select(*names[:key])
        self.value_schema = given.select(*names[key:])
        self.result_schema = wanted.select(*wanted.names[key:])
        self.dictionary = dictionary
        trace = source.trace
        self.shape = np.array([key, trace.data, self.times, trace.times, 1, values, 1, 0], np.int64)

    def _evaluate(self, shard: int, work: Words, widths: Words, old: Version, new: Version, moment: Moment) -> Chunk:
        flow = self.flow
        past = self.output.trace.version(shard)
        at = np.array(moment, np.int64)
        buf, head, request_buf, request_head, todo_buf, todo_head = collect(
            work, widths, new.table, past.table, self.shape, at, flow.low, flow.high
        )
        if todo_head[0]:
            self.defer(shard, Chunk(todo_head, todo_buf))
        requests = Chunk(request_head, request_buf)
        numbers, words, counts = self._results(Chunk(head, buf).to_array(), requests.to_array())
        columns = np.ascontiguousarray(np.vstack([numbers, words, np.zeros_like(numbers), counts]))
        width = self.values + 1
        built = consolidate([Chunk.of_array(columns)], (width, 1, 1), 0)
        wants = built.select(column_spec([*range(width), width + 1]))
        buf, head = settle(requests.at, wants.at, past.table, self.shape, at, flow.low, flow.high)
        return Chunk(head, buf)

    def _results(self, groups: Words, requests: Words) -> GroupResults:
        """Call the function for every group that is not empty. The requests are the groups' keys and times."""
        keys = self.key_schema.decode_rows(np.ascontiguousarray(requests[: self.key]), self.dictionary)
        rows = self.value_schema.decode_rows(np.ascontiguousarray(groups[1:-1]), self.dictionary)
        counted = list(zip(rows, groups[-1].tolist(), strict=True))
        numbers, starts = np.unique(groups[0], return_index=True)
        stops = [*starts.tolist(), len(counted)][1:]
        results: list[tuple[Any, ...]] = []
        origins: list[int] = []
        for number, start, stop in zip(numbers.tolist(), starts.tolist(), stops, strict=True):
            found = self._call(keys[number], counted[start:stop])
            results.extend(found)
            origins.extend([number] * len(found))
        try:
            words = self.result_schema.encode(results, self.dictionary)
        except IncorrectError as error:
            raise FaultError(f"what {function_name(self.function)} returned: {error}", self.flow.name) from error
        return np.array(origins, np.int64), words, np.ones(len(origins), np.int64)

    def _call(self, key: tuple[Any, ...], rows: list[tuple[tuple[Any, ...], int]]) -> list[tuple[Any, ...]]:
        try:
            return list(self.function(key, rows))
        except Exception as error:
            raise FaultError(
                f"{function_name(self.function)} raised {error!r} for key {key}", self.flow.name
            ) from error


class GroupsReduce(FunctionReduce):
    """A reduction by a function of many groups at once, over words."""

    def _results(self, groups: Words, requests: Words) -> GroupResults:
        there = groups[:, groups[-1] > 0]
        parts = [self._made_of(there[:, start:stop], requests) for start, stop in whole_groups(there[0])]
        if not parts:
            return NOTHING, np.empty((self.values, 0), np.int64), NOTHING
        numbers, words, counts = zip(*parts, strict=True)
        return np.concatenate(numbers), np.concatenate(words, axis=1), np.concatenate(counts)

    def _made_of(self, groups: Words, requests: Words) -> GroupResults:
        columns = np.vstack([requests[: self.key, groups[0]], groups[1:-1]])
        found: GroupResults = self.function(Groups(groups[0], columns, groups[-1], self.dictionary))
        return found


def whole_groups(numbers: Words) -> Iterator[tuple[int, int]]:
    """Ranges of about `TOGETHER` rows that end with a group. The groups' numbers must be in ascending order."""
    start = 0
    while start < len(numbers):
        last = min(start + TOGETHER, len(numbers)) - 1
        stop = int(np.searchsorted(numbers, numbers[last], side="right"))
        yield start, stop
        start = stop
