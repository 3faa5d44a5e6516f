"""Batch files: what is written is what is read, the same rows are the same bytes, and damage is found before it is used."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tektite.dataflow.arrange import consolidate
from tektite.errors import FaultError, IncorrectError, UnsupportedError
from tektite.storage.batchfile import FORMAT, BatchSection, FileInfo, Opened, TextSection, open_file, write_file
from tektite.storage.files import Files
from tektite.storage.rows import WIDTHS, columns_of, head_over
from tektite.storage.store import PosixStore
from tektite.trace.batch import Batch
from tektite.trace.chunk import Chunk

SHAPE = (2, 1, 1)


def batch_of(columns: Any, low: int = 0, high: int = 1) -> Batch:
    rows = consolidate([Chunk.of_array(np.ascontiguousarray(columns, np.int64))], SHAPE, 0)
    return Batch(rows.head, rows.memory, ((low,),), ((high,),), ((low,),))


def some_rows(seed: int, n: int = 500) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(seed)
    return np.vstack(
        [rng.integers(0, 50, n), rng.integers(-(2**62), 2**62, n), rng.integers(0, 4, n), np.ones(n)]
    ).astype(np.int64)


def array_of(batch: Batch) -> Any:
    return Chunk(batch.head, batch.memory).to_array()


def written(store: PosixStore, *sections: BatchSection | TextSection) -> tuple[FileInfo, Path]:
    info = write_file(store, 3, "input", 0, sections)
    path = store.local(f"batches/{info.name}")
    assert path is not None
    return info, path


def test_sections_come_back_as_they_were(tmp_path: Path) -> None:
    batches = [batch_of(some_rows(seed), seed, seed + 4) for seed in range(3)]
    texts = pa.chunked_array([["a", "", "für"], ["x" * 1000]])
    sections = [*(BatchSection(f"t{i}", i, SHAPE, batch) for i, batch in enumerate(batches)), TextSection(texts)]
    info, path = written(PosixStore(tmp_path), *sections)
    opened = open_file(path, FileInfo.from_json(info.to_json()))
    assert opened.sections == info.sections
    for i, batch in enumerate(batches):
        found = opened.batch(i)
        assert np.array_equal(array_of(found), array_of(batch))
        assert (found.lower, found.upper, found.since) == (batch.lower, batch.upper, batch.since)
        assert (info.sections[i].arrangement, info.sections[i].shard, info.sections[i].rows) == (f"t{i}", i, batch.n)
    assert opened.texts(3).to_pylist() == texts.to_pylist()
    opened.verify()


@pytest.mark.parametrize("texts", [[], [""], ["", ""]])
def test_texts_may_be_none_or_empty(tmp_path: Path, texts: list[str]) -> None:
    info, path = written(PosixStore(tmp_path), TextSection(pa.chunked_array([texts], pa.string())))
    assert open_file(path, info).texts(0).to_pylist() == texts


def test_slice_of_texts_is_written_alone(tmp_path: Path) -> None:
    whole = pa.array(["one", "two", "three", "four"])
    info, path = written(PosixStore(tmp_path), TextSection(pa.chunked_array([whole[1:3]])))
    assert open_file(path, info).texts(0).to_pylist() == ["two", "three"]


@pytest.mark.parametrize("rows", [500, 300_000])
def test_columns_are_aligned_and_used_without_a_copy(tmp_path: Path, rows: int) -> None:
    """Small files are read, large ones mapped."""
    info, path = written(PosixStore(tmp_path), BatchSection("t", 0, SHAPE, batch_of(some_rows(1, rows))))
    opened = open_file(path, info)
    start = np.frombuffer(opened._bytes, np.uint8).ctypes.data
    for address, stored, _ in opened.batch(0).head[3:].reshape(4, 3).tolist():
        assert not stored or (address % 64 == 0 and start < address < start + info.length)


def test_opened_file_is_shared_while_somebody_uses_it(tmp_path: Path) -> None:
    store = PosixStore(tmp_path)
    sections = [BatchSection("t", shard, SHAPE, batch_of(some_rows(seed))) for shard, seed in ((0, 1), (1, 2))]
    info, _ = written(store, *sections)
    files = Files(store)
    batch = files.open(info).batch(0)
    assert files.open(info) is files.open(info)
    del batch


class WithoutLinks(PosixStore):
    def link(self, temporary: Path, target: Path) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))


def test_file_system_without_links_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="no hard links"):
        WithoutLinks(tmp_path).create("manifest/1", b"")


def test_same_rows_are_the_same_file_however_they_were_computed(tmp_path: Path) -> None:
    store = PosixStore(tmp_path)
    rows = some_rows(5)
    rows[0] = 7
    constant = batch_of(rows)
    stored = array_of(constant)  # every column stored, though two of them are constant
    head, keep = head_over(constant.n, list(stored))
    other = Batch(head, keep, constant.lower, constant.upper, constant.since)
    shuffled = batch_of(rows[:, np.random.default_rng(0).permutation(rows.shape[1])])
    names = {written(store, BatchSection("t", 0, SHAPE, batch))[0].name for batch in (constant, other, shuffled)}
    assert len(names) == 1
    assert list(store.sizes("batches")) == list(names)


@pytest.mark.parametrize("width", WIDTHS)
def test_narrow_columns_are_read(width: int) -> None:
    most = 2 ** (8 * width - 1) - 1
    column = np.array([-1 - most, 0, 5, most, 0, 0, 0, 0], WIDTHS[width])[:4]
    head, keep = head_over(4, [column, 9])
    assert Chunk(head, keep).to_array().tolist() == [[-1 - most, 0, 5, most], [9, 9, 9, 9]]
    found, constant = columns_of(head, keep)
    assert constant == 9
    assert not isinstance(found, int) and found.dtype == WIDTHS[width]
    assert found.tolist() == column.tolist()


def test_files_are_as_narrow_as_the_words_allow(tmp_path: Path) -> None:
    n = 1000
    columns = np.vstack([np.arange(n), np.arange(n) * 2**20, np.full(n, 7), np.ones(n)]).astype(np.int64)
    info, path = written(PosixStore(tmp_path), BatchSection("t", 0, SHAPE, batch_of(columns)))
    assert info.length < n * (2 + 4) + 1000
    assert np.array_equal(array_of(open_file(path, info).batch(0)), columns)


def test_empty_batch_is_written_and_read(tmp_path: Path) -> None:
    info, path = written(PosixStore(tmp_path), BatchSection("t", 0, SHAPE, batch_of(np.empty((4, 0)))))
    assert open_file(path, info).batch(0).n == 0


@pytest.mark.parametrize("keep", [0, 1, 63, 64, 100, -200, -30, -24, -8, -1])
def test_cut_file_is_an_error_that_names_it(tmp_path: Path, keep: int) -> None:
    info, path = written(PosixStore(tmp_path), BatchSection("t", 0, SHAPE, batch_of(some_rows(2))))
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(FaultError, match=info.name):
        open_file(path, info)
    with pytest.raises(FaultError, match=info.name):  # and without knowing how long it should be
        Opened(path, info.name)


def test_every_flipped_byte_that_matters_is_found(tmp_path: Path) -> None:
    info, path = written(PosixStore(tmp_path), BatchSection("t", 0, SHAPE, batch_of(some_rows(3, 20))))
    content = path.read_bytes()
    for place in range(len(content)):
        path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        with pytest.raises((FaultError, UnsupportedError), match=info.name):
            opened = open_file(path, info)
            opened.batch(0)
            opened.verify()  # padding is covered by the hash in the name alone


def test_missing_file_is_an_error_that_names_it(tmp_path: Path) -> None:
    info, path = written(PosixStore(tmp_path), BatchSection("t", 0, SHAPE, batch_of(some_rows(2))))
    path.unlink()
    with pytest.raises(FaultError, match=f"{info.name}.*missing"):
        open_file(path, info)


def test_newer_format_asks_for_an_upgrade(tmp_path: Path) -> None:
    info, path = written(PosixStore(tmp_path), BatchSection("t", 0, SHAPE, batch_of(some_rows(2))))
    content = bytearray(path.read_bytes())
    content[8] = FORMAT + 1
    path.write_bytes(content)
    with pytest.raises(UnsupportedError, match="upgrade"):
        open_file(path, info)


def test_stage_must_be_a_file_name(tmp_path: Path) -> None:
    with pytest.raises(IncorrectError, match="slash"):
        write_file(PosixStore(tmp_path), 0, "a/b", 0, [])
