"""Addresses of rows in memory, as kernels take them."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from tektite.values.words import Words


class Located(Protocol):
    """Rows, or a merge of rows, whose head has an address in memory."""

    @property
    def at(self) -> int: ...


class _Table(array):  # type: ignore[type-arg]
    __slots__ = ("rows",)
    rows: tuple[Located, ...]


def addresses(rows: Sequence[Located]) -> Words:
    """The addresses of some rows' heads. The result keeps the rows in memory, so it may outlive every other reference to them.

    >>> import numpy as np
    >>> from tektite.trace.chunk import Chunk
    >>> table = addresses([Chunk.of_array(np.array([[1, 2], [0, 0], [1, 1]]))])
    >>> len(table)
    1
    """
    table = _Table("q", [row.at for row in rows])
    table.rows = tuple(rows)
    return np.frombuffer(table, np.int64)
