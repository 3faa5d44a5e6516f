"""A transaction sees its own changes, and nobody else does before COMMIT; ROLLBACK leaves nothing of it.

Random transactions are compared statement by statement with DuckDB, and, for tables whose rows replace each other, with a twin
that keeps them in a dict.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

import tektite as tk
from tests.support.executors import make_engine
from tests.support.sql.oracle import Oracle, difference

pytestmark = pytest.mark.executors

QUERIES = (
    "SELECT * FROM t",
    "SELECT * FROM counted",
    "SELECT * FROM reached",
    "SELECT s.a, s.b, t.b FROM s LEFT JOIN t ON s.a = t.a AND t.b > 1",
    "SELECT a, row_number() OVER (PARTITION BY a ORDER BY b) FROM t WHERE a IN (SELECT a FROM s)",
)
VIEWS = {
    "counted": "SELECT a, count(*) AS n, sum(b) AS total, min(b) AS least FROM t GROUP BY a",
    "reached": "WITH RECURSIVE r AS (SELECT a AS x FROM t UNION SELECT s.b FROM r JOIN s ON s.a = r.x) SELECT x, n FROM r "
    "LEFT JOIN counted ON a = x",
}


def statement(draw: random.Random) -> str:
    table = draw.choice("st")
    other = "s" if table == "t" else "t"
    value = lambda: draw.choice(["NULL", "0", "1", "2", "3"])  # noqa: E731
    condition = draw.choice(
        [f"a = {value()}", f"b > {value()}", "a IS NULL", f"a IN (SELECT b FROM {other})", f"b < (SELECT max(a) FROM {other})",
         f"EXISTS (SELECT 1 FROM counted WHERE counted.a = {table}.b)"]
    )  # fmt: skip
    return draw.choice(
        [f"INSERT INTO {table} VALUES ({value()}, {value()}), ({value()}, {value()}), ({value()}, {value()})",
         f"INSERT INTO {table} SELECT b, a FROM {other} WHERE {condition.replace(f'{table}.b', f'{other}.b')}",
         f"UPDATE {table} SET a = b, b = a WHERE {condition}", f"UPDATE {table} SET b = b + 1 WHERE {condition}",
         f"UPDATE {table} SET b = b - 1 WHERE {condition}", f"DELETE FROM {table} WHERE {condition}"]
    )  # fmt: skip


@pytest.mark.executors(stages=[0, 5])
@pytest.mark.parametrize("seed", range(6))
def test_random_transactions_agree_with_duckdb(seed: int) -> None:
    draw = random.Random(seed)
    oracle = Oracle()
    with make_engine() as engine:
        for made in ("CREATE TABLE t (a INTEGER, b INTEGER)", "CREATE TABLE s (a INTEGER, b INTEGER)"):
            engine.sql(made)
            oracle.execute(made)
        for name, query in VIEWS.items():
            engine.sql(f"CREATE MATERIALIZED VIEW {name} AS {query}")
            oracle.execute(f"CREATE VIEW {name} AS {query}")
        for _ in range(4):
            kept = {name: sorted(engine.view(name).rows(), key=str) for name in VIEWS}
            both(engine, oracle, "BEGIN")
            for _ in range(draw.randrange(1, 6)):
                both(engine, oracle, statement(draw))
                with engine.session():  # somebody else
                    engine.advance()
                for query in QUERIES:
                    assert difference(engine.sql(query).rows(), oracle.rows(query)) is None, query
                assert kept == {name: sorted(engine.view(name).rows(), key=str) for name in VIEWS}
            both(engine, oracle, draw.choice(["COMMIT", "COMMIT", "ROLLBACK"]))
            for name in VIEWS:
                assert difference(engine.view(name).rows(), oracle.rows(f"SELECT * FROM {name}")) is None, name
    oracle.close()


def both(engine: tk.Engine, oracle: Oracle, text: str) -> None:
    engine.sql(text)
    oracle.execute(text)


class Twin:
    """A table whose rows replace each other by key, or, without one, are there once."""

    def __init__(self, upserts: bool) -> None:
        self.upserts = upserts
        self.rows: dict[Any, tuple[int, int]] = {}

    def put(self, *rows: tuple[int, int]) -> None:
        self.rows |= {row[0] if self.upserts else row: row for row in rows}

    def take(self, *rows: tuple[int, int]) -> None:
        for row in rows:
            del self.rows[row[0] if self.upserts else row]

    def with_key(self, key: int) -> list[tuple[int, int]]:
        return [row for row in self.rows.values() if row[0] == key]


@pytest.mark.executors(stages=["1-upsert", "3-set"], spark=["3-set"])
@pytest.mark.parametrize("semantics", ["upsert", "set"])
@pytest.mark.parametrize("seed", range(4))
def test_rows_that_replace_each_other_do_so_within_a_transaction(semantics: str, seed: int) -> None:
    draw = random.Random(seed)
    twin = Twin(semantics == "upsert")
    with make_engine() as engine:
        engine.sql(
            f"CREATE TABLE t (k int, v int, PRIMARY KEY (k{', v' * (semantics == 'set')})) WITH (mode = {semantics})"
        )
        for _ in range(6):
            engine.sql("BEGIN")
            before = dict(twin.rows)
            for _ in range(draw.randrange(1, 8)):
                key, value = draw.randrange(4), draw.randrange(3)
                match draw.randrange(4):
                    case 0:
                        engine.sql("INSERT INTO t VALUES ($k, $v), ($k, $v)", k=key, v=value)
                        twin.put((key, value))
                    case 1:
                        engine.sql("DELETE FROM t WHERE k = $k", k=key)
                        twin.take(*twin.with_key(key))
                    case 2:
                        engine.sql("UPDATE t SET v = v + 1 WHERE k = $k", k=key)
                        old = twin.with_key(key)
                        twin.take(*old)
                        twin.put(*((k, v + 1) for k, v in old))
                    case _:
                        engine.sql(
                            "UPDATE t SET k = 3 - k; UPDATE t SET v = 7 WHERE k = $k; UPDATE t SET k = 3 - k", k=key
                        )
                        old = twin.with_key(3 - key)
                        twin.take(*old)
                        twin.put(*((k, 7) for k, _ in old))
                assert sorted(engine.sql("SELECT * FROM t").rows()) == sorted(twin.rows.values())
            if draw.random() < 0.3:
                engine.sql("ROLLBACK")
                twin.rows = before
            else:
                engine.sql("COMMIT")
            assert sorted(engine.sql("SELECT * FROM t").rows()) == sorted(twin.rows.values())


@pytest.fixture
def shop() -> Iterator[tk.Engine]:
    with make_engine() as engine:
        engine.sql("CREATE TABLE t (k int PRIMARY KEY, v int NOT NULL); INSERT INTO t VALUES (1, 10), (2, 20)")
        yield engine


def contents(engine: tk.Engine) -> list[Any]:
    return sorted(engine.sql("SELECT * FROM t").rows())


@pytest.mark.executors("stages")
@pytest.mark.parametrize(
    "statement", ["UPDATE t SET v = NULL", "INSERT INTO t VALUES (3, 0)", "UPDATE t SET k = 7", "SELECT v + $x FROM t"]
)
def test_a_statement_that_fails_leaves_the_transaction_as_it_was(shop: tk.Engine, statement: str) -> None:
    shop.sql("BEGIN; INSERT INTO t VALUES (3, 30); DELETE FROM t WHERE k = 1")
    with pytest.raises(tk.TektiteError):
        shop.sql(statement, x=2**63 - 1)
    assert contents(shop) == [(2, 20), (3, 30)]
    shop.sql("COMMIT")
    assert contents(shop) == [(2, 20), (3, 30)]


def test_a_text_that_fails_leaves_no_transaction_open_that_it_began(shop: tk.Engine) -> None:
    with pytest.raises(tk.ConflictError):
        shop.sql("BEGIN; DELETE FROM t WHERE k = 1; INSERT INTO t VALUES (2, 0); COMMIT")
    assert contents(shop) == [(1, 10), (2, 20)]
    with pytest.raises(tk.ConflictError, match="no transaction is open"):
        shop.sql("COMMIT")


@pytest.mark.executors("stages")
def test_others_close_epochs_without_a_transaction_s_changes_and_it_does_not_see_theirs(shop: tk.Engine) -> None:
    table = shop.table("t")
    shop.sql("BEGIN; UPDATE t SET v = v + 1")
    with shop.session():
        table.insert([(5, 50)])
        shop.advance()
    assert contents(shop) == [(1, 11), (2, 21)]
    assert sorted(shop.install("all", table).rows()) == [(1, 10), (2, 20), (5, 50)]
    shop.sql("ROLLBACK")
    assert contents(shop) == [(1, 10), (2, 20), (5, 50)]


def test_rollback_and_failure_leave_what_a_program_writes_alone(shop: tk.Engine) -> None:
    shop.table("t").insert([(5, 50)])
    shop.sql("BEGIN; DELETE FROM t; ROLLBACK")
    with pytest.raises(tk.ConflictError):
        shop.sql("INSERT INTO t VALUES (1, 0)")
    shop.advance()
    assert contents(shop) == [(1, 10), (2, 20), (5, 50)]


@pytest.mark.executors("stages")
def test_a_commit_that_no_longer_fits_changes_nothing(shop: tk.Engine) -> None:
    shop.sql("CREATE TABLE log (x int); BEGIN; INSERT INTO log VALUES (1); DELETE FROM t WHERE k = 1")
    with shop.session():
        shop.table("t").remove([(1, 10)])
        shop.advance()
    with pytest.raises(tk.TransactionConflict, match="1 of the rows that this transaction removes"):
        shop.sql("COMMIT")
    assert shop.sql("SELECT * FROM log").rows() == []
    shop.sql("INSERT INTO log VALUES (2)")
    assert contents(shop) == [(2, 20)]


@pytest.mark.executors("stages")
def test_prepared_statements_see_the_transaction_and_take_new_values_in_it(shop: tk.Engine) -> None:
    shop.sql("PREPARE above AS SELECT k FROM t WHERE v > $1 ORDER BY k")
    assert shop.sql("EXECUTE above(15)").rows() == [(2,)]
    shop.sql("BEGIN; INSERT INTO t VALUES (3, 30)")
    assert shop.sql("EXECUTE above(15)").rows() == [(2,), (3,)]
    assert shop.sql("EXECUTE above(25)").rows() == [(3,)]
    shop.sql("ROLLBACK")
    assert shop.sql("EXECUTE above(25)").rows() == []


def test_only_appended_rows_are_not_changed_in_a_transaction_either() -> None:
    with make_engine() as engine:
        engine.sql("CREATE TABLE t (k int) WITH (mode = append); BEGIN; INSERT INTO t VALUES (1)")
        with pytest.raises(tk.ConflictError, match="append-only"):
            engine.sql("DELETE FROM t")
        engine.sql("INSERT INTO t SELECT k + 1 FROM t; COMMIT")
        assert contents(engine) == [(1,), (2,)]


def test_a_table_that_a_transaction_has_changed_is_not_dropped_in_it(shop: tk.Engine) -> None:
    shop.sql("BEGIN; DELETE FROM t")
    with pytest.raises(tk.ConflictError, match=r"the open transaction has changed it.*\n.*\n +\^"):
        shop.sql("DROP TABLE t")
    shop.sql("COMMIT; DROP TABLE t")


@pytest.mark.executors("stages")
def test_watchers_of_a_view_hear_nothing_of_what_a_transaction_looks_at(shop: tk.Engine) -> None:
    heard: list[Any] = []
    shop.install("seen", shop.table("t").inspect(lambda changes: heard.extend(changes.to_pylist())))
    heard.clear()
    shop.sql("BEGIN; DELETE FROM t WHERE k = 1")
    assert shop.sql("SELECT * FROM seen").rows() == [(2, 20)]
    assert heard == []
    shop.sql("COMMIT")
    assert [(change["k"], change["diff"]) for change in heard] == [(1, -1)]


@pytest.mark.executors("stages")
def test_the_first_epoch_may_be_a_transaction_s() -> None:
    with make_engine() as engine:
        engine.sql("CREATE TABLE t (k int); BEGIN; INSERT INTO t VALUES (1); UPDATE t SET k = 2")
        assert contents(engine) == [(2,)]
        engine.sql("COMMIT")
        assert contents(engine) == [(2,)]


def test_a_read_only_transaction_refuses_whatever_writes() -> None:
    engine = make_engine(autocommit=True)
    table = engine.create_table("t", {"a": int})
    table.insert([(1,)])
    for begin in (
        "BEGIN READ ONLY",
        "START TRANSACTION ISOLATION LEVEL READ COMMITTED, READ ONLY",
        "BEGIN; SET TRANSACTION READ ONLY",
    ):
        engine.sql(begin)
        assert engine.sql("SHOW transaction_read_only").rows() == [("on",)]
        assert engine.sql("SELECT a FROM t").rows() == [(1,)]
        for wrong in (
            "INSERT INTO t VALUES (2)",
            "DELETE FROM t",
            "CREATE TABLE u (a int)",
            "DROP TABLE t",
            "CREATE ROLE ann",
        ):
            with pytest.raises(tk.ConflictError, match=f"{wrong.split()[0]} cannot be part of a read-only transaction"):
                engine.sql(wrong)
        for change in (
            lambda: table.insert([(2,)]),
            lambda: engine.create_table("u", {"a": [2]}),
            lambda: engine.create_table("t", {"a": int}, if_exists="replace"),
            lambda: engine.create_view("v", table),
            lambda: engine.drop_table("t"),
        ):
            with pytest.raises(tk.ConflictError, match="cannot be part of a read-only transaction"):
                change()
        assert table.filter(tk.col("a") > 0).collect().to_pylist() == [{"a": 1}]
        engine.sql("COMMIT")
        assert engine.sql("SHOW transaction_read_only").rows() == [("off",)]
    assert (engine.sql("SELECT a FROM t").rows(), engine.tables) == ([(1,)], ("t",))


def test_the_level_of_a_transaction_is_the_one_that_is_asked_for_or_a_stronger_one() -> None:
    engine = make_engine(autocommit=True)
    engine.sql("CREATE TABLE on_call (name varchar PRIMARY KEY)")

    def skewed(begin: str) -> list[tuple[Any, ...]]:
        """Two transactions that see both names and remove one each; who is left."""
        engine.sql("DELETE FROM on_call; INSERT INTO on_call VALUES ('ann'), ('bob')")
        one, other = engine.session(), engine.session()
        for session, name in ((one, "ann"), (other, "bob")):
            session.sql(begin)
            session.sql("SELECT count(*) FROM on_call")
            session.sql(f"DELETE FROM on_call WHERE name = '{name}'")
        one.sql("COMMIT")
        other.sql("COMMIT")
        return engine.sql("SELECT * FROM on_call").rows()

    for weaker in (
        "BEGIN",
        "BEGIN ISOLATION LEVEL READ UNCOMMITTED",
        "START TRANSACTION ISOLATION LEVEL REPEATABLE READ",
    ):
        assert skewed(weaker) == []
    for strict in (
        "BEGIN TRANSACTION ISOLATION LEVEL SERIALIZABLE READ WRITE NOT DEFERRABLE",
        "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE; BEGIN",
        "SET default_transaction_isolation = 'serializable'; BEGIN ISOLATION LEVEL READ COMMITTED",
    ):
        with pytest.raises(tk.TransactionConflict):
            skewed(strict)
    engine.sql("BEGIN ISOLATION LEVEL SERIALIZABLE")
    assert engine.sql("SHOW transaction_isolation").rows() == [("serializable",)]
    engine.sql("ROLLBACK")
    assert engine.sql("SHOW transaction_isolation").rows() == [("repeatable read",)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("BEGIN READ", "expected a mode of transactions, found 'READ'"),
        ("START", "expected TRANSACTION"),
        ("BEGIN ISOLATION LEVEL CHAOS", "ISOLATION LEVEL SERIALIZABLE, "),
        ("BEGIN READ ONLY READ WRITE", "READ WRITE contradicts"),
        ("SET TRANSACTION", "expected ISOLATION LEVEL"),
        ("SET TRANSACTION READ ONLY", "BEGIN it first"),
        ("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY", "BEGIN READ ONLY"),
        ("BEGIN; SET TRANSACTION ISOLATION LEVEL SERIALIZABLE", "BEGIN ISOLATION LEVEL SERIALIZABLE"),
        ("BEGIN READ ONLY; SELECT 1; SET TRANSACTION READ WRITE", "before its first query"),
    ],
)  # fmt: skip
def test_modes_that_cannot_be_had_are_refused(text: str, message: str) -> None:
    with pytest.raises(tk.TektiteError, match=message):
        make_engine(autocommit=True).sql(text)


def test_a_savepoint_of_the_same_name_hides_the_older_one_until_it_is_released() -> None:
    engine = make_engine(autocommit=True)
    engine.sql(
        "CREATE TABLE t (a int); BEGIN; SAVEPOINT s; INSERT INTO t VALUES (1); SAVEPOINT s; INSERT INTO t VALUES (2)"
    )
    engine.sql("ROLLBACK TO s")
    assert engine.sql("SELECT a FROM t").rows() == [(1,)]
    engine.sql("RELEASE s; ROLLBACK TO s")
    assert engine.sql("SELECT a FROM t").rows() == []
    with pytest.raises(tk.NotFoundError, match="there is no savepoint"):
        engine.sql("RELEASE s; RELEASE s")


def test_a_read_only_transaction_may_write_if_that_is_said_before_its_first_query() -> None:
    engine = make_engine(autocommit=True)
    engine.sql("CREATE TABLE t (a INT)")
    engine.sql(
        "BEGIN READ ONLY; SHOW transaction_read_only; SET TRANSACTION READ WRITE; INSERT INTO t VALUES (1); COMMIT"
    )
    engine.sql("BEGIN; SELECT 1; SET TRANSACTION READ WRITE; INSERT INTO t VALUES (2); SET TRANSACTION READ ONLY")
    with pytest.raises(tk.ConflictError, match="read-only"):
        engine.sql("INSERT INTO t VALUES (3)")
    engine.sql("COMMIT")
    assert sorted(engine.table("t").rows()) == [(1,), (2,)]
