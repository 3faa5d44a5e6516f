"""A standing aggregation and a standing join over micro-batches: `follow`, direct updates, and Structured Streaming's own."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

import tektite as tk
from benchmarks.measure import Others
from benchmarks.on_spark.common import Place, Record, median, timed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

KEYS = 100_000
GROUPS = 100

Query = Callable[[tk.Engine, tk.Table], tk.Collection]


def streams(place: Place, batch: int, batches: int, repetitions: int) -> Iterator[Record]:
    """Rows (k, v) in files of one micro-batch each. The aggregation counts and sums by k; the join looks a group up for each k
    in a table of 100,000 rows and counts and sums by group. Structured Streaming runs in a session with Spark's own settings, and
    in one with ours, whose logs take less time.
    """
    from pyspark.sql import functions as F

    spark, folder, shards = place.spark, place.folder, place.shards
    source = folder / f"stream{batch}"
    for number in range(batches):
        frame = spark.range(number * batch, (number + 1) * batch, 1, 1)
        frame = frame.select(F.pmod(F.hash("id"), F.lit(KEYS)).cast("long").alias("k"), F.col("id").alias("v"))
        frame.write.mode("overwrite").parquet(str(source / f"{number:03}"))
    groups = spark.range(0, KEYS, 1, 1).select(F.col("id").alias("key"), (F.col("id") % GROUPS).alias("g"))
    groups.write.mode("overwrite").parquet(str(folder / "groups"))
    arrays = [spark.read.parquet(str(source / f"{number:03}")).toArrow() for number in range(batches)]
    table_of_groups = spark.read.parquet(str(folder / "groups")).toArrow()

    plain = spark.newSession()

    def stream(session: SparkSession = spark) -> DataFrame:
        reader = session.readStream.schema("k long, v long").option("maxFilesPerTrigger", 1)
        return reader.parquet(str(source / "*"))

    def aggregated(engine: tk.Engine, table: tk.Table) -> tk.Collection:
        return table.group_by("k").agg(n=tk.count(), total=tk.sum("v"))

    def joined(engine: tk.Engine, table: tk.Table) -> tk.Collection:
        found = table.join(engine.table("groups"), left_on="k", right_on="key")
        return found.group_by("g").agg(n=tk.count(), total=tk.sum("v"))

    def begin(engine: tk.Engine, query: Query) -> tuple[tk.Table, tk.View]:
        groups_input = engine.create_table("groups", {"key": tk.Int, "g": tk.Int}, order_by="key")
        groups_input.insert(table_of_groups)
        engine.advance()
        table = engine.create_table("t", {"k": tk.Int, "v": tk.Int})
        return table, engine.install("sums", query(engine, table))

    def follow(query: Query) -> tuple[float, Any]:
        shutil.rmtree(folder / "follow", ignore_errors=True)
        with place.engine("follow") as engine:
            table, view = begin(engine, query)
            frame = stream()
            seconds = timed(lambda: table.follow(frame, trigger={"availableNow": True}).await_termination())
            return seconds, view.snapshot()

    def direct(query: Query) -> tuple[float, Any]:
        with tk.Engine(shards, autocommit=False) as engine:
            table, view = begin(engine, query)

            def feed() -> None:
                for found in arrays:
                    table.insert(found)
                    engine.advance()
                    engine.finish(view)

            return timed(feed), view.snapshot()

    def structured(query: Query, session: SparkSession = plain) -> tuple[float, Any]:
        shutil.rmtree(folder / "checkpoint", ignore_errors=True)
        if query is aggregated:
            sums = stream(session).groupBy("k").agg(F.count("*"), F.sum("v"))
        else:
            known = session.read.parquet(str(folder / "groups"))
            sums = stream(session).join(known, F.col("k") == F.col("key")).groupBy("g").agg(F.count("*"), F.sum("v"))
        writer = sums.writeStream.outputMode("update").format("noop").trigger(availableNow=True)
        writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
        return timed(lambda: writer.start().awaitTermination()), None

    rows = batch * batches
    for session in (spark, plain):
        session.conf.set("spark.sql.shuffle.partitions", str(shards))
    ways: dict[str, Callable[[Query], tuple[float, Any]]] = {
        "structured streaming": structured,
        "follow": follow,
        "direct": direct,
        "structured streaming, our settings": partial(structured, session=spark),
    }
    for name, query in (("aggregation", aggregated), ("join", joined)):
        seconds: dict[str, list[float]] = {way: [] for way in ways}
        others = Others()
        for _ in range(repetitions):
            answers = []
            for way, run in ways.items():
                taken, answer = run(query)
                seconds[way].append(taken)
                answers.append(answer)
            check(answers[1], answers[2], rows)
        base = rows / median(seconds["structured streaming"])
        for way, laps in seconds.items():
            rate = rows / median(laps)
            yield {
                "phase": "stream", "query": name, "way": way, "batch": batch, "rows": rows, "seconds": median(laps),
                "updates_per_s": rate, "times_sparks_rate": rate / base,
            } | others.figures()  # fmt: skip


def check(followed: pa.Table, direct: pa.Table, rows: int) -> None:
    """Both ways have taken in every row once."""
    name = followed.column_names[0]
    taken = pc.sum(followed["n"]).as_py()
    if taken != rows or not followed.sort_by(name).equals(direct.sort_by(name)):
        raise AssertionError(f"{taken} rows were followed of {rows}, or not as those that were inserted")
