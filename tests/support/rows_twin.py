"""Rows as plain Python: making rows objects from tuples, reading them back, and the slow twin of sort + consolidate."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tektite.kernels.layout.rows import new_head
from tests.support.narrow import column, narrow_columns

LEAST = -(2**63)
MOST = 2**63 - 1
Row = tuple[int, ...]


class Rows:
    """A rows object made of `columns` int64 arrays; those that `constant` names are kept as constants."""

    def __init__(self, rows: Sequence[Row], columns: int, constant: Iterable[int] = ()) -> None:
        self.keep: list[Any] = [np.array([row[j] for row in rows], np.int64) for j in range(columns)]
        self.head: Any = new_head(len(rows), columns)
        self.at = int(self.head[1])
        for j, words in enumerate(self.keep):
            if j in constant:
                assert len(set(words.tolist())) <= 1
                self.head[5 + 3 * j] = words[0] if len(words) else 0
            else:
                self.head[3 + 3 * j] = words.ctypes.data
                self.head[4 + 3 * j] = 8
        self.keep += narrow_columns(self.head)


def read(head: Any) -> list[Row]:
    """All rows of the rows object with this head, as tuples."""
    rows, _, columns = head[:3].tolist()
    result = []
    for j in range(columns):
        if head[4 + 3 * j] == 0:
            result.append([int(head[5 + 3 * j])] * rows)
        else:
            result.append(column(head, j).tolist())
    return [tuple(row) for row in zip(*result, strict=True)]


def stored(head: Any) -> list[int]:
    """The columns that are stored."""
    return [j for j in range(int(head[2])) if head[4 + 3 * j] != 0]


def varying(rows: Sequence[Row]) -> list[int]:
    """The columns that have to be stored."""
    return [j for j, column in enumerate(zip(*rows, strict=True)) if len(set(column)) > 1]


def consolidate(rows: Iterable[Row], keys: int) -> list[Row] | None:
    """Sorted by the first `keys` columns, the rest summed, empty rows dropped; None if a sum does not fit a word."""
    sums: dict[Row, list[int]] = {}
    for row in rows:
        key, diffs = row[:keys], row[keys:]
        if key in sums:
            sums[key] = [x + y for x, y in zip(sums[key], diffs, strict=True)]
        else:
            sums[key] = list(diffs)
    if any(not LEAST <= x <= MOST for total in sums.values() for x in total):
        return None
    return sorted((*key, *total) for key, total in sums.items() if any(total))


words = st.one_of(
    st.integers(-2, 2),
    st.integers(0, 2**20),
    st.sampled_from([LEAST, LEAST + 1, MOST, MOST - 1, 2**40, -(2**40)]),
    st.integers(LEAST, MOST),
)
