"""Each rewrite of what a statement means before it is lowered, before and after."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import tektite as tk
from tektite import sql
from tektite.sql.bind.query import Binder
from tektite.sql.logical import Names, Node
from tektite.sql.parse import parser
from tektite.sql.rules import RULES
from tests.support.sql.logical_text import explain

SCHEMA = """
    CREATE TABLE orders (id int PRIMARY KEY, customer int, total decimal(10, 2), note varchar);
    CREATE TABLE customers (id int PRIMARY KEY, town varchar, limits int);
    CREATE TABLE items (line int, part int, amount int) WITH (semantics = 'stream')
"""


def planned(query: str, *names: str) -> str:
    """The plan of a query after the rules of these names, in their own order, as text."""
    engine = tk.Engine()
    engine.sql(SCHEMA)
    (statement,) = parser.parse(query)
    assert isinstance(statement, parser.Plain)
    binder = Binder(statement.source, sql.session(engine).reader())
    plan = binder.query(statement.tree, None).plan
    return show(apply(plan, binder.names, [rule for rule in RULES if rule.__name__ in names]))


def apply(plan: Node, names: Names, rules: list[Callable[[Node, Names], Node]]) -> Node:
    for rule in rules:
        plan = rule(plan, names)
    return plan


def show(plan: Node) -> str:
    return "\n".join(explain(plan))


def text(block: str) -> str:
    """A block of a test's text without its indentation."""
    lines = [line for line in block.splitlines() if line.strip()]
    margin = min(len(line) - len(line.lstrip()) for line in lines)
    return "\n".join(line[margin:] for line in lines)


CASES: dict[str, tuple[str, tuple[str, ...], str]] = {
    "fold_constants: what constants decide is decided": (
        "SELECT id FROM orders WHERE 1 < 2 AND total > 2 * 3 AND (note = 'x' OR 1 = 1)",
        ("fold_constants",),
        """
        select id
          filter total > 6
            read orders
        """,
    ),
    "fold_constants: a filter that nothing passes is empty": (
        "SELECT id FROM orders WHERE total > 1 AND 1 > 2",
        ("fold_constants",),
        """
        select id
          0 constant rows
        """,
    ),
    "fold_constants: dates move": (
        "SELECT DATE '1994-01-31' + INTERVAL '1' MONTH AS d",
        ("fold_constants",),
        """
        select d = '1994-02-28 00:00:00'
          1 constant row
        """,
    ),
    "decorrelate: EXISTS with equalities is a semi join": (
        "SELECT id FROM customers AS c WHERE EXISTS (SELECT 1 FROM orders AS o WHERE o.customer = c.id AND o.total > 5)",
        ("decorrelate",),
        """
        select id
          semi join on customer == id
            read customers
            select 1 = 1, customer
              filter total > 5
                read orders
        """,
    ),
    "decorrelate: a scalar aggregate is grouped by what it is correlated by": (
        "SELECT id, (SELECT sum(total) FROM orders AS o WHERE o.customer = c.id) AS s FROM customers AS c",
        ("decorrelate",),
        """
        select id, sum#2
          select id, town, limits, sum#2 = sum
            left join on id == customer
              read customers
              group by customer: sum = sum(total)
                read orders
        """,
    ),
    "decorrelate: a correlation that is no equality takes a domain along": (
        "SELECT id, (SELECT count(*) FROM orders AS o WHERE o.total > c.limits) AS n FROM customers AS c",
        ("decorrelate",),
        None,  # type: ignore[arg-type]
    ),
    "factor_disjunctions: what all branches demand is demanded once": (
        "SELECT o.id FROM orders AS o, customers AS c "
        "WHERE (o.customer = c.id AND o.total > 5) OR (o.customer = c.id AND c.town = 'x')",
        ("factor_disjunctions",),
        """
        select id
          filter (customer == id#2) & ((total > 5) | (town == 'x'))
            inner join on True
              read orders
              read customers
        """,
    ),
    "push_predicates: into the sides of a join": (
        "SELECT o.id FROM orders AS o JOIN customers AS c ON o.customer = c.id WHERE o.total > 5 AND c.town = 'x'",
        ("push_predicates",),
        """
        select id
          inner join on customer == id#2
            filter total > 5
              read orders
            filter town == 'x'
              read customers
        """,
    ),
    "push_predicates: an outer join whose NULLs nothing lets through is an inner one": (
        "SELECT o.id FROM orders AS o LEFT JOIN customers AS c ON o.customer = c.id WHERE c.town = 'x'",
        ("push_predicates",),
        """
        select id
          inner join on customer == id#2
            read orders
            filter town == 'x'
              read customers
        """,
    ),
    "push_predicates: not below an outer join that fills up": (
        "SELECT o.id FROM orders AS o LEFT JOIN customers AS c ON o.customer = c.id WHERE c.town IS NULL AND o.total > 5",
        ("push_predicates",),
        """
        select id
          filter town.is_null()
            left join on customer == id#2
              filter total > 5
                read orders
              read customers
        """,
    ),
    "push_predicates: below groups by their keys": (
        "SELECT * FROM (SELECT customer, count(*) AS n FROM orders GROUP BY customer) AS g WHERE customer > 3 AND n > 1",
        ("push_predicates",),
        """
        filter count > 1
          group by customer: count = count(*)
            filter customer > 3
              read orders
        """,
    ),
    "join_unique: what is there once for each key is joined": (
        "SELECT id FROM orders WHERE customer IN (SELECT customer FROM orders GROUP BY customer HAVING sum(total) > 5)",
        ("decorrelate", "push_predicates", "join_unique"),
        """
        select id
          select id, customer, total, note
            inner join on customer == customer#2
              read orders
              select customer#2
                filter sum > 5
                  group by customer#2: sum = sum(total#2)
                    read orders
        """,
    ),
    "join_unique: what may be there twice is not": (
        "SELECT id FROM orders WHERE customer IN (SELECT line FROM items)",
        ("decorrelate", "push_predicates", "join_unique"),
        """
        select id
          semi join on customer == line
            read orders
            select line
              read items
        """,
    ),
    "join_unique: a table that is asked for by its key is joined with the different keys": (
        "SELECT id FROM customers AS c WHERE town = 'York' AND EXISTS (SELECT * FROM orders AS o WHERE o.customer = c.id)",
        ("decorrelate", "push_predicates", "join_unique"),
        """
        select id
          select id, town, limits
            inner join on customer == id
              filter town == 'York'
                read customers
              distinct
                select customer
                  read orders
        """,
    ),
    "flatten_joins: tables stand whole, filters become conjuncts": (
        "SELECT o.id FROM orders AS o JOIN customers AS c ON o.customer = c.id WHERE o.total > 5",
        ("push_predicates", "flatten_joins"),
        """
        select id
          join of 2
            where total > 5
            where customer == id#2
            read orders
            read customers
        """,
    ),
    "flatten_joins: a stream is filtered before it is joined": (
        "SELECT o.id FROM orders AS o JOIN items AS i ON o.id = i.line WHERE i.amount > 5",
        ("push_predicates", "flatten_joins"),
        """
        select id
          join of 2
            where id == line
            read orders
            filter amount > 5
              read items
        """,
    ),
    "flatten_joins: a disjunction implies something for each relation": (
        "SELECT o.id FROM orders AS o, customers AS c WHERE o.customer = c.id AND "
        "((o.note = 'a' AND c.town = 'x') OR (o.note = 'b' AND c.town = 'y'))",
        ("push_predicates", "flatten_joins"),
        """
        select id
          join of 2
            where customer == id#2
            where (note == 'a') & (town == 'x') | (note == 'b') & (town == 'y')
            where (note == 'a') | (note == 'b')
            where (town == 'x') | (town == 'y')
            read orders
            read customers
        """,
    ),
    "prune_columns: what nothing reads is not computed": (
        "SELECT n FROM (SELECT customer, count(*) AS n, sum(total) AS s, max(note) AS m FROM orders GROUP BY customer) AS g",
        ("prune_columns",),
        """
        select count
          group by customer: count = count(*)
            read orders
        """,
    ),
}


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case[2] is not None])
def test_rule(name: str) -> None:
    query, rules, after = CASES[name]
    assert planned(query, *rules) == text(after)


def test_decorrelation_by_a_domain_leaves_no_free_columns() -> None:
    query, rules, _ = CASES["decorrelate: a correlation that is no equality takes a domain along"]
    found = planned(query, *rules)
    assert "distinct" in found and "apply" not in found
    assert "left join" in found


def test_every_rule_is_tested() -> None:
    tested = {rule for _, rules, _ in CASES.values() for rule in rules}
    assert {rule.__name__ for rule in RULES} == tested
