"""Pipelines started by `spark-submit`, on this machine and on a standalone cluster, which may lose the driver or a worker."""

from __future__ import annotations

import json
import subprocess
import textwrap
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import tektite as tk
from tests.support.spark_cluster import Standalone, kill, spark_home, standalone, submit, wait_until
from tests.support.spark_files import Files

pytestmark = pytest.mark.slow

PROGRAM = "from tektite.__main__ import main\nmain()\n"

PIPELINE = """
name: orders
storage: store
workers: 2
tables:
  customers:
    columns: {c: int, name: string}
    load: {format: json, path: customers, schema: "c int, name string"}
  orders:
    columns: {o: int, c: int}
    follow: {format: parquet, path: files, schema: "o int, c int", options: {maxFilesPerTrigger: 1}, trigger: TRIGGER}
views:
  per_customer:
    sql: SELECT name, count(*) AS n FROM orders JOIN customers USING (c) GROUP BY name
sinks:
  - {view: per_customer, format: parquet, path: out}
"""
ENDLESS, ENDING = ({"processingTime": "100 milliseconds"}, {"availableNow": True})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "customers").mkdir()
    lines = [json.dumps({"c": c, "name": f"customer {c}"}) for c in range(3)]
    (tmp_path / "customers" / "1.json").write_text("\n".join(lines))
    return tmp_path


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    with standalone(tmp_path_factory.mktemp("cluster"), workers=2) as made:
        yield made


def describe(folder: Path, trigger: dict[str, Any]) -> None:
    (folder / "pipeline.yaml").write_text(PIPELINE.replace("TRIGGER", json.dumps(trigger)))


def expected(count: int) -> dict[tuple[str, int], int]:
    return {(f"customer {c}", sum(o % 3 == c for o in range(count))): 1 for c in range(3)}


def found_in(folder: Path) -> dict[tuple[Any, ...], int]:
    """What a fresh engine answers from the storage that a pipeline has left."""
    with tk.Engine(storage=folder / "store", autocommit=False) as engine:
        engine.sql(
            "CREATE MATERIALIZED VIEW n AS SELECT name, count(*) AS n FROM orders JOIN customers USING (c) GROUP BY name"
        )
        return engine.view("n").multiplicities()


def written(spark: SparkSession, folder: Path) -> Counter[tuple[str, int]]:
    """What the changes in the sink add up to."""
    total: Counter[tuple[str, int]] = Counter()
    for row in spark.read.parquet(str(folder / "out")).collect():
        total[row["name"], row.n] += row["diff"]
    return +total


def finish(process: subprocess.Popen[str]) -> str:
    """What a program says until its end; spark-submit puts its standard error behind its standard output."""
    said, java = process.communicate(timeout=300)
    assert process.returncode == 0, said + java[-6000:]
    return said


def test_program_is_submitted_on_this_machine(folder: Path) -> None:
    (folder / "pipeline.py").write_text(
        textwrap.dedent(
            """
            import tektite as tk
            PIPELINE = {"name": "program", "storage": "store", "workers": 2, "spark": {"master": "local[7]"}}
            def build(engine, spark):
                numbers = engine.create_table("numbers", {"id": tk.Int})
                engine.install("n", numbers.count())
                assert spark.sparkContext.master == "local[2,4]", spark.sparkContext.master
                numbers.load(spark.range(100), once="all")
            """
        )
    )
    arguments = ("run", "pipeline.py", "--metrics", "metrics.json")
    said = finish(submit(spark_home(folder), "local[2,4]", folder / "program.py", *arguments))
    assert "pipeline program done" in said
    assert json.loads((folder / "metrics.json").read_text())["updates"] == {"n": 1}
    with tk.Engine(storage=folder / "store", autocommit=False) as engine:
        assert engine.install("n", engine.table("numbers").count()).rows() == [(100,)]


@pytest.mark.nightly
@pytest.mark.soak
def test_pipeline_survives_a_killed_driver_on_a_standalone_cluster(
    spark: SparkSession, cluster: Standalone, folder: Path
) -> None:
    files = Files(spark, folder / "files", "o int, c int")
    for first in (0, 8):
        files.add([(o, o % 3) for o in range(first, first + 8)])
    describe(folder, ENDLESS)
    process = submit(cluster.home, cluster.url, folder / "program.py", "run", "pipeline.yaml")
    try:
        commits = folder / "store" / "checkpoints" / "orders" / "commits"
        wait_until(lambda: list(commits.glob("[0-9]*")), process)
    finally:
        process.kill()
        process.communicate()
    files.add([(o, o % 3) for o in range(16, 24)])
    describe(folder, ENDING)
    said = finish(submit(cluster.home, cluster.url, folder / "program.py", "run", "pipeline.yaml"))
    assert "load customers: 0 rows" in said, said  # the first run did it
    assert found_in(folder) == expected(24)
    assert written(spark, folder) == Counter(expected(24))


@pytest.mark.nightly
@pytest.mark.soak
def test_pipeline_survives_a_lost_worker(spark: SparkSession, cluster: Standalone, folder: Path) -> None:
    (folder / "pipeline.py").write_text(
        textwrap.dedent(
            """
            import os, time
            from pathlib import Path
            import tektite as tk
            PIPELINE = {"name": "slow", "storage": "store", "workers": 2}
            def build(engine, spark):
                begun = str(Path(__file__).with_name("begun"))
                def slowly(batches):
                    for batch in batches:
                        os.close(os.open(begun, os.O_CREAT))
                        time.sleep(1)
                        yield batch
                numbers = engine.create_table("numbers", {"id": tk.Int})
                frame = spark.range(0, 3000, 1, 6)
                numbers.load(frame.repartition(5).mapInArrow(slowly, frame.schema), once="all")
            """
        )
    )
    process = submit(cluster.home, cluster.url, folder / "program.py", "run", "pipeline.py")
    wait_until((folder / "begun").exists, process)
    kill(cluster.workers[0])
    cluster.start_worker()
    finish(process)
    with tk.Engine(storage=folder / "store", autocommit=False) as engine:
        assert engine.install("all", engine.table("numbers")).multiplicities() == {(k,): 1 for k in range(3000)}
