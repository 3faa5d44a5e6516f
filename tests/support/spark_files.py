"""Folders of files that Spark reads as streams, and stored views as DataFrames."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

NOW = {"availableNow": True}


class Files:
    """A folder that grows by one file of rows at a time, and is read as a stream of one file a micro-batch."""

    def __init__(self, spark: SparkSession, folder: Path, columns: str, form: str = "parquet") -> None:
        self.spark = spark
        self.folder = folder
        self.columns = columns
        self.form = form
        folder.mkdir(exist_ok=True)

    def add(self, rows: list[tuple[Any, ...]]) -> None:
        number = len(list(self.folder.glob("*.*")))
        frame = self.spark.createDataFrame(rows, self.columns).coalesce(1)
        target = self.folder.parent / "writing"
        getattr(frame.write.mode("overwrite"), self.form)(str(target))
        (written,) = target.glob("part-*")
        written.rename(self.folder / f"{number:04}.{self.form}")

    def stream(self) -> DataFrame:
        reader = self.spark.readStream.schema(self.columns).option("maxFilesPerTrigger", 1)
        return getattr(reader, self.form)(str(self.folder))

    def table(self) -> DataFrame:
        return getattr(self.spark.read.schema(self.columns), self.form)(str(self.folder))


def read(spark: SparkSession, path: Path, view: str, **options: Any) -> DataFrame:
    reader = spark.read.format("tektite").option("path", str(path)).option("view", view)
    for name, value in options.items():
        reader = reader.option(name, value)
    return reader.load()


def rows_of(frame: DataFrame) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row) for row in frame.collect())
