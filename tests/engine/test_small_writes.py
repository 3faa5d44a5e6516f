"""A few rows are written by C, which gives what the general path gives: the same rows, and the same errors."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
from collections import Counter
from typing import Any

import numpy as np
import pytest

import tektite as tk
from tektite.engine import table as tables
from tektite.engine.core import core_of
from tektite.engine.pending_updates import PendingUpdates
from tektite.errors import TektiteError

INTEGERS: list[Any] = [0, 1, -1, 7, 2**63 - 1, -(2**63) + 1, None, 2**40]
FLOATS: list[Any] = [0.0, -0.0, 1.5, -2.25, float("inf"), float("-inf"), float("nan"), 5e-324, None]
TRUTHS: list[Any] = [True, False, None]
ODD: list[Any] = [-(2**63), 2**63, 2**70, "x", 1.0, True, np.int64(3), np.float64(0.5), 3, b"x", (1,), object]


def written_in_c(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each write that follows is done in C."""
    there, taken = tables.write_few, []

    def call(*arguments: Any) -> Any:
        found = there(*arguments)
        taken.append(found is not NotImplemented)
        return found

    monkeypatch.setattr(tables, "write_few", call)
    return taken


def declared(engine: tk.Engine) -> dict[str, tk.Table]:
    """Tables of every declaration that C takes or leaves."""
    columns = {"n": tk.Int, "x": tk.Float, "b": tk.Bool}
    numbers = {"n": tk.Int, "m": tk.Int}
    return {
        "plain": engine.create_table("plain", columns),
        "other order": engine.create_table("other order", columns, order_by=["b", "n"]),
        "by float": engine.create_table("by float", columns, order_by="x"),
        "key": engine.create_table("key", columns, primary_key="n"),
        "numbers": engine.create_table("numbers", numbers, order_by="m"),
        "one": engine.create_table("one", {"n": tk.Int}),
        "append": engine.create_table("append", numbers, mode="append"),
        "upsert": engine.create_table("upsert", numbers, mode="upsert", primary_key="n"),
        "set": engine.create_table("set", numbers, mode="set"),
        "text": engine.create_table("text", {"n": tk.Int, "s": tk.String}),
    }


def value(choice: random.Random, of: list[Any], oddness: float) -> Any:
    return choice.choice(ODD) if choice.random() < oddness else choice.choice(of)


def rows_for(table: tk.Table, choice: random.Random) -> Any:
    """Rows of some shape for a table; some of them are refused."""
    kinds: dict[str, list[Any]] = {"int": INTEGERS, "float": FLOATS, "bool": TRUTHS, "string": ["a", "b", None]}
    oddness = choice.choice([0, 0, 0, 0.05])
    of = [kinds[type.kind] for type in table.schema.types]
    count = choice.choice([0, 1, 1, 1, 2, 5])
    if len(of) < 3 and choice.random() < 0.4:
        array = np.array([[choice.randrange(-3, 4) for _ in of] for _ in range(count)], np.int64).reshape(
            count, len(of)
        )
        if count and choice.random() < 0.1:
            array[0, 0] = -(2**63)
        forms = [
            array,
            np.asfortranarray(array),
            np.repeat(array, 2, axis=0)[::2],
            array.astype(">i8"),
            array.astype(np.int32),
        ]
        found = choice.choice([forms[0], *forms])
        return found[:, 0] if len(of) == 1 and choice.random() < 0.5 else found
    rows: list[Any] = [tuple([value(choice, kind, oddness) for kind in of]) for _ in range(count)]
    if rows and choice.random() < 0.05:
        rows[0] = rows[0][:-1]
    if choice.random() < 0.1:
        rows = [list(row) for row in rows]
    return rows


def diffs_for(rows: Any, choice: random.Random) -> Any:
    count = len(rows) if choice.random() < 0.95 else len(rows) + 1
    numbers: list[Any] = [choice.choice([1, 1, 1, 2, -1, 0, 2**48]) for _ in range(count)]
    if numbers and choice.random() < 0.1:
        numbers[0] = choice.choice([2**48 + 1, True, None, 1.0, -(2**63)])
    if choice.random() < 0.5 and all(type(number) is int for number in numbers):
        return np.array(numbers, np.int64)
    return choice.choice([numbers, numbers, None, 1])


def outcome(seed: int, autocommit: bool) -> list[Any]:
    """What a program of writes gives, call by call."""
    choice, found = random.Random(seed), []
    with tk.Engine(autocommit=autocommit) as engine:
        for name, table in declared(engine).items():
            view = engine.install(f"all of {name}", table)
            for _ in range(25):
                rows = rows_for(table, choice)
                try:
                    match choice.choice(["insert", "insert", "remove", "update", "transaction"]):
                        case "insert":
                            found.append(table.insert(rows))
                        case "remove":
                            found.append(table.remove(rows))
                        case "update":
                            found.append(table.update(rows, diffs=diffs_for(rows, choice)))
                        case _:
                            with engine.transaction() as transaction:
                                found.append(table.insert(rows))
                            found.append(transaction.time)
                except (TektiteError, TypeError, ValueError, OverflowError) as error:
                    found.append((type(error), str(error)))
                found.append((name, table.pending))
                if choice.random() < 0.3:
                    try:
                        found.append(engine.advance())
                    except TektiteError as error:
                        found.append((type(error), str(error)))
                        table.rollback()
                    found.append(sorted([(repr(row), times) for row, times in view.multiplicities().items()]))
    return found


@pytest.mark.parametrize("autocommit", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_rows_that_c_writes_are_those_of_the_general_path(
    seed: int, autocommit: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = written_in_c(monkeypatch)
    found = outcome(seed, autocommit)
    assert Counter(taken)[True] > 20 and Counter(taken)[False] > 20
    monkeypatch.setattr(tables, "write_few", lambda *_: NotImplemented)
    assert found == outcome(seed, autocommit)


def test_rows_as_programs_write_them_are_written_in_c(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = written_in_c(monkeypatch)
    with tk.Engine(autocommit=False) as engine:
        made = declared(engine)
        made["plain"].insert([(1, 0.5, True), (None, None, None)])
        made["other order"].remove([(1, 0.5, True)])
        made["numbers"].insert(np.array([[1, 2], [3, 4]]))
        made["one"].update(np.array([1, 2]), diffs=np.array([1, -1]))
        made["one"].update([(5,)], diffs=[3])
        assert taken == [True] * 5
        made["key"].insert([(1, 0.5, True)])
        made["append"].insert([(1, 2)])
        made["upsert"].insert([(1, 2)])
        made["text"].insert([(1, "a")])
        made["one"].insert([])
        assert taken[5:] == [True, False, False, False, False]


def test_a_declaration_that_changes_changes_who_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    with tk.Engine() as engine:
        engine.sql("CREATE TABLE t (n int)")
        table = engine.table("t")
        taken = written_in_c(monkeypatch)
        table.insert([(None,)])
        table.delete(tk.lit(True))
        engine.sql("ALTER TABLE t ADD CHECK (n > 0)")
        with pytest.raises(TektiteError, match="check"):
            table.insert([(-1,)])
        table.insert([(1,)])
        assert taken == [True, False, False]
        assert table.rows() == [(1,)]


def test_what_has_ended_is_not_written_to() -> None:
    engine = tk.Engine()
    table = engine.create_table("t", {"n": tk.Int})
    table.insert([(1,)])
    table.finish()
    with pytest.raises(TektiteError, match="table 't' is closed"):
        table.insert([(2,)])
    other = engine.create_table("u", {"n": tk.Int})
    engine.close()
    with pytest.raises(TektiteError, match="its engine is closed"):
        other.insert([(2,)])


def test_a_write_waits_for_the_lock_and_gives_it_back() -> None:
    with tk.Engine(autocommit=False) as engine:
        table = engine.create_table("t", {"n": tk.Int})
        lock = core_of(engine).lock
        began, done = threading.Event(), threading.Event()

        def write() -> None:
            began.set()
            table.insert([(1,)])
            done.set()

        with lock.held:
            writer = threading.Thread(target=write)
            writer.start()
            began.wait()
            assert not done.wait(0.05)
            table.insert([(2,)])  # the thread that holds it writes
        writer.join()
        assert not lock.is_owned
        engine.advance()
        assert sorted(table.rows()) == [(1,), (2,)]


def test_a_write_that_lacks_memory_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with tk.Engine(autocommit=False) as engine:
        table = engine.create_table("t", {"n": tk.Int})
        table.insert([(1,)])

        def add(*_: Any) -> None:
            raise MemoryError

        with monkeypatch.context() as patch:
            patch.setattr(PendingUpdates, "add", add)
            with pytest.raises(MemoryError):
                table.insert([(2,)])
        assert not core_of(engine).lock.is_owned
        assert table.pending == 1
        engine.advance()
        assert table.rows() == [(1,)]


def test_an_epoch_that_fails_gives_the_lock_back() -> None:
    with tk.Engine() as engine:
        table = engine.create_table("t", {"n": tk.Int})
        table.insert([(1,)])
        with pytest.raises(TektiteError, match="a negative number of times"):
            table.remove([(2,)])
        assert not core_of(engine).lock.is_owned
        assert table.rows() == [(1,)]


WITHOUT_MEMORY = """
import _testcapi
import tektite as tk
from tektite.engine.core import core_of

failed = 0
for at in range(60):
    with tk.Engine(autocommit=False) as engine:
        table = engine.create_table("t", {"n": tk.Int, "x": tk.Float})
        view = engine.install("all", table)
        table.insert([(1, 0.5)])
        engine.advance()
        rows, expected = [(2, 1.5)], [(1, 0.5)]
        _testcapi.set_nomemory(at, at + 1)  # one allocation fails
        try:
            table.insert(rows)
        except MemoryError:
            failed += 1
        finally:
            _testcapi.remove_mem_hooks()
        assert not core_of(engine).lock.is_owned, at
        if table.pending:
            expected += rows
        engine.advance()
        assert sorted(view.rows()) == expected, at
assert failed > 2, failed
"""


def test_an_allocation_that_fails_leaves_all_of_a_write_or_nothing() -> None:
    pytest.importorskip("_testcapi")
    # a process of its own, since other threads of this one allocate, too
    done = subprocess.run([sys.executable, "-c", WITHOUT_MEMORY], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


WRITTEN_WITHOUT_MEMORY = """
import _testcapi
import tektite as tk

failed = views = 0
for at in range(0, 220, 5):
    with tk.Engine() as engine:
        table = engine.create_table("t", {"k": tk.Int, "v": tk.Int})
        counted = engine.create_view("counted", table.count(by="k"))
        subscription = counted.subscribe()
        table.insert([(1, 1), (2, 2)])
        _testcapi.set_nomemory(at, at + 1)  # one allocation fails
        try:
            table.insert([(3, 3)])
            expected = [(1, 1), (2, 2), (3, 3)]
        except MemoryError:
            failed += 1
            expected = [(1, 1), (2, 2)]
        finally:
            _testcapi.remove_mem_hooks()
        assert sorted(table.rows()) == expected, at
        views += counted.failure is None
        assert counted.failure is not None or sorted(counted.rows()) == [(k, 1) for k, _ in expected], at
assert failed > 2 and views > 2, (failed, views)
"""


def test_a_write_that_is_refused_for_lack_of_memory_has_not_happened() -> None:
    pytest.importorskip("_testcapi")
    done = subprocess.run([sys.executable, "-c", WRITTEN_WITHOUT_MEMORY], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


WRITTEN_WITHOUT_STACK = """
import sys
import tektite as tk

def call(depth, function):
    return call(depth - 1, function) if depth else function()

failed = 0
sys.setrecursionlimit(400)
for depth in range(360, 398):
    with tk.Engine() as engine:
        table = engine.create_table("t", {"k": tk.Int, "v": tk.Int})
        counted = engine.create_view("counted", table.count(by="k"))
        table.insert([(1, 1)])
        try:
            call(depth, lambda: table.insert([(2, 2)]))
            expected = [(1, 1), (2, 2)]
        except RecursionError:
            failed += 1
            expected = [(1, 1)]
        except tk.FaultError:  # the engine says that it is broken
            continue
        assert sorted(table.rows()) == expected, depth
        assert counted.failure is not None or sorted(counted.rows()) == [(k, 1) for k, _ in expected], depth
assert failed > 2, failed
"""


def test_a_write_that_is_refused_because_calls_are_too_deep_has_not_happened() -> None:
    done = subprocess.run([sys.executable, "-c", WRITTEN_WITHOUT_STACK], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


FAILING_WITHOUT_MEMORY = """
import _testcapi
import tektite as tk

raised = 0
for most in (3, 20):
    for at in range(105, 240, 10):
        with tk.Engine() as engine:
            table = engine.create_table("t", {"k": tk.Int, "v": tk.Int})
            counted = engine.create_view("counted", table.count(by="k"))
            counts = engine.create_view("counts", counted.select(number="count").count(by="number"))
            table.insert([(1, 1)])
            _testcapi.set_nomemory(at, at + most)  # so many allocations fail
            try:
                table.insert([(2, 2)])
            except MemoryError:
                pass
            finally:
                _testcapi.remove_mem_hooks()
            try:
                rows = table.rows()
            except tk.FaultError:  # the engine says that it is broken
                continue
            for view, expected in (counts, [(1, len(rows))]), (counted, [(k, 1) for k, _ in rows]):
                try:
                    assert sorted(view.rows()) == sorted(expected), (most, at, view)
                except tk.FaultError:
                    raised += 1
assert raised > 2, raised
"""


def test_a_view_that_has_no_memory_to_say_why_it_fails_answers_nothing_wrong() -> None:
    """Nor do those that read it."""
    pytest.importorskip("_testcapi")
    done = subprocess.run([sys.executable, "-c", FAILING_WITHOUT_MEMORY], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
