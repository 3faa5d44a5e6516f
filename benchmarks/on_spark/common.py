"""What the measurements on Spark share: sessions, tables, pairs of times, and what Spark itself counted meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import tektite as tk
from benchmarks.measure import percentile
from benchmarks.tpch.data import KEYS, folder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Record = dict[str, Any]
T = TypeVar("T")


@contextmanager
def opened(master: str | None = None, memory: str = "2g") -> Iterator[SparkSession]:
    """A session whose Python workers run, and which ends with the block."""
    import tektite.spark

    quiet = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.executor.memory": "1g"}
    spark = tektite.spark.session(master=master, memory=memory, config=quiet)
    spark.sparkContext.setLogLevel("ERROR")
    try:
        bare_job(spark)
        yield spark
    finally:
        spark.stop()


def bare_job(spark: SparkSession) -> None:
    """A job of one task that hands a batch of one row to Python and back."""
    spark.range(0, 1, 1, 1).mapInArrow(lambda found: found, "id long").collect()


def bare_chain(spark: SparkSession, exchanges: int, shards: int) -> None:
    """A job of nothing but exchanges between Python stages: what the same number of them costs with hardly a row in it."""
    frame = spark.range(0, shards, 1, shards)
    for _ in range(exchanges):
        frame = frame.repartition(shards, "id").mapInArrow(lambda found: found, "id long")
    frame.collect()


def timed(work: Callable[[], Any]) -> float:
    """Seconds that a call takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def answered(work: Callable[[], T]) -> tuple[float, T]:
    """Seconds that a call takes, and what it returns."""
    start = time.perf_counter()
    answer = work()
    return time.perf_counter() - start, answer


def median(seconds: list[float]) -> float:
    """The middle one."""
    return percentile(sorted(seconds), 0.5)


def pair(ours: list[float], theirs: list[float]) -> Record:
    """The medians of two ways, and the one as a multiple of the other."""
    mine, other = median(ours), median(theirs)
    return {"seconds": mine, "spark_seconds": other, "times": mine / other}


def tables(spark: SparkSession, scale: float) -> dict[str, DataFrame]:
    """TPC-H's tables as DataFrames over Parquet files."""
    place = folder(scale)
    return {name: spark.read.parquet(str(place / f"{name}.parquet")) for name in KEYS}


IN_DRIVER = 1 << 40
"""More rows than any sweep has: all of them run in the driver's process, which shares the disk with the tasks."""


@dataclass(frozen=True)
class Place:
    """Where to measure: a session, a folder for what is stored, and how engines are started."""

    spark: SparkSession
    folder: Path
    shards: int
    job_rows: int = IN_DRIVER

    def engine(self, name: str) -> tk.Engine:
        """An engine on a storage of that name."""
        return tk.Engine(spark=self.spark, storage=self.folder / name, workers=self.shards, job_rows=self.job_rows)


def declared(engine: tk.Engine, frames: dict[str, DataFrame]) -> dict[str, tk.Table]:
    """Inputs for tables, by their primary keys; rows that share the first column of it lie on one shard."""
    from pyspark.sql.pandas.types import to_arrow_schema

    return {
        name: engine.create_table(
            name, tk.Schema(to_arrow_schema(frame.schema, timezone="UTC")), order_by=KEYS[name], shard_by=KEYS[name][0]
        )
        for name, frame in frames.items()
    }


def loaded(engine: tk.Engine, frames: dict[str, DataFrame]) -> tuple[float, int]:
    """Seconds until tables are loaded and durable, and their rows."""
    inputs = declared(engine, frames)
    start = time.perf_counter()
    rows = sum(inputs[name].load(frame, progress=False) for name, frame in frames.items())
    engine.sync()
    return time.perf_counter() - start, rows


class Counted:
    """What Spark has counted of its own work since this was made: jobs, and bytes that went through shuffles."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._before = self._now()

    def _now(self) -> tuple[int, int]:
        context = self._spark.sparkContext
        scala: Any = context._jsc.sc()
        scala.listenerBus().waitUntilEmpty()  # it is told of a job a moment after the job
        store = scala.statusStore()
        no_quantiles = context._gateway.new_array(context._gateway.jvm.double, 0)  # type: ignore[union-attr]
        stages = store.stageList(None, False, False, no_quantiles, None)
        return store.jobsList(None).size(), sum(stages.apply(at).shuffleWriteBytes() for at in range(stages.size()))

    def figures(self) -> Record:
        """The figures `spark_jobs` and `shuffled_bytes`."""
        jobs, shuffled = (now - before for now, before in zip(self._now(), self._before, strict=True))
        return {"spark_jobs": jobs, "shuffled_bytes": shuffled}
