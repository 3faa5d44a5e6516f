"""While a long statement is bound, others use the engine; what they change counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

import tektite as tk
from tektite.engine.core import core_of
from tektite.engine.lock import EngineLock
from tektite.sql.statements import pauses

SECONDS = 120
"""After so long a test that hangs fails."""

Meanwhile = Callable[[], object]


class Beside:
    """Calls something in another thread each time that a statement is interrupted while it is bound."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls = 0
        self.does: Meanwhile | None = None
        self._thread = ThreadPoolExecutor(1)
        monkeypatch.setattr(pauses, "BETWEEN", 0.0)
        there = EngineLock.let_others

        def let_others(lock: EngineLock) -> None:
            does, self.does = self.does, None
            if does is None:
                there(lock)
                return
            self.calls += 1
            lock.without(lambda: self._thread.submit(does).result(SECONDS))
            self.does = does

        monkeypatch.setattr(EngineLock, "let_others", let_others)

    def close(self) -> None:
        self._thread.shutdown()


@pytest.fixture
def beside(monkeypatch: pytest.MonkeyPatch) -> Iterator[Beside]:
    made = Beside(monkeypatch)
    yield made
    made.close()


@pytest.fixture
def engine() -> Iterator[tk.Engine]:
    with tk.Engine() as made:
        made.sql("CREATE TABLE t (k bigint, x bigint); CREATE TABLE seen (n bigint)")
        made.sql("INSERT INTO t VALUES (1, 1), (2, 2)")
        yield made


def test_rows_that_others_write_while_a_query_is_bound_are_in_its_answer(engine: tk.Engine, beside: Beside) -> None:
    beside.does = lambda: engine.table("t").insert([(3, beside.calls)])
    found = engine.sql("SELECT count(*) FROM t WHERE k IN (1, 2, 3, 4)").rows()
    assert beside.calls > 2
    assert found == [(2 + beside.calls,)]


def test_a_change_is_made_to_what_is_there_when_it_is_bound(engine: tk.Engine, beside: Beside) -> None:
    beside.does = lambda: engine.table("t").insert([(3, 3)])
    engine.sql("UPDATE t SET x = x + 10 WHERE k IN (1, 2, 3)")
    beside.does = None
    assert beside.calls > 2
    assert sorted(engine.sql("SELECT DISTINCT k, x FROM t").rows()) == [(1, 11), (2, 12), (3, 13)]
    assert engine.sql("SELECT count(*) FROM t").rows() == [(2 + beside.calls,)]


def test_rows_are_inserted_once(engine: tk.Engine, beside: Beside) -> None:
    beside.does = lambda: engine.table("seen").insert([(beside.calls,)])
    engine.sql("INSERT INTO t VALUES " + ", ".join(f"({n} + 1, {n})" for n in range(10, 60)))
    beside.does = None
    assert beside.calls > 10
    assert engine.sql("SELECT count(*) FROM t").rows() == [(52,)]


def test_a_table_that_is_made_again_meanwhile_is_the_one_that_counts(engine: tk.Engine, beside: Beside) -> None:
    def make_again() -> None:
        if beside.calls == 2:
            engine.sql("DROP TABLE t")
            engine.create_table("t", {"k": tk.Int, "x": tk.Int, "y": tk.Int}).insert([(1, 5, 6)])

    beside.does = make_again
    assert engine.sql("SELECT * FROM t WHERE k IN (1, 2, 3)").rows() == [(1, 5, 6)]
    assert beside.calls > 2


def test_a_table_that_goes_each_time_is_looked_up_without_a_pause_at_last(engine: tk.Engine, beside: Beside) -> None:
    def make_again() -> None:
        engine.drop("t")
        engine.create_table("t", {"k": tk.Int}).insert([(1,), (2,)])

    beside.does = make_again
    assert engine.sql("SELECT count(*) FROM t WHERE k IN (1, 2, 3)").rows() == [(2,)]
    assert beside.calls


def test_a_right_that_is_taken_away_meanwhile_is_not_there(engine: tk.Engine, beside: Beside) -> None:
    engine.sql("CREATE ROLE ann LOGIN; GRANT SELECT ON t TO ann")
    session = engine.session()
    session.sql("SET ROLE ann")

    def revoke() -> None:
        if beside.calls == 2:
            engine.sql("REVOKE SELECT ON t FROM ann")

    beside.does = revoke
    with pytest.raises(tk.TektiteError, match="permission denied"):
        session.sql("SELECT * FROM t WHERE k IN (1, 2, 3)")
    assert beside.calls > 2
    assert core_of(engine).sessions.current().statement_pause is None
