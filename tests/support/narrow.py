"""Stored columns made as narrow as they can be, so that tests of kernels meet every step."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from tektite.kernels.layout.columns import NARROW_FROM

WIDTHS = {1: np.int8, 2: np.int16, 4: np.int32, 8: np.int64}


def column(head: Any, j: int) -> Any:
    """A copy of a stored column as words."""
    rows, at, step = int(head[0]), int(head[3 + 3 * j]), int(head[4 + 3 * j])
    if rows == 0:
        return np.empty(0, np.int64)
    return np.frombuffer((ctypes.c_char * (rows * step)).from_address(at), WIDTHS[step]).astype(np.int64)


def narrow_columns(head: Any) -> list[Any]:
    """Let every other stored column lie in memory as narrow as its words allow, and return that memory."""
    keep = []
    for j in range(int(head[2])):
        if head[4 + 3 * j] == 0 or (j + int(head[0])) % 2:
            continue
        words = column(head, j)
        step = next(w for w, kind in WIDTHS.items() if (words.astype(kind) == words).all())
        memory = np.concatenate([words.astype(WIDTHS[step]), np.full(8 // step, -1, WIDTHS[step])])
        head[3 + 3 * j : 5 + 3 * j] = memory.ctypes.data, step
        keep.append(memory)
    return keep


def check_memory(buf: Any, head: Any) -> None:
    """A buffer has room for the stored columns, each beginning at a whole word, for what may be read behind, no more."""
    sizes = [int(head[0]) * int(step) for step in head[4::3]]
    total = sum((size + 7) // 8 for size in sizes)
    assert len(buf) in (total, total + 1 if total else 0)


def check_steps(head: Any) -> None:
    """Columns of few rows are whole words, those of many are about as narrow as they can be."""
    for j in range(int(head[2])):
        step = int(head[4 + 3 * j])
        if step:
            words = column(head, j)
            least = next(w for w, kind in WIDTHS.items() if (words.astype(kind) == words).all())
            assert step == 8 if len(words) < NARROW_FROM else least <= step <= 2 * least
