"""Stored texts that a process has read, for all who read the same storage.

Promise: the texts of a version are read once, and what the process keeps is at most about twice what the newest reader needs.
Who has been given a `KnownTexts` may use it for as long as it likes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterable
from typing import Any

from tektite.values.dictionary import Dictionary

FEWEST = 1 << 16
"""Texts that are not worth forgetting."""


class KnownTexts:
    """The texts of some sections of a storage."""

    def __init__(self) -> None:
        self.dictionary = Dictionary()
        self._read: dict[Hashable, int] = {}
        """The places of the sections that have been read, with the number of their texts."""

    def learn(self, places: Iterable[Hashable], read: Callable[[Any], Any]) -> None:
        """Have the texts of some sections. `read` gives the texts at a place."""
        for place in places:
            if place not in self._read:
                texts = read(place)
                self.dictionary.add(texts)
                self._read[place] = len(texts)

    def is_outdated(self, places: Iterable[Hashable]) -> bool:
        """Whether most of the texts are in none of some sections."""
        read = self._read
        needed = sum([read.get(place, 0) for place in places])
        return self.dictionary.texts - needed > max(FEWEST, needed)


_KNOWN: dict[tuple[str, str], KnownTexts] = {}
_LOCK = threading.Lock()


def known_texts(kind: str, url: str, places: Iterable[Hashable]) -> KnownTexts:
    """The texts of a storage that this process has loaded for readers of a kind, for a reader that needs those at some places."""
    with _LOCK:
        known = _KNOWN.get((kind, url))
        if known is None or known.is_outdated(places):
            known = _KNOWN[kind, url] = KnownTexts()
        return known
