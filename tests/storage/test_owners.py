"""One engine at a time owns a storage, and lets go of it with nothing lost, whether or not somebody closes it."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tektite as tk
from tektite.engine.core import core_of
from tektite.storage import compaction
from tektite.storage.store import PosixStore
from tests.support.patience import until
from tests.support.stored import PROGRAM, Twin, Unlocked, check, declare, play, run


def test_second_engine_is_refused_while_the_first_lives(tmp_path: Path) -> None:
    with (
        tk.Engine(storage=tmp_path, autocommit=False),
        pytest.raises(tk.ConflictError, match=f"in use by process {os.getpid()}"),
    ):
        tk.Engine(storage=tmp_path, autocommit=False)
    tk.Engine(storage=tmp_path, autocommit=False).close()


def test_process_that_was_forked_does_not_hold_the_storage(tmp_path: Path) -> None:
    engine = tk.Engine(storage=tmp_path, autocommit=False)
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.close(writer)
        os.read(reader, 1)  # lives until the parent is done
        os._exit(0)
    try:
        engine.close()
        tk.Engine(storage=tmp_path, autocommit=False).close()
    finally:
        os.write(writer, b".")
        os.close(reader)
        os.close(writer)
        assert os.waitpid(child, 0)[1] == 0


def test_engine_that_lost_its_storage_stops_and_the_other_goes_on(tmp_path: Path) -> None:
    twin = Twin(3, 20)
    zombie = tk.Engine(storage=tk.Storage(Unlocked(tmp_path)), autocommit=False)
    declare(zombie)
    for epoch in range(5):
        play(zombie, twin, epoch)
    zombie.sync()
    second = tk.Engine(storage=tk.Storage(Unlocked(tmp_path)), autocommit=False)
    declare(second)
    check(second, twin)
    play(zombie, twin, 5)
    with pytest.raises(tk.ConflictError, match="another engine .* has written"):
        zombie.sync()
    with pytest.raises(tk.ConflictError, match="another engine"):
        play(zombie, twin, 6)
    assert zombie.durable == 5
    for epoch in range(5, 20):
        play(second, twin, epoch)
    check(second, twin)
    second.close()
    with pytest.raises(tk.ConflictError):
        zombie.close()
    run(tmp_path, twin, 20, 20)


def test_what_was_durable_before_a_merge_lost_the_storage_is_said_to_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    twin = Twin(3, 12)
    with monkeypatch.context() as nothing_is_merged:
        nothing_is_merged.setattr(compaction, "FAN", 1_000_000)
        zombie = tk.Engine(storage=tk.Storage(Unlocked(tmp_path)), autocommit=False)
        declare(zombie)
        for epoch in range(10):
            play(zombie, twin, epoch)
            zombie.sync()
        with tk.Engine(storage=tk.Storage(Unlocked(tmp_path)), autocommit=False) as second:
            declare(second)
            play(second, twin, 10)
    monkeypatch.setattr(compaction, "FAN", 2)
    while zombie.idle():
        pass
    writer = core_of(zombie).storage.writer  # type: ignore[union-attr]
    until(lambda: writer.is_stopped)
    assert zombie.sync() == 10
    with pytest.raises(tk.ConflictError, match="another engine"):
        play(zombie, twin, 11)
    zombie.close()


def test_engine_without_storage_has_nothing_to_sync() -> None:
    with tk.Engine(autocommit=False) as engine:
        assert (engine.durable, engine.positions) == (0, {})
        with pytest.raises(tk.IncorrectError, match="no storage"):
            engine.sync()


def test_engine_that_nobody_closes_lets_go_of_its_storage(tmp_path: Path) -> None:
    engine = tk.Engine(storage=tmp_path, autocommit=False)
    engine.create_table("a", {"n": tk.Int}).insert([(1,)])
    engine.advance()
    del engine
    until(lambda: gc.collect() >= 0 and is_free(tmp_path))  # it is let go of by and by
    with tk.Engine(storage=tmp_path, autocommit=False) as engine:
        assert engine.install("all", engine.table("a")).rows() == [(1,)]


def is_free(folder: Path) -> bool:
    """Whether no engine has a storage."""
    try:
        PosixStore(folder).lock().release()  # type: ignore[union-attr]
    except tk.ConflictError:
        return False
    return True


class Collecting(PosixStore):
    """A store in which garbage collection happens while it writes, as it may in any thread."""

    def sync(self, file: Any) -> None:
        gc.collect()
        super().sync(file)


def test_engine_that_is_collected_by_its_own_writer_loses_nothing(tmp_path: Path) -> None:
    for n in range(3):
        engine = tk.Engine(storage=tk.Storage(Collecting(tmp_path)), autocommit=False)
        table = engine.create_table("a", {"n": tk.Int})
        table.insert([(n,)])
        engine.advance()
        del engine, table
        until(lambda: is_free(tmp_path))  # it is let go of by and by
    with tk.Engine(storage=tmp_path, autocommit=False) as engine:
        assert sorted(engine.install("all", engine.table("a")).rows()) == [(0,), (1,), (2,)]


def test_program_that_ends_without_closing_loses_nothing(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(tmp_path)], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    with tk.Engine(storage=tmp_path, autocommit=False) as engine:
        assert len(engine.install("all", engine.table("numbers")).rows()) == 10_000
