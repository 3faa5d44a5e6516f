"""Growth: loads by the number of executors and shards on a cluster of processes, and by the scale factor."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.measure import Others, memory
from benchmarks.on_spark.common import Place, Record, loaded, opened, tables


def growth(folder: Path, shards: Sequence[int], scales: Sequence[float], cluster: bool) -> Iterator[Record]:
    """All tables loaded once the session has loaded small ones; on `local-cluster` an executor process for each shard."""
    for count in shards:
        with opened(f"local-cluster[{count},1,1024]" if cluster else None) as spark:
            for warm, scale in [(True, min(scales)), *((False, scale) for scale in scales)]:
                others = Others()
                with Place(spark, folder, count).engine("growth") as engine:
                    seconds, rows = loaded(engine, tables(spark, scale))
                shutil.rmtree(folder / "growth")
                if not warm:
                    record = {"phase": "growth", "shards": count, "cluster": cluster, "SF": scale, "rows": rows}
                    record |= {"seconds": seconds, "rows_per_s": rows / seconds}
                    yield record | memory() | others.figures()
