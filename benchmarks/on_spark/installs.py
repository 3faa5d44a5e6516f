"""New queries on arrangements that are loaded, until their first answer; Spark SQL answers the same from its files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

import tektite as tk
from benchmarks.measure import Others, memory
from benchmarks.on_spark.common import Counted, Place, Record, answered, loaded, pair, tables

if TYPE_CHECKING:
    pass

LOOKED_UP = 100
FED = 1_000


def installs(place: Place, scale: float, repetitions: int) -> Iterator[Record]:
    """A look-up join of 100 keys, a join fed by a stream of 1,000 rows, and an aggregation of a join of everything."""
    from pyspark.sql import functions as F

    spark, folder = place.spark, place.folder
    frames = tables(spark, scale)
    with place.engine("installs") as engine:
        loaded(engine, {name: frames[name] for name in ("orders", "lineitem")})
        picked = [row.l_orderkey for row in frames["lineitem"].select("l_orderkey").distinct().limit(FED).collect()]
        wanted = engine.create_table("wanted", {"o_orderkey": tk.Int})
        wanted.insert([(key,) for key in picked[:LOOKED_UP]])
        clicks = engine.create_table("clicks", {"clicked": tk.Int, "n": tk.Int}, mode="stream")
        engine.advance()
        orders, lineitem = engine.table("orders"), engine.table("lineitem")
        fed = [(key, number) for number, key in enumerate(picked)]
        spark.createDataFrame(fed, "clicked long, n long").write.parquet(str(folder / "fed"))
        fed_frame = spark.read.parquet(str(folder / "fed"))

        def look_up() -> pa.Table:
            found = wanted.join(lineitem, left_on="o_orderkey", right_on="l_orderkey")
            return engine.install("measured", found.select("o_orderkey", "l_linenumber", "l_quantity")).snapshot()

        def stream_fed() -> pa.Table:
            joined = clicks.join(orders, left_on="clicked", right_on="o_orderkey")
            view = engine.install("measured", joined.group_by("o_orderpriority").agg(rows=tk.count(), sum=tk.sum("n")))
            clicks.insert(fed)
            engine.advance()
            return view.snapshot()

        def over_history() -> pa.Table:
            joined = lineitem.join(orders, left_on="l_orderkey", right_on="o_orderkey")
            grouped = joined.group_by("o_orderpriority").agg(rows=tk.count(), sum=tk.sum("l_quantity"))
            return engine.install("measured", grouped).snapshot()

        def look_up_spark() -> list[Any]:
            found = frames["lineitem"].where(F.col("l_orderkey").isin(picked[:LOOKED_UP]))
            return found.select("l_orderkey", "l_linenumber", "l_quantity").collect()

        def stream_fed_spark() -> list[Any]:
            joined = fed_frame.join(frames["orders"], F.col("clicked") == F.col("o_orderkey"))
            return joined.groupBy("o_orderpriority").agg(F.count("*"), F.sum("n")).collect()

        def over_history_spark() -> list[Any]:
            joined = frames["lineitem"].join(frames["orders"], F.col("l_orderkey") == F.col("o_orderkey"))
            return joined.groupBy("o_orderpriority").agg(F.count("*"), F.sum("l_quantity")).collect()

        queries: list[tuple[str, Callable[[], pa.Table], Callable[[], list[Any]]]] = [
            ("look-up", look_up, look_up_spark),
            ("stream-fed", stream_fed, stream_fed_spark),
            ("over history", over_history, over_history_spark),
        ]
        for name, ours, theirs in queries:
            our_seconds, their_seconds, counts = [], [], []
            others = Others()
            for _ in range(repetitions):
                counted = Counted(spark)
                seconds, answer = answered(ours)
                our_seconds.append(seconds)
                counts.append(counted.figures())
                engine.drop("measured")
                seconds, their_answer = answered(theirs)
                their_seconds.append(seconds)
                if sorted_rows(answer) != sorted(map(tuple, their_answer)):
                    raise AssertionError(f"{name}: our answer is not Spark's")
            record = {"phase": "install", "SF": scale, "query": name} | pair(our_seconds, their_seconds)
            record |= {figure: sum(found[figure] for found in counts) for figure in counts[0]}
            yield record | memory() | others.figures()


def sorted_rows(table: pa.Table) -> list[tuple[Any, ...]]:
    """The rows of an answer, to compare it with another."""
    return sorted(zip(*(column.to_pylist() for column in table.columns), strict=True))
