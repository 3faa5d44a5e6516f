"""The same query has the same plan, whichever language it is written in."""

from __future__ import annotations

import tektite as tk

SQL = """
    SELECT town, count(*) AS n, sum(total) AS s
    FROM orders JOIN customers USING (customer) WHERE total > 5 GROUP BY town
"""
DATALOG = """
    .decl towns(town: number, n: number, s: number)
    towns(town, count(), sum(total)) :- orders(_, customer, total), customers(customer, town), total > 5.
"""


def test_a_query_is_explained_alike_in_sql_datalog_and_python() -> None:
    with tk.Engine() as engine:
        orders = engine.input("orders", key=["id"], semantics="upsert", id=tk.Int, customer=tk.Int, total=tk.Int)
        customers = engine.input("customers", key=["customer"], semantics="upsert", customer=tk.Int, town=tk.Int)
        orders.insert([(1, 1, 10), (2, 1, 3), (3, 2, 7)])
        customers.insert([(1, 20), (2, 20)])
        engine.advance()
        large = tk.col("total") > 5
        taken = {"n": tk.count(), "s": tk.sum("total")}
        joined = orders.join(customers, on="customer").filter(large).group_by("town").agg(**taken)
        matched = tk.match((orders, (None, "customer", "total")), (customers, ("customer", "town")), where=large)
        program = engine.datalog(DATALOG)
        explained = program.explain("towns", joins=True).partition("joins\n")[2]
        found = {
            "SQL": "\n".join(line for (line,) in engine.sql(f"EXPLAIN {SQL}").rows()),
            "Datalog": "\n".join(line.removeprefix("  ") for line in explained.splitlines()),
            "Python, by join": joined.explain(),
            "Python, by match": matched.group_by("town").agg(**taken).explain(),
        }
        assert set(found.values()) == {found["SQL"]}
        assert found["SQL"].splitlines() == [
            "plan",
            "  group by town: n = count(*), s = sum(total)  (about 1 rows)",
            "    join of (_, customer, total), (customer, town) to (total, town)  (about 1 rows)",
            "      where total > 5",
            "      read orders  (about 3 rows)",
            "      read customers  (about 2 rows)",
            "match by strategy binary (two relations)",
            "  join orders(_, customer, total), customers(customer, town)",
            "  where total > 5",
            "arrangements",
            "  customers by (customer): shared, there already",
            "  orders by (customer): shared, made for this query",
        ]
