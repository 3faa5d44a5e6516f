"""ALTER TABLE: the table is as if it had been created so, also after a restart; and who reads it is never surprised."""

from __future__ import annotations

from pathlib import Path

import pytest

import tektite as tk
from tests.support.executors import make_engine

pytestmark = pytest.mark.executors

TABLE = """
    CREATE TABLE t (
        id INT PRIMARY KEY, mail VARCHAR UNIQUE, age INT DEFAULT 7 CHECK (age >= 0), CONSTRAINT pair UNIQUE (id, age));
    INSERT INTO t VALUES (1, 'a', 30), (2, NULL, NULL), (3, 'c', 5)
"""
CASES = {
    "add": ("ALTER TABLE t ADD COLUMN x INT", [(1, "a", 30, None), (2, None, None, None), (3, "c", 5, None)]),
    "add default": ("ALTER TABLE t ADD x DECIMAL(5, 2) DEFAULT 1.5 NOT NULL", None),
    "add text": ("ALTER TABLE t ADD COLUMN x VARCHAR DEFAULT 'it''s'", None),
    "add several": ("ALTER TABLE t ADD COLUMN x INT, ADD COLUMN y DATE DEFAULT '2024-01-01'", None),
    "drop": ("ALTER TABLE t DROP COLUMN mail CASCADE", [(1, 30), (2, None), (3, 5)]),
    "rename column": ("ALTER TABLE t RENAME COLUMN age TO years", [(1, "a", 30), (2, None, None), (3, "c", 5)]),
    "rename key": ("ALTER TABLE t RENAME id TO number", [(1, "a", 30), (2, None, None), (3, "c", 5)]),
    "type": ("ALTER TABLE t DROP CONSTRAINT t_mail_key; ALTER TABLE t ALTER COLUMN mail TYPE INT USING length(mail)",
             [(1, 1, 30), (2, None, None), (3, 1, 5)]),
    "check": ("ALTER TABLE t ADD CONSTRAINT old CHECK (age < 100)", None),
    "required": ("DELETE FROM t WHERE id = 2; ALTER TABLE t ALTER mail SET NOT NULL", [(1, "a", 30), (3, "c", 5)]),
    "default": ("ALTER TABLE t ALTER age SET DEFAULT 9", None),
}  # fmt: skip


def contents(engine: tk.Engine, name: str = "t") -> tuple[list[str], list[tuple[object, ...]]]:
    found = engine.sql(f"SELECT * FROM {name} ORDER BY 1")
    return found.to_arrow().column_names, found.rows()


@pytest.mark.parametrize("case", CASES)
def test_a_table_is_as_altered_and_stays_so_after_a_restart(case: str, tmp_path: Path) -> None:
    statements, expected = CASES[case]
    with make_engine(storage=tmp_path) as engine:
        engine.sql(TABLE)
        engine.sql(statements)
        names, rows = contents(engine)
        assert expected is None or rows == expected
        described = engine.sql("SELECT * FROM information_schema.columns WHERE table_name = 't'").rows()
        view = engine.sql("CREATE MATERIALIZED VIEW v AS SELECT * FROM t").view
        engine.sql(
            f"INSERT INTO t ({names[0]}) VALUES (50)" if case != "required" else "INSERT INTO t VALUES (50, 'z', 7)"
        )
        after = contents(engine)
        assert view is not None and sorted(view.rows(), key=repr) == sorted(after[1], key=repr)
        with pytest.raises(tk.ConflictError, match="two rows with the key"):
            engine.sql(f"INSERT INTO t ({names[0]}{', mail' if case == 'required' else ''}) "
                       f"VALUES (1{', 1' if case == 'required' else ''})")  # fmt: skip
    with make_engine(storage=tmp_path) as engine:
        assert contents(engine) == after
        assert engine.sql("SELECT * FROM information_schema.columns WHERE table_name = 't'").rows() == described
        if case not in ("drop", "type"):
            with pytest.raises(tk.ConflictError, match="UNIQUE"):
                engine.sql(f"INSERT INTO t ({names[0]}, mail) VALUES (60, 'a')")
        with pytest.raises(tk.ConflictError, match="CHECK"):
            engine.sql(f"UPDATE t SET {'years' if case == 'rename column' else 'age'} = -1 WHERE {names[0]} = 1")
        if case == "default":
            assert (50, None, 9) in after[1]


@pytest.mark.executors("stages")
def test_a_renamed_table_keeps_its_rows_and_gives_up_its_name(tmp_path: Path) -> None:
    with make_engine(storage=tmp_path) as engine:
        engine.sql(TABLE)
        before = contents(engine)
        engine.sql("ALTER TABLE t RENAME TO people; CREATE TABLE t (x INT); INSERT INTO t VALUES (8)")
        assert contents(engine, "people") == before
    with make_engine(storage=tmp_path) as engine:
        assert contents(engine, "people") == before and contents(engine)[1] == [(8,)]
        engine.sql("INSERT INTO people VALUES (9, 'z', 1)")
        with pytest.raises(tk.ConflictError, match="two rows with mail = 'a'"):
            engine.sql("INSERT INTO people VALUES (10, 'a', 1)")


@pytest.mark.parametrize(
    ("reader", "name"),
    [
        ("CREATE MATERIALIZED VIEW v AS SELECT id FROM t", "v"),
        ("CREATE VIEW w AS SELECT id FROM t", "w"),
        ("CREATE INDEX i ON t (age)", "i"),
        ("PREPARE p AS SELECT id FROM t WHERE age = $1; EXECUTE p(1)", "p"),
    ],
)
def test_columns_and_names_stay_while_somebody_reads_the_table(reader: str, name: str) -> None:
    with make_engine() as engine:
        engine.sql(TABLE)
        engine.sql(reader)
        for action in (
            "ADD COLUMN x INT",
            "DROP COLUMN age CASCADE",
            "RENAME COLUMN age TO x",
            "RENAME TO u",
            "ALTER age TYPE VARCHAR",
        ):
            with pytest.raises(tk.ConflictError, match=f"'{name}' reads it. Drop what reads it|DROP CONSTRAINT first"):
                engine.sql(f"ALTER TABLE t {action}")
        engine.sql(
            "ALTER TABLE t ADD CHECK (id < 1000); ALTER TABLE t ALTER age SET DEFAULT 1; ALTER TABLE t DROP CONSTRAINT pair"
        )
        with pytest.raises(tk.ConflictError, match="CHECK"):
            engine.sql("INSERT INTO t VALUES (1000, 'x', 1)")


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("ALTER TABLE t ADD CONSTRAINT c CHECK (age > 10)", "a row with age = 5 breaks CHECK"),
        ("ALTER TABLE t ADD UNIQUE (zz)", "there is no column 'zz'"),
        ("ALTER TABLE t ALTER mail SET NOT NULL", "'mail' of table 't' cannot be NULL"),
        ("ALTER TABLE t ADD COLUMN x INT NOT NULL", "'x' of table 't' cannot be NULL"),
        ("ALTER TABLE t ADD COLUMN x INT DEFAULT 1 UNIQUE", "two rows with x = 1"),
        ("ALTER TABLE t ALTER COLUMN mail TYPE INT", "constraint of table 't' reads column 'mail'"),
        ("ALTER TABLE t DROP COLUMN age", "'t_age_check', 'pair' of table 't' reads column 'age'"),
        ("ALTER TABLE t DROP COLUMN id", "part of the key"),
        ("ALTER TABLE t ADD COLUMN age INT", "has a column 'age' already"),
        ("ALTER TABLE t RENAME age TO mail", "has a column 'mail' already"),
        ("ALTER TABLE t DROP CONSTRAINT zz", "no constraint 'zz'"),
        ("ALTER TABLE t ADD CONSTRAINT pair CHECK (id > 0)", "has a constraint 'pair' already"),
        ("ALTER TABLE t ADD PRIMARY KEY (age)", "ADD PRIMARY KEY is not supported"),
        ("ALTER TABLE t ADD FOREIGN KEY (age) REFERENCES u (a)", "foreign keys are not supported.*ANTI JOIN u"),
        ("ALTER TABLE t ALTER id DROP NOT NULL", "part of the primary key"),
        ("ALTER TABLE t ADD x INT, DROP COLUMN mail", "this form of ALTER TABLE is not supported: write one"),
        ("ALTER TABLE t ADD CHECK (age > (SELECT 1))", "no subquery"),
    ],
)
def test_what_cannot_be_is_refused_and_changes_nothing(statement: str, message: str) -> None:
    with make_engine() as engine:
        engine.sql(TABLE)
        before = contents(engine)
        with pytest.raises(tk.TektiteError, match=message):
            engine.sql(statement)
        assert contents(engine) == before
        engine.sql("INSERT INTO t VALUES (4, 'd', 1)")


@pytest.mark.parametrize("change", ["ADD CHECK (n > 0)", "ALTER COLUMN n SET NOT NULL", "ADD COLUMN m int"])
def test_a_table_that_an_open_transaction_has_changed_is_not_altered(change: str) -> None:
    engine = make_engine(autocommit=True)
    engine.sql("CREATE TABLE z (n int)")
    other = engine.session()
    other.sql("BEGIN; INSERT INTO z VALUES (-5)")
    with pytest.raises(tk.ConflictError, match="an open transaction of another session has changed it"):
        engine.sql(f"ALTER TABLE z {change}")
    other.sql("COMMIT")
    engine.sql("UPDATE z SET n = 5")
    engine.sql(f"ALTER TABLE z {change}")
    assert engine.sql("SELECT n FROM z").rows() == [(5,)]


def test_a_view_that_python_has_dropped_reads_nothing() -> None:
    with make_engine(autocommit=True) as engine:
        engine.sql("CREATE TABLE t (k BIGINT); CREATE MATERIALIZED VIEW m AS SELECT k FROM t")
        with pytest.raises(tk.ConflictError, match="'m' reads it"):
            engine.sql("ALTER TABLE t ADD COLUMN z BIGINT")
        engine.drop("m")
        engine.create_view("m", engine.values({"x": [1]}))
        engine.sql("ALTER TABLE t ADD COLUMN z BIGINT")
        engine.sql("DROP TABLE t")
        assert engine.view("m").rows() == [(1,)]
