"""Values of every type go to clients and come back, as text and in binary."""

from __future__ import annotations

import asyncio
import datetime
import decimal
import uuid
import zoneinfo
from typing import Any

import asyncpg
import psycopg
import pytest

from tests.support.server import running_server

UTC = datetime.UTC
WIDE = decimal.Decimal("-12345678901234567890123456.78")
ID = uuid.UUID("550e8400-e29b-41d4-a716-446655440000")
CREATE = """CREATE TABLE v (k bigint PRIMARY KEY, t time, z timestamptz, i interval, l bigint[], s text[], j json, u uuid,
            b bytea, w decimal(30, 2))"""
ROW: tuple[Any, ...] = (
    1, datetime.time(1, 2, 3, 500_000), datetime.datetime(2024, 7, 1, 12, tzinfo=UTC), datetime.timedelta(days=3, hours=4),
    [1, None, -3], ["a", 'b "c",', "NULL", ""], {"a": [1, None]}, ID, b"\x00\xff\\", WIDE,
)  # fmt: skip
INSERT = "INSERT INTO v VALUES (%s, %s, %s, %s, %s::bigint[], %s::text[], %s::json, %s, %s, %s::decimal(30, 2))"


@pytest.mark.parametrize("binary", [False, True])
def test_psycopg_reads_what_it_wrote(binary: bool) -> None:
    with running_server() as server, psycopg.connect(server.conninfo(), autocommit=True) as connection:
        connection.execute(CREATE)
        given = [psycopg.types.json.Json(value) if isinstance(value, dict) else value for value in ROW]
        connection.execute(INSERT, given)
        connection.execute("INSERT INTO v (k) VALUES (2)")
        found = connection.cursor(binary=binary).execute("SELECT * FROM v ORDER BY k").fetchall()
        assert found == [ROW, (2, *[None] * 9)]


def test_a_timestamp_is_what_the_clock_of_its_text_shows() -> None:
    with running_server() as server, psycopg.connect(server.conninfo(), autocommit=True) as connection:
        connection.execute("CREATE TABLE t (x timestamp)")
        connection.execute("INSERT INTO t VALUES (%s)", ["2024-07-15 12:00:00+02"])
        connection.execute("INSERT INTO t VALUES ('2024-07-15 12:00:00+02')")
        assert connection.execute("SELECT x FROM t").fetchall() == [(datetime.datetime(2024, 7, 15, 12),)] * 2


def test_moments_are_told_by_the_clocks_of_the_session() -> None:
    with running_server() as server, psycopg.connect(server.conninfo(), autocommit=True) as connection:
        connection.execute("CREATE TABLE m (k bigint PRIMARY KEY, z timestamptz)")
        connection.execute("INSERT INTO m VALUES (1, '2024-01-15 12:00:00+00'), (2, '2024-07-15 12:00:00+00')")
        connection.execute("SET TimeZone TO 'Europe/Berlin'")
        assert connection.execute("SHOW TimeZone").fetchone() == ("Europe/Berlin",)
        cursor = connection.execute("SELECT z, z::text, extract(hour from z), z::timestamp FROM m ORDER BY k")
        berlin = zoneinfo.ZoneInfo("Europe/Berlin")
        for month, hour, offset, (z, text, hours, clock) in zip((1, 7), (13, 14), ("+01", "+02"), cursor, strict=True):
            assert z == datetime.datetime(2024, month, 15, 12, tzinfo=UTC)
            assert z.utcoffset() == z.astimezone(berlin).utcoffset()
            assert (text, hours) == (f"2024-{month:02}-15 {hour}:00:00{offset}", hour)
            assert clock == datetime.datetime(2024, month, 15, hour)
        connection.execute("INSERT INTO m VALUES (3, '2024-07-15 12:00:00')")
        connection.execute("INSERT INTO m VALUES (4, %s)", ["2024-07-15 12:00:00"])
        for k, form, mark in ((5, "text", "\t"), (6, "csv", ",")):
            with connection.cursor().copy(f"COPY m FROM STDIN (FORMAT {form})") as copy:
                copy.write(f"{k}{mark}2024-07-15 12:00:00\n")
        connection.execute("RESET TimeZone")
        found = connection.execute("SELECT z FROM m WHERE k >= 3").fetchall()
        assert found == [(datetime.datetime(2024, 7, 15, 10, tzinfo=UTC),)] * 4
        with pytest.raises(psycopg.Error, match="no time zone"):
            connection.execute("SET TimeZone TO 'Europe/Nowhere'")


def test_asyncpg_reads_binary_values() -> None:
    async def read(url: str) -> Any:
        connection = await asyncpg.connect(url)
        try:
            await connection.execute(CREATE.replace("l bigint[], ", ""))
            await connection.execute(
                """INSERT INTO v VALUES (1, '01:02:03.5', '2024-07-01 12:00:00+00', '3 days 04:00', ['a', NULL], '{"a":1}',
                   '550e8400-e29b-41d4-a716-446655440000', '\\x00ff', -12345678901234567890123456.78)"""
            )
            row = await connection.fetchrow("SELECT * FROM v WHERE i > $1 AND z > $2 AND t > $3 AND u = $4",
                                            datetime.timedelta(days=1), datetime.datetime(2024, 1, 1, tzinfo=UTC),
                                            datetime.time(1), ID)  # fmt: skip
            record = await connection.fetchval("SELECT row(1, 'x', NULL::int)")
            return row, record
        finally:
            await connection.close()

    with running_server() as server:
        row, record = asyncio.run(read(server.url))
    assert tuple(row) == (
        1, ROW[1], ROW[2], ROW[3], ["a", None], '{"a":1}', asyncpg.pgproto.pgproto.UUID(str(ID)), b"\x00\xff", WIDE,
    )  # fmt: skip
    assert tuple(record) == (1, "x", None)


def test_tools_see_the_types_of_columns() -> None:
    with running_server() as server, psycopg.connect(server.conninfo(), autocommit=True) as connection:
        connection.execute(CREATE)
        named = connection.execute(
            "SELECT column_name, data_type FROM information_schema.columns WHERE table_name = 'v'"
        ).fetchall()
        assert dict(named) == {
            "k": "bigint", "t": "time without time zone", "z": "timestamp with time zone", "i": "interval", "l": "ARRAY",
            "s": "ARRAY", "j": "json", "u": "uuid", "b": "bytea", "w": "numeric",
        }  # fmt: skip
        shown = connection.execute(
            "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = 'v'::regclass AND attnum > 0"
        ).fetchall()
        assert (
            dict(shown)["l"] == "bigint[]"
            and dict(shown)["w"] == "numeric(30,2)"
            and dict(shown)["z"] == ("timestamp with time zone")
        )


def test_copy_carries_every_type() -> None:
    with running_server() as server, psycopg.connect(server.conninfo(), autocommit=True) as connection:
        connection.execute(CREATE)
        given = [psycopg.types.json.Json(value) if isinstance(value, dict) else value for value in ROW]
        connection.execute(INSERT, given)
        with connection.cursor().copy("COPY v TO STDOUT") as copy:
            data = b"".join(copy)
        connection.execute("DELETE FROM v WHERE k = 1")
        with connection.cursor().copy("COPY v FROM STDIN") as copy:
            copy.write(data)
        assert connection.execute("SELECT * FROM v").fetchall() == [ROW]
