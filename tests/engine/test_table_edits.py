"""`delete` and `set` of tables do what DELETE and UPDATE of SQL do."""

from __future__ import annotations

import datetime
import random
from typing import Any

import pytest

import tektite as tk
from tests.support.executors import make_engine

pytestmark = pytest.mark.executors

COLUMNS = {"id": tk.Int, "x": tk.Float, "s": tk.String}
EDITS: list[tuple[Any, str]] = [
    (lambda t: t.set(tk.col("id") == 1, x=tk.col("x") + 1), "UPDATE {} SET x = x + 1 WHERE id = 1"),
    (lambda t: t.set(tk.lit(True), x=2), "UPDATE {} SET x = 2"),
    (lambda t: t.set(tk.lit(True), id=tk.col("id") + 1), "UPDATE {} SET id = id + 1"),
    (lambda t: t.set(tk.col("x").is_null(), s=None, x=0.5), "UPDATE {} SET s = NULL, x = 0.5 WHERE x IS NULL"),
    (lambda t: t.set([tk.col("id") > 2, tk.col("x") > 0], s=tk.col("s") + "!"),
     "UPDATE {} SET s = s || '!' WHERE id > 2 AND x > 0"),
    (lambda t: t.delete(id=2), "DELETE FROM {} WHERE id = 2"),
    (lambda t: t.delete(tk.col("s") == "a", tk.col("id") > 1), "DELETE FROM {} WHERE s = 'a' AND id > 1"),
    (lambda t: t.delete(tk.lit(True)), "DELETE FROM {}"),
]  # fmt: skip


def rows(table: tk.Table) -> list[str]:
    return sorted(map(repr, table.rows()))


@pytest.mark.parametrize(("mode", "key"), [("bag", ()), ("bag", "id"), ("set", ()), ("upsert", "id")])
def test_edits_are_those_of_sql(mode: Any, key: Any) -> None:
    draw = random.Random(f"{mode} {key}")
    engine = make_engine(autocommit=True)
    ours, twin = (engine.create_table(name, COLUMNS, mode=mode, primary_key=key) for name in ("ours", "twin"))
    view = engine.create_view("copy", ours.select("id", "x", "s"))
    for _ in range(30):
        new = [
            (draw.randrange(5), draw.choice([None, -1.0, 0.0, 2.5]), draw.choice([None, "a", "b"]))
            for _ in range(draw.randrange(4))
        ]
        answers = []
        edit, statement = draw.choice(EDITS)
        for table in (ours, twin):
            try:
                table.insert(new)
                with_transaction = draw.random() < 0.5 and table is ours
                if with_transaction:
                    with engine.transaction():
                        edit(table)
                elif table is ours:
                    edit(table)
                else:
                    engine.sql(statement.format("twin"))
                answers.append("done")
            except tk.ConflictError:
                answers.append("refused")
        assert answers[0] == answers[1]
        assert rows(ours) == rows(twin) == sorted(map(repr, view.rows()))


@pytest.mark.executors("stages")
def test_a_transaction_edits_what_it_has_written() -> None:
    engine = make_engine(autocommit=True)
    table = engine.create_table("t", {"x": int})
    with engine.transaction():
        table.insert([(1,), (2,)])
        table.set(tk.col("x") == 1, x=tk.col("x") + 10)
        table.delete(x=2)
        assert table.rows() == [(11,)]
    assert table.rows() == [(11,)]


@pytest.mark.parametrize(
    ("edit", "error", "message"),
    [
        (lambda t: t.delete(), tk.IncorrectError, "say which rows of table 't'"),
        (lambda t: t.set(tk.col("x") > 1), tk.IncorrectError, "name a column of table 't'"),
        (lambda t: t.set(x=1), tk.IncorrectError, "say which rows of table 't'"),
        (lambda t: t.set(tk.lit(True), y=1), tk.NotFoundError, "no column 'y'"),
        (lambda t: t.set(tk.lit(True), x="one"), tk.TektiteError, "one"),
        (lambda t: t.delete(tk.col("y") > 1), tk.NotFoundError, "'y'"),
        (lambda t: t.delete("x"), tk.IncorrectError, "filter takes an expression"),
    ],
)
def test_what_is_refused_changes_nothing(edit: Any, error: type[Exception], message: str) -> None:
    engine = make_engine(autocommit=True)
    table = engine.create_table("t", {"x": int})
    table.insert([(1,), (2,)])
    with pytest.raises(error, match=message):
        edit(table)
    assert sorted(table.rows()) == [(1,), (2,)]


def test_streams_have_no_rows_to_edit() -> None:
    table = make_engine(autocommit=True).create_table("t", {"x": int}, mode="stream")
    with pytest.raises(tk.ConflictError, match="is a stream, which keeps no rows"):
        table.delete(x=1)


def test_set_does_not_shift_moments_to_another_clock() -> None:
    engine = make_engine()
    aware = datetime.datetime(2024, 1, 1, 12, tzinfo=datetime.timezone(datetime.timedelta(hours=2)))
    naive = datetime.datetime(2024, 1, 1, 12)
    clocks = engine.create_table("clocks", {"at": tk.Timestamp, "moment": tk.TimestampTz})
    clocks.insert([(naive, aware)])
    engine.advance()
    for column, wrong in (("at", aware), ("at", tk.col("moment")), ("moment", naive), ("moment", tk.col("at"))):
        with pytest.raises(tk.IncorrectError, match="say which clock is meant"):
            clocks.set(tk.lit(True), **{column: wrong})
    clocks.set(tk.lit(True), at=tk.col("moment").dt.in_zone("UTC"), moment=None)
    engine.advance()
    assert clocks.rows() == [(datetime.datetime(2024, 1, 1, 10), None)]


def test_drop_without_columns_says_how_a_table_is_removed() -> None:
    table = make_engine().create_table("t", {"x": int})
    with pytest.raises(tk.IncorrectError, match="drop_table"):
        table.drop()
    assert table.drop([]).schema == table.schema
