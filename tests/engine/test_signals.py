"""Signals that come while views are brought up to date: no view fails, and each change is told once.

Signals are real, and sent to processes of their own where many of them come.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

import pyarrow as pa
import pytest

import tektite as tk
from tektite.dataflow.interrupts import held_signals, interruptible, keep_interrupt
from tests.support import signal_storm
from tests.support.nightly import by_day_or_night

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(("seed", "workers"), [(1, 1), (2, 2)])
def test_no_storm_of_ctrl_c_stops_a_view_or_loses_a_change(tmp_path: Path, seed: int, workers: int) -> None:
    command = [sys.executable, "-m", signal_storm.__name__]
    given = [seed, by_day_or_night(3, 300), 0.003, workers, tmp_path]
    done = subprocess.run([*command, *map(str, given)], capture_output=True, text=True, timeout=900, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith(" interrupts\n")


@pytest.fixture
def engine() -> Iterator[tk.Engine]:
    with tk.Engine(autocommit=False) as made:
        yield made


def functions_of(kind: str, table: tk.Table, called: Callable[[], None]) -> tk.Collection:
    """A query with a function that calls another one first."""
    if kind == "batches":

        def batch(rows: pa.Table) -> pa.Table:
            called()
            return rows

        return table.map_batches(batch, x=tk.Int)

    def total(_: object, rows: list[tuple[tuple[int], int]]) -> list[tuple[int]]:
        called()
        return [(sum(x * n for (x,), n in rows),)]

    return table.reduce(total, total=tk.Int)


@pytest.mark.parametrize("kind", ["batches", "groups"])
def test_ctrl_c_ends_a_function_and_the_next_call_calls_it_again(engine: tk.Engine, kind: str) -> None:
    calls = []

    def called() -> None:
        calls.append(None)
        if len(calls) == 2:
            os.kill(os.getpid(), signal.SIGINT)
            threading.Event().wait(60)

    table = engine.create_table("t", {"x": int})
    view = engine.install("v", functions_of(kind, table, called))
    reader = engine.install("w", engine.view("v").filter(tk.col(view.schema.names[0]) > 0))
    table.insert([(1,)])
    engine.advance()
    following = view.subscribe()
    table.insert([(2,)])
    with pytest.raises(KeyboardInterrupt):
        engine.advance()
    assert view.failure is None
    table.insert([(3,)])
    engine.advance()
    wanted = [(1,), (2,), (3,)] if kind == "batches" else [(6,)]
    assert sorted(view.rows()) == sorted(reader.rows()) == wanted
    told = []
    while (delta := following.poll(0)) is not None:
        told += delta.table.to_pylist()
    name = view.schema.names[0]
    rows = [row[name] for row in told for _ in range(row["diff"]) if row["diff"] > 0]
    gone = [row[name] for row in told if row["diff"] < 0]
    for value in gone:
        rows.remove(value)
    assert [(row,) for row in sorted(rows)] == wanted


def test_a_signal_handler_that_raises_waits_for_the_end_of_a_node(engine: tk.Engine) -> None:
    def late(number: int, frame: FrameType | None) -> None:
        raise TimeoutError

    table = engine.create_table("t", {"x": int})
    seen = []

    def see(changes: pa.Table) -> None:
        os.kill(os.getpid(), signal.SIGALRM)
        seen.append(changes.num_rows)

    view = engine.install("v", table.inspect(see))
    table.insert([(1,)])
    before = signal.signal(signal.SIGALRM, late)
    time.sleep(0.05)  # other signals than SIGINT are looked at every few milliseconds
    try:
        with pytest.raises(TimeoutError):
            engine.advance()
        assert signal.getsignal(signal.SIGALRM) is late
    finally:
        signal.signal(signal.SIGALRM, before)
    assert view.failure is None and view.rows() == [(1,)] and seen == [1]


def test_what_waits_is_raised_when_the_block_is_left_and_python_knows_of_nothing() -> None:
    handler = signal.getsignal(signal.SIGINT)
    passed = []
    with pytest.raises(KeyboardInterrupt), held_signals():
        with held_signals():
            os.kill(os.getpid(), signal.SIGINT)
            passed.append("signal")
        passed.append("inner block")
        with pytest.raises(KeyboardInterrupt):
            interruptible(lambda: passed.append("not called"))
        assert keep_interrupt(KeyboardInterrupt())
        passed.append("kept")
    assert passed == ["signal", "inner block", "kept"]
    assert signal.getsignal(signal.SIGINT) is handler
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)
        threading.Event().wait(60)
    assert not keep_interrupt(KeyboardInterrupt())


def test_a_function_called_in_a_block_may_enter_another_one() -> None:
    passed = []

    def function() -> None:
        with held_signals():
            os.kill(os.getpid(), signal.SIGINT)
            passed.append("held")
        passed.append("not reached")

    with held_signals(), pytest.raises(KeyboardInterrupt):
        interruptible(function)
    assert passed == ["held"]


def test_other_threads_hold_no_signals() -> None:
    found: list[object] = []

    def run() -> None:
        with held_signals():
            found.append(keep_interrupt(KeyboardInterrupt()))
            found.append(interruptible(lambda: 3))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert found == [False, 3]


def test_a_signal_that_comes_again_after_a_while_waits_no_longer() -> None:
    passed = []
    with pytest.raises(KeyboardInterrupt), held_signals():
        os.kill(os.getpid(), signal.SIGINT)
        passed.append("first")
        threading.Event().wait(3.1)
        os.kill(os.getpid(), signal.SIGINT)
        threading.Event().wait(60)
        passed.append("not reached")
    assert passed == ["first"]


def test_asyncio_and_forks_get_their_signals() -> None:
    program = """
import asyncio, os, signal, sys, time
import tektite as tk
from tektite.dataflow.interrupts import held_signals

engine = tk.Engine()
table = engine.create_table("t", {"x": int})
view = engine.install("v", table.count())

async def main():
    try:
        table.insert([(1,)])
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        print("cancelled", flush=True)
        raise

try:
    asyncio.run(main())
except KeyboardInterrupt:
    print("interrupted", flush=True)
with held_signals():
    child = os.fork()
    if not child:
        try:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(60)
        except KeyboardInterrupt:
            print("child", flush=True)
            os._exit(0)
assert os.waitpid(child, 0)[1] == 0
print(view.rows())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[:-1] == ["cancelled", "interrupted", "child", "[(1,)]"]


def test_what_waits_in_a_process_is_not_raised_in_its_fork() -> None:
    program = """
import os
from tektite.dataflow.interrupts import held_signals, keep_interrupt

try:
    with held_signals():
        assert keep_interrupt(KeyboardInterrupt("the parent's"))
        child = os.fork()
        if not child:
            with held_signals():
                pass
            os._exit(0)
        ended = os.waitpid(child, 0)[1]
except KeyboardInterrupt as error:
    print(error, ended)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "the parent's 0\n"


def test_a_view_whose_first_answer_is_interrupted_is_given_up(engine: tk.Engine) -> None:
    calls = []

    def called() -> None:
        calls.append(None)
        if len(calls) == 1:
            os.kill(os.getpid(), signal.SIGINT)
            threading.Event().wait(60)

    table = engine.create_table("t", {"x": int})
    table.insert([(1,)])
    engine.advance()
    with pytest.raises(KeyboardInterrupt):
        engine.install("v", functions_of("batches", table, called))
    assert "v" not in engine.views
    assert engine.install("v", functions_of("batches", table, called)).rows() == [(1,)]
