"""Open files: the batch files that a worker process keeps open.

Open files are all that a worker keeps from one shard to the next. A file that was checked once need not be checked again.
"""

from __future__ import annotations

from collections import OrderedDict
from functools import cache

from tektite.storage.batchfile import FileInfo, Opened
from tektite.storage.files import Files
from tektite.storage.store import Store

FilePlace = tuple[str, str, int, int]
"""The place of a section: the folder, name and length of its file, and its number in the file."""

MOST = 256
"""The most files that a worker keeps open. Each takes a file descriptor."""


class OpenFolder:
    """The files of one folder of a store. Those used last stay open."""

    def __init__(self, store: Store, folder: str) -> None:
        self._files = Files(store, folder=folder)
        self._kept: OrderedDict[str, Opened] = OrderedDict()

    def get(self, name: str, length: int) -> Opened:
        """A file by its name."""
        found = self._kept.get(name)
        if found is None:
            found = self._kept[name] = self._files.open(FileInfo(name, length, ()))
            while len(self._kept) > MOST:
                self._kept.popitem(last=False)
        self._kept.move_to_end(name)
        return found


@cache
def _folders(url: str) -> dict[str, OpenFolder]:
    return {}


def opened(store: Store, folder: str, name: str, length: int) -> Opened:
    """A file of a store. It stays open for later calls."""
    folders = _folders(store.url)
    if folder not in folders:
        folders[folder] = OpenFolder(store, folder)
    return folders[folder].get(name, length)


def opened_once(store: Store, folder: str, name: str, length: int) -> Opened:
    """A file of a store that is needed once. It is open while something of it is used."""
    return Files(store, folder=folder).open(FileInfo(name, length, ()))
