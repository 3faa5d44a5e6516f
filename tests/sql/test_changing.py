"""Statements that change tables by what others hold, compared with DuckDB: answers, tables and views after every one."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

import tektite as tk
from tests.support.executors import make_engine
from tests.support.nightly import by_day_or_night
from tests.support.sql.oracle import Oracle, difference

pytestmark = pytest.mark.executors

TABLES = ("CREATE TABLE t (k INTEGER PRIMARY KEY, v INTEGER, s VARCHAR)", "CREATE TABLE u (a INTEGER, b INTEGER)")
VIEWS = {
    "joined": "SELECT t.k, t.v, u.b FROM t LEFT JOIN u ON t.k = u.a",
    "counted": "SELECT a, count(*) AS n, sum(b) AS total FROM u GROUP BY a",
    "ranked": "SELECT a, b, rank() OVER (PARTITION BY a ORDER BY b) AS r FROM u WHERE a IN (SELECT v FROM t)",
}


def value(draw: random.Random) -> str:
    return draw.choice(["NULL", "0", "1", "2", "3"])


def statement(draw: random.Random) -> str:
    """A statement whose outcome does not depend on chance."""
    keys = draw.sample(range(6), draw.randrange(1, 4))
    rows = ", ".join(f"({key}, {value(draw)}, 's{draw.randrange(3)}')" for key in keys)
    # one row for each key, so that a row is not matched by two that differ
    one = "(SELECT a, max(b) AS b, count(*) AS n FROM u GROUP BY a) AS y"
    condition = draw.choice(["", f" AND y.b > {value(draw)}", " AND y.n > 1", " AND s IS NOT NULL"])
    update = draw.choice(
        ["v = excluded.v", "v = coalesce(t.v, 0) + excluded.v, s = excluded.s", "s = t.s || excluded.s"]
    )
    where = draw.choice(["", " WHERE t.v < excluded.v", " WHERE excluded.v IS NULL", f" WHERE t.v > {value(draw)}"])
    returning = draw.choice(["", " RETURNING *", " RETURNING v + 1, s"])
    return draw.choice(
        [f"INSERT INTO t VALUES {rows} ON CONFLICT DO NOTHING{returning}",
         f"INSERT INTO t VALUES {rows} ON CONFLICT (k) DO UPDATE SET {update}{where}",
         f"INSERT INTO t SELECT a, max(b), 'q' FROM u WHERE a IS NOT NULL GROUP BY a ON CONFLICT (k) DO UPDATE SET {update}",
         f"INSERT OR REPLACE INTO t VALUES {rows}", f"INSERT OR IGNORE INTO t VALUES {rows}{returning}",
         f"UPDATE t SET v = y.b FROM {one} WHERE t.k = y.a{condition}{returning}",
         f"UPDATE u SET b = t.v, a = a + 1 FROM t WHERE t.k = u.a{draw.choice([' RETURNING a, b', ''])}",
         f"UPDATE u SET b = u.b + y.k FROM t AS y, u AS z WHERE y.k = u.a AND z.a = y.v{draw.choice([' RETURNING *', ''])}",
         f"DELETE FROM u USING t WHERE t.v = u.a AND t.k > {value(draw)}{draw.choice([' RETURNING *', ''])}",
         f"INSERT INTO u VALUES ({value(draw)}, {value(draw)}), ({value(draw)}, {value(draw)}) RETURNING a * 2",
         f"INSERT INTO u SELECT k, v FROM t WHERE v >= {value(draw)}",
         f"DELETE FROM t WHERE v = {value(draw)}{returning}"]
    )  # fmt: skip


@pytest.mark.executors(stages=[0, 3])
@pytest.mark.parametrize("seed", range(8))
def test_random_changes_agree_with_duckdb(seed: int) -> None:
    draw = random.Random(seed)
    oracle = Oracle()
    with make_engine() as engine:
        for table in TABLES:
            engine.sql(table)
            oracle.execute(table)
        for name, query in VIEWS.items():
            engine.sql(f"CREATE MATERIALIZED VIEW {name} AS {query}")
        within = False
        for step in range(by_day_or_night(18, 30)):
            if step % 7 == 3:
                engine.sql("COMMIT" if within else "BEGIN")
                within = not within
            text = statement(draw)
            theirs = oracle.rows(text)
            ours = engine.sql(text)
            if "RETURNING" in text:
                assert difference(ours.rows(), theirs) is None, text
            for query in ("SELECT * FROM t", "SELECT * FROM u", *VIEWS.values()):
                assert difference(engine.sql(query).rows(), oracle.rows(query)) is None, (text, query)
            for name, query in VIEWS.items():
                if not within:
                    assert difference(engine.view(name).rows(), oracle.rows(query)) is None, (text, name)
    oracle.close()


@pytest.fixture
def shop() -> Iterator[tk.Engine]:
    with make_engine() as engine:
        engine.sql("CREATE TABLE t (k int PRIMARY KEY, v int); INSERT INTO t VALUES (1, 10), (2, 20)")
        yield engine


@pytest.mark.executors("stages")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("INSERT INTO t VALUES (3, 1), (3, 2) ON CONFLICT DO NOTHING", (3, 1)),
        ("INSERT OR IGNORE INTO t VALUES (3, 2), (3, 1)", (3, 2)),
        ("INSERT OR REPLACE INTO t VALUES (3, 2), (3, 1)", (3, 1)),
    ],
)
def test_rows_of_one_key_follow_each_other_as_they_are_written(
    shop: tk.Engine, text: str, expected: tuple[int, int]
) -> None:
    shop.sql(text)
    assert shop.sql("SELECT * FROM t WHERE k = 3").rows() == [expected]


@pytest.mark.executors("stages", "spark")
def test_the_last_of_several_rows_of_an_upsert_stays() -> None:
    with make_engine() as engine:
        engine.sql("CREATE TABLE t (k int PRIMARY KEY, v varchar) WITH (mode = upsert)")
        engine.sql("INSERT INTO t VALUES (1, 'z'), (1, 'a'), (1, 'm')")
        assert engine.sql("SELECT v FROM t").rows() == [("m",)]
        engine.sql("INSERT INTO t VALUES (1, 'n'), (2, 'o') ON CONFLICT DO NOTHING")
        assert sorted(engine.sql("SELECT v FROM t").rows()) == [("m",), ("o",)]


@pytest.mark.executors(stages=["INSERT INTO t VALUES (NULL, 1) ON CONFLICT DO NOTHING-cannot be NULL"])
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("INSERT INTO t VALUES (1, 1), (1, 2) ON CONFLICT (k) DO UPDATE SET v = 0", "would change a row twice"),
        ("INSERT INTO t VALUES (1, 1) ON CONFLICT (v) DO NOTHING", "the key of table 't' is (k)"),
        ("INSERT INTO t VALUES (1, 1) ON CONFLICT (k) DO UPDATE SET w = 1", "has no column 'w'"),
        ("INSERT INTO t VALUES (1, 1) ON CONFLICT (k) DO UPDATE SET v = excluded.w", "no column 'w' in 'excluded'"),
        ("INSERT INTO t VALUES (1, 1) ON CONFLICT (k) DO UPDATE SET k = 2", "two rows with the key"),
        ("INSERT INTO t VALUES (1, 1) ON CONFLICT (k) DO UPDATE SET v = v + 9223372036854775807", "overflow"),
        ("INSERT INTO t VALUES (3, 1) RETURNING v + 9223372036854775807", "overflow"),
        ("INSERT INTO t VALUES (NULL, 1) ON CONFLICT DO NOTHING", "cannot be NULL"),
    ],
)
def test_a_change_that_fails_leaves_nothing(shop: tk.Engine, text: str, message: str) -> None:
    with pytest.raises(tk.TektiteError) as caught:
        shop.sql(text)
    assert message in str(caught.value) and str(caught.value).endswith("^")
    assert sorted(shop.sql("SELECT * FROM t").rows()) == [(1, 10), (2, 20)]


@pytest.mark.executors("stages")
def test_cascade_drops_the_views_of_programs_and_prepared_statements_too(shop: tk.Engine) -> None:
    shop.install("kept", shop.table("t").filter(tk.col("v") > 10))
    shop.sql("CREATE MATERIALIZED VIEW more AS SELECT * FROM kept; PREPARE more AS SELECT * FROM more WHERE k = $1")
    shop.sql("EXECUTE more(1)")
    shop.sql("CREATE TABLE other (x int); CREATE MATERIALIZED VIEW stays AS SELECT * FROM other")
    message = shop.sql("DROP TABLE t CASCADE").message
    assert message == "DROP TABLE, and what read it: more, more, kept"
    assert shop.views == ("stays",) and "t" not in shop.tables
    shop.sql("CREATE TABLE t (k varchar)")


@pytest.mark.executors("stages")
def test_indexes_go_with_their_table(shop: tk.Engine) -> None:
    shop.sql("CREATE INDEX by_v ON t (v); CREATE MATERIALIZED VIEW sums AS SELECT v, count(*) AS n FROM t GROUP BY v")
    shop.sql("CREATE INDEX by_n ON sums (n)")
    with pytest.raises(tk.ConflictError, match="cannot drop table 't': 'sums' reads it"):
        shop.sql("DROP TABLE t")
    shop.sql("DROP MATERIALIZED VIEW sums")
    shop.install("kept", shop.table("t").filter(tk.col("v") > 10))
    for change in ("DROP TABLE t", "CREATE OR REPLACE TABLE t (k int)"):
        with pytest.raises(tk.ConflictError, match="'kept' reads it"):
            shop.sql(change)
    assert [row[0] for row in shop.sql("SHOW INDEXES").rows()] == ["by_v"]
    shop.drop("kept")
    shop.sql("CREATE OR REPLACE TABLE t (k int); CREATE INDEX by_k ON t (k); DROP TABLE t")
    assert shop.sql("SHOW INDEXES").rows() == []
