"""Sweep files: temporary files for batches that other processes read, in the storage's folder of sweeps.

Other processes read batches from files: those of the storage, those that shards wrote, and those written here for batches that
are only in memory. Promise: a batch is written at most once, because batches do not change. A file is deleted once nothing of
it is used.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from tektite.runtime.open_files import FilePlace
from tektite.storage.batchfile import FOLDER, BatchSection, FileInfo, Mapped, Opened, write_file
from tektite.storage.files import Files
from tektite.storage.options import SWEEPS
from tektite.storage.store import Store
from tektite.trace.batch import Batch
from tektite.trace.chunk import Chunk
from tektite.trace.spine import BatchShape

Used = tuple[int, Batch | Chunk, BatchShape]
"""Rows of a shard, with their shape."""


class SweepFiles:
    """The folder of sweeps of one engine's storage."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.files = Files(store, folder=SWEEPS)
        self._written: dict[int, tuple[weakref.ref[Any], _Written, int]] = {}
        self._live: weakref.WeakValueDictionary[str, Any] = weakref.WeakValueDictionary()

    def open(self, info: FileInfo) -> Opened:
        """Open a file that a shard wrote. It is deleted once nothing of it is used."""
        known = info.name in self._live
        opened = self.files.open(info)
        if not known:
            self._live[info.name] = opened
            self._delete_after(opened, info.name)
        return opened

    def delete(self, names: Sequence[str]) -> None:
        """Delete files that shards sent each other."""
        self.store.delete([f"{SWEEPS}/{name}" for name in names])

    def tidy(self) -> None:
        """Delete files that nobody uses, such as those of a part that failed."""
        self.store.delete([f"{SWEEPS}/{name}" for name in self.store.sizes(SWEEPS) if name not in self._live])

    def clear(self) -> None:
        """Delete all files."""
        self.store.delete([f"{SWEEPS}/{name}" for name in self.store.sizes(SWEEPS)])

    def write_missing(self, used: Iterable[Used], epoch: int) -> None:
        """Write those of these rows that are in no file, into one file for each shard."""
        missing: dict[int, dict[int, tuple[Batch | Chunk, BatchShape]]] = {}
        for shard, rows, shape in used:
            if self._place(rows) is None:
                missing.setdefault(shard, {})[id(rows.head)] = (rows, shape)
        for shard, batches in missing.items():
            self._write(epoch, shard, list(batches.values()))

    def place(self, rows: Batch | Chunk) -> FilePlace:
        """The place of rows that are in a file."""
        found = self._place(rows)
        assert found is not None
        return found

    def _place(self, rows: Batch | Chunk) -> FilePlace | None:
        """The place of rows; None if they are in no existing file."""
        memory = rows.memory
        if isinstance(memory, Mapped) and memory.head is rows.head:
            folder = SWEEPS if memory.opened.name in self._live else FOLDER
            if self._there(folder, memory.opened.name):
                return folder, memory.opened.name, memory.opened.info.length, memory.index
        known = self._written.get(id(rows.head))
        if known is not None and known[0]() is rows.head:
            return SWEEPS, known[1].info.name, known[1].info.length, known[2]
        return None

    def _write(self, epoch: int, shard: int, batches: Sequence[tuple[Batch | Chunk, BatchShape]]) -> None:
        sections = [BatchSection("", shard, shape, as_batch(found)) for found, shape in batches]
        info = write_file(self.store, epoch, "ship", shard, sections, SWEEPS)
        written = self._live.get(info.name)
        if not isinstance(written, _Written):
            written = _Written(info)
            self._live[info.name] = written
            self._delete_after(written, info.name)
        for index, (batch, _) in enumerate(batches):
            key = id(batch.head)
            self._written[key] = (weakref.ref(batch.head, partial(self._forget, key)), written, index)

    def _forget(self, key: int, _: object) -> None:
        self._written.pop(key, None)

    def _delete_after(self, thing: object, name: str) -> None:
        weakref.finalize(thing, self.store.delete, [f"{SWEEPS}/{name}"]).atexit = False

    def _there(self, folder: str, name: str) -> bool:
        local = self.store.local(f"{folder}/{name}")
        return local.exists() if local is not None else name in self.store.sizes(folder)


def as_batch(rows: Batch | Chunk) -> Batch:
    """Rows as a batch that can be written."""
    return rows if isinstance(rows, Batch) else Batch(rows.head, rows.memory, (), (), ())


class _Written:
    """A file of batches that are also in memory."""

    def __init__(self, info: FileInfo) -> None:
        self.info = info
