"""Each of the 22 TPC-H queries equals DuckDB's answer at every checkpoint, while the relations come through Spark.

Orders and lineitems are streams that Spark follows, with their refreshes in a diff column; the other relations are loaded,
a part at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet
from pyspark.sql import SparkSession

import tektite as tk
from tests.sql.tpch import QUERIES, Run, query

pytestmark = pytest.mark.slow

SCALE = 0.01
LOADS = 25
FOLLOWED = ("orders", "lineitem")


class SparkRun(Run):
    """A run whose engine gets every row from Spark. What changes between two checkpoints is one file of a stream."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        super().__init__(tk.Engine(spark=spark, storage=folder / "storage"), SCALE)
        self.folder = folder
        self.waiting: dict[str, list[pa.Table]] = {name: [] for name in FOLLOWED}
        self.followings = {}
        for name in FOLLOWED:
            (folder / name).mkdir()
            empty = self.with_diff(self.source[name].slice(0, 0), 1)
            parquet.write_table(empty, folder / f"{name}.parquet")
            schema = spark.read.parquet(str(folder / f"{name}.parquet")).schema
            stream = spark.readStream.schema(schema).parquet(str(folder / name))
            self.followings[name] = self.engine.table(name).follow(stream, diff="diff")

    @staticmethod
    def with_diff(rows: pa.Table, diff: int) -> pa.Table:
        return rows.append_column("diff", pa.array([diff] * rows.num_rows, pa.int64()))

    def change_rows(self, name: str, rows: pa.Table, diff: int) -> None:
        if name in FOLLOWED:
            self.waiting[name].append(self.with_diff(rows, diff))
        else:
            assert diff == 1
            self.engine.table(name).load(self.engine.spark.createDataFrame(rows))

    def check(self) -> None:
        for name, parts in self.waiting.items():
            if parts:
                written = self.folder / f"{name}.parquet"
                parquet.write_table(pa.concat_tables(parts), written)
                written.rename(self.folder / name / f"{self.checkpoint:03}.parquet")
                parts.clear()
        for following in self.followings.values():
            following.process_all_available()
        super().check()

    def close(self) -> None:
        for following in self.followings.values():
            following.stop()
        super().close()


@pytest.fixture(scope="module")
def run(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkRun]:
    """Load in 25 parts, with refreshes beside; half of the queries arrive while that goes on."""
    made = SparkRun(spark, tmp_path_factory.mktemp("tpch"))
    for number in QUERIES:
        if number % 2:
            made.install(f"q{number:02d}", query(number, SCALE))
    for part in made.load(LOADS):
        if part % 5 == 2:
            made.rf2(0.02)
            made.change(0.02)
        if part % 6 == 3:
            made.rf1(0.1)
        made.check()
        if part % 2 == 0 and part < 22:
            made.install(f"q{part + 2:02d}", query(part + 2, SCALE))
    made.rf1(0.5)
    made.rf2(0.3)
    made.check()
    made.change(0.3)
    made.check()
    yield made
    made.close()


@pytest.mark.parametrize("number", QUERIES)
def test_query_over_what_spark_brings_equals_duckdb_at_every_checkpoint(run: SparkRun, number: int) -> None:
    assert run.checkpoint == LOADS + 2
    assert not run.faults[f"q{number:02d}"]


def test_every_row_came_through_spark(run: SparkRun) -> None:
    assert {name: following.rows > 0 and following.active for name, following in run.followings.items()} == {
        "orders": True,
        "lineitem": True,
    }
    assert run.engine.sql("SELECT count(*) FROM lineitem").rows() == run.oracle.rows("SELECT count(*) FROM lineitem")
