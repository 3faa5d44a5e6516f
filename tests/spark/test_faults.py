"""Nothing is lost or doubled, whatever dies: tasks, Python workers, the driver."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from spark_cluster import run_on_cluster

import tektite as tk
from tektite.spark.bulk import Target, write
from tektite.spark.feed import Feed
from tektite.storage.batchfile import open_file
from tektite.storage.manifest import Manifest
from tektite.storage.store import PosixStore, open_store
from tektite.trace.chunk import Chunk

ROOT = Path(tk.__file__).parents[1]
SEED = int(os.environ.get("TEKTITE_KILL_SEED", "7"))
KILLS = int(os.environ.get("TEKTITE_KILLS", "5"))

Stage = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def frame_of(spark: SparkSession) -> DataFrame:
    return spark.range(0, 4000, 1, 4).select(
        F.col("id").cast("int").alias("k"), F.concat(F.lit("v"), F.col("id") % 9).alias("v")
    )


def troubled(kind: str, attempts: int) -> Stage:
    """A stage that passes rows on, but fails in the middle of one partition, that many times.

    It is a local function so that it travels as a whole: the workers do not have this module.
    """

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import os
        import signal

        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        for batch in batches:
            yield batch.slice(0, 10)
            if context.partitionId() == 2 and context.attemptNumber() < attempts:
                if kind == "killed":
                    os.kill(os.getpid(), signal.SIGKILL)
                raise RuntimeError("trouble on purpose")
            yield batch.slice(10)

    return run


@pytest.mark.parametrize("kind", ["raises", "killed"])
@pytest.mark.parametrize("stored", [True, False], ids=["storage", "memory"])
def test_task_that_fails_is_run_again(spark: SparkSession, tmp_path: Path, kind: str, stored: bool) -> None:
    frame = frame_of(spark)
    with tk.Engine(spark=spark, storage=tmp_path / "store" if stored else None, shards=2) as engine:
        table = engine.input("t", k=tk.Int, v=tk.String)
        view = engine.install("all", table)
        assert table.load(frame.mapInArrow(troubled(kind, attempts=1), frame.schema)) == 4000
        assert Counter(view.rows()) == Counter(tuple(row) for row in frame.collect())


def test_load_whose_job_fails_for_good_changes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    frame = frame_of(spark)
    with tk.Engine(spark=spark, storage=tmp_path / "store", shards=2) as engine:
        table = engine.input("t", k=tk.Int, v=tk.String)
        view = engine.install("all", table)
        with pytest.raises(Exception, match="trouble on purpose"):
            table.load(frame.mapInArrow(troubled("raises", attempts=9), frame.schema), once="history")
        assert engine.epoch == 0 and table.pending == 0
        assert table.load(frame, once="history") == 4000
        assert len(view.rows()) == 4000


def killing(root: Path, marker: Path) -> PosixStore:
    """A store whose first writer is killed between writing a file and naming it."""

    class Killing(PosixStore):
        def rename(self, temporary: Path, target: Path) -> None:
            import os
            import signal

            try:
                os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                super().rename(temporary, target)
            else:
                os.kill(os.getpid(), signal.SIGKILL)

    return Killing(root)


def test_worker_killed_while_it_writes_leaves_one_file_a_shard(spark: SparkSession, tmp_path: Path) -> None:
    store = killing(tmp_path / "store", tmp_path / "killed")
    feed = Feed("t", tk.Schema(k=tk.Int, v=tk.String))
    found = write(feed, frame_of(spark), Target(store, "t", (0, 1), 1, 2, 0, 0))
    assert (tmp_path / "killed").exists()
    assert found.rows == 4000 and len(found.files) == 2
    rows = 0
    for info in found.files:
        opened = open_file(tmp_path / "store" / "batches" / info.name, info)
        opened.verify()
        rows += opened.batch(0).n
    assert rows == 4000


def test_files_do_not_depend_on_how_rows_arrive(spark: SparkSession, tmp_path: Path) -> None:
    """Permuted rows, other partitions, another order of the shuffle: the same bytes, so the same names."""
    feed = Feed("t", tk.Schema(k=tk.Int, v=tk.String))
    names, contents = set(), set()
    for frame in (frame_of(spark), frame_of(spark).orderBy(F.rand(3)).repartition(3)):
        found = write(feed, frame, Target(PosixStore(tmp_path), "t", (0, 1), 1, 2, 0, 0))
        for info in found.files:
            opened = open_file(tmp_path / "batches" / info.name, info)
            batch = opened.batch(0)
            contents.add(Chunk(batch.head, batch.keep).to_array().tobytes())
            names.add((info.sections[0].rows, tuple(sorted(opened.texts(1).to_pylist()))))
    assert len(contents) == 2 and len(names) == 2


CLUSTER = """
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


def deadly(stage):
    def run(batches):
        for batch in batches:
            yield batch.slice(0, 10)
            marker = folder / f"killed-{stage}"
            try:
                os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                pass
            else:
                worker_parent = os.getppid()  # the process that workers are forked from; its parent is the executor
                status = Path(f"/proc/{worker_parent}/status").read_text()
                executor = int(next(line.split()[1] for line in status.splitlines() if line.startswith("PPid:")))
                os.kill(executor, signal.SIGKILL)
            yield batch.slice(10)
    return run


frame = spark.range(0, 4000, 1, 4).selectExpr("CAST(id AS int) AS k", "concat('v', id % 9) AS v")
checked = tektite.spark.preflight(spark, folder / "store")
assert not checked.problems, checked.problems
with tk.Engine(spark=spark, storage=folder / "store", shards=2) as engine:
    table = engine.input("t", k=tk.Int, v=tk.String)
    view = engine.install("all", table)
    for stage in ("first", "second"):
        # Killed before the shuffle, and behind it: what it wrote for others to fetch is gone as well.
        some = frame if stage == "first" else frame.repartition(3)
        assert table.load(some.mapInArrow(deadly(stage), frame.schema)) == 4000
        assert (folder / f"killed-{stage}").exists()
    expected = Counter({(k, f"v{k % 9}"): 2 for k in range(4000)})
    assert Counter(view.rows()) == expected
with tk.Engine(storage=folder / "store") as engine:
    assert Counter(engine.install("all", engine.table("t")).rows()) == expected
spark.stop()
print("done")
"""


@pytest.mark.slow
def test_executors_are_killed_during_loads(tmp_path: Path) -> None:
    run_on_cluster(CLUSTER, tmp_path)


# ---------------------------------------------------------------------- the driver


def make_files(folder: Path, count: int) -> Counter[tuple[int, str]]:
    """History and a stream of files, each of which adds rows and takes some away; what they add up to."""
    chance = random.Random(SEED)
    total: Counter[tuple[int, str]] = Counter()
    (folder / "history").mkdir()
    (folder / "files").mkdir()

    def write_rows(path: Path, rows: list[tuple[int, str, int]]) -> None:
        path.write_text("\n".join(json.dumps({"k": k, "v": v, "d": d}) for k, v, d in rows))
        for k, v, d in rows:
            total[k, v] += d

    write_rows(folder / "history" / "0.json", [(k, f"v{k % 5}", 1) for k in range(200)])
    for number in range(count):
        gone = chance.sample(sorted(total.elements()), 4)
        rows = [(1000 * number + k, f"v{chance.randrange(9)}", 1) for k in range(12)]
        path = folder / "files" / f"{number:03}.json"
        write_rows(path, rows + [(k, v, -1) for k, v in set(gone)])
        os.utime(path, (10**9 + number, 10**9 + number))  # Spark takes the oldest file first
    return +total


def start(folder: Path) -> subprocess.Popen[str]:
    """The driver and its Java, in a process group of their own, so that both can be killed at once, as a machine that fails."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        [sys.executable, str(ROOT / "tests" / "spark_driver.py"), str(folder)], env=environment, cwd=folder,
        stdout=subprocess.PIPE, stderr=(folder / "stderr").open("a"), text=True, start_new_session=True,
    )  # fmt: skip


def kill_at(process: subprocess.Popen[str], lines: int, delay: float) -> list[str]:
    """Let the driver say some lines, wait a little, and kill it; what it said. It may have come to its end before."""
    said: list[str] = []
    assert process.stdout is not None
    try:
        while len(said) < lines:
            line = process.stdout.readline()
            if not line:
                break
            said.append(line.strip())
        time.sleep(delay)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()
    return said


@pytest.mark.slow
def test_driver_is_killed_at_random_and_goes_on(tmp_path: Path) -> None:
    expected = make_files(tmp_path, max(24, 5 * KILLS))
    chance = random.Random(SEED)
    history: list[list[str]] = []
    for _ in range(KILLS):
        history.append(kill_at(start(tmp_path), chance.randrange(1, 8), chance.random() * 0.5))
    last = start(tmp_path)
    out, _ = last.communicate(timeout=300)
    assert last.returncode == 0, (tmp_path / "stderr").read_text()[-4000:]
    assert out.split("\n")[-2] == "done", (history, out)
    with tk.Engine(storage=tmp_path / "store", shards=2) as engine:
        assert engine.install("all", engine.table("t")).multiplicities() == dict(expected)
        counts: dict[str, int] = {}
        for (_, v), n in expected.items():
            counts[v] = counts.get(v, 0) + n
        view = engine.install("n", engine.table("t").count(by="v"))
        assert dict(view.rows()) == counts
        stored = published(tmp_path / "store", "n")
        assert stored == dict.fromkeys(counts.items(), 1)


def published(path: Path, name: str) -> dict[tuple[Any, ...], int]:
    """A published view as another process finds it."""
    from tektite.spark.stored import open_stored

    stored = open_stored(str(path))
    state = Manifest.open(open_store(path)).state
    collection = stored.collection(name, state)
    found: dict[tuple[Any, ...], int] = {}
    for shard in range(state.shards):
        words, _ = stored.snapshot(name, shard, state.version)
        rows = collection.schema.decode_rows(words[:-2].copy(), stored.dictionary(state))
        found |= dict(zip(rows, words[-1].tolist(), strict=True))
    return found
