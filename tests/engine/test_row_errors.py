"""Errors are rows: a read fails exactly while a row fails that it depends on, and works again when the row is gone."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import tektite as tk
from tektite.engine.core import core_of
from tests.support.executors import make_engine
from tests.support.row_changes import row_changes

pytestmark = pytest.mark.executors("stages")

MOST = 2**63 - 1


def texts(**options: Any) -> tuple[tk.Engine, tk.Table]:
    engine = make_engine(**options)
    return engine, engine.create_table("s", {"x": tk.String})


def number(name: str = "x") -> tk.Expr:
    return tk.col(name).cast(tk.Int)


def change(engine: tk.Engine, source: tk.Table, *rows: tuple[Any, ...], gone: tuple[tuple[Any, ...], ...] = ()) -> None:
    source.insert(list(rows))
    source.remove(list(gone))
    engine.advance()


def fails(view: tk.View, message: str, kind: type[tk.TektiteError] = tk.IncorrectError) -> None:
    """Every way to read a view fails with a message, and the view says so."""
    reads: list[Callable[[], Any]] = [view.rows, view.snapshot, view.multiplicities]
    for read in reads:
        with pytest.raises(kind, match=message):
            read()
    assert view.failure is None
    assert isinstance(view.error, kind)


# -- the examples of the issue --------------------------------------------------------------------------------------------


def test_a_row_that_is_deleted_fails_nobody_whether_it_is_merged_away_or_not() -> None:
    engine = make_engine(merging="lazy")
    engine.sql("CREATE TABLE s (x text)")
    engine.sql("INSERT INTO s VALUES ('1'), ('bad')")
    with pytest.raises(tk.IncorrectError, match="found 'bad'"):
        engine.sql("SELECT x::int FROM s")
    engine.sql("DELETE FROM s WHERE x = 'bad'")
    assert engine.sql("SELECT x::int FROM s").rows() == [(1,)]
    engine.sql("CREATE MATERIALIZED VIEW v AS SELECT x::int AS y FROM s")
    assert engine.view("v").rows() == [(1,)]


def test_a_scalar_subquery_fails_only_while_it_has_two_rows() -> None:
    engine = make_engine()
    engine.sql("CREATE TABLE a (x int); CREATE TABLE b (y int)")
    engine.sql("INSERT INTO a VALUES (1); INSERT INTO b VALUES (10), (20)")
    engine.sql("CREATE MATERIALIZED VIEW v AS SELECT y, (SELECT x FROM a) AS x FROM b")
    view = engine.view("v")
    assert sorted(view.rows()) == [(10, 1), (20, 1)]
    engine.sql("INSERT INTO a VALUES (2)")
    fails(view, "view 'v': a subquery that is used as a value gives more than one row")
    engine.sql("INSERT INTO b VALUES (30)")
    fails(view, "more than one row")
    engine.sql("DELETE FROM a WHERE x = 1")
    assert sorted(view.rows()) == [(10, 2), (20, 2), (30, 2)]
    assert view.error is None


@pytest.mark.parametrize(
    "query",
    [
        "SELECT x FROM (SELECT b::int AS x FROM s WHERE b <> '*') q WHERE x > 3",
        "SELECT b::int AS x FROM s WHERE b <> '*' AND b::int > 3",
        "SELECT b::int AS x FROM s WHERE b::int > 3 AND b <> '*'",
        "SELECT b::int AS x FROM s WHERE NOT (b = '*' OR b::int <= 3)",
        "SELECT b::int AS x FROM s WHERE CASE WHEN b <> '*' THEN b::int > 3 END",
        "SELECT try_cast(b AS int) AS x FROM s WHERE try_cast(b AS int) > 3",
        "SELECT s.b::int AS x FROM s, t WHERE s.b = t.b AND s.b::int > 3",
        "SELECT s.b::int AS x FROM s JOIN t ON s.b = t.b WHERE s.b::int + t.n > 3",
        "SELECT b::int AS x FROM s WHERE b IN (SELECT b FROM t) AND b::int > 3",
        "SELECT b::int AS x FROM (SELECT b FROM s GROUP BY b HAVING count(*) = 1) q WHERE b::int > 3",
    ],
)
def test_what_a_filter_removes_fails_nobody(query: str) -> None:
    engine = make_engine()
    engine.sql("CREATE TABLE s (b text); CREATE TABLE t (b text, n int)")
    engine.sql("INSERT INTO s VALUES ('*'), ('*'), ('5'), ('2'); INSERT INTO t VALUES ('5', 1), ('2', 1)")
    assert engine.sql(query).rows() == [(5,)]
    engine.sql(f"CREATE MATERIALIZED VIEW v AS {query}")
    engine.sql("INSERT INTO s VALUES ('*')")
    assert engine.view("v").rows() == [(5,)]


def test_show_views_counts_rows_and_says_what_fails(caplog: pytest.LogCaptureFixture) -> None:
    engine = make_engine()
    engine.sql("CREATE TABLE s (x text); INSERT INTO s VALUES ('1'), ('2')")
    engine.sql("CREATE MATERIALIZED VIEW v AS SELECT x::int AS y FROM s")
    engine.sql("CREATE MATERIALIZED VIEW w AS SELECT x FROM s")

    def explode(delta: tk.Delta) -> None:
        raise RuntimeError("boom")

    engine.view("w").subscribe(explode)
    engine.sql("INSERT INTO s VALUES ('3')")
    shown = engine.sql("SHOW VIEWS").table.to_pylist()
    assert shown == [
        {"name": "v", "kind": "materialized", "rows": 3, "error": None},
        {"name": "w", "kind": "materialized", "rows": 3, "error": None},
    ]
    engine.sql("INSERT INTO s VALUES ('bad')")
    engine.sql("DELETE FROM s WHERE x = '1'")
    of_v, of_w = engine.sql("SHOW VIEWS").table.to_pylist()
    assert of_v["rows"] == 2 and "found 'bad'" in of_v["error"]
    assert of_w["rows"] == 3 and of_w["error"] is None


# -- what fails, and who notices -----------------------------------------------------------------------------------------


def test_the_error_names_the_view_the_expression_the_row_and_how_many_more_fail() -> None:
    engine = make_engine()
    source = engine.create_table("s", {"k": tk.Int, "x": tk.String})
    view = engine.install("v", source.select("k", y=number()))
    change(engine, source, (7, "bad"))
    fails(
        view,
        re.escape(
            "view 'v': x.cast(int): text does not say such a value: int, found 'bad', in the row (k = 7, x = 'bad')"
        ),
    )
    change(engine, source, (8, "worse"), (9, "worst"))
    fails(view, "2 more fail")


def test_views_that_do_not_depend_on_the_row_never_notice() -> None:
    engine, source = texts()
    kept = source.filter(tk.col("x") != "bad")
    good = engine.install("good", kept.select(y=number()))
    bad = engine.install("bad", source.select(y=number()))
    change(engine, source, ("1",), ("bad",))
    assert good.rows() == [(1,)]
    fails(bad, "found 'bad'")
    change(engine, source, ("2",))
    assert sorted(good.rows()) == [(1,), (2,)]
    change(engine, source, gone=(("bad",),))
    assert sorted(bad.rows()) == [(1,), (2,)]


def test_views_of_one_dataflow_fail_apart() -> None:
    engine, source = texts()
    other = engine.create_table("other", {"z": tk.String})
    one, two, both = core_of(engine).install_together(
        {
            "one": source.select(y=number()),
            "two": other.select(y=number("z")),
            "both": source.select(y=number()).concat(other.select(y=number("z"))),
        }
    )
    source.insert([("1",), ("bad",)])
    other.insert([("2",)])
    engine.advance()
    assert two.rows() == [(2,)]
    fails(one, "'bad'")
    fails(both, "'bad'")
    change(engine, source, gone=(("bad",),))
    assert one.rows() == [(1,)]
    assert sorted(both.rows()) == [(1,), (2,)]


def test_what_reads_a_view_with_an_error_fails_too_and_says_where_it_comes_from() -> None:
    engine, source = texts()
    first = engine.install("first", source.select(y=number()))
    second = engine.install("second", first.group_by().agg(n=tk.count()))
    change(engine, source, ("1",), ("bad",))
    fails(second, "view 'second': in 'first', which it reads: .*found 'bad'")
    third = engine.install("third", first.filter(tk.col("y") > 0))
    fails(third, "in 'first'")
    change(engine, source, gone=(("bad",),))
    assert second.rows() == [(1,)]
    assert third.rows() == [(1,)]


def test_a_shared_arrangement_carries_its_errors_to_all_its_readers() -> None:
    engine, source = texts()
    parsed = source.select(y=number(), x="x").index_by("y")
    views = [engine.install(f"v{i}", parsed.join(parsed, on="y").select("y")) for i in range(2)]
    change(engine, source, ("1",), ("bad",))
    for view in views:
        fails(view, "found 'bad'")
    change(engine, source, gone=(("bad",),))
    for view in views:
        assert view.rows() == [(1,)]


@pytest.mark.executors(spark=["3"])
@pytest.mark.parametrize("shards", [1, 3])
def test_errors_of_many_rows_are_found_and_go(shards: int) -> None:
    engine, source = texts(workers=shards)
    view = engine.install("v", source.select(y=number()).group_by().agg(n=tk.count(), s=tk.sum("y")))
    rows = [(f"{i}",) if i % 3 else (f"no {i}",) for i in range(5000)]
    change(engine, source, *rows)
    fails(view, "1666 more fail")
    bad = tuple(row for row in rows if row[0].startswith("no"))
    change(engine, source, gone=bad[1:])
    with pytest.raises(tk.IncorrectError, match=r"found 'no \d+'") as error:
        view.rows()
    assert "more" not in str(error.value)
    change(engine, source, gone=bad[:1])
    assert view.rows() == [(3333, sum(i for i in range(5000) if i % 3))]


def test_earlier_times_fail_or_answer_as_they_did() -> None:
    engine, source = texts()
    first = engine.install("first", source.select(y=number()))
    view = engine.install("view", first.group_by().agg(n=tk.count()))
    change(engine, source, ("1",))
    with engine.hold(view) as held:
        change(engine, source, ("bad",))
        change(engine, source, ("2",))
        change(engine, source, gone=(("bad",),))
        for _ in range(30):
            engine.advance()
            engine.idle()
        assert [view.rows(at=held.at), view.rows(at=held.at + 3)] == [[(1,)], [(2,)]]
        for epoch in (held.at + 1, held.at + 2):
            with pytest.raises(tk.IncorrectError, match="'bad'"):
                view.rows(at=epoch)


def test_a_view_installed_while_a_row_fails_works_when_it_is_gone() -> None:
    engine, source = texts()
    change(engine, source, ("1",), ("bad",))
    for _ in range(2):  # the second begins with the graph of the first
        view = engine.install("v", source.select(y=number()))
        fails(view, "'bad'")
        change(engine, source, gone=(("bad",),))
        assert view.rows() == [(1,)]
        change(engine, source, ("bad",))
        view.drop()


def test_a_subscription_raises_while_an_error_stands_and_then_tells_everything() -> None:
    engine, source = texts()
    view = engine.install("v", source.select(y=number()))
    told: list[int] = []
    view.subscribe(lambda delta: told.append(delta.table.num_rows))
    changes = row_changes(view)
    change(engine, source, ("1",))
    assert [(c.row, c.diff) for c in changes] == [((1,), 1)]
    change(engine, source, ("2",), ("bad",))
    with pytest.raises(tk.IncorrectError, match="'bad'"):
        list(changes)
    change(engine, source, ("3",), gone=(("bad",),))
    assert [(c.row, c.diff) for c in changes] == [((2,), 1), ((3,), 1)]
    assert told == [1, 1, 1]


# -- operators --------------------------------------------------------------------------------------------------------------


def test_a_sum_that_overflows_is_an_error_of_its_group() -> None:
    engine = make_engine()
    source = engine.create_table("s", {"k": tk.Int, "x": tk.Int})
    view = engine.install("v", source.group_by("k").agg(s=tk.sum("x"), n=tk.count()))
    change(engine, source, (1, MOST), (1, 1), (2, 5))
    fails(view, re.escape("a sum does not fit into 64 bits, in the group (k = 1)"))
    change(engine, source, (3, MOST), (3, 9), (1, 5), (2, 1))
    fails(view, "1 more")
    change(engine, source, gone=((1, MOST), (3, 9)))
    assert sorted(view.rows()) == [(1, 6, 2), (2, 6, 2), (3, MOST, 1)]


def test_an_overflow_is_an_error_of_its_row() -> None:
    engine = make_engine()
    source = engine.create_table("s", {"x": tk.Int})
    view = engine.install("v", source.select(y=tk.col("x") * 2))
    change(engine, source, (3,), (2**62,))
    fails(view, "overflow of int")
    change(engine, source, gone=((2**62,),))
    assert view.rows() == [(6,)]


def test_a_python_function_that_raises_fails_on_its_rows_alone() -> None:
    def double(table: pa.Table) -> pa.Table:
        values = table["x"].to_pylist()
        if "bad" in values:
            raise ValueError("no number")
        return pa.table({"y": [2 * int(value) for value in values]})

    engine, source = texts()
    view = engine.install("v", source.map_batches(double, y=tk.Int))
    change(engine, source, *[(str(i),) for i in range(50)], ("bad",), ("bad",))
    fails(
        view, r"view 'v': function .*double raised ValueError\('no number'\), in the row \(x = 'bad'\)", tk.FaultError
    )
    change(engine, source, gone=(("bad",), ("bad",)))
    assert sorted(view.rows()) == [(2 * i,) for i in range(50)]


def test_a_reduction_that_raises_fails_on_its_groups_alone() -> None:
    def only(key: tuple[Any, ...], rows: list[tuple[tuple[Any, ...], int]]) -> list[tuple[Any, ...]]:
        ((row, _),) = rows
        return [row]

    engine = make_engine()
    source = engine.create_table("s", {"k": tk.Int, "x": tk.String})
    view = engine.install("v", source.reduce(only, by="k", x=tk.String))
    change(engine, source, (1, "a"), (2, "b"))
    assert sorted(view.rows()) == [(1, "a"), (2, "b")]
    change(engine, source, (1, "c"), (3, "d"))
    fails(view, r"view 'v': function .*only raised ValueError.*, in the group \(k = 1\)", tk.FaultError)
    change(engine, source, (3, "e"))
    fails(view, "1 more", tk.FaultError)
    change(engine, source, gone=((1, "a"), (3, "d"), (2, "b")))
    assert sorted(view.rows()) == [(1, "c"), (3, "e")]


def test_a_window_that_overflows_is_an_error_of_its_partition() -> None:
    engine = make_engine()
    engine.sql("CREATE TABLE s (k int, x int)")
    engine.sql("CREATE MATERIALIZED VIEW v AS SELECT k, sum(x) OVER (PARTITION BY k) AS t FROM s")
    view = engine.view("v")
    engine.sql(f"INSERT INTO s VALUES (1, {MOST}), (1, 1), (2, 5)")
    fails(view, "does not fit")
    engine.sql("DELETE FROM s WHERE x = 1")
    assert sorted(view.rows()) == [(1, MOST), (2, 5)]


@pytest.mark.executors("spark")
def test_a_row_that_fails_in_a_loop_fails_the_result() -> None:
    engine = make_engine()
    source = engine.create_table("s", {"k": tk.Int, "x": tk.String})
    longer = tk.col("k") + number()

    def body(rows: tk.Collection) -> tk.Collection:
        return rows.filter(tk.col("k") < 5).select(k=longer, x="x").concat(source).distinct()

    view = engine.install("v", source.iterate(body))
    change(engine, source, (1, "2"), (9, "bad"))  # nine is no less than five: its text is not read
    assert sorted(view.rows()) == [(1, "2"), (3, "2"), (5, "2"), (9, "bad")]
    change(engine, source, (4, "bad"))
    fails(view, "found 'bad', in the row")
    change(engine, source, gone=((1, "2"),))
    fails(view, "found 'bad'")
    change(engine, source, gone=((4, "bad"),))
    assert view.rows() == [(9, "bad")]


def test_a_row_that_fails_in_a_round_fails_the_result_though_later_rounds_do_without_it() -> None:
    engine = make_engine()
    source = engine.create_table("s", {"k": tk.Int, "x": tk.String})
    view = engine.install(
        "v", source.iterate(lambda rows: rows.filter(tk.col("k") < 3).select(k=tk.col("k") + number(), x="x"))
    )
    change(engine, source, (1, "1"))
    assert view.rows() == []
    change(engine, source, (1, "bad"))
    fails(view, "found 'bad'")
    change(engine, source, gone=((1, "bad"), (1, "1")))
    assert view.rows() == []


def test_a_sum_that_overflows_in_a_loop_is_an_error_of_its_group() -> None:
    engine = make_engine()
    source = engine.create_table("s", {"k": tk.Int, "x": tk.Int})

    def body(rows: tk.Collection) -> tk.Collection:
        return rows.group_by("k").agg(x=tk.sum("x"))

    view = engine.install("v", source.iterate(body))
    change(engine, source, (1, MOST), (2, 3), (2, 4))
    assert sorted(view.rows()) == [(1, MOST), (2, 7)]
    change(engine, source, (1, 1), (2, 5))
    fails(view, re.escape("a sum does not fit into 64 bits, in the group (k = 1)"))
    change(engine, source, (1, 2))
    fails(view, "in the group")
    change(engine, source, gone=((1, MOST),))
    assert sorted(view.rows()) == [(1, 3), (2, 12)]


def test_a_negated_row_does_not_fail_where_it_cancels() -> None:
    engine, source = texts()
    other = engine.create_table("other", {"x": tk.String})
    view = engine.install("v", source.concat(other.negate()).select(y=number()))
    source.insert([("bad",), ("1",)])
    other.insert([("bad",)])
    engine.advance()
    assert view.rows() == [(1,)]
    change(engine, other, gone=(("bad",),))
    fails(view, "'bad'")


def test_conditions_of_a_conjunction_that_fail_are_counted_once_however_it_is_joined() -> None:
    for strategy in ("binary", "delta", "hector"):
        engine = make_engine()
        a = engine.create_table("a", {"k": tk.Int, "x": tk.String})
        b = engine.create_table("b", {"k": tk.Int, "n": tk.Int})
        c = engine.create_table("c", {"n": tk.Int})
        found = tk.match(
            (a, ("k", "x")),
            (b, ("k", "n")),
            (c, ("n",)),
            where=[number() > tk.col("n")],
            find=["k", "n"],
            joins=strategy,
        )
        view = engine.install("v", found)
        for source, row in ((a, (1, "bad")), (a, (1, "9")), (b, (1, 2)), (b, (1, 3))):
            change(engine, source, row)
        assert view.rows() == []
        change(engine, c, (2,))
        fails(view, r"found 'bad', in the row")
        change(engine, c, (3,))
        fails(view, "1 more")
        change(engine, a, gone=((1, "bad"),))
        assert sorted(view.rows()) == [(1, 2), (1, 3)]
        engine.close()


def test_an_inspecting_function_that_raises_is_not_called_again(caplog: pytest.LogCaptureFixture) -> None:
    calls: list[int] = []

    def explode(table: pa.Table) -> None:
        calls.append(table.num_rows)
        raise RuntimeError("boom")

    engine, source = texts()
    view = engine.install("v", source.inspect(explode))
    change(engine, source, ("1",))
    change(engine, source, ("2",))
    assert sorted(view.rows()) == [("1",), ("2",)]
    assert calls == [1]
    assert any("explode" in record.getMessage() for record in caplog.records if record.name == "tektite")


def test_a_goal_fails_while_a_row_fails_that_it_depends_on() -> None:
    engine = make_engine()
    source = engine.create_table("s", {"k": tk.Int, "t": tk.String}, mode="set")
    engine.datalog("num(k, n) :- s(k, t), n = to_number(t).\nbig(k) :- num(k, n), n > 3.")
    change(engine, source, (1, "5"), (2, "2"))
    assert engine.query("big(?)").rows() == [(1,)]
    change(engine, source, (3, "bad"))
    with pytest.raises(tk.IncorrectError, match="found 'bad'"):
        engine.query("big(?)").rows()
    change(engine, source, gone=((3, "bad"),))
    assert engine.query("big(?)").rows() == [(1,)]
