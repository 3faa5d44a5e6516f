"""Job: the stages of a sweep as one Spark job, with one shuffle before each stage but the first.

Every shard has a row in every stage, the report of the one before; the first stage begins with a row for each shard. The driver
gets exactly one report of each shard and stage, or the job has failed.

Jobs with the same number of stages have the same tasks, so that Spark analyses a chain of stages once. What a job is about lies
in the storage's folder of sweeps, under a name and with a hash that Spark sends along with its tasks, as a property of the job:
a worker unpacks nothing that this driver has not packed.
"""

from __future__ import annotations

import hashlib
import pickle
import re
from collections.abc import Callable, Iterator
from typing import Final

import pyarrow as pa
from pyspark import TaskContext, cloudpickle
from pyspark.sql import DataFrame, SparkSession

from tektite.errors import FaultError
from tektite.spark.session import described
from tektite.spark.sweep.machine import REPORT, Machine, Report
from tektite.spark.sweep.parcel import Parcel
from tektite.spark.sweep.rows import SCHEMA, Row, from_arrow, to_arrow
from tektite.storage.options import SWEEPS
from tektite.storage.store import Store

Task = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


PARCEL: Final = "tektite.parcel"
"""The property of a job that says where its parcel lies, and its hash."""


class Jobs:
    """Runs jobs in a Spark session."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self._chains: dict[tuple[str, int, int], DataFrame] = {}

    def __call__(self, parcel: Parcel, group: str, description: str) -> list[Report]:
        """Run a job; what its tasks report, by stage and shard."""
        content: bytes = cloudpickle.dumps(parcel)  # type: ignore[no-untyped-call]
        name = f"{SWEEPS}/{parcel.token}.parcel"
        parcel.store.write(name, [content], durable=False)
        told = f"{hashlib.sha256(content).hexdigest()} {name}"
        try:
            with described(self.spark, group, description, "tektite sweeps", {PARCEL: told}):
                rows = self._chain(parcel).select("control").collect()
        finally:
            parcel.store.delete([name])
        return checked(parcel, [Report.from_json(row.control) for row in rows])

    def cancel(self, group: str) -> None:
        """End the job of a group."""
        self.spark.sparkContext.cancelJobGroup(group)

    def _chain(self, parcel: Parcel) -> DataFrame:
        """The stages of a job, and behind them the reports. Whoever asks it for something has Spark plan it anew, with shuffles
        of its own.
        """
        key = parcel.store.url, parcel.shards, parcel.stages.count
        if key not in self._chains:
            last = parcel.stages.count - 1
            frame = self.spark.range(0, parcel.shards, 1, parcel.shards)
            frame = frame.mapInArrow(first(parcel.store, last == 0), SCHEMA)
            for stage in range(1, last + 1):
                task = following(parcel.store, stage, stage == last)
                frame = frame.repartitionById(parcel.shards, "dest").mapInArrow(task, SCHEMA)
            self._chains[key] = frame
        return self._chains[key]


def worth_a_job(master: str | None) -> int:
    """Rows from which on a sweep is worth a job, where the user does not say. With a local master none are: its tasks
    run on the processors that the driver's own threads use without a shuffle.

    >>> worth_a_job("spark://host:7077"), worth_a_job("local-cluster[2,1,1024]"), worth_a_job("local[2,4]") > 10**18
    (100000, 100000, True)
    """
    return 1 << 62 if re.fullmatch(r"local(\[.*\])?", master or "") else 100_000


def checked(parcel: Parcel, reports: list[Report]) -> list[Report]:
    """The reports in order, if they are complete."""
    reports.sort(key=lambda report: (report.stage, report.shard))
    wanted = [(stage, shard) for stage in range(parcel.stages.count) for shard in range(parcel.shards)]
    found = [(report.stage, report.shard) for report in reports]
    if found != wanted:
        raise FaultError(f"stages and shards {found} reported, instead of each of {wanted} once")
    if any(report.token != parcel.token for report in reports):
        raise FaultError(
            "tasks ran another job's parcel: Spark's threads share their properties here; unset PYSPARK_PIN_THREAD=false"
        )
    return reports


def first(store: Store, last: bool) -> Task:
    """The task of the first stage, which may be the last one: its input names the shard."""

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for shard in [int(shard) for batch in batches for shard in batch.column(0).to_numpy()]:
            yield from map(to_arrow, handed_on(Machine(delivered(store), shard, 0).run([]), last))

    return task


def following(store: Store, stage: int, last: bool) -> Task:
    """The task of a later stage: the partition is the shard."""

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = from_arrow(batches)
        if rows:
            sent = Machine(delivered(store), context().partitionId(), stage).run(rows)
            yield from map(to_arrow, handed_on(sent, last))

    return task


def handed_on(rows: Iterator[Row], last: bool) -> Iterator[Row]:
    """What a stage gives to the next one; the last one gives reports alone, to the driver."""
    return (row for row in rows if row.node == REPORT) if last else rows


def context() -> TaskContext:
    """What Spark tells the task that runs in this process."""
    found = TaskContext.get()
    assert found is not None, "this runs in Spark's tasks"
    return found


def delivered(store: Store) -> Parcel:
    """The parcel of the job that the task of this process belongs to."""
    told = context().getLocalProperty(PARCEL)
    assert told is not None, "a job of sweeps names its parcel"
    digest, name = told.split(" ", 1)
    found = _PARCELS.get(digest)
    if found is None:
        _PARCELS.clear()
        found = _PARCELS[digest] = read_parcel(store, name, digest)
    return found


_PARCELS: dict[str, Parcel] = {}
"""The last parcel that this worker has read: it runs several tasks of a job."""


def read_parcel(store: Store, name: str, digest: str) -> Parcel:
    """A parcel, if it is what the driver wrote."""
    content = store.read(name)
    if hashlib.sha256(content).hexdigest() != digest:
        raise FaultError(f"{store.url}/{name} is not what the driver of this job has written")
    found: Parcel = pickle.loads(content)
    return found
