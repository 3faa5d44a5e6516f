"""Steps on edges: projection, filter, negation, and accumulators of linear aggregates.

A step processes each row on its own and has no state.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from tektite.dataflow.arrange import consolidate
from tektite.errors import IncorrectError, TektiteError
from tektite.expr.program import FailingRowError
from tektite.kernels.operators.accumulate import COUNT_PRESENT, SUM_INT, accumulate, explode
from tektite.kernels.operators.groups import NOT_WORTH_IT, accumulate_groups
from tektite.kernels.seek.shift import scale
from tektite.trace.chunk import Chunk, column_spec, returning_chunks
from tektite.values.types import Float, Type
from tektite.values.words import Words

if TYPE_CHECKING:
    from tektite.dataflow.errors import ErrorOrigin
    from tektite.expr import RowProgram
    from tektite.expr.guards import Guard
    from tektite.values.dictionary import Dictionary
    from tektite.values.schema import Schema

GROUPED_ROWS = 1024
"""From this many rows on, those of one key are added up before sorting. Fewer rows are cheaper to sort at once."""

EXPLODED_ROWS = 1 << 16
"""Rows with floats that are exploded together. The result has several times as many rows; it is consolidated before the next."""

_accumulate = returning_chunks(accumulate)


class SelectStep:
    """Chooses and reorders data columns; column -1-i is the i-th constant word. Copies nothing."""

    errors: ErrorOrigin | None = None
    guard: Guard | None = None

    def __init__(self, columns: Sequence[int], constants: Sequence[int] = ()) -> None:
        self.columns = list(columns)
        self.constants = tuple(constants)
        self._specs: dict[int, Words] = {}

    def origin(self, column: int) -> int | None:
        """The data column that is a column of its result."""
        found = self.columns[column]
        return None if found < 0 else found

    def __call__(self, chunk: Chunk, times: int) -> Chunk:
        width = chunk.width
        spec = self._specs.get(width)
        if spec is None:
            spec = self._specs[width] = column_spec([*self.columns, *range(width - times - 1, width)], self.constants)
        return chunk.select(spec)


class NegateStep:
    """Negates every diff."""

    errors: ErrorOrigin | None = None
    guard: Guard | None = None

    def origin(self, column: int) -> int | None:
        """The same column."""
        return column

    def __call__(self, chunk: Chunk, times: int) -> Chunk:
        buf, head = scale(chunk.at, int(chunk.head[2]) - 1, -1)
        if head[0] < 0:
            raise IncorrectError("a negated multiplicity does not fit into 64 bits")
        return Chunk(head, (chunk.memory, buf))


class ProgramStep:
    """Evaluates expressions and a predicate, compiled into one program."""

    errors: ErrorOrigin | None = None
    error: type[TektiteError] = IncorrectError

    def __init__(self, program: RowProgram, data: int, shown: Mapping[str, tuple[int, Type]] | None = None) -> None:
        """`shown` are the columns of the row by which errors name it."""
        self.program = program
        self.data = data
        self.shown = shown or {}

    @property
    def guard(self) -> Guard | None:
        """The condition that the filter puts on one column, if there is one."""
        return self.program.guard

    def origin(self, column: int) -> int | None:
        """None: what comes after a program is not looked through it."""
        return None

    def __call__(self, chunk: Chunk, times: int) -> Chunk:
        memory, head = self.program.run(chunk.at, self.data, times, 1, 0, chunk.memory)
        return Chunk(head, memory)

    def attempt(self, chunk: Chunk, times: int) -> tuple[Chunk, Words | None]:
        """The rows that do not fail, and those that do. The kernel looks for no more than one failing row, so that rows that do
        not fail cost nothing; a chunk with one is evaluated again, step by step.
        """
        try:
            memory, head = self.program.run(chunk.at, self.data, times, 1, 0, chunk.memory)
            return Chunk(head, memory), None
        except FailingRowError:
            words = chunk.to_array()
        found = self.program.check(words[: self.data])
        made = np.ascontiguousarray(np.concatenate([found.outputs, words[self.data :, found.passing]]))
        return Chunk.of_array(made), words[:, found.failing] if len(found.failing) else None

    def explain(self, words: Words) -> str:
        """Describes the failure of a row, and the row."""
        values = [
            f"{name} = {self.program.show(int(words[place, 0]), type)}" for name, (place, type) in self.shown.items()
        ]
        return f"{self.program.explain(words)}, in the row ({', '.join(values)})"


def shown_row(schema: Schema, words: Words, dictionary: Dictionary) -> str:
    """A row (columns x 1) for errors: its columns and their values."""
    (row,) = schema.decode_rows(np.ascontiguousarray(words), dictionary)
    return f"({', '.join([f'{name} = {value!r}' for name, value in zip(schema.names, row, strict=True)])})"


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
        made: Chunk = _accumulate(chunk.at, self.width, self.times, self.spec)
        if made.n < 0:
            raise IncorrectError("a multiplicity times a value does not fit into 64 bits")
        made.memory = chunk.memory
        return made
