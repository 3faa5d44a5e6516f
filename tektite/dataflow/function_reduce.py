"""Reductions by Python functions: of one group at a time, or of many groups at once.

A function is called for each group at each time at which the group may have changed. Old results are read from the node's own
output. A group for which the function raises has an error instead of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from tektite.dataflow.arrange import Arranged, consolidate
from tektite.dataflow.away import LONG
from tektite.dataflow.graph import Moment, Outbox
from tektite.dataflow.linear import function_name
from tektite.dataflow.reduce import NOTHING, GroupNames, GroupResults, Groups, ReduceNode, ReductionPart
from tektite.errors import FaultError, IncorrectError, TektiteError
from tektite.kernels.operators.collect import collect, settle
from tektite.trace.chunk import Chunk, column_spec
from tektite.trace.records import Version
from tektite.values.words import Words

if TYPE_CHECKING:
    from tektite.values.dictionary import Dictionary
    from tektite.values.schema import Schema

# Rows of groups for one call of a function. Its intermediate arrays then stay in the cache.
TOGETHER = 1 << 15


class FunctionReduce(ReduceNode):
    """A reduction by a Python function, called for each group at each time at which the group may have changed.

    Old results are read from the node's output, so the function is not called again for them. A group for which it raises has no
    rows but an error. Old errors are read from `failures`, a trace of keys and messages.
    """

    by_function = True
    error: type[TektiteError] = FaultError

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
        self.failure_shape = np.array([key, trace.data, self.times, trace.times, 1, 1, 1, 0], np.int64)
        self._remember_failures(key + 1)

    def explain(self, words: Words) -> str:
        """Describes the failure of a group."""
        text = self.dictionary.lookup(np.ascontiguousarray(words[-1]))[0].as_py()
        return f"{text}{GroupNames(self.key_schema, self.dictionary).show(words[:-1])}"

    def _ask(self, shard: int, part: ReductionPart, moment: Moment) -> FunctionQuestion:
        assert self.failures is not None
        past, failures = self.output.trace.version(shard), self.failures.version(shard)
        return FunctionQuestion(self, shard, part, past, failures, np.array(moment, np.int64))

    def may_take_long(self, part: ReductionPart) -> bool:
        """Whether evaluating the groups of some changes may take long: the function is the user's."""
        return True

    def answer(self, question: FunctionQuestion) -> None:
        """Call the function for the groups that may have changed, and compare. Changes nothing of the node."""
        self.evaluate(question, question.part)

    def evaluate(self, question: FunctionQuestion, part: ReductionPart) -> None:
        """`answer`, for a part of the changes."""
        past, at = question.past, question.at
        requests, groups = self.collected(question, part)
        failed: list[tuple[int, str]] = []
        results = self.results(groups, requests.to_array(), failed)
        question.changes = self._settled(requests, *results, past, self.shape, at)
        question.failing = None
        if failed or len(question.failures.table):
            numbers = np.array([number for number, _ in failed], np.int64)
            texts = self.dictionary.add(pa.array([text for _, text in failed], pa.string())).reshape(1, -1)
            counts = np.ones_like(numbers)
            question.failing = self._settled(
                requests, numbers, texts, counts, question.failures, self.failure_shape, at
            )

    def collected(self, question: FunctionQuestion, part: ReductionPart) -> tuple[Chunk, Words]:
        """The keys and times to evaluate for some changes, and the rows of these groups. Notes which keys are to be deferred."""
        flow = self.flow
        buf, head, request_buf, request_head, todo_buf, todo_head = collect(
            *self.work_of(part), part.new.table, question.past.table, self.shape, question.at, flow.reached, flow.high
        )
        question.todo = Chunk(todo_head, todo_buf)
        return Chunk(request_head, request_buf), Chunk(head, buf).to_array()

    def settled(self, question: FunctionQuestion, outbox: Outbox) -> Chunk:
        """The changes of the output. Sends the changes of which groups fail, and defers keys."""
        assert question.todo is not None and question.changes is not None
        self.defer(question.shard, question.todo)
        failing = question.failing
        if failing is not None and failing.n:
            assert self.errors is not None and self.failures is not None
            self.failures.mint(question.shard, failing, self.scope.passed())
            self.errors.send(question.shard, failing.to_array(), self.times, outbox)
        return question.changes

    def _settled(
        self, requests: Chunk, numbers: Words, words: Words, counts: Words, past: Version, shape: Words, at: Words
    ) -> Chunk:
        """The new results of groups minus those that a version holds."""
        columns = np.ascontiguousarray(np.vstack([numbers, words, np.zeros_like(numbers), counts]))
        width = len(words) + 1
        built = consolidate([Chunk.of_array(columns)], (width, 1, 1), 0)
        wants = built.select(column_spec([*range(width), width + 1]))
        buf, head = settle(requests.at, wants.at, past.table, shape, at, self.flow.reached, self.flow.high)
        return Chunk(head, buf)

    def results(self, groups: Words, requests: Words, failed: list[tuple[int, str]]) -> GroupResults:
        """Call the function for every group that is not empty. The requests are the groups' keys and times. Groups for which it
        fails are added to `failed`, with a message.
        """
        keys = self.key_schema.decode_rows(np.ascontiguousarray(requests[: self.key]), self.dictionary)
        rows = self.value_schema.decode_rows(np.ascontiguousarray(groups[1:-1]), self.dictionary)
        counted = list(zip(rows, groups[-1].tolist(), strict=True))
        numbers, starts = np.unique(groups[0], return_index=True)
        stops = [*starts.tolist(), len(counted)][1:]
        results: list[tuple[Any, ...]] = []
        origins: list[int] = []
        for number, start, stop in zip(numbers.tolist(), starts.tolist(), stops, strict=True):
            try:
                found = list(self.function(keys[number], counted[start:stop]))
            except Exception as error:
                failed.append((number, f"{function_name(self.function)} raised {error!r}"))
                continue
            results.extend(found)
            origins.extend([number] * len(found))
        try:
            words = self.result_schema.encode(results, self.dictionary)
        except IncorrectError:
            origins, words = self._encoded_apart(results, origins, failed)
        return np.array(origins, np.int64), words, np.ones(len(origins), np.int64)

    def _encoded_apart(
        self, results: list[tuple[Any, ...]], origins: list[int], failed: list[tuple[int, str]]
    ) -> tuple[list[int], Words]:
        """The results of the groups whose results can be encoded; the other groups fail."""
        kept: list[int] = []
        parts = [np.empty((self.values, 0), np.int64)]
        for number in dict.fromkeys(origins):
            found = [row for row, origin in zip(results, origins, strict=True) if origin == number]
            try:
                parts.append(self.result_schema.encode(found, self.dictionary))
            except IncorrectError as error:
                failed.append((number, f"what {function_name(self.function)} returned: {error}"))
            else:
                kept += [number] * len(found)
        return kept, np.concatenate(parts, axis=1)


class FunctionQuestion:
    """The evaluation of a part by a function."""

    __slots__ = ("at", "changes", "failing", "failures", "node", "part", "past", "shard", "todo")

    def __init__(
        self, node: FunctionReduce, shard: int, part: ReductionPart, past: Version, failures: Version, at: Words
    ) -> None:
        self.node = node
        self.shard = shard
        self.part = part
        self.past = past
        """The output before."""
        self.failures = failures
        """Which groups have failed before."""
        self.at = at
        self.todo: Chunk | None = None
        """The keys to defer."""
        self.changes: Chunk | None = None
        """What changes in the output."""
        self.failing: Chunk | None = None
        """What changes in which groups fail."""

    @property
    def is_long(self) -> bool:
        """Whether the function may take long."""
        return self.node.may_take_long(self.part)

    def answer(self) -> None:
        """Call the function. It may be called again if an interrupt ended it."""
        self.node.answer(self)

    def settle(self, outbox: Outbox) -> Chunk:
        """The changes of the output."""
        return self.node.settled(self, outbox)


class GroupsReduce(FunctionReduce):
    """A reduction by a function of many groups at once, over words. If it fails, groups are given to it in smaller numbers, to
    find those for which it does.
    """

    error: type[TektiteError] = IncorrectError

    def may_take_long(self, part: ReductionPart) -> bool:
        """Whether groups may have many rows: the function is one of ours."""
        return max(part.old.rows, part.new.rows) >= LONG

    def results(self, groups: Words, requests: Words, failed: list[tuple[int, str]]) -> GroupResults:
        """Call the function for some groups at a time."""
        there = groups[:, groups[-1] > 0]
        parts = []
        waiting = [there[:, start:stop] for start, stop in whole_groups(there[0])]
        waiting.reverse()
        while waiting:
            part = waiting.pop()
            try:
                parts.append(self._made_of(part, requests))
            except IncorrectError as error:
                numbers = np.unique(part[0])
                if len(numbers) == 1:
                    failed.append((int(numbers[0]), str(error)))
                else:
                    cut = int(np.searchsorted(part[0], numbers[len(numbers) // 2]))
                    waiting += [part[:, cut:], part[:, :cut]]
        if not parts:
            return NOTHING, np.empty((self.values, 0), np.int64), NOTHING
        numbers_found, words, counts = zip(*parts, strict=True)
        return np.concatenate(numbers_found), np.concatenate(words, axis=1), np.concatenate(counts)

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
