"""Nothing is lost or doubled when tasks fail and Python workers die."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import tektite as tk
from tektite.spark.bulk import Target, write
from tektite.spark.feed import Feed
from tektite.storage.batchfile import open_file
from tektite.storage.store import PosixStore
from tektite.trace.chunk import Chunk
from tests.support.nightly import few_of

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


@pytest.mark.parametrize(
    ("stored", "kind"),
    few_of(
        [(stored, kind) for stored in (True, False) for kind in ("raises", "killed")],
        (True, "killed"),
        (False, "raises"),
    ),
)
def test_task_that_fails_is_run_again(spark: SparkSession, tmp_path: Path, kind: str, stored: bool) -> None:
    frame = frame_of(spark)
    with tk.Engine(spark=spark, storage=tmp_path / "store" if stored else None, workers=2, autocommit=False) as engine:
        table = engine.create_table("t", {"k": tk.Int, "v": tk.String})
        view = engine.install("all", table)
        assert table.load(frame.mapInArrow(troubled(kind, attempts=1), frame.schema)) == 4000
        assert Counter(view.rows()) == Counter(tuple(row) for row in frame.collect())


def test_load_whose_job_fails_for_good_changes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    frame = frame_of(spark)
    with tk.Engine(spark=spark, storage=tmp_path / "store", workers=2, autocommit=False) as engine:
        table = engine.create_table("t", {"k": tk.Int, "v": tk.String})
        view = engine.install("all", table)
        with pytest.raises(Exception, match="trouble on purpose"):
            table.load(frame.mapInArrow(troubled("raises", attempts=9), frame.schema), once="history")
        assert engine.next_epoch == 0 and table.pending == 0
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
            contents.add(Chunk(batch.head, batch.memory).to_array().tobytes())
            names.add((info.sections[0].rows, tuple(sorted(opened.texts(1).to_pylist()))))
    assert len(contents) == 2 and len(names) == 2
