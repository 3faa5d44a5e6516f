"""All rewrites of plans together: what becomes of queries as people write them. A rule by itself is shown in its docstring."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

import tektite as tk

Query = Callable[[tk.Engine, tk.Table, tk.Table], str]


def sql(text: str) -> Query:
    return lambda engine, orders, customers: "\n".join(line for (line,) in engine.sql(f"EXPLAIN {text}").rows())


def python(make: Callable[[tk.Table, tk.Table], tk.Collection]) -> Query:
    return lambda engine, orders, customers: make(orders, customers).explain()


def plan_of(query: Query) -> str:
    """The plan of a query without estimates."""
    with tk.Engine(autocommit=False) as engine:
        keyed = {"mode": "upsert", "primary_key": "id"}
        orders = engine.create_table(
            "orders", {"id": tk.Int, "customer": tk.Int, "total": tk.Int, "note": tk.String}, **keyed
        )
        customers = engine.create_table("customers", {"id": tk.Int, "town": tk.String, "limits": tk.Int}, **keyed)
        engine.sql("CREATE TABLE items (line int, part int, amount int) WITH (mode = 'stream')")
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
                orders.join(customers, left_on="customer", right_on="id", how="left")
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
        python(
            lambda orders, customers: orders.filter(tk.lit(1) > 2).join(customers, left_on="customer", right_on="id")
        ),
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
    "groups are made of the rows that few rows of a table ask for": (
        sql(
            "SELECT c.id, spent FROM customers c, (SELECT customer, sum(total) AS spent FROM orders GROUP BY customer) o "
            "WHERE o.customer = c.id AND c.town = 'x' AND c.limits = 3"
        ),
        """
        select id = customer, spent = sum
          join of (customer, town, limits), (customer, sum) to (customer, sum)
            where town == 'x'
            where limits == 3
            read customers
            group by customer: sum = sum(total)
              join of (_, customer, total, _), (customer, town, limits) to (customer, total)
                where town == 'x'
                where limits == 3
                read orders
                read customers
        """,
    ),
    "not if the table leaves many": (
        sql(
            "SELECT c.id, spent FROM customers c, (SELECT customer, sum(total) AS spent FROM orders GROUP BY customer) o "
            "WHERE o.customer = c.id AND c.limits > 3"
        ),
        """
        select id = customer, spent = sum
          join of (customer, _, limits), (customer, sum) to (customer, sum)
            where limits > 3
            read customers
            group by customer: sum = sum(total)
              read orders
        """,
    ),
    "rows are joined once to be grouped and to be compared with their group": (
        sql(
            "SELECT o.id FROM orders o, customers c WHERE o.customer = c.id AND c.town = 'x' AND c.limits = 3 "
            "AND o.total < (SELECT max(total) FROM orders p WHERE p.customer = c.id)"
        ),
        """
        select id
          range filter total < max by customer = customer
            #1 join of (id, customer, total, _), (customer, town, limits) to (id, customer, total)
              where town == 'x'
              where limits == 3
              read orders
              read customers
            select customer = customer#2, max
              last 1 by #absent, max for each customer#2
                select customer#2 = customer, #absent = total.is_not_null(), max = total
                  as #1 above
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
    "what every branch of an OR demands joins, what the branches say differently is tested": (
        sql(
            "SELECT o.id FROM orders AS o, customers AS c "
            "WHERE (o.customer = c.id AND o.total > 5) OR (o.customer = c.id AND c.limits > 3)"
        ),
        """
        join of (id, customer, total, _), (customer, _, limits) to (id)
          where (total > 5) | (limits > 3)
          read orders
          read customers
        """,
    ),
    "a disjunction implies something for each relation": (
        sql(
            "SELECT o.id FROM orders AS o, customers AS c WHERE o.customer = c.id AND "
            "((o.note = 'a' AND c.town = 'x') OR (o.note = 'b' AND c.town = 'y'))"
        ),
        """
        join of (id, customer, note), (customer, town, _) to (id)
          where (note == 'a') & (town == 'x') | (note == 'b') & (town == 'y')
          where (town == 'x') | (town == 'y')
          select id, customer, note where (note == 'a') | (note == 'b')
            read orders
          read customers
        """,
    ),
    "a filter that NULLs pass stays above an outer join, another goes into all its parts": (
        sql(
            "SELECT o.id FROM orders AS o LEFT JOIN customers AS c ON o.customer = c.id "
            "WHERE c.limits IS NULL AND o.total > 5"
        ),
        """
        union all
          join of (id, customer, total, _), (customer, _, limits) to (id)
            where limits.is_null()
            where total > 5
            read orders
            read customers
          union all
            select id where total > 5
              read orders
            negate
              join of (id, customer, total, _), (customer, _, _) to (id)
                where total > 5
                read orders
                read customers
        """,
    ),
    "a semi join with what is there once for each key is a join": (
        sql(
            "SELECT id FROM orders WHERE customer IN (SELECT customer FROM orders GROUP BY customer HAVING sum(total) > 5)"
        ),
        """
        join of (id, customer, _, _), (customer) to (id)
          read orders
          select #match0 = customer#2 where sum > 5
            group by customer#2 = customer: sum = sum(total)
              read orders
        """,
    ),
    "a table in a semi join stands whole": (
        sql(
            "SELECT id FROM customers AS c WHERE limits > 3 AND EXISTS (SELECT * FROM orders AS o WHERE o.customer = c.id)"
        ),
        """
        join of (id, _, limits), (id) to (id)
          where limits > 3
          read customers
          distinct
            select #match0 = customer
              read orders
        """,
    ),
    "a chain of joins is one conjunction": (
        python(
            lambda orders, customers: (
                orders.join(customers, left_on="customer", right_on="id")
                .join(orders.select(buyer="customer", two="id"), left_on="customer", right_on="buyer")
                .select("id", "two")
            )
        ),
        """
        join of (id, customer, _, _), (customer, _, _), (two, customer, _, _) in the order orders, customers, orders to (id, two)
          read orders
          read customers
          read orders
        """,
    ),
    "a join that is read twice stays apart": (
        python(
            lambda orders, customers: _joined_twice(
                orders.join(customers, left_on="customer", right_on="id"), customers
            )
        ),
        """
        union all
          join of (id, limits), (limits, _, _) to (id)
            #1 join of (id, customer, _, _), (customer, _, limits) to (id, limits)
              read orders
              read customers
            read customers
          select id
            as #1 above
        """,
    ),
    "a table that was filtered before it was joined is tested afterwards": (
        python(
            lambda orders, customers: (
                orders.filter(tk.col("total") > 3)
                .join(customers, left_on="customer", right_on="id")
                .select("id", "limits")
            )
        ),
        """
        join of (id, customer, total, _), (customer, _, limits) to (id, limits)
          where total > 3
          read orders
          read customers
        """,
    ),
    "an equality of values is a key where nothing else connects": (
        sql("SELECT o.total FROM orders o, customers c WHERE o.customer + 1 = c.id"),
        """
        join of (total, id#2), (id#2, _, _) to (total)
          select total, #key = customer + 1
            read orders
          read customers
        """,
    ),
    "an equality of values is tested where something else connects": (
        sql("SELECT o.total FROM orders o, customers c WHERE o.customer = c.id AND o.total + 1 = c.limits"),
        """
        select total where total + 1 == limits
          join of (_, customer, total, _), (customer, _, limits) to (total, limits)
            read orders
            read customers
        """,
    ),
    "a stream is filtered and cut before it is joined": (
        sql("SELECT o.id FROM orders AS o JOIN items AS i ON o.id = i.line WHERE i.amount > 5"),
        """
        join of (id, _, _, _), (id) to (id)
          read orders
          select line where amount > 5
            read items
        """,
    ),
    "a part of the groups that nothing reads is not computed, a condition on keys goes below all parts": (
        sql(
            "SELECT customer FROM (SELECT customer, count(*) AS n, max(total) AS m FROM orders GROUP BY customer) AS g "
            "WHERE m > 3 AND customer < 9"
        ),
        """
        select customer where max > 3
          last 1 by #absent, max for each customer
            select customer, #absent = total.is_not_null(), max = total where customer < 9
              read orders
        """,
    ),
    "windows that nothing reads are not computed, nor are columns kept for them": (
        sql(
            "SELECT id FROM (SELECT id, total, note, row_number() OVER (ORDER BY total) AS r, "
            "sum(total) OVER (PARTITION BY customer) AS s FROM orders) AS w WHERE r < 3"
        ),
        """
        select id where row_number < 3
          NearWindows
            select total, id
              read orders
        """,
    ),
    "the first rows keep what orders them and what is read": (
        sql("SELECT note FROM (SELECT * FROM orders ORDER BY total LIMIT 2)"),
        """
        select note
          first 2 by __null_0, __rank_0, note
            select __null_0 = total.is_null(), __rank_0 = total.rank(False), note
              read orders
        """,
    ),
    "a subquery by a key has one value, which is not checked": (
        sql("SELECT id FROM orders o WHERE total = (SELECT limits FROM customers c WHERE c.id = o.customer)"),
        """
        join of (id, customer, total, _), (customer, _, total) to (id)
          read orders
          read customers
        """,
    ),
}


def _twice(found: tk.Collection) -> tk.Collection:
    return found.filter(tk.col("customer") > 3).concat(found)


def _joined_twice(both: tk.Collection, customers: tk.Collection) -> tk.Collection:
    return both.join(customers, left_on="limits", right_on="id").select("id").concat(both.select("id"))


def text(block: str) -> str:
    """A block of a test's text without its indentation."""
    lines = [line for line in block.splitlines() if line.strip()]
    margin = min(len(line) - len(line.lstrip()) for line in lines)
    return "\n".join(line[margin:] for line in lines)


@pytest.mark.parametrize("name", CASES)
def test_plan(name: str) -> None:
    query, after = CASES[name]
    assert plan_of(query) == text(after)


def test_a_private_filter_keeps_all_that_its_clause_says() -> None:
    with tk.Engine(autocommit=False) as engine:
        table = engine.create_table("table", {"a": tk.Int, "b": tk.Int, "c": tk.Int, "d": tk.Int, "e": tk.Int})
        other = engine.create_table("other", {"e": tk.Int})
        barred = engine.create_table("barred", {"a": tk.Int})
        found = tk.match(
            (table, ("a", tk.lit(1), "same", "same", "e")),
            (other, ("e",)),
            find=["e"],
            where=tk.col("a").isin([3, 4, 5]),
            without=[(barred, ("a",))],
        )
        assert "filter a.isin([3, 4, 5])" in found.explain()
        view = engine.install("found", found)
        table.insert([(3, 1, 7, 7, 1), (3, 2, 7, 7, 2), (4, 1, 7, 8, 3), (5, 1, 7, 7, 4), (6, 1, 7, 7, 5)])
        other.insert([(e,) for e in range(9)])
        barred.insert([(5,)])
        engine.advance()
        assert view.rows() == [(1,)]
