"""Texts of a shard: what it looks up of the engine's dictionary, and what it has to add to it.

Ids follow from texts alone, so a shard may give a text its id without asking anyone; what it has met is reported with its
results, and the engine, which knows all texts, refuses two with one id before the results count. Stored texts are read when the
first one is asked for, once in the life of a worker.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import pyarrow as pa

from tektite.errors import NotFoundError
from tektite.runtime.open_files import Place, opened
from tektite.storage.store import Store
from tektite.values.dictionary import Dictionary, TextTable
from tektite.values.words import Words

MANY = 1 << 20
"""Texts that a shard has added, counted with repetitions, before it looks which of them are the same."""


@cache
def _known(url: str) -> tuple[Dictionary, set[Place]]:
    """What this process has met of the texts of a store, and the sections that it has read."""
    return Dictionary(), set()


class ShardTexts:
    """The dictionary of a shard. `sections` say where the texts are that the engine knows."""

    def __init__(self, store: Store, sections: Sequence[Place]) -> None:
        self._store = store
        self._texts, self._read = _known(store.url)
        self._sections = list(sections)
        self._added: list[pa.Array[Any]] = []
        self._count = 0

    @property
    def lasting(self) -> Dictionary:
        """See `Dictionary.lasting`: programs are compiled once in the life of a worker, not for every stage."""
        return self._texts

    def note(self, section: Place) -> None:
        """Another shard has added texts."""
        self._sections.append(section)

    def added(self) -> pa.Array[Any]:
        """What was added so far, each text once, in the order of its first time."""
        if len(self._added) != 1:
            whole = pa.concat_arrays([pa.array([], pa.large_string()), *self._added])
            self._added = [whole.unique().drop_null()]
        return self._added[0]

    def forget(self) -> None:
        """What was added so far is known to the engine."""
        self._added = []

    def add(self, texts: Any) -> Words:
        """See `Dictionary.add`."""
        return self.add_all([texts])[0]

    def add_all(self, columns: Sequence[Any]) -> list[Words]:
        """See `Dictionary.add_all`."""
        ids = self._texts.add_all(columns)
        for column in columns:
            chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
            self._added += [chunk.cast(pa.large_string()) for chunk in chunks]
            self._count += len(column)
        if self._count > MANY:
            self._count = 0
            self.added()
        return ids

    def lookup(self, ids: Words) -> pa.Array[Any]:
        """See `Dictionary.lookup`."""
        found: pa.Array[Any] = self._with_all(lambda: self._texts.lookup(ids))
        return found

    def lookup_chunks(self, ids: Words) -> list[pa.Array[Any]]:
        """See `Dictionary.lookup_chunks`."""
        found: list[pa.Array[Any]] = self._with_all(lambda: self._texts.lookup_chunks(ids))
        return found

    def text_table(self) -> TextTable:
        """See `Dictionary.text_table`. Texts that were not asked for yet may be missing: `lookup` brings them."""
        return self._texts.text_table()

    def _with_all(self, ask: Any) -> Any:
        try:
            return ask()
        except NotFoundError:
            for section in self._sections:
                if section not in self._read:
                    self._texts.add(opened(self._store, *section[:3]).texts(section[3]))
                    self._read.add(section)
            return ask()
