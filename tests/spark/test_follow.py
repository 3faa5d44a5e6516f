"""Streams become epochs exactly once, whatever happens between a stream's checkpoint and the engine."""

from __future__ import annotations

import errno
import os
import re
import shutil
import threading
import time
import traceback
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import tektite as tk
from tektite.engine.core import core_of
from tektite.errors import ConflictError, FaultError, IncorrectError
from tektite.spark import load as loading
from tektite.spark.follow import Following, StreamStopped
from tektite.spark.load import write_files
from tektite.spark.progress import EpochProgress
from tektite.storage.store import PosixStore
from tests.support.patience import PATIENCE
from tests.support.row_changes import row_changes
from tests.support.spark_files import NOW, Files


@pytest.fixture
def files(spark: SparkSession, tmp_path: Path) -> Files:
    return Files(spark, tmp_path / "files", "k int, v string")


@pytest.mark.parametrize("form", ["parquet", "json", "csv", "orc"])
def test_micro_batches_become_epochs(spark: SparkSession, tmp_path: Path, form: str) -> None:
    files = Files(spark, tmp_path / "files", "k int, v string", form)
    for number in range(3):
        files.add([(number, f"a{number}"), (number, "b")])
    engine = tk.Engine(autocommit=False)
    table = engine.create_table("t", {"k": tk.Int, "v": tk.String})
    view = engine.install("all", table)
    changes = row_changes(view)
    following = table.follow(files.stream(), trigger=NOW)
    assert following.await_termination(PATIENCE)
    assert (following.epochs, following.rows, following.batch, engine.next_epoch) == (3, 6, 2, 3)
    assert sorted(view.rows()) == [(0, "a0"), (0, "b"), (1, "a1"), (1, "b"), (2, "a2"), (2, "b")]
    assert sorted({change.time for change in changes}) == [0, 1, 2]


def test_every_epoch_tells_what_it_held_and_took(files: Files, tmp_path: Path) -> None:
    for number in range(3):
        files.add([(k, "x") for k in range(number + 1)])
    seen: list[EpochProgress] = []
    with tk.Engine(storage=tmp_path / "store", autocommit=False) as engine:
        table = engine.create_table("t", {"k": tk.Int, "v": tk.String})
        engine.install("n", table.count(by="k"))
        table.insert([(7, "y")])
        engine.advance()
        following = table.follow(files.stream(), trigger=NOW, on_progress=seen.append)
        following.await_termination()
    assert [(one.table, one.batch, one.epoch, one.rows, one.behind) for one in seen] == [
        ("t", number, number + 1, number + 1, 0) for number in range(3)
    ]
    assert list(following.recent) == seen
    assert all(one.encode > 0 and one.update > 0 and one.durable > 0 and one.seconds < 60 for one in seen)


def test_stream_goes_on_while_views_are_read(files: Files) -> None:
    files.add([(1, "x")])
    engine = tk.Engine(autocommit=False)
    table = engine.create_table("t", {"k": tk.Int, "v": tk.String})
    view = engine.install("n", table.count(by="k"))
    with table.follow(files.stream()) as following:
        for number in range(2, 5):
            following.process_all_available()
            assert sorted(view.rows()) == [(k, 1) for k in range(1, number)]
            files.add([(number, "x")])
        following.process_all_available()
        assert following.active
        assert repr(following) == "<Following of table 't', 4 epochs, 4 rows, running>"
        with pytest.raises(AttributeError, match=r"use process_all_available\(\)"):
            following.processAllAvailable()  # type: ignore[attr-defined]
    assert not following.active
    assert len(view.rows()) == 4


def test_stream_that_stopped_goes_on_with_its_checkpoint(files: Files, tmp_path: Path) -> None:
    engine = tk.Engine(autocommit=False)
    table = engine.create_table("t", {"k": tk.Int, "v": tk.String})
    view = engine.install("all", table)
    for number in range(3):
        files.add([(number, "x")])
        following = table.follow(files.stream(), trigger=NOW, checkpoint=str(tmp_path / "checkpoint"))
        following.await_termination()
        assert following.epochs == 1
        assert sorted(view.rows()) == [(k, "x") for k in range(number + 1)]


def test_micro_batch_that_spark_runs_again_is_left_out(files: Files, tmp_path: Path) -> None:
    """As after a crash between the engine's commit and Spark's."""
    engine = tk.Engine(autocommit=False)
    table = engine.create_table("t", {"k": tk.Int, "v": tk.String})
    view = engine.install("all", table)
    checkpoint = tmp_path / "checkpoint"
    for number in range(3):
        files.add([(number, "x")])
    table.follow(files.stream(), trigger=NOW, checkpoint=str(checkpoint)).await_termination()
    for name in ("2", ".2.crc"):
        (checkpoint / "commits" / name).unlink(missing_ok=True)
    files.add([(9, "x")])
    again = table.follow(files.stream(), trigger=NOW, checkpoint=str(checkpoint))
    again.await_termination()
    assert (again.epochs, again.rows) == (1, 1)
    assert sorted(view.rows()) == [(k, "x") for k in (0, 1, 2, 9)]


def test_other_checkpoint_is_refused_unless_reset(files: Files, tmp_path: Path) -> None:
    engine = tk.Engine(autocommit=False)
    table = engine.create_table("t", {"k": tk.Int, "v": tk.String})
    view = engine.install("all", table)
    files.add([(1, "x")])
    table.follow(files.stream(), trigger=NOW, checkpoint=str(tmp_path / "one")).await_termination()
    with pytest.raises(ConflictError, match="is new: it would begin again and count rows twice"):
        table.follow(files.stream(), trigger=NOW, checkpoint=str(tmp_path / "two"))
    other = engine.create_table("other", {"k": tk.Int, "v": tk.String})
    other.follow(files.stream(), trigger=NOW, checkpoint=str(tmp_path / "three")).await_termination()
    with pytest.raises(ConflictError, match="is that of stream"):
        table.follow(files.stream(), trigger=NOW, checkpoint=str(tmp_path / "three"))
    with pytest.raises(ConflictError, match="has followed another stream"):
        table.follow(files.stream(), trigger=NOW)
    assert len(view.rows()) == 1
    table.follow(files.stream(), trigger=NOW, checkpoint=str(tmp_path / "two"), reset=True).await_termination()
    assert view.multiplicities() == {(1, "x"): 2}


def test_checkpoint_that_is_ahead_of_the_engine_is_refused(files: Files, tmp_path: Path) -> None:
    files.add([(1, "x")])
    first = tk.Engine(autocommit=False).create_table("t", {"k": tk.Int, "v": tk.String})
    first.follow(files.stream(), trigger=NOW, checkpoint=str(tmp_path / "one")).await_termination()
    second = tk.Engine(autocommit=False).create_table("t", {"k": tk.Int, "v": tk.String})
    with pytest.raises(ConflictError, match="holds no micro-batch of its stream, but the checkpoint .* is at 0"):
        second.follow(files.stream(), trigger=NOW, checkpoint=str(tmp_path / "one"))


def test_one_stream_at_a_time(files: Files) -> None:
    files.add([(1, "x")])
    engine = tk.Engine(autocommit=False)
    table = engine.create_table("t", {"k": tk.Int, "v": tk.String})
    with (
        table.follow(files.stream()) as following,
        pytest.raises(ConflictError, match="follows a stream already"),
    ):
        table.follow(files.stream())
    following.stop()


def test_backfill_then_follow_leaves_no_gap_and_no_overlap(spark: SparkSession, tmp_path: Path) -> None:
    """The stream repeats what was loaded and more; rows come in files that hold both."""
    files = Files(spark, tmp_path / "files", "k int, p long")
    for number in range(4):
        files.add([(p, p) for p in range(5 * number, 5 * number + 5)])
    engine = tk.Engine(autocommit=False)
    table = engine.create_table("t", {"k": tk.Int})
    view = engine.install("all", table)
    assert table.load(files.table(), position="p", upto=12) == 13
    files.add([(20, 20)])
    table.follow(files.stream(), position="p", trigger=NOW).await_termination()
    assert view.multiplicities() == {(k,): 1 for k in range(21)}
    assert table.load(files.table(), position="p") == 0  # the stream has taken over


def test_position_of_the_load_must_be_named_again(files: Files) -> None:
    files.add([(1, "x")])
    table = tk.Engine(autocommit=False).create_table("t", {"k": tk.Int, "v": tk.String})
    table.load(files.table(), position="k")
    with pytest.raises(ConflictError, match="position='k', so that no row counts twice"):
        table.follow(files.stream(), trigger=NOW)


def test_change_feed_is_followed(spark: SparkSession, tmp_path: Path) -> None:
    files = Files(spark, tmp_path / "files", "k int, v string, op string, seq long")
    files.add([(1, "a", "c", 1), (2, "b", "c", 2), (1, "aa", "u", 3)])
    files.add([(2, "b", "d", 4), (3, "c", "c", 5), (3, "cc", "u", 6)])
    engine = tk.Engine(autocommit=False)
    table = engine.create_table("t", {"k": tk.Int, "v": tk.String}, mode="upsert", primary_key=["k"])
    view = engine.install("all", table)
    table.follow(files.stream(), operation="op", order="seq", trigger=NOW).await_termination()
    assert sorted(view.rows()) == [(1, "aa"), (3, "cc")]


def test_bad_row_ends_the_stream_and_leaves_the_engine_as_it_was(spark: SparkSession, tmp_path: Path) -> None:
    files = Files(spark, tmp_path / "files", "k int, d int")
    files.add([(1, 1)])
    files.add([(2, 1), (7, -1)])
    engine = tk.Engine(autocommit=False)
    table = engine.create_table("t", {"k": tk.Int})
    view = engine.install("all", table)
    checkpoint = str(tmp_path / "checkpoint")
    following = table.follow(files.stream(), diff="d", trigger=NOW, checkpoint=checkpoint)
    with pytest.raises(IncorrectError, match=r"row \(7,\) would be there a negative number of times"):
        following.await_termination()
    assert view.rows() == [(1,)] and table.pending == 0 and following.batch == 0
    table.insert([(7,)])
    engine.advance()
    table.follow(files.stream(), diff="d", trigger=NOW, checkpoint=checkpoint).await_termination()
    assert sorted(view.rows()) == [(1,), (2,)]


def test_stream_with_other_columns_is_refused_before_it_starts(files: Files, tmp_path: Path) -> None:
    files.add([(1, "x")])
    engine = tk.Engine(autocommit=False)
    table = engine.create_table("t", {"k": tk.Int, "v": tk.Int})
    checkpoint = tmp_path / "checkpoint"
    with pytest.raises(IncorrectError, match="column 'v': expected int, found string"):
        table.follow(files.stream(), checkpoint=str(checkpoint))
    with pytest.raises(IncorrectError, match="missing column 'v'"):
        table.follow(files.stream().drop("v"), checkpoint=str(checkpoint))
    with pytest.raises(IncorrectError, match="use load"):
        table.follow(files.table().withColumn("v", F.lit(1)))
    assert not checkpoint.exists()


def test_stream_that_gains_a_column_is_followed_on(files: Files, tmp_path: Path) -> None:
    files.add([(1, "x")])
    engine = tk.Engine(autocommit=False)
    table = engine.create_table("t", {"k": tk.Int, "v": tk.String})
    view = engine.install("all", table)
    checkpoint = str(tmp_path / "checkpoint")
    table.follow(files.stream(), trigger=NOW, checkpoint=checkpoint).await_termination()
    files.columns = "k int, v string, w double"
    files.add([(2, "y", 0.5)])
    with pytest.raises(IncorrectError, match="unknown column 'w'"):
        table.follow(files.stream(), trigger=NOW, checkpoint=checkpoint)
    table.follow(files.stream(), trigger=NOW, checkpoint=checkpoint, extra="ignore").await_termination()
    assert sorted(view.rows()) == [(1, "x"), (2, "y")]


def test_stream_waits_for_views_that_are_behind(files: Files) -> None:
    for number in range(4):
        files.add([(number, "x")])
    engine = tk.Engine(turn=0.0, autocommit=False)  # every view needs several turns an epoch
    table = engine.create_table("t", {"k": tk.Int, "v": tk.String})
    view = engine.install("pairs", table.join(table.rename(l="k"), on="v").count(by="k"))
    behind: list[int] = []
    engine.install("watch", table, on_change=lambda _: behind.append(engine.next_epoch - core_of(view).low))
    table.follow(files.stream(), trigger=NOW, lag=0).await_termination()
    assert view.current
    assert max(behind) <= 1
    assert sorted(view.rows()) == [(k, 4) for k in range(4)]


def test_two_streams_feed_one_join(spark: SparkSession, tmp_path: Path) -> None:
    left, right = (Files(spark, tmp_path / name, "k int, v string") for name in ("left", "right"))
    engine = tk.Engine(2, autocommit=False)
    tables = [engine.create_table(name, {"k": tk.Int, "v": tk.String}) for name in ("left", "right")]
    view = engine.install("joined", tables[0].join(tables[1].rename(w="v"), on="k"))
    for number in range(3):
        left.add([(number, f"l{number}")])
        right.add([(number, f"r{number}")])
    followings = [t.follow(f.stream(), trigger=NOW) for t, f in zip(tables, (left, right), strict=True)]
    for following in followings:
        following.await_termination()
    assert sorted(view.rows()) == [(k, f"l{k}", f"r{k}") for k in range(3)]
    assert engine.next_epoch == 6


def test_rate_source_is_followed(spark: SparkSession) -> None:
    stream = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 50).load()
    engine = tk.Engine(autocommit=False)
    table = engine.create_table("t", {"timestamp": tk.Timestamp, "value": tk.Int})
    view = engine.install("n", table.count())
    with table.follow(stream) as following:
        while following.epochs < 3:
            following.await_termination(0.05)
    assert view.rows() == [(50 * following.epochs,)]


def test_reader_in_another_thread_sees_whole_epochs(files: Files) -> None:
    for number in range(6):
        files.add([(number, "x"), (number, "y")])
    engine = tk.Engine(autocommit=False)
    table = engine.create_table("t", {"k": tk.Int, "v": tk.String})
    view = engine.install("n", table.count(by="k"))
    seen: list[list[tuple[Any, ...]]] = []
    ended = threading.Event()

    def read() -> None:
        while not ended.is_set():
            seen.append(view.rows())

    reader = threading.Thread(target=read)
    reader.start()
    table.follow(files.stream(), trigger=NOW).await_termination()
    ended.set()
    reader.join()
    assert all(n == 2 for rows in seen for _, n in rows)
    shutil.rmtree(files.folder)


def test_micro_batch_that_the_storage_lost_is_not_committed_before_it_is_durable(files: Files, tmp_path: Path) -> None:
    full: list[bool] = []

    class Full(PosixStore):
        def put(self, file: Any, part: Any) -> None:
            if full:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            super().put(file, part)

    files.add([(1, "a")])
    with tk.Engine(storage=tk.Storage(Full(tmp_path / "store")), autocommit=False) as engine:
        table = engine.create_table("t", {"k": tk.Int, "v": tk.String})
        view = engine.install("all", table)
        assert table.follow(files.stream(), trigger=NOW).await_termination(PATIENCE)
        files.add([(2, "b")])
        full.append(True)
        for _ in range(2):  # the second time the micro-batch counts already
            with pytest.raises(FaultError, match="cannot be written"):
                table.follow(files.stream(), trigger=NOW).await_termination(PATIENCE)
            assert not (tmp_path / "store" / "checkpoints" / "t" / "commits" / "1").exists()
        full.clear()
        assert table.follow(files.stream(), trigger=NOW).await_termination(PATIENCE)
        assert engine.durable == engine.next_epoch and sorted(view.rows()) == [(1, "a"), (2, "b")]


@pytest.mark.parametrize("stored", [False, True], ids=["memory", "storage"])
def test_input_that_was_dropped_begins_again(spark: SparkSession, files: Files, tmp_path: Path, stored: bool) -> None:
    """Loads that happened once and streams that were followed belong to the input that went."""
    files.add([(1, "a")])
    frame = spark.createDataFrame([(2, "b")], "k int, v string")
    with tk.Engine(storage=tmp_path / "store" if stored else None, autocommit=False) as engine:
        for _ in range(2):
            table = engine.create_table("t", {"k": tk.Int, "v": tk.String})
            view = engine.install("all", table)
            assert table.load(frame, once="history") == 1
            following = table.follow(files.stream(), checkpoint=str(tmp_path / "c"), trigger=NOW)
            assert following.await_termination(PATIENCE)
            assert sorted(view.rows()) == [(1, "a"), (2, "b")]
            engine.drop("all")
            engine.drop("t")
            again = engine.create_table("t", {"k": tk.Int, "v": tk.String})
            with pytest.raises(ConflictError, match="holds no micro-batch of its stream"):
                again.follow(files.stream(), checkpoint=str(tmp_path / "c"), trigger=NOW)
            engine.drop("t")
            shutil.rmtree(tmp_path / "c")


def test_engines_follow_streams_into_inputs_of_one_name(files: Files, tmp_path: Path) -> None:
    files.add([(1, "a")])
    with (
        tk.Engine(storage=tmp_path / "a", autocommit=False) as one,
        tk.Engine(storage=tmp_path / "b", autocommit=False) as other,
    ):
        views = []
        for engine in (one, other):
            table = engine.create_table("t", {"k": tk.Int, "v": tk.String})
            views.append(engine.install("all", table))
            table.follow(files.stream()).process_all_available()
        assert [view.rows() for view in views] == [[(1, "a")], [(1, "a")]]


def test_load_beside_a_stream_counts_once(spark: SparkSession, files: Files, tmp_path: Path) -> None:
    """A load that notes no position has nothing to do with how far a stream is."""
    files.add([(1, "a")])
    with tk.Engine(spark=spark, storage=tmp_path / "store", workers=2, autocommit=False) as engine:
        table = engine.create_table("t", {"k": tk.Int, "v": tk.String})
        view = engine.install("all", table)
        following = table.follow(files.stream())

        def written(*arguments: Any) -> Any:
            files.add([(2, "b")])
            following.process_all_available()
            return write_files(*arguments)

        with patch.object(loading, "write_files", written):
            assert table.load(spark.createDataFrame([(3, "c")], "k int, v string"), once="history") == 1
        assert sorted(view.rows()) == [(1, "a"), (2, "b"), (3, "c")]
        assert table.load(spark.createDataFrame([(3, "c")], "k int, v string"), once="history") == 0
        files.add([(4, "d")])
        following.process_all_available()
        assert len(view.rows()) == 4


def test_upsert_load_gets_through_beside_a_busy_stream(spark: SparkSession, files: Files, tmp_path: Path) -> None:
    with tk.Engine(spark=spark, storage=tmp_path / "store", workers=2) as engine:
        table = engine.create_table("t", {"k": tk.Int, "v": tk.String}, mode="upsert", primary_key="k")
        following = table.follow(files.stream())
        runs = 0

        def written(*arguments: Any) -> Any:
            nonlocal runs
            runs += 1
            found = write_files(*arguments)
            files.add([(runs, "streamed")])
            if runs == 1:
                following.process_all_available()
            else:
                time.sleep(1.0)  # the stream would have taken it, if it did not wait
            return found

        with patch.object(loading, "write_files", written):
            assert table.load(spark.createDataFrame([(0, "loaded"), (1, "loaded")], "k int, v string")) == 2
        assert runs == 2
        following.process_all_available()
        assert sorted(table.rows()) == [(0, "loaded"), (1, "loaded"), (2, "streamed")]


def test_micro_batch_of_a_stream_that_is_stopped_ends_with_few_words_that_spark_knows() -> None:
    def interrupted(*_: Any) -> None:
        following._stopping = True
        raise RuntimeError(
            "py4j.protocol.Py4JJavaError: An error occurred while calling" + "\n\tat org.apache" * 20_000
        )

    table = tk.Engine().create_table("t", {"k": tk.Int})
    following = Following(table, None, 0)  # type: ignore[arg-type] # no row is read
    following.start(None)  # type: ignore[arg-type]
    with patch.object(following, "_take", interrupted), pytest.raises(StreamStopped) as found:
        following.take(None, 0)  # type: ignore[arg-type]
    told = "".join(traceback.format_exception(found.value))
    # what Spark has: its expression needs stack for each character between the two
    match = re.search(r"py4j.protocol.Py4JJavaError: An error occurred while calling((.|\r\n|\r|\n)*)Interrupted", told)
    assert match is not None and len(match[1]) < 100
    assert following.failure is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lag": -1}, "lag is a number of epochs from 0 on, not -1"),
        ({"lag": "x"}, "lag is a number of epochs from 0 on, not 'x'"),
        ({"trigger": {"availableNov": True}}, "trigger is what Spark's DataStreamWriter.trigger takes"),
        ({"trigger": "now"}, "trigger is what Spark's DataStreamWriter.trigger takes.*not 'now'"),
        ({"trigger": {"processingTime": "soon"}}, "trigger is what .*'soon' to interval"),
    ],
)
def test_bad_options_are_refused_before_the_stream_starts(files: Files, options: dict[str, Any], message: str) -> None:
    table = tk.Engine(autocommit=False).create_table("t", {"k": tk.Int, "v": tk.String})
    with pytest.raises(IncorrectError, match=message):
        table.follow(files.stream(), **options)


def test_listener_that_raises_is_named_and_its_epoch_counts(files: Files, tmp_path: Path) -> None:
    files.add([(1, "a")])
    with tk.Engine(storage=tmp_path / "store", autocommit=False) as engine:
        table = engine.create_table("t", {"k": tk.Int, "v": tk.String})
        view = engine.install("all", table)

        def fail(_: EpochProgress) -> None:
            raise ValueError("mine")

        with pytest.raises(FaultError, match="micro-batch 0 counts, but on_progress raised ValueError: mine"):
            table.follow(files.stream(), trigger=NOW, on_progress=fail).await_termination(PATIENCE)
        assert table.follow(files.stream(), trigger=NOW).await_termination(PATIENCE)
        assert view.rows() == [(1, "a")]


def test_damaged_checkpoint_and_streams_that_cannot_start_are_named(files: Files, tmp_path: Path) -> None:
    files.add([(1, "a")])
    with tk.Engine(storage=tmp_path / "store", autocommit=False) as engine:
        table = engine.create_table("t", {"k": tk.Int, "v": tk.String})
        counts = engine.create_table("n", {"k": tk.Int, "n": tk.Int})
        assert table.follow(files.stream(), trigger=NOW).await_termination(PATIENCE)
        (tmp_path / "store" / "checkpoints" / "t" / "metadata").write_text("garbage")
        with pytest.raises(FaultError, match=r"table 't': the checkpoint .*checkpoints/t cannot be read: .*Checksum"):
            table.follow(files.stream(), trigger=NOW)
        with pytest.raises(FaultError, match=r"table 'n': the stream cannot start: \[STREAMING_OUTPUT_MODE"):
            counts.follow(files.stream().groupBy("k").agg(F.count("*").alias("n")), trigger=NOW)


def test_closed_input_takes_nothing(spark: SparkSession, files: Files) -> None:
    engine = tk.Engine(autocommit=False)
    table = engine.create_table("t", {"k": tk.Int, "v": tk.String})
    table.finish()
    with pytest.raises(ConflictError, match="cannot take rows from Spark: table 't' is closed"):
        table.load(files.table())
    engine.close()
    with pytest.raises(ConflictError, match="closed"):
        table.follow(files.stream())


def test_rows_that_do_not_fit_are_kept_in_the_same_epoch(spark: SparkSession, tmp_path: Path) -> None:
    files = Files(spark, tmp_path / "files", "k int, v string, op string")
    declared: dict[str, Any] = {"mode": "upsert", "primary_key": "k"}
    for run in range(2):
        files.add([(1, f"a{run}", "c"), (None, "b", "c"), (2, "c", "c"), (3, "d", "what")])
        files.add([(run + 5, "e", "c")])
        with tk.Engine(storage=tmp_path / "store") as engine:
            table = engine.create_table("t", {"k": int, "v": str}, **declared)
            view = engine.create_view("all", table)
            following = table.follow(files.stream(), operation="op", trigger=NOW, bad_rows="keep")
            following.await_termination()
            assert (following.epochs, following.rows, following.rejected) == (2, 3, 2)
            assert sorted(view.rows()) == [(1, f"a{run}"), (2, "c"), *((5 + n, "e") for n in range(run + 1))]
            bad = engine.sql("SELECT batch, row, reason FROM t_bad_rows ORDER BY batch, row").rows()
            assert [batch for batch, _, _ in bad] == [0, 0, 2, 2][: 2 * run + 2]
            assert bad[0][1] == '{"k": 3, "v": "d", "op": "what"}' and "'what'" in bad[0][2]
            assert bad[1][1] == '{"k": null, "v": "b", "op": "c"}' and "NULL" in bad[1][2]


def test_stream_stops_beyond_the_limit_of_bad_rows(spark: SparkSession, tmp_path: Path) -> None:
    files = Files(spark, tmp_path / "files", "k int, v string")
    for number in range(3):
        files.add([(number, "x"), (None, "y")])
    engine = tk.Engine()
    table = engine.create_table("t", {"k": int, "v": str}, mode="upsert", primary_key="k")
    view = engine.create_view("all", table)
    following = table.follow(files.stream(), trigger=NOW, bad_rows="keep", max_bad_rows=1)
    with pytest.raises(IncorrectError, match='NULL.*in the row {"k": null, "v": "y"}.*micro-batch 1'):
        following.await_termination()
    assert view.rows() == [(0, "x")]
    assert engine.sql("SELECT count(*) FROM t_bad_rows").rows() == [(1,)]


@pytest.mark.parametrize("option", [{"bad_rows": "skip"}, {"max_bad_rows": -1}])
def test_wrong_policy_for_bad_rows_is_refused(files: Files, option: dict[str, Any]) -> None:
    table = tk.Engine().create_table("t", {"k": int, "v": str})
    with pytest.raises(IncorrectError, match="bad_rows"):
        table.follow(files.stream(), trigger=NOW, **option)
