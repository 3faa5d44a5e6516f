"""Reads stored collections from any process: a version, or the changes between versions.

The snapshot of a version is the sum of its live batches. The changes between two versions are what was added minus what was
removed; merging rewrites batches but not their sum. A change has the time at which it happened. Contents that a reader sees
for the first time, or that another definition changed at once, count at the last closed epoch of the version.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from tektite.dataflow.arrange import consolidate
from tektite.errors import IncorrectError, NotFoundError
from tektite.storage.description import InputDescription, ViewDescription
from tektite.storage.files import Files
from tektite.storage.known_texts import KnownTexts, known_texts
from tektite.storage.manifest import Live, Manifest, ManifestState
from tektite.storage.store import Store, open_store
from tektite.trace.chunk import Chunk, column_spec
from tektite.values.dictionary import Dictionary
from tektite.values.schema import Schema
from tektite.values.words import Words

ROWS_AT_ONCE = 1 << 16


@dataclass(frozen=True)
class StoredCollection:
    """A stored collection: its columns, and which of them each stored column is."""

    name: str
    schema: Schema
    order: tuple[int, ...]


class StorageReader:
    """Reads a storage that another process may write."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.files = Files(store)
        self.manifest = Manifest.open(store)
        self._texts: KnownTexts | None = None
        if not self.manifest.state.version:
            raise NotFoundError(f"{store.url} is not a Tektite storage: it has no manifest")

    def collection(self, name: str, state: ManifestState | None = None) -> StoredCollection:
        """A view or an input by its name."""
        known = (state or self.manifest.state).arrangements
        if name not in known:
            raise NotFoundError(
                f"storage {self.store.url} holds no {name!r}; it holds {', '.join(map(repr, known)) or 'nothing'}: a view "
                "is there once it is persisted, view.persist()"
            )
        described = known[name]
        if described["kind"] == "input" and described["stream"]:
            raise IncorrectError(f"{name!r} is a stream: it keeps no history that could be read")
        found = (InputDescription if described["kind"] == "input" else ViewDescription).from_json(described)
        return StoredCollection(name, found.schema, found.column_order)

    def state(self, version: int | None) -> ManifestState:
        """The state of a version; by default the newest one."""
        return self.manifest.state if version is None else self.manifest.load(version)

    def snapshot(self, name: str, shard: int, version: int | None) -> tuple[Words, int]:
        """The rows of a shard at a version (columns, time, multiplicity), and their epoch."""
        state = self.state(version)
        epoch = state.lows.get(name, 0) - 1
        collection = self.collection(name, state)
        return summed(self._chunks(state, state.live(name, shard), collection), collection, epoch), epoch

    def changes(self, name: str, shard: int, after: int, upto: int) -> Iterator[Words]:
        """The changes of each version after `after`, up to `upto`: columns, time, diff. After version 0 these are the whole
        contents at `upto`.
        """
        before = ManifestState() if not after else self._state_or_none(after)
        if before is None:
            raise NotFoundError(
                f"storage {self.store.url} has deleted version {after}, so the changes since then are unknown: "
                "begin again, or read more often than old versions are deleted"
            )
        there = [version for version in self.manifest.versions() if after < version <= upto]
        if not after and there:
            there = [upto]  # the changes of a version that no reader has seen do not matter
        redefined = False
        for version in there:
            state = self.manifest.load(version)
            if name not in state.arrangements:
                redefined = True  # dropped, or between two definitions: the next one is compared with the last
                continue
            if not redefined and name in before.arrangements and before.shards != state.shards:
                before = state  # rows have moved to other shards, and nothing else: no version does both
                continue
            removed, added = apart(before.live(name, shard), state.live(name, shard), whole=redefined)
            epoch = state.lows.get(name, 0) - 1
            if added or removed:
                collection = self.collection(name, state)
                earlier = self.collection(name, before) if removed else collection
                if earlier.schema != collection.schema:
                    raise IncorrectError(
                        f"{name!r} has other columns from version {version} on, {collection.schema}, than before, "
                        f"{earlier.schema}: begin again with a new checkpoint"
                    )
                negative = [negated(chunk) for chunk in self._chunks(before, removed, earlier)]
                floor = epoch if removed or not after else 0
                words = summed([*self._chunks(state, added, collection), *negative], collection, floor)
                if words.shape[1]:
                    if interns(collection.schema):  # what is gone by the last version has its texts in earlier ones
                        self.dictionary(state)
                        if removed:
                            self.dictionary(before)
                    yield words
            before, redefined = state, False

    def shards(self, after: int, upto: int) -> int:
        """The most shards of any version from `after` to `upto`: each may have held rows that were removed since."""
        found = [self.state(upto).shards]
        before = self._state_or_none(after) if after else None
        if before is not None:
            found.append(before.shards)
            found += [change.shards or 0 for version, change in self.manifest.changes(after) if version <= upto]
        return max(found)

    def touched(self, name: str, after: int) -> int | None:
        """The newest version after `after` that changes a collection."""
        found = None
        for version, change in self.manifest.changes(after):
            sections = [section for info in change.add for section in info.sections]
            if name in change.arrangements or any(section.arrangement == name for section in sections):
                found = version
        return found

    def decode(
        self, collection: StoredCollection, words: Words, state: ManifestState, beside: dict[str, Words]
    ) -> pa.Table:
        """Words as a table; the columns `beside` them are integers."""
        texts = self.dictionary(state) if interns(collection.schema) else None
        table = collection.schema.decode(words, texts)
        for name, column in beside.items():
            table = table.append_column(name, pa.array(column))
        return table

    def dictionary(self, state: ManifestState) -> Dictionary:
        """The texts of a version, and of those that were asked for before: an id always means the same text."""
        places = {(live.file, live.index): live for live in state.texts()}
        if self._texts is None:
            self._texts = known_texts("readers", self.store.url, places)
        self._texts.learn(places, lambda place: self.files.open(state.files[place[0]]).texts(place[1]))
        return self._texts.dictionary

    def _state_or_none(self, version: int) -> ManifestState | None:
        try:
            return self.manifest.load(version)
        except NotFoundError:
            return None

    def _chunks(self, state: ManifestState, lives: list[Live], collection: StoredCollection) -> list[Chunk]:
        """Stored batches with columns in the collection's order."""
        width = len(collection.order)
        spec = column_spec([*map(collection.order.index, range(width)), width, width + 1])
        batches = [self.files.batch(state, live) for live in lives]
        return [Chunk(batch.head, batch.memory).select(spec) for batch in batches]


def negated(chunk: Chunk) -> Chunk:
    """The same rows with the opposite diffs."""
    words = chunk.to_array()
    words[-1] *= -1
    return Chunk.of_array(words)


def summed(chunks: list[Chunk], collection: StoredCollection, floor: int) -> Words:
    """The sum of chunks (columns, time, diff); times before `floor` count as `floor`."""
    width = len(collection.order)
    if not chunks:
        return np.empty((width + 2, 0), np.int64)
    return consolidate(chunks, (width, 1, 1), floor).to_array()


def apart(old: list[Live], new: list[Live], whole: bool) -> tuple[list[Live], list[Live]]:
    """The removed and the added sections, without merges of the same rows; all of them if `whole`."""
    if whole:
        return old, new
    removed = [live for live in old if not holds(new, live)]
    added = [live for live in new if not holds(old, live)]
    rewritten = [live for live in added if is_rewritten(live, removed)]
    spans = [(live.section.lower, live.section.upper) for live in rewritten]
    removed = [live for live in removed if not any(within(live, span) for span in spans)]
    return removed, [live for live in added if live not in rewritten]


def holds(lives: list[Live], one: Live) -> bool:
    """Whether a section is in a list."""
    return any(live.file == one.file and live.index == one.index for live in lives)


def within(live: Live, span: tuple[Any, Any]) -> bool:
    """Whether a section covers a part of an interval."""
    return bool(live.section.lower >= span[0] and live.section.upper <= span[1])


def is_rewritten(live: Live, removed: list[Live]) -> bool:
    """Whether a section holds only rows of removed ones: it covers the same interval as they do together."""
    span = (live.section.lower, live.section.upper)
    parts = [other for other in removed if within(other, span)]
    return bool(parts) and max(part.section.upper for part in parts) == span[1]


def open_stored(path: str) -> StorageReader:
    """A storage by its path or URL."""
    return StorageReader(open_store(path))


def batches_of(table: pa.Table, arrow: pa.Schema) -> Iterator[pa.RecordBatch]:
    """A table as record batches of a schema, none of them large."""
    yield from table.cast(arrow).combine_chunks().to_batches(max_chunksize=ROWS_AT_ONCE)


def interns(schema: Schema) -> bool:
    """Whether words of a table are ids of texts."""
    return any(type.interned for type in schema.types)
