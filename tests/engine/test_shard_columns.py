"""The columns that decide a row's shard: queries that join by them read the input's own arrangement."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import tektite as tk
from tektite.errors import ConflictError, IncorrectError
from tests.support.executors import make_engine

pytestmark = pytest.mark.executors("stages")


def lines_of(engine: tk.Engine, shard: str | tuple[str, ...] = "order") -> tk.Table:
    return engine.create_table(
        "lines", {"order": tk.Int, "number": tk.Int, "amount": tk.Int}, order_by=("order", "number"), shard_by=shard
    )


@pytest.mark.executors(spark=[2])
@pytest.mark.parametrize("workers", [1, 2, 3])
def test_a_join_by_the_shard_columns_reads_the_inputs_own_arrangement(workers: int) -> None:
    engine = make_engine(workers)
    lines = lines_of(engine)
    wanted = engine.create_table("wanted", {"order": tk.Int})
    joined = wanted.join(lines, on="order")
    assert "lines by (order): shared, there already" in engine.explain(joined)
    view = engine.install("joined", joined)
    held: list[tuple[int, int, int]] = []
    orders: list[int] = []
    draw = random.Random(7)
    for _ in range(8):
        fresh = [(draw.randrange(20), draw.randrange(5), draw.randrange(100)) for _ in range(15)]
        gone = draw.sample(held, len(held) // 3)
        lines.insert(fresh)
        lines.remove(gone)
        held += fresh
        for row in gone:
            held.remove(row)
        orders.append(draw.randrange(20))
        wanted.insert([orders[-1:]])
        engine.advance()
        assert sorted(view.rows()) == sorted(row for order in orders for row in held if row[0] == order)
    assert {info.name for info in engine.indexes()} == {"lines", "wanted", "joined"}


@pytest.mark.parametrize("left", ["lines", "prices"])
def test_a_join_by_the_whole_key_arranges_the_other_side_to_match(left: str) -> None:
    engine = make_engine(3)
    lines = lines_of(engine)
    prices = engine.create_table("prices", {"price": tk.Int, "number": tk.Int, "order": tk.Int})
    rows = [(order, number, 10 * order + number) for order in range(30) for number in range(3)]
    lines.insert(rows)
    prices.insert([(-amount, number, order) for order, number, amount in rows])
    engine.advance()
    on = ["order", "number"]
    sides = (lines, prices) if left == "lines" else (prices, lines)
    joined = sides[0].join(sides[1], on=on).select("order", "number", "amount", "price")
    assert "lines by (order, number): shared, there already" in engine.explain(joined)
    view = engine.install("joined", joined)
    assert sorted(view.rows()) == [(*row, -row[2]) for row in rows]
    lines.remove(rows[:5])
    engine.advance()
    assert sorted(view.rows()) == [(*row, -row[2]) for row in rows[5:]]


def test_a_stored_input_is_sharded_as_it_was_declared(tmp_path: Path) -> None:
    rows = [(order, number, order + number) for order in range(40) for number in range(3)]
    with make_engine(3, storage=tmp_path) as engine:
        lines_of(engine).insert(rows)
        engine.advance()
    with make_engine(2, storage=tmp_path) as engine:  # every row moves
        with pytest.raises(ConflictError, match=r"stored .* shard \(order\)"):
            lines_of(engine, ())
        lines = lines_of(engine)
        wanted = engine.create_table("wanted", {"order": tk.Int})
        wanted.insert([(order,) for order in range(0, 40, 7)])
        engine.advance()
        joined = wanted.join(lines, on="order")
        assert "lines by (order): shared, there already" in engine.explain(joined)
        found = engine.install("joined", joined).rows()
        assert sorted(found) == [row for row in rows if row[0] % 7 == 0]


@pytest.mark.parametrize("shard", ["number", ("order", "amount"), ("order", "number", "amount")])
def test_columns_that_do_not_begin_the_key_are_refused(shard: str | tuple[str, ...]) -> None:
    with pytest.raises(IncorrectError, match=r"table 'lines': .* .*primary_key or order_by, \(order, number\), not "):
        lines_of(make_engine(), shard)
