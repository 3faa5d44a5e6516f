"""Texts go when nobody uses them: answers, readers, subscriptions and transactions never miss one."""

from __future__ import annotations

import gc
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import tektite as tk
from tektite.dataflow import arrange, node
from tektite.engine import text_collector
from tektite.engine.core import core_of
from tektite.engine.text_collector import TextCollection
from tektite.expr.text import Memo
from tektite.storage.epoch_writer import EpochWriter
from tests.support.patience import until
from tests.support.row_changes import row_changes
from tests.support.stored import state_of
from tests.support.texts import collected, eager, texts


def test_texts_are_bounded_by_the_rows_that_are_there() -> None:
    with tk.Engine() as engine:
        table = engine.create_table("t", {"k": tk.Int, "s": tk.String}, mode="upsert", primary_key=["k"])
        longest = engine.install("lengths", table.select(n=tk.col("s").length()).count(by="n"))
        most = 0
        for epoch in range(120):
            table.insert([(k, f"row {k} in epoch {epoch}") for k in range(2000)])
            most = max(most, texts(engine))
            if epoch % 10 == 9:  # beside the epochs; how soon depends on the machine
                until(lambda: not core_of(engine).texts.is_running)
        assert core_of(engine).texts.count > 3
        assert most < 120 * 2000 / 4
        assert collected(engine) == 2000
        assert sum(n for _, n in longest.rows()) == 2000


def test_the_folder_of_an_engine_loses_texts_as_well(tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from tektite.storage.command import app

    expected = []
    with tk.Engine(storage=tk.Storage(tmp_path, retention=0.0)) as engine:
        table = engine.create_table("t", {"k": tk.Int, "s": tk.String}, mode="upsert", primary_key=["k"])
        for epoch in range(60):
            expected = [(k, f"row {k} in epoch {epoch}") for k in range(1000)]
            table.insert(expected)
            engine.sync()
        assert collected(engine) == 1000
        for epoch in range(4):  # writes bring what is due in the storage
            table.insert([(0, f"again {epoch}")])
            engine.sync()
        expected[0] = (0, "again 3")
        until(lambda: stored_texts(tmp_path) < 40_000)  # of 60,000 that were written
    ran = CliRunner().invoke(app, ["vacuum", "--retention", "0", str(tmp_path)])
    assert ran.exit_code == 0, ran.output
    assert stored_texts(tmp_path) <= 2000
    with tk.Engine(storage=tmp_path) as engine:
        assert texts(engine) <= 2000
        assert sorted(engine.install("all", engine.table("t")).rows()) == sorted(expected)


@pytest.mark.parametrize("waits", [True, False])
def test_the_folder_of_an_idle_engine_loses_texts_without_an_epoch(tmp_path: Path, waits: bool) -> None:
    expected: list[tuple[int, str]] = []
    with tk.Engine(storage=tk.Storage(tmp_path, retention=0.0)) as engine:
        table = engine.create_table("t", {"k": tk.Int, "s": tk.String}, mode="upsert", primary_key=["k"])
        for epoch in range(60):
            expected = [(k, f"row {k} in epoch {epoch}") for k in range(1000)]
            table.insert(expected)
        engine.sync()
        while engine.idle():
            pass
        if waits:
            until(lambda: not engine.idle() and stored_texts(tmp_path) <= 10_000)
    with tk.Engine(storage=tmp_path) as engine:
        assert sorted(engine.table("t").rows()) == expected


@pytest.mark.parametrize("who", ["the idle engine", "vacuum"])
def test_texts_of_epochs_that_were_written_together_go_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, who: str
) -> None:
    from typer.testing import CliRunner

    from tektite.storage.command import app

    may_write, work_waits = threading.Event(), EpochWriter._work_waits
    monkeypatch.setattr(EpochWriter, "_work_waits", lambda writer: may_write.is_set() and work_waits(writer))
    expected: list[tuple[int, str]] = []
    with tk.Engine(storage=tk.Storage(tmp_path, retention=0.0)) as engine:
        table = engine.create_table("t", {"k": tk.Int, "s": tk.String}, mode="upsert", primary_key=["k"])
        for epoch in range(60):
            expected = [(k, f"row {k} in epoch {epoch}") for k in range(1000)]
            table.insert(expected)
        may_write.set()
        engine.sync()
        assert [live.section.rows for live in state_of(tmp_path).sections("batch")] == [60_000 + 59_000]
        if who == "the idle engine":
            until(lambda: not engine.idle() and stored_texts(tmp_path) <= 10_000)
    if who == "vacuum":
        ran = CliRunner().invoke(app, ["vacuum", "--retention", "0", str(tmp_path)])
        assert ran.exit_code == 0, ran.output
        assert stored_texts(tmp_path) <= 2000
    with tk.Engine(storage=tmp_path) as engine:
        assert sorted(engine.table("t").rows()) == expected


def test_texts_that_a_collection_has_made_room_for_are_not_moved_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise RuntimeError("no thread: the test says when the collection goes on")

    monkeypatch.setattr(text_collector, "start_new_thread", refuse)
    with tk.Engine() as engine:
        table = engine.create_table("t", {"s": tk.String})
        core = core_of(engine)
        table.insert([(f"text {number}",) for number in range(20_000)])
        running = [core.texts.is_running]
        table.insert([("while it runs",)])
        with core.lock.held:
            assert core.texts.finish(0)
        table.insert([("after it",)])
        running.append(core.texts.is_running)
        assert running == [True, False]
        assert texts(engine) == 20_002


def stored_texts(folder: Path) -> int:
    return sum(live.section.rows for live in state_of(folder).texts())


def test_a_subscription_has_the_texts_of_changes_that_were_not_read() -> None:
    with eager(tk.Engine()) as engine:
        table = engine.create_table("t", {"s": tk.String})
        view = engine.install("all", table)
        changes = row_changes(view)
        for epoch in range(20):
            table.insert([(f"only in {epoch}",)])
            table.remove([(f"only in {epoch}",)])
        told = [(change.row[0], change.diff) for change in changes]
        assert sorted(told) == sorted((f"only in {epoch}", diff) for epoch in range(20) for diff in (1, -1))
        assert collected(engine) == 0


def test_a_subscription_that_nobody_holds_holds_nothing() -> None:
    with eager(tk.Engine()) as engine:
        table = engine.create_table("t", {"s": tk.String})
        view = engine.install("all", table)
        changes = row_changes(view)
        table.insert([("once",)])
        table.remove([("once",)])
        handle = changes.subscription._feed.handle
        assert handle in core_of(view).trace.handles
        del changes
        gc.collect()
        table.insert([("stays",)])
        assert handle not in core_of(view).trace.handles
        assert collected(engine) == 1


def test_a_callback_lives_as_long_as_its_view() -> None:
    with eager(tk.Engine()) as engine:
        table = engine.create_table("t", {"s": tk.String})
        told: list[str] = []
        engine.install("all", table).subscribe(lambda delta: told.extend(delta.table["s"].to_pylist()))
        for text in ("one", "two"):
            gc.collect()
            table.insert([(text,)])
        assert told == ["one", "two"]


def test_a_transaction_has_the_texts_that_it_wrote_and_those_that_it_reads() -> None:
    with eager(tk.Engine()) as engine:
        engine.sql("CREATE TABLE t (k int, s varchar)")
        engine.sql("INSERT INTO t VALUES (1, 'first')")
        session = engine.session()
        session.sql("BEGIN; INSERT INTO t VALUES (2, 'written')")
        engine.sql("UPDATE t SET s = 'second' WHERE k = 1")
        for n in range(5):
            engine.sql(f"INSERT INTO t VALUES (9, 'x{n}'); DELETE FROM t WHERE k = 9")
        assert session.sql("SELECT s FROM t ORDER BY k").rows() == [("first",), ("written",)]
        session.sql("COMMIT")
        assert engine.sql("SELECT s FROM t ORDER BY k").rows() == [("second",), ("written",)]
        assert collected(engine) == 2


def test_updates_that_wait_keep_their_texts() -> None:
    with eager(tk.Engine(autocommit=False)) as engine:
        table = engine.create_table("t", {"s": tk.String})
        other = engine.create_table("other", {"s": tk.String})
        view = engine.install("all", table)
        table.insert([("later",)], time=5)
        for n in range(5):
            other.insert([(f"x{n}",)])
            engine.advance()
        table.insert([("waits",)])
        assert collected(engine) >= 2
        engine.advance()
        assert sorted(view.rows()) == [("later",), ("waits",)]


def test_constants_stay_as_long_as_a_plan_has_them() -> None:
    from tektite.engine.constants import constants

    with eager(tk.Engine()) as engine:
        names = constants(engine, tk.Schema(s=tk.String), [("ash",), ("elm",)])
        table = engine.create_table("t", {"s": tk.String})
        table.insert([("oak",)])
        assert collected(engine) == 3
        view = engine.install("names", names)
        table.remove([("oak",)])
        assert sorted(view.rows()) == [("ash",), ("elm",)]
        view.drop()
        del names, view
        gc.collect()
        assert collected(engine) == 0


def test_nothing_goes_while_somebody_reads() -> None:
    with tk.Engine() as engine:
        table = engine.create_table("t", {"s": tk.String})
        view = engine.install("all", table)
        table.insert([("read",)])
        core = core_of(view)
        with core.engine.dictionary.text_use():
            words = core.words(None, True)
            table.remove([("read",)])
            while any(trace.idle(1 << 20) for trace in core.engine.traces()):
                pass
            assert engine.idle()  # there is more to do once the reader has ended
            assert core.decode(words).column(0).to_pylist() == ["read"]
        assert collected(engine) == 0


def test_threads_read_and_write_across_collections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_collector, "FEWEST", 64)
    with tk.Engine(2) as engine:
        table = engine.create_table("t", {"k": tk.Int, "s": tk.String}, mode="upsert", primary_key=["k"])
        upper = engine.install("upper", table.select("k", u=tk.col("s").upper()))
        kept = engine.install("kept", table.count(by="s"))
        stop, failures = threading.Event(), []

        def read(view: tk.View) -> None:
            try:
                changes = row_changes(view)
                while not stop.is_set():
                    assert all(text is not None for text in view.snapshot().column(1).to_pylist())
                    list(changes)
            except BaseException as error:
                failures.append(error)

        def write(number: int) -> None:
            try:
                for epoch in range(60):
                    table.insert([(100 * number + k, f"writer {number} row {k} at {epoch}") for k in range(100)])
            except BaseException as error:
                failures.append(error)

        readers = [threading.Thread(target=read, args=(view,)) for view in (upper, upper, kept)]
        writers = [threading.Thread(target=write, args=(number,)) for number in range(2)]
        for thread in (*readers, *writers):
            thread.start()
        for thread in writers:
            thread.join()
        until(lambda: failures or core_of(engine).texts.count > 0)
        stop.set()
        for thread in readers:
            thread.join()
        assert not failures
        assert sorted(upper.rows()) == [(100 * w + k, f"WRITER {w} ROW {k} AT 59") for w in (0, 1) for k in range(100)]
        gc.collect()
        assert collected(engine) <= 2 * 400


def test_a_collection_begins_while_a_text_function_is_called_for_many_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node, "LONG", 100)
    monkeypatch.setattr(arrange, "LONG", 100)
    begun = 0

    def begin() -> None:
        with core_of(engine).lock.held:
            TextCollection(core_of(engine))

    def learn(self: Memo, *given: Any, there: Any = Memo.learn) -> None:
        nonlocal begun
        there(self, *given)
        if begun < 5:
            begun += 1
            with ThreadPoolExecutor(1) as threads:  # the sweep is outside of the engine's lock
                threads.submit(begin).result(60)

    with tk.Engine() as engine:
        table = engine.create_table("t", {"s": tk.String})
        table.insert([(f"text {n}",) for n in range(1000)])
        monkeypatch.setattr(Memo, "learn", learn)
        view = engine.install("lengths", table.select(n=tk.col("s").str.upper().length()).count(by="n"))
        assert sorted(view.rows()) == [(6, 10), (7, 90), (8, 900)]
        assert begun == 5


def test_an_engine_that_nobody_holds_goes_though_texts_are_being_collected() -> None:
    import weakref

    engine = tk.Engine()
    table = engine.create_table("t", {"s": tk.String})
    core = core_of(engine)
    with core.dictionary.text_use():
        core.dictionary.limit = 0
        table.insert([("a",)])
        assert core.texts.is_active
    gone = weakref.ref(core)
    core.texts.finish(1.0)
    del engine, table, core
    until(lambda: gc.collect() >= 0 and gone() is None)
