"""Large data in slices, so that a load needs memory for a slice and not for everything."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

FEW = 1 << 12
"""Rows that are not worth a look at how they could be cut."""


def is_small(data: Any) -> bool:
    """Whether data is obviously a single slice: a list, or an array of few rows."""
    return type(data) is list or (type(data) is np.ndarray and data.ndim > 0 and len(data) <= FEW)


def row_slices(data: Any, rows: int) -> Iterator[tuple[int, Any]]:
    """Data in slices of at most about so many rows, each with the number of its first row. What cannot be cut without a copy
    (lists of rows, generators) is one slice.

    >>> [(start, len(part)) for start, part in row_slices(np.zeros((5, 2)), 2)]
    [(0, 2), (2, 2), (4, 1)]
    """
    if isinstance(data, pa.RecordBatchReader):
        start = 0
        for batch in data:
            for inside, part in row_slices(batch, rows):
                yield start + inside, part
            start += batch.num_rows
        return
    many = _rows_of(data)
    if many is None or many <= rows:
        yield 0, data
        return
    for start in range(0, many, rows):
        yield start, _part(data, start, min(start + rows, many))


def _rows_of(data: Any) -> int | None:
    """The number of rows of data that can be cut; None for other data."""
    if isinstance(data, pa.Table | pa.RecordBatch):
        return data.num_rows
    if isinstance(data, np.ndarray):
        return len(data) if data.ndim else None
    if isinstance(data, dict) and data:
        columns = list(data.values())
        if all([isinstance(c, np.ndarray | pa.Array | pa.ChunkedArray | list) for c in columns]):
            lengths = {len(column) for column in columns}
            return lengths.pop() if len(lengths) == 1 else None
    if _is_frame(data):
        return len(data)
    return None


def _is_frame(data: Any) -> bool:
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(data, getattr(pandas, "DataFrame", ()))


def _part(data: Any, start: int, stop: int) -> Any:
    if isinstance(data, pa.Table | pa.RecordBatch):
        return data.slice(start, stop - start)
    if isinstance(data, dict):
        return {name: column[start:stop] for name, column in data.items()}
    return data.iloc[start:stop] if _is_frame(data) else data[start:stop]
