"""Figure 13 of *Shared Arrangements*: each TPC-H query over all of the data at once, beside DuckDB and Spark SQL.

Tektite's time is from the relations' words in memory to a maintained answer: it has built whatever it will need to keep
the answer up to date. DuckDB and Spark SQL have the relations in memory in their own forms and answer once.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import tektite as tk
from benchmarks.measure import Others
from benchmarks.plots import Record, draw_bars, figure
from benchmarks.tpch import QUERIES, Query, query, read_by
from benchmarks.tpch.answers import check_answer, oracle, spoken
from benchmarks.tpch.data import folder
from benchmarks.tpch.maintained import Encoded, Relations
from tektite.spark.java import find_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME = "fig13"
DESCRIPTION = "elapsed time of each TPC-H query as one batch: tektite, DuckDB and Spark SQL, in turns"


def run(
    scale: float = 0.1,
    queries: Sequence[int] = QUERIES,
    workers: int = 2,
    rounds: int = 3,
    spark: bool = True,
    check: bool = True,
) -> Iterator[dict[str, Any]]:
    """A record for each query and system: the median of some rounds, after one that is not counted."""
    engine = tk.Engine(workers, autocommit=False)
    encoded = Encoded(engine, scale, read_by(queries))
    oracle(scale, read_by(queries)).execute(f"SET threads = {workers}")
    session = spark_session(scale, workers, read_by(queries)) if spark else None
    for number in queries:
        asked = query(number, scale)
        systems: dict[str, Callable[[], float]] = {
            "tektite": lambda asked=asked: maintained(engine, encoded, asked, check),  # type: ignore[misc]
            "DuckDB": lambda asked=asked: by_duckdb(asked, scale),  # type: ignore[misc]
        }
        if session is not None:
            systems["Spark SQL"] = lambda asked=asked: by_spark(session, asked)  # type: ignore[misc]
        others = Others()
        times: dict[str, list[float]] = {system: [] for system in systems}
        for turn in range(rounds + 1):
            for system, work in systems.items():
                seconds = work()
                if turn:
                    times[system].append(seconds)
        for system, found in times.items():
            yield {"query": number, "system": system, "seconds": median(found)} | others.figures()
    if session is not None:
        session.stop()


def maintained(engine: tk.Engine, encoded: Encoded, asked: Query, check: bool) -> float:
    """Install a query, give it all of its relations in one epoch, and wait for its answer."""
    relations = Relations(engine, encoded, asked.relations, streams=asked.relations)
    (batch,) = encoded.batches(asked.relations, 1)
    start = time.perf_counter()
    view = relations.install(asked)
    relations.insert(batch)
    engine.advance()
    engine.finish(view)
    seconds = time.perf_counter() - start
    if check:
        check_answer(view, asked, encoded.scale)
    relations.forget(asked)
    relations.drop()
    return seconds


def by_duckdb(asked: Query, scale: float) -> float:
    connection = oracle(scale, asked.relations)
    for statement in asked.before:
        connection.execute(spoken(statement.replace("create view", "create or replace view")))
    start = time.perf_counter()
    connection.execute(spoken(asked.select)).fetchall()
    return time.perf_counter() - start


def spark_session(scale: float, workers: int, relations: Sequence[str]) -> SparkSession:
    """A session with the relations cached in memory."""
    from pyspark.sql import SparkSession

    os.environ["JAVA_HOME"] = str(find_java())
    builder: Any = SparkSession.builder
    session: SparkSession = (
        builder.master(f"local[{workers}]")
        .appName("tpch")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", str(2 * workers))
        .config("spark.driver.memory", "6g")
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )
    for name in relations:
        session.read.parquet(str(folder(scale) / f"{name}.parquet")).createOrReplaceTempView(name)
        session.sql(f"CACHE TABLE {name}")
    return session


def by_spark(session: SparkSession, asked: Query) -> float:
    for statement in asked.before:
        session.sql(spoken(statement.replace("create view", "create or replace temp view")))
    start = time.perf_counter()
    session.sql(spoken(asked.select)).collect()
    return time.perf_counter() - start


def plot(records: list[Record], path: Path) -> None:
    """Elapsed times of all systems, query by query."""
    systems = list(dict.fromkeys(record["system"] for record in records))
    numbers = list(dict.fromkeys(record["query"] for record in records))
    found = {(r["query"], r["system"]): r["seconds"] * 1e3 for r in records}
    scale, workers = records[0]["scale"], records[0]["workers"]
    title = f"Figure 13: TPC-H at scale factor {scale:g} as one batch, {workers} workers or threads"
    with figure(path, 1, title, size=(16.0, 5.0)) as (axes,):
        series = {system: [found.get((number, system)) for number in numbers] for system in systems}
        draw_bars(axes, [f"Q{number}" for number in numbers], series, "milliseconds")
