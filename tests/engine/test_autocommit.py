"""Outside of a transaction every write is an epoch of its own, unless the engine leaves that to `advance`."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

import tektite as tk


@pytest.fixture
def engine() -> tk.Engine:
    return tk.Engine()


def test_each_write_returns_the_time_at_which_it_can_be_read(engine: tk.Engine) -> None:
    table = engine.create_table("t", {"x": tk.Int})
    view = engine.install("all", table)
    with engine.hold(view, 0):
        times = [table.insert([(1,), (2,)]), table.remove([(1,)]), table.update([(7,)], diffs=[3])]
        assert times == [0, 1, 2]
        assert [sorted(view.rows(at=time)) for time in (0, 1, 2)] == [[(1,), (2,)], [(2,)], [(2,), (7,), (7,), (7,)]]
    assert table.pending == 0


def test_refused_write_leaves_nothing_behind(engine: tk.Engine) -> None:
    table = engine.create_table("t", {"x": tk.Int})
    other = engine.create_table("other", {"x": tk.Int})
    with pytest.raises(tk.IncorrectError, match=r"row \(1,\) would be there a negative number of times") as refused:
        table.remove([(1,)])
    assert "rollback" not in str(refused.value)
    assert other.insert([(5,)]) == 0
    assert table.insert([(1,)]) == 1
    assert engine.next_epoch == 2


def test_writes_of_a_transaction_wait_for_its_commit(engine: tk.Engine) -> None:
    table = engine.create_table("t", {"x": tk.Int})
    view = engine.install("all", table)
    with engine.transaction() as both:
        assert table.insert([(1,)]) is None
        assert view.rows() == []
        assert table.insert([(2,)]) is None
    assert both.time is not None
    assert sorted(view.rows(at=both.time)) == [(1,), (2,)]


def test_a_write_of_another_thread_does_not_wait_for_a_transaction(engine: tk.Engine) -> None:
    table = engine.create_table("t", {"x": tk.Int})
    view = engine.install("all", table)
    times: list[int | None] = []
    with engine.transaction():
        table.insert([(1,)])
        other = threading.Thread(target=lambda: times.append(table.insert([(2,)])))
        other.start()
        other.join()
        assert view.rows() == [(2,)]
    assert times != [None]
    assert sorted(view.rows()) == [(1,), (2,)]


def test_update_with_a_time_waits_for_it(engine: tk.Engine) -> None:
    table = engine.create_table("t", {"x": tk.Int})
    view = engine.install("all", table)
    assert table.insert([(9,)], time=2) is None
    assert table.insert([(1,)]) == 0
    assert view.rows() == [(1,)]
    assert engine.advance(3) == 2
    assert sorted(view.rows()) == [(1,), (9,)]


def test_facts_are_one_epoch(engine: tk.Engine) -> None:
    engine.attribute("name", tk.String)
    engine.attribute("age", tk.Int)
    query = engine.query("[:find ?n ?a :where [?e :name ?n] [?e :age ?a]]")
    assert engine.transact([(1, "name", "ann"), (1, "age", 30)]) == 0
    assert engine.transact([("retract", 1, "age", 30), (1, "age", 31)]) == 1
    assert query.rows() == [("ann", 31)]
    with pytest.raises(tk.TektiteError):
        engine.transact([(2, "name", "bob"), (2, "age", "old")])
    assert engine.next_epoch == 2


def test_arguments_of_a_query_are_one_epoch(engine: tk.Engine) -> None:
    edge = engine.create_table("edge", {"src": tk.Int, "dst": tk.Int})
    edge.insert([(1, 2), (2, 3), (3, 4)])
    with engine.query("[:find ?a ?b :in ?a ?b :where (edge ?a ?b)]", a=1, b=2) as query:
        before = engine.next_epoch
        assert query.insert(a=2, b=3) == before
        assert sorted(query.rows()) == [(1, 2), (2, 3)]


def test_listener_that_closes_an_epoch_is_told_so(engine: tk.Engine) -> None:
    table, log = engine.create_table("t", {"x": tk.Int}), engine.create_table("log", {"x": tk.Int})
    told: list[Exception] = []

    def listener(_: Any) -> None:
        for close in (lambda: log.insert([(1,)]), log.advance, log.finish, engine.advance):
            try:
                close()
            except tk.TektiteError as error:
                told.append(error)

    view = engine.install("all", table, on_change=listener)
    table.insert([(1,)])
    assert [type(error) for error in told] == [tk.ConflictError] * 4
    assert all("inside a function that the engine calls" in str(error) for error in told)
    table.insert([(2,)])
    assert sorted(view.rows()) == [(1,), (2,)]
    assert log.insert([(5,)]) == 2


def test_manual_engine_commits_what_was_written_since(tmp_path: Path) -> None:
    with tk.Engine(storage=tmp_path, autocommit=False) as engine:
        table = engine.create_table("t", {"x": tk.Int})
        view = engine.install("all", table)
        assert table.insert([(1,)]) is None
        assert table.insert([(2,)]) is None
        assert table.pending == 2
        assert engine.advance() == 0
        assert sorted(view.rows()) == [(1,), (2,)]
        table.remove([(8,)])
        with pytest.raises(tk.IncorrectError, match=r"rollback\(\)"):
            engine.advance()
        table.rollback()
        assert engine.advance() == 1


def test_position_becomes_durable_with_a_transaction(tmp_path: Path) -> None:
    with tk.Engine(storage=tmp_path) as engine:
        table = engine.create_table("t", {"x": tk.Int})
        with engine.transaction() as batch:
            table.insert([(1,)])
            batch.positions["file"] = {"line": 1}
        with pytest.raises(ZeroDivisionError), engine.transaction() as lost:
            lost.positions["file"] = {"line": 2}
            raise ZeroDivisionError
    with tk.Engine(storage=tmp_path) as engine:
        assert engine.positions == {"file": {"line": 1}}
