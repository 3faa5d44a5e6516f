"""A storage opens without waiting for its texts: who needs one waits, and nobody else does."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tektite as tk
from tektite.engine.core import core_of
from tektite.values.dictionary import Dictionary

MANY = 50_000
SECONDS = 120


class Gate:
    """Keeps texts from being loaded until it is opened."""

    def __init__(self) -> None:
        self.opened = threading.Event()


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    made, load = Gate(), Dictionary._load

    def load_later(self: Dictionary, columns: Any, loading: Any) -> None:
        if len(columns):
            assert made.opened.wait(SECONDS)
        load(self, columns, loading)

    monkeypatch.setattr(Dictionary, "_load", load_later)
    yield made
    made.opened.set()


def filled(folder: Path) -> None:
    with tk.Engine(storage=folder) as engine:
        words = engine.create_table("words", {"n": tk.Int, "word": tk.String})
        numbers = np.arange(MANY)
        words.insert(pa.table({"n": numbers, "word": pa.array([f"word {n}" for n in numbers])}))
        engine.create_table("numbers", {"n": tk.Int}).insert([(1,)])


def test_who_needs_no_text_does_not_wait(tmp_path: Path, gate: Gate) -> None:
    gate.opened.set()
    filled(tmp_path)
    gate.opened.clear()
    with tk.Engine(storage=tmp_path) as engine:
        assert core_of(engine).dictionary.is_loading
        assert engine.sql("SELECT count(*), max(n) FROM words").rows() == [(MANY, MANY - 1)]
        engine.table("numbers").insert([(2,)])
        engine.sync(timeout=SECONDS)
        while engine.idle():
            pass
    with tk.Engine(storage=tmp_path) as engine:  # closed before anything was loaded
        assert core_of(engine).dictionary.is_loading
        with ThreadPoolExecutor(1) as threads:
            reading = threads.submit(engine.table("words").rows)
            assert not reading.done()
            gate.opened.set()
            assert sorted(reading.result(SECONDS)) == [(n, f"word {n}") for n in range(MANY)]
        assert sorted(engine.table("numbers").rows()) == [(1,), (2,)]


def test_texts_that_are_added_after_loading_are_stored_once(tmp_path: Path) -> None:
    filled(tmp_path)
    for number in range(3):
        with tk.Engine(storage=tmp_path) as engine:
            engine.table("words").insert([(MANY + number, f"new {number}"), (-number, "word 7")])
    with tk.Engine(storage=tmp_path) as engine:
        rows = engine.sql("SELECT n, word FROM words WHERE n < 1 OR n >= 50000").rows()
        assert sorted(rows) == [
            (-2, "word 7"), (-1, "word 7"), (0, "word 0"), (0, "word 7"),
            *[(MANY + n, f"new {n}") for n in range(3)],
        ]  # fmt: skip
        state = core_of(engine).storage.writer.manifest.state  # type: ignore[union-attr]
        assert sum(live.section.rows for live in state.texts()) <= MANY + 3


def test_texts_that_nobody_uses_go_after_loading(tmp_path: Path) -> None:
    filled(tmp_path)
    with tk.Engine(storage=tmp_path) as engine:
        engine.sql("DELETE FROM words WHERE n >= 10")
        while engine.idle():
            pass
        engine.sync(timeout=SECONDS)
        core = core_of(engine)
        with core.lock.held:
            assert core.texts.finish(SECONDS) and core.texts.finish(SECONDS)
        assert len(core_of(engine).dictionary) <= 2 * 10 + 10
        assert sorted(engine.table("words").rows()) == [(n, f"word {n}") for n in range(10)]
    with tk.Engine(storage=tmp_path) as engine:
        assert sorted(engine.table("words").rows()) == [(n, f"word {n}") for n in range(10)]


def test_texts_that_cannot_be_loaded_are_an_error_of_who_needs_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(tmp_path)

    def fail(self: Dictionary, columns: Any, loading: Any) -> None:
        raise MemoryError("no room")

    monkeypatch.setattr(Dictionary, "_load", fail)
    with tk.Engine(storage=tmp_path) as engine:
        assert engine.sql("SELECT count(*) FROM words").rows() == [(MANY,)]
        engine.table("numbers").insert([(2,)])
        for _ in range(2):
            with pytest.raises(tk.FaultError, match="texts of the storage could not be loaded: MemoryError: no room"):
                engine.table("words").rows()
            with pytest.raises(tk.FaultError, match="could not be loaded"):
                engine.table("words").insert([(1, "new")])
    monkeypatch.undo()
    with tk.Engine(storage=tmp_path) as engine:
        assert len(engine.table("words").rows()) == MANY
        assert sorted(engine.table("numbers").rows()) == [(1,), (2,)]
