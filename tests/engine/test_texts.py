"""Texts go when nobody uses them: answers, readers, subscriptions and transactions never miss one."""

from __future__ import annotations

import gc
import random
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import tektite as tk
from tektite.engine import text_collector
from tektite.engine.core import core_of
from tests.support.stored import state_of

VIEWS = {
    "joined": "SELECT a.k, a.s, b.t FROM a JOIN b ON a.s = b.s",
    "grouped": "SELECT s, count(*) AS n, min(t) AS least, max(t) AS most FROM b GROUP BY s",
    "made": "SELECT k, upper(s) || '-' || k::text AS u FROM a WHERE s <> 'never'",
    "remade": "SELECT left(u, 3) AS p, max(u) AS u, string_agg(u, ',' ORDER BY u) AS us FROM made GROUP BY left(u, 3)",
    "constant": "SELECT k, CASE WHEN k > 3 THEN 'large' || '!' ELSE 'small' END AS size FROM a",
    "listed": "SELECT k FROM a WHERE s IN ('0.0', '1.0', '2.5') OR s LIKE '%9'",
    "casted": "SELECT k, t::int AS n FROM b",
    "windowed": "SELECT s, t, lag(t, 1, 'none') OVER (PARTITION BY s ORDER BY t, k) AS before FROM b",
}
RULES = """
.type Pair = [left: symbol, right: symbol]
.decl pair(p: Pair)
pair([x, y]) :- a(_, x), b(_, x, y).
.decl chain(x: symbol, y: symbol)
chain(x, y) :- b(_, x, y).
chain(x, z) :- chain(x, y), b(_, y, z).
.decl firsts(x: symbol)
firsts(cat(x, "!")) :- pair([x, _]).
"""


def texts(engine: tk.Engine) -> int:
    return core_of(engine).dictionary.texts


def eager(engine: tk.Engine) -> tk.Engine:
    core_of(engine).texts.be_eager()
    return engine


def collected(engine: tk.Engine) -> int:
    """The texts that are left when nothing more can be merged or collected."""
    while engine.idle():
        pass
    return texts(engine)


def declare(engine: tk.Engine) -> tuple[tk.Input, tk.Input]:
    """Two inputs, and views of them in SQL and Datalog."""
    a = engine.input("a", k=tk.Int, s=tk.String)
    b = engine.input("b", k=tk.Int, s=tk.String, t=tk.String)
    for name, query in VIEWS.items():
        engine.sql(f"CREATE MATERIALIZED VIEW {name} AS {query}")
    engine.datalog(RULES)
    return a, b


def answers(engine: tk.Engine) -> dict[str, Any]:
    """What every view says: its rows, or the error that stands in their way."""
    found: dict[str, Any] = {}
    for name in [*VIEWS, "pair", "chain", "firsts"]:
        try:
            found[name] = Counter(engine.view(name).rows())
        except tk.TektiteError as error:
            found[name] = str(error)
    return found


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("seed", range(3))
def test_answers_are_those_of_an_engine_that_never_saw_the_past(seed: int, workers: int) -> None:
    rng = random.Random(seed)
    with eager(tk.Engine(workers, autocommit=False)) as engine:
        a, b = declare(engine)
        rows_a: list[tuple[int, str]] = []
        rows_b: list[tuple[int, str, str]] = []
        for epoch in range(12):
            gone_a, gone_b = ([row for row in rows if rng.random() < 0.5] for rows in (rows_a, rows_b))
            new_a = [(rng.randrange(6), f"{epoch + rng.randrange(2)}.{rng.randrange(3)}") for _ in range(6)]
            names = [f"{epoch + rng.randrange(2)}.{rng.randrange(3)}" for _ in range(20)]
            # Some texts are no numbers, so that a row fails while it is there.
            new_b = [(n, rng.choice(names), rng.choice([*names[:4], "17", str(epoch)])) for n in range(6)]
            for source, gone, new, rows in ((a, gone_a, new_a, rows_a), (b, gone_b, new_b, rows_b)):
                source.remove(gone)
                source.insert(new)
                left = Counter(rows) - Counter(gone) + Counter(new)  # type: ignore[operator]
                rows[:] = left.elements()
            engine.advance()
            with tk.Engine(autocommit=False) as other:
                same = declare(other)
                same[0].insert(rows_a)
                same[1].insert(rows_b)
                other.advance()
                assert answers(engine) == answers(other)
        assert core_of(engine).texts.count >= 12
        a.remove(rows_a)
        b.remove(rows_b)
        engine.advance()
        # The constants of the views, and nothing that the rows had.
        assert collected(engine) < 60


def test_texts_are_bounded_by_the_rows_that_are_there() -> None:
    with tk.Engine() as engine:
        table = engine.input("t", key=["k"], semantics="upsert", k=tk.Int, s=tk.String)
        longest = engine.install("lengths", table.select(n=tk.col("s").length()).count(by="n"))
        most = 0
        for epoch in range(120):
            table.insert([(k, f"row {k} in epoch {epoch}") for k in range(2000)])
            most = max(most, texts(engine))
        assert core_of(engine).texts.count > 3
        assert most < 120 * 2000 / 2  # beside the epochs; how soon depends on the machine
        assert collected(engine) == 2000
        assert sum(n for _, n in longest.rows()) == 2000


def test_the_folder_of_an_engine_loses_texts_as_well(tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from tektite.storage.command import app

    expected = []
    with tk.Engine(storage=tk.Storage(tmp_path, retention=0.0)) as engine:
        table = engine.input("t", key=["k"], semantics="upsert", k=tk.Int, s=tk.String)
        for epoch in range(60):
            expected = [(k, f"row {k} in epoch {epoch}") for k in range(1000)]
            table.insert(expected)
            engine.sync()
        assert collected(engine) == 1000
        for epoch in range(4):  # writes bring what is due in the storage
            table.insert([(0, f"again {epoch}")])
            engine.sync()
        expected[0] = (0, "again 3")
    stored = sum(live.section.rows for live in state_of(tmp_path).texts())
    assert stored < 20_000
    ran = CliRunner().invoke(app, ["vacuum", "--retention", "0", str(tmp_path)])
    assert ran.exit_code == 0, ran.output
    assert sum(live.section.rows for live in state_of(tmp_path).texts()) <= 2000
    with tk.Engine(storage=tmp_path) as engine:
        assert texts(engine) <= 2000
        assert sorted(engine.install("all", engine.table("t")).rows()) == sorted(expected)


def test_a_subscription_has_the_texts_of_changes_that_were_not_read() -> None:
    with eager(tk.Engine()) as engine:
        table = engine.input("t", s=tk.String)
        view = engine.install("all", table)
        changes = view.changes()
        for epoch in range(20):
            table.insert([(f"only in {epoch}",)])
            table.remove([(f"only in {epoch}",)])
        told = [(change.row[0], change.diff) for change in changes]
        assert sorted(told) == sorted((f"only in {epoch}", diff) for epoch in range(20) for diff in (1, -1))
        assert collected(engine) == 0


def test_a_subscription_that_nobody_holds_holds_nothing() -> None:
    with eager(tk.Engine()) as engine:
        table = engine.input("t", s=tk.String)
        view = engine.install("all", table)
        changes = view.changes()
        table.insert([("once",)])
        table.remove([("once",)])
        handle = changes._feed.handle
        assert handle in core_of(view).trace.handles
        del changes
        gc.collect()
        table.insert([("stays",)])
        assert handle not in core_of(view).trace.handles
        assert collected(engine) == 1


def test_a_callback_lives_as_long_as_its_view() -> None:
    with eager(tk.Engine()) as engine:
        table = engine.input("t", s=tk.String)
        told: list[str] = []
        engine.install("all", table).on_change(lambda changed: told.extend(changed["s"].to_pylist()))
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
        table = engine.input("t", s=tk.String)
        other = engine.input("other", s=tk.String)
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
        table = engine.input("t", s=tk.String)
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
        table = engine.input("t", s=tk.String)
        view = engine.install("all", table)
        table.insert([("read",)])
        core = core_of(view)
        with core.engine.dictionary.reading():
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
        table = engine.input("t", key=["k"], semantics="upsert", k=tk.Int, s=tk.String)
        upper = engine.install("upper", table.select("k", u=tk.col("s").upper()))
        kept = engine.install("kept", table.count(by="s"))
        stop, failures = threading.Event(), []

        def read(view: tk.View) -> None:
            try:
                changes = view.changes()
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
        stop.set()
        for thread in readers:
            thread.join()
        assert not failures
        assert core_of(engine).texts.count > 0
        assert sorted(upper.rows()) == [(100 * w + k, f"WRITER {w} ROW {k} AT 59") for w in (0, 1) for k in range(100)]
        gc.collect()
        assert collected(engine) <= 2 * 400


def test_an_engine_that_nobody_holds_goes_though_texts_are_being_collected() -> None:
    import weakref

    engine = tk.Engine()
    table = engine.input("t", s=tk.String)
    core = core_of(engine)
    with core.dictionary.reading():
        core.dictionary.is_due = True
        table.insert([("a",)])
        assert core.texts.is_active
    gone = weakref.ref(core)
    core.texts.finish(1.0)
    del engine, table, core
    for _ in range(50):
        gc.collect()
        if gone() is None:
            break
    assert gone() is None
