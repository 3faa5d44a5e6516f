"""Between heads and the columns of a file: what a batch's rows look like to a process that did not make them.

A column is a constant word, or an array of stored words. `head_over` promises a head that describes exactly the columns
it was given, over their own memory wherever a kernel can read them as they are.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import numpy.typing as npt

from tektite.kernels.rows import FIXED, PER_COLUMN, STORED
from tektite.words import Words

Stored = npt.NDArray[np.signedinteger[Any]]
Column = int | Stored

WIDTHS: dict[int, np.dtype[Any]] = {width: np.dtype(f"<i{width}") for width in (1, 2, 4, 8)}
"""How stored columns of each width in bytes are read: signed, little-endian."""


def columns_of(head: Words) -> list[Column]:
    """The columns that a head describes, over its memory; a stored column of equal words counts as constant.

    So the columns depend on the rows alone, not on how they were computed.
    """
    rows, _, count = head[:FIXED].tolist()
    found: list[Column] = []
    for address, mask, word in head[FIXED:].reshape(count, PER_COLUMN).tolist():
        if mask != STORED:
            found.append(word)
            continue
        words = _words_at(address, rows)
        if not rows or (words[0] == words[-1] and bool((words == words[0]).all())):
            found.append(int(words[0]) if rows else 0)
        else:
            found.append(words)
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
            words = column if column.dtype == np.int64 else column.astype(np.int64)
            head[base : base + 3] = words.ctypes.data, STORED, 0
            keep.append(words)
    return head, keep


def _words_at(address: int, rows: int) -> Stored:
    if not rows:
        return np.empty(0, np.int64)
    memory = memoryview((ctypes.c_char * (8 * rows)).from_address(address)).cast("B")
    return np.frombuffer(memory, np.int64)
