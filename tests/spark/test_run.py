"""Pipelines: checked before they run, run to their end, and resumed by running them again."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

import tektite as tk
from tektite.errors import FaultError, IncorrectError, NotFoundError
from tektite.pipeline import read_pipeline
from tektite.spark.run import Metrics, run
from tektite.spark.soundness import check_pipeline
from tests.support.spark_cluster import wait_until
from tests.support.spark_files import Files

ROOT = Path(tk.__file__).parents[1]

PIPELINE = """
name: orders
storage: store
workers: 2
spark: {memory: 1g, config: {spark.ui.enabled: "false", spark.ui.showConsoleProgress: "false"}}
tables:
  customers:
    columns: {c: int, name: string}
    order_by: c
    load: {format: json, path: customers, schema: "c int, name string"}
  orders:
    columns: {o: int, c: int, amount: "decimal(12, 2)"}
    mode: upsert
    primary_key: [o]
    follow:
      format: parquet
      path: files
      schema: "o int, c int, amount decimal(12,2), op string, seq int"
      options: {maxFilesPerTrigger: 1}
      operation: op
      order: seq
      trigger: {availableNow: true}
views:
  totals: {python: "queries:totals"}
  per_customer: {sql: "SELECT c, count(*) AS n FROM orders GROUP BY c"}
sinks:
  - {view: totals, format: parquet, path: out}
"""

QUERIES = """
import tektite as tk

def totals(engine):
    joined = engine.table("orders").join(engine.table("customers"), on="c")
    return joined.group_by("name").agg(total=tk.sum("amount"), n=tk.count())
"""


@pytest.fixture
def folder(spark: SparkSession, tmp_path: Path) -> Path:
    (tmp_path / "pipeline.yaml").write_text(PIPELINE)
    (tmp_path / "queries.py").write_text(QUERIES)
    (tmp_path / "customers").mkdir()
    lines = [json.dumps({"c": c, "name": f"customer {c}"}) for c in range(3)]
    (tmp_path / "customers" / "1.json").write_text("\n".join(lines))
    return tmp_path


@pytest.fixture
def files(spark: SparkSession, folder: Path) -> Files:
    return Files(spark, folder / "files", "o int, c int, amount decimal(12,2), op string, seq int")


def run_here(folder: Path, name: str = "pipeline.yaml") -> Metrics:
    return run(read_pipeline(folder / name), tk.Engine, lambda _: None)


def add_orders(files: Files, first: int, count: int) -> None:
    from decimal import Decimal

    rows: list[tuple[Any, ...]] = [(o, o % 3, Decimal(o), "c", 2 * o) for o in range(first, first + count)]
    rows += [(o, o % 3, Decimal(10 * o), "u", 2 * o + 1) for o in range(first, first + count, 4)]
    files.add(rows)


def expected(count: int) -> Counter[tuple[str, int, int]]:
    """Totals of orders 0..count, in cents, when every fourth order was changed to ten times its amount."""
    found: dict[str, tuple[int, int]] = {}
    for o in range(count):
        total, n = found.get(f"customer {o % 3}", (0, 0))
        found[f"customer {o % 3}"] = (total + (10 * o if o % 4 == 0 else o), n + 1)
    return Counter((name, total, n) for name, (total, n) in found.items())


def written(spark: SparkSession, folder: Path) -> Counter[tuple[str, int, int]]:
    """What the changes in the sink add up to."""
    total: Counter[tuple[str, int, int]] = Counter()
    try:
        frame = spark.read.parquet(str(folder / "out"))
    except AnalysisException:  # nothing has been committed there
        return total
    for row in frame.collect():
        total[row["name"], int(row.total), row.n] += row["diff"]
    assert min(total.values(), default=0) >= 0
    return +total


def test_pipeline_runs_to_its_end_and_goes_on_when_run_again(spark: SparkSession, folder: Path, files: Files) -> None:
    for number, count in enumerate((8, 24)):
        for first in range(8 * number, count, 8):
            add_orders(files, first, 8)
        metrics = run_here(folder)
        assert metrics.loaded == {"customers": (3, 0)[number]}
        assert metrics.followed == {"orders": (10, 20)[number]}
        assert metrics.followed_epochs == {"orders": (1, 2)[number]} and metrics.epoch_seconds["orders"] > 0
        assert metrics.epochs == metrics.durable
        assert list(metrics.updates) == ["totals", "per_customer"]
        found = spark.read.format("tektite").option("path", str(folder / "store")).option("view", "per_customer").load()
        assert {tuple(row) for row in found.collect()} == {(c, sum(o % 3 == c for o in range(count))) for c in range(3)}
        assert written(spark, folder) == expected(count)


def test_pipeline_may_be_a_program(spark: SparkSession, folder: Path) -> None:
    (folder / "pipeline.py").write_text(
        textwrap.dedent(
            """
            import tektite as tk
            PIPELINE = {"name": "program", "workers": 2}
            def build(engine, spark):
                numbers = engine.create_table("numbers", {"id": tk.Int})
                engine.install("n", numbers.count())
                numbers.load(spark.range(100))
            """
        )
    )
    metrics = run_here(folder, "pipeline.py")
    assert (metrics.name, metrics.updates) == ("program", {"n": 1})


BAD = {
    "unknown word": ("wrokers: 2", "unknown word 'wrokers': did you mean 'workers'"),
    "no columns": ("tables: {t: {primary_key: k}}", "tables.t: a table has columns"),
    "unknown type": ("tables: {t: {columns: {k: intger}}}", "tables.t.columns: .*'intger'"),
    "no rows": ("tables: {t: {columns: {k: int}, load: {path: x}}}", "tables.t.load: rows come from a format"),
    "word of the other kind": (
        "tables: {t: {columns: {k: int}, load: {format: csv, trigger: {once: true}}}}", "unknown word 'trigger'",
    ),
    "empty view": ("views: {v: {}}", "views.v: a view is a query"),
    "sink of nothing": ("storage: s\nsinks: [{view: v, path: o}]", r"sinks\[0\]: there is no view 'v'"),
    "sink without storage": ("views: {v: {sql: SELECT 1}}\nsinks: [{view: v, path: o}]", "a sink needs a storage"),
    "no workers": ("workers: 0", "workers: expected a positive number, found 0"),
    "no YAML": ("a: [", "is not YAML"),
    "empty": ("", "expected names and values, found None"),
    "unknown mode": ("tables: {t: {columns: {k: int}, mode: upset, primary_key: k}}", "tables.t: .*not 'upset'"),
    "unknown key": ("tables: {t: {columns: {k: int}, primary_key: j}}", "tables.t: .*'j'"),
    "upsert without a key": ("tables: {t: {columns: {k: int}, mode: upsert}}", "tables.t: .*same primary_key"),
    "word for a flag": ("tables: {t: {columns: {k: int}, checked: 'no'}}", "tables.t.checked: expected true or false"),
    "diff and operation": (
        "tables: {t: {columns: {k: int}, load: {format: csv, diff: d, operation: o}}}", "tables.t.load: .*not both",
    ),
    "diff of an upsert": (
        "tables: {t: {columns: {k: int}, primary_key: k, mode: upsert, load: {format: csv, diff: d}}}", "diffs are for bags",
    ),
    "trigger": ("tables: {t: {columns: {k: int}, follow: {format: csv, trigger: now}}}", "tables.t.follow.trigger: "),
    "options": ("tables: {t: {columns: {k: int}, load: {format: csv, options: [a]}}}", "tables.t.load.options: "),
    "extra": ("tables: {t: {columns: {k: int}, load: {format: csv, extra: ingore}}}", "expected error or ignore"),
    "upto": ("tables: {t: {columns: {k: int}, load: {format: csv, upto: 3}}}", "say in which column it is"),
    "configuration": ("spark: {config: [a]}", "spark.config: expected names and values"),
    "storage": ("storage: [a]", "storage: expected a text"),
    "no function": ("views: {v: {python: queries}}", "views.v.python: expected module:function, found 'queries'"),
    "no SQL": ("views: {v: {sql: SELEC 1}}", "views.v.sql: "),
    "name that is taken": ("tables: {t: {columns: {k: int}}}\nviews: {t: {sql: SELECT 1}}", "there is a table of this"),
    "sink without path": ("storage: s\nviews: {v: {sql: SELECT 1}}\nsinks: [{view: v}]", "needs a folder to write to"),
    "sinks by name": ("storage: s\nsinks: {out: {view: v}}", "sinks: expected a list of sinks"),
    "former and new word": ("shards: 2\nworkers: 2", "'shards' is the former word for 'workers': give one"),
    "former options that differ": (
        "inputs: {t: {columns: {k: int}, stream: true, semantics: set}}", "tables.t: .*one of stream, set, not several",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_pipeline_is_refused_before_it_runs(tmp_path: Path, case: str) -> None:
    text, message = BAD[case]
    (tmp_path / "p.yaml").write_text(text)
    with pytest.raises(IncorrectError, match=message):
        read_pipeline(tmp_path / "p.yaml")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def build(engine, spark)\n    pass\n", r"p\.py, line 1: expected ':'"),
        ("import nothing_like_it\n", r"p\.py, line 1: ModuleNotFoundError: No module named 'nothing_like_it'"),
        ("x = 1\n", "defines neither build"),
    ],
)
def test_program_that_cannot_be_read_is_refused_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "p.py").write_text(text)
    with pytest.raises(IncorrectError, match=message):
        read_pipeline(tmp_path / "p.py")


def test_source_that_spark_cannot_read_is_named(spark: SparkSession, folder: Path) -> None:
    (folder / "p.yaml").write_text(
        "tables: {t: {columns: {k: int}, load: {format: parquet, path: nowhere}}}\nstorage: other\n"
    )
    with pytest.raises(FaultError, match=r"tables\.t\.load: \[PATH_NOT_FOUND\].*nowhere"):
        run_here(folder, "p.yaml")


def test_load_that_is_under_way_is_given_up_when_asked_to_stop(spark: SparkSession, folder: Path) -> None:
    """A load may take hours: nothing of it counts, and the next run repeats it."""
    (folder / "p.py").write_text(
        textwrap.dedent(
            """
            import tektite as tk
            PIPELINE = {"storage": "other"}
            SECONDS = 60
            def build(engine, spark):
                from pyspark.sql.functions import udf
                seconds = SECONDS
                slow = udf(lambda number: (__import__("time").sleep(seconds), number)[1], "long")
                numbers = engine.create_table("numbers", {"k": tk.Int})
                engine.install("n", numbers.count())
                numbers.load(spark.range(1).select(slow("id").alias("k")), once="numbers")
            """
        )
    )
    stop, said = threading.Event(), list[str]()
    tracker = spark.sparkContext.statusTracker()

    def ask() -> None:
        while not tracker.getActiveJobsIds():
            time.sleep(0.05)
        stop.set()

    threading.Thread(target=ask, daemon=True).start()
    metrics = run(read_pipeline(folder / "p.py"), tk.Engine, said.append, stop)
    assert metrics.stopped and any(line.startswith("given up: table 'numbers'") for line in said)
    (folder / "p.py").write_text((folder / "p.py").read_text().replace("SECONDS = 60", "SECONDS = 0"))
    assert run_here(folder, "p.py").updates == {"n": 1}


def test_missing_pipeline_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="there is no pipeline"):
        read_pipeline(tmp_path / "none.yaml")


def start(folder: Path) -> subprocess.Popen[str]:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    program = "from tektite.__main__ import main; main()"
    arguments = [sys.executable, "-c", program, "run", "pipeline.yaml", "--metrics", "metrics.json"]
    return subprocess.Popen(arguments, cwd=folder, env=environment, stderr=subprocess.PIPE, text=True)


@pytest.mark.slow
def test_command_stops_cleanly_when_asked_and_resumes(spark: SparkSession, folder: Path, files: Files) -> None:
    endless = PIPELINE.replace("      trigger: {availableNow: true}\n", "")
    (folder / "pipeline.yaml").write_text(endless)
    add_orders(files, 0, 8)
    add_orders(files, 8, 8)
    process = start(folder)
    try:
        wait_until(lambda: any(folder.glob("out/*.parquet")), process)
        wait_until(lambda: sum(written(spark, folder).values()) >= 3, process)
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=300)
    finally:
        process.kill()
    assert process.returncode == 0, said
    assert "SIGTERM: stopping" in said and "load customers: 3 rows" in said
    assert json.loads((folder / "metrics.json").read_text())["stopped"] is True
    (folder / "pipeline.yaml").write_text(PIPELINE)
    add_orders(files, 16, 8)
    run_here(folder)
    assert written(spark, folder) == expected(24)


def checked(folder: Path, old: str = "", new: str = "") -> str:
    """What --check says of the pipeline with a part replaced."""
    assert old in PIPELINE
    (folder / "changed.yaml").write_text(PIPELINE.replace(old, new, 1))
    try:
        check_pipeline(read_pipeline(folder / "changed.yaml"), tk.Engine)
    except IncorrectError as error:
        return str(error)
    return "sound"


@pytest.fixture
def described(tmp_path: Path) -> Path:
    """A folder with what a pipeline names, for checks that need no Spark."""
    (tmp_path / "queries.py").write_text(QUERIES)
    (tmp_path / "customers").mkdir()
    (tmp_path / "files").mkdir()
    sys.modules.pop("queries", None)
    return tmp_path


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("", "", "sound"),
        ("path: customers", 'path: "cust*"', "sound"),
        ("FROM orders", "FROM order", "changed.yaml, views.per_customer: .*there is no table or view 'order'"),
        ("SELECT c, count", "SELECT d, count", "views.per_customer: .*'d'"),
        ("queries:totals", "queries:total", "views.totals: .*there is no 'queries:total'"),
        ("c int, name string", "c int, nam string", "tables.customers.load: the column 'name' is missing: did you mean 'nam'"),
        ("c int, name string", "c int, name", "tables.customers.load: schema: .* is none that Spark reads"),
        ("seq int", "sequence int", "tables.orders.follow: the order column 'seq' is missing"),
        ("availableNow: true", "available_now: true", "unknown trigger 'available_now': did you mean 'availableNow'"),
        ("availableNow: true", "processingTime: 5", "trigger processingTime is a text such as '5 seconds', not 5"),
        ("availableNow: true", "processingTime: soon", "trigger processingTime is an interval, such as '5 seconds', not 'soon'"),
        ("availableNow: true", "processingTime: 1 minute 30 seconds", "sound"),
        ("format: json", "format: jsonn", "tables.customers.load: unknown format 'jsonn': did you mean 'json'"),
        ("format: json", "format: org.example.Json", "sound"),
        ("parquet, path: out", "parkett, path: out", r"sinks\[0\]: unknown format 'parkett': did you mean 'parquet'"),
        ("path: customers", "path: costumers", "tables.customers.load: there is nothing at the path .*costumers"),
        ("operation: op", "where: oo > 1\n      operation: op", "where: 'oo > 1' reads a column 'oo': did you mean 'o'"),
        ("operation: op", "select: [o, c, amount, op, seq AS sq]\n      operation: op", "the order column 'seq' is missing"),
        ("operation: op", "select: ['*']\n      operation: op", "sound"),
    ],
)  # fmt: skip
def test_check_finds_what_would_stop_a_run(described: Path, old: str, new: str, message: str) -> None:
    assert re.search(message, checked(described, old, new))


def test_sink_of_an_unknown_view_is_told_the_views(described: Path) -> None:
    (described / "changed.yaml").write_text(PIPELINE.replace("{view: totals", "{view: totls"))
    with pytest.raises(IncorrectError, match="did you mean 'totals'\\? the views are: totals, per_customer"):
        read_pipeline(described / "changed.yaml")
