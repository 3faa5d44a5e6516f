"""With a storage: tasks write the files that the driver would, and a restart goes on where the last run stopped."""

from __future__ import annotations

import errno
import os
import threading
from collections import Counter
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import tektite as tk
from tektite.engine.core import core_of
from tektite.engine.stored_inputs import adopt
from tektite.errors import ConflictError, FaultError, IncorrectError
from tektite.spark.bulk import Target, write
from tektite.spark.feed import Feed
from tektite.storage.manifest import Manifest
from tektite.storage.store import PosixStore, open_store
from tests.support.spark_files import NOW, Files, read, rows_of


@pytest.mark.parametrize("shards", [1, 2, 3])
def test_tasks_write_what_the_driver_would(spark: SparkSession, tmp_path: Path, people: DataFrame, shards: int) -> None:
    with tk.Engine(spark=spark, storage=tmp_path / "store", workers=shards, autocommit=False) as engine:
        table = engine.create_table("t", {"k": tk.Int, "s": tk.String, "g": tk.Int}, order_by=["k"])
        view = engine.install("n", table.count(by="s"))
        assert table.load(people) == 5000
        engine.sync()
        files = Manifest.open(open_store(tmp_path / "store")).state.files
        assert {name.split("-")[1] for name in files} == {"load"}
        assert {tuple(row) for row in people.groupBy("s").count().collect()} == set(view.rows())
    with tk.Engine(storage=tmp_path / "store", workers=shards, autocommit=False) as engine:
        again = engine.install("all", engine.table("t"))
        assert Counter(again.rows()) == rows_of(people)
        assert engine.next_epoch == 1


def test_key_that_holds_most_rows_does_not_hold_up_one_task(spark: SparkSession, tmp_path: Path) -> None:
    skewed = spark.range(0, 40000, 1, 4).select(
        F.when(F.col("id") % 10 < 9, 7).otherwise(F.col("id")).alias("k"), F.concat(F.lit("v"), F.col("id")).alias("v")
    )
    store, feed = PosixStore(tmp_path / "bare"), Feed("t", tk.Schema(k=tk.Int, v=tk.String))
    found = write(feed, skewed, Target(store, "t", (0, 1), 1, 4, 0, 0, fair=100))
    sizes = [sum(section.rows for section in info.sections if section.kind == "batch") for info in found.files]
    assert sum(sizes) == 40000 and max(sizes) <= 20000  # a shard of its own would have at least 36000
    with tk.Engine(spark=spark, storage=tmp_path / "store", workers=3, autocommit=False) as engine:
        table = engine.create_table("t", {"k": tk.Int, "v": tk.String})
        view = engine.install("n", table.count(by="k"))
        target = Target(core_of(engine).store, "t", (0, 1), 1, 3, 0, 0, fair=100)
        loaded = write(feed, skewed, target)
        adopt(core_of(engine), core_of(table), loaded.files, 0, {})
        assert view.rows().count((7, 36000)) == 1 and len(view.rows()) == 4001
        table.remove([(7, "v0")])
        engine.advance()
        assert (7, 35999) in view.rows()
    with tk.Engine(storage=tmp_path / "store", autocommit=False) as engine:
        assert len(engine.install("all", engine.table("t")).rows()) == 39999


def test_loads_and_updates_alternate(spark: SparkSession, tmp_path: Path) -> None:
    expected: Counter[tuple[Any, ...]] = Counter()
    with tk.Engine(spark=spark, storage=tmp_path / "store", workers=2, autocommit=False) as engine:
        table = engine.create_table("t", {"k": tk.Int, "s": tk.String})
        view = engine.install("all", table)
        for number in range(3):
            table.insert([(number, "mine"), (number, f"s{number}")])
            engine.advance()
            expected.update([(number, "mine"), (number, f"s{number}")])
            loaded = [(k, f"s{k % 5}") for k in range(number, number + 20)]
            assert table.load(spark.createDataFrame(loaded, "k int, s string")) == 20
            expected.update(loaded)
            assert Counter(view.rows()) == expected
            table.remove([(number, "mine")])
            expected[number, "mine"] -= 1
            engine.advance()
            assert Counter(view.rows()) == +expected
    with tk.Engine(storage=tmp_path / "store", workers=2, autocommit=False) as engine:
        assert Counter(engine.install("all", engine.table("t")).rows()) == +expected


def test_load_that_removes_what_is_not_there_leaves_the_storage_as_it_was(spark: SparkSession, tmp_path: Path) -> None:
    with tk.Engine(spark=spark, storage=tmp_path / "store", workers=2, autocommit=False) as engine:
        table = engine.create_table("t", {"k": tk.Int, "s": tk.String})
        table.load(spark.createDataFrame([(1, "a")], "k int, s string"))
        before = engine.next_epoch
        with pytest.raises(IncorrectError, match=r"row \(2, 'new text'\) would be there a negative number of times"):
            table.load(spark.createDataFrame([(2, "new text", -1)], "k int, s string, d int"), diff="d")
        assert engine.next_epoch == before
        table.insert([(3, "new text")])  # whose text only the failed load has brought so far
        engine.advance()
    with tk.Engine(storage=tmp_path / "store", workers=2, autocommit=False) as engine:
        assert sorted(engine.install("all", engine.table("t")).rows()) == [(1, "a"), (3, "new text")]


def test_upserts_are_loaded_by_tasks_into_an_empty_input_only(spark: SparkSession, tmp_path: Path) -> None:
    columns = "k int, v string, seq int, op string"
    with tk.Engine(spark=spark, storage=tmp_path / "store", workers=2, autocommit=False) as engine:
        table = engine.create_table("t", {"k": tk.Int, "v": tk.String}, mode="upsert", primary_key=["k"])
        view = engine.install("all", table)
        history = [(k % 10, f"v{k}", k, "u") for k in range(40)] + [(3, None, 99, "d")]
        table.load(spark.createDataFrame(history, columns), order="seq", operation="op")
        assert sorted(view.rows()) == [(k, f"v{30 + k}") for k in range(10) if k != 3]
        table.load(spark.createDataFrame([(1, "new", 1, "u"), (2, None, 1, "d")], columns), order="seq", operation="op")
        assert sorted(view.rows()) == [(k, "new" if k == 1 else f"v{30 + k}") for k in range(10) if k not in (2, 3)]
        with pytest.raises(IncorrectError, match="several rows for k = 5"):
            table.load(spark.createDataFrame([(5, "a"), (5, "b")], "k int, v string"))


def test_bad_row_in_one_partition_leaves_nothing_behind(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.range(0, 100, 1, 4).select(F.when(F.col("id") != 77, F.col("id")).alias("k"), F.lit("x").alias("v"))
    with tk.Engine(spark=spark, storage=tmp_path / "store", workers=2, autocommit=False) as engine:
        table = engine.create_table("t", {"k": tk.Int, "v": tk.String}, mode="upsert", primary_key=["k"])
        with pytest.raises(IncorrectError, match="key column 'k' holds a NULL .*partition 3"):
            table.load(frame)
        engine.sync()
        assert engine.next_epoch == 0
        assert not Manifest.open(open_store(tmp_path / "store")).state.files


def test_loads_and_positions_outlive_the_engine(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.createDataFrame([(k, k) for k in range(10)], "k int, p int")
    counts = []
    for _ in range(3):
        with tk.Engine(spark=spark, storage=tmp_path / "store", autocommit=False) as engine:
            table = engine.create_table("t", {"k": tk.Int})
            counts.append((table.load(frame.drop("p"), once="dimension"), table.load(frame, position="p", upto=4)))
    assert counts == [(10, 5), (0, 0), (0, 0)]


def test_stream_is_followed_across_engines(spark: SparkSession, tmp_path: Path) -> None:
    files = Files(spark, tmp_path / "files", "k int, v string")
    for number in range(4):
        files.add([(number, f"v{number}")])
        with tk.Engine(spark=spark, storage=tmp_path / "store", workers=2, autocommit=False) as engine:
            table = engine.create_table("t", {"k": tk.Int, "v": tk.String})
            view = engine.install("all", table)
            following = table.follow(files.stream(), trigger=NOW)
            following.await_termination()
            assert (following.epochs, engine.durable) == (1, number + 1)
            assert sorted(view.rows()) == [(k, f"v{k}") for k in range(number + 1)]
    assert (tmp_path / "store" / "checkpoints" / "t").is_dir()


def test_lost_checkpoint_is_noticed(spark: SparkSession, tmp_path: Path) -> None:
    files = Files(spark, tmp_path / "files", "k int, v string")
    files.add([(1, "x")])
    with tk.Engine(spark=spark, storage=tmp_path / "store", autocommit=False) as engine:
        engine.create_table("t", {"k": tk.Int, "v": tk.String}).follow(files.stream(), trigger=NOW).await_termination()
    (tmp_path / "store" / "checkpoints").rename(tmp_path / "elsewhere")
    with tk.Engine(spark=spark, storage=tmp_path / "store", autocommit=False) as engine:
        table = engine.create_table("t", {"k": tk.Int, "v": tk.String})
        with pytest.raises(ConflictError, match="is new: it would begin again and count rows twice"):
            table.follow(files.stream(), trigger=NOW)
        table.follow(files.stream(), trigger=NOW, reset=True).await_termination()
        assert engine.install("all", table).multiplicities() == {(1, "x"): 2}


def test_input_gains_a_column(spark: SparkSession, tmp_path: Path, people: DataFrame) -> None:
    files = Files(spark, tmp_path / "files", "k bigint, s string, g bigint")
    files.add([(9000, "early", 1)])
    with tk.Engine(spark=spark, storage=tmp_path / "store", workers=2, autocommit=False) as engine:
        table = engine.create_table("t", {"k": tk.Int, "s": tk.String, "g": tk.Int}, order_by=["k"])
        table.load(people, once="people")
        table.follow(files.stream(), trigger=NOW).await_termination()
    files.columns += ", w double"
    files.add([(9001, "late", 2, 0.5)])
    expected = rows_of(people.selectExpr("*", "NULL"))
    expected.update([(9000, "early", 1, None), (9001, "late", 2, 0.5)])
    for _ in range(2):
        with tk.Engine(spark=spark, storage=tmp_path / "store", workers=2, autocommit=False) as engine:
            table = engine.create_table("t", {"k": tk.Int, "s": tk.String, "g": tk.Int, "w": tk.Float}, order_by=["k"])
            view = engine.install("all", table)
            table.load(people.selectExpr("*", "0.0D AS w"), once="people")
            table.follow(files.stream(), trigger=NOW).await_termination()
            assert Counter(view.rows()) == expected
            table.remove([(0, "n0", 0, None)])
            table.insert([(0, "n0", 0, None)])
            engine.advance()
            engine.sync()
            assert rows_of(read(spark, tmp_path / "store", "t")) == expected
    with (
        tk.Engine(storage=tmp_path / "store", autocommit=False) as engine,
        pytest.raises(ConflictError, match="declare it as it is stored"),
    ):
        engine.create_table("t", {"k": tk.Int, "s": tk.String, "g": tk.Float}, order_by=["k"])


def test_spark_changes_the_number_of_shards(spark: SparkSession, tmp_path: Path, people: DataFrame) -> None:
    """Tasks move the rows, and readers of changes see that nothing changed, though shards come and go."""
    tracker = spark.sparkContext.statusTracker()
    store = tmp_path / "store"
    last = 0
    for number, shards in enumerate((2, 5, 3)):
        before = len(tracker.getJobIdsForGroup("tektite shards"))
        with tk.Engine(spark=spark, storage=store, workers=shards, autocommit=False) as engine:
            table = engine.create_table("t", {"k": tk.Int, "s": tk.String, "g": tk.Int}, order_by=["k"])
            other = engine.create_table("u", {"s": tk.String}, mode="set")
            engine.create_table("empty", {"k": tk.Int})
            view = engine.install("n", table.count(by="s"))
            view.persist()
            table.load(people, once="people")
            other.insert([(f"s{k}",) for k in range(number, number + 4)])
            table.insert([(10**6 + number, "more", 1)])
            engine.advance()
            engine.sync()
            assert len(tracker.getJobIdsForGroup("tektite shards")) - before == (1 if number else 0)
            assert rows_of(read(spark, store, "n")) == Counter(view.rows())
            if last:
                grown = [(10**6 + number, "more", 1, 1)]
                assert rows_of(read(spark, store, "t", changes="true", startingVersion=last).drop("time")) == Counter(
                    grown
                )
                changed: Counter[tuple[Any, ...]] = Counter()
                for row in read(spark, store, "n", changes="true", startingVersion=last).collect():
                    changed[row["s"], row["count"]] += row["diff"]
                assert {row: n for row, n in changed.items() if n} == {("more", number): -1, ("more", number + 1): 1}
        state = Manifest.open(open_store(store)).state
        assert state.shards == shards
        assert {live.section.shard for live in state.sections("batch")} <= set(range(shards))
        last = state.version
    with tk.Engine(storage=store, autocommit=False) as engine:
        found = Counter(engine.install("all", engine.table("t")).rows())
        assert found == rows_of(people) + Counter((10**6 + k, "more", 1) for k in range(3))
        assert sorted(engine.install("sets", engine.table("u")).rows()) == [(f"s{k}",) for k in range(6)]


def full_for_tasks(root: Path) -> PosixStore:
    """A store that tasks find full, in the middle of a write. Its class travels as a whole: workers do not have this module."""

    class Full(PosixStore):
        def put(self, file: Any, part: Any) -> None:
            import errno

            from pyspark import TaskContext

            super().put(file, part[: len(part) // 2])
            if TaskContext.get() is not None:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            super().put(file, part[len(part) // 2 :])

    return Full(root)


@pytest.mark.nightly
def test_tasks_that_find_the_disk_full_leave_the_storage_as_it_was(
    spark: SparkSession, tmp_path: Path, people: DataFrame
) -> None:
    full, sound = tk.Storage(full_for_tasks(tmp_path / "store")), tmp_path / "store"
    said = os.strerror(errno.ENOSPC)

    def declare(engine: tk.Engine) -> tk.Table:
        return engine.create_table("t", {"k": tk.Int, "s": tk.String, "g": tk.Int}, order_by=["k"])

    with tk.Engine(spark=spark, storage=full, workers=2, autocommit=False) as engine:
        with pytest.raises(FaultError, match=f"table 't': Spark's job failed, and nothing counts: .*{said}"):
            declare(engine).load(people, once="people")
        assert engine.next_epoch == 0
    with tk.Engine(spark=spark, storage=sound, workers=2, autocommit=False) as engine:
        assert declare(engine).load(people, once="people") == 5000
    with pytest.raises(FaultError, match=f"keeps its 2 shards.*{said}"):
        tk.Engine(spark=spark, storage=full, workers=3, autocommit=False)
    assert not list((tmp_path / "store" / "batches").glob(".writing*"))
    with tk.Engine(storage=sound, autocommit=False) as engine:
        assert engine.workers == 2
        assert Counter(engine.install("all", engine.table("t")).rows()) == rows_of(people)


def test_text_files_are_loaded_as_spark_reads_them(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text('k,v\n1,"a, b"\n2,\n')
    with tk.Engine(spark=spark, storage=tmp_path / "store", autocommit=False) as engine:
        table = engine.create_table("t", {"k": tk.Int, "v": tk.String})
        table.load(spark.read.csv(str(tmp_path / "rows.csv"), schema="k int, v string", header=True))
        assert sorted(engine.install("all", table).rows()) == [(1, "a, b"), (2, None)]


def test_texts_that_come_while_a_load_is_taken_over_are_stored(spark: SparkSession, tmp_path: Path) -> None:
    """A stream encodes its rows beside a load of another input: the load's files do not have its texts."""
    with tk.Engine(spark=spark, storage=tmp_path / "store", workers=2, autocommit=False) as engine:
        table = engine.create_table("t", {"s": tk.String})
        other = engine.create_table("o", {"s": tk.String})
        storage = core_of(engine).storage
        assert storage is not None
        files = storage.writer.files
        real = files.open
        adding: list[threading.Thread] = []

        def opened(info: Any) -> Any:
            if not adding:
                adding.append(threading.Thread(target=core_of(engine).dictionary.add, args=(pa.array(["theirs"]),)))
                adding[0].start()
                adding[0].join(0.5)
            return real(info)

        with patch.object(files, "open", opened):
            assert table.load(spark.createDataFrame([("a",), ("b",)], "s string")) == 2
        adding[0].join()
        other.insert([("theirs",)])
        engine.advance()
    with tk.Engine(storage=tmp_path / "store", autocommit=False) as engine:
        assert engine.install("all", engine.table("o")).rows() == [("theirs",)]
