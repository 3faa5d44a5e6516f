"""Columns of a result as texts, all rows at once: what rows in text, COPY and CSV are made of."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tektite.server.postgres.types import TEXT, writer
from tektite.values.python_values import python_list
from tektite.values.types import DecimalType, Type

ONE_BY_ONE = frozenset({"list", "struct", "interval", "blob", "timestamptz"})
"""Kinds of values that Arrow writes otherwise than PostgreSQL."""
PLAIN_SCALE = 6
"""Decimal places up to which Arrow writes every decimal without an exponent."""


def text_column(column: Any, type: Type) -> Any:
    """A column as an array of texts; NULL stays NULL.

    >>> from tektite.values.types import Bool, Float
    >>> text_column(pa.chunked_array([[True, None]]), Bool).to_pylist(), text_column(pa.chunked_array([[1.0]]), Float).to_pylist()
    (['t', None], ['1'])
    """
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(array, pa.ChunkedArray):  # of a table without rows or of several pieces that do not fit one
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)
    kind = type.kind
    if kind in ("string", "json", "uuid"):
        return array.cast(pa.large_string())
    if kind == "bool":
        return pc.if_else(array, "t", "f").cast(pa.large_string())
    is_odd = kind == "float" and not pc.all(pc.is_finite(array)).as_py() and len(array)
    if is_odd or kind in ONE_BY_ONE or (isinstance(type, DecimalType) and type.scale > PLAIN_SCALE):
        write = writer(type, TEXT)
        return pa.array([None if v is None else write(v).decode() for v in python_list(array)], pa.large_string())
    texts = array.cast(pa.large_string())
    if kind in ("timestamp", "time"):  # there is always a point: the zeros behind it go, and then the point
        return pc.utf8_rtrim(pc.utf8_rtrim(texts, "0"), ".")
    return texts


def lengths_and_bytes(texts: Any) -> tuple[Any, Any]:
    """The number of bytes of each text, and all bytes behind each other; those of NULL are none."""
    array = texts.fill_null("")
    _, offsets, data = array.buffers()
    bounds = np.frombuffer(offsets, np.int64)[array.offset : array.offset + len(array) + 1]
    if data is None:
        return np.zeros(len(array), np.int64), np.empty(0, np.uint8)
    return np.diff(bounds), np.frombuffer(data, np.uint8)[bounds[0] : bounds[-1]]
