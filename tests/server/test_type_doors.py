"""Every type through every door: what goes in by one way to write and comes out by the matching way to read is the same value.

`TYPES` has a value of each type; `DOORS` has the ways in and out. Each pair is one test: two rows, one of them with NULL.
"""

from __future__ import annotations

import asyncio
import datetime
import decimal
import io
import itertools
import json
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import asyncpg
import psycopg
import pyarrow as pa
import pyarrow.csv
import pytest

import tektite as tk
from tests.support.nightly import few_of
from tests.support.patience import PATIENCE, until
from tests.support.server import RunningServer, running_server
from tests.support.wire import json_client

UTC = datetime.UTC
ID = uuid.UUID("550e8400-e29b-41d4-a716-446655440000")
MOMENT = datetime.datetime(2024, 7, 1, 12, 30, 0, 250_000, tzinfo=UTC)
TYPES: dict[str, tuple[str, str, Any]] = {
    "int": ("bigint", "-7", -7),
    "float": ("double", "1.5", 1.5),
    "infinity": ("double", "'-inf'::double", float("-inf")),
    "bool": ("boolean", "true", True),
    "string": ("varchar", "'a, \"b\" {c}'", 'a, "b" {c}'),
    "date": ("date", "DATE '2024-02-29'", datetime.date(2024, 2, 29)),
    "timestamp": ("timestamp", "TIMESTAMP '2024-02-29 12:00:00.5'", datetime.datetime(2024, 2, 29, 12, 0, 0, 500_000)),
    "decimal": ("decimal(9, 2)", "12.50", decimal.Decimal("12.50")),
    "wide decimal": ("decimal(38, 2)", "-12345678901234567890123456.78", decimal.Decimal("-12345678901234567890123456.78")),
    "time": ("time", "TIME '01:02:03.5'", datetime.time(1, 2, 3, 500_000)),
    "timestamptz": ("timestamptz", "TIMESTAMPTZ '2024-07-01 12:30:00.25+00'", MOMENT),
    "interval": ("interval", "INTERVAL '3 days 04:00:00'", datetime.timedelta(days=3, hours=4)),
    "json": ("json", "'{\"a\":[1,null]}'", '{"a":[1,null]}'),
    "uuid": ("uuid", f"'{ID}'", str(ID)),
    "blob": ("bytea", "'\\x00ff5c'::bytea", b"\x00\xff\\"),
    "list": ("bigint[]", "[1, NULL, -3]", [1, None, -3]),
    "empty list": ("bigint[]", "[]", []),
    "texts": ("varchar[]", "['a', 'b \"c\",', 'NULL', '', NULL]", ["a", 'b "c",', "NULL", "", None]),
    "moments": ("timestamptz[]", "[TIMESTAMPTZ '2024-07-01 12:30:00.25+00']", [MOMENT]),
    "lists": ("bigint[][]", "[[1], [2]]", [[1], [2]]),
    "struct": ("struct(x bigint, y varchar)", "{'x': 1, 'y': NULL}", {"x": 1, "y": None}),
    "structs": ("struct(x decimal(30, 1), i interval)[]", "[{'x': 1.5, 'i': INTERVAL '1 day'}]",
                [{"x": decimal.Decimal("1.5"), "i": datetime.timedelta(days=1)}]),
}  # fmt: skip
Door = Callable[[RunningServer, str, str, Any, Path], list[Any]]
numbers = itertools.count()


@pytest.fixture(scope="module")
def served() -> Iterator[RunningServer]:
    with running_server() as server:
        yield server


def made(served: RunningServer, kind: str, literal: str | None = None) -> str:
    """A new table, with the value and a NULL unless another door is to bring them."""
    name = f"t{next(numbers)}"
    served.engine.sql(f"CREATE TABLE {name} (k bigint PRIMARY KEY, v {kind})")
    if literal is not None:
        served.engine.sql(f"INSERT INTO {name} VALUES (1, {literal}), (2, NULL)")
    return name


def held(served: RunningServer, name: str) -> list[Any]:
    """What a table holds, read in the server's process."""
    return [v for _, v in sorted(served.engine.table(name).rows())]


def asked(served: RunningServer, path: str, **body: Any) -> Any:
    request = urllib.request.Request(
        f"http://127.0.0.1:{served.http_port}/v1/{path}",
        json.dumps(body).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        return json.loads(answer.read())


def http_json(served: RunningServer, kind: str, literal: str, value: Any, folder: Path) -> list[Any]:
    first, second = made(served, kind, literal), made(served, kind)
    rows = asked(served, "rows", relation=first)["table"]["rows"]
    asked(served, "insert", table=second, rows=rows)
    return held(served, second)


def web_socket(served: RunningServer, kind: str, literal: str, value: Any, folder: Path) -> list[Any]:
    first, second = made(served, kind, literal), made(served, kind)
    with json_client(served) as client:
        rows = client.rows("sql", text=f"SELECT * FROM {first}")
        client.ask("insert", table=second, rows=rows)
    return held(served, second)


def connected(served: RunningServer, kind: str, literal: str, value: Any, folder: Path) -> list[Any]:
    name = made(served, kind)
    with tk.connect(served.web_url) as session:
        session.table(name).insert([(1, value), (2, None)])
        rows = sorted(session.table(name).rows())
        with session.table(name).subscribe() as subscription:
            assert sorted(change.row for change in subscription.changes()) == rows
        assert session.sql(f"SELECT v FROM {name} ORDER BY k").rows() == [(v,) for _, v in rows]
    return [v for _, v in rows]


def parameter(served: RunningServer, kind: str, literal: str, value: Any, folder: Path) -> list[Any]:
    first = made(served, kind, literal)
    with tk.connect(served.web_url) as session:
        found = session.sql(f"SELECT k FROM {first} WHERE v = $1", [value]).rows()
        assert found == [(1,)]
    return held(served, first)


def plain(value: Any) -> Any:
    """What a driver of PostgreSQL makes of a value, as Tektite's own readers have it. A record has no names there."""
    if isinstance(value, uuid.UUID):
        return str(value)
    if isinstance(value, dict):
        return json.dumps(value, separators=(",", ":"))
    if isinstance(value, list):
        return list(map(plain, value))
    return value


RECORDS: dict[str, dict[bool, Any]] = {
    "struct": {False: ("1", None), True: (1, None)},
    "structs": {False: [("1.5", "1 day")], True: [(decimal.Decimal("1.5"), datetime.timedelta(days=1))]},
}
"""What drivers give for structs, in text and in binary: a text says no types of fields."""


def psycopg_in(binary: bool) -> Door:
    def door(served: RunningServer, kind: str, literal: str, value: Any, folder: Path) -> list[Any]:
        name = made(served, kind, literal)
        with psycopg.connect(served.conninfo(), autocommit=True) as connection:
            cursor = connection.cursor(binary=binary)
            return [plain(v) for (v,) in cursor.execute(f"SELECT v FROM {name} ORDER BY k").fetchall()]

    return door


def asyncpg_in(served: RunningServer, kind: str, literal: str, value: Any, folder: Path) -> list[Any]:
    name = made(served, kind, literal)

    async def read() -> list[Any]:
        connection = await asyncpg.connect(served.url, timeout=PATIENCE)
        try:
            return [
                plain(row["v"]) for row in await connection.fetch(f"SELECT v FROM {name} ORDER BY k", timeout=PATIENCE)
            ]
        finally:
            await connection.close()

    return asyncio.run(read())


def copied(form: str) -> Door:
    """COPY between two tables over PostgreSQL's protocol."""

    def door(served: RunningServer, kind: str, literal: str, value: Any, folder: Path) -> list[Any]:
        first, second = made(served, kind, literal), made(served, kind)
        with psycopg.connect(served.conninfo(), autocommit=True) as connection:
            cursor = connection.cursor()
            with cursor.copy(f"COPY {first} TO STDOUT (FORMAT {form})") as out:
                data = b"".join(out)
            with cursor.copy(f"COPY {second} FROM STDIN (FORMAT {form})") as into:
                into.write(data)
        return held(served, second)

    return door


def file_copy(form: str) -> Door:
    """COPY between two tables through a file."""

    def door(served: RunningServer, kind: str, literal: str, value: Any, folder: Path) -> list[Any]:
        first, second, file = made(served, kind, literal), made(served, kind), folder / f"rows.{form}"
        served.engine.sql(f"COPY {first} TO '{file}' (FORMAT {form})")
        served.engine.sql(f"COPY {second} FROM '{file}' (FORMAT {form})")
        return held(served, second)

    return door


def sink_and_source(form: str) -> Door:
    """A sink writes a file, and a source reads it."""

    def door(served: RunningServer, kind: str, literal: str, value: Any, folder: Path) -> list[Any]:
        first, second, file = made(served, kind, literal), made(served, kind), folder / f"changes.{form}"
        with psycopg.connect(served.conninfo(), autocommit=True) as connection:
            connection.execute(f"CREATE SINK out_{first} FROM {first} TO '{file}' WITH (every = '10ms')")
            lines = 3 if form == "csv" else 2
            until(lambda: file.exists() and file.read_bytes().count(b"\n") >= lines)
            connection.execute(f"DROP SINK out_{first}")
            kept = folder / f"rows.{form}"
            if form == "csv":
                table = pa.csv.read_csv(
                    file,
                    convert_options=pa.csv.ConvertOptions(
                        column_types={"v": pa.string()},
                        strings_can_be_null=True,
                        quoted_strings_can_be_null=False,
                        null_values=[""],
                    ),
                )  # noqa: E501
                out = io.BytesIO()
                pa.csv.write_csv(table.select(["k", "v"]), out)
                kept.write_bytes(out.getvalue())
            else:
                rows = [json.loads(line) for line in file.read_text().splitlines()]
                kept.write_text("".join(json.dumps({n: row[n] for n in ("k", "v")}) + "\n" for row in rows))
            connection.execute(f"CREATE SOURCE in_{second} INTO {second} FROM '{kept}' WITH (every = '10ms')")
            until(lambda: len(held(served, second)) == 2)
            connection.execute(f"DROP SOURCE in_{second}")
        return held(served, second)

    return door


DOORS: dict[str, Door] = {
    "HTTP": http_json, "WebSocket": web_socket, "connect": connected, "parameter": parameter,
    "psycopg, text": psycopg_in(False), "psycopg, binary": psycopg_in(True), "asyncpg": asyncpg_in,
    "COPY, text": copied("text"), "COPY, csv": copied("csv"), "COPY, binary": copied("binary"),
    "CSV file": file_copy("csv"), "Parquet file": file_copy("parquet"),
    "JSON sink and source": sink_and_source("json"), "CSV sink and source": sink_and_source("csv"),
}  # fmt: skip


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize(
    "type", few_of(TYPES, "float", "wide decimal", "timestamptz", "interval", "json", "blob", "texts", "structs")
)
def test_a_value_comes_out_as_it_went_in(served: RunningServer, type: str, door: str, tmp_path: Path) -> None:
    kind, literal, value = TYPES[type]
    expected = value
    if type in RECORDS and door in ("psycopg, text", "psycopg, binary", "asyncpg"):
        expected = RECORDS[type][door != "psycopg, text"]
    assert DOORS[door](served, kind, literal, value, tmp_path) == [expected, None]
