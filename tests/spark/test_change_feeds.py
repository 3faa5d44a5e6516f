"""Change feeds with both images of an update: the old one leaves its key, whatever key the new one has."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from spark_files import NOW, Files

import tektite as tk
from tektite.errors import IncorrectError

COLUMNS = "k int, v string, _change_type string, _commit_version long"
Row = tuple[Any, ...]


def declare(engine: tk.Engine, semantics: str = "upsert") -> tk.Input:
    key = ["k"] if semantics == "upsert" else []
    return engine.input("t", key=key, semantics=semantics, k=tk.Int, v=tk.String)


def feed(choose: random.Random, held: dict[int, str], versions: range) -> list[Row]:
    """Commits that insert, delete, update rows and move them to other keys, as Delta tells them; `held` is what they leave."""
    told: list[Row] = []
    for version in versions:
        before = dict(held)
        moved = choose.sample(sorted(before), min(3, len(before)))
        for k in moved:
            del held[k]
        for k in moved:
            kind = choose.choice(["update", "move", "same", "delete"])
            to = k if kind in ("update", "same") else choose.randrange(12)
            if kind == "delete" or to in held or (to in before and to not in moved):
                told.append((k, before[k], "delete", version))
                continue
            held[to] = before[k] if kind == "same" else f"v{version}"
            told += [(k, before[k], "update_preimage", version), (to, held[to], "update_postimage", version)]
        deleted = {row[0] for row in told if row[2:] == ("delete", version)}
        for k in set(range(12)) - held.keys() - before.keys() - deleted:
            if choose.random() < 0.3:
                held[k] = f"v{version}"
                told.append((k, held[k], "insert", version))
        # A key that one row leaves by deletion and another one takes in the same commit has no order that a feed tells.
        taken = {row[0] for row in told if row[3] == version and row[2] in ("update_postimage", "insert")}
        told = [row for row in told if not (row[2:] == ("delete", version) and row[0] in taken)]
    return told


@pytest.mark.parametrize("stored", [False, True], ids=["driver", "tasks"])
def test_rows_that_move_to_other_keys_leave_the_old_ones(spark: SparkSession, tmp_path: Path, stored: bool) -> None:
    choose = random.Random(7)
    held: dict[int, str] = {}
    options: dict[str, Any] = {"storage": tmp_path / "store", "shards": 3} if stored else {}
    with tk.Engine(spark=spark, **options) as engine:
        table = declare(engine)
        view = engine.install("all", table)
        for step in range(4):
            told = feed(choose, held, range(5 * step, 5 * step + 5))
            choose.shuffle(told)
            frame = spark.createDataFrame(told, COLUMNS).repartition(3)
            table.load(frame, operation="_change_type", order="_commit_version")
            assert view.multiplicities() == dict.fromkeys(held.items(), 1)


def test_followed_row_that_moves_to_another_key_leaves_the_old_one(spark: SparkSession, tmp_path: Path) -> None:
    files = Files(spark, tmp_path / "files", COLUMNS)
    files.add([(1, "a", "insert", 0), (2, "b", "insert", 0)])
    files.add([(1, "a", "update_preimage", 1), (9, "a", "update_postimage", 1)])
    with tk.Engine(spark=spark, storage=tmp_path / "store", shards=2) as engine:
        table = declare(engine)
        view = engine.install("all", table)
        table.follow(files.stream(), operation="_change_type", trigger=NOW, extra="ignore").await_termination()
        assert sorted(view.rows()) == [(2, "b"), (9, "a")]


@pytest.mark.parametrize("stored", [False, True], ids=["driver", "tasks"])
@pytest.mark.parametrize("semantics", ["set", "upsert"])
def test_row_put_and_found_before_an_update_needs_an_order(
    spark: SparkSession, tmp_path: Path, semantics: str, stored: bool
) -> None:
    """Either the row came and was moved, or an update left it as it was: an order tells."""
    options: dict[str, Any] = {"storage": tmp_path / "store", "shards": 2} if stored else {}
    with tk.Engine(spark=spark, **options) as engine:
        table = declare(engine, semantics)
        view = engine.install("all", table)
        moved = [(1, "a", "insert", 1), (1, "a", "update_preimage", 2), (9, "a", "update_postimage", 2)]
        with pytest.raises(
            IncorrectError,
            match="found several rows for k.* that say different things, and nothing says which comes last",
        ):
            table.load(spark.createDataFrame(moved, COLUMNS).drop("_commit_version"), operation="_change_type")
        table.load(spark.createDataFrame(moved, COLUMNS), operation="_change_type", order="_commit_version")
        assert view.rows() == [(9, "a")]
        same = [(9, "a", "update_preimage", 3), (9, "a", "update_postimage", 3)]
        table.load(spark.createDataFrame(same, COLUMNS), operation="_change_type", order="_commit_version")
        assert view.rows() == [(9, "a")]
