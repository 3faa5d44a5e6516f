"""Reads a stream's checkpoint: its stream, and the last committed micro-batch. Spark writes it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession


@dataclass(frozen=True)
class StreamCheckpoint:
    """The id of a checkpoint's stream and the last committed micro-batch; None where there is none."""

    query: str | None = None
    committed: int | None = None


def read(spark: SparkSession, folder: str) -> StreamCheckpoint:
    """Read a checkpoint, wherever Spark can."""
    files, path = _file_system(spark, folder)
    metadata = _path(spark, f"{folder}/metadata")
    if not files.exists(path) or not files.exists(metadata):
        return StreamCheckpoint()
    stream = files.open(metadata)
    try:
        text = spark.sparkContext._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8")  # type: ignore[union-attr]
    finally:
        stream.close()
    commits = _path(spark, f"{folder}/commits")
    names = [entry.getPath().getName() for entry in files.listStatus(commits)] if files.exists(commits) else []
    numbers = [int(name) for name in names if name.isdigit()]
    return StreamCheckpoint(json.loads(text)["id"], max(numbers, default=None))


def delete(spark: SparkSession, folder: str) -> None:
    """Remove a checkpoint, if there is one."""
    files, path = _file_system(spark, folder)
    files.delete(path, True)


def _path(spark: SparkSession, name: str) -> Any:
    return spark.sparkContext._jvm.org.apache.hadoop.fs.Path(name)  # type: ignore[union-attr]


def _file_system(spark: SparkSession, folder: str) -> tuple[Any, Any]:
    path = _path(spark, folder)
    return path.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf()), path
