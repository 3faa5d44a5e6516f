"""Executors that die under a sweep: the job goes on, and what its tasks have written counts once."""

from __future__ import annotations

from pathlib import Path

import pytest
from spark_cluster import run_on_cluster

PROGRAM = """
import os, signal, sys
from collections import Counter
from pathlib import Path
import tektite as tk
import tektite.spark

folder = Path(sys.argv[1])
spark = tektite.spark.session(master="local-cluster[2,1,1024]", memory="512m", config={
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.executor.memory": "512m",
    "spark.local.dir": str(folder / "local"),
})
spark.sparkContext.setLogLevel("OFF")


def deadly(place, columns):
    def run(table):
        try:
            os.close(os.open(folder / f"killed-{place}", os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            pass
        else:
            if place != "nowhere":
                worker_parent = os.getppid()  # the process that workers are forked from; its parent is the executor
                status = Path(f"/proc/{worker_parent}/status").read_text()
                executor = int(next(line.split()[1] for line in status.splitlines() if line.startswith("PPid:")))
                os.kill(executor, signal.SIGKILL)
        return table.select(columns)
    return run


with tk.Engine(spark=spark, storage=folder / "store", shards=2, job_rows=0) as engine:
    table = engine.input("t", a=tk.Int, b=tk.Int)
    table.insert([(i % 97, i % 31) for i in range(3000)])
    engine.advance()
    first = table.map_batches(deadly("first", ["a", "b"]), a=tk.Int, b=tk.Int).count(by=["a", "b"], name="n")
    middle = first.map_batches(deadly("middle", ["b", "n"]), b=tk.Int, n=tk.Int).max("n", by="b")
    last = middle.map_batches(deadly("last", ["b", "n"]), b=tk.Int, n=tk.Int).count(by="n", name="m")
    view = engine.install("view", last)

    def expected(rows):
        pairs = Counter(rows)
        most = {}
        for (a, b), n in pairs.items():
            most[b] = max(most.get(b, 0), n)
        return sorted(Counter(most.values()).items())

    rows = [(i % 97, i % 31) for i in range(3000)]
    assert sorted(view.rows()) == expected(rows)
    assert all((folder / f"killed-{place}").exists() for place in ("first", "middle", "last"))
    (sweep,) = [sweep for sweep in engine.progress if sweep.name == "view"]
    assert sweep.stages >= 4, sweep
    print("jobs", len(sweep.jobs))
    named = len(list((folder / "store" / "sweeps").glob("*.batch")))
    assert named <= 2 * sweep.stages * len(sweep.jobs) + 4, named
    table.insert([(1, 2)] * 5)
    engine.advance()
    assert sorted(view.rows()) == expected(rows + [(1, 2)] * 5)
spark.stop()
print("done")
"""


@pytest.mark.slow
def test_executors_are_killed_in_the_first_a_middle_and_the_last_stage(tmp_path: Path) -> None:
    run_on_cluster(PROGRAM, tmp_path)
