"""Change feeds with both images of an update: the old one leaves its key, whatever key the new one has."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import tektite as tk
from tektite.errors import IncorrectError
from tests.support.nightly import few_of
from tests.support.spark_files import NOW, Files

COLUMNS = "k int, v string, _change_type string, _commit_version long"
Row = tuple[Any, ...]


def declare(engine: tk.Engine, semantics: str = "upsert") -> tk.Table:
    key = ["k"] if semantics == "upsert" else []
    return engine.create_table("t", {"k": tk.Int, "v": tk.String}, mode=semantics, primary_key=key)


def feed(choose: random.Random, held: dict[int, str], versions: range, by_key: bool = True) -> list[Row]:
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
        if not by_key:
            continue
        # A key that one row leaves by deletion and another one takes in the same commit has no order that a feed tells.
        taken = {row[0] for row in told if row[3] == version and row[2] in ("update_postimage", "insert")}
        told = [row for row in told if not (row[2:] == ("delete", version) and row[0] in taken)]
    return told


@pytest.mark.parametrize("stored", [False, True], ids=["driver", "tasks"])
def test_rows_that_move_to_other_keys_leave_the_old_ones(spark: SparkSession, tmp_path: Path, stored: bool) -> None:
    choose = random.Random(7)
    held: dict[int, str] = {}
    options: dict[str, Any] = {"storage": tmp_path / "store", "workers": 3} if stored else {}
    with tk.Engine(spark=spark, **options, autocommit=False) as engine:
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
    with tk.Engine(spark=spark, storage=tmp_path / "store", workers=2, autocommit=False) as engine:
        table = declare(engine)
        view = engine.install("all", table)
        table.follow(files.stream(), operation="_change_type", trigger=NOW, extra="ignore").await_termination()
        assert sorted(view.rows()) == [(2, "b"), (9, "a")]


# What an input holds under key 1, the rows of a feed without an order, and what it holds then; None where nobody can tell.
PRE, POST = "update_preimage", "update_postimage"
FEEDS: dict[str, tuple[list[Row], list[Row], list[Row] | None]] = {
    "an update that changes nothing": ([(1, "a")], [(1, "a", PRE), (1, "a", POST)], [(1, "a")]),
    "two updates": ([(1, "a")], [(1, "b", PRE), (1, "c", POST), (1, "a", PRE), (1, "b", POST)], [(1, "c")]),
    "there and back": ([(1, "a")], [(1, "b", PRE), (1, "a", POST), (1, "a", PRE), (1, "b", POST)], [(1, "a")]),
    "inserted and updated": ([], [(1, "a", PRE), (1, "b", POST), (1, "a", "insert")], [(1, "b")]),
    "inserted and moved": ([], [(1, "a", PRE), (9, "a", POST), (1, "a", "insert")], [(9, "a")]),
    "moved, and another one inserted": ([(1, "a")], [(1, "a", PRE), (9, "a", POST), (1, "a", "insert")], [(1, "a"), (9, "a")]),
    "updated and deleted": ([(1, "a")], [(1, "b", "delete"), (1, "a", PRE), (1, "b", POST)], []),
    "deleted, inserted and updated": (
        [(1, "a")], [(1, "b", PRE), (1, "c", POST), (1, "a", "delete"), (1, "b", "insert")], [(1, "c")],
    ),
    "deleted twice": ([(1, "a")], [(1, "a", "delete"), (1, None, "delete")], []),
    "inserted twice": ([(1, "a")], [(1, "a", "insert"), (1, "a", "insert")], [(1, "a")]),
    "an update that changes nothing of what was never told": ([], [(1, "a", PRE), (1, "a", POST)], None),
    "updates of something else": ([(1, "x")], [(1, "a", PRE), (1, "b", POST), (1, "b", PRE), (1, "c", POST)], None),
    "deleted by its key, or inserted": ([(1, "a")], [(1, None, "delete"), (1, "b", "insert")], None),
    "inserted and deleted, or the reverse": ([], [(1, "a", "insert"), (1, "a", "delete")], None),
}  # fmt: skip


@pytest.mark.parametrize("stored", [False, True], ids=["driver", "tasks"])
@pytest.mark.parametrize("case", FEEDS)
def test_feed_without_an_order_is_counted_where_that_is_certain(
    spark: SparkSession, tmp_path: Path, case: str, stored: bool
) -> None:
    before, told, after = FEEDS[case]
    options: dict[str, Any] = {"storage": tmp_path / "store", "workers": 2} if stored else {}
    with tk.Engine(spark=spark, **options, autocommit=False) as engine:
        table = declare(engine)
        view = engine.install("all", table)
        table.insert(before)
        engine.advance()
        frame = spark.createDataFrame(told, "k int, v string, op string")
        if after is None:
            with pytest.raises(
                IncorrectError, match=r"several rows for k = 1 that say .* order='\.\.\.', such as _commit"
            ):
                table.load(frame, operation="op")
            engine.advance()
            assert view.rows() == before
        else:
            table.load(frame, operation="op")
            assert sorted(view.rows()) == after


@pytest.mark.parametrize(
    ("stored", "semantics"),
    few_of([(stored, semantics) for stored in (False, True) for semantics in ("set", "upsert")], (True, "upsert")),
)
def test_feed_without_an_order_never_comes_to_something_else(
    spark: SparkSession, tmp_path: Path, semantics: str, stored: bool
) -> None:
    """Several commits at once: what is taken without their order is what they left, and what is not is named."""
    choose = random.Random(f"{semantics} {stored}")
    held: dict[int, str] = {}
    options: dict[str, Any] = {"storage": tmp_path / "store", "workers": 3} if stored else {}
    refused = 0
    with tk.Engine(spark=spark, **options, autocommit=False) as engine:
        table = declare(engine, semantics)
        view = engine.install("all", table)
        for step in range(12):
            versions = range(5 * step, 5 * step + choose.choice([1, 2, 3]))
            told = feed(choose, held, versions, semantics == "upsert")
            choose.shuffle(told)
            frame = spark.createDataFrame(told, COLUMNS).repartition(3)
            try:
                table.load(frame.drop("_commit_version"), operation="_change_type")
            except IncorrectError as error:
                assert "nothing says which comes last" in str(error)
                refused += 1
                table.load(frame, operation="_change_type", order="_commit_version")
            assert view.multiplicities() == dict.fromkeys(held.items(), 1)
    assert 0 < refused < 9


def test_followed_feed_without_an_order_is_counted(spark: SparkSession, tmp_path: Path) -> None:
    files = Files(spark, tmp_path / "files", "k int, v string, op string")
    files.add([(1, "a", "insert"), (2, "b", "insert"), (3, "x", "insert"), (3, "x", PRE), (4, "x", POST)])
    files.add([(2, "b", PRE), (2, "b", POST), (1, "b", PRE), (1, "c", POST), (1, "a", PRE), (1, "b", POST)])
    files.add([(2, "b", "delete"), (2, "b", "insert")])
    with tk.Engine(spark=spark, storage=tmp_path / "store", workers=2, autocommit=False) as engine:
        table = declare(engine)
        view = engine.install("all", table)
        following = table.follow(files.stream(), operation="op", trigger=NOW)
        with pytest.raises(
            IncorrectError, match="several rows for k = 2 .*; found in micro-batch 2, of which nothing counts"
        ):
            following.await_termination()
        assert following.batch == 1
        assert sorted(view.rows()) == [(1, "c"), (2, "b"), (4, "x")]


def test_counted_rows_of_a_frequent_key_all_travel(spark: SparkSession, tmp_path: Path) -> None:
    """A key that is updated all the time: none of its rows may be left out on the way, however often an equal one came."""
    steps = [f"v{number % 7}" for number in range(3001)]
    told = [row for old, new in pairwise(steps) for row in ((1, old, PRE), (1, new, POST))]
    random.Random(3).shuffle(told)
    with tk.Engine(spark=spark, storage=tmp_path / "store", workers=3, autocommit=False) as engine:
        table = declare(engine)
        table.insert([(1, steps[0])])
        engine.advance()
        table.load(spark.createDataFrame(told, "k int, v string, op string").repartition(4), operation="op")
        assert engine.install("all", table).rows() == [(1, steps[-1])]
