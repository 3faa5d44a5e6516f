"""UNIQUE: columns beside the primary key that no two rows of an input share.

An index by the columns, which queries share like any other, tells what is there; it is installed when rows are first written. It
follows the closed epochs, and an epoch that is about to close is compared with it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from tektite.dataflow.arrange import consolidate
from tektite.engine.constraints import columns_text
from tektite.errors import ConflictError, TransactionConflict
from tektite.kernels.operators.upsert import first_repeated
from tektite.query.columns import with_equal_keys
from tektite.query.derived import derived
from tektite.storage.description import UniqueConstraint
from tektite.trace.batch import Batch
from tektite.trace.chunk import Chunk
from tektite.trace.records import Version
from tektite.trace.trace import split_at
from tektite.values.equal_keys import key_words
from tektite.values.words import NULL, Words

if TYPE_CHECKING:
    from tektite.engine.epochs import Batches
    from tektite.engine.input_core import InputCore
    from tektite.engine.view_core import ViewCore


def check_unique_keys(source: InputCore, batches: Batches, at: int | None = None) -> None:
    """Refuse batches that, with what the input holds or held at a time, give two rows the same values of unique columns."""
    found = [batch.to_array() for batch in batches if batch is not None and batch.n]
    if not found or not source.rules.checked:
        return
    width = len(source.columns)
    words = np.concatenate(found, axis=1)
    rows = np.empty_like(words)
    rows[list(source.columns)] = words[:width]
    rows[width:] = words[width:]
    for unique in source.declared.uniques:
        check_unique(source, unique, rows, at)


def check_unique(source: InputCore, unique: UniqueConstraint, rows: Words, at: int | None) -> None:
    """Compare rows (columns in the schema's order, time, multiplicity) with what the input holds."""
    key = [source.schema.index(column) for column in unique.columns]
    width = len(source.schema.names)
    rows = rows[:, np.all(rows[key] != NULL, axis=0)]
    for column in key:
        rows[column] = key_words(rows[column], source.schema.types[column], source.engine.dictionary)
    if not rows.shape[1] or not np.any(rows[width + 1] > 0):
        return
    order = [*key, *(column for column in range(width) if column not in key), width, width + 1]
    batch = consolidate([Chunk.of_array(np.ascontiguousarray(rows[order]))], (width, 1, 1), 0)
    held = Version(tuple(held_batches(source, unique, at)))
    row = first_repeated(batch.at, len(key), width, held.table)
    if row < 0:
        return
    words = batch.slice(row, row + 1).to_array()[:, 0]
    shown = np.empty_like(words)
    shown[order] = words
    values = columns_text(source.schema, key, shown, source.engine.dictionary)
    raise (
        ConflictError(
            f"table {source.name!r}: there would be two rows with {values} at time {shown[width]}, which {unique} "
            f"forbids (constraint {unique.name!r}). Nothing was written"
        )
        .about(condition="unique-violation")
        .about(table=source.name, columns=list(unique.columns), constraint=unique.name)
    )


def held_batches(source: InputCore, unique: UniqueConstraint, at: int | None) -> list[Batch]:
    """The batches that the index by unique columns holds, or held at a time: all shards, one after the other."""
    core = source.engine
    if core.inputs.get(source.name) is not source or not source.low:
        return []  # it is new, and what it begins with is all that there is
    with core.lock.undisturbed:  # an epoch is being prepared, and none may close in between
        view = source.unique_indexes.get(unique.columns)
        if view is None or view.failure is not None or view.dropped:
            view = source.unique_indexes[unique.columns] = index_of(source, unique)
            core.coordinator.keep_here(view.flow)
        if not core.coordinator.finish(view.flow, math.inf):
            raise TransactionConflict(
                f"table {source.name!r}: another thread is about to bring the index that {unique} needs up to date. Nothing was "
                "written: try again"
            )
    trace = view.trace
    found = [batch for shard in range(trace.shards) for batch in trace.version(shard).batches]
    if at is None or at >= source.changed:
        return found
    return [split_at(batch, trace.data, at + 1)[0] for batch in found]


def index_of(source: InputCore, unique: UniqueConstraint) -> ViewCore:
    """Install the index by some columns."""
    core = source.engine
    name = core.hidden_name(f"unique_{source.name}_{'_'.join(unique.columns)}")
    places = [source.schema.index(column) for column in unique.columns]
    rows = derived(with_equal_keys(source.operator, places), source.facade)
    (view,) = core.install_together({name: rows.index_by(unique.columns)}, {name: unique.columns})
    return core.views[view.name]
