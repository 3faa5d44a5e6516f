"""TPC-H's queries 11 and 22 compare with a threshold that moves with the data: only values between its old and its new place are
looked at, however many there are.
"""

from __future__ import annotations

from typing import Any

import pytest

import tektite as tk
from benchmarks.tpch import query, schema
from tektite.dataflow import range_filter
from tektite.kernels.operators.range_filter import emit_segments
from tests.support.executors import make_engine

pytestmark = pytest.mark.executors

MANY = 4_000
SHARE = 1 / MANY
"""Of the worth of all parts: half of the parts are worth more."""


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows each step of a range filter has produced in this process, which tasks of Spark are not."""
    found: list[int] = []

    def counting(*arguments: Any) -> Any:
        buf, head = emit_segments(*arguments)
        found.append(int(head[0]))
        return buf, head

    monkeypatch.setattr(range_filter, "emit_segments", counting)
    return found


@pytest.fixture
def engine() -> tk.Engine:
    engine = make_engine()
    engine.sql(schema())
    engine.table("nation").insert([(7, "GERMANY", 1, "")])
    return engine


def test_query_11_touches_only_parts_between_the_old_and_the_new_threshold(
    engine: tk.Engine, written: list[int], executor: str
) -> None:
    text = query(11, 1.0).select.replace("0.0001000000", f"{SHARE:.6f}")
    view = engine.sql(f"CREATE MATERIALIZED VIEW q11 AS {text}").view
    engine.table("supplier").insert([(1, "", "", 7, "", 0, "")])
    # part p is worth p, and half of the parts are above the threshold
    engine.table("partsupp").insert([(p, 1, 1, p, "") for p in range(1, MANY)])
    engine.advance()
    total = MANY * (MANY - 1) // 2
    assert len(view.rows()) == sum(p > total * SHARE for p in range(1, MANY))
    written.clear()
    for extra in range(3):  # each part more moves the threshold by one
        engine.table("partsupp").insert([(MANY + extra, 1, 1, MANY, "")])
        engine.advance()
        total += MANY
        assert len(view.rows()) == sum(p > total * SHARE for p in range(1, MANY)) + extra + 1
    assert executor == "spark" or 0 < sum(written) <= 3 * 5


@pytest.mark.executors("stages")
def test_query_22_touches_only_customers_between_the_old_and_the_new_average(
    engine: tk.Engine, written: list[int], executor: str
) -> None:
    view = engine.sql(f"CREATE MATERIALIZED VIEW q22 AS {query(22, 1.0).select}").view

    def customer(key: int, balance: float) -> tuple[Any, ...]:
        return key, "", "", 7, "13-000", balance, "", ""

    engine.table("customer").insert([customer(c, c) for c in range(1, MANY)])
    engine.advance()
    balances = list(range(1, MANY))

    def expected() -> int:
        return sum(balance > sum(balances) / len(balances) for balance in balances)

    assert view.rows()[0][1] == expected()
    written.clear()
    for extra in range(3):  # a balance that moves the average by about two
        engine.table("customer").insert([customer(MANY + extra, 5 * MANY // 2)])
        engine.advance()
        balances.append(5 * MANY // 2)
        assert view.rows()[0][1] == expected()
    assert executor == "spark" or 0 < sum(written) <= 3 * 5


def test_age_below_a_limit_is_a_range_filter() -> None:
    with make_engine() as engine:
        engine.sql("CREATE TABLE events (id int, at timestamp)")
        plan = str(engine.sql("EXPLAIN SELECT id FROM events WHERE now() - at < INTERVAL '1 hour'"))
        assert "range filter" in plan
