"""Converts rows of any supported form to Arrow tables with the columns of a graph.

Taken are lists of tuples or dicts, mappings from names to columns, NumPy arrays with a row for each edge, and whatever has
Arrow's stream interface: Arrow tables, pandas and Polars frames, Tektite's tables and views.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

import tektite as tk


def as_table(data: Any, names: Sequence[str], what: str) -> pa.Table:
    """The columns called `names` of some rows. Rows without names (tuples, arrays) have them in this order. `what` is what errors
    call the rows.

    >>> as_table([(1, 2), (2, 3)], ["src", "dst"], "edges").to_pydict()
    {'src': [1, 2], 'dst': [2, 3]}
    >>> as_table({"dst": [2], "src": [1]}, ["src", "dst"], "edges").to_pydict()
    {'src': [1], 'dst': [2]}
    """
    try:
        table = _table(data, names, what)
    except (pa.ArrowInvalid, pa.ArrowTypeError, ValueError, TypeError) as error:
        if isinstance(error, tk.TektiteError):
            raise
        raise tk.IncorrectError(f"{what}: these are no rows of ({', '.join(names)}): {error}") from None
    missing = [name for name in names if name not in table.column_names]
    if missing:
        raise tk.NotFoundError(
            f"{what}: there is no column {missing[0]!r}; the columns are {', '.join(table.column_names) or 'none'}"
        )
    return table.select(list(names))


def _table(data: Any, names: Sequence[str], what: str) -> pa.Table:
    if isinstance(data, pa.Table):
        return data
    if hasattr(data, "__arrow_c_stream__"):
        return pa.table(data)
    if isinstance(data, Mapping):
        return pa.table({str(name): column for name, column in data.items()})
    if isinstance(data, np.ndarray):
        if data.ndim != 2 or data.shape[1] != len(names):
            raise tk.IncorrectError(
                f"{what}: an array has a row of {len(names)} values each, not the shape {data.shape}"
            )
        columns: dict[str, Any] = {name: np.ascontiguousarray(data[:, at]) for at, name in enumerate(names)}
        return pa.table(columns)
    if isinstance(data, str) or not isinstance(data, Iterable):
        raise tk.IncorrectError(f"{what}: rows are tuples, columns or a data frame, not {data!r}")
    rows = list(data)
    if rows and isinstance(rows[0], Mapping):
        return pa.Table.from_pylist([dict(row) for row in rows])
    wrong = next((row for row in rows if not isinstance(row, tuple | list) or len(row) != len(names)), None)
    if wrong is not None:
        raise tk.IncorrectError(f"{what}: a row is {len(names)} values ({', '.join(names)}), not {wrong!r}")
    return pa.table({name: [row[at] for row in rows] for at, name in enumerate(names)})
