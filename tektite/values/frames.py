"""ArrowReadable: tables for other libraries, of whatever has one."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tektite.errors import UnsupportedError

if TYPE_CHECKING:
    import pandas as pd


def polars_frame(table: pa.Table) -> Any:
    """A table as a Polars DataFrame."""
    try:
        import polars
    except ImportError:
        raise UnsupportedError("to_polars() needs Polars, which is not installed: pip install polars") from None
    return polars.from_arrow(table)


class ArrowReadable:
    """Something with rows, for pandas, Polars and whatever reads Arrow streams."""

    @abstractmethod
    def to_arrow(self) -> pa.Table:
        """The rows as a `pyarrow.Table`."""

    def to_pandas(self) -> pd.DataFrame:
        """The rows as a pandas DataFrame."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """The rows as a Polars DataFrame."""
        return polars_frame(self.to_arrow())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The rows as an Arrow stream, for whatever reads those."""
        table: Any = self.to_arrow()
        stream: object = table.__arrow_c_stream__(requested_schema)
        return stream
