"""Maps batch files, through a bounded local cache for remote stores.

A file is copied into the cache at its first use and checked against the hash in its name. When the cache exceeds its limit,
the least recently used file is removed. Names by content make a cache safe to share between processes and stores.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from pathlib import Path
from uuid import uuid4
from weakref import WeakValueDictionary

from tektite.storage.batchfile import FOLDER, FileInfo, Opened, damage_error, open_file
from tektite.storage.manifest import ManifestState, SectionReference
from tektite.storage.store import TEMPORARY, Store
from tektite.trace.batch import Batch
from tektite.trace.batch_memory import BatchMemory

CACHE_BYTES = 8 << 30


def default_cache() -> Path:
    """The default folder for copies of remote files: `tektite/batches` in the user's cache folder."""
    base = os.environ.get("TEKTITE_CACHE_DIR") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "tektite"
    )
    return Path(base) / "batches"


class Files:
    """Opens the batch files of a store."""

    def __init__(self, store: Store, cache: Path | None = None, limit: int = CACHE_BYTES, folder: str = FOLDER) -> None:
        self.store = store
        self.folder = folder
        self.cache = cache or default_cache()
        self.limit = limit
        self.memory: BatchMemory | None = None
        """Where merged batches lie until they are written, if memory is limited."""
        self._open: WeakValueDictionary[str, Opened] = WeakValueDictionary()

    def open(self, info: FileInfo) -> Opened:
        """Open a file, or return it if it is open. Its length and footer have been checked."""
        found = self._open.get(info.name)
        if found is None:
            found = self._open[info.name] = open_file(self.path(info), info)
        return found

    def batch(self, state: ManifestState, reference: SectionReference) -> Batch:
        """The batch of a live section, mapped and checked."""
        return self.open(state.files[reference.file]).batch(reference.index)

    def path(self, info: FileInfo) -> Path:
        """A local file with the content of a stored one."""
        name = f"{self.folder}/{info.name}"
        local = self.store.local(name)
        if local is not None:
            return local
        cached = self.cache / info.name
        with suppress(FileNotFoundError):
            if cached.stat().st_size == info.length:
                os.utime(cached)
                return cached
        content = self.store.read(name)
        if not info.name.endswith(f"-{hashlib.sha256(content).hexdigest()[:32]}.batch"):
            raise damage_error(f"{self.store.url}/{name}", "its content does not have the hash in its name")
        self._make_room(len(content))
        temporary = self.cache / f"{TEMPORARY}{uuid4().hex}"
        try:
            temporary.write_bytes(content)
            os.rename(temporary, cached)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        return cached

    def _make_room(self, wanted: int) -> None:
        """Remove the least recently used copies until `wanted` more bytes fit. Mapped files stay readable."""
        self.cache.mkdir(parents=True, exist_ok=True)
        found = []
        for entry in os.scandir(self.cache):
            with suppress(FileNotFoundError):
                status = entry.stat()
                found.append((status.st_mtime, status.st_size, entry.path))
        total = sum(size for _, size, _ in found) + wanted
        for _, size, path in sorted(found):
            if total <= self.limit:
                break
            Path(path).unlink(missing_ok=True)
            total -= size
