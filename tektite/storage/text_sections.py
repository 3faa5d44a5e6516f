"""Stored texts: which of them some live batch needs, and files with these alone.

A version needs the texts of all ids in its live batches. A batch may hold rows that later ones cancel: their texts go once the
batches are merged. `live_texts` finds what is needed, and `TextCompaction` chooses when to look, so that an engine's folder has
at most about twice the texts that the engine has.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from tektite.storage.batchfile import TextSection, write_file
from tektite.storage.compaction import holds_history, merged_section
from tektite.storage.files import Files
from tektite.storage.manifest import Live, Manifest, ManifestChange, ManifestState
from tektite.values.dictionary import Dictionary, text_ids

FEWEST = 1 << 10
"""Texts that are not worth a look."""
ROWS_A_TEXT = 8
"""Batches of up to so many rows for each stored text are merged for the sake of their texts."""


def live_texts(
    files: Files, newest: Callable[[], ManifestState], sections: Sequence[Live], dictionary: Dictionary | None
) -> TextSection:
    """The texts of some sections that the dictionary of the engine has, or that a live batch needs, each once.

    A text that the engine removes from its dictionary is in no batch that it has not stored yet. So `newest` is asked for the
    newest version after the dictionary was.
    """
    state = newest()
    stored = [files.open(state.files[live.file]).texts(live.index) for live in sections]
    ids = [text_ids(texts) for texts in stored]
    kept, unknown = [], Dictionary()
    once = np.zeros(sum(map(len, ids)), bool)
    once[np.unique(np.concatenate([*ids, np.empty(0, np.int64)]), return_index=True)[1]] = True
    start = 0
    for texts, those in zip(stored, ids, strict=True):
        first = once[start : start + len(those)]
        start += len(those)
        known = first & (np.zeros(len(those), bool) if dictionary is None else dictionary.has(those))
        kept.append(texts.filter(pa.array(known)))
        unknown.add(texts.filter(pa.array(first & ~known)))
    unknown.begin_era()
    state = newest()
    for live in state.sections("batch"):
        place = 0
        batch = files.batch(state, live)
        while place >= 0:
            place = unknown.mark_rows(batch.at, place)
    for _ in unknown.sweep(unknown.era, unknown.mark()):
        pass
    needed = [chunk.cast(pa.large_string()) for chunk in unknown.since()[0].chunks]
    return TextSection(pa.chunked_array([*kept, *needed], pa.large_string()))


def small_batches(state: ManifestState, texts: int) -> list[list[Live]]:
    """The batches, by arrangement and shard, that are few enough rows to be merged for the sake of so many texts."""
    found = []
    for lives in state.batches().values():
        if holds_history(state, lives) and sum([live.section.rows for live in lives]) <= ROWS_A_TEXT * texts:
            found.append(lives)
    return found


def drop_unused_texts(manifest: Manifest, files: Files) -> int:
    """Rewrite the texts of a storage that nobody writes to, and merge batches for their sake. Returns how many texts are gone."""
    state = manifest.state
    before = sum([live.section.rows for live in state.texts()])
    if before <= FEWEST:
        return 0
    change = ManifestChange()
    for lives in small_batches(state, before):
        section = merged_section(files, state, lives)
        change.add.append(write_file(manifest.store, state.epoch, "merge", lives[0].section.shard, [section]))
        change.remove += lives
    if change.add:
        state = manifest.commit(change)
    section = live_texts(files, lambda: state, state.texts(), None)
    if len(section.texts) < before:
        info = write_file(manifest.store, state.epoch, "merge", 0, [section])
        manifest.commit(ManifestChange(add=[info], remove=[*state.texts()]))
    return before - len(section.texts)


class TextCompaction:
    """Chooses when an engine's stored texts are looked at, and when batches are merged for their sake."""

    def __init__(self) -> None:
        self._kept = 0
        """Texts that the last look has left."""
        self._merges: set[tuple[str, int]] = set()
        self._has_merged = False

    def due_texts(self, state: ManifestState, present: int) -> list[Live]:
        """All sections of texts, if they have twice as many as the engine, which has `present`, and as the last look left."""
        sections = state.texts()
        stored = sum([live.section.rows for live in sections])
        return sections if stored > 2 * max(present, self._kept, FEWEST) else []

    def due_batches(self, state: ManifestState) -> list[Live]:
        """Batches to merge because they have more texts than the engine. The next look follows when all of them are merged."""
        while self._merges:
            arrangement, shard = self._merges.pop()
            self._kept = self._kept if self._merges else 0
            lives = state.live(arrangement, shard)
            if holds_history(state, lives):
                return lives
        return []

    def look_again(self) -> None:
        """Look whatever the last look has left: the engine has time."""
        self._kept = 0
        self._has_merged = False

    def looked(self, state: ManifestState, kept: int, present: int) -> None:
        """A look at all texts has kept so many."""
        self._kept = kept
        self._has_merged = not self._has_merged and kept > 2 * max(present, FEWEST)
        found = small_batches(state, kept) if self._has_merged else []
        self._merges = {(lives[0].section.arrangement, lives[0].section.shard) for lives in found}
