"""Bad values are refused before anything is written: a refused load or micro-batch leaves the storage as it was, file by file."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from pyspark.sql import DataFrame, SparkSession

import tektite as tk
from tektite.engine.input_core import InputCore
from tektite.storage import batchfile
from tektite.storage.store import PosixStore
from tests.support.nightly import few_of
from tests.support.patience import PATIENCE
from tests.support.spark_files import NOW, Files

SCHEMA = tk.Schema(k=tk.String, n=tk.Int, v=tk.Int)
ROWS = 4000

# how an input is declared, and columns beside its own that loads into it have
KINDS: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
    "upsert": ({"mode": "upsert", "primary_key": ["k", "n"]}, {}),
    "upsert that is sharded by less": ({"mode": "upsert", "primary_key": ["k", "n"], "shard_by": "k"}, {}),
    "unique": ({"primary_key": ["k", "n"]}, {}),
    "unique that is sharded by less": ({"primary_key": ["k", "n"], "shard_by": "k"}, {}),
    "unique with diffs": ({"primary_key": ["k", "n"]}, {"diff": "1"}),
    "unique set": ({"mode": "set", "primary_key": ["k", "n"]}, {}),
    "required in a set": ({"mode": "set", "required": ["k"]}, {}),
    "required in a bag": ({"required": ["k"]}, {}),
    "append": ({"mode": "append", "required": ["k"]}, {"operation": "'insert'"}),
}


def frame_of(spark: SparkSession, k: str, v: str = "id", start: int = 0, **beside: str) -> DataFrame:
    """Rows in five partitions, of which most have one value of k."""
    more = [f"{value} AS {name}" for name, value in beside.items()]
    return spark.range(start, start + ROWS, 1, 5).selectExpr(f"{k} AS k", "id AS n", f"{v} AS v", *more)


HOT = "if(id % 10 < 8, 'hot', concat('k', id % 100))"
LAST = ROWS + ROWS - 3
NULL_KEY = f"if(id = {LAST}, CAST(NULL AS string), {HOT})"
NO_TEXT = f"if(id = {LAST}, CAST(X'FF41' AS string), {HOT})"
RESERVED = f"if(id = {LAST}, CAST(-9223372036854775808 AS bigint), id)"


def files_of(folder: Path) -> dict[str, int]:
    """Every file of a storage and its length, but for the checkpoints that Spark keeps there."""
    return {
        str(path.relative_to(folder)): path.stat().st_size
        for path in folder.rglob("*")
        if path.is_file() and "checkpoints" not in path.parts
    }


@pytest.fixture
def nothing_is_written(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A storage whose batch files cannot be deleted: what is not there at the end was never written."""

    class Keeping(PosixStore):
        def delete(self, names: Any) -> None:
            super().delete([name for name in names if not name.startswith(batchfile.FOLDER)])

    return Keeping


@pytest.mark.parametrize("kind", few_of(KINDS, "upsert that is sharded by less", "unique with diffs", "append"))
def test_bad_value_in_the_last_partition_is_found_before_a_file_is_written(
    spark: SparkSession, tmp_path: Path, kind: str, nothing_is_written: Any
) -> None:
    options, beside = KINDS[kind]
    store = nothing_is_written(tmp_path / "store")
    with tk.Engine(spark=spark, storage=tk.Storage(store), workers=3, autocommit=False) as engine:
        table = engine.create_table("t", SCHEMA, **options)
        view = engine.install("all", table)
        columns = {name: name for name in beside}
        for held in (0, ROWS):
            engine.sync()
            before, epoch = files_of(tmp_path / "store"), engine.next_epoch
            cases = [
                (NULL_KEY, "id", r"column 'k' holds a NULL in row \d+ of a batch.*\(partition 4, batch 0\)"),
                (NO_TEXT, "id", "column 'k' has bytes that are not UTF-8 text"),
                (HOT, RESERVED, "column 'v'.* reserved for NULL"),
            ]
            for k, v, message in cases if held else cases[:1]:
                with pytest.raises(tk.IncorrectError, match=message):
                    table.load(frame_of(spark, k, v, ROWS, **beside), **columns)
                assert files_of(tmp_path / "store") == before
                assert (engine.next_epoch, len(view.rows())) == (epoch, held)
            if not held:
                assert table.load(frame_of(spark, HOT, **beside), **columns) == ROWS
        assert table.load(frame_of(spark, HOT, start=ROWS, **beside), **columns) == ROWS
        assert len(view.rows()) == 2 * ROWS


KEY = r"two rows with the key k = 'k7', n = 7 at"
CLASHES: dict[str, tuple[dict[str, Any], list[tuple[Any, ...]], str]] = {
    "repeats a stored key": ({"primary_key": ["k", "n"]}, [("k7", 7, 1)], KEY),
    "repeats a stored key, by operations": ({"primary_key": ["k", "n"]}, [("k7", 7, 1, "insert")], KEY),
    "repeats a stored key of a set": ({"mode": "set", "primary_key": ["k", "n"]}, [("k7", 7, 1)], KEY),
    "repeats a new key": ({"primary_key": ["n"]}, [("y", 200, 1), ("z", 200, 2)], "two rows with the key n = 200"),
    "repeats a row": ({"primary_key": ["k"], "shard_by": "k"}, [("y", 200, 1)] * 2, "two rows with the key k = 'y'"),
    "removes what is not there": ({"order_by": ["k"]}, [("k7", 8, 7, "delete")], r"row \('k7', 8, 7\) would be there a negative"),
    "contradicts itself": (
        {"mode": "upsert", "primary_key": ["k"]}, [("k7", 1, 1), ("k7", 2, 1)], "several rows for k = 'k7' that say different",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CLASHES)
def test_rows_that_clash_when_they_meet_leave_no_file(spark: SparkSession, tmp_path: Path, case: str) -> None:
    """One key alone clashes, so that other tasks have written when its own finds out. The driver looks at no row."""
    options, clash, message = CLASHES[case]
    told = len(clash[0]) == 4
    new = [(f"k{n}", n, n, *(("insert",) if told else ())) for n in range(100, 140)]
    schema = "k string, n int, v int" + (", op string" if told else "")
    with tk.Engine(spark=spark, storage=tmp_path / "store", workers=3, autocommit=False) as engine:
        table = engine.create_table("t", SCHEMA, **options)
        view = engine.install("all", table)
        assert table.load(spark.range(0, 50, 1, 3).selectExpr("concat('k', id) AS k", "id AS n", "id AS v")) == 50
        engine.sync()
        before = files_of(tmp_path / "store")
        with (
            patch.object(InputCore, "prepare", side_effect=AssertionError("the driver looked at rows")),
            pytest.raises(tk.TektiteError, match=message),
        ):
            table.load(spark.createDataFrame([*new, *clash], schema).repartition(3), operation="op" if told else None)
        assert files_of(tmp_path / "store") == before
        assert len(view.rows()) == 50
        assert table.load(spark.createDataFrame(new, schema), operation="op" if told else None) == 40
        assert len(view.rows()) == 90


def test_micro_batch_with_a_null_in_its_key_stops_the_stream_and_goes_on_when_it_is_mended(
    spark: SparkSession, tmp_path: Path
) -> None:
    files = Files(spark, tmp_path / "files", "k string, n int, v int")
    files.add([("a", 1, 1), ("b", 1, 1)])
    files.add([("a", 1, 2), (None, 1, 3), ("c", 1, 3)])
    kinds = {
        "upsert": KINDS["upsert"][0],
        "trusted": KINDS["unique"][0] | {"checked": False},
        "required": KINDS["required in a bag"][0],
    }
    for kind, options in kinds.items():
        with tk.Engine(spark=spark, storage=tmp_path / f"store {kind}", workers=2, autocommit=False) as engine:
            table = engine.create_table("t", SCHEMA, **options)
            following = table.follow(files.stream(), trigger={"processingTime": "0 seconds"})
            with pytest.raises(
                tk.IncorrectError,
                match=r"table 't': .*column 'k' holds a NULL in row 1 of a batch.*; found in micro-batch 1, of which",
            ):
                following.await_termination(PATIENCE)
            assert not following.active and following.batch == 0
            engine.sync()
            before = files_of(tmp_path / f"store {kind}")
            with pytest.raises(tk.IncorrectError, match="found in micro-batch 1"):
                table.follow(files.stream(), trigger=NOW).await_termination()
            assert files_of(tmp_path / f"store {kind}") == before
    mended = Files(spark, tmp_path / "mended", files.columns)
    mended.add([("a", 1, 2), ("d", 1, 3), ("c", 1, 3)])
    (tmp_path / "mended" / "0000.parquet").rename(tmp_path / "files" / "0001.parquet")
    files.add([("e", 1, 5)])
    with tk.Engine(spark=spark, storage=tmp_path / "store upsert", workers=2, autocommit=False) as engine:
        table = engine.create_table("t", SCHEMA, **KINDS["upsert"][0])
        view = engine.install("all", table)
        table.follow(files.stream(), trigger=NOW).await_termination()
        expected = {("a", 1, 2): 1, ("b", 1, 1): 1, ("c", 1, 3): 1, ("d", 1, 3): 1, ("e", 1, 5): 1}
        assert view.multiplicities() == expected
