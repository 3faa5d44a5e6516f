"""The dictionary of a shard: reads the engine's texts, and records the texts that the shard adds.

The id of a text depends only on the text, so a shard computes ids without the engine. It reports new texts with its results. The
engine checks that no two texts have the same id before it uses the results. A worker reads stored texts once, when the first of
them is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pyarrow as pa

from tektite.errors import NotFoundError
from tektite.runtime.open_files import FilePlace, opened
from tektite.storage.known_texts import known_texts
from tektite.storage.store import Store
from tektite.values.dictionary import Dictionary
from tektite.values.text_space import TextTable
from tektite.values.words import Words

MANY = 1 << 20
"""Texts that a shard adds, including repetitions, before it removes duplicates."""


class ShardTexts:
    """The dictionary of a shard. `sections` are the places of the texts that the engine knows."""

    def __init__(self, store: Store, sections: Sequence[FilePlace]) -> None:
        self._store = store
        self._known = known_texts("shards", store.url, sections)
        self._texts = self._known.dictionary
        self._sections = list(sections)
        self._added: list[pa.Array[Any]] = []
        self._count = 0

    @property
    def lasting(self) -> Dictionary:
        """See `Dictionary.lasting`. A worker compiles a program once, not for every stage."""
        return self._texts

    def pin(self, words: Words) -> None:
        """See `Dictionary.pin`. Nothing is collected while a shard acts."""

    def adding(self) -> AbstractContextManager[Any]:
        """See `Dictionary.adding`."""
        return nullcontext()

    def note(self, section: FilePlace) -> None:
        """Record the place of texts that another shard has added."""
        self._sections.append(section)

    def added(self) -> pa.Array[Any]:
        """The texts added so far, without duplicates, in the order of their first occurrence."""
        if len(self._added) != 1:
            whole = pa.concat_arrays([pa.array([], pa.large_string()), *self._added])
            self._added = [whole.unique().drop_null()]
        return self._added[0]

    def forget(self) -> None:
        """Forget the texts added so far, because the engine knows them."""
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
        """See `Dictionary.text_table`. Texts may be missing that no `lookup` has asked for yet."""
        return self._texts.text_table()

    def _with_all(self, look_up: Any) -> Any:
        """Look something up, and read all stored texts first if some are missing."""
        try:
            return look_up()
        except NotFoundError:
            self._known.learn(self._sections, lambda section: opened(self._store, *section[:3]).texts(section[3]))
            return look_up()
