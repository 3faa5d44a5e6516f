"""Windows of time, series of columns and nearest rows are kept up to date: a view is what its query gives, after every change."""

from __future__ import annotations

import random
from datetime import datetime

import pytest

from tests.support.executors import make_engine

QUERIES = [
    "SELECT k, window_start, window_end FROM tumble(t, at, INTERVAL '1 hour')",
    "SELECT window_start, count(*), sum(k) FROM hop(t, at, INTERVAL '20 minutes', INTERVAL '50 minutes') GROUP BY window_start",
    "SELECT t.k, n FROM t, generate_series(k, 4) g(n)",
    "SELECT t.k, n FROM t LEFT JOIN generate_series(1, t.k, 2) g(n) ON n > 1",
    "SELECT t.k, t.at, q.price FROM t ASOF LEFT JOIN q ON t.k = q.k AND t.at >= q.at",
    "SELECT t.k, q.price FROM t ASOF JOIN q ON q.at > t.at",
]

pytestmark = pytest.mark.executors("stages")


@pytest.mark.executors(spark=[0])
@pytest.mark.parametrize("number", range(len(QUERIES)))
def test_view_is_what_its_query_gives(number: int) -> None:
    pick = random.Random(number)
    with make_engine() as engine:
        engine.sql("CREATE TABLE t (k BIGINT, at TIMESTAMP); CREATE TABLE q (k BIGINT, at TIMESTAMP, price BIGINT)")
        engine.sql(f"CREATE MATERIALIZED VIEW v AS {QUERIES[number]}")
        for step in range(12):
            moment = (
                f"'2024-01-01 {pick.randrange(24):02}:{pick.randrange(60):02}:00'" if pick.random() < 0.9 else "NULL"
            )
            engine.sql(f"INSERT INTO t VALUES ({pick.randrange(4)}, {moment})")
            engine.sql(
                f"INSERT INTO q VALUES ({pick.randrange(4)}, '2024-01-01 {pick.randrange(24):02}:00:00', {step})"
            )
            if pick.random() < 0.4:
                engine.sql(f"DELETE FROM {pick.choice('tq')} WHERE k = {pick.randrange(4)}")
            assert sorted(map(repr, engine.view("v").rows())) == sorted(map(repr, engine.sql(QUERIES[number]).rows()))
        assert engine.view("v").rows()


def test_a_row_without_a_moment_is_there_once_with_no_window() -> None:
    engine = make_engine(autocommit=True)
    engine.sql("CREATE TABLE seen (k int, ts timestamp)")
    engine.sql("INSERT INTO seen VALUES (1, TIMESTAMP '2024-01-01 00:10:00'), (2, NULL), (3, NULL)")
    for call in (
        "tumble(seen, ts, INTERVAL '1 hour')",
        "hop(seen, ts, INTERVAL '30 minutes', INTERVAL '1 hour')",
        "session(seen, ts, INTERVAL '1 hour')",
        "session(seen, ts, INTERVAL '1 hour', k)",
    ):
        engine.sql(f"CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT k, window_start, window_end FROM {call}")
        assert sorted(row for row in engine.view("v").rows() if row[1] is None) == [(2, None, None), (3, None, None)], (
            call
        )
        engine.sql("UPDATE seen SET ts = TIMESTAMP '2024-01-01 00:20:00' WHERE k = 2")
        assert [row for row in engine.view("v").rows() if row[1] is None] == [(3, None, None)], call
        engine.sql("UPDATE seen SET ts = NULL WHERE k = 2")


def test_sessions_take_rows_of_one_moment_together() -> None:
    engine = make_engine(autocommit=True)
    engine.sql("CREATE TABLE seen (k int, ts timestamp)")
    first, second = "TIMESTAMP '2024-01-01 00:10:00'", "TIMESTAMP '2024-01-01 00:33:00'"
    engine.sql(f"INSERT INTO seen VALUES (9, {first}), (9, {second}), (9, {second}), (8, {second})")
    query = "SELECT window_start, count(*) FROM session(seen, ts, INTERVAL '10 minutes') GROUP BY 1 ORDER BY 1"
    assert [n for _, n in engine.sql(query).rows()] == [1, 3]


@pytest.mark.parametrize(
    "call",
    [
        "tumble(seen, day, INTERVAL '12 hours')",
        "hop(seen, day, INTERVAL '1 day', INTERVAL '12 hours')",
        "session(seen, day, INTERVAL '12 hours')",
    ],
)
def test_both_bounds_of_the_window_of_a_date_are_timestamps(call: str) -> None:
    engine = make_engine(autocommit=True)
    engine.sql("CREATE TABLE seen (day date)")
    engine.sql("INSERT INTO seen VALUES (DATE '2024-01-02')")
    found = engine.sql(f"SELECT window_start, window_end FROM {call}").rows()
    assert found == [(datetime(2024, 1, 2), datetime(2024, 1, 2, 12))]
