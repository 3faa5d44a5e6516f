"""Chunk: updates in transit between operators. Rows are in any order, unless it is `Consolidated`. Immutable.

Kernels that make rows return chunks (`returning_chunks`). Their heads become arrays only if somebody asks for them, because an
epoch of one row makes a dozen chunks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tektite.kernels.layout import rows as layout
from tektite.kernels.ready import calls
from tektite.values.words import Words

if TYPE_CHECKING:

    class KernelRows:
        """Rows as kernels take and make them; see native/call.c."""

        head: Words
        memory: Any
        n: int
        at: int
        width: int

        def __init__(self, head: Words, memory: object) -> None: ...
        def share(self, rows: KernelRows) -> None: ...
        def constants(self, first: int, count: int) -> tuple[int, ...] | None: ...

else:
    KernelRows = calls().Rows


class Chunk(KernelRows):
    """A head, and what keeps its memory alive."""

    __slots__ = ()

    @staticmethod
    def of_array(columns: Words) -> Chunk:
        """A chunk over the rows of a C-contiguous (columns x rows) array, in the same memory."""
        chunk: Chunk = _head_of_array(columns, columns.shape[1])
        chunk.memory = columns
        return chunk

    @staticmethod
    def of_batch(batch: KernelRows) -> Chunk:
        """The rows of a batch."""
        made = Chunk.__new__(Chunk)
        made.share(batch)
        return made

    def select(self, spec: Words) -> Chunk:
        """The same rows with other columns (see `rows.select_columns`)."""
        chunk: Chunk = _select_columns(self.at, spec)
        chunk.memory = self.memory
        return chunk

    def slice(self, start: int, stop: int) -> Chunk:
        """Rows start..stop, in the same memory."""
        chunk: Chunk = _slice_rows(self.at, start, stop)
        chunk.memory = self.memory
        return chunk

    @property
    def bytes(self) -> int:
        """About what its rows take: columns of one word for all rows take nothing."""
        return self.n * int(self.head[4::3].sum())

    def to_array(self) -> Words:
        """A copy of all columns as a (columns x rows) array."""
        out = np.empty((self.width, self.n), np.int64)
        layout.copy_out(self.at, out)
        return out

    def is_constant(self, column: int) -> bool:
        """Whether the column holds one word, stored once."""
        return self.constants(column, 1) is not None

    def constant(self, column: int) -> int:
        """The word of a constant column."""
        return int(self.head[5 + 3 * column])


class Consolidated(Chunk):
    """A chunk as `build` returns it: sorted, no two rows with the same data and times, no epoch before `low`."""

    __slots__ = ("low",)

    low: int

    def __init__(self, head: Words, memory: object, low: int) -> None:
        super().__init__(head, memory)
        self.low = low


def returning_chunks(kernel: Any, results: str = "r", rows: type[Chunk] = Chunk) -> Any:
    """A kernel that returns chunks. `results` has a letter for each result: `r` for rows, of which the kernel makes an array of
    columns and a head; `h` for a head over columns that lie elsewhere, which the caller gives the chunk as its memory; `i`, `v`
    and `m` for integers and arrays.
    """
    return calls().returning(kernel, results, rows)


_head_of_array = returning_chunks(layout.head_of_array, "h")
_select_columns = returning_chunks(layout.select_columns, "h")
_slice_rows = returning_chunks(layout.slice_rows, "h")


def column_spec(columns: list[int], constants: tuple[int, ...] = ()) -> Words:
    """The `spec` of `rows.select_columns`: column numbers, where -1-i stands for the i-th of `constants`."""
    return np.array([len(columns), *columns, *reversed(constants)], np.int64)
