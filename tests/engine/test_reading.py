"""Reading inputs and views: rows, Arrow, pandas, DuckDB, the first rows, lookups, representations; and queries answered once."""

from __future__ import annotations

import datetime as dt
import random
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pytest

import tektite as tk
from tektite.engine.core import core_of
from tests.support.executors import make_engine

pytestmark = pytest.mark.executors

ORDERS = [("ann", 5), ("bob", 3), ("ann", 4)]


@pytest.fixture
def engine() -> Iterator[tk.Engine]:
    with make_engine(autocommit=True) as made:
        yield made


@pytest.fixture
def orders(engine: tk.Engine) -> tk.Table:
    made = engine.create_table("orders", {"customer": tk.String, "amount": tk.Int})
    made.insert(ORDERS)
    return made


def both(engine: tk.Engine, orders: tk.Table) -> list[tk.Table | tk.View]:
    return [orders, engine.install("view", orders.select("customer", "amount").filter(tk.col("amount") > 0))]


# -- all rows --------------------------------------------------------------------------------------------------------------


def test_inputs_and_views_are_read_alike(engine: tk.Engine, orders: tk.Table) -> None:
    for found in both(engine, orders):
        assert sorted(found.rows()) == sorted(found) == sorted(ORDERS)
        assert len(found) == 3 and found.time == 0
        assert sorted(found.snapshot().to_pylist(), key=str) == sorted(found.to_arrow().to_pylist(), key=str)
        frame = found.to_pandas()
        assert isinstance(frame, pd.DataFrame) and frame["amount"].sum() == 12
        assert engine.views in ((), ("view",))


def test_whatever_reads_arrow_streams_reads_them(engine: tk.Engine, orders: tk.Table) -> None:
    for found in both(engine, orders):
        table = pa.table(found)
        assert table.column_names == ["customer", "amount"] and sorted(table["amount"].to_pylist()) == [3, 4, 5]
        assert pa.RecordBatchReader.from_stream(found).read_all() == table
        assert duckdb.sql("SELECT customer, sum(amount) FROM found GROUP BY ALL ORDER BY ALL").fetchall() == [
            ("ann", 9),
            ("bob", 3),
        ]
        assert pd.DataFrame.from_arrow(found).shape == (3, 2)


def test_polars_reads_them_or_is_asked_for(engine: tk.Engine, orders: tk.Table) -> None:
    try:
        import polars
    except ImportError:
        with pytest.raises(tk.UnsupportedError, match="pip install polars"):
            orders.to_polars()
        return
    for found in both(engine, orders):
        assert found.to_polars()["amount"].sum() == polars.DataFrame(found)["amount"].sum() == 12


def test_rows_of_one_are_inserted_into_another(engine: tk.Engine, orders: tk.Table) -> None:
    copy = engine.create_table("copy", {"customer": tk.String, "amount": tk.Int})
    copy.insert(orders)
    assert sorted(copy) == sorted(ORDERS)


def test_one_without_rows_is_still_there(engine: tk.Engine) -> None:
    empty = engine.create_table("empty", {"x": tk.Int})
    view = engine.install("view", empty)
    for found in (empty, view):
        assert len(found) == 0 and found.rows() == [] and bool(found) is True
        assert pa.table(found).schema == pa.schema([("x", pa.int64())])


def test_multiplicities_count(engine: tk.Engine) -> None:
    table = engine.create_table("t", {"x": tk.Int})
    table.insert([(1,), (1,), (2,)])
    assert len(table) == 3 and sorted(table) == [(1,), (1,), (2,)]
    nothing = engine.install("nothing", table.select())
    assert len(nothing) == 3 and nothing.rows() == [(), (), ()] and list(nothing) == [()] * 3


def test_an_input_is_read_as_of_a_time_that_is_held(engine: tk.Engine, orders: tk.Table) -> None:
    with engine.hold(orders):
        orders.remove([("bob", 3)])
        orders.insert([("cid", 8)])
        assert sorted(orders.rows(at=0)) == sorted(ORDERS)
        assert len(orders.to_arrow(at=1)) == 2 and len(orders.to_pandas(at=2)) == 3
        with pytest.raises(tk.IncorrectError, match="table 'orders' can be read at times 0 to 2, not at 3"):
            orders.rows(at=3)
    while engine.idle():
        pass
    with pytest.raises(tk.IncorrectError, match="not at 0; engine.hold keeps earlier times readable"):
        orders.rows(at=0)
    orders.finish()
    assert len(orders.rows(at=99)) == 3


def test_what_has_no_rows_says_so(engine: tk.Engine) -> None:
    stream = engine.create_table("s", {"x": tk.Int}, mode="stream")
    stream.insert([(1,)])
    for read in (stream.rows, stream.head, lambda: len(stream), lambda: stream.lookup(1)):
        with pytest.raises(tk.ConflictError, match="table 's' is a stream, which keeps no rows"):
            read()
    gone = engine.create_table("gone", {"x": tk.Int})
    engine.drop("gone")
    with pytest.raises(tk.ConflictError, match="table 'gone' was dropped"):
        gone.rows()
    left = engine.create_table("left", {"x": tk.Int})
    engine.close()
    with pytest.raises(tk.ConflictError, match="the engine is closed"):
        left.rows()


def test_an_input_shows_what_a_transaction_sees(engine: tk.Engine) -> None:
    table = engine.create_table("t", {"k": tk.Int, "v": tk.String}, mode="upsert", primary_key="k")
    table.insert([(1, "a"), (2, "b")])
    with engine.transaction():
        table.insert([(2, "c"), (3, "d")])
        table.remove([(1,)])
        assert sorted(table.rows()) == sorted(table) == [(2, "c"), (3, "d")]
        assert len(table) == 2 and len(table.head(1)) == 1
        assert table.lookup(2) == [(2, "c")] and table.lookup(1) == []
        assert table.count().collect().to_pylist() == [{"count": 2}]
        with engine.session():
            assert sorted(table.rows()) == [(1, "a"), (2, "b")]
    assert sorted(table.rows()) == [(2, "c"), (3, "d")]


# -- some rows -------------------------------------------------------------------------------------------------------------


@pytest.mark.executors("stages", spark=[3])
@pytest.mark.parametrize("workers", [1, 3])
def test_the_first_rows_are_rows_and_as_many_as_there_are(workers: int) -> None:
    rng = random.Random(workers)
    with make_engine(workers) as engine:
        table = engine.create_table("t", {"k": tk.Int, "x": tk.Int}, order_by="k")
        view = engine.install("v", table.filter(tk.col("x") >= 0))
        present: Counter[tuple[int, int]] = Counter()
        for epoch in range(30):
            new = [(rng.randrange(3 if epoch % 2 else 500), rng.randrange(9)) for _ in range(200 if epoch % 3 else 3)]
            table.insert(new)
            present.update(new)
            old = rng.sample(sorted(present.elements()), len(new) * 2 // 3)
            table.remove(old)
            present -= Counter(old)
            engine.advance()
            for found in (table, view):
                for n in (0, 1, 7, 100, 10**6):
                    first = Counter(tuple(row.values()) for row in found.head(n).to_pylist())
                    assert first.total() == min(n, present.total()) and first <= present
                if workers == 1:
                    assert [tuple(row.values()) for row in found.head(20).to_pylist()] == found.rows()[:20]


def test_only_the_first_rows_are_looked_at(engine: tk.Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    import tektite.engine.versions

    table = engine.create_table("t", {"x": tk.Int})
    table.insert([(x,) for x in range(50_000)])
    seen: list[int] = []
    consolidate = tektite.engine.versions.consolidate

    def counted(chunks: Any, *more: Any) -> Any:
        seen.append(sum(chunk.n for chunk in chunks))
        return consolidate(chunks, *more)

    monkeypatch.setattr(tektite.engine.versions, "consolidate", counted)
    assert table.head(3).to_pylist() == [{"x": 0}, {"x": 1}, {"x": 2}]
    assert max(seen) < 1000


def test_head_keeps_the_order_of_sql_and_takes_a_number(engine: tk.Engine, orders: tk.Table) -> None:
    view = engine.sql("CREATE MATERIALIZED VIEW best AS SELECT * FROM orders ORDER BY amount DESC").view
    assert view is not None
    assert view.head(2)["amount"].to_pylist() == [5, 4]
    for wrong in (-1, 1.5, True, "3"):
        with pytest.raises(tk.IncorrectError, match="head takes a number of rows"):
            view.head(wrong)  # type: ignore[arg-type]


KINDS = [
    (tk.Int, [1, -5, 2**40], "x"),
    (tk.String, ["", "a", "ä"], 1),
    (tk.Float, [0.0, -2.5, float("inf")], "x"),
    (tk.Bool, [True, False], "x"),
    (tk.Date, [dt.date(2024, 2, 29), dt.date(1969, 1, 1)], 5),
    (tk.Timestamp, [dt.datetime(2024, 2, 29, 1, 2, 3)], 5),
    (tk.Decimal(9, 2), [Decimal("1.25"), Decimal("-3.00")], "x"),
]


@pytest.mark.parametrize(("kind", "values", "wrong"), KINDS, ids=[str(kind) for kind, _, _ in KINDS])
def test_lookup_finds_the_rows_of_a_key_by_any_type(
    engine: tk.Engine, kind: Any, values: list[Any], wrong: Any
) -> None:
    table = engine.create_table("t", {"v": tk.Int, "k": kind}, order_by="k")
    view = engine.install("v", table.filter(tk.col("v") >= 0), order_by="k")
    table.insert([(i, value) for i, value in enumerate(values)] + [(9, values[0]), (10, None)])
    table.insert([(11, values[0])])
    table.remove([(0, values[0])])
    for found in (table, view):
        assert sorted(found.lookup(values[0])) == [(9, values[0]), (11, values[0])]
        for i, value in enumerate(values[1:], 1):
            assert found.lookup(value) == [(i, value)]
        assert found.lookup(values[0], 11) == [(11, values[0])] and found.lookup(values[0], 12) == []
        with pytest.raises(tk.IncorrectError, match=f"lookup in (table 't'|view 'v'): column 'k'"):  # noqa: F541
            found.lookup(wrong)
        with pytest.raises(tk.IncorrectError, match="NULL equals nothing"):
            found.lookup(None)
        for key in ((), (values[0], 1, 2)):
            with pytest.raises(tk.IncorrectError, match=f"takes from 1 to 2 values, of k, v; found {len(key)}"):
                found.lookup(*key)


def test_lookup_finds_zero_whatever_its_sign(engine: tk.Engine) -> None:
    table = engine.create_table("t", {"k": tk.Float, "v": tk.Int}, mode="upsert", primary_key="k")
    table.insert([(-0.0, 1)])
    assert table.lookup(0.0) == table.lookup(-0.0) == [(0.0, 1)]
    bag = engine.create_table("bag", {"k": tk.Float, "v": tk.Float})
    bag.insert([(-0.0, 0.0), (0.0, -0.0), (1.0, 0.0)])
    assert len(bag.lookup(0.0)) == len(bag.lookup(-0.0, 0.0)) == len(bag.lookup(0.0, -0.0)) == 2


# -- how they are shown ----------------------------------------------------------------------------------------------------


def test_shown_with_name_schema_time_and_first_rows(engine: tk.Engine, orders: tk.Table) -> None:
    table = engine.create_table("t", {"x": tk.Int})
    view = engine.install("v", table.filter(tk.col("x") > 0))
    assert repr(view) == "<View 'v' (x: int), time 0>"
    table.insert([(x,) for x in range(1, 9)])
    assert repr(view) == "<View 'v' (x: int), time 1\n  (1,)\n  (2,)\n  (3,)\n  (4,)\n  (5,)\n  ...>"
    assert repr(table) == repr(view).replace("View 'v'", "Table 't'")
    fresh = make_engine()
    assert repr(fresh.create_table("f", {"x": tk.Int})) == "<Table 'f' (x: int), no epoch closed yet>"
    assert repr(fresh.install("g", fresh.table("f"))) == "<View 'g' (x: int), no answer yet>"
    fresh.close()


def test_shown_whatever_state_it_is_in(engine: tk.Engine) -> None:
    table = engine.create_table("t", {"x": tk.String})
    numbers = engine.install("numbers", table.select(y=tk.col("x").cast(tk.Int)))
    unkept = engine.install("unkept", table, keep=False)
    stream = engine.create_table("s", {"x": tk.Int}, mode="stream")
    table.insert([("bad",)])
    assert "unreadable: view 'numbers'" in repr(numbers) and "'bad'" in repr(numbers)
    assert repr(unkept) == "<View 'unkept' (x: string), not kept>"
    assert repr(stream) == "<Table 's' (x: int), a stream, open epoch 1>"
    unkept.drop()
    assert repr(unkept) == "<View 'unkept' (x: string), dropped>"
    loop = engine.install("loop", table.select(n=1).iterate(lambda rows: rows.select(n=tk.col("n") + 1), max_rounds=3))
    assert repr(loop).startswith("<View 'loop' (n: int), failed: view 'loop'")
    assert {*engine.failures} == {"numbers", "loop"}
    assert engine.failures["loop"] is loop.failure and str(engine.failures["numbers"]) == str(numbers.error)
    engine.close()
    assert "dropped" in repr(numbers) and "unreadable: the engine is closed" in repr(table)


def test_showing_a_view_that_has_fallen_behind_leaves_it_there() -> None:
    with make_engine(autocommit=True, turn=0) as engine:
        table = engine.create_table("t", {"k": tk.Int, "x": tk.Int})
        view = engine.install("pairs", table.join(table, on="k").count(by="k"))
        table.insert([(1, 1)])
        view.rows()
        for x in range(2000):
            table.insert([(x % 7, x)])
            if not view.current:
                break
        else:
            pytest.fail("it never falls behind")
        shown = repr(view)
        assert not view.current and f"behind its tables, time {view.time}" in shown


# -- queries answered once -------------------------------------------------------------------------------------------------


@pytest.mark.executors("stages", "spark")
def test_a_query_answered_once_leaves_nothing_behind() -> None:
    with make_engine() as engine:
        edges = engine.create_table("edges", {"src": tk.Int, "dst": tk.Int})
        hops = edges.join(edges, left_on="dst", right_on="src").select("src", dst="dst_right")
        assert hops.collect().num_rows == 0
        edges.insert([(1, 2), (2, 3), (3, 4)])
        engine.advance()
        before = [(info.name, info.columns, info.readers) for info in engine.indexes()]
        for _ in range(3):
            assert sorted(map(tuple, map(dict.values, hops.collect().to_pylist()))) == [(1, 3), (2, 4)]
        assert engine.views == ()
        assert [(info.name, info.columns, info.readers) for info in engine.indexes()] == before
        assert not core_of(edges).trace.handles


def test_a_query_answered_once_reads_the_indexes_that_are_there(engine: tk.Engine) -> None:
    edges = engine.create_table("edges", {"src": tk.Int, "dst": tk.Int})
    edges.insert([(1, 2), (2, 3)])
    pinned = edges.create_index("dst")
    during: list[set[str]] = []
    engine.on_sweep(lambda _: during.append({info.name for info in engine.indexes()}))
    assert edges.join(edges, left_on="dst", right_on="src").collect().num_rows == 1
    (names,) = during
    assert {name for name in names if not name.startswith("__")} == {"edges", "edges by (dst)"}
    pinned.drop()


def test_a_query_that_fails_once_says_why_and_is_gone(engine: tk.Engine) -> None:
    table = engine.create_table("t", {"x": tk.String})
    table.insert([("bad",)])
    with pytest.raises(tk.IncorrectError, match="'bad'") as caught:
        table.select(y=tk.col("x").cast(tk.Int)).collect()
    assert "collect" not in str(caught.value) and engine.views == ()
    with pytest.raises(tk.IncorrectError, match="leave it first"):
        table.iterate(lambda rows: [rows.collect(), rows][1])
    assert engine.views == ()


def test_views_and_inputs_are_collections_too(engine: tk.Engine, orders: tk.Table) -> None:
    for found in both(engine, orders):
        assert sorted(found.collect().to_pylist(), key=str) == sorted(found.snapshot().to_pylist(), key=str)
    other = make_engine()
    with pytest.raises(tk.IncorrectError, match="belongs to another engine"):
        other.collect(orders)
    other.close()
