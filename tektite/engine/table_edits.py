"""Removes and changes the rows of a table for which a condition is true: `Table.delete` and `Table.set`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from tektite.engine.constants import given_values
from tektite.engine.write_set import WriteSet
from tektite.errors import ConflictError, IncorrectError
from tektite.query.collection import Collection
from tektite.values.python_values import python_list
from tektite.values.schema import Schema
from tektite.values.types import Timestamp, TimestampTz

if TYPE_CHECKING:
    from tektite.engine.input_core import InputCore


def rewrite(table: InputCore, matching: Collection, changed: Collection | None, verb: str) -> int | None:
    """Remove the rows of `matching`, and insert those of `changed`, as one write. Nobody else writes between reading and writing.
    The rows are those that the calling session sees.
    """
    if table.is_stream:
        raise ConflictError(f"cannot {verb}: table {table.name!r} is a stream, which keeps no rows to change or remove")
    engine = table.engine
    with engine.lock.held, engine.undisturbed():
        old = engine.collect(matching)
        new = None if changed is None else engine.collect(changed)
        if new is not None:
            check_moved_keys(table, old, new)

        def write(into: WriteSet) -> None:
            table.write(old, None, -1, verb, into)
            if new is not None:
                table.write(new, None, 1, verb, into)

        return engine.write(write)


def check_zones(name: str, given: Schema, declared: Schema) -> None:
    """Refuse to make timestamps of moments, or the other way round: which clock is meant is not said."""
    for column, kind in zip(given.names, given.types, strict=True):
        wanted = declared.types[declared.index(column)]
        if {kind, wanted} == {Timestamp, TimestampTz}:
            raise IncorrectError(
                f"set: column {column!r} of table {name!r} is {wanted}, found {kind}: say which clock is meant, by "
                f".dt.{'in' if kind == TimestampTz else 'from'}_zone('UTC') of an expression for example"
            )


def check_moved_keys(table: InputCore, old: pa.Table, new: pa.Table) -> None:
    """Refuse a change after which two rows of an upsert table would have one key: the later one would replace the other."""
    if table.semantics != "upsert" or not new.num_rows:
        return
    columns = list(table.key_columns)
    names = [table.schema.names[column] for column in columns]
    with table.engine.dictionary.adding():
        before, after = table.equal_words(old)[columns], table.equal_words(new)[columns]
        keys, places, counts = np.unique(after, axis=1, return_index=True, return_counts=True)
        if (counts > 1).any():
            raise _taken(table, names, new, int(places[np.argmax(counts > 1)]))
        known = {tuple(key) for key in before.T.tolist()}
        moved = [at for at, key in enumerate(after.T.tolist()) if tuple(key) not in known]
    if not moved:
        return
    wanted = given_values(table.facade.engine, new.take(moved).select(names), table.schema.select(*names))
    found = table.facade.join(wanted, names, "semi")
    rows = table.engine.collect(found)
    if rows.num_rows:
        raise _taken(table, names, rows, 0)


def _taken(table: InputCore, names: list[str], rows: pa.Table, at: int) -> ConflictError:
    row = rows.slice(at, 1)
    key = ", ".join(f"{name} = {python_list(row[name])[0]!r}" for name in names)
    return ConflictError(
        f"table {table.name!r}: there would be two rows with the key {key}. Nothing was written"
    ).about(condition="unique-violation")
