"""Writes that fail delay what is durable and lose nothing: full disks, limits, power cuts."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import tektite as tk
from tektite.storage import epoch_writer
from tests.support.nightly import size
from tests.support.patience import PATIENCE, until
from tests.support.stored import PROGRAM, Full, PowerCut, Twin, check, declare, play, run, state_of


def test_full_disk_delays_durability_and_loses_nothing(tmp_path: Path) -> None:
    twin = Twin(11, 40)
    store = Full(tmp_path)
    engine = tk.Engine(storage=tk.Storage(store), autocommit=False)
    declare(engine)
    for epoch in range(10):
        play(engine, twin, epoch)
    engine.sync()
    store.at = store.steps + 3
    for epoch in range(10, 30):
        play(engine, twin, epoch)
    with pytest.raises(tk.FaultError, match=f"cannot be written.*{os.strerror(errno.ENOSPC)}"):
        engine.sync()
    assert engine.next_epoch == 30
    assert engine.durable < 30
    check(engine, twin)
    assert state_of(tmp_path).epoch == engine.durable
    store.full = False
    assert engine.sync() == 30
    for epoch in range(30, 40):
        play(engine, twin, epoch)
    engine.close()
    run(tmp_path, twin, 40, 40)


@pytest.mark.parametrize("step", range(1, 30))
def test_disk_that_is_full_at_any_step_is_only_a_delay(tmp_path: Path, step: int) -> None:
    twin = Twin(step, 8)
    store = Full(tmp_path)
    engine = tk.Engine(storage=tk.Storage(store), autocommit=False)
    declare(engine)
    store.at = store.steps + step
    for epoch in range(8):
        play(engine, twin, epoch)
    try:
        engine.sync()
    except tk.FaultError:
        store.full = False
        assert engine.sync() == 8
    engine.close()
    run(tmp_path, twin, 8, 8)


def test_epochs_that_cannot_be_written_are_bounded(tmp_path: Path) -> None:
    store = Full(tmp_path)
    engine = tk.Engine(storage=tk.Storage(store, waiting_bytes=10_000), autocommit=False)
    numbers = engine.create_table("numbers", {"n": tk.Int})
    engine.sync()
    store.full = True
    with pytest.raises(tk.FaultError, match="epochs wait in memory"):
        for n in range(1000):
            numbers.insert([(i,) for i in range(n * 100, n * 100 + 100)])
            engine.advance()
    epoch, waiting = engine.next_epoch, numbers.pending
    assert waiting == 100
    assert len(engine.install("all", numbers).rows()) == 100 * epoch
    store.full = False
    engine.sync()
    engine.advance()
    engine.close()
    with tk.Engine(storage=tmp_path, autocommit=False) as engine:
        assert len(engine.install("all", engine.table("numbers")).rows()) == 100 * (epoch + 1)


def on_a_full_disk(tmp_path: Path) -> tuple[Full, tk.Engine]:
    """A store that is full, and an engine whose first epoch waits for space in it."""
    store = Full(tmp_path)
    engine = tk.Engine(storage=tk.Storage(store), autocommit=False)
    numbers = engine.create_table("numbers", {"n": tk.Int})
    engine.sync()
    store.full = True
    numbers.insert([(1,)])
    engine.advance()
    return store, engine


def test_closing_on_a_full_disk_says_so_and_loses_nothing(tmp_path: Path) -> None:
    store, engine = on_a_full_disk(tmp_path)
    for _ in range(2):
        with pytest.raises(tk.FaultError, match=r"cannot be written.*stays open.*close\(discard=True\)"):
            engine.close()
    store.full = False
    engine.close()
    engine.close()
    with tk.Engine(storage=tmp_path, autocommit=False) as engine:
        assert engine.install("all", engine.table("numbers")).rows() == [(1,)]


def test_closing_on_a_full_disk_can_give_up_what_is_not_durable(tmp_path: Path) -> None:
    _, engine = on_a_full_disk(tmp_path)
    engine.close(discard=True)
    with tk.Engine(storage=tmp_path, autocommit=False) as engine:
        assert engine.next_epoch == 0 and engine.install("all", engine.table("numbers")).rows() == []


@pytest.mark.parametrize("seed", range(6))
def test_what_is_durable_survives_a_power_cut(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(epoch_writer, "_CLEAN_EVERY", 5)
    twin = Twin(seed, 30)
    store = PowerCut(tmp_path / "disk", tmp_path / "left")
    with tk.Engine(storage=tk.Storage(store, retention=0.0), autocommit=False) as engine:
        declare(engine)
        for epoch in range(30):
            play(engine, twin, epoch)
            if epoch % 6 == seed:
                durable = engine.sync()
                cut = tmp_path / f"cut {epoch}"
                shutil.copytree(store.left, cut)
                with tk.Engine(storage=cut, autocommit=False) as again:
                    assert again.next_epoch == durable
                    check(again, twin)


def test_file_size_limit_of_the_system_is_a_write_that_fails(tmp_path: Path) -> None:
    program = PROGRAM.replace("for n in", "resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))\nfor n in")
    # A writer that seldom has a turn would put everything into one file, which is too large.
    program = program.replace("    engine.advance()\n", "    engine.advance()\n    n % 20 or engine.sync()\n")
    program = "import resource, signal\nsignal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n" + program
    program += """
engine.sync()  # otherwise the writer may put everything into one file, the table as well
numbers.insert([(i,) for i in range(10_000, 50_000)])
engine.advance()
try:
    engine.close()
except tk.FaultError as error:
    print(error)
"""
    # The limit holds for bytecode, too, which Python would leave cut off for all who import the module later.
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
    arguments = [sys.executable, "-c", program, str(tmp_path)]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=120, env=environment)
    assert done.returncode == 0, done.stderr
    assert "cannot be written" in done.stdout
    assert os.strerror(errno.EFBIG) in done.stdout
    with tk.Engine(storage=tmp_path, autocommit=False) as engine:
        found = len(engine.install("all", engine.table("numbers")).rows())
        assert found == 100 * engine.next_epoch


def test_small_file_system_that_fills_up_delays_durability(tmp_path: Path) -> None:
    place = tmp_path / "small"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(place)], capture_output=True)
    if mounted.returncode:
        pytest.skip("only root may mount a small file system")
    try:
        engine = tk.Engine(storage=place / "engine", autocommit=False)
        numbers = engine.create_table("numbers", {"n": tk.Int})
        numbers.insert([(n,) for n in range(1000)])
        engine.advance()
        engine.sync()
        (place / "ballast").write_bytes(bytes(180 << 10))
        numbers.insert([(n * 2**33,) for n in range(1000, 15_000)])
        engine.advance()
        with pytest.raises(tk.FaultError, match=os.strerror(errno.ENOSPC)):
            engine.sync()
        assert (engine.next_epoch, engine.durable) == (2, 1)
        (place / "ballast").unlink()
        assert engine.sync() == 2
        engine.close()
        with tk.Engine(storage=place / "engine", autocommit=False) as engine:
            assert len(engine.install("all", engine.table("numbers")).rows()) == 15_000
    finally:
        subprocess.run(["umount", "-l", str(place)], check=False)


@pytest.mark.parametrize("error", [MemoryError(), OSError(errno.ENOSPC, "full")])
def test_a_merge_that_fails_is_tried_again_and_holds_up_no_epoch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    monkeypatch.setattr(epoch_writer, "_AFTER_FAILURE", 0.0)
    merge, failed = epoch_writer.EpochWriter._merge, list[Exception]()

    def fail_once(writer: epoch_writer.EpochWriter, inputs: Any) -> Any:
        if not failed:
            failed.append(error)
            raise error
        return merge(writer, inputs)

    monkeypatch.setattr(epoch_writer.EpochWriter, "_merge", fail_once)
    with tk.Engine(storage=tmp_path, autocommit=False) as engine:
        numbers = engine.create_table("numbers", {"n": tk.Int})
        for n in range(40):
            numbers.insert([(n,)])
            engine.advance()
            assert engine.sync(timeout=PATIENCE) == n + 1
        until(lambda: failed and len(list(state_of(tmp_path).sections("batch"))) < 40)
    with tk.Engine(storage=tmp_path, autocommit=False) as engine:
        assert sorted(engine.table("numbers").rows()) == [(n,) for n in range(40)]


def test_a_merge_for_which_no_thread_can_be_started_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refused: list[object] = []

    def refuse(pool: ThreadPoolExecutor, *work: Any) -> Any:
        if pool._thread_name_prefix.startswith(epoch_writer._THREAD) and len(refused) < 5:
            refused.append(work[0])
            raise RuntimeError("can't start new thread")
        return submit(pool, *work)

    submit = ThreadPoolExecutor.submit
    monkeypatch.setattr(ThreadPoolExecutor, "submit", refuse)
    with tk.Engine(storage=tmp_path, autocommit=False) as engine:
        numbers = engine.create_table("numbers", {"n": tk.Int})
        for n in range(40):
            numbers.insert([(n,)])
            engine.advance()
            assert engine.sync(timeout=PATIENCE) == n + 1
        until(lambda: len(list(state_of(tmp_path).sections("batch"))) < 40)
    assert len(refused) == 5


class WriterWithoutMemory:
    """Counts the lines of the package that the writer's thread executes, and raises a MemoryError from one of them on.

    `many` is how many lines in a row raise: one, or as many as are executed while there is no memory. `function` is the only one
    whose lines count, if it is given.
    """

    def __init__(self, at: int | None = None, many: int = 1, function: str = "") -> None:
        self.lines = 0
        self.where = ""
        self._at, self._many, self._function = at, many, function

    def __enter__(self) -> WriterWithoutMemory:
        threading.settrace(self._trace)
        return self

    def __exit__(self, *_: object) -> None:
        threading.settrace(None)  # type: ignore[arg-type]

    def _trace(self, frame: FrameType, event: str, _: Any) -> Any:
        if threading.current_thread().name != epoch_writer._THREAD:
            return None
        counts = frame.f_code.co_name == self._function if self._function else True
        if counts and event == "line" and frame.f_code.co_filename.startswith(tk.__path__[0]):
            self.lines += 1
            if self._at is not None and self._at <= self.lines < self._at + self._many:
                self.where = f"{frame.f_code.co_filename}:{frame.f_lineno}"
                raise MemoryError("injected")
        return self._trace


def play_without_memory(folder: Path, injected: WriterWithoutMemory) -> tuple[int, bool]:
    """Write six epochs, as far as that works; how many epochs were said to be durable, and whether something was refused."""
    durable, refused = 0, False
    with injected:
        engine = tk.Engine(storage=folder, autocommit=False)
    try:
        numbers, texts = engine.create_table("numbers", {"n": tk.Int}), engine.create_table("texts", {"t": str})
        for n in range(6):
            numbers.insert([(n,)])
            texts.insert([(str(n),)])
            engine.advance()
            if n % 2:
                durable = max(durable, engine.sync(timeout=PATIENCE))
    except tk.FaultError as error:
        refused = True
        assert "not everything was durable after" not in str(error), injected.where  # somebody waits for nothing
    try:
        engine.close()
        durable = 6 if not refused else durable
    except tk.FaultError:
        refused = True
        engine.close(discard=True)
    return durable, refused


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("many", [1, 12, 1_000_000])
def test_a_lack_of_memory_in_the_writer_is_told_and_tears_nothing(tmp_path: Path, many: int) -> None:
    counted = WriterWithoutMemory()
    assert play_without_memory(tmp_path / "count", counted) == (6, False)
    points = size("TEKTITE_INTERRUPTS", 12) * 2
    for at in range(1, counted.lines + 1, max(1, counted.lines // points)):
        injected = WriterWithoutMemory(at, many)
        durable, _ = play_without_memory(tmp_path / str(at), injected)
        with tk.Engine(storage=tmp_path / str(at), autocommit=False) as engine:
            found = engine.next_epoch
            assert found >= durable, injected.where
            if found:
                assert sorted(engine.table("numbers").rows()) == [(n,) for n in range(found)], injected.where
                assert sorted(engine.table("texts").rows()) == [(str(n),) for n in range(found)], injected.where


@pytest.mark.parametrize("function", ["_take", "_committed"])
def test_a_lack_of_memory_loses_nothing_that_the_writer_has_taken(tmp_path: Path, function: str) -> None:
    for at in range(1, 8):
        with WriterWithoutMemory(at, function=function) as injected:
            engine = tk.Engine(storage=tmp_path / str(at), autocommit=False)
        numbers = engine.create_table("numbers", {"n": tk.Int})
        for n in range(4):
            numbers.insert([(n,)])
            engine.advance()
            with suppress(tk.FaultError):  # it is tried again
                engine.sync(timeout=PATIENCE)
        assert engine.sync(timeout=PATIENCE) == 4, injected.where
        engine.close()
        with tk.Engine(storage=tmp_path / str(at), autocommit=False) as engine:
            assert sorted(engine.table("numbers").rows()) == [(n,) for n in range(4)], injected.where


def test_an_interrupt_does_not_let_the_writer_pass_for_ended(tmp_path: Path) -> None:
    """Python 3.11 and 3.12 take a thread for ended if an interrupt comes while it is asked whether it has."""
    engine = tk.Engine(storage=tmp_path)
    table = engine.create_table("t", {"n": tk.Int})
    lines = 0

    def interrupt(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal lines
        if frame.f_code.co_name == "_wait_for_tstate_lock" and event == "line":
            lines += 1
            if lines == 4:  # the lock that the thread holds is about to be tried
                raise KeyboardInterrupt
        return interrupt

    before = sys.gettrace()
    sys.settrace(interrupt)
    try:
        with suppress(KeyboardInterrupt):
            table.insert([(1,)])
    finally:
        sys.settrace(before)
    table.insert([(2,)])
    assert engine.sync(timeout=PATIENCE) == engine.next_epoch
    engine.close()
    with tk.Engine(storage=tmp_path) as again:
        assert (2,) in again.table("t").rows()
