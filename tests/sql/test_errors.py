"""What is wrong with a statement is said by name and place, and nothing has changed."""

from __future__ import annotations

import pytest

import tektite as tk

WRONG = [
    ("SELECT a FRM t WHERE (b", tk.IncorrectError, "syntax error", "t WHERE"),
    ("SELECT 'open", tk.IncorrectError, "syntax error", None),
    ("SELECT", tk.IncorrectError, "", None),
    ("SELECT nme FROM t", tk.NotFoundError, "no column 'nme': did you mean 'name'", "nme"),
    ("SELECT t.nme FROM t", tk.NotFoundError, "no column 'nme' in 't'", "t.nme"),
    ("SELECT x.name FROM t", tk.NotFoundError, "no table 'x' in FROM", "x.name"),
    ("SELECT * FROM tt", tk.NotFoundError, "no table or view 'tt': did you mean 't'", "tt"),
    ("SELECT a FROM t, u", tk.IncorrectError, "'a' is ambiguous", "a FROM"),
    ("SELECT a FROM t, t", tk.IncorrectError, "'t' is in FROM twice", "t"),
    ("SELECT a + name FROM t", tk.IncorrectError, "add needs two numbers", "a + name"),
    ("SELECT a FROM t WHERE a", tk.IncorrectError, "WHERE needs a condition, not int", "a"),
    ("SELECT a FROM t WHERE name > 3", tk.IncorrectError, "cannot be compared", "name > 3"),
    ("SELECT sum(name) FROM t", tk.IncorrectError, "sum needs numbers, not string", "sum"),
    ("SELECT a, count(*) FROM t", tk.IncorrectError, "'a' is neither in GROUP BY nor in an aggregate", "a, count"),
    ("SELECT a FROM t WHERE sum(a) > 1", tk.IncorrectError, "aggregate cannot be used in WHERE", "sum"),
    ("SELECT a FROM t GROUP BY 7", tk.IncorrectError, "GROUP BY 7", "7"),
    ("SELECT a FROM t ORDER BY 7", tk.IncorrectError, "ORDER BY 7", "7"),
    ("SELECT a FROM t LIMIT -1", tk.IncorrectError, "LIMIT takes a whole number", "1"),
    ("SELECT (SELECT a, b FROM u)", tk.IncorrectError, "gives 2 columns", None),
    ("SELECT a FROM t WHERE a IN (SELECT a, b FROM u)", tk.IncorrectError, "gives 2 columns", None),
    ("SELECT a FROM t UNION SELECT a, b FROM u", tk.IncorrectError, "queries of 1 and 2 columns", None),
    ("SELECT a FROM t UNION SELECT name FROM t", tk.IncorrectError, "column 1 is int and string", None),
    ("SELECT DATE 'tomorrow'", tk.IncorrectError, "is not a valid date", "'tomorrow'"),
    ("SELECT 999999999999999999999999999999999999999", tk.IncorrectError, "at most 38 fit", "99999"),
    ("SELECT soundex(a) FROM t", tk.UnsupportedError, "function soundex is not supported", "soundex"),
    ("SELECT initcap() FROM t", tk.IncorrectError, "initcap: a value is missing", None),
    ("SELECT approx_count_distinct(a) FROM t", tk.UnsupportedError, "aggregate", "approx_count_distinct"),
    ("SELECT a FROM t FOR UPDATE", tk.UnsupportedError, "FOR UPDATE is not supported", None),
    ("SELECT a FROM t TABLESAMPLE 3", tk.UnsupportedError, "TABLESAMPLE is not supported", None),
    ("SELECT * FROM t ASOF JOIN u USING (a)", tk.UnsupportedError, "ASOF JOIN", None),
    ("WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT count(*) FROM r) SELECT * FROM r", tk.UnsupportedError,
     "recursion of 'r' through AGGREGATE", None),
    ("WITH RECURSIVE r AS (SELECT n FROM r) SELECT * FROM r", tk.UnsupportedError, "without a part to begin with", None),
    ("CREATE TABLE t (a int)", tk.ConflictError, "a table named 't' already", "t"),
    ("CREATE TABLE n (a int, a int)", tk.IncorrectError, "'a' is declared twice", None),
    ("CREATE TABLE n (a bit)", tk.UnsupportedError, "type bit is not supported", None),
    ("CREATE TABLE n (a decimal(40, 2))", tk.UnsupportedError, "at most 38 digits", None),
    ("CREATE TABLE n (a int) WITH (mode = 'magic')", tk.IncorrectError, "mode is one of", None),
    ("CREATE TABLE n (a int) WITH (mode = 'upsert')", tk.IncorrectError, "needs a PRIMARY KEY", None),
    ("CREATE TABLE n (a int, PRIMARY KEY (b))", tk.NotFoundError, "there is no column 'b'", None),
    ("CREATE TABLE n (a int REFERENCES m (a))", tk.UnsupportedError, "foreign keys are not supported", None),
    ("CREATE INDEX i ON t (z)", tk.NotFoundError, "'t' has no column 'z'", None),
    ("INSERT INTO t VALUES (1)", tk.IncorrectError, "1 values for 2 columns", None),
    ("INSERT INTO t (a, z) VALUES (1, 2)", tk.NotFoundError, "'t' has no column 'z'", None),
    ("INSERT INTO t VALUES ('x', 'y')", tk.IncorrectError, "'x'", None),
    ("INSERT INTO v VALUES (1)", tk.ConflictError, "'v' is a view", None),
    ("UPDATE t SET z = 1", tk.NotFoundError, "'t' has no column 'z'", None),
    ("UPDATE t SET a = 1 ORDER BY a LIMIT 1", tk.UnsupportedError, "ORDER BY in UPDATE", "ORDER"),
    ("DELETE FROM t LIMIT 1", tk.UnsupportedError, "LIMIT in DELETE", "LIMIT"),
    ("DROP TABLE nothing", tk.NotFoundError, "there is no table 'nothing'", None),
    ("DROP TABLE v", tk.ConflictError, "'v' is a view: DROP VIEW drops it", None),
    ("DROP TABLE t", tk.ConflictError, "'v' reads it", "t"),
    ("EXECUTE q(1)", tk.NotFoundError, "no prepared statement 'q'", None),
    ("SHOW NOTHING", tk.UnsupportedError, "SHOW NOTHING", "NOTHING"),
    ("GRANT ALL ON t TO me", tk.NotFoundError, "there is no role 'me'", None),
    ("COPY t FROM '/no/such/file.csv'", tk.NotFoundError, "there is no file", None),
]  # fmt: skip


@pytest.fixture(scope="module")
def engine() -> tk.Engine:
    engine = tk.Engine()
    engine.sql("CREATE TABLE t (a int, name varchar); CREATE TABLE u (a int, b int)")
    engine.sql("INSERT INTO t VALUES (1, 'x'), (2, 'y'); CREATE MATERIALIZED VIEW v AS SELECT a FROM t")
    return engine


@pytest.mark.parametrize(("statement", "kind", "message", "place"), WRONG, ids=[case[0] for case in WRONG])
def test_error_names_what_and_where(
    engine: tk.Engine, statement: str, kind: type[Exception], message: str, place: str | None
) -> None:
    with pytest.raises(kind) as raised:
        engine.sql(statement)
    said = str(raised.value)
    assert message in said
    if place is not None:
        line, caret = said.splitlines()[-2:]
        assert line[caret.index("^") :].startswith(place)
    assert engine.sql("SELECT count(*) FROM t").rows() == [(2,)]


def test_place_is_in_the_line_that_is_wrong(engine: tk.Engine) -> None:
    with pytest.raises(tk.NotFoundError) as raised:
        engine.sql("SELECT a\nFROM t\nWHERE nme = 'x'")
    assert "line 3: WHERE nme = 'x'" in str(raised.value)


@pytest.mark.parametrize("parameter", ["%s", "%(name)s"])
def test_parameters_of_psycopg_are_answered_with_ours(engine: tk.Engine, parameter: str) -> None:
    with pytest.raises(tk.IncorrectError, match=r"a parameter is written \$1, \? or \$name, not %s"):
        engine.sql(f"SELECT 1 WHERE 'a' = {parameter}", {"name": "a"} if "name" in parameter else ["a"])


@pytest.mark.nightly
def test_megabyte_of_statement(engine: tk.Engine) -> None:
    values = ", ".join(f"({i}, '{'x' * 40}')" for i in range(20_000))
    assert len(values) > 1_000_000
    engine.sql("CREATE TABLE big (a int, s varchar)")
    assert engine.sql(f"INSERT INTO big VALUES {values}").message == "INSERT 0 20000"
    members = ", ".join(str(i) for i in range(0, 150_000))
    assert engine.sql(f"SELECT count(*) FROM big WHERE a IN ({members})").rows() == [(20_000,)]


def test_deep_nesting_is_refused_not_fatal(engine: tk.Engine) -> None:
    with pytest.raises(tk.UnsupportedError, match="nested too deeply"):
        engine.sql("SELECT " + "(" * 5000 + "1" + ")" * 5000)
