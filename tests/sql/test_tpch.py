"""Each of the 22 TPC-H queries equals DuckDB's answer at every checkpoint, while the relations load and change; on Spark, while
they come through Spark.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.executors import make_engine
from tests.support.nightly import NIGHTLY, size
from tests.support.sql.tpch import QUERIES, WIDER, Run, query, wider

pytestmark = [pytest.mark.slow]

SCALE = size("TEKTITE_TPCH_SCALE", 0.01)
PARTS = {"threads": 25, "stages": 8, "spark": 25} if NIGHTLY else {"threads": 8, "stages": 4, "spark": 2}
"""In how many parts the relations load: the machines of single shards, which Spark's tasks run too, look at some moments less."""
CHOSEN = {} if NIGHTLY else {"stages": (1, 3, 4, 7, 11, 13, 15, 18, 21, 22), "spark": (4, 15, 18)}
"""The queries that stages and Spark's jobs keep up to date: by day a few that differ much."""


@pytest.mark.executors("stages", "spark")
def test_every_query_equals_duckdb_at_every_checkpoint(executor: str, tmp_path: Path) -> None:
    made = a_run(executor, tmp_path)
    numbers = CHOSEN.get(executor, tuple(QUERIES))
    run(made, PARTS[executor], numbers)
    made.close()
    assert made.checkpoint == PARTS[executor] + 7
    assert len(made.faults) == len(numbers) + len({*numbers} & {*WIDER})
    assert not {name: found for name, found in made.faults.items() if found}


def a_run(executor: str, folder: Path) -> Run:
    if executor != "spark":
        return Run(make_engine(), SCALE)
    from tests.support.sql.tpch_spark import SparkRun

    return SparkRun(make_engine(), SCALE, folder)


def run(made: Run, parts: int, numbers: tuple[int, ...]) -> None:
    """Load in parts, with refreshes beside from the third on; then refresh alone, in Python and in SQL."""
    early, late = [n for n in numbers if n % 2], [n for n in numbers if n % 2 == 0]
    for number in early:
        made.install(f"q{number:02d}", query(number, SCALE))
    made.check()
    for part in made.load(parts):
        if part % 3 == 2:
            made.rf2(0.02)
            made.change(0.02)
        if part % 4 == 3:
            made.rf1(0.1)
        made.check()
        # A query that arrives late answers for what came before it.
        for number in late[part * len(late) // parts : (part + 1) * len(late) // parts]:
            made.install(f"q{number:02d}", query(number, SCALE))
        if part == parts // 2:
            for number in {*WIDER} & {*numbers}:
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
