"""Loads into sets and upserts that hold rows already: tasks look at what is stored, and no row passes the driver."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from pyspark.sql import DataFrame, SparkSession

import tektite as tk
from tektite.spark import bulk, encoded
from tektite.spark import load as loading
from tektite.spark.bulk import Target, write
from tektite.spark.feed import Feed
from tektite.storage.store import PosixStore
from tests.support.nightly import few_of
from tests.support.row_changes import row_changes

Row = tuple[Any, ...]


@pytest.fixture(autouse=True)
def no_row_passes_the_driver() -> Any:
    """Whoever collects encoded rows in the driver of an engine that has a storage is found out."""
    real = encoded.collect

    def collect(feed: Feed, frame: DataFrame, dictionary: Any, at_once: bool = False) -> Any:
        assert feed.name == "twin", "rows were collected in the driver"
        return real(feed, frame, dictionary, at_once)

    with patch.object(loading, "collect", collect):
        yield


class Book:
    """What a set or an upsert holds, as a dict."""

    def __init__(self, keys: int) -> None:
        self.keys = keys
        self.rows: dict[Row, Row] = {}

    def do(self, operation: str, row: Row) -> None:
        row = (
            tuple(0.0 if value == 0 and isinstance(value, float) else value for value in row[: self.keys])
            + row[self.keys :]
        )
        if operation == "d":
            self.rows.pop(row[: self.keys], None)
        else:
            self.rows[row[: self.keys]] = row


@pytest.mark.parametrize(
    ("semantics", "shards"), few_of([("set", 1), ("set", 3), ("upsert", 1), ("upsert", 3)], ("set", 1), ("upsert", 3))
)
def test_loads_among_other_epochs_hold_what_a_dict_holds(
    spark: SparkSession, tmp_path: Path, semantics: str, shards: int
) -> None:
    """Several epochs of loads and writes, with removals, in this engine and one in memory, restarted in the middle."""
    choose = random.Random(f"{semantics} {shards}")
    book = Book(2 if semantics == "upsert" else 3)

    def row() -> Row:
        # a key that most rows have, floats that are equal though their bits are not, texts that come again
        key = "hot" if choose.random() < 0.6 else f"k{choose.randrange(8)}"
        return key, choose.choice([0.0, -0.0, *map(float, range(20))]), choose.choice([None, *range(4)])

    def changes(number: int) -> list[Row]:
        return [(*row(), choose.choice("uuud" if semantics == "upsert" else "cccd"), n) for n in range(number)]

    def declare(engine: tk.Engine, name: str) -> tk.Table:
        key = "primary_key" if semantics == "upsert" else "order_by"
        options: dict[str, Any] = {key: ["k", "f"], "shard_by": "k", "mode": semantics}
        return engine.create_table(name, {"k": tk.String, "f": tk.Float, "v": tk.Int}, **options)

    memory = tk.Engine(autocommit=False)
    twin = declare(memory, "twin")
    beside = memory.install("all", twin)
    for _run in range(2):  # of the program, on one storage
        with tk.Engine(spark=spark, storage=tmp_path / "store", workers=shards, autocommit=False) as engine:
            table = declare(engine, "t")
            view = engine.install("all", table)
            for step in range(3):
                now = changes(150)
                for *values, operation, _ in now:
                    book.do(operation, tuple(values))
                choose.shuffle(now)
                frame = spark.createDataFrame(now, "k string, f double, v int, op string, n int").repartition(3)
                table.load(frame, operation="op", order="n")
                twin.load(frame, operation="op", order="n")
                assert view.multiplicities() == beside.multiplicities() == dict.fromkeys(book.rows.values(), 1)
                if step == 1:
                    more = [row() for _ in range(20)]
                    gone = choose.sample(sorted(book.rows.values(), key=repr), 5)
                    for source in (table, twin):
                        source.insert(more)
                        source.remove(gone)
                        source.engine.advance()
                    for values in more:
                        book.do("c", values)
                    for values in gone:
                        book.do("d", values)
    with tk.Engine(storage=tmp_path / "store", autocommit=False) as engine:
        assert engine.install("all", engine.table("t")).multiplicities() == dict.fromkeys(book.rows.values(), 1)


def test_only_what_differs_is_written(spark: SparkSession, tmp_path: Path) -> None:
    with tk.Engine(spark=spark, storage=tmp_path / "store", workers=2, autocommit=False) as engine:
        table = engine.create_table("t", {"k": tk.Int, "v": tk.Int}, mode="upsert", primary_key=["k"])
        changes = row_changes(engine.install("all", table))
        frame = spark.range(0, 3000, 1, 3).selectExpr("id AS k", "id % 7 AS v")
        assert table.load(frame) == 3000
        assert len(list(changes)) == 3000
        assert table.load(frame) == 3000
        assert list(changes) == []
        assert table.load(frame.selectExpr("k", "if(k = 5, 9, v) AS v")) == 3000
        assert sorted((row, diff) for row, _, diff in changes) == [((5, 5), -1), ((5, 9), 1)]


def test_unique_key_of_a_set_may_pass_from_one_row_to_another(spark: SparkSession, tmp_path: Path) -> None:
    with tk.Engine(spark=spark, storage=tmp_path / "store", workers=4, autocommit=False) as engine:
        columns = {"k": tk.Int, "j": tk.Int, "v": tk.Int}
        table = engine.create_table("t", columns, mode="set", primary_key=["k", "j"], shard_by="k")
        view = engine.install("all", table)
        rows = [(0, j, 1) for j in range(50)]
        table.load(spark.createDataFrame(rows, "k int, j int, v int"))
        moved = [(0, j, 1, "d") for j in range(50)] + [(0, j, 2, "c") for j in range(50)]
        table.load(spark.createDataFrame(moved, "k int, j int, v int, op string"), operation="op")
        assert sorted(view.rows()) == [(0, j, 2) for j in range(50)]
        with pytest.raises(tk.ConflictError, match="two rows with the key k = 0, j = 3"):
            table.load(spark.createDataFrame([(0, 3, 7)], "k int, j int, v int"))
        assert len(view.rows()) == 50


def test_load_in_the_middle_of_which_the_input_changes_looks_again(spark: SparkSession, tmp_path: Path) -> None:
    with tk.Engine(spark=spark, storage=tmp_path / "store", workers=2, autocommit=False) as engine:
        table = engine.create_table("t", {"k": tk.Int, "v": tk.Int}, mode="upsert", primary_key=["k"])
        view = engine.install("all", table)
        table.insert([(1, 10), (2, 20)])
        engine.advance()
        runs = []

        def written_to(feed: Feed, frame: DataFrame, target: Target) -> bulk.Loaded:
            found = write(feed, frame, target)
            if not runs:
                table.insert([(1, 11), (3, 30)])
                engine.advance()
            runs.append(found)
            return found

        with patch.object(loading, "write", written_to):
            assert table.load(spark.createDataFrame([(1, 12)], "k int, v int")) == 1
        assert len(runs) == 2
        assert sorted(view.rows()) == [(1, 12), (2, 20), (3, 30)]


def test_input_that_never_rests_is_not_loaded(spark: SparkSession, tmp_path: Path) -> None:
    with tk.Engine(spark=spark, storage=tmp_path / "store", workers=2, autocommit=False) as engine:
        table = engine.create_table("t", {"k": tk.Int, "v": tk.Int}, mode="upsert", primary_key=["k"])
        view = engine.install("all", table)
        runs = []

        def written_to(feed: Feed, frame: DataFrame, target: Target) -> bulk.Loaded:
            runs.append(target)
            table.insert([(1, len(runs))])
            engine.advance()
            return write(feed, frame, target)

        with (
            patch.object(loading, "write", written_to),
            pytest.raises(tk.ConflictError, match="written to meanwhile: load it again"),
        ):
            table.load(spark.createDataFrame([(1, 12)], "k int, v int"))
        assert view.rows() == [(1, len(runs))]


@pytest.mark.parametrize("semantics", ["bag", "upsert"])
def test_updates_that_lie_ahead_wait_for_their_epoch(spark: SparkSession, tmp_path: Path, semantics: str) -> None:
    with tk.Engine(spark=spark, storage=tmp_path / "store", workers=2, autocommit=False) as engine:
        key = {"primary_key" if semantics == "upsert" else "order_by": "k"}
        table = engine.create_table("t", {"k": tk.Int, "v": tk.Int}, mode=semantics, **key)
        view = engine.install("all", table)
        table.insert([(1, 1)])
        table.insert([(2, 2)], time=1)
        table.insert([(3, 3)], time=9)
        engine.advance()
        assert table.load(spark.createDataFrame([(4, 4)], "k int, v int")) == 1
        assert sorted(view.rows()) == [(1, 1), (2, 2), (4, 4)]
        assert (engine.next_epoch, table.pending) == (3, 1)
        table.advance(10)
        assert sorted(view.rows()) == [(1, 1), (2, 2), (3, 3), (4, 4)]


def test_task_killed_while_it_writes_what_differs_leaves_one_file_a_shard(spark: SparkSession, tmp_path: Path) -> None:
    def killing() -> PosixStore:
        class Killing(PosixStore):
            def rename(self, temporary: Path, target: Path) -> None:
                import os
                import signal

                if "-load-" in target.name and not os.path.exists(f"{self.url}/killed"):
                    open(f"{self.url}/killed", "x").close()
                    os.kill(os.getpid(), signal.SIGKILL)
                super().rename(temporary, target)

        return Killing(tmp_path / "store")

    store = killing()
    with tk.Engine(spark=spark, storage=tk.Storage(store), workers=2, autocommit=False) as engine:
        table = engine.create_table("t", {"k": tk.Int, "v": tk.Int}, mode="upsert", primary_key=["k"])
        view = engine.install("all", table)
        table.insert([(k, 0) for k in range(100)])
        engine.advance()
        engine.sync()
        assert table.load(spark.range(50, 150, 1, 2).selectExpr("id AS k", "1 AS v")) == 100
        assert (tmp_path / "store" / "killed").exists()
        expected = {(k, 0 if k < 50 else 1): 1 for k in range(150)}
        assert view.multiplicities() == expected
    with tk.Engine(storage=tmp_path / "store", autocommit=False) as engine:
        assert engine.install("all", engine.table("t")).multiplicities() == expected


def test_files_that_a_load_reads_stay_until_it_has_ended(spark: SparkSession, tmp_path: Path) -> None:
    where = tk.Storage(tmp_path / "store", retention=0)
    with tk.Engine(spark=spark, storage=where, workers=1, autocommit=False) as engine:
        table = engine.create_table("t", {"k": tk.Int, "v": tk.Int}, mode="upsert", primary_key=["k"])
        view = engine.install("all", table)
        runs: list[Target] = []

        def change(epochs: int) -> None:
            for epoch in range(epochs):
                table.insert([(k, epoch) for k in range(5)])
                engine.advance()
                engine.sync()

        def merged_meanwhile(feed: Feed, frame: DataFrame, target: Target) -> bulk.Loaded:
            runs.append(target)
            if len(runs) == 1:
                change(300)  # enough for merges, checkpoints of the manifest and clean-ups
            return write(feed, frame, target)

        change(5)
        with patch.object(loading, "write", merged_meanwhile):
            assert table.load(spark.createDataFrame([(1, -1)], "k int, v int")) == 1
        assert view.multiplicities() == {(k, -1 if k == 1 else 299): 1 for k in range(5)}
        assert len(runs) == 2
        change(300)
        there = {path.name for path in (tmp_path / "store" / "batches").iterdir()}
        assert not there & {place.file for run in runs for places in run.held for place in places}


def test_zeros_of_both_signs_are_one_key(spark: SparkSession, tmp_path: Path) -> None:
    """In a load, in the rows that a load finds, and in what a program writes: whoever comes last replaces the others."""
    with tk.Engine(spark=spark, storage=tmp_path / "store", workers=4, autocommit=False) as engine:
        prices = engine.create_table("t", {"f": tk.Float, "v": tk.Int}, mode="upsert", primary_key=["f"])
        told_apart = engine.create_table("s", {"f": tk.Float, "v": tk.Int}, mode="set")
        view, pairs = engine.install("all", prices), engine.install("pairs", told_apart)
        with pytest.raises(tk.IncorrectError, match="several rows for f = 0.0 that say different things"):
            prices.load(spark.createDataFrame([(0.0, 1), (-0.0, 2)], "f double, v int"))
        prices.load(spark.createDataFrame([(0.0, 1, 1), (-0.0, 2, 2)], "f double, v int, n int"), order="n")
        assert view.rows() == [(0.0, 2)]
        prices.insert([(-0.0, 3)])
        engine.advance()
        prices.load(spark.createDataFrame([(-0.0, 4)], "f double, v int"))
        assert view.rows() == [(0.0, 4)]
        told_apart.load(spark.createDataFrame([(0.0, 1), (-0.0, 1)], "f double, v int"))
        told_apart.load(spark.createDataFrame([(-0.0, 1)], "f double, v int"))
        assert pairs.multiplicities() == {(0.0, 1): 1}
        unique = engine.create_table("u", {"f": tk.Float}, primary_key=["f"])
        with pytest.raises(tk.ConflictError, match="two rows with the key f = 0.0"):
            unique.load(spark.createDataFrame([(0.0,), (-0.0,)], "f double"))
