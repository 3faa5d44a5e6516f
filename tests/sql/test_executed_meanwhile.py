"""What others do with a prepared statement while somebody executes it: they get a turn when its arguments are written."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

import tektite as tk
from tektite.engine.argument_tables import ArgumentTables
from tektite.engine.core import core_of
from tektite.sql import runner
from tests.support.executors import make_engine

pytestmark = pytest.mark.executors


def meanwhile(monkeypatch: pytest.MonkeyPatch, engine: tk.Engine, *texts: str) -> None:
    """Run some statements when the next arguments have been written."""
    there, left = ArgumentTables.commit, [*texts]

    def commit(tables: ArgumentTables, *given: Any) -> None:
        there(tables, *given)
        while left:
            with suppress(tk.IncorrectError):  # a row that fails
                engine.sql(left.pop(0))

    monkeypatch.setattr(ArgumentTables, "commit", commit)


def check_nothing_is_left(engine: tk.Engine) -> None:
    engine.sql("DEALLOCATE q")
    engine.sql("INSERT INTO t VALUES (7, '70')")
    runner(engine).shared.sweep()
    assert not runner(engine).shared.all()
    assert not core_of(engine).views and {*core_of(engine).inputs} <= {"t", "__unit"}


@pytest.fixture
def engine() -> tk.Engine:
    made = make_engine()
    made.sql("CREATE TABLE t (k int, s text); INSERT INTO t VALUES (1, '10'), (2, '20')")
    return made


@pytest.mark.parametrize(
    "other",
    ["EXECUTE q(1)", "EXECUTE q(2)", "EXECUTE q(1.5)", "DEALLOCATE q(1)", "DEALLOCATE q; PREPARE q AS SELECT k FROM t"],
)
def test_what_others_do_meanwhile_changes_no_answer(
    engine: tk.Engine, monkeypatch: pytest.MonkeyPatch, other: str
) -> None:
    engine.sql("PREPARE q AS SELECT s FROM t WHERE k = $1")
    meanwhile(monkeypatch, engine, *other.split("; "))
    if "PREPARE" in other:
        with pytest.raises(tk.IncorrectError, match="takes 0 values, not 1"):
            engine.sql("EXECUTE q(1)")
    else:
        assert engine.sql("EXECUTE q(1)").rows() == [("10",)]
        assert engine.sql("EXECUTE q(1)").rows() == [("10",)]
    check_nothing_is_left(engine)


@pytest.mark.executors("stages")
def test_a_statement_that_is_deallocated_meanwhile_is_not_there(
    engine: tk.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.sql("PREPARE q AS SELECT s FROM t WHERE k = $1")
    meanwhile(monkeypatch, engine, "DEALLOCATE q")
    with pytest.raises(tk.NotFoundError, match="no prepared statement 'q'"):
        engine.sql("EXECUTE q(1)")
    engine.sql("PREPARE q AS SELECT s FROM t WHERE k = $1")
    check_nothing_is_left(engine)


@pytest.mark.parametrize("other", ["EXECUTE q(1)", "EXECUTE q(3)"])
def test_bindings_that_fail_at_the_same_time_leave_nothing_behind(
    engine: tk.Engine, monkeypatch: pytest.MonkeyPatch, other: str
) -> None:
    engine.sql("PREPARE q AS SELECT s::int AS n FROM t WHERE k = $1")
    assert engine.sql("EXECUTE q(1)").rows() == [(10,)]
    engine.sql("INSERT INTO t VALUES (3, 'x')")
    meanwhile(monkeypatch, engine, other)
    with pytest.raises(tk.IncorrectError, match="'x'"):
        engine.sql("EXECUTE q(3)")
    assert engine.sql("EXECUTE q(1)").rows() == [(10,)]
    check_nothing_is_left(engine)
