"""Queries of SQL share the arrangements that they need; the last reader takes those with it that were made for readers."""

from __future__ import annotations

import datetime
import json
import random

import pytest

import tektite as tk
from tests.support.executors import make_engine

pytestmark = pytest.mark.executors("stages")

SCHEMA = """
    CREATE TABLE nation (n_nationkey int PRIMARY KEY, n_name varchar);
    CREATE TABLE supplier (s_suppkey int PRIMARY KEY, s_nationkey int);
    CREATE TABLE customer (c_custkey int PRIMARY KEY, c_nationkey int, c_segment varchar);
    CREATE TABLE orders (o_orderkey int PRIMARY KEY, o_custkey int, o_orderdate date);
    CREATE TABLE lineitem (l_orderkey int, l_linenumber int, l_suppkey int, l_price decimal(10, 2),
                           PRIMARY KEY (l_orderkey, l_linenumber))
"""
# The shapes of TPC-H's queries 3 and 5.
SHIPPING = """
    SELECT l_orderkey, sum(l_price) AS revenue, o_orderdate FROM customer, orders, lineitem
    WHERE c_segment = 'a' AND c_custkey = o_custkey AND l_orderkey = o_orderkey
    GROUP BY l_orderkey, o_orderdate ORDER BY revenue DESC LIMIT 10
"""
LOCAL = """
    SELECT n_name, sum(l_price) AS revenue FROM customer, orders, lineitem, supplier, nation
    WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND l_suppkey = s_suppkey
      AND c_nationkey = s_nationkey AND s_nationkey = n_nationkey GROUP BY n_name
"""


@pytest.fixture
def engine() -> tk.Engine:
    engine = make_engine()
    engine.sql(SCHEMA)
    pick = random.Random(1)
    engine.table("nation").insert([(n, f"nation {n}") for n in range(5)])
    engine.table("supplier").insert([(s, s % 5) for s in range(20)])
    engine.table("customer").insert([(c, c % 5, pick.choice("ab")) for c in range(40)])
    engine.table("orders").insert([(o, pick.randrange(40), datetime.date(2024, 1, 1)) for o in range(200)])
    engine.table("lineitem").insert(
        [(o, n, pick.randrange(20), pick.randrange(100)) for o in range(200) for n in range(3)]
    )
    engine.advance()
    return engine


def arrangements(engine: tk.Engine) -> set[tuple[str, ...]]:
    """Every arrangement, as its name and columns, without those of views and of the language itself."""
    found = engine.indexes()
    return {(a.name, *a.columns) for a in found if not a.name.startswith("__") and a.name not in engine.views}


def test_two_queries_read_orders_and_customers_by_the_same_primary_keys(engine: tk.Engine) -> None:
    base = arrangements(engine)
    engine.sql(f"CREATE MATERIALIZED VIEW shipping AS {SHIPPING}")
    first = arrangements(engine)
    engine.sql(f"CREATE MATERIALIZED VIEW local AS {LOCAL}")
    for key in ("o_orderkey", "c_custkey"):
        assert len([a for a in arrangements(engine) if a[1] == key]) == 1
    readers = {a.name: set(a.readers) for a in engine.indexes()}
    assert {"shipping", "local"} <= readers["orders"] & readers["customer"]
    engine.sql("DROP VIEW local")
    assert arrangements(engine) == first
    engine.sql("DROP VIEW shipping")
    assert arrangements(engine) == base


def test_second_query_of_a_shape_makes_no_arrangement(engine: tk.Engine) -> None:
    engine.sql(f"CREATE MATERIALIZED VIEW local AS {LOCAL}")
    before = arrangements(engine)
    engine.sql(f"CREATE MATERIALIZED VIEW shipping AS {SHIPPING}")
    other = SHIPPING.replace("'a'", "'b'")
    engine.sql(f"CREATE MATERIALIZED VIEW other AS {other}")
    assert arrangements(engine) == before
    plan = str(engine.sql(f"EXPLAIN {other}"))
    assert "made for this query" not in plan and "orders by (o_orderkey): shared, there already" in plan


def test_explain_as_json_says_what_the_text_says(engine: tk.Engine) -> None:
    text = str(engine.sql(f"EXPLAIN {LOCAL}"))
    data = json.loads(str(engine.sql(f"EXPLAIN (FORMAT JSON) {LOCAL}")))
    assert {each["text"] for each in data["operators"]} == {
        line.split("  (about")[0].strip().removeprefix("#1 ") for line in text.splitlines() if "  (about" in line
    }
    for use in data["indexes"]:
        assert f"  {use['collection']} by ({', '.join(use['columns'])}): {use['origin']}" in text.splitlines()
    assert "analyzed" not in data
    assert "operators" in json.loads(str(engine.sql(f"EXPLAIN (ANALYZE, FORMAT JSON) {LOCAL}")))["analyzed"]
    assert str(engine.sql(f"EXPLAIN (FORMAT TEXT) {LOCAL}")) == text
    assert str(engine.sql(f"EXPLAIN ({LOCAL})")) == text, "a parenthesis may begin a query"
    shared = json.loads(str(engine.sql(f"EXPLAIN (FORMAT JSON) SUBSCRIBE ({LOCAL})")))
    assert shared["sharing"][0].startswith("one dataflow")
    for wrong, said in (("(FORMAT XML)", "FORMAT JSON or FORMAT TEXT"), ("(ANALYZE JSON)", "expected , or"),
                        ("(FORMAT JSON, COSTS)", "expected ANALYZE or FORMAT")):  # fmt: skip
        with pytest.raises(tk.IncorrectError, match=said):
            engine.sql(f"EXPLAIN {wrong} {LOCAL}")


def test_explain_makes_nothing(engine: tk.Engine) -> None:
    before = arrangements(engine)
    plan = str(engine.sql(f"EXPLAIN {LOCAL}"))
    assert "in the order lineitem, orders, customer, supplier, nation" in plan
    assert "made for this query" in plan
    assert arrangements(engine) == before


def test_stream_is_indexed_once_where_filters_leave_little_of_it(engine: tk.Engine) -> None:
    engine.sql("CREATE TABLE events (order_key int, supplier int, price int) WITH (mode = 'stream')")
    query = """
        SELECT sum(price) FROM events, orders, supplier WHERE order_key = o_orderkey AND supplier = s_suppkey{}
    """
    filtered = str(engine.sql(f"EXPLAIN {query.format(' AND s_nationkey = 1 AND o_custkey = 2')}"))
    assert "strategy binary" in filtered and filtered.count("project(events)") + filtered.count("(events) by") <= 4
    assert "strategy delta" in str(engine.sql(f"EXPLAIN {query.format('')}"))


def chain(depth: int) -> str:
    """Common table expressions, each of which reads the one before twice."""
    parts = ["c0 AS (SELECT o_orderkey AS a, o_custkey AS b FROM orders)"]
    for at in range(1, depth + 1):
        parts.append(f"c{at} AS (SELECT x.a, y.b FROM c{at - 1} x JOIN c{at - 1} y ON x.a = y.b)")
    return f"WITH {', '.join(parts)} SELECT a, b FROM c{depth}"


def test_the_plan_of_a_chain_grows_with_its_links(engine: tk.Engine) -> None:
    lines = [len(engine.sql(f"EXPLAIN {chain(depth)}").rows()) for depth in (10, 20, 40)]
    assert lines[2] - lines[1] <= 3 * (lines[1] - lines[0])
    assert lines[2] < 1000
