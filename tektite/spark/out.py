"""Out: what a view holds, as Spark's tables hold it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from tektite.errors import IncorrectError
from tektite.schema import Schema
from tektite.spark.session import classic

if TYPE_CHECKING:
    from tektite.views import View


def spark_schema(schema: Schema) -> StructType:
    """The columns of a collection as Spark's; timestamps are moments, as the words are."""
    return from_arrow_schema(moments(schema.arrow), prefer_timestamp_ntz=False)


def moments(arrow: pa.Schema) -> pa.Schema:
    """An Arrow schema whose timestamps are moments of UTC."""
    fields = [
        field.with_type(pa.timestamp("us", "UTC")) if pa.types.is_timestamp(field.type) else field for field in arrow
    ]
    return pa.schema(fields)


def to_spark(view: View, spark: SparkSession | None, at: int | None) -> DataFrame:
    """See `tektite.front.View.to_spark`."""
    found: Any = spark or getattr(view.engine, "spark", None) or SparkSession.getActiveSession()
    if found is None:
        raise IncorrectError(f"view {view.name!r}: no Spark session is running: give one, to_spark(session)")
    session = classic(found)
    table = view.snapshot(at)
    return session.createDataFrame(table.cast(moments(table.schema)), spark_schema(view.schema))
