"""Gives views to Spark as DataFrames and streams."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import pyarrow as pa
from pyspark.errors import PySparkTypeError
from pyspark.sql import DataFrame, SparkSession, functions
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import StructType

from tektite.engine.core import core_of
from tektite.errors import IncorrectError, UnsupportedError
from tektite.spark.failures import explained
from tektite.spark.session import classic, session
from tektite.values.schema import Schema

if TYPE_CHECKING:
    from tektite.engine.readable_collection import ReadableCollection
    from tektite.engine.view import View


EVERY_SECOND: Final = {"processingTime": "1 second"}
"""Looking for a new version takes some milliseconds of processor time. A stream that looked all the time would occupy a
core.
"""


def spark_schema(schema: Schema) -> StructType:
    """The columns of a collection as Spark's. Timestamps are moments."""
    for name, type, field in zip(schema.names, schema.types, moments(schema.arrow), strict=True):
        try:
            from_arrow_schema(pa.schema([field]))
        except PySparkTypeError:
            message = f"column {name!r}: Spark has no type for {type}: a view with a cast to string has its text"
            raise UnsupportedError(message) from None
    return from_arrow_schema(moments(schema.arrow), prefer_timestamp_ntz=False)


def moments(arrow: pa.Schema) -> pa.Schema:
    """An Arrow schema whose timestamps are moments of UTC."""
    fields = [
        field.with_type(pa.timestamp("us", "UTC")) if pa.types.is_timestamp(field.type) else field for field in arrow
    ]
    return pa.schema(fields)


def session_of(relation: ReadableCollection, spark: SparkSession | None) -> SparkSession:
    """The session to use: the given one, the one that the engine was given, or the active one."""
    found: Any = spark or relation.engine.spark or SparkSession.getActiveSession()
    if found is None:
        raise IncorrectError("no Spark session is running: give one, spark=session")
    return classic(found)


def to_spark(relation: ReadableCollection, spark: SparkSession | None, at: int | None) -> DataFrame:
    """See `tektite.View.to_spark`."""
    given = session_of(relation, spark)
    table = relation.snapshot(at)
    return given.createDataFrame(table.cast(moments(table.schema)), spark_schema(relation.schema))


def write_changes(
    view: View,
    format: str,
    path: str | None,
    options: Mapping[str, str],
    checkpoint: str | None,
    trigger: dict[str, Any] | None,
    spark: SparkSession | None,
) -> StreamingQuery:
    """See `tektite.View.write_changes`."""
    given = session_of(view, spark)
    reading = session(given) if spark is None else given  # with the settings for streams; the user's stays as it is
    view.persist()
    store = core_of(view.engine).store
    assert store is not None
    view.engine.sync()
    source = reading.readStream.format("tektite").option("path", store.url).option("view", view.name)
    with explained(f"view {view.name!r}: its changes cannot be read", ""):
        changes = source.option("changes", "true").load()
    if format == "kafka":
        changes = changes.select(functions.to_json(functions.struct("*")).alias("value"))
    if checkpoint is None:
        place = hashlib.sha256(f"{format} {path} {sorted(options.items())}".encode()).hexdigest()[:12]
        checkpoint = f"{store.url}/checkpoints/out-{quote(view.name, safe='')}-{place}"
    writer = changes.writeStream.format(format).options(**options).option("checkpointLocation", checkpoint)
    with explained(f"view {view.name!r}: its changes cannot be written as {format!r}", ""):
        query = writer.trigger(**(trigger or EVERY_SECOND)).start(path)
    core_of(view.engine).hooks.on_close.append(query.stop)
    return query
