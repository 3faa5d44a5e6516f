"""INSERT of given rows and SELECT by key answer through `engine.sql` as the planned statements do, without being planned."""

from __future__ import annotations

import datetime
import random
from collections.abc import Callable
from typing import Any

import pytest

import tektite as tk
from tektite.sql import runner
from tektite.sql.statements import direct_texts
from tests.support.executors import make_engine

pytestmark = pytest.mark.executors

TABLES = """
    CREATE TABLE t (a int PRIMARY KEY, b text);
    CREATE TABLE bag (a int, b text DEFAULT 'none', c int NOT NULL);
    CREATE TABLE days (day date, n double precision);
    CREATE MATERIALIZED VIEW sums AS SELECT b, count(*) AS n, sum(a) AS total FROM t GROUP BY b;
"""


def planned(engine: tk.Engine, text: str, parameters: dict[str, Any]) -> Any:
    """What a statement gives when nothing is direct."""
    sql = runner(engine)
    kept, sql._direct.run = sql._direct.run, lambda text, parameters: None
    try:
        return sql.run(text, parameters)
    finally:
        sql._direct.run = kept


def outcome(call: Callable[[], Any]) -> Any:
    """A result with the types and the metadata of its columns, or the error."""
    try:
        found = call()
    except tk.TektiteError as error:
        return type(error).__name__, str(error)
    table = found.table
    return found.message, None if table is None else (
        table.schema.to_string(show_field_metadata=True),
        sorted(map(str, found.rows())),
    )


def contents(engine: tk.Engine) -> Any:
    return [
        sorted(map(str, planned(engine, f"SELECT * FROM {name}", {}).rows())) for name in ("t", "bag", "days", "sums")
    ]


FLOATS = [0.5, -0.0, float("nan")]
NUMBERS = ["9223372036854775807", "9223372036854775808", "1.5", "-1", "- 1", "--1"]
STATEMENTS = [
    ("INSERT INTO t VALUES ($1, $2)", lambda r: [r.randrange(40), f"x{r.randrange(5)}"]),
    ("INSERT INTO t (b, a) VALUES ($1, $2), ($3, $4)", lambda r: ["y", r.randrange(40), "z", r.randrange(40)]),
    ("INSERT INTO t VALUES ($1, $2)", lambda r: [r.choice([None, "no number", 2**63, 1.5, True]), "x"]),
    ("INSERT INTO t VALUES ($1, $2)", lambda r: [r.randrange(100, 200), None]),
    ("INSERT INTO t VALUES ($1)", lambda r: [1]),
    ("INSERT INTO t VALUES ($1, $2)", lambda r: [1]),
    ("INSERT INTO nowhere VALUES ($1, $2)", lambda r: [1, "x"]),
    ("INSERT INTO bag (a, c) VALUES ($1, $2)", lambda r: [r.randrange(5), r.randrange(5)]),
    ("INSERT INTO bag (c) VALUES ($1)", lambda r: [r.randrange(5)]),
    ("INSERT INTO bag (a, a) VALUES ($1, $2)", lambda r: [1, 2]),
    ("INSERT INTO bag (a, b) VALUES ($1, $2)", lambda r: [1, "x"]),
    ("INSERT INTO days VALUES ($1, $2)", lambda r: [datetime.date(2024, 1, 1 + r.randrange(5)), r.choice(FLOATS)]),
    ("INSERT INTO days VALUES ($1, $2)", lambda r: ["2024-01-01", 1]),
    ("SELECT * FROM t WHERE a = $1", lambda r: [r.randrange(40)]),
    ("SELECT b AS x FROM t WHERE a = $1", lambda r: [r.choice([None, 3, "3", 2**70, True, 3.0])]),
    ("SELECT total, n FROM sums WHERE b = $1", lambda r: [f"x{r.randrange(7)}"]),
    ("SELECT n, n FROM sums WHERE b = $1", lambda r: ["x1"]),
    ("SELECT n FROM sums WHERE b = $1 AND n = $2", lambda r: ["x1", r.randrange(4)]),
    ("SELECT * FROM bag WHERE a = $1", lambda r: [r.randrange(5)]),
    ("SELECT nothing FROM t WHERE a = $1", lambda r: [1]),
]  # fmt: skip
WRITTEN = [
    lambda r: f"INSERT INTO t VALUES ({r.randrange(40)}, 'x{r.randrange(5)}')",
    lambda r: f"insert into T (b, A) values ('it''s', {r.randrange(40)}) ;",
    lambda r: f"INSERT INTO bag VALUES (1, '', {r.randrange(3)}), (-2, 'a,b)', 7), ({r.randrange(9)}, '(', 0)",
    lambda r: "INSERT INTO bag VALUES (1, 'x', 2), (1, 'x')",
    lambda r: "INSERT INTO bag VALUES (1, 'x', 2), ('1', 'x', 2)",
    lambda r: "INSERT INTO bag VALUES (1, 'x', 2),",
    lambda r: "INSERT INTO bag VALUES (1, 'x', 2) (3, 'y', 4)",
    lambda r: "INSERT INTO bag VALUES (1, 'x', 2); INSERT INTO bag VALUES (1, 'x', 3)",
    lambda r: r"INSERT INTO bag VALUES (1, 'back\slash', 2)",
    lambda r: "INSERT INTO bag VALUES (1, 'x', NULL)",
    lambda r: "INSERT INTO bag VALUES (1, NULL, 3), (2, 'x', 1 + 1)",
    lambda r: f"INSERT INTO bag (c) VALUES ({r.choice(NUMBERS)})",
    lambda r: "INSERT INTO days VALUES ('2024-02-01', 3)",
    lambda r: "INSERT INTO t VALUES (1, 'x') ON CONFLICT DO NOTHING",
    lambda r: "INSERT INTO t VALUES (1, 'x') RETURNING a",
    lambda r: "INSERT INTO t SELECT 77, 'q'",
    lambda r: "INSERT INTO bag VALUES /* here */ (1, 'x', 2)",
]  # fmt: skip
CHANGES = [
    "DELETE FROM t WHERE a % 3 = 0",
    "ALTER TABLE bag ALTER COLUMN b SET DEFAULT 'other'",
    "ALTER TABLE bag ALTER COLUMN b DROP DEFAULT",
    "DROP MATERIALIZED VIEW sums; CREATE MATERIALIZED VIEW sums AS SELECT b, count(*) AS n, 0 AS total FROM t GROUP BY b",
    "BEGIN",
    "COMMIT",
    "ROLLBACK",
]


@pytest.mark.parametrize("seed", range(6))
def test_direct_statements_answer_as_planned_ones_do(seed: int) -> None:
    draw = random.Random(seed)
    one, other = make_engine(), make_engine()
    for engine in (one, other):
        planned(engine, TABLES, {})
    for _ in range(60):
        kind = draw.random()
        values: list[Any] = []
        if kind < 0.55:
            text, make = draw.choice(STATEMENTS)
            values = make(draw)
        elif kind < 0.9:
            text = draw.choice(WRITTEN)(draw)
        else:
            text = draw.choice(CHANGES)
        named = {str(at + 1): value for at, value in enumerate(values)}
        found = outcome(lambda: one.sql(text, values))  # noqa: B023
        expected = outcome(lambda: planned(other, text, named))  # noqa: B023
        assert found == expected, (text, values)
    for engine in (one, other):
        outcome(lambda: engine.sql("ROLLBACK"))  # noqa: B023
    assert contents(one) == contents(other)


def test_direct_statements_are_not_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = make_engine()
    engine.sql(TABLES)
    again = [
        ("INSERT INTO t VALUES ($1, $2)", [7, "x"], [8, "x"]),
        ("INSERT INTO t VALUES (1, 'x')", [], []),
        ("SELECT n FROM sums WHERE b = $1", ["x"], ["x"]),
    ]
    for text, values, _ in again:
        engine.sql(text, values)
    monkeypatch.setattr(direct_texts.parser, "parse", None)
    assert engine.sql(again[0][0], again[0][2]).message == "INSERT 0 1"
    assert engine.sql("INSERT INTO t VALUES (2, 'y')").message == "INSERT 0 1"
    assert engine.sql(again[2][0], again[2][2]).rows() == [(3,)]


def test_name_that_comes_to_mean_another_table_is_noticed() -> None:
    engine = make_engine()
    engine.sql("CREATE TABLE t (a int, b text); CREATE SCHEMA s; CREATE TABLE s.t (a int, b text)")
    for _ in range(2):
        engine.sql("INSERT INTO t VALUES ($1, $2)", [1, "public"])
    engine.sql("SET search_path TO s, public")
    engine.sql("INSERT INTO t VALUES ($1, $2)", [1, "s"])
    engine.sql("INSERT INTO t VALUES (2, 's')")
    engine.sql("SET search_path TO public")
    assert engine.sql("SELECT b, count(*) FROM t GROUP BY b").rows() == [("public", 2)]
    assert engine.sql("SELECT b, count(*) FROM s.t GROUP BY b").rows() == [("s", 2)]


@pytest.mark.executors("stages")
def test_table_that_was_made_anew_is_the_one_written_to() -> None:
    engine = make_engine()
    for default in ("one", "two"):
        engine.sql(f"CREATE TABLE t (a int, b text DEFAULT '{default}')")
        engine.sql("INSERT INTO t (a) VALUES ($1)", [1])
        engine.sql("INSERT INTO t (a) VALUES (1)")
        assert engine.sql("SELECT * FROM t").rows() == [(1, default)] * 2
        engine.sql("DROP TABLE t")
    with pytest.raises(tk.NotFoundError, match="there is no table 't'"):
        engine.sql("INSERT INTO t (a) VALUES ($1)", [1])
