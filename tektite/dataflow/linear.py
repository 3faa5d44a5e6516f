"""Steps on edges: projection, filter, negation, Python functions, and accumulators of linear aggregates.

A step processes each row on its own and has no state.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa

from tektite.dataflow.arrange import consolidate
from tektite.errors import FaultError, IncorrectError
from tektite.kernels.operators.accumulate import COUNT_PRESENT, SUM_INT, accumulate, explode
from tektite.kernels.operators.groups import NOT_WORTH_IT, accumulate_groups
from tektite.kernels.seek.route import scale
from tektite.trace.chunk import Chunk, column_spec
from tektite.values.types import Float
from tektite.values.words import Words

if TYPE_CHECKING:
    from tektite.expr import RowProgram
    from tektite.values.dictionary import Dictionary
    from tektite.values.schema import Schema

FUNCTION_ROWS = 1 << 16
"""Rows for one call of a Python function: enough to amortise the call, few enough to bound its memory."""

GROUPED_ROWS = 1024
"""From this many rows on, those of one key are added up before sorting. Fewer rows are cheaper to sort at once."""

EXPLODED_ROWS = 1 << 16
"""Rows with floats that are exploded together. The result has several times as many rows; it is consolidated before the next."""


class SelectStep:
    """Chooses and reorders data columns; column -1-i is the i-th constant word. Copies nothing."""

    def __init__(self, columns: Sequence[int], constants: Sequence[int] = ()) -> None:
        self.columns = list(columns)
        self.constants = tuple(constants)
        self._specs: dict[int, Words] = {}

    def __call__(self, chunk: Chunk, times: int) -> Chunk:
        width = int(chunk.head[2])
        spec = self._specs.get(width)
        if spec is None:
            spec = self._specs[width] = column_spec([*self.columns, *range(width - times - 1, width)], self.constants)
        return chunk.select(spec)


class NegateStep:
    """Negates every diff."""

    def __call__(self, chunk: Chunk, times: int) -> Chunk:
        buf, head = scale(chunk.at, int(chunk.head[2]) - 1, -1)
        if head[0] < 0:
            raise IncorrectError("a negated multiplicity does not fit into 64 bits")
        return Chunk(head, (chunk.memory, buf))


class ProgramStep:
    """Evaluates expressions and a predicate, compiled into one program."""

    def __init__(self, program: RowProgram, data: int) -> None:
        self.program = program
        self.data = data

    def __call__(self, chunk: Chunk, times: int) -> Chunk:
        memory, head = self.program.run(chunk.at, self.data, times, 1, 0, chunk.memory)
        return Chunk(head, memory)


class FunctionStep:
    """Calls a Python function with Arrow tables. The function must be pure, because retractions evaluate it again."""

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

    def __call__(self, chunk: Chunk, times: int) -> Chunk:
        parts = [
            self._apply(chunk.slice(start, min(start + FUNCTION_ROWS, chunk.n)), times)
            for start in range(0, chunk.n, FUNCTION_ROWS)
        ]
        return Chunk.of_array(np.concatenate(parts, axis=1) if len(parts) > 1 else parts[0])

    def _apply(self, chunk: Chunk, times: int) -> Words:
        data = len(self.given.names)
        words = chunk.to_array()
        batch = self.given.decode(words[:data], self.dictionary).combine_chunks()
        try:
            result = self.function(batch)
        except Exception as error:
            raise FaultError(f"{function_name(self.function)} raised {error!r}", self.view) from error
        rows: Words = np.arange(chunk.n)
        if self.many:
            result, origin = self._unpack(result)
            rows = np.asarray(origin, np.int64)
        elif not isinstance(result, pa.Table | pa.RecordBatch) or result.num_rows != chunk.n:
            found = f"{result.num_rows} rows" if hasattr(result, "num_rows") else type(result).__name__
            raise FaultError(
                f"{function_name(self.function)} must return a table with one row for each of the {chunk.n} it was "
                f"given, not {found}",
                self.view,
            )
        try:
            encoded = self.wanted.encode(result, self.dictionary)
        except IncorrectError as error:
            raise FaultError(f"what {function_name(self.function)} returned: {error}", self.view) from error
        if encoded.shape[1] != len(rows) or (len(rows) and (rows.min() < 0 or rows.max() >= chunk.n)):
            raise FaultError(
                f"{function_name(self.function)} must say for each row it returns which of the {chunk.n} rows it came "
                f"from; it returned {encoded.shape[1]} rows and {len(rows)} row numbers",
                self.view,
            )
        return np.ascontiguousarray(np.concatenate([encoded, words[data:][:, rows]], axis=0))

    def _unpack(self, result: Any) -> tuple[Any, Any]:
        if isinstance(result, tuple) and len(result) == 2:
            return result
        raise FaultError(
            f"{function_name(self.function)} must return (table, row numbers), not {type(result).__name__}", self.view
        )


def function_name(function: Callable[..., Any]) -> str:
    """The name of a user's function in errors."""
    return f"function {getattr(function, '__qualname__', repr(function))}"


class LinearAggregate(Protocol):
    """An aggregate that is linear in the multiplicities."""

    @property
    def kind(self) -> str:
        """count, sum or avg."""

    @property
    def column(self) -> int | None:
        """The aggregated column; None for whole rows."""


class Accumulate:
    """Turns rows into keys with accumulators in place of diffs. Building and merging batches adds them up at no extra cost.

    A sum of integers is two accumulators, one for the low 32 bits and one for the high ones. It is exact for two thousand
    million rows in a group. Sums of floats are exact too: each float column adds a few rows to a group, a data column and a
    diff column (see kernels/operators/accumulate.py).
    """

    def __init__(self, key: Sequence[int], aggregates: Sequence[LinearAggregate], schema: Schema, times: int) -> None:
        self.times = times
        self.width = len(schema.names)
        self.data = len(key)
        self.diffs = 1
        self.kinds: list[tuple[Any, ...]] = []
        spec: list[int] = [len(key), *key]
        counts: dict[int, int] = {}
        sums: dict[int, int] = {}
        floats: dict[int, int] = {}
        for aggregate in aggregates:
            if aggregate.column is None:
                self.kinds.append(("count", 0))
                continue
            column = aggregate.column
            # Each column is counted and summed once, however many aggregates use it.
            if column not in counts:
                spec += [COUNT_PRESENT, column]
                counts[column] = self.diffs
                self.diffs += 1
            if aggregate.kind == "count":
                self.kinds.append(("count", counts[column]))
            elif schema.types[column] == Float:
                floats.setdefault(column, len(floats))
                self.kinds.append((f"{aggregate.kind} of floats", counts[column], floats[column]))
            else:
                if column not in sums:
                    spec += [SUM_INT, column]
                    sums[column] = self.diffs
                    self.diffs += 2
                digits = getattr(schema.types[column], "scale", 0)
                self.kinds.append((aggregate.kind, counts[column], sums[column], digits))
        self.spec = np.array(spec, np.int64)
        self.keys = len(key)
        self.floats = np.array([*floats], np.int64)
        if floats:
            self.data += 1
            self.diffs += 1

    def __call__(self, chunk: Chunk) -> Chunk:
        if not len(self.floats):
            return self._add_up(chunk) if chunk.n >= GROUPED_ROWS else self._accumulate(chunk)
        if chunk.n <= EXPLODED_ROWS:
            return self._explode(chunk)
        shape = (self.data, self.times, self.diffs)
        return consolidate(
            [
                consolidate([self._explode(chunk.slice(start, min(start + EXPLODED_ROWS, chunk.n)))], shape, 0)
                for start in range(0, chunk.n, EXPLODED_ROWS)
            ],
            shape,
            0,
        )

    def _explode(self, chunk: Chunk) -> Chunk:
        accumulated = self._accumulate(chunk)
        buf, head = explode(accumulated.at, self.keys, self.times, chunk.at, self.floats)
        if head[0] < 0:
            raise IncorrectError("a multiplicity times a value does not fit into 64 bits")
        return Chunk(head, buf)

    def _add_up(self, chunk: Chunk) -> Chunk:
        """One row of accumulators for each key if keys repeat, otherwise one for each row."""
        buf, head = accumulate_groups(chunk.at, self.width, self.times, self.spec)
        return self._accumulate(chunk) if head[0] == NOT_WORTH_IT else Chunk(head, buf)

    def _accumulate(self, chunk: Chunk) -> Chunk:
        buf, head = accumulate(chunk.at, self.width, self.times, self.spec)
        if head[0] < 0:
            raise IncorrectError("a multiplicity times a value does not fit into 64 bits")
        return Chunk(head, (chunk.memory, buf))
