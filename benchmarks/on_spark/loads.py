"""Bulk loads: all tables of TPC-H into arrangements by their primary keys; Spark partitions, sorts and writes the same."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

from benchmarks.measure import Others, memory
from benchmarks.on_spark.common import Place, Record, loaded, pair, tables, timed
from benchmarks.tpch.data import KEYS

if TYPE_CHECKING:
    pass


def loads(place: Place, scale: float, repetitions: int) -> Iterator[Record]:
    """All tables, in turns. The first turn of each way runs code that nothing has compiled yet and is left out, unless it
    is the only one."""
    spark, folder, shards = place.spark, place.folder, place.shards
    frames = tables(spark, scale)

    def write() -> None:
        for name, frame in frames.items():
            ordered = frame.repartition(shards, *KEYS[name]).sortWithinPartitions(*KEYS[name])
            ordered.write.mode("overwrite").parquet(str(folder / "sorted" / name))

    ours, theirs = [], []
    others = Others()
    for repetition in range(repetitions):
        if repetition % 2:
            theirs.append(timed(write))
        with place.engine("loads") as engine:
            seconds, rows = loaded(engine, frames)
        ours.append(seconds)
        shutil.rmtree(folder / "loads")
        if not repetition % 2:
            theirs.append(timed(write))
    if repetitions > 1:
        del ours[0], theirs[0]
    yield {"phase": "load", "SF": scale, "rows": rows} | pair(ours, theirs) | memory() | others.figures()
