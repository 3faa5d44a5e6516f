"""Rows objects from Python tuples and back, and the slow twin of sort + consolidate, for the kernel tests."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np

from tektite.kernels.layout.rows import copy_out, head_of_array, select_columns
from tests.support.narrow import narrow_columns

Row = tuple[int, ...]


def consolidate(rows: Iterable[Row], diffs: int = 1) -> list[Row]:
    """Sorted rows with the diffs (the last columns) of equal ones added up, those that cancel left out."""
    total: dict[Row, list[int]] = defaultdict(lambda: [0] * diffs)
    for row in rows:
        key = row[: len(row) - diffs]
        for j in range(diffs):
            total[key][j] += row[len(row) - diffs + j]
    return [key + tuple(total[key]) for key in sorted(total) if any(total[key])]


class Rows:
    """A rows object that owns its memory. Constant columns are stored as constants when `fold` is set."""

    def __init__(self, rows: Sequence[Row], width: int, fold: bool = True) -> None:
        self.columns = np.array(rows, np.int64).reshape(len(rows), width).T.copy()
        self.head = head_of_array(self.columns, len(rows))
        if fold and rows:
            constant = [j for j in range(width) if (self.columns[j] == self.columns[j, 0]).all()]
            if constant:
                words = [int(self.columns[j, 0]) for j in constant]
                spec = [width] + [j if j not in constant else constant.index(j) - len(constant) for j in range(width)]
                self.head = select_columns(int(self.head[1]), np.array(spec + words, np.int64))
        self.narrow = narrow_columns(self.head)

    @property
    def at(self) -> int:
        return int(self.head[1])


def table(parts: Sequence[Rows]) -> np.ndarray:
    """The table of head addresses that kernels take a version as."""
    return np.array([p.at for p in parts], np.int64)


def read(head: np.ndarray) -> list[Row]:
    """The rows under a head."""
    rows, width = int(head[0]), int(head[2])
    out = np.empty((width, rows), np.int64)
    copy_out(int(head[1]), out)
    return [tuple(int(w) for w in out[:, i]) for i in range(rows)]


def check_constants(head: np.ndarray, columns: Iterable[int]) -> None:
    """Every listed column that holds one word only must be stored as a constant."""
    rows = read(head)
    for j in columns:
        if rows and len({r[j] for r in rows}) == 1:
            assert head[4 + 3 * j] == 0, f"column {j} is constant but stored"
