"""Statements that run without a plan answer as they do with one."""

from __future__ import annotations

import datetime
import random

import pytest

import tektite as tk
from tektite.sql import runner
from tektite.sql.parse import parser
from tektite.sql.statements.describe import describe
from tektite.sql.statements.direct import key_lookup, row_insert

ROWS = [(n % 7, f"v{n % 3}", n * 0.5, datetime.date(2024, 1, 1 + n % 5)) for n in range(60)]


@pytest.fixture
def engine():
    with tk.Engine(workers=2) as made:
        made.create_table("bag", {"i": int, "v": str, "x": float, "d": "date"}, order_by=["v", "i"])
        made.create_table("keyed", {"i": int, "v": str, "x": float, "d": "date"}, mode="upsert", primary_key=["i", "d"])
        for name in ("bag", "keyed"):
            made.table(name).insert([*ROWS, *ROWS[:5]])
        made.sql("CREATE MATERIALIZED VIEW sums AS SELECT v, d, sum(x) AS s, count(*) AS n FROM bag GROUP BY v, d")
        yield made


LOOKUPS = [
    ("SELECT * FROM bag WHERE v = $1", lambda r: ["v1"]),
    ("SELECT x, i AS number FROM bag WHERE i = $2 AND v = $1", lambda r: [r.choice(["v0", "v9"]), r.randrange(9)]),
    (
        "SELECT v, x FROM keyed WHERE d = $1 AND (i = $2)",
        lambda r: [datetime.date(2024, 1, r.randrange(1, 8)), r.randrange(9)],
    ),
    ("SELECT s, n FROM sums WHERE v = $1", lambda r: [r.choice(["v0", "v1", None])]),
]


@pytest.mark.parametrize(("text", "values"), LOOKUPS, ids=[text for text, _ in LOOKUPS])
def test_look_up_by_key_gives_what_the_query_gives(engine, text: str, values) -> None:
    (statement,) = parser.parse(text)
    made = key_lookup(runner(engine), statement, describe(runner(engine), statement).parameters)
    assert made is not None
    for seed in range(10):
        given = values(random.Random(seed))
        found = made.rows({str(at): value for at, value in enumerate(given, 1)})
        assert sorted(found) == sorted(engine.sql(text, given).rows())


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM bag WHERE i = $1",
        "SELECT * FROM bag WHERE v > $1",
        "SELECT * FROM bag WHERE v = $1 LIMIT 1",
        "SELECT count(*) FROM bag WHERE v = $1",
        "SELECT DISTINCT v FROM bag WHERE v = $1",
        "SELECT * FROM bag b WHERE v = $1",
        "SELECT * FROM bag WHERE v = $1 OR v = $2",
    ],
)
def test_query_that_is_more_than_a_look_up_is_planned(engine, text: str) -> None:
    (statement,) = parser.parse(text)
    assert key_lookup(runner(engine), statement, describe(runner(engine), statement).parameters) is None


def test_insert_of_given_rows_fills_what_is_left_out_by_defaults(engine) -> None:
    engine.sql("CREATE TABLE t (i int, v varchar DEFAULT 'none', x double)")
    (statement,) = parser.parse("INSERT INTO t (x, i) VALUES ($1, $2), ($3, $2)")
    made = row_insert(runner(engine), statement, describe(runner(engine), statement).parameters)
    assert made is not None
    assert made.rows({"1": 1.5, "2": 7, "3": None}) == [(7, "none", 1.5), (7, "none", None)]
    engine.sql("DROP TABLE t")
    assert not made.stands(runner(engine))


@pytest.mark.parametrize(
    "text",
    [
        "INSERT INTO bag VALUES ($1, $2, $3 + 1, $4)",
        "INSERT INTO bag SELECT $1, $2, $3, $4",
        "INSERT INTO keyed VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING",
        "INSERT INTO bag VALUES ($1, $2, $3, $4) RETURNING i",
    ],
)
def test_insert_that_is_more_than_given_rows_is_planned(engine, text: str) -> None:
    (statement,) = parser.parse(text)
    assert row_insert(runner(engine), statement, describe(runner(engine), statement).parameters) is None
