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
]


@pytest.mark.parametrize(("statement", "state"), CASES, ids=[f"{state} {statement[:30]}" for statement, state in CASES])
def test_error_has_the_state_that_programs_look_for(served: RunningServer, statement: str, state: str) -> None:
    with psycopg.connect(served.conninfo(), autocommit=True) as client:
        client.execute("CREATE TABLE t (i int primary key, v varchar, r int not null)")
        client.execute("CREATE MATERIALIZED VIEW one AS SELECT * FROM t")
        client.execute("INSERT INTO t VALUES (1, 'x', 1)")
        with pytest.raises(psycopg.Error) as caught:
            client.execute(statement)
        assert caught.value.sqlstate == state, str(caught.value)
