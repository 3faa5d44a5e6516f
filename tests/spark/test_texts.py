"""Texts that Spark loads, publishes and reads are there when they are needed, though others are collected all the time."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import tektite as tk
from tektite.engine.core import core_of
from tektite.spark import load as loading
from tektite.storage import known_texts, text_sections
from tests.support.row_changes import row_changes
from tests.support.spark_files import read, rows_of
from tests.support.stored import state_of


def collect(engine: tk.Engine) -> None:
    core = core_of(engine)
    with core.lock.held:
        assert core.texts.finish(10.0)


def named(spark: SparkSession, epoch: int) -> DataFrame:
    return spark.range(0, 300, 1, 2).select(
        F.col("id").alias("k"), F.concat(F.lit(f"epoch {epoch} row "), F.col("id").cast("string")).alias("s")
    )


@pytest.mark.parametrize("stored", [False, True])
def test_loaded_texts_are_there_though_others_are_collected_meanwhile(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stored: bool
) -> None:
    apply = loading.apply
    with tk.Engine(spark=spark, storage=tmp_path / "store" if stored else None, workers=2) as engine:
        table = engine.create_table("t", {"k": tk.Int, "s": tk.String}, mode="upsert", primary_key=["k"])
        other = engine.create_table("other", {"s": tk.String})
        view = engine.install("upper", table.select("k", u=tk.col("s").upper()))

        def collected_before(*args: Any) -> None:
            """Collect between encoding the rows and writing them."""
            collect(engine)
            apply(*args)

        monkeypatch.setattr(loading, "apply", collected_before)
        for epoch in range(3):
            other.insert([(f"other {epoch}",)])
            assert table.load(named(spark, epoch)) == 300
            collect(engine)
            assert set(view.rows()) == {(k, f"EPOCH {epoch} ROW {k}") for k in range(300)}
        while engine.idle():
            pass
        assert core_of(engine).dictionary.texts == 300 + 300 + 3


def test_published_changes_have_texts_that_are_gone_from_the_last_version(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_sections, "FEWEST", 16)
    path = tmp_path / "store"
    with tk.Engine(storage=path, workers=2) as engine:
        core_of(engine).texts.be_eager()
        table = engine.create_table("t", {"k": tk.Int, "s": tk.String}, mode="upsert", primary_key=["k"])
        view = engine.install("all", table)
        table.insert([(0, "first")])
        view.persist()
        engine.sync()
        start = state_of(path).version
        changes = row_changes(view)
        assert len(list(changes)) == 1
        expected: Counter[tuple[Any, ...]] = Counter()
        for epoch in range(60):
            table.insert([(k, f"row {k} of epoch {epoch}") for k in range(20)])
            engine.sync()
            expected.update((*change.row, change.time, change.diff) for change in changes)
        rows = Counter(view.rows())
        files, state = core_of(engine).storage.writer.files, state_of(path)
        stored = [files.open(state.files[live.file]).texts(live.index).to_pylist() for live in state.texts()]
        assert all("row 0 of epoch 3" not in texts for texts in stored)
        assert rows_of(read(spark, path, "all")) == rows
        assert rows_of(read(spark, path, "all", changes="true", startingVersion=start)) == expected


def test_a_reader_forgets_texts_that_no_version_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tektite.spark.stored import open_stored

    monkeypatch.setattr(text_sections, "FEWEST", 16)
    monkeypatch.setattr(known_texts, "FEWEST", 16)
    with tk.Engine(storage=tmp_path) as engine:
        core_of(engine).texts.be_eager()
        table = engine.create_table("t", {"k": tk.Int, "s": tk.String}, mode="upsert", primary_key=["k"])
        for epoch in range(60):
            table.insert([(k, f"row {k} of epoch {epoch}") for k in range(20)])
            engine.sync()
            stored = open_stored(str(tmp_path))
            state = stored.manifest.state
            words, _ = stored.snapshot("t", 0, state.version)
            found = stored.decode(stored.collection("t", state), words[:-2], state, {})
            assert Counter(found.column("s").to_pylist()) == Counter(f"row {k} of epoch {epoch}" for k in range(20))
            texts = sum(live.section.rows for live in state.texts())
            assert stored.dictionary(state).texts <= 2 * texts + 40
