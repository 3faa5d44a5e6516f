"""The thread that goes on with unfinished sweeps survives what it can, and what it cannot is everybody's again."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

import tektite as tk
from tektite.engine.core import core_of
from tektite.engine.engine_core import EngineCore
from tektite.server.finisher import Finisher
from tests.support.patience import PATIENCE, until

LOOP = """
    CREATE MATERIALIZED VIEW heavy AS
    WITH RECURSIVE up(n) AS (SELECT x AS n FROM t UNION SELECT n + 1 AS n FROM up WHERE n < 300) SELECT count(*) AS many FROM up
"""


@pytest.fixture
def engine() -> Iterator[tk.Engine]:
    with tk.Engine(turn=1e-9) as engine:
        engine.sql("CREATE TABLE t (x BIGINT)")
        engine.table("t").insert([(0,)])
        yield engine


def failing(monkeypatch: pytest.MonkeyPatch, error: type[BaseException]) -> threading.Event:
    """Lets the finisher's first call fail."""
    failed = threading.Event()
    there = EngineCore.finish_left

    def finish_left(core: EngineCore, seconds: float) -> bool:
        if not failed.is_set():
            failed.set()
            raise error
        return there(core, seconds)

    monkeypatch.setattr(EngineCore, "finish_left", finish_left)
    return failed


def test_what_lacked_memory_is_tried_again(engine: tk.Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    failed = failing(monkeypatch, MemoryError)
    finisher = Finisher(core_of(engine))
    finisher.start()
    try:
        assert failed.wait(PATIENCE)
        view = engine.sql(LOOP).view
        assert view is not None
        until(lambda: view.current)
        assert view.rows() == [(301,)]
    finally:
        finisher.close()
    assert core_of(engine).coordinator.on_left is None


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_without_the_thread_writers_go_on(engine: tk.Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    failed = failing(monkeypatch, SystemExit)
    finisher = Finisher(core_of(engine))
    finisher.start()
    assert failed.wait(PATIENCE)
    until(lambda: core_of(engine).coordinator.on_left is None)
    view = engine.sql(LOOP).view
    assert view is not None and not view.current
    core_of(engine).coordinator.turn = PATIENCE
    engine.table("t").insert([(1,)])
    assert view.current
    finisher.close()
