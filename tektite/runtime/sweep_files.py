"""Sweep files: batches of memory as files of the storage's folder of sweeps, for as long as they live.

What is given to other processes lies in files: those of the storage, those that shards wrote before, and those written here
for what was in no file. Promise: a batch is written once, because batches never change, and its file goes when nothing of it is
used any longer.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from tektite.runtime.open_files import Place
from tektite.storage.batchfile import FOLDER, BatchSection, FileInfo, Mapped, Opened, Shape, write_file
from tektite.storage.files import Files
from tektite.storage.options import SWEEPS
from tektite.storage.store import Store
from tektite.trace.batch import Batch
from tektite.trace.chunk import Chunk

Used = tuple[int, Batch | Chunk, Shape]
"""Rows of a shard, with their data, time and diff columns."""


class SweepFiles:
    """The folder of sweeps of one engine's storage."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.files = Files(store, folder=SWEEPS)
        self._written: dict[int, tuple[weakref.ref[Any], _Written, int]] = {}
        self._live: weakref.WeakValueDictionary[str, Any] = weakref.WeakValueDictionary()

    def open(self, info: FileInfo) -> Opened:
        """A file that a shard wrote. It is deleted when nothing of it is used any longer."""
        known = info.name in self._live
        opened = self.files.open(info)
        if not known:
            self._live[info.name] = opened
            self._delete_after(opened, info.name)
        return opened

    def delete(self, names: Sequence[str]) -> None:
        """Delete what shards have sent each other."""
        self.store.delete([f"{SWEEPS}/{name}" for name in names])

    def tidy(self) -> None:
        """Delete what nobody uses: a part that was given up may have left something."""
        self.store.delete([f"{SWEEPS}/{name}" for name in self.store.sizes(SWEEPS) if name not in self._live])

    def clear(self) -> None:
        """Delete everything."""
        self.store.delete([f"{SWEEPS}/{name}" for name in self.store.sizes(SWEEPS)])

    def write_missing(self, used: Iterable[Used], epoch: int) -> None:
        """Have everything lie in a file: what does not is written, in one file for each shard."""
        missing: dict[int, dict[int, tuple[Batch | Chunk, Shape]]] = {}
        for shard, rows, shape in used:
            if self._place(rows) is None:
                missing.setdefault(shard, {})[id(rows.head)] = (rows, shape)
        for shard, batches in missing.items():
            self._write(epoch, shard, list(batches.values()))

    def place(self, rows: Batch | Chunk) -> Place:
        """Where rows lie that were kept."""
        found = self._place(rows)
        assert found is not None
        return found

    def _place(self, rows: Batch | Chunk) -> Place | None:
        """Where rows lie, if they do in a file that is there still."""
        memory = rows.memory
        if isinstance(memory, Mapped) and memory.head is rows.head:
            folder = SWEEPS if memory.opened.name in self._live else FOLDER
            if self._there(folder, memory.opened.name):
                return folder, memory.opened.name, memory.opened.info.length, memory.index
        known = self._written.get(id(rows.head))
        if known is not None and known[0]() is rows.head:
            return SWEEPS, known[1].info.name, known[1].info.length, known[2]
        return None

    def _write(self, epoch: int, shard: int, batches: Sequence[tuple[Batch | Chunk, Shape]]) -> None:
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
    """Rows as a batch, to be written."""
    return rows if isinstance(rows, Batch) else Batch(rows.head, rows.memory, (), (), ())


class _Written:
    """A file of batches that live in memory too."""

    def __init__(self, info: FileInfo) -> None:
        self.info = info
