"""Errors have the SQLSTATE that programs written for PostgreSQL look for."""

from __future__ import annotations

import psycopg
import pytest

from tests.support.server import RunningServer

CASES = [
    ("SELECT * FROM absent", "42P01"),
    ("SELECT absent FROM t", "42703"),
    ("SELECT absent(1)", "42883"),
    ("SELECT 1 +", "42601"),
    ("CREATE TABLE t (i int)", "42P07"),
    ("INSERT INTO t VALUES (1, 'again', 1)", "23505"),
    ("INSERT INTO t VALUES (NULL, 'x', 1)", "23502"),
    ("INSERT INTO t (i, r) VALUES (9, NULL)", "23502"),
    ("INSERT INTO t VALUES ('x', 'x', 1)", "22P02"),
    ("SELECT 'x'::int FROM t", "22P02"),
    ("SELECT v FROM t GROUP BY i", "42803"),
    ("SELECT 9223372036854775806 + i + i FROM t", "22003"),
    ("DROP TABLE t", "2BP01"),
    ("UPDATE one SET v = 'x'", "42809"),
    ("EXECUTE absent", "26000"),
    ("FETCH 1 FROM absent", "34000"),
    ("SET absent = 1", "42704"),
    ("SET server_version = '1'", "55P02"),
    ("COPY t FROM STDIN WITH (FORMAT nonsense)", "22023"),
    ("SAVEPOINT s", "25P01"),
    ("GRANT ALL ON t TO ann", "42704"),
    ("CREATE TABLE bad (i int, i int)", "42701"),
    ("CREATE TABLE bad (i nonsense)", "42704"),
    ("CREATE TABLE absent.t (i int)", "3F000"),
    ("CREATE SCHEMA public", "42P06"),
    ("ALTER TABLE t ADD COLUMN v int", "42701"),
    ("DROP INDEX absent", "42704"),
    ("DROP VIEW t", "42809"),
    ("INSERT INTO t (i, i) VALUES (1, 1)", "42701"),
    ("INSERT INTO t VALUES (1, 'x', 1, 1)", "42601"),
    ("INSERT INTO checked VALUES (-1)", "23514"),
    ("INSERT INTO t VALUES (7, '', 1), (7, '', 1) ON CONFLICT (i) DO UPDATE SET v = 'x'", "21000"),
    ("SELECT CAST(v AS int) FROM t", "22P02"),
    ("SELECT i = 'x' FROM t", "22P02"),
    ("SELECT 'x'::uuid", "22P02"),
    ("SELECT 9223372036854775807 + 1", "22003"),
    ("SELECT (SELECT i FROM two)", "21000"),
    ("SELECT * FROM t a, t a", "42712"),
    ("SELECT i FROM t a, t b", "42702"),
    ("SELECT i FROM t ORDER BY 5", "42P10"),
    ("SELECT i FROM t WHERE count(*) > 1", "42803"),
    ("SELECT i FROM t WHERE v", "42804"),
    ("SELECT length(i) FROM t", "42883"),
    ("SELECT $1", "42P02"),
    ("CREATE POLICY p ON t USING (true); CREATE POLICY p ON t USING (true)", "42710"),
    # words of other states decide nothing
    ('SELECT "no column, unique, syntax error" FROM t', "42703"),
    ('SELECT * FROM "two rows with the key already"', "42P01"),
    ("CREATE UNIQUE INDEX ON t (v)", "0A000"),
    ("SELECT 'division by zero: no column' + 1 FROM t", "42883"),
]


@pytest.mark.parametrize(("statement", "state"), CASES, ids=[f"{state} {statement[:30]}" for statement, state in CASES])
def test_error_has_the_state_that_programs_look_for(served: RunningServer, statement: str, state: str) -> None:
    with psycopg.connect(served.conninfo(), autocommit=True) as client:
        client.execute("CREATE TABLE t (i int primary key, v varchar, r int not null)")
        client.execute("CREATE MATERIALIZED VIEW one AS SELECT * FROM t")
        client.execute("INSERT INTO t VALUES (1, 'x', 1)")
        client.execute(
            "CREATE TABLE checked (i int CHECK (i > 0)); CREATE TABLE two (i int); INSERT INTO two VALUES (1), (2)"
        )
        with pytest.raises(psycopg.Error) as caught:
            client.execute(statement, prepare=False)
        assert caught.value.sqlstate == state, str(caught.value)
