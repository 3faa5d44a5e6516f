"""Job: the stages of a sweep as one Spark job, with one shuffle before each stage but the first.

Every shard has a row in every stage, the report of the one before; the first stage begins with a row for each shard. The driver
gets exactly one report of each shard and stage, or the job has failed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import SparkSession

from tektite.errors import FaultError
from tektite.spark.session import described
from tektite.spark.sweep.machine import REPORT, Machine, Report
from tektite.spark.sweep.parcel import Parcel
from tektite.spark.sweep.rows import SCHEMA, from_arrow, to_arrow

Task = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


class Jobs:
    """Runs jobs in a Spark session."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark

    def __call__(self, parcel: Parcel, group: str, description: str) -> list[Report]:
        """Run a job; what its tasks report."""
        with described(self.spark, group, description, "tektite sweeps"):
            return run(self.spark, parcel)

    def cancel(self, group: str) -> None:
        """End the job of a group."""
        self.spark.sparkContext.cancelJobGroup(group)


def worth_a_job(master: str | None) -> int:
    """Rows from which on a sweep is worth a job, where the user does not say. With a local master none are: its tasks
    run on the processors that the driver's own threads use without a shuffle.

    >>> worth_a_job("spark://host:7077"), worth_a_job("local-cluster[2,1,1024]"), worth_a_job("local[2,4]") > 10**18
    (100000, 100000, True)
    """
    return 1 << 62 if re.fullmatch(r"local(\[.*\])?", master or "") else 100_000


def run(spark: SparkSession, parcel: Parcel) -> list[Report]:
    """Run a job; the reports, by stage and shard."""
    frame = spark.range(0, parcel.shards, 1, parcel.shards).mapInArrow(first(parcel), SCHEMA)
    for stage in range(1, parcel.stages.count):
        frame = frame.repartitionById(parcel.shards, "dest").mapInArrow(following(parcel, stage), SCHEMA)
    rows = frame.where(f"node = {REPORT}").select("control").collect()
    return checked(parcel, [Report.from_json(row.control) for row in rows])


def checked(parcel: Parcel, reports: list[Report]) -> list[Report]:
    """The reports in order, if they are complete."""
    reports.sort(key=lambda report: (report.stage, report.shard))
    wanted = [(stage, shard) for stage in range(parcel.stages.count) for shard in range(parcel.shards)]
    found = [(report.stage, report.shard) for report in reports]
    if found != wanted:
        raise FaultError(f"stages and shards {found} reported, instead of each of {wanted} once")
    return reports


def first(parcel: Parcel) -> Task:
    """The task of the first stage: its input names the shard."""

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for shard in [int(shard) for batch in batches for shard in batch.column(0).to_numpy()]:
            yield from map(to_arrow, Machine(parcel, shard, 0).run([]))

    return task


def following(parcel: Parcel, stage: int) -> Task:
    """The task of a later stage: the partition is the shard."""

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        shard = context.partitionId() if context is not None else 0
        rows = from_arrow(batches)
        if rows:
            yield from map(to_arrow, Machine(parcel, shard, stage).run(rows))

    return task
