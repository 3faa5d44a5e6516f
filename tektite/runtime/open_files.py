"""Open files: the batch files that a worker, a process that runs shards, has open.

A worker keeps nothing between two shards but open files, by name: a file that was checked once need not be checked again.
"""

from __future__ import annotations

from collections import OrderedDict
from functools import cache

from tektite.storage.batchfile import FileInfo, Opened
from tektite.storage.files import Files
from tektite.storage.store import Store

Place = tuple[str, str, int, int]
"""Where a section lies: the folder, the name and the length of its file, and its number there."""

MOST = 256
"""Files that a worker keeps open: each that is mapped takes a file descriptor."""


class OpenFolder:
    """The files of one folder of a store, the last used of them kept open."""

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
    """A file of a store, opened by this worker now or before."""
    folders = _folders(store.url)
    if folder not in folders:
        folders[folder] = OpenFolder(store, folder)
    return folders[folder].get(name, length)


def opened_once(store: Store, folder: str, name: str, length: int) -> Opened:
    """A file of a store that nobody will ask for again: it is open for as long as something of it is used."""
    return Files(store, folder=folder).open(FileInfo(name, length, ()))
