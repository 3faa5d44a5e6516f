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
from collections.abc import Iterator
from typing import Final

import pyarrow as pa
from pyspark import TaskContext, cloudpickle
from pyspark.sql import DataFrame, SparkSession

from tektite.errors import FaultError
from tektite.runtime.messages import REPORT, Message, StageReport
from tektite.runtime.shipment import Shipment
from tektite.runtime.stage_task import StageTask
from tektite.spark.bulk import Task
from tektite.spark.session import described
from tektite.spark.sweep.rows import SCHEMA, from_arrow, to_arrow
from tektite.storage.options import SWEEPS
from tektite.storage.store import Store

SHIPMENT: Final = "tektite.shipment"
"""The property of a job that says where its shipment lies, and its hash."""


class Jobs:
    """Runs jobs in a Spark session."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self._chains: dict[tuple[str, int, int], DataFrame] = {}

    def __call__(self, shipment: Shipment, group: str, description: str) -> list[StageReport]:
        """Run a job; what its tasks report, by stage and shard."""
        content: bytes = cloudpickle.dumps(shipment)  # type: ignore[no-untyped-call]
        name = f"{SWEEPS}/{shipment.token}.shipment"
        shipment.store.write(name, [content], durable=False)
        told = f"{hashlib.sha256(content).hexdigest()} {name}"
        try:
            with described(self.spark, group, description, "tektite sweeps", {SHIPMENT: told}):
                rows = self._chain(shipment).select("control").collect()
        finally:
            shipment.store.delete([name])
        return checked(shipment, [StageReport.from_json(row.control) for row in rows])

    def cancel(self, group: str) -> None:
        """End the job of a group."""
        self.spark.sparkContext.cancelJobGroup(group)

    def _chain(self, shipment: Shipment) -> DataFrame:
        """The stages of a job, and behind them the reports. Whoever asks it for something has Spark plan it anew, with shuffles
        of its own.
        """
        key = shipment.store.url, shipment.shards, shipment.stages.count
        if key not in self._chains:
            last = shipment.stages.count - 1
            frame = self.spark.range(0, shipment.shards, 1, shipment.shards)
            frame = frame.mapInArrow(first(shipment.store, last == 0), SCHEMA)
            for stage in range(1, last + 1):
                task = later_stage(shipment.store, stage, stage == last)
                frame = frame.repartitionById(shipment.shards, "dest").mapInArrow(task, SCHEMA)
            self._chains[key] = frame
        return self._chains[key]


def checked(shipment: Shipment, reports: list[StageReport]) -> list[StageReport]:
    """The reports in order, if they are complete."""
    reports.sort(key=lambda report: (report.stage, report.shard))
    wanted = [(stage, shard) for stage in range(shipment.stages.count) for shard in range(shipment.shards)]
    found = [(report.stage, report.shard) for report in reports]
    if found != wanted:
        raise FaultError(f"stages and shards {found} reported, instead of each of {wanted} once")
    if any(report.token != shipment.token for report in reports):
        raise FaultError(
            "tasks ran another job's shipment: Spark's threads share their properties here; unset PYSPARK_PIN_THREAD=false"
        )
    return reports


def first(store: Store, last: bool) -> Task:
    """The task of the first stage, which may be the last one: its input names the shard."""

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for shard in [int(shard) for batch in batches for shard in batch.column(0).to_numpy()]:
            yield from map(to_arrow, handed_on(StageTask(delivered(store), shard, 0).run([]), last))

    return task


def later_stage(store: Store, stage: int, last: bool) -> Task:
    """The task of a later stage: the partition is the shard."""

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        inbox = from_arrow(batches)
        if inbox:
            sent = StageTask(delivered(store), context().partitionId(), stage).run(inbox)
            yield from map(to_arrow, handed_on(sent, last))

    return task


def handed_on(messages: Iterator[Message], last: bool) -> Iterator[Message]:
    """The messages of a stage to the next one. The last one sends reports alone, to the driver."""
    return (message for message in messages if message.node == REPORT) if last else messages


def context() -> TaskContext:
    """Spark's context of the task that runs in this process."""
    found = TaskContext.get()
    assert found is not None, "this runs in Spark's tasks"
    return found


def delivered(store: Store) -> Shipment:
    """The shipment of the job that the task of this process belongs to."""
    told = context().getLocalProperty(SHIPMENT)
    assert told is not None, "a job of sweeps names its shipment"
    digest, name = told.split(" ", 1)
    found = _SHIPMENTS.get(digest)
    if found is None:
        _SHIPMENTS.clear()
        found = _SHIPMENTS[digest] = read_shipment(store, name, digest)
    return found


_SHIPMENTS: dict[str, Shipment] = {}
"""The last shipment that this worker has read: it runs several tasks of a job."""


def read_shipment(store: Store, name: str, digest: str) -> Shipment:
    """A shipment, if it is what the driver wrote."""
    content = store.read(name)
    if hashlib.sha256(content).hexdigest() != digest:
        raise FaultError(f"{store.url}/{name} is not what the driver of this job has written")
    found: Shipment = pickle.loads(content)
    return found
