"""What a statement takes and gives is known before it is run, and is what it then takes and gives."""

from __future__ import annotations

import pytest

import tektite as tk
from tektite.sql import runner
from tektite.sql.parse import parser
from tektite.sql.statements.describe import describe
from tektite.values import types

TABLE = "CREATE TABLE t (id int primary key, v varchar, x double, d date, n decimal(10, 2), ts timestamp, b boolean)"
CASES = [
    (
        "SELECT * FROM t WHERE id = $1 AND v LIKE $2",
        "int string",
        "int string float date decimal(10, 2) timestamp bool",
    ),
    ("INSERT INTO t (id,v,d) VALUES ($1,$2,$3) RETURNING d", "int string date", "date"),
    ("UPDATE t SET x = $1, ts = $2 WHERE id = $3", "float timestamp int", None),
    ("DELETE FROM t WHERE n < $1", "decimal(10, 2)", None),
    ("SELECT $1::date, $2 || 'a', $3", "date string string", "date string string"),
    ("SELECT count(*) FROM t WHERE d BETWEEN $1 AND $2 LIMIT $3", "date date int", "int"),
    ("SELECT id FROM t WHERE id IN ($1, $2)", "int int", "int"),
    ("SELECT CASE WHEN b THEN $1 ELSE x END FROM t", "float", "float"),
    ("INSERT INTO t (id, v) SELECT $1, v FROM t WHERE id > $2 - 1", "int int", None),
    ("INSERT INTO t (id) VALUES ($1) ON CONFLICT (id) DO UPDATE SET v = $2", "int string", None),
    ("SUBSCRIBE TO (SELECT id FROM t WHERE b = $1)", "bool", "int int int"),
    ("CREATE TABLE u (i int)", "", None),
]


@pytest.fixture
def engine():
    with tk.Engine() as made:
        made.sql(TABLE)
        yield made


@pytest.mark.parametrize(("text", "parameters", "columns"), CASES, ids=[text for text, _, _ in CASES])
def test_parameters_have_the_types_of_what_they_meet(engine, text: str, parameters: str, columns: str | None) -> None:
    (statement,) = parser.parse(text)
    found = describe(runner(engine), statement)
    assert " ".join(map(str, found.parameters.values())) == parameters
    assert (None if found.columns is None else " ".join(str(type) for _, type in found.columns)) == columns


def test_declared_type_of_a_parameter_counts_more_than_an_inferred_one(engine) -> None:
    (statement,) = parser.parse("SELECT id FROM t WHERE id = $1")
    assert describe(runner(engine), statement, {"1": types.Float}).parameters == {"1": types.Float}


def test_parameters_without_blanks_between_them_are_not_a_quoted_text(engine) -> None:
    assert engine.sql("SELECT $1||$2,$3", ["a", "b", 3]).rows() == [("ab", 3)]
