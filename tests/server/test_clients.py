"""Clients that we did not write: asyncpg, SQLAlchemy, pandas, ADBC and psql use the server as they use PostgreSQL."""

from __future__ import annotations

import asyncio
import datetime
import io
import os
import shutil
import subprocess
import uuid
from decimal import Decimal
from pathlib import Path

import asyncpg
import pandas as pd
import pyarrow as pa
import pytest
import sqlalchemy as sa
from adbc_driver_postgresql import dbapi

from tests.support.patience import PATIENCE
from tests.support.server import RunningServer

ROW = (1, "x", datetime.date(2020, 1, 2), Decimal("1.50"), datetime.datetime(2020, 1, 1, 2, 3, 4, 5), 2.5, True)
TABLE = "CREATE TABLE a (i int primary key, v text, d date, n decimal(10, 2), t timestamp, f double, b boolean)"


def test_asyncpg_sends_and_reads_every_type_in_binary(served: RunningServer) -> None:
    async def use() -> None:
        client = await asyncpg.connect(served.url)
        await client.execute(TABLE)
        await client.execute("INSERT INTO a VALUES ($1,$2,$3,$4,$5,$6,$7)", *ROW)
        assert [tuple(row) for row in await client.fetch("SELECT * FROM a WHERE i = $1", 1)] == [ROW]
        await client.executemany("INSERT INTO a (i, v) VALUES ($1, $2)", [(n, str(n)) for n in range(2, 50)])
        await client.copy_records_to_table("a", records=[(100, "hundred")], columns=["i", "v"])
        async with client.transaction():
            found = [row["i"] async for row in client.cursor("SELECT i FROM a ORDER BY i", prefetch=10)]
        assert found == [*range(1, 50), 100]
        await client.close()

    asyncio.run(use())


ARRAYS = {
    "int8": [1, None], "float8": [None, 1.5], "bool": [True, None, False], "numeric": [Decimal("1.500"), None],
    "text": ['a"b\\c, {} ', "", "NULL", None], "timestamp": [datetime.datetime(2020, 1, 1, 2), None],
    "date": [None, datetime.date(2020, 1, 2)], "uuid": [uuid.UUID(int=7), None], "bytea": [b"a,\0", None],
    "json": ['{"a": [1, 2]}', None], "int4[]": [[1, 2], [None, 3]],
}  # fmt: skip


def test_asyncpg_sends_and_reads_arrays_with_nulls(served: RunningServer) -> None:
    async def use() -> None:
        client = await asyncpg.connect(served.url)
        for name, value in ARRAYS.items():
            assert await client.fetchval(f"SELECT $1::{name}[]", value) == value, name
            column = name.replace("[]", "_array")
            await client.execute(f"CREATE TABLE t_{column} (id int PRIMARY KEY, x {name}[])")
            await client.execute(f"INSERT INTO t_{column} VALUES (1, $1), (2, NULL)", value)
            found = await client.fetch(f"SELECT x FROM t_{column} ORDER BY id")
            assert [row["x"] for row in found] == [value, None], name
        await client.close()

    asyncio.run(use())


def test_asyncpg_compares_with_all_elements_of_an_array(served: RunningServer) -> None:
    async def use() -> None:
        client = await asyncpg.connect(served.url)
        await client.execute(
            "CREATE TABLE t (id int, v text); INSERT INTO t SELECT x, 'v' || x FROM generate_series(1, 9) AS g(x)"
        )
        count = "SELECT count(*) FROM t WHERE "
        for said, value, wanted in (
            ("id = ANY($1)", [1, None, 3], 2), ("v = ANY($1)", ["v1", "w"], 1), ("NOT id = ANY($1)", [1, None], 0),
            ("id = ANY($1)", list(range(5000)), 9), ("id <> ALL($1)", [1, 2], 7), ("id <> ALL($1)", [1, None], 0),
            ("id < ALL($1::int[])", [5, 4], 3), ("id > ANY($1::int[])", [5, 8], 4), ("id = ANY($1)", [], 0),
            ("id = ANY($1)", None, 0),
        ):  # fmt: skip
            assert await client.fetchval(count + said, value) == wanted, said
        await client.close()

    asyncio.run(use())


def test_asyncpg_rolls_everything_back_that_was_sent_with_a_row_that_fails(served: RunningServer) -> None:
    async def use() -> None:
        client = await asyncpg.connect(served.url)
        await client.execute("CREATE TABLE t (i int primary key)")
        with pytest.raises(asyncpg.UniqueViolationError):
            await client.executemany("INSERT INTO t VALUES ($1)", [(1,), (2,), (1,)])
        assert await client.fetchval("SELECT count(*) FROM t") == 0
        await client.close()

    asyncio.run(use())


def test_pool_of_asyncpg_hands_connections_on(served: RunningServer) -> None:
    async def use() -> None:
        async with asyncpg.create_pool(served.url, min_size=2, max_size=3) as pool:
            for number in range(9):
                async with pool.acquire() as client:
                    assert await client.fetchval("SELECT $1::int + 1", number) == number + 1

    asyncio.run(use())


def test_asyncpg_skips_and_fetches_rows_of_a_cursor(served: RunningServer) -> None:
    async def use() -> None:
        client = await asyncpg.connect(served.url)
        async with client.transaction():
            cursor = await client.cursor("SELECT x FROM generate_series(1, 20) AS s(x) ORDER BY x")
            assert await cursor.forward(5) == 5
            assert [row["x"] for row in await cursor.fetch(2)] == [6, 7]
            assert await cursor.forward(100) == 13
        await client.close()

    asyncio.run(use())


def test_inserts_of_many_connections_share_epochs_and_only_the_wrong_one_is_refused(served: RunningServer) -> None:
    async def use() -> None:
        clients = [await asyncpg.connect(served.url) for _ in range(20)]
        await clients[0].execute("CREATE TABLE t (i int primary key, v text)")
        prepared = [await client.prepare("INSERT INTO t VALUES ($1, $2)") for client in clients]
        before = served.engine.next_epoch
        for n in range(10):
            results = await asyncio.gather(
                *(each.fetch(1000 if number == 0 else n * 100 + number, "v") for number, each in enumerate(prepared)),
                return_exceptions=True,
            )
            refused = [number for number, result in enumerate(results) if isinstance(result, Exception)]
            assert refused == ([] if n == 0 else [0])
            assert n == 0 or isinstance(results[0], asyncpg.UniqueViolationError)
        assert await clients[0].fetchval("SELECT count(*) FROM t") == 191
        assert served.engine.next_epoch - before <= 200
        for client in clients:
            await client.close()

    asyncio.run(use())


@pytest.fixture
def database(served: RunningServer):
    made = sa.create_engine(served.url.replace("postgresql", "postgresql+psycopg"))
    yield made
    made.dispose()


def test_sqlalchemy_creates_fills_and_reflects_a_table(database) -> None:
    metadata = sa.MetaData()
    people = sa.Table(
        "people",
        metadata,
        sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("name", sa.String),
        sa.Column("age", sa.Integer),
    )
    metadata.create_all(database)
    with database.begin() as connection:
        connection.execute(people.insert(), [{"id": n, "name": f"n{n}", "age": n} for n in range(100)])
        connection.execute(sa.text("CREATE MATERIALIZED VIEW old AS SELECT * FROM people WHERE age > 50"))
    with database.connect() as connection:
        query = sa.select(sa.func.count()).select_from(people).where(people.c.age > 50)
        assert connection.execute(query).scalar() == 49
    found = sa.inspect(database)
    assert found.get_table_names() == ["people"]
    assert found.get_materialized_view_names() == ["old"]
    assert [(column["name"], str(column["type"])) for column in found.get_columns("people")] == [
        ("id", "BIGINT"), ("name", "TEXT"), ("age", "BIGINT"),
    ]  # fmt: skip
    assert found.get_pk_constraint("people")["constrained_columns"] == ["id"]
    reflected = sa.Table("people", sa.MetaData(), autoload_with=database)
    assert list(reflected.primary_key.columns.keys()) == ["id"]


def test_pandas_writes_and_reads_frames(database) -> None:
    frame = pd.DataFrame({"a": [1, 2, 3], "b": ["x", "y", None], "c": [1.5, 2.5, None]})
    frame.to_sql("frame", database, index=False)
    frame.to_sql("frame", database, index=False, if_exists="append")
    found = pd.read_sql("SELECT a, b, c, count(*) AS n FROM frame GROUP BY a, b, c ORDER BY a", database)
    pd.testing.assert_frame_equal(found, frame.assign(n=2), check_dtype=False)


def test_pandas_replaces_a_table_with_an_index_and_columns_that_differ_in_case(database) -> None:
    frame = pd.DataFrame({"a": [1, 2], "A": [3, 4]})
    for _ in range(2):
        frame.to_sql("frame", database, if_exists="replace", index_label="at")
    pd.testing.assert_frame_equal(pd.read_sql("frame", database, index_col="at"), frame, check_names=False)


def test_adbc_reads_arrow_tables(served: RunningServer) -> None:
    served.engine.sql(TABLE)
    served.engine.sql("INSERT INTO a (i, v, f, b) VALUES (1, 'x', 2.5, true), (2, NULL, NULL, NULL)")
    with dbapi.connect(served.url) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT i, v, f, b FROM a ORDER BY i")
        assert cursor.fetch_arrow_table().to_pylist() == [
            {"i": 1, "v": "x", "f": 2.5, "b": True},
            {"i": 2, "v": None, "f": None, "b": None},
        ]


def test_adbc_appends_to_the_table_that_it_made(served: RunningServer) -> None:
    rows = pa.table({"i": [1, None], "s": ["a", None]})
    with dbapi.connect(served.url) as connection, connection.cursor() as cursor:
        cursor.adbc_ingest("made", rows, mode="create")
        cursor.adbc_ingest("made", rows, mode="append")
        connection.commit()
        assert connection.adbc_get_table_schema("made").names == ["i", "s"]
        cursor.execute("SELECT i, s FROM made WHERE i = 1")
        assert cursor.fetchall() == [(1, "a"), (1, "a")]


# ---------------------------------------------------------------------- psql


def psql(served: RunningServer, *commands: str, data: str = "") -> str:
    """What psql prints for some commands."""
    program = shutil.which("psql")
    if program is None:
        pytest.skip("psql is not installed: apt-get install postgresql-client")
    options = [part for command in commands for part in ("-c", command)]
    environment = {**os.environ, "PGCONNECT_TIMEOUT": "10"}
    done = subprocess.run(
        [program, "-X", "-A", "-t", served.url, *options],
        input=data, capture_output=True, text=True, timeout=PATIENCE, env=environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_psql_lists_and_describes_tables_and_views(served: RunningServer) -> None:
    served.engine.sql("CREATE TABLE sales (id int primary key, shop varchar, amount decimal(10, 2))")
    served.engine.sql("CREATE MATERIALIZED VIEW totals AS SELECT shop, sum(amount) AS total FROM sales GROUP BY shop")
    served.engine.sql("CREATE VIEW shops AS SELECT DISTINCT shop FROM sales")
    assert psql(served, r"\dt").split("|")[1] == "sales"
    assert psql(served, r"\dv").split("|")[1] == "shops"
    assert psql(served, r"\dm").split("|")[1] == "totals"
    described = psql(served, r"\t off", r"\d sales")
    assert "amount|numeric(10,2)" in described
    assert "PRIMARY KEY" in described
    assert {line.split("|")[1] for line in psql(served, r"\d").splitlines()} >= {"sales", "shops", "totals"}


def test_psql_copies_files_in_and_out(served: RunningServer, tmp_path: Path) -> None:
    served.engine.sql("CREATE TABLE t (i int, v varchar)")
    (tmp_path / "in.csv").write_text('i,v\n1,one\n2,"two, too"\n3,\n')
    psql(served, rf"\copy t FROM '{tmp_path}/in.csv' WITH (FORMAT csv, HEADER)")
    assert psql(served, "SELECT * FROM t ORDER BY i") == "1|one\n2|two, too\n3|\n"
    psql(served, rf"\copy (SELECT * FROM t ORDER BY i) TO '{tmp_path}/out.csv' WITH (FORMAT csv, HEADER)")
    assert (tmp_path / "out.csv").read_text() == (tmp_path / "in.csv").read_text()


COMMANDS = (
    "d", "d+", "d t", "d+ t", "d+ m", "d+ vv", "di+", "dm+", "dn+", "df", "df+", "du+", "l", "l+", "dp", "ddp", "dT", "dT+",
    "dL", "dL+", "dd", "sv vv", "dconfig", "dx", "dy", "db+", "dc", "dC", "dF", "dFd", "dFp", "dFt", "dew", "dRp", "dA",
)  # fmt: skip


def test_psql_answers_its_commands(served: RunningServer) -> None:
    served.engine.sql("CREATE TABLE t (id int PRIMARY KEY, v text); CREATE VIEW vv AS SELECT v FROM t")
    served.engine.sql("CREATE MATERIALIZED VIEW m AS SELECT id FROM t")
    said = psql(served, *(part for command in COMMANDS for part in (rf"\echo == {command}", rf"\{command}")))
    assert "id|bigint||not null" in said.partition("== d+ t")[2].partition("==")[0]


def test_sqlalchemy_is_told_what_to_write_for_numbers_that_count(database) -> None:
    for column in (
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("id", sa.BigInteger, sa.Identity(), primary_key=True),
    ):
        with pytest.raises(sa.exc.DBAPIError, match="autoincrement=False"):
            sa.Table("numbered", sa.MetaData(), column).create(database)


def test_asyncpg_copies_records_in_and_queries_out(served: RunningServer) -> None:
    async def use() -> None:
        client = await asyncpg.connect(served.url)
        await client.execute("CREATE TABLE t (id int PRIMARY KEY, v text)")
        await client.copy_records_to_table("t", records=[(n, f"v{n}") for n in range(10)], columns=["id", "v"])
        for rows in ([(10, "new"), (3, "again")], [(11, "new"), ("twelve", "no number")]):
            with pytest.raises(Exception, match="key|int"):
                await client.copy_records_to_table("t", records=rows, columns=["id", "v"])
        with pytest.raises(asyncpg.PostgresError):
            async with client.transaction():
                await client.execute("INSERT INTO t VALUES (20, 'in a block')")
                await client.copy_records_to_table("t", records=[(21, "a"), (20, "again")], columns=["id", "v"])
        data = io.BytesIO()
        await client.copy_from_query("SELECT id FROM t WHERE id<$1 OR id>$2 ORDER BY id", 2, 8, output=data)
        assert data.getvalue() == b"0\n1\n9\n"
        await client.close()

    asyncio.run(use())
