"""Delta tables, in and out, as soon as there is a Delta for the Spark that is installed."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pyspark
import pytest

import tektite as tk

ROOT = Path(tk.__file__).parents[1]

PROGRAM = """
import sys
from collections import Counter
from pathlib import Path
import tektite as tk
import tektite.spark

folder = Path(sys.argv[1])
spark = tektite.spark.session(master="local[2,4]", config={
    "spark.ui.enabled": "false",
    "spark.jars.packages": sys.argv[2],
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
})
table, out = str(folder / "table"), str(folder / "out")
spark.range(100).selectExpr("id AS k", "concat('v', id % 3) AS v").write.format("delta").save(table)
with tk.Engine(spark=spark, storage=folder / "store", workers=2, autocommit=False) as engine:
    rows = engine.create_table("t", {"k": tk.Int, "v": tk.String})
    view = engine.install("n", rows.count(by="v"))
    rows.load(spark.read.format("delta").load(table))
    for _ in range(2):
        view.write_changes("delta", out, trigger={"availableNow": True}).awaitTermination()
        total = Counter()
        for row in spark.read.format("delta").load(out).collect():
            total[row.v, row["count"]] += row["diff"]
        assert +total == Counter(view.rows()), total
        rows.insert([(1000, "v0")])
        engine.advance()
        engine.sync()
spark.stop()
print("done")
"""


def coordinates() -> str:
    """The Maven coordinates of a Delta for this Spark; TEKTITE_DELTA names others."""
    spark = ".".join(pyspark.__version__.split(".")[:2])
    return os.environ.get("TEKTITE_DELTA") or f"io.delta:delta-spark_{spark}_2.13:latest.release"


@pytest.mark.slow
@pytest.mark.nightly
def test_delta_tables_are_loaded_and_written(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(textwrap.dedent(PROGRAM))
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    arguments = [sys.executable, str(tmp_path / "program.py"), str(tmp_path), coordinates()]
    answer = subprocess.run(arguments, capture_output=True, text=True, env=environment, cwd=tmp_path)
    if "unresolved dependenc" in answer.stderr.lower():
        pytest.skip(f"Spark finds no {coordinates()} in its repositories")
    assert answer.stdout.split()[-1:] == ["done"], answer.stderr[-4000:]
