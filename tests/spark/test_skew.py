"""Loads in which one key, or one part of a key, holds most rows: the work is shared, and the contents are those that rows say."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import tektite as tk
from tektite.spark.bulk import Target, sender, write
from tektite.spark.feed import Feed
from tektite.storage.store import PosixStore

ROWS, SHARDS = 20_000, 4
HOT = "CASE WHEN id % 10 < 9 THEN 7 ELSE id END AS k"
"""A key that nine rows of ten have."""

SCHEMA = tk.Schema(k=tk.Int, n=tk.Int, v=tk.String)


def skewed(spark: SparkSession, *more: str) -> DataFrame:
    return spark.range(0, ROWS, 1, 4).selectExpr(HOT, "id AS n", "concat('v', id % 50) AS v", *more)


@pytest.mark.parametrize(
    ("feed", "more"),
    [
        (Feed("t", SCHEMA, "upsert", (0, 1)), ()),
        (Feed("t", SCHEMA, "set"), ()),
        (Feed("t", SCHEMA, diff="d"), ("2 AS d",)),
        (Feed("t", SCHEMA, operation="op"), ("'insert' AS op",)),
    ],
    ids=["upsert", "set", "diffs", "operations"],
)
def test_part_of_a_key_that_most_rows_share_does_not_hold_up_one_task(
    spark: SparkSession, tmp_path: Path, feed: Feed, more: tuple[str, ...]
) -> None:
    target = Target(PosixStore(tmp_path), "t", (0, 1, 2), 1, SHARDS, 0, 0)
    found = write(feed, skewed(spark, *more), target)
    sizes = [sum(section.rows for section in info.sections if section.kind == "batch") for info in found.files]
    assert found.rows == sum(sizes) == ROWS
    assert max(sizes) < 0.4 * ROWS  # a shard of its own would have nine tenths


Declare = Callable[[tk.Engine], tk.Table]


@pytest.mark.parametrize(
    ("declare", "arguments"),
    [
        (lambda engine: engine.create_table("t", SCHEMA, mode="upsert", primary_key=["k", "n"], shard_by="k"), {}),
        (lambda engine: engine.create_table("t", SCHEMA, mode="set", order_by=["k"]), {}),
        (lambda engine: engine.create_table("t", SCHEMA, order_by=["k"]), {"diff": "d"}),
    ],
    ids=["upsert", "set", "diffs"],
)
def test_skewed_rows_are_there_once_and_can_change(
    spark: SparkSession, tmp_path: Path, declare: Declare, arguments: dict[str, str]
) -> None:
    frame = skewed(spark, "1 AS d") if arguments else skewed(spark).union(skewed(spark))
    expected = {tuple(row)[:3]: 1 for row in frame.collect()}
    with tk.Engine(spark=spark, storage=tmp_path / "store", workers=3, autocommit=False) as engine:
        table = declare(engine)
        assert table.load(frame, **arguments) == frame.count()  # type: ignore[arg-type]
        view = engine.install("all", table)
        assert view.multiplicities() == expected
        table.remove([(7, 0, "v0")])
        engine.advance()
        assert (7, 0, "v0") not in view.multiplicities()
    with tk.Engine(storage=tmp_path / "store", autocommit=False) as engine:
        del expected[7, 0, "v0"]
        assert engine.install("all", engine.table("t")).multiplicities() == expected


def sent_rows(feed: Feed, target: Target, table: pa.Table) -> int:
    """How many rows a sender passes on."""
    batches = sender(feed, target)(iter(table.to_batches()))
    return sum(row["sent"] or 0 for batch in batches for row in batch.to_pylist())


def test_of_one_key_that_changes_all_the_time_the_last_rows_travel_alone(spark: SparkSession, tmp_path: Path) -> None:
    feed = Feed("t", tk.Schema(k=tk.Int, v=tk.Int), "upsert", (0,), order="n")
    frame = spark.range(0, ROWS, 1, 4).selectExpr(HOT, "3 * id AS v", "id AS n")
    assert sent_rows(feed, Target(PosixStore(tmp_path), "t", (0, 1), 1, SHARDS, 0, 0), frame.toArrow()) < 0.2 * ROWS
    with tk.Engine(spark=spark, storage=tmp_path / "store", workers=SHARDS, autocommit=False) as engine:
        table = engine.create_table("t", {"k": tk.Int, "v": tk.Int}, mode="upsert", primary_key=["k"])
        assert table.load(frame, order="n") == ROWS
        last = {row.k: row.v for row in frame.groupBy("k").agg(F.max("v").alias("v")).collect()}
        assert dict(engine.install("all", table).rows()) == last


def test_key_that_is_removed_last_is_gone_however_often_it_came(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.range(0, ROWS, 1, 4).selectExpr("7 AS k", "id AS n", f"if(id = {ROWS - 1}, 'd', 'u') AS op")
    with tk.Engine(spark=spark, storage=tmp_path / "store", workers=2, autocommit=False) as engine:
        table = engine.create_table("t", {"k": tk.Int}, mode="upsert", primary_key=["k"])
        assert table.load(frame, order="n", operation="op", extra="ignore") == ROWS
        assert engine.install("all", table).rows() == []


def test_rows_of_a_frequent_key_that_contradict_each_other_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.range(0, ROWS, 1, 4).selectExpr("7 AS k", "id % 2 AS v")
    with tk.Engine(spark=spark, storage=tmp_path / "store", workers=2, autocommit=False) as engine:
        table = engine.create_table("t", {"k": tk.Int, "v": tk.Int}, mode="upsert", primary_key=["k"])
        with pytest.raises(tk.IncorrectError, match="several rows for k = 7 that say different things"):
            table.load(frame)
        assert table.load(frame.where("v = 1")) == ROWS // 2
        assert engine.install("all", table).rows() == [(7, 1)]


def test_contradiction_of_keys_that_are_texts_is_named_wherever_their_texts_are(
    spark: SparkSession, tmp_path: Path
) -> None:
    with tk.Engine(spark=spark, storage=tmp_path / "store", workers=3, autocommit=False) as engine:
        table = engine.create_table("t", {"k": tk.String, "v": tk.Int}, mode="upsert", primary_key=["k"])
        for key in ("a", "b", "c", "d"):
            frame = spark.createDataFrame([(key, 1), (key, 2)], "k string, v int")
            with pytest.raises(tk.IncorrectError, match=f"several rows for k = '{key}' that say"):
                table.load(frame)
        assert engine.next_epoch == 0
