"""Every test of this folder runs on the Spark session of its process; a DataFrame for several modules."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = str(Path(__file__).parent) + os.sep
    for item in items:
        if str(item.path).startswith(here):
            item.add_marker("spark")


@pytest.fixture
def people(spark: SparkSession) -> DataFrame:
    return spark.range(0, 5000, 1, 3).select(
        F.col("id").alias("k"), F.concat(F.lit("n"), F.col("id") % 101).alias("s"), (F.col("id") % 7).alias("g")
    )
