"""Each of the 22 TPC-H queries equals DuckDB's answer at every checkpoint, while the relations load and change."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

import tektite as tk
from tests.sql.tpch import QUERIES, WIDER, Run, query, wider

pytestmark = pytest.mark.slow

SCALE = float(os.environ.get("TEKTITE_TPCH_SCALE", "0.01"))
LOADS = 25


@pytest.fixture(scope="module")
def run() -> Iterator[Run]:
    """Load in 25 parts, with refreshes beside from the third on; then refresh alone, in Python and in SQL."""
    made = Run(tk.Engine(), SCALE)
    for number in QUERIES:
        if number % 2:
            made.install(f"q{number:02d}", query(number, SCALE))
    made.check()
    for part in made.load(LOADS):
        if part % 3 == 2:
            made.rf2(0.02)
            made.change(0.02)
        if part % 4 == 3:
            made.rf1(0.1)
        made.check()
        # A query that arrives late answers for what came before it.
        for number in QUERIES:
            if number % 2 == 0 and number == 2 * (part // 2) + 2 and part % 2 == 0:
                made.install(f"q{number:02d}", query(number, SCALE))
        if part == LOADS // 2:
            for number in WIDER:
                made.install(f"wider{number:02d}", wider(number))
    made.rf1(0.5)
    made.check()
    made.rf2(0.3)
    made.check()
    made.change(0.3)
    made.check()
    chosen = made.some_orders(0.1)
    made.statement(f"DELETE FROM lineitem WHERE l_orderkey {chosen}")
    made.statement(f"DELETE FROM orders WHERE o_orderkey {chosen}")
    made.check()
    made.statement("UPDATE lineitem SET l_quantity = l_quantity + 1, l_returnflag = 'R' WHERE l_linenumber = 2")
    made.statement("UPDATE customer SET c_acctbal = -c_acctbal WHERE c_custkey % 5 = 0")
    made.check()
    made.check_selects()
    for name in ("lineitem", "orders", "partsupp"):
        made.remove(name, "true")
    made.check()
    yield made
    made.close()


@pytest.mark.parametrize("number", QUERIES)
def test_query_equals_duckdb_at_every_checkpoint(run: Run, number: int) -> None:
    assert run.checkpoint > 30
    assert not run.faults[f"q{number:02d}"]


@pytest.mark.parametrize("number", WIDER)
def test_query_that_lets_more_rows_through_equals_duckdb_at_every_checkpoint(run: Run, number: int) -> None:
    assert not run.faults[f"wider{number:02d}"]
