"""Decorrelation, before and after. What happens to plans after that is tested in tests/plan."""

from __future__ import annotations

import pytest

import tektite as tk
from tektite import sql
from tektite.sql.bind.query import Binder
from tektite.sql.parse import parser
from tektite.sql.rules.decorrelate import decorrelate
from tests.support.sql.logical_text import explain

SCHEMA = """
    CREATE TABLE orders (id int PRIMARY KEY, customer int, total decimal(10, 2), note varchar);
    CREATE TABLE customers (id int PRIMARY KEY, town varchar, limits int);
    CREATE TABLE items (line int, part int, amount int) WITH (mode = 'stream')
"""


def planned(query: str) -> str:
    """The plan of a query after decorrelation, as text."""
    engine = tk.Engine()
    engine.sql(SCHEMA)
    (statement,) = parser.parse(query)
    assert isinstance(statement, parser.Plain)
    binder = Binder(statement.source, sql.runner(engine).reader())
    plan = binder.query(statement.tree, None).plan
    return "\n".join(explain(decorrelate(plan, binder.names)))


def text(block: str) -> str:
    """A block of a test's text without its indentation."""
    lines = [line for line in block.splitlines() if line.strip()]
    margin = min(len(line) - len(line.lstrip()) for line in lines)
    return "\n".join(line[margin:] for line in lines)


CASES: dict[str, tuple[str, str]] = {
    "EXISTS with equalities is a semi join": (
        "SELECT id FROM customers AS c WHERE EXISTS (SELECT 1 FROM orders AS o WHERE o.customer = c.id AND o.total > 5)",
        """
        select id
          semi join on customer == id
            read customers
            select 1 = 1, customer
              filter total > 5
                read orders
        """,
    ),
    "a scalar aggregate is grouped by what it is correlated by": (
        "SELECT id, (SELECT sum(total) FROM orders AS o WHERE o.customer = c.id) AS s FROM customers AS c",
        """
        select id, sum#2
          select id, town, limits, sum#2 = sum
            left join on id == customer
              read customers
              at most one row for each customer
                group by customer: sum = sum(total)
                  read orders
        """,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_decorrelation(name: str) -> None:
    query, after = CASES[name]
    assert planned(query) == text(after)


def test_a_correlation_that_is_no_equality_takes_a_domain_along() -> None:
    found = planned("SELECT id, (SELECT count(*) FROM orders AS o WHERE o.total > c.limits) AS n FROM customers AS c")
    assert "distinct" in found and "apply" not in found
    assert "left join" in found
