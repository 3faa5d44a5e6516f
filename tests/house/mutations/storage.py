"""Faults of the storage: manifest, batch files, the epoch writer, clean-up."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any

import pytest

import tektite as tk
from tektite.storage import epoch_writer, manifest
from tektite.storage.batchfile import TextSection
from tektite.storage.files import Files
from tektite.storage.leases import Lease
from tektite.storage.manifest import Manifest
from tektite.storage.store import PosixStore
from tektite.storage.text_sections import drop_unused_texts
from tektite.trace.chunk import Chunk, column_spec
from tests.house.mutations.fault import Fault, altered, misled, nothing, returning
from tests.support.stored import Twin, Unlocked, check, declare, play

Check = Callable[[], None]


def in_a_folder(of: Callable[[Path], None]) -> Check:
    """A check that has a folder of its own."""

    @wraps(of)
    def run() -> None:
        with tempfile.TemporaryDirectory() as folder:
            of(Path(folder))

    return run


@contextmanager
def kept(folder: Path, **options: Any) -> Iterator[tuple[tk.Engine, tk.Table]]:
    """An engine on a storage with a table."""
    with tk.Engine(storage=folder, **options, autocommit=False) as engine:
        yield engine, engine.create_table("t", {"k": tk.Int, "s": tk.String})


ROWS = [(1, "ash"), (300, "beech"), (70_000, "cedar"), (2**40, "elm"), (None, None)]


@in_a_folder
def everything_is_found_again(folder: Path) -> None:
    with kept(folder) as (engine, table):
        table.insert(ROWS)
        engine.advance()
    with kept(folder) as (engine, table):
        assert sorted(engine.install("all", table).rows(), key=str) == sorted(ROWS, key=str)


@in_a_folder
def a_random_history_is_found_again(folder: Path) -> None:
    """With merges and clean-ups between the epochs."""
    twin = Twin(3, 24)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(epoch_writer, "_CLEAN_EVERY", 3)
        for start in (0, 12):
            with tk.Engine(storage=tk.Storage(folder, retention=0.0), autocommit=False) as engine:
                declare(engine)
                check(engine, twin)
                for epoch in range(start, start + 12):
                    play(engine, twin, epoch)
                    engine.sync()
        with tk.Engine(storage=folder, autocommit=False) as engine:
            check(engine, twin)


@in_a_folder
def a_dropped_table_is_empty_when_it_is_made_again(folder: Path) -> None:
    with kept(folder) as (engine, table):
        table.insert(ROWS)
        engine.advance()
        engine.drop("t")
        engine.create_table("t", {"k": tk.Int, "s": tk.String})
        engine.advance()
    with kept(folder) as (engine, table):
        assert engine.install("all", table).rows() == []


@in_a_folder
def of_two_engines_one_is_fenced(folder: Path) -> None:
    first = tk.Engine(storage=tk.Storage(Unlocked(folder)), autocommit=False)
    lost = first.create_table("t", {"k": tk.Int})
    first.advance()
    first.sync()
    with tk.Engine(storage=tk.Storage(Unlocked(folder)), autocommit=False) as second:
        second.create_table("t", {"k": tk.Int}).insert([(1,)])
        second.advance()
        second.sync()
        lost.insert([(2,)])
        with pytest.raises(tk.ConflictError):
            first.advance()
            first.sync()
    with pytest.raises(tk.ConflictError):
        first.close()


@in_a_folder
def a_flipped_byte_is_found(folder: Path) -> None:
    with kept(folder) as (engine, table):
        table.insert([(n, f"text {n}") for n in range(500)])
        engine.advance()
    path = max((folder / "batches").glob("*.batch"), key=lambda path: path.stat().st_size)
    content = bytearray(path.read_bytes())
    content[64] ^= 8
    path.write_bytes(content)
    with pytest.raises(tk.FaultError):
        tk.Engine(storage=folder, autocommit=False).close()


@in_a_folder
def a_changed_version_is_found(folder: Path) -> None:
    with kept(folder) as (engine, table):
        table.insert(ROWS)
        engine.advance()
    for path in (folder / "manifest").iterdir():
        path.write_bytes(path.read_bytes().replace(b'"epoch":1', b'"epoch":7'))
    with pytest.raises(tk.FaultError):
        tk.Engine(storage=folder, autocommit=False).close()


@in_a_folder
def what_sync_waits_for_is_durable(folder: Path) -> None:
    class Slow(PosixStore):
        def create(self, name: str, content: bytes) -> bool:
            time.sleep(0.05)
            return super().create(name, content)

    with tk.Engine(storage=tk.Storage(Slow(folder)), autocommit=False) as engine:
        table = engine.create_table("t", {"k": tk.Int})
        table.insert([(1,)])
        engine.advance()
        engine.sync()
        assert Manifest.open(PosixStore(folder)).state.epoch == 1


@in_a_folder
def a_lease_is_honoured(folder: Path) -> None:
    store = PosixStore(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(epoch_writer, "_CLEAN_EVERY", 2)
        patch.setattr(manifest, "CHECKPOINT_EVERY", 2)
        with tk.Engine(storage=tk.Storage(store, retention=0.0), autocommit=False) as engine:
            table = engine.create_table("t", {"k": tk.Int})
            engine.advance()
            engine.sync()
            version = Manifest.open(store).state.version
            with Lease(store, version, 60):
                for n in range(20):
                    table.insert([(n,)])
                    engine.advance()
                    engine.sync()
                engine.close()  # which waits for what is being deleted
                assert version in Manifest.open(store).versions()


@in_a_folder
def rows_move_with_the_number_of_shards(folder: Path) -> None:
    rows = [(n, f"text {n % 5}") for n in range(50)]
    with kept(folder) as (engine, table):
        table.insert(rows)
        engine.advance()
    with kept(folder, workers=3) as (engine, table):
        table.remove(rows[:25])
        engine.advance()
        assert sorted(engine.install("all", table).rows()) == rows[25:]


@in_a_folder
def a_column_that_is_gained_is_null(folder: Path) -> None:
    with tk.Engine(storage=folder, autocommit=False) as engine:
        engine.create_table("t", {"k": tk.Int}).insert([(1,)])
        engine.advance()
    with tk.Engine(storage=folder, autocommit=False) as engine:
        table = engine.create_table("t", {"k": tk.Int, "v": tk.Int})
        assert engine.install("all", table).rows() == [(1, None)]


@in_a_folder
def positions_are_kept_with_their_epoch(folder: Path) -> None:
    with kept(folder) as (engine, table):
        table.insert(ROWS)
        engine.advance(positions={"topic": {"offset": 7}})
    with kept(folder) as (engine, _):
        assert engine.positions == {"topic": {"offset": 7}}


@in_a_folder
def texts_of_rows_that_one_batch_gains_and_loses_go(folder: Path) -> None:
    many = 3000
    rows = [(n, f"text {n}") for n in range(many)]
    with kept(folder) as (engine, table):
        table.update(rows * 2, times=[0] * many + [1] * many, diffs=[1] * many + [-1] * many)
        engine.advance(2)
    store = PosixStore(folder)
    versions = Manifest.open(store)
    assert drop_unused_texts(versions, Files(store)) == many
    assert sum([live.section.rows for live in versions.state.texts()]) == 0


def zeros_behind(batch: Any, width: int, more: int) -> Any:
    chunk = Chunk(batch.head, batch.memory).select(column_spec([*range(width), *([-1] * more), width, width + 1], (0,)))
    return type(batch)(chunk.head, chunk.memory, batch.lower, batch.upper, batch.since)


STORAGE = "tektite.storage"
FAULTS = [
    Fault("columns are too narrow", f"{STORAGE}.rows fitting_width", altered(lambda width: max(width // 2, 1)),
          everything_is_found_again),
    Fault("texts are not written", f"{STORAGE}.epoch_writer EpochWriter._write_sections",
          misled(lambda self, sections, epoch: (self, [s for s in sections if not isinstance(s, TextSection)], epoch)),
          everything_is_found_again),
    Fault("files are merged without their last part", f"{STORAGE}.compaction merge_all",
          misled(lambda batches, shape, since, memory: (batches[:-1], shape, since, memory)), a_random_history_is_found_again),
    Fault("what was merged counts twice", f"{STORAGE}.manifest ManifestState._remove", nothing, a_random_history_is_found_again),
    Fault("what was dropped stays", f"{STORAGE}.manifest ManifestState._remove", nothing,
          a_dropped_table_is_empty_when_it_is_made_again),
    Fault("restored batches are lost", "tektite.trace.trace Trace.restore",
          misled(lambda self, shard, batches, upper: (self, shard, list(batches)[1:], upper)), everything_is_found_again),
    Fault("a version can be written twice", f"{STORAGE}.store PosixStore.create",
          lambda there: lambda self, name, content: there(self, name, content) or not self.write(name, [content]),
          of_two_engines_one_is_fenced),
    Fault("bytes are not checked", f"{STORAGE}.batchfile _Checksum.add", nothing, a_flipped_byte_is_found),
    Fault("versions are not checked", f"{STORAGE}.manifest decode",
          lambda there: lambda where, content: json.loads(content.partition(b"\n")[2]), a_changed_version_is_found),
    Fault("nobody waits for the disk", f"{STORAGE}.epoch_writer EpochWriter.sync", nothing, what_sync_waits_for_is_durable),
    Fault("leases are not looked at", f"{STORAGE}.leases leased_versions", returning([]), a_lease_is_honoured),
    Fault("one batch of many epochs is left as it is", f"{STORAGE}.compaction holds_history",
          lambda there: lambda state, lives: len(lives) > 1, texts_of_rows_that_one_batch_gains_and_loses_go),
    Fault("a batch is not rewritten alone", "tektite.trace.merge merge_all",
          lambda there: lambda batches, *given: batches[0] if len(batches) == 1 else there(batches, *given),
          texts_of_rows_that_one_batch_gains_and_loses_go),
    Fault("rows stay in their shard", f"{STORAGE}.partition Moving.pieces",
          lambda there: lambda self, rows, shards: iter([(0, rows)]), rows_move_with_the_number_of_shards),
    Fault("a column that is gained is zero", f"{STORAGE}.added_columns widened_batch", lambda there: zeros_behind,
          a_column_that_is_gained_is_null),
    Fault("positions are not written", f"{STORAGE}.manifest ManifestChange.to_json",
          altered(lambda plain: {key: value for key, value in plain.items() if key != "positions"}),
          positions_are_kept_with_their_epoch),
]  # fmt: skip
