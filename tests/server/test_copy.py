"""COPY to and from a client, by psycopg: every format, what is odd in it, and what is wrong with it."""

from __future__ import annotations

import datetime
from decimal import Decimal

import psycopg
import pytest
from psycopg import errors

from tests.support.server import RunningServer

ROWS = [
    (1, 2.5, True, "plain", datetime.date(1999, 12, 31), datetime.datetime(2024, 2, 29, 1, 2, 3, 45), Decimal("-12345.60")),
    (2, float("inf"), False, "tab\t, comma, quote\" back\\slash\nline", datetime.date(2024, 1, 1),
     datetime.datetime(2024, 1, 1), Decimal("0.00")),
    (3, None, None, "", None, None, None),
    (4, 1e-9, None, None, None, datetime.datetime(1969, 12, 31, 23, 59, 59, 500000), Decimal("9999999999.99")),
]  # fmt: skip
TABLE = "CREATE TABLE every (i int, f double, b boolean, s varchar, d date, t timestamp, n decimal(12, 2))"
TYPES = ["int8", "float8", "bool", "text", "date", "timestamp", "numeric"]
FORMATS = ["", "WITH (FORMAT binary)"]


@pytest.fixture
def client(served: RunningServer):
    with psycopg.connect(served.conninfo(), autocommit=True) as connection:
        connection.execute(TABLE)
        yield connection


def copied_in(client, rows, form: str, columns: str = "") -> None:
    with client.cursor().copy(f"COPY every {columns} FROM STDIN {form}") as copy:
        copy.set_types(TYPES if not columns else ["int8", "text"])
        for row in rows:
            copy.write_row(row)


@pytest.mark.parametrize("form", FORMATS, ids=["text", "binary"])
def test_rows_that_are_copied_in_are_there_and_come_out_as_they_were(client, form: str) -> None:
    copied_in(client, ROWS, form)
    assert client.execute("SELECT * FROM every ORDER BY i").fetchall() == ROWS
    with client.cursor().copy(f"COPY (SELECT * FROM every ORDER BY i) TO STDOUT {form}") as copy:
        copy.set_types(TYPES)
        assert list(copy.rows()) == ROWS


@pytest.mark.parametrize("many", [1, 100, 20_000])
@pytest.mark.parametrize("form", ["", "CSV", "WITH (FORMAT csv, HEADER, DELIMITER ';')", "WITH (FORMAT binary)"])
def test_what_is_copied_out_can_be_copied_in(client, form: str, many: int) -> None:
    client.execute(
        "INSERT INTO every SELECT range, range / 7.0, range % 2 = 0, 'it''s \"' || range || ';', "
        f"date '2024-01-01' + (range % 99)::int, timestamp '2024-01-01', (range % 97)::decimal(12, 2) FROM range({many})"
    )
    with client.cursor().copy(f"COPY every TO STDOUT {form}") as copy:
        data = b"".join(bytes(piece) for piece in copy)
    client.execute(TABLE.replace("every", "again"))
    with client.cursor().copy(f"COPY again FROM STDIN {form}") as copy:
        for at in range(0, len(data), 1000):  # pieces that end anywhere
            copy.write(data[at : at + 1000])
    ordered = "SELECT * FROM {} ORDER BY i"
    assert client.execute(ordered.format("again")).fetchall() == client.execute(ordered.format("every")).fetchall()


def test_quoted_csv_keeps_empty_texts_and_line_ends_apart_from_null(client) -> None:
    with client.cursor().copy("COPY every (i, s) FROM STDIN (FORMAT csv)") as copy:
        copy.write('1,\n2,""\n3,"two\nlines, ""said"""\n')
    assert client.execute("SELECT i, s FROM every ORDER BY i").fetchall() == [
        (1, None),
        (2, ""),
        (3, 'two\nlines, "said"'),
    ]


def test_columns_that_are_not_named_are_null(client) -> None:
    copied_in(client, [(7, "x")], "", "(i, s)")
    assert client.execute("SELECT * FROM every").fetchall() == [(7, None, None, "x", None, None, None)]


def test_copy_in_a_block_counts_when_the_block_is_committed(served: RunningServer, client) -> None:
    with psycopg.connect(served.conninfo(), autocommit=True) as other:
        with client.transaction():
            copied_in(client, ROWS, "")
            assert client.execute("SELECT count(*) FROM every").fetchone() == (4,)
            assert other.execute("SELECT count(*) FROM every").fetchone() == (0,)
        assert other.execute("SELECT count(*) FROM every").fetchone() == (4,)


@pytest.mark.parametrize(
    ("data", "form", "error"),
    [
        ("1\tx\n", "", errors.BadCopyFileFormat),
        ("one,x\n", "(FORMAT csv)", errors.BadCopyFileFormat),
        ("a\\\\b\n", "", errors.BadCopyFileFormat),
        ("nonsense", "(FORMAT binary)", errors.BadCopyFileFormat),
        ("PGCOPY\n\udcff\r\n\0" + "\0" * 8 + "\0\5", "(FORMAT binary)", errors.BadCopyFileFormat),
    ],
)
def test_data_that_does_not_fit_is_refused_and_nothing_of_it_counts(client, data: str, form: str, error: type) -> None:
    with pytest.raises(error), client.cursor().copy(f"COPY every FROM STDIN {form}") as copy:
        copy.write(data.encode(errors="surrogateescape"))
    assert client.execute("SELECT count(*) FROM every").fetchone() == (0,)


@pytest.mark.parametrize(
    ("data", "form", "said"),
    [
        ("1,x\none,y\n", "(FORMAT csv)", "line 2: column 'i': invalid value 'one' for int64"),
        ('i,s\n1,"two\nlines"\n3\n', "(FORMAT csv, HEADER)", "line 4: .*Expected 2 columns, got 1"),
        ("1\tx\none\ty\n", "", "line 2: column 'i': invalid value 'one' for int64"),
        ("1\tx\none\ta\\tb\n", "", "line 2: invalid input: 'one'"),
        (b"1,x\x0by\n\xff,y\n", "(FORMAT csv)", "line 2: .*invalid value"),
        (b"1,x\n2,\xff\n", "(FORMAT csv)", "line 2: .*invalid UTF8"),
        (b"1\tx\n2\t\xff\n", "", "line 2: .*invalid UTF8"),
        (b"1\ta\\tb\n2\t\xff\n", "", "line 2: .*utf-8"),
    ],
)
def test_line_that_does_not_fit_is_named_by_its_number(client, data: str | bytes, form: str, said: str) -> None:
    with pytest.raises(psycopg.Error, match=said), client.cursor().copy(f"COPY every (i, s) FROM STDIN {form}") as copy:
        copy.write(data)


@pytest.mark.parametrize("form", ["", "(FORMAT csv)"])
def test_value_that_its_column_cannot_hold_has_the_state_of_postgresql(client, form: str) -> None:
    line = "one,x\n" if form else "one\tx\n"
    with (
        pytest.raises(errors.InvalidTextRepresentation),
        client.cursor().copy(f"COPY every (i, s) FROM STDIN {form}") as copy,
    ):
        copy.write(line)


def test_copy_that_the_client_gives_up_writes_nothing(client) -> None:
    with pytest.raises(ZeroDivisionError), client.cursor().copy("COPY every (i, s) FROM STDIN") as copy:
        copy.write("1\tx\n")
        _ = 1 / 0
    assert client.execute("SELECT count(*) FROM every").fetchone() == (0,)


def test_subscription_is_copied_out_until_it_is_cancelled(served: RunningServer, client) -> None:
    copied_in(client, [(1, "x")], "", "(i, s)")
    with psycopg.connect(served.conninfo(), autocommit=True) as subscriber:
        told = []
        with (
            pytest.raises(errors.QueryCanceled),
            subscriber.cursor().copy("COPY (SUBSCRIBE TO (SELECT i, s FROM every)) TO STDOUT") as copy,
        ):
            for row in copy.rows():
                told.append((row[0], row[1], row[3]))
                if len(told) == 1:
                    client.execute("INSERT INTO every (i) VALUES (2)")
                else:
                    subscriber.cancel_safe()
        assert told == [("1", "x", "1"), ("2", None, "1")]


def test_cursor_gives_rows_bit_by_bit(client) -> None:
    copied_in(client, [(n, str(n)) for n in range(10)], "", "(i, s)")
    with client.transaction(), client.cursor("mine") as cursor:
        cursor.execute("SELECT i FROM every ORDER BY i")
        assert cursor.fetchmany(3) == [(0,), (1,), (2,)]
        assert cursor.fetchone() == (3,)
        assert len(cursor.fetchall()) == 6
    with pytest.raises(errors.InvalidCursorName):
        client.execute("FETCH 1 FROM mine")


def test_cursor_over_a_subscription_waits_for_changes(client) -> None:
    client.execute("DECLARE c CURSOR FOR SUBSCRIBE TO (SELECT i FROM every)")
    client.execute("INSERT INTO every (i) VALUES (5)")
    (row,) = client.execute("FETCH ALL c").fetchall()
    assert (row[0], row[2]) == (5, 1)
    client.execute("DELETE FROM every")
    (row,) = client.execute("FETCH 10 FROM c").fetchall()
    assert (row[0], row[2]) == (5, -1)
    client.execute("CLOSE c")


def copied_out(client, text: str) -> bytes:
    with client.cursor().copy(text) as copy:
        return b"".join(map(bytes, copy))


def test_a_table_that_is_copied_is_found_by_its_schema(client) -> None:
    client.execute("""
        CREATE SCHEMA s; CREATE SCHEMA "O d"; CREATE TABLE t (x int); CREATE TABLE s.t (x int); CREATE TABLE "O d"."A""b" (x int)
    """)
    for number, name in enumerate(("t", "S.t", '"s" . "t"', "public.t", "tektite.s.t", '"O d"."A""b"')):
        with client.cursor().copy(f"COPY {name} FROM STDIN") as copy:
            copy.write_row((number,))
    client.execute("SET search_path = s")
    with client.cursor().copy("COPY t (x) FROM STDIN") as copy:
        copy.write_row((6,))
    client.execute("RESET search_path")
    for name, rows in (("t", b"0\n3\n"), ("main.t", b"0\n3\n"), ("s.t", b"1\n2\n4\n6\n"), ('"O d"."A""b" (x)', b"5\n")):
        assert copied_out(client, f"COPY {name} TO STDOUT") == rows, name


def test_relations_of_the_system_are_copied_out_and_not_in(client) -> None:
    assert copied_out(client, "COPY system.tables (name) TO STDOUT") == b"every\n"
    assert b"\tevery\tBASE TABLE" in copied_out(client, "COPY information_schema.tables TO STDOUT")
    for name, why in (
        ("system.tables", "system relation"),
        ("pg_class", "no table"),
        ("other.public.every", "one database"),
    ):
        with pytest.raises(psycopg.Error, match=why), client.cursor().copy(f"COPY {name} FROM STDIN") as copy:
            copy.write_row(("x",))


@pytest.mark.parametrize("declared", ["", "BINARY"])
@pytest.mark.parametrize("binary", [False, True])
def test_rows_that_are_fetched_have_the_format_that_the_client_asks_for(client, declared: str, binary: bool) -> None:
    client.execute("INSERT INTO every (i, f, d) VALUES (70000, 1.5, '2024-01-02')")
    for query in ("SELECT i, f, d FROM every", "SUBSCRIBE (SELECT i, f, d FROM every)"):
        with client.transaction():
            client.execute(f"DECLARE c {declared} CURSOR FOR {query}")
            found = client.cursor(binary=binary).execute("FETCH 5 FROM c").fetchall()
            assert [row[:3] for row in found] == [(70000, 1.5, datetime.date(2024, 1, 2))]
