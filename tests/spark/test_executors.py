"""Nothing is lost or doubled when executors are killed and shuffle files vanish, on a cluster of real processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.spark_cluster import run_on_cluster

# Stages of a load: the rows are made and shuffled, then encoded and addressed to their shards, then received and written.
# What happens in the first two is a step of the DataFrame; in the last one it is the store that the tasks write to.
PROGRAM = """
from pyspark import TaskContext
from tektite.storage.store import PosixStore


def lose_shuffle_files():
    lost = [path for path in folder.rglob("shuffle_*") if path.suffix in (".data", ".index")]
    assert lost
    for path in lost:
        path.unlink(missing_ok=True)


def passing(name, strike):
    def run(batches):
        for batch in batches:
            yield batch.slice(0, 10)
            if only_once(name):
                strike()
            yield batch.slice(10)
    return run


class Troubled(PosixStore):
    def rename(self, temporary, target):
        trouble = (folder / "trouble").read_text() if TaskContext.get() is not None else ""
        if trouble == "last, before the file has its name" and only_once(trouble):
            kill_executor()
        super().rename(temporary, target)
        if trouble == "last, when the file has its name" and only_once(trouble):
            kill_executor()
        if trouble == "shuffle files lost in the last" and only_once(trouble):
            lose_shuffle_files()


store = Troubled(folder / "store")
frame = spark.range(0, 4000, 1, 4).selectExpr("CAST(id AS int) AS k", "concat('v', id % 9) AS v")
checked = tektite.spark.preflight(spark, folder / "store")
assert not checked.problems, checked.problems
with tk.Engine(spark=spark, storage=tk.Storage(store), workers=2, autocommit=False) as engine:
    table = engine.create_table("t", {"k": tk.Int, "v": tk.String})
    view = engine.install("all", table)
    first = frame.mapInArrow(passing("first", kill_executor), frame.schema).repartition(6)
    middle = frame.repartition(6).mapInArrow(passing("middle", kill_executor), frame.schema)
    lost = frame.repartition(6).mapInArrow(passing("shuffle files lost in the middle", lose_shuffle_files), frame.schema)
    cases = {"first": first, "middle": middle, "shuffle files lost in the middle": lost}
    last = ("last, before the file has its name", "last, when the file has its name", "shuffle files lost in the last")
    cases |= {name: frame.repartition(3) for name in last}
    for count, (name, rows) in enumerate(cases.items(), 1):
        (folder / "trouble").write_text(name)
        assert table.load(rows) == 4000, name
        assert (folder / f"done-{name}").exists(), name
        assert Counter(view.rows()) == Counter({(k, f"v{k % 9}"): count for k in range(4000)}), name
        print(name, flush=True)
with tk.Engine(storage=folder / "store", autocommit=False) as engine:
    assert engine.install("all", engine.table("t")).multiplicities() == {(k, f"v{k % 9}"): len(cases) for k in range(4000)}
spark.stop()
print("done")
"""


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.soak
def test_loads_survive_killed_executors_and_lost_shuffle_files_at_every_stage(tmp_path: Path) -> None:
    run_on_cluster(PROGRAM, tmp_path)
