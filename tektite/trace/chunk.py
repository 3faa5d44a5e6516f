"""Chunk: updates in transit between operators. Rows are in any order, unless it is `Consolidated`. Immutable."""

from __future__ import annotations

import numpy as np

from tektite.kernels.layout.rows import copy_out, head_of_array, select_columns, slice_rows
from tektite.values.words import Words


class Chunk:
    """A head, and what keeps its memory alive."""

    __slots__ = ("at", "head", "memory", "n")

    def __init__(self, head: Words, memory: object) -> None:
        self.head = head
        self.memory = memory
        self.n, self.at = head[:2].tolist()

    @staticmethod
    def of_array(columns: Words) -> Chunk:
        """A chunk over the rows of a C-contiguous (columns x rows) array, in the same memory."""
        return Chunk(head_of_array(columns, columns.shape[1]), columns)

    def select(self, spec: Words) -> Chunk:
        """The same rows with other columns (see `rows.select_columns`)."""
        return Chunk(select_columns(self.at, spec), self.memory)

    def slice(self, start: int, stop: int) -> Chunk:
        """Rows start..stop, in the same memory."""
        return Chunk(slice_rows(self.at, start, stop), self.memory)

    def to_array(self) -> Words:
        """A copy of all columns as a (columns x rows) array."""
        out = np.empty((int(self.head[2]), self.n), np.int64)
        copy_out(self.at, out)
        return out

    def constants(self, first: int, count: int) -> tuple[int, ...] | None:
        """The words of `count` columns from `first` on, if all of them are constant."""
        described = self.head[4 + 3 * first : 4 + 3 * (first + count)].tolist()
        return None if any(described[::3]) else tuple(described[1::3])

    def is_constant(self, column: int) -> bool:
        """Whether the column holds one word, stored once."""
        return bool(self.head[4 + 3 * column] == 0)

    def constant(self, column: int) -> int:
        """The word of a constant column."""
        return int(self.head[5 + 3 * column])


class Consolidated(Chunk):
    """A chunk as `build` returns it: sorted, no two rows with the same data and times, no epoch before `low`."""

    __slots__ = ("low",)

    def __init__(self, head: Words, memory: object, low: int) -> None:
        super().__init__(head, memory)
        self.low = low


def column_spec(columns: list[int], constants: tuple[int, ...] = ()) -> Words:
    """The `spec` of `rows.select_columns`: column numbers, where -1-i stands for the i-th of `constants`."""
    return np.array([len(columns), *columns, *reversed(constants)], np.int64)
