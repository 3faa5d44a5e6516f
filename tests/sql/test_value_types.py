"""Intervals, times, moments, lists, structs, JSON, wide decimals, uuids and bytes: views equal DuckDB's while rows come and go.

`tests/sql/test_random_sql.py` draws queries over these types; here are those that it does not draw, and what a restart and a
failing row do.
"""

from __future__ import annotations

import datetime
import decimal
import random
import uuid
import zoneinfo
from pathlib import Path
from typing import Any

import duckdb
import pytest

import tektite as tk
from tests.support.executors import make_engine
from tests.support.sql.oracle import difference, rows_of

pytestmark = pytest.mark.executors

UTC = datetime.UTC
CREATE = """CREATE TABLE v (k BIGINT, g BIGINT, t TIME, z TIMESTAMPTZ, i INTERVAL, l BIGINT[], s VARCHAR[],
            r STRUCT(x BIGINT, y VARCHAR), j JSON, w DECIMAL(30, 2), u UUID, b BLOB)"""
DOMAINS: dict[str, list[str]] = {
    "t": ["TIME '00:00:00'", "TIME '10:30:00.5'", "TIME '23:59:59'"],
    "z": [
        "TIMESTAMPTZ '2024-03-31 00:30:00+00'",
        "TIMESTAMPTZ '2024-10-27 01:30:00+00'",
        "TIMESTAMPTZ '2024-07-01 12:00:00+00'",
    ],
    "i": [
        "INTERVAL '1 month'",
        "INTERVAL '30 days'",
        "INTERVAL '-2 days 03:00:00'",
        "INTERVAL '1 year 5 days'",
        "INTERVAL '0 days'",
    ],
    "l": ["[]::BIGINT[]", "[1]::BIGINT[]", "[1, 2, 3]::BIGINT[]", "[3, NULL, 1]::BIGINT[]", "[NULL]::BIGINT[]"],
    "s": ["[]::VARCHAR[]", "['a', 'b']", "['', NULL, 'ä, ö']", "['x']"],
    "r": ["{'x': 1, 'y': 'a'}", "{'x': 2, 'y': NULL}", "{'x': NULL, 'y': 'b'}"],
    "j": ["""'{"a": [1, {"b": null}], "c": "x"}'""", "'[1, 2.5, \"z\"]'", "'3'", "'null'"],
    "w": ["99999999999999999999.99", "-12345678901234567890.5", "0.01"],
    "u": ["'550e8400-e29b-41d4-a716-446655440000'", "'050e8400-e29b-41d4-a716-446655440000'"],
    "b": ["'\\x00\\xFF'::BLOB", "'abc'::BLOB", "''::BLOB"],
}
QUERIES = [
    "SELECT g, min(t), max(z), count(DISTINCT i) FROM v GROUP BY g",
    "SELECT k FROM v WHERE i = INTERVAL '30 days'",
    "SELECT a.k, b.k FROM v a JOIN v b ON a.i = b.i AND a.k < b.k",
    "SELECT a.k, b.k FROM v a JOIN v b ON a.l = b.l AND a.s = b.s",
    "SELECT k, DATE '2024-01-31' + i, z + i, z - INTERVAL '1 month', t + i, i * 3, i / 4, -i FROM v",
    "SELECT k, z AT TIME ZONE 'Europe/Berlin', (z AT TIME ZONE 'UTC') AT TIME ZONE 'Asia/Kolkata' FROM v",
    "SELECT k, z AT TIME ZONE 'America/New_York', (z AT TIME ZONE 'UTC') AT TIME ZONE 'America/New_York' FROM v",
    "SELECT k, extract(hour FROM z), extract(month FROM i), extract(epoch FROM z), date_trunc('month', z) FROM v",
    "SELECT k, unnest(l) FROM v",
    "SELECT v.k, e.x FROM v, unnest(v.l) AS e(x)",
    "SELECT v.k, e.x FROM v LEFT JOIN LATERAL (SELECT unnest(v.s) AS x) AS e ON true",
    "SELECT x, count(*) FROM (SELECT unnest(l) AS x FROM v) AS q GROUP BY x",
    "SELECT g, array_agg(k ORDER BY k), array_agg(DISTINCT k % 3 ORDER BY k % 3), array_agg(r ORDER BY r, k) FROM v GROUP BY g",
    "SELECT g, list(l ORDER BY l, k) FILTER (WHERE k > 3) FROM v GROUP BY g",
    "SELECT k, l[1], l[2:], l || [9], len(l) FROM v WHERE l IS NOT NULL",
    "SELECT k, list_contains(l, 1), list_position(l, 3), list_sort(l), list_sort(list_distinct(l)) FROM v WHERE l IS NOT NULL",
    "SELECT k, 1 = ANY(l), r.x, r.y, {'p': r, 'q': l} FROM v WHERE l IS NOT NULL",
    "SELECT l, s, r, count(*) FROM v GROUP BY l, s, r",
    "SELECT max(l), min(l), max(r), min(s), max(w), min(u), max(b), min(i) FROM v",
    "SELECT k, rank() OVER (PARTITION BY g ORDER BY l), rank() OVER (ORDER BY w), dense_rank() OVER (ORDER BY i) FROM v",
    "SELECT k, j->'a', j->>'c', j->'a'->1->'b', json_extract(j, '$.a[0]'), j->0, j->>1, json_type(j) FROM v",
    "SELECT k, json_array_length(j) FROM v",
    "SELECT g, sum(w), max(w) FROM v GROUP BY g",
    "SELECT k, w + 1, w - w, w * 2, w < 0, w = 0.01, w::DOUBLE, w::VARCHAR FROM v",
    "SELECT DISTINCT u, b FROM v",
    "SELECT k, u::VARCHAR, b = 'abc'::BLOB, octet_length(b), hex(b) FROM v",
    "SELECT * FROM v WHERE k IN (SELECT max(k) FROM v GROUP BY l)",
    "SELECT k, l::VARCHAR, r::VARCHAR, i::VARCHAR, t::VARCHAR FROM v",
    "SELECT k, to_json(l), json_object('k', k, 'l', l), json_array(k, r) FROM v",
    "SELECT l FROM v UNION SELECT [g] FROM v",
    "SELECT i FROM v WHERE k < 4 UNION ALL SELECT z - TIMESTAMPTZ '2024-01-01 00:00:00+00' FROM v WHERE k >= 4",
    "SELECT k, try_cast(s[1] AS BIGINT[]), try_cast(j->>'c' AS INTERVAL) FROM v",
    "SELECT CASE WHEN k > 3 THEN l ELSE [k] END, coalesce(i, INTERVAL '1 day'), greatest(i, INTERVAL '2 days') FROM v",
]  # fmt: skip


def changes(chance: random.Random, rows: dict[int, str], number: int) -> list[str]:
    """Statements of one epoch: rows that come, go and change."""
    found = []
    for _ in range(chance.randint(2, 5)):
        key = max(rows, default=0) + 1
        cells = ["NULL" if chance.random() < 0.15 else chance.choice(domain) for domain in DOMAINS.values()]
        rows[key] = f"({key}, {chance.randrange(3)}, {', '.join(cells)})"
        found.append(f"INSERT INTO v VALUES {rows[key]}")
    if number:
        gone = chance.choice(list(rows))
        del rows[gone]
        found.append(f"DELETE FROM v WHERE k = {gone}")
        column = chance.choice(list(DOMAINS))
        found.append(f"UPDATE v SET {column} = {chance.choice(DOMAINS[column])} WHERE k % 3 = {number % 3}")
    return found


@pytest.mark.parametrize("seed", range(2))
def test_views_equal_duckdb_after_every_epoch(seed: int) -> None:
    chance = random.Random(seed)
    oracle = duckdb.connect()
    oracle.execute("SET TimeZone = 'UTC'")
    oracle.execute(CREATE)
    engine = make_engine()
    engine.sql(CREATE)
    rows: dict[int, str] = {}
    for number, query in enumerate(QUERIES):
        engine.sql(f"CREATE MATERIALIZED VIEW q{number} AS {query}")
    wrong = []
    for epoch in range(4):
        for statement in changes(chance, rows, epoch):
            engine.sql(statement)
            oracle.execute(statement)
        engine.advance()
        for number, query in enumerate(QUERIES):
            found = difference(engine.view(f"q{number}").rows(), rows_of(oracle.execute(query)))
            if found is not None:
                wrong.append(f"epoch {epoch}: {query}: {found}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.executors("stages", "spark")
def test_groups_joins_and_orders_of_every_type_follow_changes() -> None:
    chance, engine, rows = random.Random(7), make_engine(), dict[int, str]()
    engine.sql(CREATE)
    columns = list(DOMAINS)
    parts = [f"(SELECT '{c}' AS c, count(*) AS n, count(DISTINCT {c}) AS d FROM v)" for c in columns]
    pairs = " AND ".join(f"a.{c} = b.{c}" for c in ("i", "l", "r"))
    queries = {
        "counted": " UNION ALL ".join(parts),
        "paired": f"SELECT a.k, b.k AS other FROM v a JOIN v b ON {pairs}",
        "first_rows": "SELECT k, i, r FROM v ORDER BY i, r, l, k LIMIT 3",
        "listed": "SELECT g, list(i ORDER BY i, k), list(r ORDER BY r, k), sum(w), sum(i) FROM v GROUP BY g",
    }
    for name, query in queries.items():
        engine.sql(f"CREATE MATERIALIZED VIEW {name} AS {query}")
    for epoch in range(2):
        engine.sql("; ".join(changes(chance, rows, epoch)))
    again = make_engine(autocommit=True)
    again.sql(CREATE)
    again.table("v").insert(engine.table("v").snapshot())
    for name, query in queries.items():
        assert difference(engine.view(name).rows(), again.sql(query).rows()) is None, name


def test_a_sum_of_intervals_adds_months_days_and_time() -> None:
    """As in PostgreSQL; DuckDB has no such sum."""
    engine = make_engine()
    engine.sql("CREATE TABLE t (k BIGINT, i INTERVAL)")
    engine.sql("CREATE MATERIALIZED VIEW s AS SELECT sum(i) AS i FROM t")
    chance, parts = random.Random(3), {}
    for epoch in range(6):
        for key in range(epoch * 4, epoch * 4 + 4):
            parts[key] = [chance.randrange(-20, 20), chance.randrange(-40, 40), chance.randrange(-(10**9), 10**9)]
            months, days, micros = parts[key]
            engine.sql(f"INSERT INTO t VALUES ({key}, '{months} months {days} days {micros} microseconds')")
        gone = chance.choice(list(parts))
        del parts[gone]
        engine.sql(f"DELETE FROM t WHERE k = {gone}")
        engine.advance()
        months, days, micros = (sum(part[at] for part in parts.values()) for at in range(3))
        ((found,),) = engine.view("s").rows()
        assert (found.months, found.days, found.microseconds) == (months, days, micros)


def test_a_text_that_is_no_value_fails_its_row_until_it_is_gone() -> None:
    engine = make_engine()
    engine.sql("CREATE TABLE t (k BIGINT, s VARCHAR)")
    for number, type in enumerate(("INTERVAL", "TIME", "TIMESTAMPTZ", "BIGINT[]", "JSON", "UUID", "DECIMAL(30, 2)")):
        engine.sql(f"CREATE MATERIALIZED VIEW c{number} AS SELECT k, s::{type} AS x FROM t")
        engine.sql(f"CREATE MATERIALIZED VIEW n{number} AS SELECT k, try_cast(s AS {type}) AS x FROM t")
    engine.sql("INSERT INTO t VALUES (1, 'no value')")
    for number in range(7):
        with pytest.raises(tk.TektiteError, match=r"no value"):
            engine.view(f"c{number}").rows()
        assert engine.view(f"n{number}").rows() == [(1, None)]
    engine.sql("DELETE FROM t WHERE k = 1")
    engine.sql("INSERT INTO t VALUES (2, NULL)")
    assert all(engine.view(f"c{number}").rows() == [(2, None)] for number in range(7))


def test_wide_results_that_do_not_fit_fail_their_row() -> None:
    engine = make_engine()
    engine.sql("CREATE TABLE t (k BIGINT, w DECIMAL(38, 0))")
    engine.sql("CREATE MATERIALIZED VIEW p AS SELECT k, w * 10 AS w FROM t")
    engine.sql(f"INSERT INTO t VALUES (1, {'9' * 38}), (2, 5), (3, NULL)")
    with pytest.raises(tk.TektiteError, match="does not fit"):
        engine.view("p").rows()
    engine.sql("DELETE FROM t WHERE k = 1")
    assert sorted(engine.view("p").rows()) == [(2, decimal.Decimal(50)), (3, None)]


def test_the_least_integer_is_a_decimal() -> None:
    engine = make_engine()
    (row,) = engine.sql(
        "SELECT -9223372036854775808 AS x, 9223372036854775808 AS y, typeof(-9223372036854775808)"
    ).rows()
    assert row == (decimal.Decimal(-(2**63)), decimal.Decimal(2**63), "DECIMAL(19,0)")
    engine.sql("CREATE TABLE t (a BIGINT)")
    with pytest.raises(tk.TektiteError):
        engine.sql("INSERT INTO t VALUES (-9223372036854775808)")


def test_a_view_keeps_the_zone_in_which_it_was_made() -> None:
    engine = make_engine()
    engine.sql("CREATE TABLE m (z TIMESTAMPTZ)")
    engine.sql("SET TimeZone = 'America/New_York'")
    engine.sql("CREATE MATERIALIZED VIEW h AS SELECT extract(hour FROM z) AS hour, z::VARCHAR AS shown FROM m")
    engine.sql("INSERT INTO m VALUES ('2024-07-01 08:00:00')")
    engine.sql("SET TimeZone = 'Asia/Tokyo'")
    assert engine.view("h").rows() == [(8, "2024-07-01 08:00:00-04")]
    assert engine.sql("SELECT extract(hour FROM z), z::VARCHAR FROM m").rows() == [(21, "2024-07-01 21:00:00+09")]
    assert engine.view("h").rows() == [(8, "2024-07-01 08:00:00-04")]


@pytest.mark.parametrize(
    ("shown", "zone", "moment"),
    [
        ("2024-03-31 02:30:00", "Europe/Berlin", "2024-03-31 01:30:00"),  # is left out: as without the change
        ("2024-10-27 02:30:00", "Europe/Berlin", "2024-10-27 01:30:00"),  # is shown twice: the later moment
        ("2024-03-10 02:30:00", "America/New_York", "2024-03-10 07:30:00"),
        ("2024-11-03 01:30:00", "America/New_York", "2024-11-03 06:30:00"),
        ("2024-07-01 00:00:00", "Asia/Kolkata", "2024-06-30 18:30:00"),
    ],
)
def test_clocks_that_are_set_mean_what_postgresql_says(shown: str, zone: str, moment: str) -> None:
    (row,) = make_engine().sql(f"SELECT TIMESTAMP '{shown}' AT TIME ZONE '{zone}'").rows()
    assert row[0] == datetime.datetime.fromisoformat(moment).replace(tzinfo=UTC)


def test_stored_values_come_back(tmp_path: Path) -> None:
    columns = {
        "i": tk.Interval, "t": tk.Time, "z": tk.TimestampTz, "l": tk.List(tk.List(str)), "r": tk.Struct(x=int, y=tk.List(float)),
        "j": tk.Json, "u": tk.Uuid, "b": tk.Blob, "w": tk.Decimal(38, 4),
    }  # fmt: skip
    row: tuple[Any, ...] = (
        tk.IntervalValue(1, -2, 3), datetime.time(1, 2, 3), datetime.datetime(2024, 1, 1, tzinfo=UTC),
        [["a", None], [], None], {"x": 1, "y": [0.5, None]}, '{"a":1}', str(uuid.UUID(int=7)), b"\0\xff",
        decimal.Decimal("-1234567890123456789012345678901234.5678"),
    )  # fmt: skip
    with make_engine(storage=tmp_path) as engine:
        table = engine.create_table("v", columns)
        table.insert([row, (None,) * 9])
        engine.advance()
        engine.sync()
    with make_engine(storage=tmp_path) as engine:
        table = engine.create_table("v", columns)
        assert engine.sql("SELECT * FROM v ORDER BY t").rows() == [row, (None,) * 9]
        table.remove([row])
        engine.advance()
        assert engine.sql("SELECT * FROM v").rows() == [(None,) * 9]


def test_python_gives_moments_to_columns_of_moments_only() -> None:
    engine = make_engine()
    naive, aware = datetime.datetime(2024, 1, 1), datetime.datetime(2024, 1, 1, tzinfo=UTC)
    plain, zoned = engine.create_table("p", {"x": tk.Timestamp}), engine.create_table("z", {"x": tk.TimestampTz})
    with pytest.raises(tk.IncorrectError, match="without a time zone"):
        plain.insert([(aware,)])
    with pytest.raises(tk.IncorrectError, match="with a time zone"):
        zoned.insert([(naive,)])
    zoned.insert([(aware,)])
    engine.advance()
    assert engine.sql("SELECT x FROM z WHERE x = $1", {"1": aware}).rows() == [(aware,)]


def test_one_text_means_each_session_s_own_time_zone() -> None:
    engine = make_engine(autocommit=True)
    engine.sql("CREATE TABLE t (at timestamptz, id int)")
    engine.sql("INSERT INTO t VALUES ('2026-07-01 12:00:00+00', 1)")
    engine.sql("PREPARE q AS SELECT at::timestamp FROM t WHERE id = $1")
    hours = {"America/New_York": 8, "Europe/Berlin": 14, "UTC": 12}
    sessions = {zone: engine.session() for zone in hours}
    for zone, session in sessions.items():
        session.sql(f"SET TimeZone = '{zone}'")
    for _ in range(2):
        for zone, session in sessions.items():
            expected = [(datetime.datetime(2026, 7, 1, hours[zone]),)]
            assert session.sql("EXECUTE q (1)").rows() == expected
            assert session.sql("SELECT at::timestamp FROM t").rows() == expected
            followed = session.sql("SUBSCRIBE (SELECT at::timestamp FROM t WHERE id = 1)").subscription
            assert followed is not None and [change.row for change in followed.changes()] == expected


def test_nothing_inside_lists_and_structs_is_shown_as_nothing() -> None:
    engine = make_engine(autocommit=True)
    engine.sql("CREATE TABLE t (k int, s struct(x int, y varchar))")
    engine.sql("INSERT INTO t VALUES (1, {'x': 1, 'y': 'a'}), (2, NULL), (3, {'x': 3, 'y': 'b'})")
    one, other = "{'x': 1, 'y': a}", "{'x': 3, 'y': b}"
    assert engine.sql("SELECT [[1], NULL, [3]]::varchar").rows() == [("[[1], NULL, [3]]",)]
    assert engine.sql("SELECT array_agg(s ORDER BY k)::varchar FROM t").rows() == [(f"[{one}, NULL, {other}]",)]
    assert engine.sql("SELECT s::varchar FROM t ORDER BY k").rows() == [(one,), (None,), (other,)]
    assert engine.sql("SELECT [s, s]::varchar FROM t WHERE k = 2").rows() == [("[NULL, NULL]",)]


@pytest.mark.parametrize(
    ("kind", "value"),
    [("time", "TIME '01:00:00'"), ("int[]", "[1, 2]"), ("interval", "INTERVAL '1 day'"), ("bytea", "'\\xff'")],
)
def test_a_default_that_a_declaration_cannot_keep_is_refused_before_there_is_a_table(kind: str, value: str) -> None:
    engine = make_engine(autocommit=True)
    with pytest.raises(tk.UnsupportedError, match="DEFAULT of a column of type"):
        engine.sql(f"CREATE TABLE t (k int, v {kind} DEFAULT {value})")
    assert engine.tables == ()
    engine.sql("CREATE TABLE t (k int, v uuid DEFAULT '7d444840-9dc0-11d1-b245-5ffdce74fad2')")
    engine.sql("INSERT INTO t (k) VALUES (1)")
    assert len(engine.sql("SELECT v FROM t").rows()) == 1


def test_the_first_rows_of_groups_keep_their_own_of_equal_values() -> None:
    engine = make_engine(autocommit=True)
    engine.sql("CREATE TABLE t (a INT, i INTERVAL, f DOUBLE)")
    table = engine.table("t")
    table.insert(
        [
            (1, tk.IntervalValue(days=30), -0.0),
            (2, tk.IntervalValue(months=1), 0.0),
            (3, tk.IntervalValue(days=40), 1.0),
        ]
    )
    wanted = [(1, "30 days", "-0.0"), (3, "40 days", "1.0")]
    engine.sql("CREATE MATERIALIZED VIEW first AS SELECT DISTINCT ON (i, f) a, i, f FROM t ORDER BY i, f, a")
    views = [engine.view("first"), engine.create_view("least", table.bottom_k(1, by="a", per=["i", "f"]))]
    for view in views:
        assert sorted((a, str(i), str(f)) for a, i, f in view.rows()) == wanted
    table.remove([(1, tk.IntervalValue(days=30), -0.0)])
    for view in views:
        assert sorted((a, str(i), str(f)) for a, i, f in view.rows()) == [(2, "1 month", "0.0"), wanted[1]]


ZONED = datetime.datetime(2024, 7, 1, 12, tzinfo=datetime.timezone(datetime.timedelta(hours=2)))
SAID = "2024-07-01 12:00:00+02"


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "America/New_York"])
def test_values_with_and_without_a_zone_are_read_alike_at_all_doors(tmp_path: Path, zone: str) -> None:
    """As in PostgreSQL: a text is a timestamp by what its clock shows, and a moment is one by the session's clocks."""
    engine = make_engine()
    engine.sql(f"SET TimeZone = '{zone}'")
    engine.sql("CREATE TABLE t (x timestamp); CREATE TABLE z (x timestamptz)")
    clock = ZONED.astimezone(zoneinfo.ZoneInfo(zone)).replace(tzinfo=None)
    plain = ZONED.replace(tzinfo=None)
    for text, params in (
        (f"INSERT INTO t VALUES ('{SAID}')", []), (f"INSERT INTO t VALUES (TIMESTAMP '{SAID}')", []),
        ("INSERT INTO t SELECT CAST(s AS timestamp) FROM (VALUES ($1)) AS v (s)", [SAID]),
    ):  # fmt: skip
        engine.sql(text, params)
    assert engine.sql("SELECT x FROM t").rows() == [(plain,)] * 3
    engine.sql("DELETE FROM t")
    for text, params in (
        ("INSERT INTO t VALUES ($1)", [ZONED]), (f"INSERT INTO t VALUES (TIMESTAMPTZ '{SAID}')", []),
        ("INSERT INTO t SELECT $1::timestamp", [ZONED]),
    ):  # fmt: skip
        engine.sql(text, params)
    assert engine.sql("SELECT x FROM t").rows() == [(clock,)] * 3
    file = tmp_path / "rows.csv"
    file.write_text(f"{clock}\n{SAID}\n")
    engine.sql(f"COPY z FROM '{file}'")
    engine.sql(f"INSERT INTO z VALUES ('{clock}'), ('{SAID}')")
    for value in (clock, ZONED):
        engine.sql("INSERT INTO z VALUES ($1)", [value])
    with pytest.raises(tk.IncorrectError, match="timestamp and timestamptz have no common type"):
        engine.sql("INSERT INTO z VALUES ($1), ($2)", [clock, ZONED])
    assert engine.sql("SELECT x FROM z").rows() == [(ZONED,)] * 6
