"""Removes and changes the rows of a table for which a condition is true: `Table.delete` and `Table.set`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tektite.engine.write_set import WriteSet
from tektite.errors import ConflictError
from tektite.query.collection import Collection

if TYPE_CHECKING:
    from tektite.engine.input_core import InputCore


def rewrite(table: InputCore, matching: Collection, changed: Collection | None, verb: str) -> int | None:
    """Remove the rows of `matching`, and insert those of `changed`, as one write. Nobody else writes between reading and writing:
    the lock is held. The rows are those that the calling session sees.
    """
    if table.is_stream:
        raise ConflictError(f"cannot {verb}: table {table.name!r} is a stream, which keeps no rows to change or remove")
    engine = table.engine
    with engine.lock.held:
        engine.lock.roll_forward()
        old = engine.collect(matching)
        new = None if changed is None else engine.collect(changed)

        def write(into: WriteSet) -> None:
            table.write(old, None, -1, verb, into)
            if new is not None:
                table.write(new, None, 1, verb, into)

        return engine.write(write)
