"""Files stay few beside the epochs, versions say what changed, and leases keep what readers need."""

from __future__ import annotations

import errno
import os
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import tektite as tk
from tektite.engine.core import core_of
from tektite.storage import compaction, epoch_writer
from tektite.storage.files import Files
from tektite.storage.leases import Lease
from tektite.storage.manifest import Manifest
from tektite.storage.store import PosixStore
from tektite.trace.chunk import Chunk
from tests.support.patience import until
from tests.support.stored import WORDS, Twin, declare, play, state_of


def test_files_stay_few_while_epochs_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(epoch_writer, "_CLEAN_EVERY", 16)
    counts: Counter[Any] = Counter()
    bound = compaction.FAN * (compaction.level(6000) + 1)

    def few_sections() -> bool:
        state = state_of(tmp_path)
        return len(state.live("numbers", 0)) < bound and len(state.texts()) < bound

    def few_files() -> bool:
        return len(os.listdir(tmp_path / "batches")) < 4 * bound and len(os.listdir(tmp_path / "manifest")) < 200

    with tk.Engine(storage=tk.Storage(tmp_path, retention=0.0), autocommit=False) as engine:
        numbers = engine.create_table("numbers", {"n": tk.Int, "label": tk.String})
        for n in range(600):
            rows = [(n * 10 + i, f"{WORDS[i % 7]}{n}") for i in range(10)]
            counts.update(rows)
            numbers.insert(rows)
            engine.advance()
            engine.sync()
            if n % 50 == 49:  # beside the epochs, when the writer has a turn
                until(few_sections)

        def are_few_after_an_epoch() -> bool:
            engine.advance()
            engine.sync()
            return few_files()

        until(are_few_after_an_epoch)
    with tk.Engine(storage=tmp_path, autocommit=False) as engine:
        assert engine.install("all", engine.table("numbers")).multiplicities() == counts


def test_large_batches_are_merged_beside_the_epochs(tmp_path: Path) -> None:
    import numpy as np

    expected = set()
    with tk.Engine(storage=tmp_path, autocommit=False) as engine:
        numbers = engine.create_table("numbers", {"n": tk.Int})
        for n in range(10):
            rows = np.arange(n * 20_000, (n + 1) * 20_000)
            expected.update(rows.tolist())
            numbers.insert(rows)
            engine.advance()
            engine.sync()
    assert len(state_of(tmp_path).live("numbers", 0)) < 10
    assert any("-merge-" in name for name in state_of(tmp_path).files)
    with tk.Engine(storage=tmp_path, autocommit=False) as engine:
        assert {n for (n,) in engine.install("all", engine.table("numbers")).rows()} == expected


def test_a_wish_for_work_that_comes_while_the_writer_looks_for_some_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It comes in the middle of a look that was wished for as well."""
    looks, due = [0], epoch_writer.EpochWriter._smallest_due

    def wished_again(writer: epoch_writer.EpochWriter) -> Any:
        found = due(writer)
        if writer._maintained[0] > 0:
            looks[0] += 1
            if looks[0] == 1:
                writer._maintained = (1, -1)
                writer.maintain()
        return found

    monkeypatch.setattr(epoch_writer.EpochWriter, "_smallest_due", wished_again)
    with tk.Engine(storage=tmp_path) as engine:
        engine.create_table("numbers", {"n": tk.Int}).insert([(1,)])
        engine.sync()
        while engine.idle():
            pass
        until(lambda: looks[0] >= 2)


class NoMerges(PosixStore):
    """A store that has no room for the results of merges."""

    full = True

    def write(self, name: str, parts: Any, durable: bool = True) -> None:
        if self.full and "-merge-" in name:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        super().write(name, parts, durable)


def test_epochs_go_on_while_merges_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = NoMerges(tmp_path)
    with tk.Engine(storage=tk.Storage(store), autocommit=False) as engine:
        numbers = engine.create_table("numbers", {"n": tk.Int})
        for n in range(40):
            numbers.insert([(n,)])
            engine.advance()
            assert engine.sync() == n + 1
        assert len(state_of(tmp_path).live("numbers", 0)) == 40
        assert state_of(tmp_path).version < 60  # nothing is committed for a merge that failed
        store.full = False
        monkeypatch.setattr(epoch_writer, "_AFTER_FAILURE", 0.0)  # of a merge that has not failed yet
        monkeypatch.setattr(core_of(engine).storage.writer, "_no_merge_before", 0.0)  # type: ignore[union-attr]
        for n in range(40, 50):
            numbers.insert([(n,)])
            engine.advance()
            engine.sync()
        until(lambda: len(state_of(tmp_path).live("numbers", 0)) < 20)
    with tk.Engine(storage=tmp_path, autocommit=False) as engine:
        assert len(engine.install("all", engine.table("numbers")).rows()) == 50


def test_versions_say_exactly_what_epochs_changed(tmp_path: Path) -> None:
    twin = Twin(13, 40)
    with tk.Engine(storage=tmp_path, autocommit=False) as engine:
        declare(engine)
        for epoch in range(40):
            play(engine, twin, epoch)
            if epoch % 3 == 0:
                engine.sync()
    store = PosixStore(tmp_path)
    files = Files(store)
    found: Counter[Any] = Counter()
    for _, change in Manifest(store).changes(after=0):
        for info in change.add:
            if "-merge-" in info.name:
                continue
            for place, section in enumerate(info.sections):
                if section.arrangement == "edges":
                    batch = files.open(info).batch(place)
                    for src, dst, time, diff in Chunk(batch.head, batch.memory).to_array().T.tolist():
                        found[(src, dst), time] += diff
    expected: Counter[Any] = Counter()
    for epoch, (old, new) in enumerate(pairwise(contents["edges"] for contents in twin.contents)):
        for row in old.keys() | new.keys():
            if new[row] != old[row]:
                expected[row, epoch] = new[row] - old[row]
    assert found == expected


def test_leased_version_keeps_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(epoch_writer, "_CLEAN_EVERY", 4)
    store = PosixStore(tmp_path)
    with tk.Engine(storage=tk.Storage(tmp_path, retention=0.0), autocommit=False) as engine:
        numbers = engine.create_table("numbers", {"n": tk.Int})
        for n in range(5):
            numbers.insert([(n,)])
            engine.advance()
            engine.sync()
        held = state_of(tmp_path)
        lease = Lease(store, held.version, 3600)
        for n in range(5, 200):
            numbers.insert([(n,)])
            engine.advance()
            engine.sync()
        there = set(os.listdir(tmp_path / "batches"))
        assert set(held.files) <= there
        assert Manifest(store).load(held.version) == held
        lease.release()

        def is_clean_after_an_epoch() -> bool:
            engine.advance()
            engine.sync()
            return not set(held.files) & set(os.listdir(tmp_path / "batches"))

        until(is_clean_after_an_epoch)
