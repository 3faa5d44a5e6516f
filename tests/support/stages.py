"""The stages of sweeps without Spark: all shards run one after the other in this process, their shipments packed and unpacked as
Spark would, and every inbox arrives in another order.
"""

from __future__ import annotations

import random
from pathlib import Path

from pyspark import cloudpickle

import tektite as tk
from tektite.engine.core import core_of
from tektite.runtime.messages import REPORT, Message, StageReport
from tektite.runtime.shipment import Shipment
from tektite.runtime.stage_task import StageTask
from tektite.runtime.staged import Staged
from tektite.spark.sweep.job import checked
from tektite.spark.sweep.rows import from_arrow, to_arrow


class InStages(Staged):
    """Sends functions as Spark does."""

    pickler = cloudpickle.CloudPickler


def run_stages(shipment: Shipment, group: str, description: str, rng: random.Random | None = None) -> list[StageReport]:
    """What a job would report."""
    rng = rng or random.Random(group)
    inboxes: list[list[Message]] = [[] for _ in range(shipment.shards)]
    sent = cloudpickle.dumps(shipment)
    for stage in range(shipment.stages.count):
        outboxes: list[list[Message]] = [[] for _ in range(shipment.shards)]
        for shard in rng.sample(range(shipment.shards), shipment.shards):
            rng.shuffle(inboxes[shard])
            task = StageTask(cloudpickle.loads(sent), shard, stage)
            for message in from_arrow(map(to_arrow, task.run(inboxes[shard]))):
                outboxes[message.dest].append(message)
        inboxes = outboxes
    told = [message.control for inbox in inboxes for message in inbox if message.node == REPORT]
    return checked(shipment, [StageReport.from_json(control) for control in told if control is not None])


def in_stages(engine: tk.Engine, rows: int = 0) -> tk.Engine:
    """Have an engine that has a storage run its sweeps in stages."""
    core = core_of(engine)
    assert core.storage is not None
    given = run_stages, core.storage, core.dictionary, core.workers, rows
    core.run_on(lambda here: InStages(here, *given))
    return engine


def staged(folder: Path, **options: object) -> tk.Engine:
    """An engine that runs all its sweeps in stages."""
    return in_stages(tk.Engine(storage=folder, autocommit=False, **options))  # type: ignore[arg-type]
