"""Tables to and from other libraries: ArrowReadable, and the rows of what they give."""

from __future__ import annotations

import sys
from abc import abstractmethod
from types import GenericAlias
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa

from tektite.errors import IncorrectError, TektiteError, UnsupportedError

if TYPE_CHECKING:
    import pandas as pd


class ArrowStream(Protocol):
    """Anything that offers its rows as an Arrow stream: DataFrames, Arrow tables, views."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...


def polars_frame(table: pa.Table) -> Any:
    """A table as a Polars DataFrame."""
    try:
        import polars
    except ImportError:
        raise UnsupportedError("to_polars() needs Polars, which is not installed: pip install polars") from None
    return polars.from_arrow(_with_durations(table))


def pandas_frame(table: pa.Table) -> pd.DataFrame:
    """A table as a pandas DataFrame."""
    try:
        import pandas  # noqa: F401
    except ImportError:
        raise UnsupportedError(
            "to_pandas() needs pandas, which is not installed: pip install pandas, or 'tektite[pandas]'"
        ) from None
    return table.to_pandas()


def _with_durations(table: pa.Table) -> pa.Table:
    """A table with durations in place of intervals, which Polars has not."""
    for at, field in enumerate(table.schema):
        if field.type == pa.month_day_nano_interval():
            found = [None if value is None else _duration(value, field.name) for value in table.column(at).to_pylist()]
            table = table.set_column(at, field.name, pa.array(found, pa.duration("us")))
    return table


def _duration(value: Any, column: str) -> int:
    months, days, nanoseconds = value
    if months:
        raise UnsupportedError(
            f"column {column!r}: to_polars() makes durations of intervals, and months have none: cast the column to text"
        )
    return int(days * 86_400_000_000 + nanoseconds // 1000)


def arrow_table(source: Any) -> pa.Table:
    """The rows of what offers an Arrow stream. Those of a Spark DataFrame are collected: its own stream ends with an error where
    there are timestamps (Spark 4.3).
    """
    if type(source).__module__.startswith("pyspark.sql."):
        found: pa.Table = source.toArrow()
        return found
    return pa.table(source)


def rows_given(source: Any) -> pa.Table | None:
    """The rows of a DataFrame, an Arrow table, a mapping of columns, a list of dicts, a query, or anything else that offers an
    Arrow stream; None for what has no rows.

    >>> rows_given(pa.table({"id": [1, 2]})).num_rows, rows_given({"id": [1, 2]}).num_rows, rows_given([{"id": 1}]).num_rows
    (2, 2, 1)
    >>> rows_given(pa.schema({"id": pa.int64()})) is None, rows_given({"id": int}) is None
    (True, True)
    """
    try:
        return _rows(source)
    except (pa.ArrowException, TypeError, ValueError) as error:
        if isinstance(error, TektiteError):
            raise
        raise IncorrectError(
            f"these rows have no types that Arrow finds: {error}. Give a schema, then insert them"
        ) from None


def _rows(source: Any) -> pa.Table | None:
    if isinstance(source, pa.Table):
        return source
    pandas: Any = sys.modules.get("pandas")
    if pandas is not None and isinstance(source, getattr(pandas, "DataFrame", ())):
        frame: Any = source
        return pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None)
    if hasattr(source, "__arrow_c_stream__"):
        return arrow_table(source)
    if isinstance(source, dict):
        types = (str, type, GenericAlias, pa.DataType, np.dtype)
        has_rows = any(hasattr(value, "__len__") and not isinstance(value, types) for value in source.values())
        return pa.table({str(name): column for name, column in source.items()}) if has_rows else None
    if isinstance(source, list) and source and isinstance(source[0], dict):
        names = dict.fromkeys([name for row in source for name in row])
        return pa.table({str(name): [row.get(name) for row in source] for name in names})
    if hasattr(source, "collect"):  # a query, here or of Polars
        return _rows(source.collect())
    return None


class ArrowReadable:
    """Something with rows, for pandas, Polars and whatever reads Arrow streams."""

    @abstractmethod
    def to_arrow(self) -> pa.Table:
        """The rows as a `pyarrow.Table`."""

    def to_pandas(self) -> pd.DataFrame:
        """The rows as a pandas DataFrame."""
        return pandas_frame(self.to_arrow())

    def to_polars(self) -> Any:
        """The rows as a Polars DataFrame."""
        return polars_frame(self.to_arrow())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The rows as an Arrow stream, for whatever reads those."""
        table: Any = self.to_arrow()
        stream: object = table.__arrow_c_stream__(requested_schema)
        return stream
