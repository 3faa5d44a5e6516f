"""What people type who know PostgreSQL: it works, or the message says what to type."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import tektite as tk


@pytest.fixture
def engine() -> Iterator[tk.Engine]:
    with tk.Engine() as made:
        made.sql("CREATE TABLE t (id int PRIMARY KEY, name varchar, price decimal(10, 2), at timestamp)")
        made.sql("INSERT INTO t VALUES (1, 'a', 1.5, '2024-01-01'), (2, 'b', 2, NULL)")
        yield made


@pytest.mark.parametrize("end", ["END", "end transaction", "END WORK"])
def test_end_is_commit(engine: tk.Engine, end: str) -> None:
    assert engine.sql(f"BEGIN; DELETE FROM t WHERE id = 1; {end}").message == "COMMIT"
    assert engine.sql("SELECT id FROM t").rows() == [(2,)]


def test_abort_is_rollback(engine: tk.Engine) -> None:
    assert engine.sql("BEGIN; DELETE FROM t; ABORT").message == "ROLLBACK"
    assert len(engine.table("t")) == 2
    with pytest.raises(tk.ConflictError, match=r"no transaction is open\nline 1: ABORT\n {8}\^"):
        engine.sql("ABORT")
    with pytest.raises(tk.IncorrectError, match="'t' was not expected"):
        engine.sql("BEGIN; END t")


@pytest.mark.parametrize(
    "clauses",
    [
        "FOR UPDATE",
        "ORDER BY id FOR UPDATE",
        "ORDER BY id LIMIT 1 FOR UPDATE",
        "LIMIT 1 FOR SHARE",
        "FOR UPDATE LIMIT 1",
    ],
)
def test_locks_are_refused_as_such_wherever_they_stand(engine: tk.Engine, clauses: str) -> None:
    with pytest.raises(
        tk.UnsupportedError, match="FOR UPDATE is not supported: a transaction that another one was faster"
    ):
        engine.sql(f"SELECT * FROM t {clauses}")


def test_clauses_behind_a_lock_are_still_in_order(engine: tk.Engine) -> None:
    with pytest.raises(tk.IncorrectError, match="WHERE stands before LIMIT"):
        engine.sql("SELECT * FROM t LIMIT 1 FOR UPDATE WHERE id = 1")


def test_the_version_is_called_version(engine: tk.Engine) -> None:
    assert engine.sql("SELECT version()").to_arrow().column_names == ["version"]


def test_a_function_in_sql_is_refused_by_its_kind(engine: tk.Engine) -> None:
    with pytest.raises(tk.UnsupportedError, match="CREATE FUNCTION is not supported: CREATE VIEW names a query"):
        engine.sql("CREATE FUNCTION f() RETURNS int AS 'SELECT 1' LANGUAGE sql")


def test_a_name_that_is_taken_says_how_to_run_again(engine: tk.Engine) -> None:
    engine.sql("CREATE VIEW v AS SELECT id FROM t; CREATE INDEX i ON t (name)")
    for text in (
        "CREATE TABLE t (id int)",
        "CREATE VIEW v AS SELECT 1 AS a",
        "CREATE MATERIALIZED VIEW v AS SELECT 1 AS a",
    ):
        with pytest.raises(
            tk.ConflictError, match="already; IF NOT EXISTS or OR REPLACE lets a statement be run again"
        ):
            engine.sql(text)
    for text in ("CREATE INDEX i ON t (price)", "CREATE TABLE i (id int)"):
        with pytest.raises(tk.ConflictError, match="there is an index named .i. already") as caught:
            engine.sql(text)
        assert "OR REPLACE" not in str(caught.value)


def test_copy_in_the_old_spelling_says_the_new_one(engine: tk.Engine) -> None:
    with pytest.raises(tk.UnsupportedError, match=r"option CSV is not supported: write \(FORMAT csv, HEADER\)"):
        engine.sql("COPY t FROM 'a.csv' WITH CSV HEADER")


def test_parameters_of_declared_types(engine: tk.Engine) -> None:
    engine.sql(
        "PREPARE p (int, varchar(10), decimal(10, 2)) AS SELECT id FROM t WHERE id >= $1 AND name >= $2 AND price < $3"
    )
    assert engine.sql("EXECUTE p('1', 'a', '1.75')").rows() == [(1,)]
    assert engine.sql("EXECUTE p(1, 'a', 1.75)").rows() == [(1,)]
    assert engine.sql("EXECUTE p(NULL, 'a', 1.75)").rows() == []
    with pytest.raises(tk.IncorrectError, match=r"\$1 of 'p' is int, which this is not\nline 1: EXECUTE p\('x'"):
        engine.sql("EXECUTE p('x', 'a', 1)")
    with pytest.raises(tk.IncorrectError, match="takes 3 values"):
        engine.sql("EXECUTE p(1)")
    assert engine.sql("DEALLOCATE p('1', 'a', '1.75')").message == "DEALLOCATE"


def test_types_may_be_declared_for_the_first_parameters_alone(engine: tk.Engine) -> None:
    engine.sql("PREPARE r (timestamp) AS SELECT id FROM t WHERE at >= $1 AND id < $2")
    assert engine.sql("EXECUTE r('2023-12-31 23:00:00', 5)").rows() == [(1,)]
    assert engine.sql("EXECUTE r(DATE '2024-01-02', 5)").rows() == []


def test_a_write_with_declared_parameters(engine: tk.Engine) -> None:
    engine.sql("PREPARE w (int, text) AS INSERT INTO t (id, name) VALUES ($1, $2)")
    assert engine.sql("EXECUTE w('7', 'seven')").message == "INSERT 0 1"
    assert engine.sql("SELECT id, name FROM t WHERE id = 7").rows() == [(7, "seven")]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("PREPARE s (int, int) AS SELECT id FROM t WHERE id = $1", r"'s' has no parameter \$2, whose type is said"),
        ("PREPARE s (int) AS SELECT id FROM t WHERE id = $name", r"'s' has no parameter \$1, whose type is said"),
        ("PREPARE s (nope) AS SELECT id FROM t WHERE id = $1", "'nope' is not a type"),
        ("PREPARE s (decimal(3, 5)) AS SELECT id FROM t WHERE id = $1", "more places than digits"),
        ("PREPARE s () AS SELECT 1", "expected a type"),
        ("PREPARE s (int", r"expected \) behind the types"),
        ("PREPARE s (int) SELECT 1", "expected AS"),
    ],
)
def test_what_is_wrong_with_declared_types(engine: tk.Engine, text: str, said: str) -> None:
    with pytest.raises(tk.TektiteError, match=said):
        engine.sql(text)
    assert engine.sql("SELECT name FROM pg_prepared_statements").rows() == []


def test_a_column_is_the_one_that_is_written_so_if_others_differ_in_case_only(engine: tk.Engine) -> None:
    engine.sql('CREATE TABLE c (a int, "A" int); INSERT INTO c VALUES (1, 2)')
    assert engine.sql('SELECT a, A, "A", c.a, c."A" FROM c').rows() == [(1, 1, 2, 1, 2)]
    assert engine.sql(
        'SELECT x."A" AS n FROM c x JOIN c y USING (a) WHERE y."A" = 2 GROUP BY x."A" ORDER BY n'
    ).rows() == [(2,)]
    engine.sql('UPDATE c SET "A" = a + 6 WHERE a = 1')
    assert engine.sql("SELECT * FROM c").rows() == [(1, 7)]
    engine.sql('CREATE TABLE d ("Ab" int, "AB" int)')
    with pytest.raises(tk.IncorrectError, match="'ab' is ambiguous"):
        engine.sql("SELECT ab FROM d")
