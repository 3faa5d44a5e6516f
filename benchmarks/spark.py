"""Tektite on Spark beside Spark itself, in one run, in turns: loads, the smallest epoch, new queries, standing ones."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tektite as tk
from benchmarks.measure import Others, memory, percentile

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NAME = "spark"
DESCRIPTION = "loads, smallest epochs, installs and streams on Spark, each beside what Spark alone takes for the same"

KEYS = {
    "region": ("r_regionkey",),
    "nation": ("n_nationkey",),
    "supplier": ("s_suppkey",),
    "customer": ("c_custkey",),
    "part": ("p_partkey",),
    "partsupp": ("ps_partkey", "ps_suppkey"),
    "orders": ("o_orderkey",),
    "lineitem": ("l_orderkey", "l_linenumber"),
}


def run(
    SF: float = 0.1,
    state: int = 1_000_000,
    shards: int = 2,
    batch: int = 100_000,
    batches: int = 5,
    repetitions: int = 3,
    phases: Sequence[str] = ("load", "install", "epoch", "stream"),
) -> Iterator[dict[str, Any]]:
    """A record for each thing measured; `times` says how long we take as a multiple of Spark's time."""
    import tektite.spark

    spark = tektite.spark.session(
        memory="2g", config={"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
    )
    spark.sparkContext.setLogLevel("ERROR")
    spark.conf.set("spark.sql.shuffle.partitions", str(shards))
    folder = Path(tempfile.mkdtemp(prefix="tektite-spark-"))
    wanted = (phases,) if isinstance(phases, str) else tuple(phases)
    try:
        spark.range(10).mapInArrow(lambda found: found, "id long").count()  # starts the workers
        if "load" in wanted or "install" in wanted:
            yield from loads(spark, folder, SF, shards, repetitions, "install" in wanted)
        if "epoch" in wanted:
            yield from epochs(spark, folder, state, shards)
        if "stream" in wanted:
            yield from streams(spark, folder, batch, batches, shards)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        spark.stop()


def timed(work: Callable[[], Any]) -> float:
    """Seconds that a call takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def pair(ours: list[float], theirs: list[float]) -> dict[str, float]:
    """The medians of two ways, and the one as a multiple of the other."""
    mine, other = (percentile(sorted(seconds), 0.5) for seconds in (ours, theirs))
    return {"seconds": mine, "spark_seconds": other, "times": mine / other}


def make_tables(spark: SparkSession, folder: Path, scale: float) -> dict[str, DataFrame]:
    """TPC-H's tables as Parquet files, made by tpchgen-cli."""
    program = Path(sys.executable).with_name("tpchgen-cli")
    target = folder / "tpch"
    subprocess.run([program, "parquet", "-s", str(scale), "--output-dir", str(target)], check=True)
    return {name: spark.read.parquet(str(target / f"{name}.parquet")) for name in KEYS}


def loads(
    spark: SparkSession, folder: Path, scale: float, shards: int, repetitions: int, install: bool
) -> Iterator[dict[str, Any]]:
    """All tables into arrangements by their primary keys; Spark partitions, sorts and writes the same rows as Parquet."""
    tables = make_tables(spark, folder, scale)
    ours, theirs = [], []
    others = Others()

    def write() -> None:
        for name, frame in tables.items():
            sorted_frame = frame.repartition(shards, *KEYS[name]).sortWithinPartitions(*KEYS[name])
            sorted_frame.write.mode("overwrite").parquet(str(folder / "sorted" / name))

    engine: tk.Engine | None = None
    for repetition in range(repetitions):
        if engine is not None:
            engine.close()
        engine = tk.Engine(spark=spark, storage=folder / f"store{repetition}", shards=shards)
        if repetition % 2:
            theirs.append(timed(write))
        seconds, rows = load(engine, tables)
        ours.append(seconds)
        if not repetition % 2:
            theirs.append(timed(write))
    yield {"phase": "load", "SF": scale, "rows": rows} | pair(ours, theirs) | memory() | others.figures()
    assert engine is not None
    if install:
        yield from installs(spark, tables, engine, repetitions)
    engine.close()


def load(engine: tk.Engine, tables: dict[str, DataFrame]) -> tuple[float, int]:
    """Seconds until all tables are loaded and durable, and their rows."""
    inputs = {name: engine.input(name, schema_of(frame), key=KEYS[name]) for name, frame in tables.items()}
    start = time.perf_counter()
    rows = sum(inputs[name].load(frame, progress=False) for name, frame in tables.items())
    engine.sync()
    return time.perf_counter() - start, rows


def schema_of(frame: DataFrame) -> tk.Schema:
    """A DataFrame's columns as an input declares them."""
    from pyspark.sql.pandas.types import to_arrow_schema

    return tk.Schema(to_arrow_schema(frame.schema, timezone="UTC"))


def installs(
    spark: SparkSession, tables: dict[str, DataFrame], engine: tk.Engine, repetitions: int
) -> Iterator[dict[str, Any]]:
    """A look-up join and an aggregation of everything, on arrangements that are there; Spark SQL from its files."""
    from pyspark.sql import functions as F

    picked = list(range(1, 400, 4))
    wanted = engine.input("wanted", o_orderkey=tk.Int)
    wanted.insert([(key,) for key in picked])
    engine.advance()
    orders, lineitem = engine.table("orders"), engine.table("lineitem")

    def look_up() -> Any:
        return wanted.join(lineitem, on=("o_orderkey", "l_orderkey")).select("o_orderkey", "l_linenumber", "l_quantity")

    def over_history() -> Any:
        joined = lineitem.join(orders, on=("l_orderkey", "o_orderkey"))
        return joined.group_by("o_orderpriority").agg(n=tk.count(), quantity=tk.sum("l_quantity"))

    def look_up_spark() -> None:
        found = tables["lineitem"].where(F.col("l_orderkey").isin(picked))
        found.select("l_orderkey", "l_linenumber", "l_quantity").collect()

    def over_history_spark() -> None:
        joined = tables["lineitem"].join(tables["orders"], F.col("l_orderkey") == F.col("o_orderkey"))
        joined.groupBy("o_orderpriority").agg(F.count("*"), F.sum("l_quantity")).collect()

    queries: list[tuple[str, Callable[[], Any], Callable[[], None]]] = [
        ("look-up", look_up, look_up_spark),
        ("over history", over_history, over_history_spark),
    ]
    for name, collection, theirs in queries:
        ours_seconds, their_seconds = [], []
        others = Others()
        for _ in range(repetitions):

            def install(collection: Callable[[], Any] = collection) -> None:
                engine.install("measured", collection()).snapshot()

            ours_seconds.append(timed(install))
            engine.drop("measured")
            their_seconds.append(timed(theirs))
        yield {"phase": "install", "query": name} | pair(ours_seconds, their_seconds) | memory() | others.figures()


def epochs(spark: SparkSession, folder: Path, state: int, shards: int) -> Iterator[dict[str, Any]]:
    """Epochs of one update on a view of many rows, to visible and to durable; Spark runs a job of one bare task."""
    import numpy as np

    with tk.Engine(spark=spark, storage=folder / "epochs", shards=shards) as engine:
        table = engine.input("t", k=tk.Int)
        view = engine.install("n", table.count(by="k"))
        table.insert(np.arange(state, dtype=np.int64))
        engine.advance()
        engine.settle()
        engine.sync()
        one = spark.range(0, 1, 1, 1)
        visible, durable, bare = [], [], []
        others = Others()
        for number in range(50):
            table.insert([(number,)])

            def close() -> None:
                engine.advance()
                engine.finish(view)

            visible.append(timed(close))
            durable.append(visible[-1] + timed(engine.sync))
            bare.append(timed(lambda: one.mapInArrow(lambda found: found, "id long").collect()))
        yield {"phase": "epoch", "state": state, "until": "visible"} | pair(visible, bare) | others.figures()
        yield {"phase": "epoch", "state": state, "until": "durable"} | pair(durable, bare) | memory()


def streams(spark: SparkSession, folder: Path, batch: int, batches: int, shards: int) -> Iterator[dict[str, Any]]:
    """A standing aggregation over micro-batches: `follow`, direct updates, and Structured Streaming's own."""
    from pyspark.sql import functions as F

    source = folder / "stream"
    for number in range(batches):
        frame = spark.range(number * batch, (number + 1) * batch, 1, 1)
        frame = frame.select((F.hash("id") % 100_000).cast("long").alias("k"), F.col("id").alias("v"))
        frame.write.parquet(str(source / f"{number:03}"))

    def stream() -> DataFrame:
        reader = spark.readStream.schema("k long, v long").option("maxFilesPerTrigger", 1)
        return reader.parquet(str(source / "*"))

    rows = batch * batches
    others = Others()

    def follow() -> None:
        with tk.Engine(spark=spark, storage=folder / "follow", shards=shards) as engine:
            table = engine.input("t", k=tk.Int, v=tk.Int)
            engine.install("sums", table.group_by("k").agg(n=tk.count(), total=tk.sum("v")))
            table.follow(stream(), trigger={"availableNow": True}).await_termination()

    def direct() -> None:
        engine = tk.Engine(shards)
        table = engine.input("t", k=tk.Int, v=tk.Int)
        engine.install("sums", table.group_by("k").agg(n=tk.count(), total=tk.sum("v")))
        for found in arrays:
            table.insert(found)
            engine.advance()
        engine.settle()

    def structured() -> None:
        sums = stream().groupBy("k").agg(F.count("*"), F.sum("v"))
        writer = sums.writeStream.outputMode("update").format("noop").trigger(availableNow=True)
        writer.option("checkpointLocation", str(folder / "checkpoint")).start().awaitTermination()

    arrays = [spark.read.parquet(str(source / f"{number:03}")).toArrow() for number in range(batches)]
    seconds = {"structured streaming": timed(structured), "follow": timed(follow), "direct": timed(direct)}
    base = rows / seconds["structured streaming"]
    for way, taken in seconds.items():
        yield {
            "phase": "stream", "way": way, "rows": rows, "seconds": taken, "updates_per_s": rows / taken,
            "times_sparks_rate": rows / taken / base,
        } | others.figures()  # fmt: skip
