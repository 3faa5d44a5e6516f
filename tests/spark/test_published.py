"""Published views: another process reads them and their changes as a data source; restarts go on where the last run stopped."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import tektite as tk
from tektite.errors import FaultError, IncorrectError
from tektite.storage.manifest import Manifest
from tektite.storage.store import open_store
from tests.support.row_changes import row_changes
from tests.support.spark_files import NOW, read, rows_of

# ---------------------------------------------------------------------- out


def test_published_view_is_a_data_source(spark: SparkSession, tmp_path: Path, people: DataFrame) -> None:
    with tk.Engine(spark=spark, storage=tmp_path / "store", workers=2, autocommit=False) as engine:
        table = engine.create_table("t", {"k": tk.Int, "s": tk.String, "g": tk.Int}, order_by=["k"])
        view = engine.install("n", table.count(by="s"))
        view.persist()
        twice = engine.install("twice", table.select("g").concat(table.select("g")))
        twice.persist()
        table.load(people)
        engine.sync()
        assert rows_of(read(spark, tmp_path / "store", "n")) == Counter(view.rows())
        assert rows_of(read(spark, tmp_path / "store", "twice")) == Counter(twice.rows())
        assert rows_of(read(spark, tmp_path / "store", "t")) == rows_of(people)  # inputs can be read as well
        first = Manifest.open(open_store(tmp_path / "store")).state.version
        table.remove([(0, "n0", 0)])
        engine.advance()
        engine.sync()
        assert rows_of(read(spark, tmp_path / "store", "n")) == Counter(view.rows())
        old = rows_of(read(spark, tmp_path / "store", "n", version=first))
        assert old == rows_of(people.groupBy("s").count())
        changed = rows_of(read(spark, tmp_path / "store", "n", changes="true", startingVersion=first))
        assert changed == Counter([("n0", 50, 1, -1), ("n0", 49, 1, 1)])


def test_view_can_be_read_when_it_has_been_published(spark: SparkSession, tmp_path: Path) -> None:
    def stored() -> list[tuple[Any, ...]]:
        frame = spark.read.format("tektite").option("path", str(tmp_path)).option("view", "doubled").load()
        return [tuple(row) for row in frame.collect()]

    for rows in ([], [(2,)], [(2,), (2,)]):
        with tk.Engine(storage=tmp_path, workers=2) as engine:
            numbers = engine.create_table("numbers", {"n": tk.Int})
            doubled = engine.install("doubled", numbers.select(n=tk.col("n") * 2))
            doubled.persist()
            assert stored() == rows
            numbers.insert([(1,)])
            engine.sync()
            assert stored() == [*rows, (2,)]


def test_every_type_is_read_back_as_spark_wrote_it(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.sql(
        "SELECT 1 AS i, 1.5D AS f, true AS b, date'2024-02-29' AS d, timestamp'2024-07-01 12:00:00.5' AS t, "
        "CAST(12.34 AS decimal(12,2)) AS m, 'Bäume' AS s UNION ALL SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL"
    )
    with tk.Engine(spark=spark, storage=tmp_path / "store", autocommit=False) as engine:
        table = engine.create_table(
            "t",
            {
                "i": tk.Int,
                "f": tk.Float,
                "b": tk.Bool,
                "d": tk.Date,
                "t": tk.Timestamp,
                "m": tk.Decimal(12, 2),
                "s": tk.String,
            },
        )
        view = engine.install("all", table)
        view.persist()
        table.load(frame)
        engine.sync()
        assert rows_of(read(spark, tmp_path / "store", "all")) == rows_of(frame)
        assert rows_of(view.to_spark()) == rows_of(frame)


def test_changes_are_a_stream_that_adds_up_at_every_version(spark: SparkSession, tmp_path: Path) -> None:
    store, out, checkpoint = tmp_path / "store", tmp_path / "out", str(tmp_path / "checkpoint")

    def drain() -> list[Any]:
        stream = spark.readStream.format("tektite").option("path", str(store)).option("view", "n")
        writer = stream.option("changes", "true").load().writeStream.option("checkpointLocation", checkpoint)
        writer.trigger(**NOW).format("parquet").start(str(out)).awaitTermination()
        return spark.read.parquet(str(out)).collect() if list(out.glob("*.parquet")) else []

    with tk.Engine(spark=spark, storage=store, workers=2, autocommit=False) as engine:
        table = engine.create_table("t", {"k": tk.Int, "v": tk.String})
        view = engine.install("n", table.count(by="v"))
        view.persist()
        for number in range(12):
            table.insert([(number, f"v{number % 3}"), (number, "all")])
            if number > 4:
                table.remove([(number - 3, "all")])
            engine.advance()
            if number % 4 == 3:
                engine.sync()
                total: Counter[tuple[Any, ...]] = Counter()
                for *row, _, diff in drain():
                    total[tuple(row)] += diff
                assert {row: n for row, n in total.items() if n} == {row: 1 for row in view.rows()}
    assert len({row.time for row in drain()}) > 1


def test_changes_have_the_times_at_which_they_happened(spark: SparkSession, tmp_path: Path) -> None:
    with tk.Engine(storage=tmp_path / "store", workers=2, autocommit=False) as engine:
        table = engine.create_table("t", {"k": tk.Int, "v": tk.String})
        engine.advance()
        view = engine.install("n", table.count(by="v"))
        view.persist()
        engine.sync()
        start = Manifest.open(open_store(tmp_path / "store")).state.version
        changes = row_changes(view)
        for number in range(200):  # more than become versions of their own
            table.insert([(number, f"v{number % 3}")])
            if number % 5 == 4:
                table.remove([(number - 4, f"v{(number - 4) % 3}")])
            engine.advance()
        expected = Counter((*change.row, change.time, change.diff) for change in changes)
        engine.sync()
    found = rows_of(read(spark, tmp_path / "store", "n", changes="true", startingVersion=start))
    assert found == expected


def test_published_view_goes_on_after_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    versions = []
    for number in range(3):
        with tk.Engine(spark=spark, storage=tmp_path / "store", workers=2, autocommit=False) as engine:
            table = engine.create_table("t", {"k": tk.Int, "v": tk.String})
            view = engine.install("n", table.count(by="v"))
            view.persist()
            table.insert([(number, "x"), (number, f"y{number}")])
            engine.advance()
            engine.sync()
            versions.append(Manifest.open(open_store(tmp_path / "store")).state.version)
            assert rows_of(read(spark, tmp_path / "store", "n")) == Counter(view.rows())
    changed = read(spark, tmp_path / "store", "n", changes="true", startingVersion=versions[1])
    assert rows_of(changed) == Counter([("x", 2, 2, -1), ("x", 3, 2, 1), ("y2", 1, 2, 1)])


def test_view_that_is_defined_anew_tells_the_difference(spark: SparkSession, tmp_path: Path) -> None:
    with tk.Engine(spark=spark, storage=tmp_path / "store", workers=2, autocommit=False) as engine:
        table = engine.create_table("t", {"k": tk.Int, "v": tk.Int})
        table.insert([(k, k * k) for k in range(6)])
        engine.advance()
        engine.install("some", table.filter(tk.col("k") < 4)).persist()
        engine.sync()
        before = Manifest.open(open_store(tmp_path / "store")).state.version
    with tk.Engine(spark=spark, storage=tmp_path / "store", workers=2, autocommit=False) as engine:
        engine.install("some", engine.table("t").filter(tk.col("k") > 2)).persist()
        engine.sync()
    changed = read(spark, tmp_path / "store", "some", changes="true", startingVersion=before).drop("time")
    expected = [(k, k * k, -1) for k in (0, 1, 2)] + [(k, k * k, 1) for k in (4, 5)]
    assert rows_of(changed) == Counter(expected)
    assert rows_of(read(spark, tmp_path / "store", "some")) == Counter((k, k * k) for k in (3, 4, 5))


@pytest.mark.nightly
def test_changes_of_one_engine_are_followed_by_another(spark: SparkSession, tmp_path: Path) -> None:
    """The data source is written in Python, as those of users are."""
    with (
        tk.Engine(spark=spark, storage=tmp_path / "first", workers=2, autocommit=False) as first,
        tk.Engine(spark=spark, storage=tmp_path / "second", autocommit=False) as second,
    ):
        numbers = first.create_table("numbers", {"k": tk.Int})
        counts = first.install("counts", numbers.count(by="k"))
        counts.persist()
        table = second.create_table("t", {"k": tk.Int, "count": tk.Int})
        view = second.install("all", table)
        reader = spark.readStream.format("tektite").option("path", str(tmp_path / "first")).option("view", "counts")
        for number in range(3):
            numbers.insert([(1,), (number,), (1,)])
            first.advance()
            first.sync()
            stream = reader.option("changes", "true").load()
            table.follow(stream, diff="diff", extra="ignore", trigger=NOW).await_termination()
            assert sorted(view.rows()) == sorted(counts.rows())


def test_dropped_view_is_gone(spark: SparkSession, tmp_path: Path) -> None:
    with tk.Engine(spark=spark, storage=tmp_path / "store", autocommit=False) as engine:
        table = engine.create_table("t", {"k": tk.Int})
        view = engine.install("all", table)
        view.persist()
        engine.advance()
        engine.sync()
        engine.drop("all")
        engine.sync()
        with pytest.raises(Exception, match="holds no 'all'; it holds 't'"):
            read(spark, tmp_path / "store", "all")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"view": "t"}, "the option 'path' is missing"),
        pytest.param({"path": "{store}"}, "the option 'view' is missing", marks=pytest.mark.nightly),
        ({"path": "{store}", "view": "nothing"}, "holds no 'nothing'"),
        pytest.param({"path": "{store}/none", "view": "t"}, "not a Tektite storage", marks=pytest.mark.nightly),
        ({"path": "{store}", "view": "t", "version": "new"}, "is the number of a version, not 'new'"),
        pytest.param(
            {"path": "{store}", "view": "t", "colour": "red"}, "no option 'colour'", marks=pytest.mark.nightly
        ),
        pytest.param({"path": "{store}", "view": "t", "changes": "maybe"}, "true or false", marks=pytest.mark.nightly),
        (
            {"path": "{store}", "view": "t", "changes": "true", "startingVersion": "2", "version": "1"},
            "begin behind version 2, which is later than version 1",
        ),
        (
            {"path": "{store}", "view": "t", "leaseSeconds": "a day"},
            "'leaseSeconds' is a number of seconds, not 'a day'",
        ),
    ],
)
def test_options_of_the_data_source_are_checked(
    spark: SparkSession, tmp_path: Path, options: dict[str, str], message: str
) -> None:
    with tk.Engine(storage=tmp_path / "store", autocommit=False) as engine:
        engine.create_table("t", {"k": tk.Int})
        engine.advance()
    reader = spark.read.format("tektite")
    for name, value in options.items():
        reader = reader.option(name, value.format(store=tmp_path / "store"))
    with pytest.raises(Exception, match=message):
        reader.load()


def test_stream_without_changes_says_what_to_add(spark: SparkSession, tmp_path: Path) -> None:
    with tk.Engine(storage=tmp_path / "store", autocommit=False) as engine:
        engine.create_table("t", {"k": tk.Int})
        engine.advance()
    stream = spark.readStream.format("tektite").option("path", str(tmp_path / "store")).option("view", "t").load()
    query = stream.writeStream.format("memory").queryName("none").trigger(**NOW).start()
    with pytest.raises(Exception, match="a stream tells changes"):
        query.awaitTermination()


def test_view_is_published_in_a_storage_only(tmp_path: Path) -> None:
    engine = tk.Engine(autocommit=False)
    view = engine.install("all", engine.create_table("t", {"k": tk.Int}))
    with pytest.raises(IncorrectError, match="this engine has no storage"):
        view.persist()


def test_synchronising_brings_published_views_up_to_date(tmp_path: Path) -> None:
    with tk.Engine(storage=tmp_path, turn=0.0, autocommit=False) as engine:  # no view gets to its end in its turn
        table = engine.create_table("t", {"k": tk.Int})
        for name in ("first", "second", "third"):
            engine.install(name, table.concat(table).join(table, on="k")).persist()
        table.insert([(k,) for k in range(2000)])
        engine.advance()
        engine.sync()
        stored = Manifest.open(open_store(tmp_path)).state
        assert all(stored.lows[name] == 1 for name in ("first", "second", "third"))


def test_columns_that_a_reader_asks_for_are_those_that_are_there(spark: SparkSession, tmp_path: Path) -> None:
    with tk.Engine(storage=tmp_path / "store", autocommit=False) as engine:
        table = engine.create_table("t", {"k": tk.Int, "s": tk.String})
        table.insert([(1, "a")])
        engine.advance()
    reader = spark.read.format("tektite").option("path", str(tmp_path / "store")).option("view", "t")
    assert reader.schema("k long, s string").load().collect() == [(1, "a")]
    for asked in ("k long", "k long, text string"):
        with pytest.raises(Exception, match="asked for struct<.*found struct<k:bigint,s:string>: leave .schema"):
            reader.schema(asked).load().collect()


def test_stored_view_is_a_view_of_sparks_sql(spark: SparkSession, tmp_path: Path) -> None:
    with tk.Engine(storage=tmp_path / "store", autocommit=False) as engine:
        table = engine.create_table("t", {"k": tk.Int})
        table.insert([(1,), (2,)])
        engine.advance()
    spark.sql(f"CREATE TEMPORARY VIEW stored_t USING tektite OPTIONS (path '{tmp_path / 'store'}', view 't')")
    try:
        assert spark.sql("SELECT sum(k) FROM stored_t").collect() == [(3,)]
    finally:
        spark.sql("DROP VIEW stored_t")


def test_lasting_table_is_refused_with_the_reason(spark: SparkSession, tmp_path: Path) -> None:
    """Spark gives a data source in Python no options when it reads a table of its catalog."""
    with tk.Engine(spark=spark, storage=tmp_path / "store", autocommit=False) as engine:
        engine.create_table("t", {"k": tk.Int})
        engine.sync()
    with pytest.raises(Exception, match=r"CREATE TABLE \.\.\. USING tektite cannot be.*CREATE TEMPORARY VIEW"):
        spark.sql(f"CREATE TABLE lasting USING tektite OPTIONS (path '{tmp_path / 'store'}', view 't')")
    assert "lasting" not in [table.name for table in spark.catalog.listTables()]


def test_changes_of_a_view_with_columns_of_their_names_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    with tk.Engine(spark=spark, storage=tmp_path / "store", autocommit=False) as engine:
        table = engine.create_table("t", {"time": tk.Int})
        view = engine.install("all", table)
        table.insert([(1,)])
        engine.advance()
        with pytest.raises(
            FaultError, match="view 'all': its changes cannot be read: .*has a column 'time' of its own"
        ):
            view.write_changes("parquet", str(tmp_path / "out"))
        assert read(spark, tmp_path / "store", "all").collect() == [(1,)]


@pytest.mark.parametrize(
    ("form", "path", "message"),
    [
        ("parqet", "out", r"its changes cannot be written as 'parqet': \[DATA_SOURCE_NOT_FOUND\]"),
        ("parquet", None, "its changes cannot be written as 'parquet': 'path' is not specified"),
    ],
)
def test_sink_that_cannot_start_is_named(
    spark: SparkSession, tmp_path: Path, form: str, path: str | None, message: str
) -> None:
    with tk.Engine(spark=spark, storage=tmp_path / "store", autocommit=False) as engine:
        view = engine.install("all", engine.create_table("t", {"k": tk.Int}))
        engine.advance()
        with pytest.raises(FaultError, match=message):
            view.write_changes(form, None if path is None else str(tmp_path / path))
