"""`tk.Storage`: where an engine keeps its data, and how."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tektite.errors import IncorrectError
from tektite.storage import batchfile, leases, manifest
from tektite.storage.clean_up import RETENTION
from tektite.storage.files import CACHE_BYTES, Files
from tektite.storage.manifest import Manifest
from tektite.storage.store import Create, Store, open_store
from tektite.unknown_options import explains_options

if TYPE_CHECKING:
    import pyarrow.fs as arrow_fs

SWEEPS = "sweeps"
"""The folder for files that tasks pass to each other and to their engine. The next engine ignores it."""

OURS = {batchfile.FOLDER, manifest.FOLDER, leases.FOLDER, SWEEPS, "lock", "checkpoints"}


@explains_options
@dataclass(frozen=True)
class Storage:
    """A place for data that outlives the process, for `Engine(storage=...)`. A path is enough if the defaults fit.

    * `url` is a path, a URL that `pyarrow.fs` reads, or a path within `filesystem`.
    * `create_if_absent(path, data)` creates an object only if it does not exist, and returns whether it did. It is needed
      for file systems without such a call.
    * Old files are deleted `retention` seconds after their last use.
    * Copies of remote files are kept in the folder `cache`, up to `cache_bytes`.
    * About `waiting_bytes` of closed epochs may wait in memory to be written. Beyond that, closing an epoch waits.

    >>> import tempfile
    >>> import tektite as tk
    >>> where = tk.Storage(tempfile.mkdtemp(), retention=60)
    >>> with tk.Engine(storage=where) as engine:
    ...     edges = engine.create_table("edges", {"src": tk.Int, "dst": tk.Int})
    ...     edges.insert([(1, 2)])
    0
    >>> with tk.Engine(storage=where) as engine:
    ...     engine.install("all", engine.table("edges")).rows()
    [(1, 2)]
    """

    url: str | Path | Store
    filesystem: arrow_fs.FileSystem | None = None
    create_if_absent: Create | None = None
    retention: float = RETENTION
    cache: Path | None = None
    cache_bytes: int = CACHE_BYTES
    waiting_bytes: int = 256 << 20

    def __post_init__(self) -> None:
        if not isinstance(self.url, str | Path) and not hasattr(self.url, "read"):
            raise IncorrectError(f"storage is a path or a URL, not {self.url!r}")
        for name in ("retention", "cache_bytes", "waiting_bytes"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
                raise IncorrectError(f"storage: {name} is a number from 0 on, not {value!r}")

    @staticmethod
    def of(where: str | Path | Storage) -> Storage:
        """Options from what a user passed."""
        if isinstance(where, Storage):
            return where
        if not isinstance(where, str | Path):
            raise IncorrectError(f"storage is a path, a URL or a tektite.Storage, not {where!r}")
        return Storage(where)

    def open(self) -> tuple[Manifest, Files]:
        """The manifest and the files of a Tektite storage or an empty place."""
        store = open_store(self.url, self.filesystem, self.create_if_absent)
        found = Manifest.open(store)
        if not found.state.version:
            foreign = sorted(set(store.top()) - OURS)
            if foreign:
                raise IncorrectError(
                    f"storage {store.url} is not a Tektite storage: it holds {', '.join(foreign[:3])}"
                    f"{' and more' if len(foreign) > 3 else ''}, but no manifest. Give an empty or a new folder"
                )
        return found, Files(store, self.cache, self.cache_bytes)
