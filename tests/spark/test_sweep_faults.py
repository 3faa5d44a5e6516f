"""Executors that die under a sweep: the job goes on, and what its tasks have written counts once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.spark_cluster import run_on_cluster

PROGRAM = """

def deadly(place, columns):
    def run(table):
        if only_once(place) and place != "nowhere":
            kill_executor()
        return table.select(columns)
    return run


with tk.Engine(spark=spark, storage=folder / "store", workers=2, job_rows=0, autocommit=False) as engine:
    table = engine.create_table("t", {"a": tk.Int, "b": tk.Int})
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
    assert all((folder / f"done-{place}").exists() for place in ("first", "middle", "last"))
    (sweep,) = [sweep for sweep in engine.progress if sweep.name == "view"]
    assert sweep.stages >= 4, sweep
    named = len(list((folder / "store" / "sweeps").glob("*.batch")))
    assert named <= 2 * sweep.stages * len(sweep.jobs) + 4, named
    table.insert([(1, 2)] * 5)
    engine.advance()
    assert sorted(view.rows()) == expected(rows + [(1, 2)] * 5)
spark.stop()
print("done")
"""


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.soak
def test_executors_are_killed_in_the_first_a_middle_and_the_last_stage(tmp_path: Path) -> None:
    run_on_cluster(PROGRAM, tmp_path)
