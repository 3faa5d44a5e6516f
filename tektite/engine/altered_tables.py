"""Puts a table with other columns, or another name, in place of one: its rows, its declaration and its files change at once.

Nobody may read the table meanwhile: a dataflow reads the columns that it was made for. What the table was before its last closed
epoch cannot be read afterwards, and who holds the former `Table` asks for it again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pyarrow as pa

from tektite.engine.input_core import InputCore
from tektite.engine.installation import drop_unique_indexes
from tektite.engine.names import check_name
from tektite.engine.write_set import WriteSet
from tektite.errors import ConflictError
from tektite.storage.batchfile import BatchSection, FileInfo, write_file
from tektite.storage.description import InputDescription
from tektite.storage.epoch_writer import DurableChange
from tektite.storage.manifest import Live, ManifestState

if TYPE_CHECKING:
    from tektite.engine.engine_core import EngineCore
    from tektite.engine.table import Table


def replace_table(
    core: EngineCore, stored: InputCore, declared: InputDescription, rows: pa.Table | None, name: str
) -> Table:
    """A table with another declaration and `rows`, under a name, in place of one. Rows that break the declaration are refused,
    and then nothing has changed.
    """
    with core.lock.held:
        core.lock.roll_forward()
        if core.writes.rows(stored) or core.scheduled.rows(stored):
            raise ConflictError(
                f"cannot alter table {stored.name!r}: rows wait to be committed; advance() or rollback() first"
            )
        drop_unique_indexes(core, stored)
        entry = core.entry_of(stored, "table", "alter")
        renamed = name != stored.name
        if renamed:
            check_name(core, name)
        made = InputCore(core, name, declared, max(stored.low - 1, 0))
        sections: list[BatchSection] = []
        if rows is not None and rows.num_rows:
            writes = WriteSet()
            made.write(rows, None, 1, "insert", writes)
            prepared = made.prepare(max(stored.low, 1), writes)
            prepared.make_ready()
            sections = prepared.rows_to_store()
            prepared.apply()
        made.low = stored.low
        change = DurableChange(core.epoch, arrangements={name: made.describe().to_json()}, lows={name: made.low})
        steps: list[Callable[[], object]] = [lambda: core.catalog.remove(entry), stored.release]
        if renamed:
            change.arrangements[stored.name] = None
            steps.append(lambda: core.inputs.pop(stored.name, None))
        storage = core.storage
        if storage is not None:
            position = storage.positions.get(stored.name)
            if renamed and position is not None:
                change.positions = {stored.name: None, name: position}
            # the files of a name that goes are dropped with it
            change.rewrite = rewrite_of(core, "" if renamed else stored.name, sections)
            storage.unclaimed.pop(stored.name, None)
        return core.add_input(made, *steps, core.to_storage(change))


def rewrite_of(
    core: EngineCore, former: str, sections: list[BatchSection]
) -> Callable[[ManifestState], tuple[list[Live], list[FileInfo]]]:
    """A function that puts sections in place of all that a version has of a table; of none if there is no name."""
    store = core.store
    assert store is not None

    def write(state: ManifestState) -> tuple[list[Live], list[FileInfo]]:
        lives = [live for shard in range(state.shards) for live in state.live(former, shard)]
        return lives, [write_file(store, state.epoch, "altered", at, [one]) for at, one in enumerate(sections)]

    return write
