"""The stages of sweeps without Spark: the machines of all shards run one after the other in this process, their parcels
packed and unpacked as Spark would, and every inbox arrives in another order.
"""

from __future__ import annotations

import random
from pathlib import Path

from pyspark import cloudpickle

import tektite as tk
from tektite.engine.core import core_of
from tektite.spark.sweep.executor import Sweeps
from tektite.spark.sweep.job import checked
from tektite.spark.sweep.machine import REPORT, Machine, Report
from tektite.spark.sweep.parcel import Parcel
from tektite.spark.sweep.rows import Row, from_arrow, to_arrow


def run_stages(parcel: Parcel, group: str, description: str, rng: random.Random | None = None) -> list[Report]:
    """What a job would report."""
    rng = rng or random.Random(group)
    inboxes: list[list[Row]] = [[] for _ in range(parcel.shards)]
    sent = cloudpickle.dumps(parcel)
    for stage in range(parcel.stages.count):
        outboxes: list[list[Row]] = [[] for _ in range(parcel.shards)]
        for shard in rng.sample(range(parcel.shards), parcel.shards):
            rng.shuffle(inboxes[shard])
            machine = Machine(cloudpickle.loads(sent), shard, stage)
            for row in from_arrow(map(to_arrow, machine.run(inboxes[shard]))):
                outboxes[row.dest].append(row)
        inboxes = outboxes
    rows = [row for inbox in inboxes for row in inbox if row.node == REPORT]
    return checked(parcel, [Report.from_json(row.control) for row in rows if row.control is not None])


def in_stages(engine: tk.Engine, rows: int = 0) -> tk.Engine:
    """Have an engine that has a storage run its sweeps in stages."""
    core = core_of(engine)
    assert core.storage is not None
    core.run_elsewhere(Sweeps(run_stages, core.storage, core.dictionary, core.workers, rows))
    return engine


def staged(folder: Path, **options: object) -> tk.Engine:
    """An engine that runs all its sweeps in stages."""
    return in_stages(tk.Engine(storage=folder, **options))  # type: ignore[arg-type]
