"""psycopg 3, which we did not write, talks to the server: queries, parameters, transactions, errors, cursors, cancelling."""

from __future__ import annotations

import datetime
import threading
import time
from decimal import Decimal
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from psycopg import errors

import tektite as tk
from tests.support.patience import PATIENCE, until
from tests.support.server import RunningServer, running_server

VALUES = (
    7,
    2.5,
    True,
    "zwölf ' \\ \n",
    datetime.date(1999, 12, 31),
    datetime.datetime(2024, 2, 29, 1, 2, 3, 45),
    Decimal("-12345.60"),
)
TABLE = "CREATE TABLE every (i int, f double, b boolean, s varchar, d date, t timestamp, n decimal(12, 2))"


@pytest.fixture
def client(served: RunningServer):
    with psycopg.connect(served.conninfo(), autocommit=True) as connection:
        yield connection


@pytest.mark.parametrize("binary", [False, True], ids=["text", "binary"])
def test_values_of_every_type_come_back_as_they_were_sent(client, binary: bool) -> None:
    client.execute(TABLE)
    marks = ", ".join(["%b" if binary else "%t"] * len(VALUES))
    client.execute(f"INSERT INTO every VALUES ({marks})", VALUES)
    client.execute(f"INSERT INTO every VALUES ({marks})", [None] * len(VALUES))
    cursor = client.cursor(binary=binary)
    assert cursor.execute("SELECT * FROM every WHERE i = %s", (7,)).fetchall() == [VALUES]
    assert cursor.execute("SELECT * FROM every WHERE i IS NULL").fetchall() == [(None,) * len(VALUES)]


@pytest.mark.parametrize("value", ["0", "0.0001", "-99999999.99", "123456789012.345678", "10000", "0.00"])
def test_decimals_come_back_exactly_in_binary(client, value: str) -> None:
    cursor = client.cursor(binary=True)
    assert cursor.execute(f"SELECT {value}::decimal(18, 6)").fetchone() == (
        Decimal(value).quantize(Decimal("0.000001")),
    )


def test_statement_that_is_prepared_answers_each_of_its_values(client) -> None:
    client.execute("CREATE TABLE t (id int primary key, v varchar)")
    for number in range(20):
        client.execute("INSERT INTO t VALUES (%s, %s)", (number, f"v{number}"), prepare=True)
    found = [
        client.execute("SELECT v FROM t WHERE id = %s", (number,), prepare=True).fetchall() for number in range(20)
    ]
    assert found == [[(f"v{number}",)] for number in range(20)]


def test_block_is_seen_by_others_when_it_is_committed_and_not_before(served: RunningServer, client) -> None:
    client.execute("CREATE TABLE t (id int)")
    with psycopg.connect(served.conninfo(), autocommit=True) as other:
        with client.transaction():
            client.execute("INSERT INTO t VALUES (1)")
            assert client.execute("SELECT count(*) FROM t").fetchone() == (1,)
            assert other.execute("SELECT count(*) FROM t").fetchone() == (0,)
        assert other.execute("SELECT count(*) FROM t").fetchone() == (1,)


def test_failed_statement_ends_a_block_until_it_is_rolled_back(client) -> None:
    client.execute("CREATE TABLE t (id int)")
    client.autocommit = False
    client.execute("INSERT INTO t VALUES (1)")
    with pytest.raises(errors.UndefinedTable):
        client.execute("SELECT * FROM absent")
    with pytest.raises(errors.InFailedSqlTransaction):
        client.execute("SELECT 1")
    client.commit()  # of what has failed: nothing counts
    assert client.execute("SELECT count(*) FROM t").fetchone() == (0,)


def test_savepoint_takes_back_what_came_after_it(client) -> None:
    client.execute("CREATE TABLE t (id int)")
    with client.transaction():
        client.execute("INSERT INTO t VALUES (1)")
        with pytest.raises(errors.UndefinedTable), client.transaction():
            client.execute("INSERT INTO t VALUES (2)")
            client.execute("SELECT * FROM absent")
        with client.transaction():
            client.execute("INSERT INTO t VALUES (3)")
    assert client.execute("SELECT id FROM t ORDER BY id").fetchall() == [(1,), (3,)]


def test_one_of_two_transactions_that_change_a_key_is_told_to_run_again(served: RunningServer, client) -> None:
    client.execute("CREATE TABLE t (id int primary key, v int)")
    client.execute("INSERT INTO t VALUES (1, 0)")
    with psycopg.connect(served.conninfo()) as one, psycopg.connect(served.conninfo()) as other:
        one.execute("UPDATE t SET v = v + 1 WHERE id = 1")
        other.execute("UPDATE t SET v = v + 1 WHERE id = 1")
        one.commit()
        with pytest.raises(errors.SerializationFailure):
            other.commit()
    assert client.execute("SELECT v FROM t").fetchone() == (1,)


def test_error_points_at_its_place_in_the_statement(client) -> None:
    with pytest.raises(errors.UndefinedTable) as caught:
        client.execute("SELECT 1 AS one,\n       2 FROM absent")
    assert caught.value.diag.statement_position == "32"
    assert "^" not in str(caught.value.diag.message_primary)


def test_subscription_tells_a_snapshot_and_then_each_change_until_it_is_cancelled(
    served: RunningServer, client
) -> None:
    client.execute("CREATE TABLE t (v varchar)")
    client.execute("CREATE MATERIALIZED VIEW counts AS SELECT v, count(*) AS n FROM t GROUP BY v")
    client.execute("INSERT INTO t VALUES ('a')")
    told = []
    with psycopg.connect(served.conninfo(), autocommit=True) as subscriber:
        changes = subscriber.cursor().stream("SUBSCRIBE TO counts")
        told.append(next(changes))
        client.execute("INSERT INTO t VALUES ('a')")
        told += [next(changes), next(changes)]
        subscriber.cancel_safe()
        with pytest.raises(errors.QueryCanceled):
            next(changes)
        assert subscriber.execute("SELECT 1").fetchone() == (1,)
    rows = [(row[0], row[1], row[3]) for row in told]
    assert rows[0] == ("a", 1, 1)
    assert sorted(rows[1:]) == [("a", 1, -1), ("a", 2, 1)]


def without_limit(client: Any) -> bool:
    """Give a client all the time it needs; whether this itself did not take too long."""
    try:
        client.execute("SET statement_timeout = 0")
    except errors.QueryCanceled:
        return False
    return True


def test_statement_that_takes_too_long_is_ended_alone(served: RunningServer, client) -> None:
    client.execute("CREATE TABLE n (x int)")
    client.execute("INSERT INTO n SELECT * FROM range(3000)")
    client.execute("SET statement_timeout = '300ms'")
    with pytest.raises(errors.QueryCanceled):
        client.execute("SELECT count(*) FROM n a, n b, n c WHERE a.x + b.x + c.x < 0")
    until(lambda: without_limit(client))
    assert client.execute("SELECT count(*) FROM n").fetchone() == (3000,)


@pytest.mark.parametrize("write", ["INSERT INTO t VALUES (2)", "BEGIN; INSERT INTO t VALUES (2); COMMIT"])
def test_cancel_that_comes_after_the_commit_is_too_late(served: RunningServer, client, write: str) -> None:
    """The write succeeds, since its rows are there, and the view that was being brought up to date goes on."""
    client.execute("CREATE TABLE t (x int)")
    client.execute("INSERT INTO t VALUES (1)")
    is_inside, is_cancelled = threading.Event(), threading.Event()
    is_inside.set()
    is_cancelled.set()

    def slowly(rows: pa.Table) -> pa.Table:
        is_inside.set()
        while not is_cancelled.is_set():  # in Python, where a cancel would arrive
            time.sleep(0.001)
        return rows

    view = served.engine.install("mapped", served.engine.table("t").map_batches(slowly, x=tk.Int).count(by="x"))
    assert view.rows() == [(1, 1)]
    is_inside.clear()
    is_cancelled.clear()

    def cancel() -> None:
        is_inside.wait(PATIENCE)
        client.cancel_safe()
        is_cancelled.set()

    cancelling = threading.Thread(target=cancel)
    cancelling.start()
    client.execute(write)
    cancelling.join()
    assert view.error is None
    assert sorted(client.execute("SELECT x FROM t").fetchall()) == [(1,), (2,)]
    assert sorted(client.execute("SELECT x FROM mapped").fetchall()) == [(1,), (2,)]


def test_cancel_with_a_wrong_secret_ends_nothing(served: RunningServer, client) -> None:
    served.server.connections.cancel(client.info.backend_pid, 12345)
    assert client.execute("SELECT 1").fetchone() == (1,)


def test_clients_in_many_threads_see_all_of_their_rows(served: RunningServer, client) -> None:
    client.execute("CREATE TABLE t (client int, n int)")

    def work(number: int) -> None:
        with psycopg.connect(served.conninfo(), autocommit=True) as own:
            for n in range(20):
                own.execute("INSERT INTO t VALUES (%s, %s)", (number, n))
                assert own.execute("SELECT count(*) FROM t WHERE client = %s", (number,)).fetchone() == (n + 1,)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert client.execute("SELECT count(*) FROM t").fetchone() == (120,)


def test_decimals_are_rounded_to_the_places_of_their_column(client: Any) -> None:
    client.execute("CREATE TABLE prices (price decimal(10, 2) PRIMARY KEY)")
    for prepare in (True, False):
        client.execute("INSERT INTO prices VALUES (%s)", (Decimal("1.005"),), prepare=prepare)
        assert client.execute("SELECT price FROM prices").fetchall() == [(Decimal("1.01"),)]
        assert (
            client.execute("SELECT price FROM prices WHERE price = %s", (Decimal("1.005"),), prepare=prepare).fetchall()
            == []
        )
        client.execute("DELETE FROM prices")


def test_modes_of_transactions_hold(served: RunningServer) -> None:
    with psycopg.connect(served.conninfo()) as connection:
        connection.execute("CREATE TABLE t (a int)")
        connection.commit()
        connection.read_only = True
        connection.isolation_level = psycopg.IsolationLevel.SERIALIZABLE
        assert connection.execute("SHOW transaction_isolation").fetchone() == ("serializable",)
        assert connection.execute("SHOW transaction_read_only").fetchone() == ("on",)
        with pytest.raises(errors.ReadOnlySqlTransaction):
            connection.execute("INSERT INTO t VALUES (1)")
        connection.rollback()
        connection.read_only = False
        connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
        connection.execute("INSERT INTO t VALUES (1)")
        connection.execute("SET TRANSACTION READ ONLY")
        with pytest.raises(errors.ReadOnlySqlTransaction):
            connection.execute("INSERT INTO t VALUES (%s)", (2,))
        connection.rollback()
        with pytest.raises(errors.SyntaxError):
            connection.execute("SET TRANSACTION READ SOMETIMES")


def test_a_connection_holds_so_many_statements_portals_and_cursors_at_most() -> None:
    with running_server(limits={"prepared": 3}) as served, psycopg.connect(served.conninfo()) as client:
        for at in range(3):
            client.execute(f"DECLARE c{at} CURSOR FOR SELECT 1".encode())
            client.pgconn.prepare(f"s{at}".encode(), b"SELECT 1")
        with pytest.raises(errors.ConfigurationLimitExceeded, match="3 cursors, which is as many as there may be"):
            client.execute("DECLARE c3 CURSOR FOR SELECT 1")
        client.rollback()
        result = client.pgconn.prepare(b"s3", b"SELECT 1")
        assert b"3 prepared statements, which is as many as there may be" in result.error_message
        client.pgconn.prepare(b"", b"SELECT 1")
        client.execute("DEALLOCATE s0")
        assert not client.pgconn.prepare(b"s3", b"SELECT 1").error_message


def test_a_cursor_over_changes_gives_none_if_none_is_asked_for(served: RunningServer, client) -> None:
    client.execute("CREATE TABLE t (x int)")
    client.execute("DECLARE changes CURSOR FOR SUBSCRIBE t")
    assert client.execute("FETCH 0 changes").fetchall() == []
