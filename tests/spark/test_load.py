"""DataFrames become epochs: every type by the engine's own rules, all rows or none."""

from __future__ import annotations

import datetime as dt
import signal
import threading
import time
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import tektite as tk
from tektite.errors import ConflictError, FaultError, IncorrectError
from tektite.spark.encoded import collect
from tektite.spark.feed import Feed
from tektite.values.dictionary import Dictionary
from tektite.values.schema import Schema
from tests.support.patience import until

UTC = dt.UTC
INT64 = 2**63 - 1

# type, Spark's type, SQL texts of values, the Python values whose words they must have
TYPES: dict[str, tuple[tk.Type, str, list[str], list[Any]]] = {
    "byte": (tk.Int, "tinyint", ["127", "-128", "NULL"], [127, -128, None]),
    "short": (tk.Int, "smallint", ["32767", "-1", "NULL"], [32767, -1, None]),
    "int": (tk.Int, "int", ["2147483647", "0", "NULL"], [2147483647, 0, None]),
    "long": (tk.Int, "bigint", [str(INT64), str(-INT64), "NULL"], [INT64, -INT64, None]),
    "float": (tk.Float, "float", ["1.5", "'-Infinity'", "'NaN'", "NULL"], [1.5, -np.inf, np.nan, None]),
    "double": (tk.Float, "double", ["0.1", "-0.0d", "'Infinity'", "NULL"], [0.1, -0.0, np.inf, None]),
    "bool": (tk.Bool, "boolean", ["true", "false", "NULL"], [True, False, None]),
    "date": (
        tk.Date, "date", ["'1969-12-31'", "'2024-02-29'", "'0001-01-01'", "NULL"],
        [dt.date(1969, 12, 31), dt.date(2024, 2, 29), dt.date(1, 1, 1), None],
    ),
    "moment": (
        tk.Timestamp, "timestamp", ["'2024-07-01 12:00:00.123456'", "'1950-01-01 00:00:00'", "NULL"],
        [dt.datetime(2024, 7, 1, 16, 0, 0, 123456), dt.datetime(1950, 1, 1, 5), None],
    ),
    "wall clock": (
        tk.Timestamp, "timestamp_ntz", ["'2024-07-01 12:00:00.123456'", "'1950-01-01 00:00:00'", "NULL"],
        [dt.datetime(2024, 7, 1, 12, 0, 0, 123456), dt.datetime(1950, 1, 1), None],
    ),
    "decimal": (
        tk.Decimal(12, 2), "decimal(12,2)", ["1234567890.12", "-0.01", "NULL"],
        [Decimal("1234567890.12"), Decimal("-0.01"), None],
    ),
    "narrow decimal": (
        tk.Decimal(18, 4), "decimal(5,1)", ["1234.5", "-0.1", "NULL"], [Decimal("1234.5"), Decimal("-0.1"), None],
    ),
    "string": (
        tk.String, "string", ["'ash'", "''", "'Bäume \U0001f332'", "repeat('x', 5000)", "NULL"],
        ["ash", "", "Bäume \U0001f332", "x" * 5000, None],
    ),
}  # fmt: skip


def frame_of(spark: SparkSession, sql_type: str, texts: list[str]) -> DataFrame:
    rows = " UNION ALL ".join(f"SELECT {i} AS id, CAST({text} AS {sql_type}) AS v" for i, text in enumerate(texts))
    return spark.sql(rows)


@pytest.mark.parametrize("kind", TYPES)
def test_tasks_give_the_words_that_the_engine_gives(spark: SparkSession, kind: str) -> None:
    type, sql_type, texts, values = TYPES[kind]
    schema = Schema(id=tk.Int, v=type)
    dictionary, ours = Dictionary(), Dictionary()
    found = collect(Feed("t", schema), frame_of(spark, sql_type, texts), dictionary)
    expected = schema.encode({"id": list(range(len(values))), "v": values}, ours)
    *words, diffs = found.whole[:, np.argsort(found.whole[0])].tolist()
    assert words == expected.tolist()
    assert diffs == [1] * len(values)
    assert sorted(dictionary.since()[0].to_pylist()) == sorted(ours.since()[0].to_pylist())


@pytest.mark.parametrize("zone", ["UTC", "Asia/Kathmandu", "America/New_York"])
def test_moments_do_not_depend_on_the_time_zone_of_the_session(spark: SparkSession, zone: str) -> None:
    derived = spark.newSession()
    derived.conf.set("spark.sql.session.timeZone", zone)
    frame = derived.sql("SELECT timestamp'2024-07-01 12:00:00+00:00' AS v, timestamp_ntz'2024-07-01 12:00:00' AS w")
    found = collect(Feed("t", Schema(v=tk.Timestamp, w=tk.Timestamp)), frame, Dictionary())
    assert found.whole[:, 0].tolist() == [1719835200_000000] * 2 + [1]


def test_loaded_rows_come_back_as_they_were(spark: SparkSession) -> None:
    columns = ", ".join(f"CAST({texts[0]} AS {sql}) AS c{i}" for i, (_, sql, texts, _) in enumerate(TYPES.values()))
    frame = spark.sql(f"SELECT {columns} UNION ALL SELECT {', '.join(['NULL'] * len(TYPES))}")
    engine = tk.Engine(autocommit=False)
    table = engine.create_table("t", {f"c{i}": type for i, (type, *_) in enumerate(TYPES.values())})
    view = engine.install("all", table)
    assert table.load(frame) == 2
    back = view.to_spark(spark)
    wall_clock = list(TYPES).index("wall clock")
    kept = [f"c{i}" for i in range(len(TYPES)) if i != wall_clock]
    assert Counter(back.select(kept).collect()) == Counter(frame.select(kept).collect())
    assert engine.next_epoch == 1


@pytest.mark.parametrize("workers", [1, 2])
def test_views_equal_sparks_own_answer(spark: SparkSession, workers: int) -> None:
    frame = spark.range(0, 20000, 1, 5).select(
        (F.col("id") % 97).alias("k"), F.concat(F.lit("n"), F.col("id") % 1009).alias("s"), F.col("id").alias("v")
    )
    engine = tk.Engine(workers, autocommit=False)
    table = engine.create_table("t", {"k": tk.Int, "s": tk.String, "v": tk.Int})
    view = engine.install("sums", table.group_by("k").agg(total=tk.sum("v"), n=tk.count()))
    assert table.load(frame) == 20000
    expected = frame.groupBy("k").agg(F.sum("v").cast("long"), F.count("*"))
    assert {tuple(map(int, row)) for row in view.rows()} == {tuple(row) for row in expected.collect()}


def changes(spark: SparkSession, rows: list[tuple[Any, ...]], columns: str) -> DataFrame:
    return spark.createDataFrame(rows, columns)


def test_diff_column_says_how_often_a_row_counts(spark: SparkSession) -> None:
    engine = tk.Engine(autocommit=False)
    table = engine.create_table("t", {"k": tk.Int})
    view = engine.install("all", table)
    table.load(changes(spark, [(1, 2), (2, 1), (3, 0)], "k int, d int"), diff="d")
    table.load(changes(spark, [(1, -1), (2, -1)], "k int, d int"), diff="d")
    assert view.multiplicities() == {(1,): 1}


@pytest.mark.parametrize(
    ("semantics", "key"), [("bag", ()), ("set", ()), ("upsert", ("k",))], ids=["bag", "set", "upsert"]
)
def test_change_feed_with_both_images_of_an_update(spark: SparkSession, semantics: str, key: tuple[str, ...]) -> None:
    engine = tk.Engine(autocommit=False)
    table = engine.create_table("t", {"k": tk.Int, "v": tk.String}, mode=semantics, primary_key=key)
    view = engine.install("all", table)
    schema = "k int, v string, _change_type string"
    table.load(changes(spark, [(1, "a", "insert"), (2, "b", "insert")], schema), operation="_change_type")
    later = [(1, "a", "update_preimage"), (1, "c", "update_postimage"), (2, "b", "delete")]
    table.load(changes(spark, later, schema), operation="_change_type")
    assert view.multiplicities() == {(1, "c"): 1}


def test_upserts_count_in_the_order_of_their_order_column(spark: SparkSession) -> None:
    engine = tk.Engine(autocommit=False)
    table = engine.create_table("t", {"k": tk.Int, "v": tk.String}, mode="upsert", primary_key=["k"])
    view = engine.install("all", table)
    rows = [(1, "late", "u", 9), (1, "early", "c", 1), (2, "gone", "d", 7), (2, "there", "c", 3)]
    table.load(changes(spark, rows, "k int, v string, op string, seq long"), operation="op", order="seq")
    assert view.multiplicities() == {(1, "late"): 1}


def test_rows_of_one_key_without_an_order_are_refused(spark: SparkSession) -> None:
    engine = tk.Engine(autocommit=False)
    table = engine.create_table("t", {"k": tk.String, "v": tk.Int}, mode="upsert", primary_key=["k"])
    with pytest.raises(IncorrectError, match=r"several rows for k = 'x' .* order='\.\.\.'"):
        table.load(changes(spark, [("x", 1), ("x", 2), ("y", 1)], "k string, v int"))
    assert engine.next_epoch == 0 and table.pending == 0


BAD_FRAMES = {
    "missing column": ("SELECT 1 AS k", {}, r"table 't': missing column 'v': .*columns are: k"),
    "unknown column": ("SELECT 1 AS k, 'a' AS v, 2 AS w", {}, r"unknown column 'w'.*extra='ignore'"),
    "wrong type": ("SELECT 'one' AS k, 'a' AS v", {}, r"column 'k': expected int, found string"),
    "text wanted": ("SELECT 1 AS k, 2 AS v", {}, r"column 'v': expected string, found int32"),
    "nested": ("SELECT 1 AS k, struct(1) AS v", {}, r"column 'v': expected string, found struct"),
    "interval": ("SELECT 1 AS k, interval 1 month AS v", {}, "type that no value here has"),
    "repeated column": ("SELECT 1 AS k, 'a' AS v, 'b' AS v", {}, "column 'v' twice"),
    "missing diff": ("SELECT 1 AS k, 'a' AS v", {"diff": "d"}, "missing the diff column 'd'"),
    "diff of text": ("SELECT 1 AS k, 'a' AS v, 'x' AS d", {"diff": "d"}, "column 'd': expected int"),
    "operation of numbers": ("SELECT 1 AS k, 'a' AS v, 1 AS o", {"operation": "o"}, "column 'o': expected string"),
    "unknown operation": ("SELECT 1 AS k, 'a' AS v, 'zap' AS o", {"operation": "o"}, "found 'zap'; an operation is"),
    "update of a bag": ("SELECT 1 AS k, 'a' AS v, 'u' AS o", {"operation": "o"}, "update without its old row needs"),
    "null diff": ("SELECT 1 AS k, 'a' AS v, CAST(NULL AS int) AS d", {"diff": "d"}, "'d' holds a NULL"),
    "null position": ("SELECT 1 AS k, 'a' AS v, CAST(NULL AS int) AS p", {"position": "p"}, "'p' holds a NULL"),
    "position of text": ("SELECT 1 AS k, 'a' AS v, 'x' AS p", {"position": "p"}, "expected whole numbers or moments"),
    "both": ("SELECT 1 AS k, 'a' AS v, 1 AS d", {"diff": "d", "operation": "d"}, "not both"),
}


@pytest.mark.parametrize("case", BAD_FRAMES)
def test_bad_frame_is_refused_and_changes_nothing(spark: SparkSession, case: str) -> None:
    query, options, message = BAD_FRAMES[case]
    engine = tk.Engine(autocommit=False)
    table = engine.create_table("t", {"k": tk.Int, "v": tk.String})
    table.insert([(7, "kept")])
    with pytest.raises(IncorrectError, match=message):
        table.load(spark.sql(query), **options)
    assert engine.next_epoch == 0 and table.pending == 1


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT CAST(NULL AS string) AS k, 1 AS v", "key column 'k' holds a NULL"),
        ("SELECT 'a' AS k, CAST(-9223372036854775808 AS bigint) AS v", "reserved for NULL"),
        ("SELECT CAST(X'FF41' AS string) AS k, 1 AS v", "'k' has bytes that are not UTF-8 text.*make_valid_utf8"),
    ],
)
def test_bad_value_is_named_and_changes_nothing(spark: SparkSession, query: str, message: str) -> None:
    engine = tk.Engine(autocommit=False)
    table = engine.create_table("t", {"k": tk.String, "v": tk.Int}, mode="upsert", primary_key=["k"])
    with pytest.raises(IncorrectError, match=message):
        table.load(spark.sql(query))
    assert engine.next_epoch == 0 and table.pending == 0


def test_removal_of_a_row_that_is_not_there_changes_nothing(spark: SparkSession) -> None:
    engine = tk.Engine(autocommit=False)
    table = engine.create_table("t", {"k": tk.Int})
    table.insert([(1,)])
    with pytest.raises(IncorrectError, match="negative number of times"):
        table.load(changes(spark, [(5, -1)], "k int, d int"), diff="d")
    assert engine.next_epoch == 0 and table.pending == 1


def test_stream_is_no_table(spark: SparkSession) -> None:
    stream = spark.readStream.format("rate").load().select(F.col("value").alias("k"))
    with pytest.raises(IncorrectError, match="use follow"):
        tk.Engine(autocommit=False).create_table("t", {"k": tk.Int}).load(stream)


def test_what_is_no_frame_is_refused() -> None:
    with pytest.raises(IncorrectError, match="expected a Spark DataFrame, found builtins.list: .*insert"):
        tk.Engine(autocommit=False).create_table("t", {"k": tk.Int}).load([(1,)])  # type: ignore[arg-type]


def test_extra_columns_can_be_ignored(spark: SparkSession) -> None:
    engine = tk.Engine(autocommit=False)
    table = engine.create_table("t", {"k": tk.Int})
    assert table.load(spark.sql("SELECT 1 AS k, array(1) AS w"), extra="ignore") == 1
    strange = spark.sql("SELECT 2 AS k, map(1, 'a') AS `a.b`, 3 AS `back``tick`")
    assert table.load(strange, extra="ignore") == 1


def test_load_named_once_happens_once(spark: SparkSession) -> None:
    engine = tk.Engine(autocommit=False)
    table = engine.create_table("t", {"k": tk.Int})
    frame = changes(spark, [(1,), (2,)], "k int")
    assert [table.load(frame, once="history"), table.load(frame, once="history"), table.load(frame, once="x")] == [
        2,
        0,
        2,
    ]


def test_load_goes_on_from_its_position(spark: SparkSession) -> None:
    engine = tk.Engine(autocommit=False)
    table = engine.create_table("t", {"k": tk.Int})
    view = engine.install("all", table)
    rows = [(10 * p, p) for p in range(6)]
    frame = changes(spark, rows, "k int, p long")
    assert table.load(frame, position="p", upto=2) == 3
    assert table.load(frame, position="p", upto=2) == 0
    assert table.load(frame, position="p") == 3
    assert sorted(view.rows()) == [(k,) for k, _ in rows]
    with pytest.raises(ConflictError, match="column 'p', not of 'k'"):
        table.load(frame, position="k", extra="ignore")


def test_position_may_be_a_moment(spark: SparkSession) -> None:
    engine = tk.Engine(autocommit=False)
    table = engine.create_table("t", {"k": tk.Int})
    frame = spark.sql(
        "SELECT 1 AS k, timestamp'2024-01-01 00:00:00+00:00' AS p UNION ALL SELECT 2, timestamp'2024-01-02 00:00:00+00:00'"
    )
    assert table.load(frame, position="p", upto=dt.datetime(2024, 1, 1, tzinfo=UTC)) == 1
    assert table.load(frame, position="p") == 1


def test_column_that_positions_may_belong_to_the_input(spark: SparkSession) -> None:
    engine = tk.Engine(autocommit=False)
    table = engine.create_table("t", {"k": tk.Int})
    frame = changes(spark, [(1,), (2,)], "k int")
    assert [table.load(frame, position="k"), table.load(frame, position="k")] == [2, 0]


def test_progress_is_reported_until_all_is_done(spark: SparkSession) -> None:
    seen: list[tuple[int, int]] = []
    table = tk.Engine(autocommit=False).create_table("t", {"id": tk.Int})
    table.load(spark.range(0, 1000, 1, 4), progress=lambda done, total: seen.append((done, total)))
    assert seen and seen[-1][0] == seen[-1][1]


def test_many_partitions_with_few_distinct_texts(spark: SparkSession) -> None:
    engine = tk.Engine(autocommit=False)
    table = engine.create_table("t", {"s": tk.String})
    view = engine.install("n", table.count(by="s"))
    table.load(spark.range(0, 3000, 1, 7).select(F.concat(F.lit("s"), F.col("id") % 3).alias("s")))
    assert sorted(view.rows()) == [("s0", 1000), ("s1", 1000), ("s2", 1000)]
    assert pa.types.is_string(view.snapshot().schema.field("s").type)


def test_a_small_data_frame_is_inserted_and_makes_a_table(spark: SparkSession) -> None:
    """Spark's Arrow stream ends with an error where there are timestamps."""
    frame = spark.sql("SELECT id, timestamp_seconds(id) AS at, CAST(id AS decimal(9, 2)) AS price FROM range(3)")
    with tk.Engine() as engine:
        made = engine.create_table("made", frame)
        assert made.schema.types == (tk.Int, tk.TimestampTz, tk.Decimal(9, 2))
        made.insert(frame.limit(1))
        assert sorted(row[0] for row in made.rows()) == [0, 0, 1, 2]
        with pytest.raises(tk.IncorrectError, match="to_arrow_schema"):
            engine.create_table("other", frame.schema)


def test_tables_and_views_are_frames_of_the_session_that_the_engine_was_given(spark: SparkSession) -> None:
    with tk.Engine(spark=spark) as engine:
        assert engine.spark is spark
        table = engine.create_table("t", {"k": tk.Int, "s": tk.Struct({"a": tk.Int})})
        table.insert([(1, {"a": 2})])
        table.to_spark().createOrReplaceTempView("t_of_tektite")
        assert spark.sql("SELECT k, s.a FROM t_of_tektite").collect() == [(1, 2)]
        spark.catalog.dropTempView("t_of_tektite")
        with pytest.raises(AttributeError, match=r"create_view\(name, query\)\.to_spark\(\)"):
            table.select("k").to_spark()  # type: ignore[attr-defined]
        stream: Any = spark.readStream.format("rate").load()
        with pytest.raises(tk.IncorrectError, match="use follow"):
            table.load(stream)


@pytest.mark.parametrize("stored", [False, True], ids=["driver", "tasks"])
def test_columns_may_have_any_name(spark: SparkSession, tmp_path: Path, stored: bool) -> None:
    """Dots, which a header of a CSV file may have, and what quotes names."""
    with tk.Engine(spark=spark, storage=tmp_path / "store" if stored else None, autocommit=False) as engine:
        table = engine.create_table("t", {"a.b": tk.Int, "c`d": tk.String})
        view = engine.install("all", table)
        frame = spark.createDataFrame([(1, "x", 0, 1)], "`a.b` int, `c``d` string, `e.f` int, `n.o` int")
        table.load(frame.select("`a.b`", "`c``d`"))
        table.load(frame, extra="ignore", diff="n.o")
        assert view.multiplicities() == {(1, "x"): 2}
        assert view.to_spark().collect() == [(1, "x")] * 2


def test_what_spark_says_of_a_bad_value_is_passed_on(spark: SparkSession) -> None:
    table = tk.Engine(autocommit=False).create_table("t", {"k": tk.Int})
    frame = spark.createDataFrame([("x",)], "s string").selectExpr("CAST(s AS int) AS k")
    with pytest.raises(FaultError, match=r"nothing counts: \[CAST_INVALID_INPUT\] The value 'x'"):
        table.load(frame)


def test_interrupted_load_leaves_no_job_and_no_row(spark: SparkSession, tmp_path: Path) -> None:
    """Ctrl-C while the driver waits for tasks."""
    with tk.Engine(spark=spark, storage=tmp_path / "store", workers=2, autocommit=False) as engine:
        table = engine.create_table("t", {"k": tk.Int})
        view = engine.install("all", table)
        slow = F.udf(lambda number: (__import__("time").sleep(1), number)[1], "long")
        tracker = spark.sparkContext.statusTracker()
        main = threading.main_thread().ident
        assert main is not None

        def interrupt() -> None:
            while not tracker.getActiveJobsIds():
                time.sleep(0.05)
            signal.pthread_kill(main, signal.SIGINT)

        threading.Thread(target=interrupt, daemon=True).start()
        with pytest.raises(KeyboardInterrupt):
            table.load(spark.range(0, 120, 1, 2).select(slow("id").alias("k")))
        until(lambda: not tracker.getActiveJobsIds())
        assert table.load(spark.range(3).selectExpr("id AS k")) == 3
        assert sorted(view.rows()) == [(0,), (1,), (2,)] and engine.next_epoch == 1


@pytest.mark.parametrize("stored", [False, True])
def test_loads_keep_unique_columns_and_checks(spark: SparkSession, tmp_path: Path, stored: bool) -> None:
    with tk.Engine(**({"storage": tmp_path} if stored else {})) as engine:
        table = engine.create_table("t", {"id": tk.Int, "s": tk.String}, unique="s", checks=tk.col("s") != "no")
        table.insert([(1, "a")])
        for rows, message in (
            ([(2, "no")], "breaks CHECK"),
            ([(2, "a")], "two rows with s = 'a'"),
            ([(2, "b"), (3, "b")], "two rows with s = 'b'"),
        ):
            with pytest.raises(ConflictError, match=message):
                table.load(spark.createDataFrame(rows, "id bigint, s string"))
        assert table.rows() == [(1, "a")]
        table.load(spark.createDataFrame([(2, "b"), (3, None), (4, None)], "id bigint, s string"))
        assert len(table.rows()) == 4


@pytest.mark.parametrize("type", ["interval", "interval[]"])
def test_types_that_spark_does_not_have_are_refused(spark: SparkSession, type: str) -> None:
    engine = tk.Engine()
    engine.sql(f"CREATE TABLE t (v {type})")
    view = engine.install("all", engine.table("t"))
    with pytest.raises(tk.UnsupportedError, match="column 'v': Spark has no type for"):
        view.to_spark(spark)
