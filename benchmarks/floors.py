"""What the machine itself can do, on one core: the figures below which no engine built on it gets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from statistics import median
from typing import Any

import numpy as np

from benchmarks.measure import Laps, memory
from benchmarks.workloads import COUNT_SEED, count_keys, r

NAME = "floors"
DESCRIPTION = "sort, bincount and DuckDB's group count of the count workload's keys"


def run(rows: int = 10_000_000, keys: int = 1_000_000, repetitions: int = 3) -> Iterator[dict[str, Any]]:
    """One record for each floor; its seconds are the median of the repetitions."""
    # Imported here, because its memory would count for every other benchmark of this package.
    import duckdb

    data = count_keys(keys, 0, rows)
    words = r(COUNT_SEED, np.arange(rows, dtype=np.uint64)).view(np.int64)
    connection = duckdb.connect(config={"threads": 1})
    connection.register("numbers", {"key": data})
    floors: dict[str, Callable[[], Any]] = {
        "np.sort": lambda: np.sort(words),
        "np.bincount": lambda: np.bincount(data),
        "duckdb group count": lambda: connection.execute("SELECT key, count(*) FROM numbers GROUP BY key").fetchnumpy(),
    }
    for what, work in floors.items():
        laps = Laps()
        for _ in range(repetitions):
            with laps.lap():
                work()
        yield {"what": what, "seconds": median(laps.seconds)} | memory()
