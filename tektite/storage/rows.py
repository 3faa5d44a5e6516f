"""Converts between heads in memory and columns in files.

A column is a constant word, or an array of signed integers of 1, 2, 4 or 8 bytes. `columns_of` returns columns that depend on
the rows alone, not on how they were computed: constant where all words are equal, otherwise as narrow as the words allow.
`head_over` returns a head that describes exactly the given columns, in their own memory. Seven more bytes after that memory
must be readable, because kernels read eight at a time.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import numpy.typing as npt

from tektite.values.words import Words

Stored = npt.NDArray[np.signedinteger[Any]]
Column = int | Stored

WIDTHS: dict[int, np.dtype[Any]] = {width: np.dtype(f"<i{width}") for width in (1, 2, 4, 8)}
"""NumPy types of stored columns by width in bytes: signed, little-endian."""

# Where a head describes its columns (see tektite/kernels/layout/rows.py).
FIXED = PER_COLUMN = 3


def columns_of(head: Words, memory: object) -> list[Column]:
    """The columns that a head describes; `memory` owns what their addresses point to."""
    rows, _, count = head[:FIXED].tolist()
    found: list[Column] = []
    for address, step, word in head[FIXED:].reshape(count, PER_COLUMN).tolist():
        if not step or not rows:
            found.append(0 if step else word)
            continue
        words = _words_at(address, rows, step, memory)
        least, most = int(words.min()), int(words.max())
        if least == most:
            found.append(least)
        else:
            found.append(words.astype(WIDTHS[fitting_width(least, most)], copy=False))
    return found


def fitting_width(least: int, most: int) -> int:
    """The least number of bytes that fits all words from `least` to `most`.

    >>> [fitting_width(-1, most) for most in (127, 128, 40_000, 2**31)]
    [1, 2, 4, 8]
    """
    return next(width for width in WIDTHS if -(1 << (8 * width - 1)) <= least and most < 1 << (8 * width - 1))


def head_over(rows: int, columns: list[Column]) -> tuple[Words, object]:
    """A head over columns, and what keeps their memory alive. Seven more bytes after a narrow column must be readable."""
    head = np.zeros(FIXED + PER_COLUMN * len(columns), np.int64)
    at = head.ctypes.data
    head[:FIXED] = rows, at, len(columns)
    for j, column in enumerate(columns):
        base = FIXED + PER_COLUMN * j
        if isinstance(column, int):
            head[base : base + 3] = at + 8 * (base + 2), 0, column
        else:
            head[base : base + 3] = column.ctypes.data, column.itemsize, 0
    return head, [column for column in columns if not isinstance(column, int)]


def _words_at(address: int, rows: int, width: int, memory: object) -> Stored:
    words = (ctypes.c_char * (width * rows)).from_address(address)
    words.memory = memory  # type: ignore[attr-defined]  # an array that views the words keeps them alive, and so it
    return np.frombuffer(memoryview(words).cast("B"), WIDTHS[width])
