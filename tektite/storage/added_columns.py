"""Adds columns to stored inputs. Existing rows get NULL. Their files are rewritten once, in one version."""

from __future__ import annotations

from collections.abc import Callable

from tektite.storage.batchfile import BatchSection, FileInfo, write_file
from tektite.storage.description import InputDescription
from tektite.storage.files import Files
from tektite.storage.manifest import Live, ManifestState
from tektite.storage.store import Store
from tektite.trace.batch import Batch
from tektite.trace.chunk import Chunk, column_spec
from tektite.values.words import NULL


def gains_columns(stored: InputDescription, declared: InputDescription) -> bool:
    """Whether an input is declared as it is stored, with more columns at the end.

    >>> from tektite.values.schema import Schema
    >>> from tektite.values.types import Int
    >>> one, two = InputDescription(Schema(k=Int), ("k",)), InputDescription(Schema(k=Int, v=Int), ("k",))
    >>> gains_columns(one, two), gains_columns(two, one)
    (True, False)
    """
    width = len(stored.schema)
    return (
        len(declared.schema) > width
        and declared.schema.names[:width] == stored.schema.names
        and declared.schema.types[:width] == stored.schema.types
        and stored.rules == declared.rules
    )


def widened_batch(batch: Batch, width: int, more: int) -> Batch:
    """A batch of `width` data columns with `more` columns of NULL after them. Copies no row."""
    spec = column_spec([*range(width), *([-1] * more), width, width + 1], (NULL,))
    chunk = Chunk(batch.head, batch.memory).select(spec)
    return Batch(chunk.head, chunk.memory, batch.lower, batch.upper, batch.since)


def column_rewrite(
    store: Store, files: Files, name: str, stored: InputDescription, declared: InputDescription
) -> Callable[[ManifestState], tuple[list[Live], list[FileInfo]]]:
    """A function that writes an input's batches with its new columns: from a version to the sections that it replaces and
    the new files.
    """
    width, more = len(stored.schema), len(declared.schema) - len(stored.schema)

    def write(state: ManifestState) -> tuple[list[Live], list[FileInfo]]:
        lives = [live for shard in range(state.shards) for live in state.live(name, shard)]
        infos = []
        for place, live in enumerate(lives):
            batch = widened_batch(files.batch(state, live), width, more)
            rows = BatchSection(name, live.section.shard, declared.shape, batch)
            infos.append(write_file(store, state.epoch, "columns", place, [rows]))
        return lives, infos

    return write
