"""docs/sql-support.md: what SQL supports, found out by running an example of each construct.

`python -m tests.support.sql.support_table` writes the page; `tests/sql/test_support_table.py` fails when the page is not what the
examples say. So the page says nothing that was not tried.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import tektite as tk

PAGE = Path(__file__).parents[3] / "docs" / "sql-support.md"
SETUP = """
CREATE TABLE t (a INT PRIMARY KEY, b INT, s VARCHAR, d DATE, m DECIMAL(10, 2), at TIMESTAMP);
CREATE TABLE u (a INT, c INT);
CREATE TABLE n (k INT, l INT[], r STRUCT(x INT, y VARCHAR), j JSON, i INTERVAL, z TIMESTAMPTZ);
INSERT INTO n VALUES (1, [1, 2], {'x': 1, 'y': 'a'}, '{"a": [1]}', '1 day', '2024-01-01 10:00:00+00');
INSERT INTO n VALUES (2, NULL, NULL, NULL, NULL, NULL);
INSERT INTO t VALUES (1, 10, 'x', '2024-01-01', 1.5, '2024-01-01 10:00:00'), (2, NULL, 'y', NULL, NULL, NULL);
INSERT INTO u VALUES (1, 5), (1, 7), (3, 9);
CREATE MATERIALIZED VIEW v AS SELECT b, count(*) AS n FROM t GROUP BY b;
CREATE TABLE town (id INT PRIMARY KEY, name VARCHAR); CREATE TABLE road (a INT, b INT, km INT);
CREATE PROPERTY GRAPH map VERTEX TABLES (town) EDGE TABLES (
  road SOURCE KEY (a) REFERENCES town DESTINATION KEY (b) REFERENCES town
);
"""
HEAD = """# What SQL supports

Every line was run: `yes` means that the example works, and, if it is a query, also that it can be kept up to date as a
materialized view. Anything else is what the engine says of it. `python -m tests.support.sql.support_table` writes this page,
and a test fails when it is not up to date.
"""
ONCE = "once"
"""Marks a query that cannot be kept up to date by its nature, such as one of the system catalogs."""

CONSTRUCTS: dict[str, list[tuple[str, str]]] = {
    "Queries": [
        ("joins: inner, left, right, full, cross", "SELECT t.a FROM t FULL JOIN u ON t.a = u.a"),
        ("SEMI and ANTI JOIN", "SELECT a FROM t ANTI JOIN u ON t.a = u.a"),
        ("NATURAL JOIN, USING", "SELECT a FROM t NATURAL JOIN u"),
        ("LATERAL", "SELECT t.a, x.c FROM t, LATERAL (SELECT c FROM u WHERE u.a = t.a) x"),
        ("ASOF JOIN", "SELECT t.a FROM t ASOF JOIN u ON t.a >= u.a"),
        ("subqueries: scalar, EXISTS, IN, ANY, ALL", "SELECT a FROM t WHERE b > ALL (SELECT c FROM u WHERE u.a = t.a)"),
        ("WITH", "WITH w AS (SELECT a FROM t) SELECT x.a FROM w x JOIN w y ON x.a = y.a"),
        ("WITH RECURSIVE", "WITH RECURSIVE r(n) AS (SELECT 1 UNION SELECT n + 1 FROM r WHERE n < 9) SELECT n FROM r"),
        ("UNION, INTERSECT, EXCEPT, with ALL", "SELECT a FROM t EXCEPT ALL SELECT a FROM u"),
        ("UNION BY NAME", "SELECT a, b FROM t UNION BY NAME SELECT a, c FROM u"),
        ("GROUP BY, HAVING", "SELECT b, count(*) FROM t GROUP BY b HAVING count(*) > 0"),
        ("GROUPING SETS, ROLLUP, CUBE", "SELECT b, s, sum(a) FROM t GROUP BY ROLLUP (b, s)"),
        ("DISTINCT ON", "SELECT DISTINCT ON (b) b, a FROM t ORDER BY b, a"),
        ("ORDER BY, LIMIT, OFFSET", "SELECT a FROM t ORDER BY a LIMIT 1 OFFSET 1"),
        ("LIMIT WITH TIES, PERCENT", "SELECT a FROM t ORDER BY b LIMIT 10 PERCENT"),
        ("QUALIFY", "SELECT a FROM t QUALIFY row_number() OVER (PARTITION BY b ORDER BY a) = 1"),
        ("VALUES", "SELECT x FROM (VALUES (1), (2)) w(x)"),
        ("generate_series, range", "SELECT n FROM generate_series(1, 3) g(n)"),
        ("LIMIT of many numbers", "SELECT n FROM range(100000000000) r(n) LIMIT 2"),
        ("generate_series of columns", "SELECT t.a, n FROM t, generate_series(1, t.a) g(n)"),
        ("unnest in SELECT", "SELECT k, unnest(l) FROM n"),
        ("unnest in FROM, WITH ORDINALITY", "SELECT k, x, o FROM n, unnest(n.l) WITH ORDINALITY AS e(x, o)"),
        ("LEFT JOIN LATERAL unnest", "SELECT k, x FROM n LEFT JOIN LATERAL unnest(n.l) AS e(x) ON true"),
        ("generate_series of moments", "SELECT * FROM range(DATE '2024-01-01', DATE '2024-02-01', INTERVAL '1 week')"),
        ("PIVOT", "SELECT * FROM u PIVOT (sum(c) FOR a IN (1, 3))"),
        ("PIVOT as a statement", "PIVOT u ON a IN (1, 3) USING sum(c)"),
        ("PIVOT without values", "PIVOT u ON a USING sum(c)"),
        ("UNPIVOT", "SELECT * FROM u UNPIVOT (value FOR name IN (a, c))"),
        ("TABLESAMPLE", "SELECT a FROM t TABLESAMPLE 10%"),
        ("* EXCLUDE", "SELECT * EXCLUDE (s) FROM t"),
        ("* REPLACE, * RENAME", "SELECT * REPLACE (a + 1 AS a) RENAME (b AS c) FROM t"),
        ("* LIKE, ILIKE, SIMILAR TO", "SELECT * LIKE '%a%' FROM t"),
        ("COLUMNS", "SELECT max(COLUMNS('a|b')) FROM t"),
        (
            "GRAPH_TABLE",
            "SELECT * FROM GRAPH_TABLE (map MATCH (x WHERE x.id = 1)-[e IS road]->(y) COLUMNS (e.km, y.name))",
        ),
        (
            "GRAPH_TABLE with walks",
            "SELECT * FROM GRAPH_TABLE (map MATCH (x)-[IS road]->*(y) COLUMNS (x.name, y.name AS other))",
        ),
        ("text in dollar quotes", "SELECT $$it's$$, $tag$ $$ $tag$"),
        (
            "WITH ... USING KEY",
            "WITH RECURSIVE r(k, n) USING KEY (k) AS (SELECT 1, 1 UNION SELECT k, n + 1 FROM r WHERE n < 3) SELECT * FROM r",
        ),
    ],
    "Windows": [
        ("row_number, rank, ntile", "SELECT a, rank() OVER (ORDER BY b) FROM t"),
        (
            "aggregates with frames",
            "SELECT a, sum(b) OVER (ORDER BY a ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t",
        ),
        ("RANGE frames", "SELECT a, sum(b) OVER (ORDER BY a RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING) FROM t"),
        ("lag, lead, first_value, nth_value", "SELECT a, lag(b) OVER (ORDER BY a) FROM t"),
        ("IGNORE NULLS", "SELECT a, lag(b IGNORE NULLS) OVER (ORDER BY a) FROM t"),
        (
            "EXCLUDE",
            "SELECT a, sum(b) OVER (ORDER BY a ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW EXCLUDE CURRENT ROW) FROM t",
        ),
        ("DISTINCT", "SELECT a, count(DISTINCT b) OVER () FROM t"),
        (
            "offsets from columns",
            "SELECT a, lag(b, a) OVER (ORDER BY a), sum(b) OVER (ORDER BY a ROWS a PRECEDING) FROM t",
        ),
        ("named windows", "SELECT a, sum(b) OVER w FROM t WINDOW w AS (ORDER BY a)"),
        ("time_bucket", "SELECT time_bucket(INTERVAL '1 hour', at), count(*) FROM t GROUP BY 1"),
        ("tumble", "SELECT * FROM tumble(t, at, INTERVAL '1 hour')"),
        ("hop", "SELECT * FROM hop(t, at, INTERVAL '15 minutes', INTERVAL '1 hour')"),
        ("session", "SELECT * FROM session(t, at, INTERVAL '1 hour')"),
        ("bounds that move", "SELECT a FROM t WHERE at > now() - INTERVAL '1 hour'"),
    ],
    "Types": [
        ("integers up to 64 bits", "SELECT 9223372036854775807"),
        ("the smallest integer, -2^63", "SELECT -9223372036854775808"),
        ("double, boolean, varchar, date, timestamp", "SELECT 1.5::double, true, 'x'::varchar, DATE '2024-01-01'"),
        ("decimals up to 18 digits", "SELECT 1.25::decimal(18, 4)"),
        ("decimals of more digits", "SELECT 1.25::decimal(38, 4)"),
        ("intervals in arithmetic", "SELECT at + INTERVAL '1 day' FROM t"),
        ("intervals as values", "SELECT i + i, i * 2, i > INTERVAL '2 hours' FROM n"),
        ("sums of intervals", "SELECT sum(i), avg(i) FROM n"),
        ("differences of timestamps as values", "SELECT at - TIMESTAMP '2024-01-01 00:00:00' FROM t"),
        ("time", "SELECT TIME '10:00:00'"),
        ("timestamp with time zone", "SELECT '2024-01-01'::timestamptz"),
        ("AT TIME ZONE", "SELECT z AT TIME ZONE 'Europe/Berlin' FROM n"),
        ("SET TimeZone", "SET TimeZone = 'UTC'"),
        ("arrays, lists", "SELECT [1, 2], ARRAY[k, 2] FROM n"),
        ("elements and slices of lists", "SELECT l[1], l[1:2] FROM n"),
        ("x = ANY(list)", "SELECT k FROM n WHERE 1 = ANY(l)"),
        ("array_agg, list", "SELECT array_agg(k ORDER BY k) FROM n"),
        ("structs and fields", "SELECT {'a': 1}, r.x, row(1, 2) FROM n"),
        ("JSON", "SELECT '{}'::json"),
        ("JSON: ->, ->>, #>", "SELECT j->'a', j->>'a', j#>'{a,0}' FROM n"),
        ("json_each, json_array_elements", "SELECT k, e.key, e.value FROM n, json_each(n.j) AS e"),
        ("json_agg, json_object_agg", "SELECT json_agg(k), json_object_agg(k, l) FROM n"),
        ("maps", "SELECT map {'a': 1}"),
        ("list_transform, list_filter", "SELECT list_filter(l, x -> x > 1) FROM n"),
        ("bytes", "SELECT 'x'::blob"),
        ("uuid", "SELECT '00000000-0000-0000-0000-000000000000'::uuid"),
    ],
    "Tables": [
        (
            "CREATE TABLE, PRIMARY KEY, NOT NULL, DEFAULT",
            "CREATE TABLE x1 (a INT PRIMARY KEY, b INT NOT NULL DEFAULT 3)",
        ),
        ("CREATE TABLE AS", "CREATE TABLE x2 AS SELECT a FROM t"),
        ("CREATE OR REPLACE", "CREATE OR REPLACE TABLE u (a INT, c INT)"),
        ("UNIQUE", "CREATE TABLE x3 (a INT UNIQUE, b INT, CONSTRAINT pair UNIQUE (a, b))"),
        ("CHECK", "CREATE TABLE x4 (a INT CHECK (a > 0), b INT, CONSTRAINT ordered CHECK (a < b))"),
        ("REFERENCES", "CREATE TABLE x5 (a INT REFERENCES t (a))"),
        ("TEMPORARY", "CREATE TEMPORARY TABLE x6 (a INT)"),
        ("ALTER TABLE ADD COLUMN", "ALTER TABLE u ADD COLUMN x INT"),
        ("ALTER TABLE DROP COLUMN", "ALTER TABLE u DROP COLUMN c"),
        ("ALTER TABLE RENAME COLUMN, RENAME TO", "ALTER TABLE u RENAME COLUMN c TO d; ALTER TABLE u RENAME TO w"),
        ("ALTER TABLE of what views read", "ALTER TABLE t ADD COLUMN x INT"),
        ("ALTER COLUMN TYPE", "ALTER TABLE u ALTER COLUMN c TYPE VARCHAR"),
        ("ALTER COLUMN SET NOT NULL, DROP NOT NULL", "ALTER TABLE u ALTER COLUMN c SET NOT NULL"),
        (
            "ADD CONSTRAINT, DROP CONSTRAINT",
            "ALTER TABLE u ADD CONSTRAINT k CHECK (c > 0); ALTER TABLE u DROP CONSTRAINT k",
        ),
        ("ALTER COLUMN SET DEFAULT, DROP DEFAULT", "ALTER TABLE u ALTER COLUMN c SET DEFAULT 4"),
        ("CREATE INDEX", "CREATE INDEX i ON u (a)"),
        ("CREATE UNIQUE INDEX", "CREATE UNIQUE INDEX i2 ON u (a)"),
        ("CREATE SCHEMA, qualified names", "CREATE SCHEMA s1; CREATE TABLE s1.t (a INT)"),
        ("CREATE VIEW", "CREATE VIEW x7 AS SELECT a FROM t"),
        ("CREATE MATERIALIZED VIEW", "CREATE MATERIALIZED VIEW x8 AS SELECT a FROM t"),
        ("CREATE SEQUENCE", "CREATE SEQUENCE q"),
        ("CREATE FUNCTION", "CREATE FUNCTION f(x) AS x + 1"),
        ("CREATE TYPE", "CREATE TYPE mood AS ENUM ('a')"),
        ("COMMENT ON", "COMMENT ON TABLE t IS 'x'"),
    ],
    "Changes": [
        ("INSERT, UPDATE, DELETE, TRUNCATE", "UPDATE t SET b = 1 WHERE a = 1"),
        ("RETURNING", "INSERT INTO u VALUES (8, 8) RETURNING a"),
        ("ON CONFLICT", "INSERT INTO t (a, b) VALUES (1, 2) ON CONFLICT (a) DO UPDATE SET b = excluded.b"),
        ("UPDATE FROM, DELETE USING", "DELETE FROM t USING u WHERE t.a = u.a"),
        ("MERGE", "MERGE INTO t USING u ON t.a = u.a WHEN MATCHED THEN DELETE"),
        ("BEGIN, COMMIT, ROLLBACK", "BEGIN; INSERT INTO u VALUES (9, 9); ROLLBACK"),
        ("SAVEPOINT", "BEGIN; SAVEPOINT s; ROLLBACK TO SAVEPOINT s; COMMIT"),
        ("PREPARE, EXECUTE", "PREPARE p AS SELECT a FROM t WHERE a = $1; EXECUTE p(1)"),
        ("SET, SHOW, RESET", "SET search_path = public; SHOW search_path"),
        ("SUBSCRIBE", "SUBSCRIBE TO v"),
        ("EXPLAIN", "EXPLAIN SELECT a FROM t"),
    ],
    "System catalogs": [
        ("information_schema", f"{ONCE} SELECT table_name FROM information_schema.tables"),
        ("pg_catalog", f"{ONCE} SELECT relname FROM pg_catalog.pg_class"),
        ("kept up to date", "SELECT relname FROM pg_catalog.pg_class"),
    ],
}
"""An example of each construct, by what it is about."""


def outcome(example: str) -> str:
    """What comes of an example: yes, or what the engine says."""
    text = example.removeprefix(f"{ONCE} ")
    with tk.Engine() as engine:
        engine.sql(SETUP)
        try:
            engine.sql(text)
            if text == example and text.startswith(("SELECT", "WITH")):
                engine.sql(f"CREATE MATERIALIZED VIEW example AS {text}")
                engine.sql("INSERT INTO u VALUES (2, 2)")
                assert sorted(map(repr, engine.sql(text).rows())) == sorted(map(repr, engine.view("example").rows()))
        except tk.TektiteError as error:
            return str(error).partition("\n")[0]
    return "yes"


def lines() -> Iterator[str]:
    """The page."""
    yield HEAD
    for title, examples in CONSTRUCTS.items():
        yield f"## {title}\n"
        yield "| construct | example | supported |\n|---|---|---|"
        for name, example in examples:
            said, shown = outcome(example), example.removeprefix(f"{ONCE} ").replace("|", "\\|")
            yield f"| {name} | `{shown}` | {said.replace('|', chr(92) + '|')} |"
        yield ""


def page() -> str:
    """The page as the examples say it."""
    return "\n".join(lines()).rstrip("\n") + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
