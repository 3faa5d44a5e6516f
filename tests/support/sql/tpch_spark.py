"""TPC-H as it comes through Spark: orders and lineitems are streams that Spark follows, with their refreshes in a diff column;
of the other relations Spark loads what comes first.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from tests.support.sql.tpch import Run

FOLLOWED = ("orders", "lineitem")


class SparkRun(Run):
    """A run whose engine gets its rows from Spark. What changes between two checkpoints is one file of a stream."""

    def __init__(self, engine: Any, scale: float, folder: Path) -> None:
        super().__init__(engine, scale)
        self.folder = folder
        self.loaded: set[str] = set()
        self.waiting: dict[str, list[pa.Table]] = {name: [] for name in FOLLOWED}
        self.followings = {}
        for name in FOLLOWED:
            (folder / name).mkdir()
            empty = self.with_diff(self.source[name].slice(0, 0), 1)
            parquet.write_table(empty, folder / f"{name}.parquet")
            schema = engine.spark.read.parquet(str(folder / f"{name}.parquet")).schema
            stream = engine.spark.readStream.schema(schema).parquet(str(folder / name))
            self.followings[name] = engine.table(name).follow(stream, diff="diff")

    @staticmethod
    def with_diff(rows: pa.Table, diff: int) -> pa.Table:
        return rows.append_column("diff", pa.array([diff] * rows.num_rows, pa.int64()))

    def change_rows(self, name: str, rows: pa.Table, diff: int) -> None:
        if name in FOLLOWED:
            self.waiting[name].append(self.with_diff(rows, diff))
        elif name in self.loaded:
            super().change_rows(name, rows, diff)
        else:
            self.loaded.add(name)
            self.engine.table(name).load(self.engine.spark.createDataFrame(self.with_diff(rows, diff)), diff="diff")

    def check(self) -> None:
        for name, parts in self.waiting.items():
            if parts:
                written = self.folder / f"{name}.parquet"
                parquet.write_table(pa.concat_tables(parts), written)
                written.rename(self.folder / name / f"{self.checkpoint:03}.parquet")
                parts.clear()
        for following in self.followings.values():
            following.process_all_available()
            assert following.active
        super().check()

    def close(self) -> None:
        for following in self.followings.values():
            assert following.rows > 0
            following.stop()
        super().close()
