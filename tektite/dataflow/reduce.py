"""Reduce: one result for the rows of each key, arranged.

At each moment a node evaluates the keys that changed and the keys that earlier moments deferred. A key is deferred to the moment
at which more of its history becomes visible. Outside of loops all history is visible, and old results are computed from the old
version of the input. In loops, and for Python functions, old results are read from the node's own output.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from tektite.dataflow.arrange import (
    Arranged,
    ArrangementReader,
    consolidate,
    is_large,
    partition_chunk,
    shared_words,
)
from tektite.dataflow.away import LONG
from tektite.dataflow.deferred_keys import DeferredKeys
from tektite.dataflow.graph import Moment, Outbox
from tektite.dataflow.kept_results import KeptResults
from tektite.dataflow.linear import shown_row
from tektite.dataflow.node import Node
from tektite.errors import IncorrectError, TektiteError
from tektite.kernels.operators import aggregate as aggregate_kernel
from tektite.kernels.operators import reduce as reduce_kernel
from tektite.kernels.ready import calls
from tektite.trace.addresses import addresses
from tektite.trace.batch import Batch
from tektite.trace.batch_memory import FEW_ROWS
from tektite.trace.chunk import Chunk, returning_chunks
from tektite.trace.key_ranges import key_ranges
from tektite.trace.records import EMPTY, Version
from tektite.trace.result_trace import ResultTrace
from tektite.trace.trace import Hold, Trace
from tektite.values.words import Words

if TYPE_CHECKING:
    from tektite.values.dictionary import Dictionary
    from tektite.values.schema import Schema

NOTHING: Words = np.empty(0, np.int64)


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

    @property
    def sums(self) -> list[int]:
        """The value columns that are sums of integers or decimals, which may not fit into a word."""
        if self.code != reduce_kernel.LINEAR:
            return []
        return [at for at in range(self.values) if self.params[5 * at] == aggregate_kernel.SUM]


@dataclass(frozen=True)
class GroupNames:
    """The key columns of a reduction, for errors."""

    schema: Schema
    dictionary: Dictionary

    def show(self, words: Words) -> str:
        """A group (key columns x 1)."""
        return f", in the group {shown_row(self.schema, words, self.dictionary)}" if self.schema.names else ""


def at_least(times: int) -> Operation:
    """The key itself, once, if its multiplicity is at least `times`."""
    return Operation(reduce_kernel.AT_LEAST, np.array([times], np.int64), 0)


def first(count: int, last: bool, values: int, ties: int = 0) -> Operation:
    """The first or last rows in the order of their value columns. With `ties`, also all rows that agree with the last of these
    in that many columns.
    """
    code = reduce_kernel.LAST if last else reduce_kernel.FIRST
    return Operation(code, np.array([count, ties], np.int64), values)


@lru_cache(maxsize=1 << 10)
def linear(kinds: tuple[tuple[Any, ...], ...]) -> Operation:
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


reduce_few: Any = calls().reduce_few
_reduce_rows = returning_chunks(reduce_kernel.reduce, "rrv")


@lru_cache(maxsize=1 << 10)
def _rounds(moment: Moment) -> Words:
    """A moment as kernels take it. Loops come to the same ones again and again."""
    return np.array(moment, np.int64)


class ReductionPart:
    """The part of its work that a shard evaluates at once: changes and deferred keys, with the versions before and after."""

    __slots__ = ("delta", "new", "old", "todo")

    def __init__(self, delta: Sequence[Batch | Chunk], todo: Sequence[Chunk], old: Version, new: Version) -> None:
        self.delta = delta
        self.todo = todo
        self.old = old
        self.new = new


class Question(Protocol):
    """The evaluation of a part, in two steps."""

    @property
    def is_long(self) -> bool:
        """Whether `answer` may take long."""

    def answer(self) -> None:
        """Do what changes nothing. Others may use the engine meanwhile."""

    def settle(self, outbox: Outbox) -> Chunk:
        """Defer keys and send errors. Returns what changes in the output."""


class ReduceNode(Node):
    """The base of all reductions: has the input, the output arrangement, and deferred keys."""

    by_function = False
    """Whether Python evaluates it, so that few changes may take long as well."""
    _ended: tuple[dict[int, Iterator[ReductionPart]], dict[int, Question]] | None = None
    """What was left to do when an interrupt ended its function: parts of shards, and the questions to answer first."""

    def __init__(
        self,
        source: Arranged,
        shards: int,
        key: int,
        values: int,
        columns: tuple[int, ...],
        own_history: bool,
        name: str,
        trace_of: type[Trace] = Trace,
    ) -> None:
        scope = source.scope
        super().__init__(scope, shards, name)
        self.key = key
        self.values = values
        self.reader = ArrangementReader(self, source)
        trace = self.mints = trace_of(key + values, self.times, 1, shards, self.flow.effort, self.flow.memory)
        self.flow.traces += (trace,)
        self.output = Arranged(trace, scope, columns, min(source.sharded_by, key), imported=False)
        self.own_history = own_history
        self.failures: Trace | None = None
        """Groups that fail, where their history is needed."""
        self._hold_output()
        self.todo = DeferredKeys(self, key)
        self.width_of_rows = source.trace.data
        """The data columns of what it reads."""
        self._width = shared_words(source.trace.data)
        """The same, for a kernel that gets one batch of changes, as most steps have."""

    def _hold_output(self) -> None:
        if self.own_history:
            self.flow.holds += (Hold(self.output.trace, self.scope.frontier),)

    def mint_into(self, trace: Trace) -> None:
        if self.own_history and all([hold.trace is not trace for hold in self.flow.holds]):
            self.flow.holds += (Hold(trace, self.scope.frontier),)
        self.mints = self.output.trace = trace

    def _remember_failures(self, width: int) -> None:
        """Keep groups that fail, in rows of so many columns."""
        self.failures = Trace(width, self.times, 1, self.shards, self.flow.effort, self.flow.memory)
        self._hold_failures(self.failures)

    def _hold_failures(self, failures: Trace) -> None:
        self.flow.traces += (failures,)
        self.flow.holds += (Hold(failures, self.scope.frontier),)

    def begin(self) -> None:
        super().begin()
        self._hold_output()
        if self.failures is not None:
            self.failures.begin()
            self._hold_failures(self.failures)

    def run(self, moment: Moment) -> None:
        rows = self.reader.handle.queued + self.todo.rows(moment)
        if self.by_function or self._ended is not None or rows >= LONG:
            self._run_in_steps(moment, rows)
        else:
            self.each_shard(lambda shard, outbox: self._shard(shard, moment, outbox), rows)
        self.schedule_others(moment)

    def schedule_others(self, moment: Moment) -> None:
        """Schedule what a run has made work for: itself, for keys that it deferred, and readers of its output."""
        if self.todo.has_new:
            for later in self.todo.unscheduled():
                self.scope.schedule(self.position, later)
        if self.output.readers:
            self.output.wake_readers(moment)

    def consults(self) -> Sequence[Trace]:
        own = (self.output.trace,) if self.own_history else ()
        return own if self.failures is None else (*own, self.failures)

    def _run_in_steps(self, moment: Moment, rows: int) -> None:
        """Evaluate what may take long while others use the engine."""
        parts: dict[int, Iterator[ReductionPart]] = {}
        asked: dict[int, Question] = {}
        made: dict[int, Chunk] = {}

        def ask(shard: int, outbox: Outbox) -> None:
            asked.pop(shard, None)
            if shard not in parts:
                parts[shard] = iter(self._parts(shard, moment))
            part = next(parts[shard], None)
            if part is not None:
                asked[shard] = self._ask(shard, part, moment)

        def answer(shard: int) -> None:
            if shard in asked:
                asked[shard].answer()

        def settle(shard: int, outbox: Outbox) -> None:
            made.pop(shard, None)
            if shard in asked:
                result = asked[shard].settle(outbox)
                if result.n:
                    made[shard] = self._minted(shard, result)

        def emit(shard: int, outbox: Outbox) -> None:
            if shard in made:
                self.port.emit(shard, made[shard], moment, self.times, outbox)

        if self._ended is None:
            self.each_shard(ask, rows)
        else:
            parts, asked = self._ended
            self._ended = None
        while asked:
            if any([question.is_long for question in asked.values()]):
                if not self.call_function(answer, rows):
                    self._ended = parts, asked
                    self.scope.schedule(self.position, moment)
                    return
            else:
                for shard in asked:
                    answer(shard)
            self.each_shard(settle, rows)
            if self.port.edges and made:
                self.work_out(emit, sum([result.n for result in made.values()]))
            self.each_shard(ask, rows)

    @property
    def busy(self) -> bool:
        return self._ended is not None

    def clear(self) -> None:
        super().clear()
        self._ended = None

    def _shard(self, shard: int, moment: Moment, outbox: Outbox) -> None:
        for part in self._parts(shard, moment):
            result = self._evaluate(shard, part, moment, outbox)
            if result.n:
                self._deliver(shard, result, moment, outbox)

    def _evaluate(self, shard: int, part: ReductionPart, moment: Moment, outbox: Outbox) -> Chunk:
        """Evaluate a part at once. Defers keys and sends errors; returns what changes in the output."""
        question = self._ask(shard, part, moment)
        question.answer()
        return question.settle(outbox)

    def _parts(self, shard: int, moment: Moment) -> Iterable[ReductionPart]:
        """Take what there is to evaluate. Where memory is limited, many changes come in several parts."""
        old, delta, new = self.reader.take(shard)
        todo = self.todo.take(shard, moment)
        if not delta and not todo:
            return ()
        memory = self.flow.memory
        if (
            memory is not None
            and not todo
            and (len(delta) > 1 or delta[0].n > FEW_ROWS)
            and is_large(delta, self.reader.trace.shape, memory)
        ):
            chunks = [Chunk(batch.head, batch.memory) for batch in delta]
            # Twice the columns: of what is read, and of what is made of it.
            pieces = key_ranges(chunks, self.key, memory.piece_rows(2 * sum(self.reader.trace.shape)))
            return (ReductionPart(parts, [], old, new) for parts in pieces)
        return (ReductionPart(delta, todo, old, new),)

    def work_of(self, part: ReductionPart) -> tuple[Words, Words]:
        """The changes and deferred keys of a part as kernels take them: the addresses of their rows, and how wide they are."""
        work = addresses([*part.delta, *part.todo])
        if len(work) == 1 and not part.todo:
            return work, self._width
        return work, np.array([self.reader.trace.data] * len(part.delta) + [self.key] * len(part.todo), np.int64)

    def _deliver(self, shard: int, result: Chunk, moment: Moment, outbox: Outbox) -> None:
        """Append what has changed, some rows, to the output, and send it to readers."""
        result = self._minted(shard, result)
        if self.port.edges:
            self.port.emit(shard, result, moment, self.times, outbox)

    def _minted(self, shard: int, result: Chunk) -> Chunk:
        """Append what has changed, some rows, to the output."""
        if self.flow.memory is not None and result.n > FEW_ROWS:
            result = self.flow.memory.placed(result)
        self.output.trace.mint(shard, result, self.scope.passed())
        return result

    def _ask(self, shard: int, part: ReductionPart, moment: Moment) -> Question:
        """Makes the question whose answer is the result of a part."""
        raise NotImplementedError

    def defer(self, shard: int, todo: Chunk) -> None:
        """Defer keys to later moments. Each part stays sorted by key."""
        if not todo.n:
            return
        only = todo.constants(self.key + 1, self.times - 1)
        if only is not None:
            self.todo.add(shard, todo, only)
            return
        parts, offsets, moments = partition_chunk(todo.at, self.key, self.times)
        parts.memory = todo.memory
        for i, moment in enumerate(map(tuple, moments.tolist())):
            self.todo.add(shard, parts.slice(int(offsets[i]), int(offsets[i + 1])), moment)


class BuiltinReduce(ReduceNode):
    """A reduction that the kernel evaluates.

    A sum that does not fit into a word is an error of its group. The kernel says that there is one, and shows what is left of it
    in a word. Then it runs again, to show which sums of which groups do not fit. Where old results are read from the output, the
    groups that did not fit are remembered in `failures`.
    """

    error: type[TektiteError] = IncorrectError
    groups: GroupNames

    def __init__(
        self, source: Arranged, shards: int, key: int, operation: Operation, columns: tuple[int, ...], name: str
    ) -> None:
        nested, summed = source.scope.depth > 0, operation.code in (reduce_kernel.LINEAR, reduce_kernel.AT_LEAST)
        again = summed and not nested and source.trace.data == key
        super().__init__(
            source, shards, key, operation.values, columns, nested, name, ResultTrace if again else Trace
        )  # fmt: skip
        self.kept = KeptResults(self, self.output.trace) if isinstance(self.output.trace, ResultTrace) else None
        self.operation = operation
        self.params = operation.params
        self.remembers_failures = bool(self.own_history and operation.sums)
        """Whether groups that fail are remembered."""
        if self.own_history and operation.sums:
            self._remember_failures(key + len(operation.sums))
        trace = source.trace
        self.shape = shared_words(
            key,
            trace.data,
            self.times,
            trace.times,
            trace.diffs,
            operation.values,
            int(self.own_history),
            operation.code,
        )

    def _ask(self, shard: int, part: ReductionPart, moment: Moment) -> KernelQuestion:
        past = self.output.trace.version(shard) if self.own_history else part.old
        return KernelQuestion(self, shard, part, past, _rounds(moment))

    def run(self, moment: Moment) -> None:
        kept, trace = self.kept, self.output.trace
        if kept is not None and trace.spines is None and trace.holds:
            kept.prepare()
        if not reduce_few(self, moment, _reduce_rows, _rounds):
            super().run(moment)
        if kept is not None and trace.minted >= kept.look_at:
            kept.consider()

    def begin(self) -> None:
        super().begin()
        if self.kept is not None:
            self.kept.begin()

    def mint_into(self, trace: Trace) -> None:
        super().mint_into(trace)
        self.kept = None

    def ship(self) -> dict[str, Any]:
        return super().ship() | {"kept": None}

    def replay(self, shard: int, moment: Moment) -> None:
        if self.kept is not None:
            self.kept.prepare()
        super().replay(shard, moment)

    def evaluate(self, parts: Sequence[Chunk], epoch: int) -> Chunk:
        """Its result for sorted rows, all of them at one epoch."""
        widths = np.full(len(parts), self.reader.trace.data)
        none = EMPTY.table
        found: tuple[Chunk, Chunk, Words] = _reduce_rows(
            addresses(parts), widths, none, none, self.shape, self.params, _rounds(()), epoch, epoch + 1
        )
        if int(found[2][0]) == reduce_kernel.OVERFLOW:
            raise IncorrectError(f"{self.name}: a multiplicity does not fit into 64 bits")
        return found[0]

    def find(self, part: ReductionPart, past: Version, at: Words) -> tuple[Chunk, Chunk, Words]:
        """Run the kernel: what changes, what is deferred, and how it went."""
        work, widths = self.work_of(part)
        flow = self.flow
        found: tuple[Chunk, Chunk, Words] = _reduce_rows(
            work, widths, part.new.table, past.table, self.shape, self.operation.params, at, flow.reached, flow.high
        )
        return found

    def settled_rows(
        self,
        shard: int,
        taken: tuple[Version, tuple[Batch, ...], Version],
        todo: list[Chunk] | None,
        at: Words,
        found: tuple[Chunk, Chunk, Words],
        outbox: Outbox,
    ) -> None:
        """`settled`, for what was taken at once."""
        old, delta, new = taken
        self.settled(shard, ReductionPart(delta, todo or [], old, new), at, found, outbox)

    def settled(
        self, shard: int, part: ReductionPart, at: Words, found: tuple[Chunk, Chunk, Words], outbox: Outbox
    ) -> Chunk:
        """Defer keys and send the errors of what the kernel found. Returns what changes in the output."""
        result, todo, status = found
        wrong = int(status[0])
        failed = wrong == reduce_kernel.TOO_LARGE and self.errors is not None
        if failed or (self.failures is not None and len(self.failures.version(shard).table)):
            self._send_overflows(shard, *self.work_of(part), part.old, part.new, at, outbox)
        if wrong and not failed:
            raise IncorrectError(
                f"{self.name}: a sum does not fit into 64 bits, in the group with the key words {status[1:].tolist()}"
            )
        if todo.n:
            self.defer(shard, todo)
        return result

    def _send_overflows(
        self, shard: int, work: Words, widths: Words, old: Version, new: Version, at: Words, outbox: Outbox
    ) -> None:
        """Send the changes of which groups have a sum that does not fit."""
        assert self.errors is not None
        sums = self.operation.sums
        params = np.concatenate([self.operation.params[5 * column : 5 * column + 5] for column in sums])
        params[::5] = aggregate_kernel.OVERFLOWS
        shape = self.shape.copy()
        shape[5] = len(sums)
        past = old if self.failures is None else self.failures.version(shard)
        found, *_ = _reduce_rows(
            work, widths, new.table, past.table, shape, params, at, self.flow.reached, self.flow.high
        )
        words = found.to_array()
        flags = slice(self.key, self.key + len(sums))
        failed = np.ascontiguousarray(words[:, words[flags].any(axis=0)])
        if not failed.shape[1]:
            return
        if self.failures is not None:
            built = consolidate([Chunk.of_array(failed)], self.failures.shape, self.flow.reached)
            self.failures.mint(shard, built, self.scope.passed())
        self.errors.send(shard, np.delete(failed, flags, axis=0), self.times, outbox)

    def explain(self, words: Words) -> str:
        """Names the group whose sum does not fit."""
        return f"a sum does not fit into 64 bits{self.groups.show(words)}"


class KernelQuestion:
    """The evaluation of a part by the kernel."""

    __slots__ = ("at", "found", "node", "part", "past", "shard")

    is_long = True

    def __init__(self, node: BuiltinReduce, shard: int, part: ReductionPart, past: Version, at: Words) -> None:
        self.node = node
        self.shard = shard
        self.part = part
        self.past = past
        self.at = at
        self.found: tuple[Chunk, Chunk, Words] | None = None

    def answer(self) -> None:
        """Run the kernel."""
        changes, todo, status = self.node.find(self.part, self.past, self.at)
        memory = self.node.flow.memory
        self.found = (changes if memory is None else memory.placed(changes)), todo, status

    def settle(self, outbox: Outbox) -> Chunk:
        """The changes of the output."""
        assert self.found is not None
        return self.node.settled(self.shard, self.part, self.at, self.found, outbox)
