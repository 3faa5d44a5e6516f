"""What an input's declaration demands of its rows: unique keys, columns without NULL, rows that stay."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tektite as tk
from tektite.engine.core import core_of
from tests.support.executors import examples, make_engine
from tests.support.nightly import by_day_or_night

pytestmark = pytest.mark.executors("stages")

ROWS = st.tuples(st.integers(0, 5), st.integers(0, 1), st.integers(0, 2))
CHANGES = st.lists(st.tuples(ROWS, st.integers(0, 2), st.sampled_from((1, -1))), max_size=8)


def repeats(rows: Counter[tuple[int, int, int]]) -> bool:
    """Whether two rows have the same key."""
    return max(Counter(row[:2] for row in rows.elements()).values(), default=0) > 1


def test_an_epoch_closes_iff_no_two_rows_have_the_same_key_at_any_time() -> None:
    @settings(max_examples=examples(by_day_or_night(40, 150)))
    @given(batches=st.lists(CHANGES, max_size=8), workers=st.sampled_from((1, 2)))
    def check(batches: list[list[tuple[tuple[int, int, int], int, int]]], workers: int) -> None:
        engine = make_engine(workers=workers)
        table = engine.create_table("t", {"c": tk.Int, "a": tk.Int, "b": tk.Int}, primary_key=["a", "b"])
        view = engine.install("v", table)
        held: Counter[tuple[int, int, int]] = Counter()
        for batch in batches:
            first, wrong, later = engine.next_epoch, False, held.copy()
            for epoch in range(3):
                for row, at, diff in batch:
                    later[row] += diff * (at == epoch)
                wrong = wrong or repeats(+later) or min(later.values(), default=0) < 0
            if batch:
                table.update(
                    [(c, a, b) for (a, b, c), _, _ in batch],
                    times=[first + at for _, at, _ in batch],
                    diffs=[diff for _, _, diff in batch],
                )
            if wrong:
                with pytest.raises(tk.TektiteError, match="two rows with the key a = |negative number"):
                    engine.advance(first + 3)
                table.rollback()
            else:
                engine.advance(first + 3)
                held = +later
            assert sorted(view.rows()) == sorted((c, a, b) for a, b, c in held)
        engine.close()

    check()


def test_keys_are_compared_with_many_rows_that_are_there() -> None:
    engine = make_engine()
    table = engine.create_table("t", {"k": tk.Int, "v": tk.Int}, primary_key="k")
    for start in (2, 0, 1):
        table.insert([(k, start) for k in range(start, 3_000, 3)])
        engine.advance()
    table.insert([(k, 9) for k in (*range(3_000, 3_600), 1_501)])
    with pytest.raises(tk.ConflictError, match="k = 1501 at time 3"):
        engine.advance()
    table.rollback()
    table.remove([(1_501, 1)])
    table.insert([(1_501, 9)])
    engine.advance()
    assert len(engine.install("all", table).rows()) == 3_000


@pytest.mark.executors(spark=["set"])
@pytest.mark.parametrize("semantics", ["bag", "set"])
def test_a_repeated_key_is_refused_and_nothing_changes(semantics: str) -> None:
    engine = make_engine()
    other = engine.create_table("other", {"x": tk.Int})
    table = engine.create_table("t", {"k": tk.String, "v": tk.Int}, mode=semantics, primary_key="k")
    table.insert([("a", 1)])
    engine.advance()
    table.insert([("a", 2)])
    other.insert([(1,)])
    with pytest.raises(tk.ConflictError, match="table 't': there would be two rows with the key k = 'a' at time 1"):
        engine.advance()
    assert engine.next_epoch == 1
    table.rollback()
    engine.advance()
    assert engine.install("v", table).rows() == [("a", 1)]
    assert engine.install("w", other).rows() == [(1,)]


def test_a_key_holds_no_null() -> None:
    table = make_engine().create_table("t", {"k": tk.Int}, primary_key="k")
    with pytest.raises(tk.IncorrectError, match="column 'k' of table 't' cannot be NULL, and 1 of 2 rows"):
        table.insert([(1,), (None,)])
    assert table.pending == 0


def test_a_required_column_holds_no_null() -> None:
    table = make_engine().create_table("t", {"k": tk.Int, "v": tk.Int}, required=["v"])
    table.update([(None, 1)], diffs=[1])
    with pytest.raises(tk.IncorrectError, match="column 'v' of table 't' cannot be NULL, and 2 of 3 rows"):
        table.update([(1, None), (2, None), (3, 1)])


def test_rows_of_an_append_only_input_stay() -> None:
    table = make_engine().create_table("t", {"k": tk.Int}, mode="append")
    table.insert([(1,)])
    with pytest.raises(tk.ConflictError, match="'t' is append-only"):
        table.remove([(1,)])
    with pytest.raises(tk.ConflictError, match="'t' is append-only"):
        table.update([(1,), (2,)], diffs=[-1, 1])


def test_zeros_of_both_signs_are_one_key() -> None:
    engine = make_engine()
    unique = engine.create_table("u", {"x": tk.Float, "v": tk.Int}, primary_key=["x"])
    unique.insert([(0.0, 1)])
    engine.advance()
    unique.insert([(-0.0, 2)])
    with pytest.raises(tk.ConflictError, match="two rows with the key x = 0.0"):
        engine.advance()
    unique.rollback()
    latest = engine.create_table("l", {"x": tk.Float, "v": tk.Int}, mode="upsert", primary_key=["x"])
    members = engine.create_table("m", {"x": tk.Float}, mode="set")
    for zero, value in ((0.0, 1), (-0.0, 2)):
        latest.insert([(zero, value)])
        members.insert([(zero,)])
        engine.advance()
    assert engine.install("latest", latest).rows() == [(0.0, 2)]
    assert engine.install("members", members).rows() == [(0.0,)]
    latest.remove([(-0.0,)])
    engine.advance()
    assert engine.view("latest").rows() == []


def test_the_caller_is_trusted_where_nothing_is_checked() -> None:
    engine = make_engine()
    table = engine.create_table("t", {"k": tk.Int, "v": tk.Int}, primary_key="k", checked=False)
    table.insert([(1, 1), (1, 2)])
    engine.advance()
    assert core_of(table).unique == (0,)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "upsert"}, "replaces the one with the same primary_key"),
        ({"mode": "list"}, "mode is one of bag, set, upsert, append, stream, not 'list'"),
        ({"mode": tk.Int}, "mode is one of"),
        ({"primary_key": "x"}, "primary_key names 'x'"),
    ],
)
def test_a_declaration_that_makes_no_sense_is_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(tk.IncorrectError, match=message):
        make_engine().create_table("t", {"k": tk.Int}, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("declared_again", [True, False])
def test_a_storage_remembers_what_was_declared(tmp_path: Path, declared_again: bool) -> None:
    create = "CREATE TABLE t (k int PRIMARY KEY, v int NOT NULL); CREATE TABLE log (x int) WITH (mode = 'append')"
    with make_engine(storage=tmp_path) as engine:
        engine.sql(create)
        engine.sql("INSERT INTO t VALUES (1, 1); INSERT INTO log VALUES (1)")
    with make_engine(storage=tmp_path) as engine:
        if declared_again:
            engine.sql(create)
        with pytest.raises(tk.ConflictError, match="two rows with the key k = 1"):
            engine.sql("INSERT INTO t VALUES (1, 2)")
        with pytest.raises(tk.IncorrectError, match="'v' of table 't' cannot be NULL"):
            engine.sql("INSERT INTO t VALUES (2, NULL)")
        with pytest.raises(tk.ConflictError, match="append-only"):
            engine.sql("DELETE FROM log")
        assert engine.sql("SELECT k, v, x FROM t, log").rows() == [(1, 1, 1)]


def test_a_stored_input_cannot_be_declared_with_other_demands(tmp_path: Path) -> None:
    with make_engine(storage=tmp_path) as engine:
        engine.create_table("t", {"k": tk.Int}, primary_key="k")
    with make_engine(storage=tmp_path) as engine, pytest.raises(tk.ConflictError, match=r"unique key \(k\), bag, but"):
        engine.create_table("t", {"k": tk.Int}, order_by="k")


@pytest.mark.executors("spark")
def test_a_transaction_that_repeats_a_key_is_undone_as_a_whole() -> None:
    engine = make_engine()
    engine.sql("CREATE TABLE t (k int PRIMARY KEY); CREATE TABLE u (k int)")
    engine.sql("BEGIN; INSERT INTO u VALUES (7); INSERT INTO t VALUES (1)")
    with engine.session():
        engine.table("t").insert([(1,)])
        engine.advance()
    with pytest.raises(tk.ConflictError, match="two rows with the key k = 1"):
        engine.sql("COMMIT")
    assert engine.sql("SELECT k, 't' FROM t UNION ALL SELECT k, 'u' FROM u").rows() == [(1, "t")]
    engine.sql("BEGIN; DELETE FROM t WHERE k = 1; INSERT INTO t VALUES (1); UPDATE t SET k = 2; COMMIT")
    assert engine.sql("SELECT k FROM t").rows() == [(2,)]


def test_a_statement_that_repeats_a_key_leaves_its_transaction_as_it_was() -> None:
    engine = make_engine()
    engine.sql("CREATE TABLE t (k int PRIMARY KEY, v int); INSERT INTO t VALUES (1, 1), (2, 2)")
    engine.sql("BEGIN")
    for statement in ("UPDATE t SET k = 2", "UPDATE t SET k = NULL WHERE k = 2"):
        with pytest.raises(tk.TektiteError, match="two rows with the key|cannot be NULL"):
            engine.sql(statement)
    engine.sql("INSERT INTO t VALUES (3, 3)")
    with pytest.raises(tk.ConflictError, match="two rows with the key"):
        engine.sql("INSERT INTO t VALUES (4, 4), (3, 9)")
    engine.sql("DELETE FROM t WHERE k = 1")
    with pytest.raises(tk.ConflictError, match="two rows with the key"):
        engine.sql("UPDATE t SET k = 3")
    engine.sql("COMMIT")
    assert engine.sql("SELECT * FROM t ORDER BY k").rows() == [(2, 2), (3, 3)]
