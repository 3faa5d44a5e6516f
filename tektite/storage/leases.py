"""Leases: keep the files of an older version for a reader.

A lease is a small file that names a version and a time at which it expires, so that a reader that died holds nothing for
long.
"""

from __future__ import annotations

import json
from uuid import uuid4

from tektite.errors import NotFoundError
from tektite.storage.steady_clock import steady_time
from tektite.storage.store import Store

FOLDER = "leases"


class Lease:
    """A hold on a version for `seconds`. `renew` extends it; `release` or the end of a `with` block ends it.

    >>> import tempfile
    >>> from tektite.storage.store import PosixStore
    >>> store = PosixStore(tempfile.mkdtemp())
    >>> with Lease(store, version=7, seconds=60):
    ...     leased_versions(store)
    [7]
    >>> leased_versions(store)
    []
    """

    def __init__(self, store: Store, version: int, seconds: float) -> None:
        self.store = store
        self.version = version
        self.seconds = seconds
        self._name: str | None = None
        self.renew()

    def renew(self) -> None:
        """Hold for `seconds` more, from this moment."""
        ends = steady_time() + self.seconds
        name = f"{FOLDER}/{uuid4().hex}.json"
        self.store.write(name, [json.dumps({"version": self.version, "ends": ends}).encode()])
        self.release()
        self._name = name

    def release(self) -> None:
        """End the hold; doing so twice is harmless."""
        if self._name is not None:
            self.store.delete([self._name])
            self._name = None

    def __enter__(self) -> Lease:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def leases(store: Store) -> dict[str, tuple[int, float]]:
    """The version and the end of every lease, by its file's name."""
    found = {}
    for name in store.sizes(FOLDER):
        if name.endswith(".json"):
            try:
                plain = json.loads(store.read(f"{FOLDER}/{name}"))
            except (NotFoundError, ValueError):
                continue  # released meanwhile, or not a lease
            found[f"{FOLDER}/{name}"] = (plain["version"], plain["ends"])
    return found


def leased_versions(store: Store) -> list[int]:
    """The versions that readers hold, ascending."""
    now = steady_time()
    return sorted({version for version, ends in leases(store).values() if ends > now})
