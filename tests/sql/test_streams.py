"""A stream's rows stay on the shard where they come in; whatever must meet of them is exchanged by the queries."""

from __future__ import annotations

import random
from collections import Counter

import duckdb
import pytest

from tests.support.executors import make_engine

pytestmark = pytest.mark.executors

QUERIES = {
    "all": "SELECT count(*) AS n, sum(price) AS total FROM sales",
    "groups": "SELECT shop, count(*) AS n, min(price) AS least FROM sales GROUP BY shop",
    "distinct_prices": "SELECT DISTINCT price FROM sales",
    "joined": "SELECT town, sum(price) AS total FROM sales JOIN shops ON shop = shops.id GROUP BY town",
    "itself": "SELECT a.shop, count(*) AS n FROM sales a JOIN sales b ON a.shop = b.shop AND a.id < b.id GROUP BY a.shop",
    "absent": "SELECT id FROM shops WHERE NOT EXISTS (SELECT * FROM sales WHERE shop = shops.id)",
    "highest": "SELECT id, price FROM sales ORDER BY price DESC, id LIMIT 3",
}


@pytest.mark.executors(stages=[2], spark=[1])
@pytest.mark.parametrize("workers", [1, 2, 3])
def test_answers_over_a_stream_are_those_of_duckdb_at_every_epoch(workers: int) -> None:
    engine, oracle, pick = make_engine(workers), duckdb.connect(), random.Random(workers)
    engine.sql("CREATE TABLE shops (id int PRIMARY KEY, town varchar)")
    engine.sql("CREATE TABLE sales (shop int, id int, price int, PRIMARY KEY (shop, id)) WITH (mode = 'stream')")
    oracle.execute("CREATE TABLE shops (id int, town varchar); CREATE TABLE sales (shop int, id int, price int)")
    shops = [(at, f"town {at % 3}") for at in range(8)]
    engine.table("shops").insert(shops)
    oracle.executemany("INSERT INTO shops VALUES (?, ?)", shops)
    engine.advance()
    views = {name: engine.sql(f"CREATE MATERIALIZED VIEW {name} AS {text}").view for name, text in QUERIES.items()}
    there: list[tuple[int, int, int]] = []
    for epoch in range(12):
        fresh = [(pick.randrange(9), 100 * epoch + at, pick.randrange(20)) for at in range(pick.choice([1, 7, 40]))]
        gone = pick.sample(there, len(there) // 4)
        there = [row for row in there if row not in gone] + fresh
        engine.table("sales").update([*fresh, *gone], diffs=[1] * len(fresh) + [-1] * len(gone))
        engine.advance()
        oracle.execute("DELETE FROM sales")
        oracle.executemany("INSERT INTO sales VALUES (?, ?, ?)", there)
        for name, text in QUERIES.items():
            assert Counter(views[name].rows()) == Counter(oracle.execute(text).fetchall()), (epoch, name)
