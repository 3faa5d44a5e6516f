"""Between heads and the columns of a file: what a batch's rows look like to a process that did not make them.

A column is a constant word, or an array of stored words. `head_over` promises a head that describes exactly the columns
it was given, over their own memory, behind which seven more bytes must be readable: kernels read eight at a time.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import numpy.typing as npt

from tektite.words import Words

FIXED = PER_COLUMN = 3

Stored = npt.NDArray[np.signedinteger[Any]]
Column = int | Stored

WIDTHS: dict[int, np.dtype[Any]] = {width: np.dtype(f"<i{width}") for width in (1, 2, 4, 8)}
"""How stored columns of each width in bytes are read: signed, little-endian."""


def columns_of(head: Words, keep: object) -> list[Column]:
    """The columns that a head describes, over its memory, which `keep` keeps alive, or as narrow as they can be. A stored
    column of equal words counts as constant. So the columns depend on the rows alone, not on how they were computed.
    """
    rows, _, count = head[:FIXED].tolist()
    found: list[Column] = []
    for address, step, word in head[FIXED:].reshape(count, PER_COLUMN).tolist():
        if not step or not rows:
            found.append(0 if step else word)
            continue
        words = _words_at(address, rows, step, keep)
        least, most = int(words.min()), int(words.max())
        width = next(w for w in WIDTHS if -(1 << 8 * w - 1) <= least and most < 1 << 8 * w - 1)
        found.append(least if least == most else words.astype(WIDTHS[width], copy=False))
    return found


def head_over(rows: int, columns: list[Column]) -> tuple[Words, object]:
    """A head over columns, and what keeps their memory alive."""
    head = np.zeros(FIXED + PER_COLUMN * len(columns), np.int64)
    at = head.ctypes.data
    head[:FIXED] = rows, at, len(columns)
    keep = []
    for j, column in enumerate(columns):
        base = FIXED + PER_COLUMN * j
        if isinstance(column, int):
            head[base : base + 3] = at + 8 * (base + 2), 0, column
        else:
            head[base : base + 3] = column.ctypes.data, column.itemsize, 0
            keep.append(column)
    return head, keep


def _words_at(address: int, rows: int, width: int, keep: object) -> Stored:
    if not rows:
        return np.empty(0, np.int64)
    memory = (ctypes.c_char * (width * rows)).from_address(address)
    memory.keep = keep  # type: ignore[attr-defined]
    return np.frombuffer(memoryview(memory).cast("B"), WIDTHS[width])
