"""FunctionNode: calls a user's function with the rows of a moment, while others use the engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from tektite.dataflow.arrange import Buffer
from tektite.dataflow.away import CircularWaitError
from tektite.dataflow.graph import Moment, Outbox, Scope
from tektite.dataflow.linear import function_name, shown_row
from tektite.dataflow.node import Node
from tektite.errors import FunctionError, IncorrectError, TektiteError
from tektite.trace.chunk import Chunk
from tektite.values.words import Words

if TYPE_CHECKING:
    from tektite.dataflow.errors import ErrorOrigin
    from tektite.values.dictionary import Dictionary
    from tektite.values.schema import Schema

FUNCTION_ROWS = 1 << 16
"""Rows for one call of a Python function: enough to amortise the call, few enough to bound its memory."""


class BatchFunction:
    """Calls a Python function with Arrow tables. The function must be pure, because retractions evaluate it again.

    A row for which it raises, or returns what its columns cannot hold, fails. Which rows these are is found by calling it again
    with fewer rows.
    """

    error: type[TektiteError] = FunctionError

    def __init__(
        self,
        function: Callable[[Any], Any],
        given: Schema,
        wanted: Schema,
        many: bool,
        dictionary: Dictionary,
        view: str,
    ) -> None:
        self.function = function
        self.given = given
        self.wanted = wanted
        self.many = many
        self.dictionary = dictionary
        self.view = view

    def attempt(self, chunk: Chunk, times: int) -> tuple[Chunk, Words | None]:
        """The results of the rows that do not fail, and the rows that do."""
        made: list[Words] = []
        failed: list[Words] = []
        waiting = [(start, min(start + FUNCTION_ROWS, chunk.n)) for start in reversed(range(0, chunk.n, FUNCTION_ROWS))]
        while waiting:
            start, stop = waiting.pop()
            part = chunk.slice(start, stop)
            try:
                made.append(self._apply(part, times))
            except FailingFunctionError:
                if stop - start == 1:
                    failed.append(part.to_array())
                else:
                    middle = (start + stop) // 2
                    waiting += [(middle, stop), (start, middle)]
        if not made:
            made.append(np.empty((len(self.wanted.names) + times + 1, 0), np.int64))
        return Chunk.of_array(np.concatenate(made, axis=1)), np.concatenate(failed, axis=1) if failed else None

    def explain(self, words: Words) -> str:
        """Calls the function on a row again, and describes its failure and the row."""
        row = shown_row(self.given, words, self.dictionary)
        try:
            self._apply(Chunk.of_array(np.concatenate([words, np.ones((2, 1), np.int64)])), 1)
        except FunctionError as error:
            return f"{Exception.__str__(error)}, in the row {row}"
        return f"{function_name(self.function)} failed, and did not fail when it was called again, in the row {row}"

    def _apply(self, chunk: Chunk, times: int) -> Words:
        data = len(self.given.names)
        words = chunk.to_array()
        batch = self.given.decode(words[:data], self.dictionary).combine_chunks()
        try:
            result = self.function(batch)
        except (MemoryError, CircularWaitError) as error:  # not because of the row: it may not fail when it is deleted
            raise FunctionError(f"{function_name(self.function)} raised {error!r}", self.view) from error
        except Exception as error:
            message = f"{function_name(self.function)} raised {error!r}"
            raise FailingFunctionError(message, self.view) from error
        rows: Words = np.arange(chunk.n)
        if self.many:
            result, origin = self._unpack(result)
            rows = np.asarray(origin, np.int64)
        elif not isinstance(result, pa.Table | pa.RecordBatch) or result.num_rows != chunk.n:
            found = f"{result.num_rows} rows" if hasattr(result, "num_rows") else type(result).__name__
            raise FunctionError(
                f"{function_name(self.function)} must return a table with one row for each of the {chunk.n} it was "
                f"given, not {found}",
                self.view,
            )
        try:
            encoded = self.wanted.encode(result, self.dictionary)
        except IncorrectError as error:
            message = f"what {function_name(self.function)} returned: {error}"
            raise FailingFunctionError(message, self.view) from error
        if encoded.shape[1] != len(rows) or (len(rows) and (rows.min() < 0 or rows.max() >= chunk.n)):
            raise FunctionError(
                f"{function_name(self.function)} must say for each row it returns which of the {chunk.n} rows it came "
                f"from; it returned {encoded.shape[1]} rows and {len(rows)} row numbers",
                self.view,
            )
        return np.ascontiguousarray(np.concatenate([encoded, words[data:][:, rows]], axis=0))

    def _unpack(self, result: Any) -> tuple[Any, Any]:
        if isinstance(result, tuple) and len(result) == 2:
            return result
        raise FunctionError(
            f"{function_name(self.function)} must return (table, row numbers), not {type(result).__name__}", self.view
        )


class FailingFunctionError(FunctionError):
    """A user's function fails on some row of those that it was given."""


class FunctionNode(Node):
    """Emits what a step makes of the rows that it receives, and sends on the errors of those that fail."""

    errors: ErrorOrigin

    def __init__(self, scope: Scope, shards: int, function: BatchFunction) -> None:
        super().__init__(scope, shards, "function")
        self.function = function
        self.buffer = Buffer(self, len(function.given.names))

    def receive(self, shard: int, chunk: Chunk, moment: Moment) -> None:
        self.buffer.add(shard, chunk, moment)
        self.scope.schedule(self.position, moment)

    def run(self, moment: Moment) -> None:
        waiting = self.buffer.take(moment)
        if waiting is None:
            return
        made: list[Sequence[tuple[Chunk, Words | None]]] = [()] * len(waiting)

        def call(shard: int) -> None:
            made[shard] = [self.function.attempt(chunk, self.times) for chunk in waiting[shard] if chunk.n]

        def emit(shard: int, outbox: Outbox) -> None:
            for chunk, failed in made[shard]:
                if failed is not None:
                    self.errors.send(shard, failed, self.times, outbox)
                self.port.emit(shard, chunk, moment, self.times, outbox)

        rows = sum([chunk.n for chunks in waiting for chunk in chunks])
        if self.call_function(call, rows):
            self.work_out(emit, rows)
        else:
            for shard, chunks in enumerate(waiting):
                for chunk in chunks:
                    self.receive(shard, chunk, moment)
