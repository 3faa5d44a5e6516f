"""A shard may live for one stage or for many: shards that stay for all stages of a part answer as the engine itself does."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import tektite as tk
from tektite.engine.core import core_of
from tektite.runtime.messages import StageReport
from tektite.runtime.shard import OneShard, Outgoing, Shard, deliver
from tektite.runtime.shipment import Address, Shipment, Unpacked, rows_at
from tektite.runtime.stage_task import write_report
from tektite.runtime.sweep_files import as_batch
from tektite.storage.batchfile import BatchSection
from tektite.storage.options import SWEEPS
from tests.support.stages import in_stages


def run_staying(shipment: Shipment, group: str, description: str) -> list[StageReport]:
    """Run a part by shards that stay in memory, and hand each other what they have as it is."""
    numbers, stages = range(shipment.shards), shipment.stages
    unpacked = [Unpacked(shipment, number, OneShard(number)) for number in numbers]
    shards = [Shard(found.graph, number) for number, found in enumerate(unpacked)]
    due: dict[int, list[Outgoing]] = {stage: [] for stage in range(stages.count)}
    for address, place in shipment.waiting:
        stage = stages.due(address.node, address.moment, -1)
        assert stage is not None
        due[stage].append((address, 0, rows_at(shipment.store, place), (0, 0, 0)))
    for shard in shards:
        shard.begin(stages, shipment.decisions)
        shard.record()
    reports: list[StageReport] = []
    for stage in range(stages.count):
        for address, _, chunk, _ in due[stage]:
            deliver(shards[address.shard].graph, address, chunk)
        for shard, texts in zip(shards, [found.texts for found in unpacked], strict=True):
            shard.run(stage)
            kept: list[tuple[Address, BatchSection]] = []
            for outgoing in shard.collect():
                address, _, chunk, shape = outgoing
                later = stages.due(address.node, address.moment, stage)
                if later is None:
                    kept.append((address, BatchSection("", address.shard, shape, as_batch(chunk))))
                else:
                    due[later].append(outgoing)
            report = write_report(shipment, stage, shard, kept, texts.added())
            texts.forget()
            if report.file is not None and report.texts is not None:
                for other in unpacked:
                    other.texts.note((SWEEPS, report.file.name, report.file.length, report.texts))
            reports.append(report)
    return reports


def views(engine: tk.Engine) -> tuple[tk.Table, list[tk.View]]:
    edges = engine.create_table("edges", {"src": tk.Int, "dst": tk.Int, "kind": tk.String})

    def step(reach: tk.Collection) -> tk.Collection:
        return reach.join(edges, left_on="dst", right_on="src").select("src", dst="dst_right").concat(pairs).distinct()

    pairs = edges.select("src", "dst")
    ends = (pairs, ("x", "y")), (pairs, ("y", "z")), (pairs, ("z", "w"))
    queries = {
        "joined": edges.join(edges, left_on="dst", right_on="src")
        .group_by("kind")
        .agg(n=tk.count(), least=tk.min("src")),
        "counts": pairs.count(by="src", name="n").count(by="n", name="m"),
        "paths": tk.match(*ends, joins="delta"),
        "reach": pairs.distinct().iterate(step),
        "loud": edges.select("dst", kind=tk.col("kind").upper()).max("kind", by="dst"),
    }
    return edges, [engine.install(name, query) for name, query in queries.items()]


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_shards_that_stay_answer_as_the_engine_does(tmp_path: Path, workers: int) -> None:
    pick = random.Random(workers)
    with (
        tk.Engine(workers, storage=tmp_path, turn=60.0, autocommit=False) as staying,
        tk.Engine(autocommit=False) as plain,
    ):
        in_stages(staying)
        core_of(staying).coordinator.executor.run = run_staying  # type: ignore[attr-defined]
        sides = [views(engine) for engine in (staying, plain)]
        there: list[tuple[int, int, str]] = []
        for epoch in range(3):
            new = [(pick.randrange(9), pick.randrange(9), f"kind {pick.randrange(3 + epoch)}") for _ in range(6)]
            gone = [there.pop(pick.randrange(len(there))) for _ in range(2 * bool(epoch))]
            there += new
            for engine, (edges, _) in zip((staying, plain), sides, strict=True):
                edges.insert(new)
                edges.remove(gone)
                engine.advance()
                engine.settle()
            for view, same in zip(*(found for _, found in sides), strict=True):
                assert view.multiplicities() == same.multiplicities(), view.name
        assert {sweep.where for sweep in staying.progress} == {"jobs"}
