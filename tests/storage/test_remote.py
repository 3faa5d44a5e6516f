"""A storage that is no folder of this machine: an object store behind `pyarrow.fs`, with a bounded cache of its files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs as arrow_fs
import pytest

import tektite as tk
from tektite.storage.files import Files
from tektite.storage.manifest import Manifest
from tektite.storage.store import ObjectStore, PosixStore, open_store
from tests.support.stored import Twin, check, declare, play


class Bucket(arrow_fs.FileSystemHandler):
    """Objects in a folder, reached only through calls that an object store has. `puts` and `gets` count them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.gets: list[str] = []

    def path(self, name: str) -> Path:
        return self.root / name.lstrip("/")

    def create(self, name: str, data: bytes) -> bool:
        """A conditional put."""
        try:
            with self.path(name).open("xb") as file:
                file.write(data)
        except FileExistsError:
            return False
        return True

    def get_type_name(self) -> str:
        return "bucket"

    def normalize_path(self, path: str) -> str:
        return path

    def get_file_info(self, paths: list[str]) -> list[arrow_fs.FileInfo]:
        return [self._info(path) for path in paths]

    def _info(self, name: str) -> arrow_fs.FileInfo:
        path = self.path(name)
        if path.is_dir():
            return arrow_fs.FileInfo(name, arrow_fs.FileType.Directory)
        if not path.exists():
            return arrow_fs.FileInfo(name, arrow_fs.FileType.NotFound)
        status = path.stat()
        return arrow_fs.FileInfo(name, arrow_fs.FileType.File, size=status.st_size, mtime_ns=status.st_mtime_ns)

    def get_file_info_selector(self, selector: arrow_fs.FileSelector) -> list[arrow_fs.FileInfo]:
        folder = self.path(selector.base_dir)
        if not folder.is_dir():
            return []
        return [self._info(f"{selector.base_dir}/{name}") for name in os.listdir(folder)]

    def create_dir(self, path: str, recursive: bool) -> None:
        self.path(path).mkdir(parents=recursive, exist_ok=True)

    def delete_file(self, path: str) -> None:
        self.path(path).unlink()

    def open_input_stream(self, path: str) -> Any:
        self.gets.append(path)
        return pa.OSFile(str(self.path(path)))

    def open_output_stream(self, path: str, metadata: Any) -> Any:
        return pa.OSFile(str(self.path(path)), "wb")

    def _unsupported(self, *_: Any) -> Any:
        raise NotImplementedError

    delete_dir = delete_dir_contents = delete_root_dir_contents = move = copy_file = _unsupported
    open_input_file = open_append_stream = _unsupported


def storage(bucket: Bucket, cache: Path, **options: Any) -> tk.Storage:
    filesystem = arrow_fs.PyFileSystem(bucket)
    return tk.Storage("engine", filesystem, bucket.create, cache=cache, **options)


def test_engine_on_an_object_store_finds_everything_again(tmp_path: Path) -> None:
    bucket = Bucket(tmp_path / "bucket")
    twin = Twin(2, 30)
    for start in (0, 10, 20):
        with tk.Engine(storage=storage(bucket, tmp_path / "cache"), autocommit=False) as engine:
            declare(engine)
            check(engine, twin)
            for epoch in range(start, start + 10):
                play(engine, twin, epoch)
                engine.sync()
            check(engine, twin)
    with tk.Engine(
        storage=tmp_path / "bucket" / "engine", autocommit=False
    ) as engine:  # the same files, on a file system
        check(engine, twin)


def test_second_engine_fences_the_first_by_conditional_puts(tmp_path: Path) -> None:
    bucket = Bucket(tmp_path / "bucket")
    twin = Twin(2, 30)
    first = tk.Engine(storage=storage(bucket, tmp_path / "cache"), autocommit=False)
    declare(first)
    play(first, twin, 0)
    first.sync()
    with tk.Engine(storage=storage(bucket, tmp_path / "cache"), autocommit=False) as second:
        play(first, twin, 1)
        with pytest.raises(tk.ConflictError, match="another engine"):
            first.sync()
        declare(second)
        play(second, twin, 1)
        second.sync()
        check(second, twin)
    with pytest.raises(tk.ConflictError):
        first.close()


def test_files_come_from_the_cache_which_stays_small(tmp_path: Path) -> None:
    bucket = Bucket(tmp_path / "bucket")
    cache = tmp_path / "cache"
    with tk.Engine(storage=storage(bucket, cache), autocommit=False) as engine:
        numbers = engine.create_table("numbers", {"n": tk.Int})
        for n in range(6):
            numbers.insert([(i,) for i in range(n * 1000, n * 1000 + 1000)])
            engine.advance()
            engine.sync()
    store = ObjectStore(arrow_fs.PyFileSystem(bucket), "engine", bucket.create)
    infos = list(Manifest.open(store).state.files.values())
    assert len(infos) == 6
    files = Files(store, cache, limit=3 * infos[0].length + 10)
    for info in infos:
        files.open(info).verify()
    assert sum(file.stat().st_size for file in cache.iterdir()) <= files.limit
    bucket.gets.clear()
    for info in infos[-2:]:
        files.open(info).verify()
    assert bucket.gets == []
    files.open(infos[0]).verify()
    assert len(bucket.gets) == 1


def test_object_that_changed_is_not_taken_into_the_cache(tmp_path: Path) -> None:
    bucket = Bucket(tmp_path / "bucket")
    with tk.Engine(storage=storage(bucket, tmp_path / "cache"), autocommit=False) as engine:
        engine.create_table("numbers", {"n": tk.Int}).insert([(i,) for i in range(100)])
        engine.advance()
    [batch] = (tmp_path / "bucket" / "engine" / "batches").iterdir()
    batch.write_bytes(batch.read_bytes()[:-30])
    with pytest.raises(tk.FaultError, match=batch.name):
        tk.Engine(storage=storage(bucket, tmp_path / "other cache"), autocommit=False)


def test_store_without_conditional_put_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    bucket = Bucket(tmp_path / "bucket")
    with pytest.raises(tk.UnsupportedError, match="create_if_absent"):
        tk.Engine(storage=tk.Storage("engine", arrow_fs.PyFileSystem(bucket)), autocommit=False)
    assert not (tmp_path / "bucket").exists()


class FsspecLike:
    """The one call of an fsspec file system that puts an object only if none is there."""

    def __init__(self, bucket: Bucket) -> None:
        self.bucket = bucket

    def pipe_file(self, path: str, data: bytes, mode: str) -> None:
        assert mode == "create"
        if not self.bucket.create(path, data):
            raise FileExistsError(path)


def test_fsspec_file_systems_bring_their_conditional_put(tmp_path: Path) -> None:
    bucket = Bucket(tmp_path)
    bucket.fs = FsspecLike(bucket)  # type: ignore[attr-defined]
    store = ObjectStore(arrow_fs.PyFileSystem(bucket), "engine")
    assert store.create("manifest/1", b"a")
    assert not store.create("manifest/1", b"b")
    assert store.read("manifest/1") == b"a"


def test_urls_and_local_file_systems_are_folders(tmp_path: Path) -> None:
    local = arrow_fs.LocalFileSystem()
    for store in (
        open_store(f"file://{tmp_path}/x"),
        open_store(tmp_path / "x"),
        open_store("x", arrow_fs.SubTreeFileSystem(str(tmp_path), local)),
    ):
        assert isinstance(store, PosixStore)
        assert store.root == tmp_path / "x"
