"""Windows that are maintained where rows change equal windows that are computed whole, at every epoch."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

import tektite as tk
from tektite.dataflow import near_reduce
from tests.support.executors import make_engine

pytestmark = pytest.mark.executors

FRAMES = [
    "ROWS BETWEEN 2 PRECEDING AND CURRENT ROW", "ROWS BETWEEN CURRENT ROW AND 3 FOLLOWING",
    "ROWS BETWEEN 4 PRECEDING AND 2 PRECEDING", "ROWS BETWEEN 1 FOLLOWING AND 3 FOLLOWING",
    "ROWS BETWEEN 2 PRECEDING AND 2 FOLLOWING EXCLUDE CURRENT ROW",
    "RANGE BETWEEN 2 PRECEDING AND 1 FOLLOWING", "RANGE BETWEEN 3 PRECEDING AND 2 PRECEDING",
    "RANGE BETWEEN CURRENT ROW AND CURRENT ROW", "RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE TIES",
    "GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW", "GROUPS BETWEEN 1 FOLLOWING AND 2 FOLLOWING",
    "GROUPS BETWEEN 2 PRECEDING AND 1 FOLLOWING EXCLUDE GROUP",
]  # fmt: skip
RUNNING = ["", "ROWS UNBOUNDED PRECEDING", "GROUPS UNBOUNDED PRECEDING"]
ORDERS = ["o", "o DESC", "o NULLS FIRST", "o DESC NULLS LAST"]
MOVING = [
    f"{function} OVER (PARTITION BY g ORDER BY {{order}} {frame})"
    for frame in FRAMES
    for function in ("sum(x)", "min(x)", "last_value(x)", "count(x)", "avg(f)", "sum(f)", "nth_value(x, 2)")
]
SHIFTED = [f"{f} OVER (PARTITION BY g ORDER BY {{order}})" for f in ("lag(x)", "lead(x, 3, -1)", "lag(s, 2)")]
BEHIND = [
    *(f"{f} OVER (PARTITION BY g ORDER BY {{order}})" for f in ("row_number()", "rank()", "dense_rank()")),
    *(
        f"{function} OVER (PARTITION BY g ORDER BY {{order}} {frame})"
        for frame in RUNNING
        for function in ("sum(x)", "min(x)", "max(f)", "count(*)", "first_value(s)")
    ),
]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Groups of a few rows are large; how often a change was looked at where it is, and the group was evaluated whole."""
    taken = [0, 0]
    changed = near_reduce.NearReduce._changed

    def counted(*arguments: Any) -> Any:
        found = changed(*arguments)
        taken[found is None] += 1
        return found

    monkeypatch.setattr(near_reduce, "LARGE", 4)
    monkeypatch.setattr(near_reduce, "CHANGE", 1)
    monkeypatch.setattr(near_reduce, "FIRST_STRETCH", 2)
    monkeypatch.setattr(near_reduce.NearReduce, "_changed", counted)
    return taken


def row(draw: random.Random, nulls: bool) -> tuple[Any, ...]:
    order = None if nulls and draw.random() < 0.1 else draw.randint(0, 80)
    value = draw.choice([None, *range(-3, 10)])
    return draw.randint(0, 1), order, value, draw.choice([0.0, -0.0, 0.1, 0.7, 1e17, None]), draw.choice("abc")


def check(calls: list[str], order: str, seed: int, epochs: int = 20, nulls: bool = False, **options: Any) -> None:
    draw = random.Random(seed)
    engine = make_engine(autocommit=False, **options)
    columns = {"g": tk.Int, "o": tk.Int, "x": tk.Int, "f": tk.Float, "s": tk.String}
    table = engine.create_table("t", columns)
    selected = ", ".join(f"{call.format(order=order)} AS y{at}" for at, call in enumerate(calls))
    query = f"SELECT *, {selected} FROM t"
    held: Counter[tuple[Any, ...]] = Counter()

    def change(many: int) -> None:
        for _ in range(many):
            if held and draw.random() < 0.45:
                gone = draw.choice(list(held.elements()))
                held[gone] -= 1
                table.remove([gone])
            else:
                come = draw.choice(list(held.elements())) if held and draw.random() < 0.2 else row(draw, nulls)
                held[come] += 1
                table.insert([come])
        for key in [key for key, count in held.items() if not count]:
            del held[key]

    held.update(row(draw, nulls) for _ in range(200))
    table.insert(list(held.elements()))
    engine.advance()
    view = engine.sql(f"CREATE MATERIALIZED VIEW v AS {query}").view
    assert view is not None
    for _ in range(epochs):
        for _ in range(draw.choice([1, 1, 1, 3])):  # epochs in one sweep
            change(draw.choice([1, 1, 2, 4]))
            engine.advance()
        found = sorted(view.rows(), key=repr)
        assert found == sorted(engine.sql(query).rows(), key=repr)
    engine.close()


@pytest.mark.executors(stages=[1])
@pytest.mark.parametrize("seed", range(5))
def test_frames_that_move(small: list[int], seed: int) -> None:
    draw = random.Random(seed)
    check(draw.sample(MOVING + SHIFTED, 3), ORDERS[seed % 4], seed, workers=1 + seed % 2)
    assert small[0] > 20


@pytest.mark.executors(stages=[0])
@pytest.mark.parametrize("seed", range(5))
def test_what_runs_from_the_first_row(small: list[int], seed: int) -> None:
    draw = random.Random(seed)
    check([*draw.sample(BEHIND, 2), *draw.sample(MOVING, 1)], ORDERS[seed % 4], seed)
    assert small[0] > 5


@pytest.mark.executors(stages=[3])
@pytest.mark.parametrize("seed", range(4))
def test_null_in_the_order(small: list[int], seed: int) -> None:
    draw = random.Random(seed)
    check(draw.sample(MOVING + SHIFTED + BEHIND, 2), ORDERS[seed], seed, nulls=True)


@pytest.mark.parametrize("order", ["o, x", "o DESC, x DESC", "o, x DESC", "s, o", "x NULLS FIRST, o NULLS FIRST"])
def test_orders_of_several_columns(small: list[int], order: str) -> None:
    calls = [call for call in MOVING + SHIFTED + BEHIND if "RANGE BETWEEN" not in call]
    check(random.Random(order).sample(calls, 2), order, 1, nulls=True)


@pytest.mark.executors("stages")
def test_sum_that_does_not_fit_fails_and_is_mended(small: list[int]) -> None:
    engine = make_engine(autocommit=True)
    table = engine.create_table("t", {"o": tk.Int, "x": tk.Int})
    table.insert([(n, n) for n in range(100)])
    query = "SELECT o, sum(x) OVER (ORDER BY o ROWS 2 PRECEDING) AS near, sum(x) OVER (ORDER BY o) AS behind FROM t"
    view = engine.sql(f"CREATE MATERIALIZED VIEW v AS {query}").view
    assert view is not None
    for at in (50, 97):
        table.insert([(at, 2**63 - 1)])
        with pytest.raises(tk.TektiteError, match="does not fit"):
            view.rows()
        table.insert([(3, 3)])
        table.remove([(at, 2**63 - 1)])
        assert sorted(view.rows()) == sorted(engine.sql(query).rows())
    table.insert([(60, 1)])
    assert sorted(view.rows()) == sorted(engine.sql(query).rows())
    assert small[0]
