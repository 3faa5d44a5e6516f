"""All rewrites of plans together: what becomes of queries as people write them. A rule by itself is shown in its docstring."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

import tektite as tk

Query = Callable[[tk.Engine, tk.Input, tk.Input], str]


def sql(text: str) -> Query:
    return lambda engine, orders, customers: "\n".join(line for (line,) in engine.sql(f"EXPLAIN {text}").rows())


def python(make: Callable[[tk.Input, tk.Input], tk.Collection]) -> Query:
    return lambda engine, orders, customers: make(orders, customers).explain()


def plan_of(query: Query) -> str:
    """The plan of a query without estimates."""
    with tk.Engine() as engine:
        keyed = {"key": ["id"], "semantics": "upsert"}
        orders = engine.input("orders", id=tk.Int, customer=tk.Int, total=tk.Int, note=tk.String, **keyed)
        customers = engine.input("customers", id=tk.Int, town=tk.String, limits=tk.Int, **keyed)
        engine.sql("CREATE TABLE items (line int, part int, amount int) WITH (semantics = 'stream')")
        lines = query(engine, orders, customers).splitlines()
    end = next((at for at, line in enumerate(lines[1:], 1) if not line.startswith(" ")), len(lines))
    return re.sub(r"  \(about [\d,]+ rows\)", "", "\n".join(line[2:] for line in lines[1:end]))


CASES: dict[str, tuple[Query, str]] = {
    "a filter goes below a distinct and a union": (
        python(
            lambda orders, _: orders.select("id").concat(orders.select("total")).distinct().filter(tk.col("id") > 3)
        ),
        """
        distinct
          union all
            select id where id > 3
              read orders
            select total where total > 3
              read orders
        """,
    ),
    "a filter by what groups are made by goes below them, another stays": (
        python(lambda orders, _: orders.count("customer").filter((tk.col("customer") > 3) & (tk.col("count") > 1))),
        """
        filter count > 1
          group by customer: count = count(*)
            select customer where customer > 3
              read orders
        """,
    ),
    "a left join whose NULLs nothing lets through is an inner one": (
        python(
            lambda orders, customers: (
                orders.join(customers, on=("customer", "id"), how="left")
                .filter(tk.col("limits") > 3)
                .select("id", "limits")
            )
        ),
        """
        join of (id, customer, _, _), (customer, _, limits) to (id, limits)
          where limits > 3
          read orders
          read customers
        """,
    ),
    "a filter that nothing passes leaves nothing to join": (
        python(lambda orders, customers: orders.filter(tk.lit(1) > 2).join(customers, on=("customer", "id"))),
        """
        0 constant rows
        """,
    ),
    "a filter stops above what is read twice": (
        python(lambda orders, _: _twice(orders.select("customer").distinct())),
        """
        union all
          filter customer > 3
            #1 distinct
              select customer
                read orders
          as #1 above
        """,
    ),
    "what nothing reads is not computed": (
        sql(
            "SELECT n FROM (SELECT customer, count(*) AS n, sum(total) AS s, max(note) AS m FROM orders GROUP BY customer)"
        ),
        """
        select n = count
          group by customer: count = count(*)
            read orders
        """,
    ),
    "projections become one": (
        sql("SELECT b + 1 AS c FROM (SELECT id * 2 AS b, note FROM orders) AS t"),
        """
        select c = id * 2 + 1
          read orders
        """,
    ),
    "joins begin with the stream and follow keys, the most selective first": (
        sql(
            "SELECT part FROM customers c, orders o, items i WHERE i.line = o.id AND o.customer = c.id AND o.note = 'x'"
        ),
        """
        join of (customer, _, _), (line, customer, _, note), (line, part) in the order items, orders, customers to (part)
          where note == 'x'
          read customers
          read orders
          select line, part
            read items
        """,
    ),
    "few rows of a table that has no such index are indexed apart": (
        sql("SELECT o.total FROM orders AS o JOIN customers AS c ON o.customer = c.id WHERE o.note = 'x'"),
        """
        join of (customer, total), (customer, _, _) to (total)
          select customer, total where note == 'x'
            read orders
          read customers
        """,
    ),
    "a table is read by an index that is there": (
        sql("SELECT o.total FROM orders AS o JOIN customers AS c ON o.customer = c.id WHERE c.town = 'x'"),
        """
        join of (_, customer, total, _), (customer, town, _) to (total)
          where town == 'x'
          read orders
          read customers
        """,
    ),
    "a comparison with an aggregate is a bound that moves": (
        sql("SELECT id FROM orders WHERE total > (SELECT sum(limits) FROM customers)"),
        """
        select id
          range filter total > sum
            read orders
            union all
              #1 aggregate sum = sum(limits)
                read customers
              select sum = None
                read __unit
              negate
                select sum = None
                  as #1 above
        """,
    ),
    "with a bound for each key": (
        sql(
            "SELECT id FROM orders o WHERE total < (SELECT 2 * max(total) FROM orders p WHERE p.customer = o.customer)"
        ),
        """
        select id
          range filter total < bound by customer = customer
            read orders
            select customer = customer#2, bound = 2 * max
              last 1 by #absent, max for each customer#2
                select customer#2 = customer, #absent = total.is_not_null(), max = total
                  read orders
        """,
    ),
    "what is the same is computed once, whatever it is called": (
        python(
            lambda orders, _: orders.count("customer").concat(
                orders.select(buyer="customer").count("buyer").rename(customer="buyer")
            )
        ),
        """
        union all
          #1 group by customer: count = count(*)
            read orders
          as #1 above
        """,
    ),
}


def _twice(found: tk.Collection) -> tk.Collection:
    return found.filter(tk.col("customer") > 3).concat(found)


def text(block: str) -> str:
    """A block of a test's text without its indentation."""
    lines = [line for line in block.splitlines() if line.strip()]
    margin = min(len(line) - len(line.lstrip()) for line in lines)
    return "\n".join(line[margin:] for line in lines)


@pytest.mark.parametrize("name", CASES)
def test_plan(name: str) -> None:
    query, after = CASES[name]
    assert plan_of(query) == text(after)
