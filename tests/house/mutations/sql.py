"""Faults of SQL: bind, rules, lower, statements."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sqlglot import exp

import tektite as tk
from tektite.sql.rules.decorrelate import comparison, matched
from tests.house.mutations.fault import Fault, altered, being, misled, returning
from tests.support.sql_oracle import empty_duckdb

SCHEMA = """
    CREATE TABLE a (k int, x int);
    CREATE TABLE b (k int, y int);
    INSERT INTO a VALUES (1, 1), (1, 2), (2, 3), (3, NULL), (NULL, 5);
    INSERT INTO b VALUES (1, 10), (2, 20), (2, 21), (4, 40), (NULL, 50)
"""


def agrees(query: str, ordered: bool = False) -> None:
    """A query gives what DuckDB gives, asked once and maintained."""
    with tk.Engine(autocommit=False) as engine, empty_duckdb() as oracle:
        engine.sql(SCHEMA)
        oracle.execute(SCHEMA)
        expected, found = oracle.execute(query).fetchall(), engine.sql(query).rows()
        assert (found == expected) if ordered else (sorted(found, key=str) == sorted(expected, key=str)), query
        view = engine.sql(f"CREATE MATERIALIZED VIEW v AS {query}").view
        assert view is not None and sorted(view.rows(), key=str) == sorted(expected, key=str), query


RIGHTS = """
    CREATE TABLE docs (id int PRIMARY KEY, owner varchar); INSERT INTO docs VALUES (1, 'ann'), (2, 'bob');
    CREATE USER ann; CREATE USER bob; CREATE ROLE staff; GRANT staff TO ann; GRANT SELECT ON docs TO staff, bob;
    CREATE POLICY own ON docs USING (owner = current_user); ALTER TABLE docs ENABLE ROW LEVEL SECURITY
"""


def rights() -> None:
    """Each of two subscribers has their own rows, and loses them with the grant; so has a query that is run once."""
    with tk.Engine() as engine:
        engine.sql(RIGHTS)
        sessions = {name: engine.session() for name in ("bob", "ann")}
        followed = {}
        for name, session in sessions.items():
            session.sql(f"SET ROLE {name}")
            assert session.sql("SELECT id FROM docs").rows() == [(1,) if name == "ann" else (2,)]
            followed[name] = session.sql("SUBSCRIBE (SELECT id FROM docs)").subscription
        told = {name: [(change.row, change.diff) for change in found.changes()] for name, found in followed.items()}
        assert told == {"ann": [((1,), 1)], "bob": [((2,), 1)]}
        engine.sql("REVOKE staff FROM ann")
        told = {name: [(change.row, change.diff) for change in found.changes()] for name, found in followed.items()}
        assert told == {"ann": [((1,), -1)], "bob": []}
        try:
            found = sessions["ann"].sql("SELECT id FROM docs").rows()
        except tk.TektiteError:
            found = None
        assert found is None


def outer_joins() -> None:
    agrees("SELECT a.k, x, y FROM a LEFT JOIN b ON a.k = b.k AND y > 15")
    agrees("SELECT a.k, x, y FROM a LEFT JOIN b ON a.k = b.k WHERE x > 1")
    agrees("SELECT a.k, x, b.k, y FROM a FULL JOIN b ON a.k = b.k")
    agrees("SELECT x FROM a LEFT JOIN b ON a.k = b.k WHERE y IS NULL")


def subqueries() -> None:
    agrees("SELECT k, x FROM a WHERE x = (SELECT max(x) FROM a AS i WHERE i.k = a.k)")
    agrees("SELECT k FROM a WHERE EXISTS (SELECT * FROM b WHERE b.k = a.k AND y > x + 10)")
    agrees("SELECT k, (SELECT count(*) FROM b WHERE b.k = a.k) AS n FROM a")


def membership() -> None:
    agrees("SELECT x FROM a WHERE k NOT IN (SELECT k FROM b)")
    agrees("SELECT x FROM a WHERE k NOT IN (SELECT k FROM b WHERE k IS NOT NULL)")
    agrees("SELECT x FROM a WHERE k IN (SELECT k FROM b)")


def disjunctions() -> None:
    agrees("SELECT x, y FROM a, b WHERE (a.k = b.k AND x > 1) OR (a.k = b.k AND y = 10)")
    agrees("SELECT x FROM a WHERE x = 1 OR x = 3 OR k = 1")


def inserts_write_the_default_of_today() -> None:
    with tk.Engine() as engine:
        engine.sql("CREATE TABLE t (a int, b text DEFAULT 'one')")
        engine.sql("INSERT INTO t (a) VALUES ($1)", [1])
        engine.sql("ALTER TABLE t ALTER COLUMN b SET DEFAULT 'two'")
        engine.sql("INSERT INTO t (a) VALUES ($1)", [2])
        assert sorted(engine.sql("SELECT * FROM t").rows()) == [(1, "one"), (2, "two")]


def constants() -> None:
    agrees("SELECT x FROM a WHERE x > 1 AND 2 > 1")
    agrees("SELECT x FROM a WHERE 1 > 2 OR x = 3")
    agrees("SELECT CASE WHEN two = 1 THEN 7 ELSE x END AS c FROM (SELECT 2 AS two, x FROM a) AS s")


def groups() -> None:
    agrees("SELECT k, count(*) AS n, count(x) AS c, sum(x) AS s, min(x) AS l, max(x) AS m FROM a GROUP BY k")
    agrees("SELECT count(*) AS n, sum(x) AS s FROM a WHERE x > 100")
    agrees("SELECT k FROM a GROUP BY k HAVING count(*) > 1")


def joins() -> None:
    agrees("SELECT a.x, y, i.x AS z FROM a JOIN b ON a.k = b.k JOIN a AS i ON i.x = b.y - 9")
    agrees("SELECT x FROM a JOIN b ON a.k = b.k WHERE y > 15 AND x < 5")
    agrees("SELECT x FROM a JOIN b ON a.k = b.k WHERE y > 5 AND x < 2")


def set_operations() -> None:
    agrees("SELECT k FROM a UNION SELECT k FROM b")
    agrees("SELECT k FROM a EXCEPT SELECT k FROM b")
    agrees("SELECT k FROM a UNION ALL SELECT k FROM b")


def order_and_limit() -> None:
    agrees("SELECT x FROM a ORDER BY x DESC NULLS LAST", ordered=True)
    agrees("SELECT x FROM a ORDER BY x NULLS FIRST LIMIT 2")


def windows() -> None:
    agrees("SELECT k, x, row_number() OVER (PARTITION BY k ORDER BY x) AS r, sum(x) OVER (PARTITION BY k) AS s FROM a")
    agrees("SELECT * FROM (SELECT k, x, rank() OVER (ORDER BY x NULLS LAST) AS r FROM a) AS w WHERE k = 2")
    agrees("SELECT * FROM (SELECT k, x, count(*) OVER (PARTITION BY x % 2) AS n FROM a) AS w WHERE k = 2")


def dates() -> None:
    agrees(
        "SELECT DATE '2024-01-31' + INTERVAL '1 month' AS d, date_diff('day', DATE '2024-01-01', DATE '2024-03-01') AS n"
    )


def recursion() -> None:
    agrees("WITH RECURSIVE r(n) AS (SELECT 1 UNION SELECT n + 1 FROM r WHERE n < 5) SELECT n FROM r")


def a_transaction_sees_itself() -> None:
    with tk.Engine(autocommit=False) as engine:
        engine.sql("CREATE TABLE t (k int); INSERT INTO t VALUES (1); BEGIN; INSERT INTO t VALUES (2)")
        assert sorted(engine.sql("SELECT k FROM t").rows()) == [(1,), (2,)]
        engine.sql("COMMIT")
        assert sorted(engine.sql("SELECT k FROM t").rows()) == [(1,), (2,)]


def a_definition_is_read_as_it_is() -> None:
    with tk.Engine(autocommit=False) as engine:
        engine.sql(SCHEMA)
        for bound, expected in ((2, 2), (4, 1)):
            engine.sql(f"CREATE OR REPLACE VIEW above AS SELECT x FROM a WHERE x > {bound}")
            assert engine.sql("SELECT count(*) AS n FROM above").rows() == [(expected,)]


def not_in_as_not_exists(there: Any) -> Any:
    def kept(plan: Any, apply: Any, truth: bool, names: Any) -> Any:
        if truth or apply.kind == "exists":
            return there(plan, apply, truth, names)
        return matched(plan, apply.right, "anti", comparison(apply), names)

    return kept


def of_all(node: Any) -> Any:
    """A set operation that keeps what is there twice."""
    copy = node.copy()
    copy.set("distinct", False)
    return copy


def bounds_that_move() -> None:
    with tk.Engine(autocommit=False) as engine:
        engine.sql(SCHEMA)
        select = "SELECT x FROM a WHERE x >= (SELECT max(x) FROM a)"
        assert "range filter" in str(engine.sql(f"EXPLAIN {select}"))
        view = engine.sql(f"CREATE MATERIALIZED VIEW v AS {select}").view
        engine.sql("INSERT INTO a VALUES (9, 20)")
        assert view is not None and view.rows() == [(20,)]


RULES = "tektite.sql.rules"
BIND = "tektite.sql.bind"
QUERY = "tektite.query"
STATEMENTS = "tektite.sql.statements"


def first_only(parts: list[Any]) -> list[Any]:
    return parts[:1]


def turned_out(edge: exp.Expr) -> exp.Expr:
    """An edge of a pattern that leads out."""
    found = edge.copy()
    found.set("direction", "out")
    return found


def patterns_read_by_the_rights_of_the_owner() -> None:
    """Who may read a graph finds its patterns, and reads nothing else by that right."""
    with tk.Engine() as engine:
        engine.sql("""
            CREATE TABLE p (id int PRIMARY KEY); CREATE TABLE k (a int, b int); CREATE TABLE secret (x int);
            INSERT INTO p VALUES (1), (2); INSERT INTO k VALUES (1, 2), (2, 9); INSERT INTO secret VALUES (7);
            CREATE PROPERTY GRAPH g VERTEX TABLES (p)
            EDGE TABLES (k SOURCE KEY (a) REFERENCES p DESTINATION KEY (b) REFERENCES p);
            CREATE USER ann; GRANT SELECT ON g TO ann
        """)
        session = engine.session()
        session.sql("SET ROLE ann")
        walks = "SELECT * FROM GRAPH_TABLE (g MATCH (a)-[e]-{1,2}(b) WHERE a.id = 1 COLUMNS (a.id, b.id AS b))"
        assert sorted(session.sql(walks).rows()) == [(1, 1), (1, 2)]
        stolen = "SELECT * FROM GRAPH_TABLE (g MATCH (a WHERE a.id = 1) COLUMNS ((SELECT x FROM secret) AS x))"
        try:
            session.sql(stolen)
        except tk.UnsupportedError:
            return
        raise AssertionError("a pattern has read what its user may not read")


FAULTS = [
    Fault("outer joins are inner ones", f"{QUERY}.condition_joins padded",
          lambda there: lambda missing, like: there(missing, like).filter(tk.lit(False)), outer_joins),
    Fault("only the first predicate is placed", "tektite.expr.predicates conjuncts", altered(first_only), joins),
    Fault("branches of OR are lost", "tektite.plan.rules.factor_disjunctions branches", altered(first_only), disjunctions),
    Fault("OR is decided as AND is", "tektite.expr.fold logic",
          lambda there: lambda expression: expression.args[0] if expression.op == "or" else there(expression), disjunctions),
    Fault("every case takes its first branch", "tektite.expr.fold chosen",
          lambda there: lambda expression: expression.args[1], constants),
    Fault("every semi join is an inner one", "tektite.plan.rules.drop_distinct unique_columns", returning(()), subqueries),
    Fault("NOT IN is NOT EXISTS", f"{RULES}.decorrelate kept", not_in_as_not_exists, membership),
    Fault("aggregates of nothing have no row", f"{QUERY}.aggregation always",
          lambda there: lambda result, calls, unit: result, groups),
    Fault("least and greatest are one", f"{QUERY}.aggregation extreme",
          lambda there: lambda values, keys, name, last: there(values, keys, name, True), groups),
    Fault("rows are given as they lie", f"{QUERY}.row_order sorted_rows",
          lambda there: lambda table, order: table, order_and_limit),
    Fault("filters pass under windows", "tektite.plan.rules.push_predicates _Push._below_groups",
          misled(lambda self, operator, key, parts: (self, operator, range(len(operator.input.schema.names)), parts)), windows),
    Fault("a semi join matches each time", f"{RULES}.decorrelate matched",
          misled(lambda plan, inner, kind, *rest: (plan, inner, "inner" if kind == "semi" else kind, *rest)), subqueries),
    Fault("a value that moves is joined with", "tektite.plan.rules.range_filters with_bound", returning(None),
          bounds_that_move),
    Fault("rows are there twice after UNION", f"{BIND}.query Binder.combine",
          lambda there: lambda self, node, left, others: there(self, of_all(node), left, others), set_operations),
    Fault("an interval is a day too long", "tektite.expr.interval_parts IntervalParts.move",
          altered(lambda moment: moment.add_days(1)), dates),
    Fault("recursion ends where it begins", f"{BIND}.recursion split",
          altered(lambda member: replace(member, steps=[])), recursion),
    Fault("a transaction does not see itself", "tektite.engine.session Transaction.seen",
          lambda there: lambda self, collection: collection, a_transaction_sees_itself),
    Fault("a commit changes nothing", "tektite.engine.session Transaction.commit", being(lambda self: self.rollback()),
          a_transaction_sees_itself),
    Fault("texts are planned once for ever", f"{STATEMENTS}.statement_cache Remembered._stands", returning(True),
          a_definition_is_read_as_it_is),
    Fault("a table is for ever as a statement found it", f"{STATEMENTS}.direct RowInsert.stands", returning(True),
          inserts_write_the_default_of_today),
    Fault("a pattern may hold a query", f"{BIND}.property_graphs REFUSED", being({}),
          patterns_read_by_the_rights_of_the_owner),
    Fault("an edge leads one way", f"{BIND}.property_graphs PatternQuery._walked_edges",
          misled(lambda self, step, node, backwards: (self, replace(step, edge=turned_out(step.edge)), node, backwards)),
          patterns_read_by_the_rights_of_the_owner),
    Fault("everybody may read", "tektite.sql.access.access_control AccessControl.may", returning(True), rights),
    Fault("policies bind nobody", "tektite.sql.access.access_control AccessControl.bypasses", returning(True), rights),
    Fault("arguments count whoever asks", f"{STATEMENTS}.shared_queries counts",
          being(lambda needed, object: exp.true()), rights),
    Fault("all clients have one number", f"{STATEMENTS}.shared_queries SharedQueries.bind",
          lambda there: lambda self, *given: min(there(self, *given), 1), rights),
    Fault("changes are routed to nobody", "tektite.engine.routing Router.route", returning(None), rights),
    Fault("plans outlive the rights", f"{STATEMENTS}.statement_cache Remembered._rights", returning((None, 0)), rights),
]  # fmt: skip
