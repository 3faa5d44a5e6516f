"""Nothing is lost or doubled when drivers are killed, at random and around their commits, or when two use one storage."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import tektite as tk
from tektite.errors import ConflictError
from tektite.storage.manifest import Manifest
from tektite.storage.store import Lock, PosixStore, open_store
from tests.support.nightly import size
from tests.support.spark_cluster import ROOT
from tests.support.spark_files import NOW, Files

SEED = size("TEKTITE_KILL_SEED", 7)
KILLS = size("TEKTITE_KILLS", 5)
"""How often drivers are killed at random; `make soak` raises it."""


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


def start(folder: Path, *kill: str) -> subprocess.Popen[str]:
    """The driver and its Java, in a process group of their own, so that both can be killed at once, as a machine that fails."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        [sys.executable, str(ROOT / "tests" / "support" / "spark_driver.py"), str(folder), *kill], env=environment, cwd=folder,
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


def killed_around_a_commit(folder: Path, when: str) -> list[str]:
    """Let a driver kill itself before or after its second version; what it said."""
    killed = start(folder, when, "2")
    out, _ = killed.communicate(timeout=300)
    assert killed.returncode == -signal.SIGKILL and out.split("\n")[-2] != "done", (folder / "stderr").read_text()
    return out.split("\n")


def goes_on_to_the_end(folder: Path, expected: Counter[tuple[int, str]], history: list[list[str]]) -> None:
    """A driver that nobody kills does what is left, and the storage holds everything once."""
    last = start(folder)
    out, _ = last.communicate(timeout=300)
    assert last.returncode == 0, (folder / "stderr").read_text()[-4000:]
    assert out.split("\n")[-2] == "done", (history, out)
    with tk.Engine(storage=folder / "store", workers=2, autocommit=False) as engine:
        assert engine.install("all", engine.table("t")).multiplicities() == dict(expected)
        counts: dict[str, int] = {}
        for (_, v), n in expected.items():
            counts[v] = counts.get(v, 0) + n
        view = engine.install("n", engine.table("t").count(by="v"))
        assert dict(view.rows()) == counts
        stored = published(folder / "store", "n")
        assert stored == dict.fromkeys(counts.items(), 1)


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.soak
def test_driver_is_killed_around_commits_and_at_random_and_goes_on(tmp_path: Path) -> None:
    expected = make_files(tmp_path, max(24, 5 * KILLS))
    chance = random.Random(SEED)
    history = [killed_around_a_commit(tmp_path, when) for when in ("before", "after")]
    for _ in range(KILLS):
        history.append(kill_at(start(tmp_path), chance.randrange(1, 8), chance.random() * 0.5))
    goes_on_to_the_end(tmp_path, expected, history)


def test_second_driver_is_refused_and_changes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    make_files(tmp_path, 1)
    with tk.Engine(spark=spark, storage=tmp_path / "store", workers=2, autocommit=False) as engine:
        table = engine.create_table("t", {"k": tk.Int, "v": tk.String})
        table.load(spark.createDataFrame([(1, "mine")], "k int, v string"))
        engine.sync()
        before = sorted(path.name for path in (tmp_path / "store").rglob("*"))
        second = start(tmp_path)
        second.communicate(timeout=300)
        assert second.returncode == 1
        assert "ConflictError" in (tmp_path / "stderr").read_text()
        assert sorted(path.name for path in (tmp_path / "store").rglob("*")) == before
        assert engine.install("all", table).rows() == [(1, "mine")]


def unlocked(root: Path) -> PosixStore:
    """A store on a file system without locks. Its class travels to tasks as a whole: they do not have this module."""

    class Unlocked(PosixStore):
        def lock(self) -> Lock | None:
            return None

    return Unlocked(root)


def test_driver_that_lost_its_storage_stops_its_stream_and_the_other_goes_on(
    spark: SparkSession, tmp_path: Path
) -> None:
    """On a file system without locks, the manifest alone decides who goes on."""
    files = Files(spark, tmp_path / "files", "k int, v string")
    files.add([(1, "x")])
    storage = tk.Storage(unlocked(tmp_path / "store"))
    old = tk.Engine(spark=spark, storage=storage, workers=2, autocommit=False)
    lost = old.create_table("t", {"k": tk.Int, "v": tk.String}).follow(files.stream())
    lost.process_all_available()
    with tk.Engine(spark=spark, storage=storage, workers=2, autocommit=False) as engine:
        files.add([(2, "y")])
        with pytest.raises(ConflictError):
            lost.process_all_available()
        assert not lost.active
        table = engine.create_table("t", {"k": tk.Int, "v": tk.String})
        with pytest.raises(ConflictError):
            old.table("t").load(spark.createDataFrame([(9, "z")], "k int, v string"))
        table.follow(files.stream(), trigger=NOW).await_termination()
        assert engine.install("all", table).multiplicities() == {(1, "x"): 1, (2, "y"): 1}
    with pytest.raises(ConflictError):
        old.close()
    with tk.Engine(storage=tmp_path / "store", autocommit=False) as engine:
        assert engine.install("all", engine.table("t")).multiplicities() == {(1, "x"): 1, (2, "y"): 1}


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
