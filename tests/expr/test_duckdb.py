"""Where SQL has an opinion, expressions mean what DuckDB says. Each case is an expression and the same in SQL."""

from __future__ import annotations

import datetime
import decimal
import math
import random
from typing import Any

import pytest

from tektite.expr import Expr, coalesce, col, greatest, least, lit, when
from tektite.values.types import Bool, Date, Decimal, Float, Int, String, Timestamp
from tests.expr.test_random import COLUMNS, SCHEMA, random_rows
from tests.support.expression_twin import Rows, TextDictionary

duckdb = pytest.importorskip("duckdb")

i, j, x, y, p, q, b, c, s, r, d, e, t, u = map(col, SCHEMA)
DAY = datetime.date(1995, 3, 15)

CASES: list[tuple[Expr, str]] = [
    (j + 7, "j + 7"),
    (j / 3, "j / 3"),
    (j / (j - j), "j / nullif(j - j, 0)"),
    (x * y + 1.5, "x * y + 1.5::double"),
    (x + j, "x + j"),
    (p + q, "p + q"),
    (p * q, "p * q"),
    (p - 1, "p - 1"),
    (p * (1 - q), "p * (1 - q)"),
    (p / q, "p::double / nullif(q::double, 0)"),
    (abs(j), "abs(j)"),
    (abs(p), "abs(p)"),
    (j.sign(), "sign(j)"),
    (-x, "-x"),
    (j < x, "j < x"),
    (p <= q, "p <= q"),
    (p > j, "p > j"),
    (x == y, "x = y"),
    (x < y, "x < y"),
    (x.is_same(y), "x is not distinct from y"),
    (s < r, "s < r"),
    (s >= "a", "s >= 'a'"),
    (s == r, "s = r"),
    (b & c, "b and c"),
    (b | c, "b or c"),
    (~b, "not b"),
    (b.is_null() | c.is_not_null(), "b is null or c is not null"),
    (j.between(-2, 2), "j between -2 and 2"),
    (j.isin([1, 2, 3]), "j in (1, 2, 3)"),
    (j.isin([1, None]), "j in (1, null)"),
    (~s.isin(["", "a", "b"]), "s not in ('', 'a', 'b')"),
    (coalesce(j, i, 0), "coalesce(j, i, 0)"),
    (least(j, 1), "least(j, 1)"),
    (greatest(x, y), "greatest(x, y)"),
    (greatest(s, r), "greatest(s, r)"),
    (when(j > 0, "pos").when(j < 0, "neg").otherwise("zero"),
     "case when j > 0 then 'pos' when j < 0 then 'neg' else 'zero' end"),
    (when(b, p).otherwise(0), "case when b then p else 0 end"),
    (when(j > 100, j), "case when j > 100 then j end"),
    (s.length(), "length(s)"),
    (s.lower(), "lower(s)"),
    (s.upper(), "upper(s)"),
    (s.strip(" "), "trim(s)"),
    (s.lstrip("a"), "ltrim(s, 'a')"),
    (s.rstrip("aA"), "rtrim(s, 'aA')"),
    (s.concat("-", r), "s || '-' || r"),
    (s.substring(2), "substring(s, 2)"),
    (s.substring(2, 2), "substring(s, 2, 2)"),
    (s.substring(0, 2), "substring(s, 0, 2)"),
    (s.substring(-2, 1), "substring(s, -2, 1)"),
    (s.substring(s.length(), 1), "substring(s, length(s), 1)"),
    (s.startswith("a"), "starts_with(s, 'a')"),
    (s.endswith(r), "ends_with(s, r)"),
    (s.contains("b"), "contains(s, 'b')"),
    (s.replace("a", "xy"), "replace(s, 'a', 'xy')"),
    *[(s.like(like), f"s like '{like}'") for like in ("a%", "%b", "%a%", "_", "__%", "", "%", "%\\%", "a_b%")],
    *[(s.ilike(like), f"s ilike '{like}'") for like in ("a%", "%B", "_é")],
    (s.like("%!_%", "!"), "s like '%!_%' escape '!'"),
    (s.like("%\\%", "\\"), "s like '%\\%' escape '\\'"),
    (d.year(), "year(d)"),
    (d.month(), "month(d)"),
    (d.day(), "day(d)"),
    (d.quarter(), "quarter(d)"),
    (d.weekday() + 1, "isodow(d)"),
    (t.year(), "year(t)"),
    (t.hour(), "hour(t)"),
    (t.minute(), "minute(t)"),
    (t.second(), "second(t)"),
    (d - e, "d - e"),
    (d + 40, "d + 40"),
    (d < t, "d < t"),
    (d.add_months(1), "cast(d + interval 1 month as date)"),
    (d.add_months(-13), "cast(d - interval 13 month as date)"),
    (t.add_months(5), "t + interval 5 month"),
    (t.add_days(3), "t + interval 3 day"),
    *[(t.truncate(unit), f"cast(date_trunc('{unit}', t) as timestamp)")
      for unit in ("year", "quarter", "month", "week", "day", "hour", "minute", "second")],
    *[(d.truncate(unit), f"cast(date_trunc('{unit}', d) as date)")
      for unit in ("year", "quarter", "month", "week", "day")],
    (d >= lit(DAY), "d >= date '1995-03-15'"),
    (d >= "1995-03-15", "d >= '1995-03-15'"),
    ((t - u).dt.total_microseconds(), "date_diff('microsecond', u, t)"),
    ((t - u).cast(String), "cast(t - u as varchar)"),
    (t - u > datetime.timedelta(days=400), "t - u > interval 400 day"),
    ((t - u).dt.part("hour"), "extract(hour from t - u)"),
    (j.bit_and(12), "j & 12"),
    (j.bit_or(12), "j | 12"),
    (j.bit_xor(12), "xor(j, 12)"),
    (j.shift_right(2), "j >> 2"),
    (j.cast(Float), "j::double"),
    (j.cast(Decimal(10, 2)), "j::decimal(10, 2)"),
    (j.cast(Bool), "j::boolean"),
    (b.cast(Int), "b::bigint"),
    (p.cast(Int), "p::bigint"),
    (p.cast(Decimal(9, 1)), "p::decimal(9, 1)"),
    (p.cast(Float), "p::double"),
    (q.cast(Decimal(15, 6)), "q::decimal(15, 6)"),
    (t.cast(Date), "t::date"),
    (d.cast(Timestamp), "d::timestamp"),
    (j.cast(String), "j::varchar"),
    (p.cast(String), "p::varchar"),
    (b.cast(String), "b::varchar"),
    (d.cast(String), "d::varchar"),
    (t.cast(String), "t::varchar"),
    (j.cast(String).cast(Int), "j::varchar::bigint"),
    (d.cast(String).cast(Date), "d::varchar::date"),
    (p.cast(String).cast(Decimal(9, 2)), "p::varchar::decimal(9, 2)"),
    (s.try_cast(Int), "try_cast(s as bigint)"),
    (s.try_cast(Date), "try_cast(s as date)"),
]  # fmt: skip


@pytest.fixture(scope="module")
def source() -> Rows:
    rng = random.Random(5)
    rows = [row for _ in range(40) for row in random_rows(rng)]
    return Rows(SCHEMA, rows, TextDictionary())


@pytest.fixture(scope="module")
def database(source: Rows) -> Any:
    connection = duckdb.connect()
    names = {Int: "bigint", Float: "double", Bool: "boolean", String: "varchar", Date: "date", Timestamp: "timestamp"}
    columns = ", ".join(f"{name} {names.get(type, type)}" for name, type in SCHEMA.items())
    connection.execute(f"create table data (row bigint, {columns})")
    places = ", ".join("?" * (len(SCHEMA) + 1))
    connection.executemany(f"insert into data values ({places})", [(n, *row) for n, row in enumerate(source.rows)])
    yield connection
    connection.close()


def comparable(value: Any) -> Any:
    if isinstance(value, float):
        return "nan" if math.isnan(value) else float(f"{value:.12g}")
    return decimal.Decimal(value).normalize() if isinstance(value, decimal.Decimal) else value


@pytest.mark.parametrize(("expr", "sql"), CASES, ids=[sql for _, sql in CASES])
def test_an_expression_means_what_duckdb_says(expr: Expr, sql: str, source: Rows, database: Any) -> None:
    expected = [row[0] for row in database.execute(f"select {sql} from data order by row").fetchall()]
    assert [comparable(v) for v in source.values(expr)] == [comparable(v) for v in expected]


@pytest.mark.parametrize(
    ("expr", "sql"), [case for case in CASES if case[0].op in ("and", "or", "lt", "like", "isin", "eq")]
)
def test_a_filter_keeps_what_duckdb_keeps(expr: Expr, sql: str, source: Rows, database: Any) -> None:
    expected = [row[0] for row in database.execute(f"select row from data where {sql} order by row").fetchall()]
    assert [row[1] for row in source.run([j], expr)] == expected


def test_every_kind_of_column_is_covered() -> None:
    assert {name for expr, _ in CASES for name in expr.columns()} == set("".join(COLUMNS.values()))
