"""Imports files that other processes wrote; adds columns to stored inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tektite.engine.epochs import AdoptedRows
from tektite.engine.input_core import InputCore
from tektite.engine.write_set import WriteSet
from tektite.errors import IncorrectError
from tektite.storage.added_columns import column_rewrite, widened_batch
from tektite.storage.batchfile import FileInfo
from tektite.storage.description import InputDescription
from tektite.storage.epoch_writer import DurableChange
from tektite.storage.open_storage import OpenStorage, Position
from tektite.trace.chunk import Chunk

if TYPE_CHECKING:
    from tektite.engine.engine_core import EngineCore
    from tektite.engine.table import Table


def adopt(
    core: EngineCore,
    source: InputCore,
    files: Sequence[FileInfo],
    epoch: int,
    positions: Mapping[str, Position | None],
    writes: int | None = None,
) -> None:
    """Close an epoch of every input that adds to `source` what others have written into files of the storage.

    The files' batches have the time `epoch` and cover all epochs from the source's open one to it. If they follow from what the
    source held, `writes` says how often that had changed. Either everything counts, positions included, or nothing does.
    """
    storage = core.storage
    if storage is None:
        raise IncorrectError("files are adopted from a storage, and this engine has none: Engine(storage=path)")
    with core.lock.held:
        core.lock.roll_forward()
        core.sync()
        low = source.low
        batches: list[Chunk | None] = [None] * core.workers
        more: list[tuple[int, Chunk]] = []
        with core.dictionary.alone:  # a stream encodes its rows without the engine's lock
            before = core.dictionary.mark()
            for info in files:
                opened = storage.writer.files.open(info)
                for place, section in enumerate(info.sections):
                    if section.kind == "texts":
                        core.dictionary.add(opened.texts(place))
                    else:
                        batch = opened.batch(place)
                        chunk = Chunk(batch.head, batch.memory)
                        if batches[section.shard] is None:
                            batches[section.shard] = chunk
                        else:
                            more.append((section.shard, chunk))
                        low = section.lower[0][0]
            after = core.dictionary.mark()
        going = core.open_inputs()
        target = max([core.epoch, *(i.low for i in going)]) + 1
        fits = (low, epoch) == (source.low, target - 1)  # others may have closed epochs meanwhile
        known = (before, after) if fits else None
        source.check_open("adopt files")
        together = WriteSet()
        together.adopted[source] = AdoptedRows(batches, more, list(files) if fits else [], low, epoch, writes)
        core.commit(together, positions=positions, known=known)


def widen(core: EngineCore, storage: OpenStorage, stored: InputCore, declared: InputDescription) -> Table:
    """The input with more columns in place of the one that was found: rows that are there have NULL in them."""
    entry = core.entry_of(stored, "table")
    before = stored.describe()
    made = InputCore(core, stored.name, replace(declared, closed=stored.closed), stored.low)
    width, more = len(before.schema), len(declared.schema) - len(before.schema)
    for shard in range(core.workers):
        batches = [widened_batch(batch, width, more) for batch in stored.trace.version(shard).batches]
        made.trace.restore(shard, batches, ((stored.low,),))
    writer = storage.writer
    rewrite = column_rewrite(writer.store, writer.files, made.name, before, declared)
    change = DurableChange(core.epoch, rewrite=rewrite, arrangements={made.name: made.describe().to_json()})
    return core.add_input(made, lambda: core.catalog.remove(entry), stored.release, core.to_storage(change))
