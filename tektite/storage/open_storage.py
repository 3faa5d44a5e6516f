"""OpenStorage: one engine's use of a storage. What the storage holds is checked and mapped before anything is written."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from tektite.errors import ConflictError, FaultError, IncorrectError
from tektite.storage.added_columns import gains_columns
from tektite.storage.clean_up import left_over_files
from tektite.storage.description import InputDescription
from tektite.storage.epoch_writer import DurableChange, EpochWriter
from tektite.storage.files import Files
from tektite.storage.manifest import Manifest, ManifestChange, ManifestState
from tektite.storage.options import Storage
from tektite.storage.partition import Move, move_here, repartition
from tektite.storage.store import Lock
from tektite.trace.batch import Batch
from tektite.values.dictionary import Dictionary

Position = Mapping[str, Any]


@dataclass
class StoredInput:
    """A stored input: its declaration, the first epoch that it has not closed, and its batches by shard."""

    name: str
    description: InputDescription
    low: int
    shards: list[list[Batch]]


class OpenStorage:
    """Opens a storage, takes it over from the previous writer, and adds to it until it is closed."""

    def __init__(self, options: Storage, shards: int | None, dictionary: Dictionary, move: Move = move_here) -> None:
        self._lock: Lock | None = None
        try:
            manifest, files = options.open()
            self.url = manifest.store.url
            self._lock = manifest.store.lock()
            state = manifest.refresh()
            self.inputs = read_inputs(state, files)
            dictionary.load([files.open(state.files[live.file]).texts(live.index) for live in state.texts()])
            self._take_over(manifest, state.shards or shards or 1)
            if shards is not None and shards != manifest.state.shards:
                repartition(manifest, files, shards, move)
                self.inputs = read_inputs(manifest.state, files)
            with suppress(OSError):  # none of it is in the way
                manifest.store.delete(left_over_files(manifest.store, options.retention))
            self.writer = EpochWriter(
                manifest, files, dictionary, options.retention, options.waiting_bytes, self._unlock
            )
        except BaseException as error:
            self._unlock()
            if isinstance(error, OSError):
                raise FaultError(f"storage {options.url} cannot be opened: {error}") from error
            raise
        self.shards = manifest.state.shards
        self.epoch = state.epoch
        self._dictionary = dictionary
        self.positions: dict[str, dict[str, Any]] = dict(state.positions)
        self.unclaimed = {stored.name: stored.description for stored in self.inputs}

    def _take_over(self, manifest: Manifest, shards: int) -> None:
        """Create the first version of this owner. A previous writer loses the race for the next one."""
        manifest.heal()
        owner = {"process": os.getpid(), "host": socket.gethostname(), "since": time.time()}
        manifest.commit(ManifestChange(owner=owner, shards=shards))

    def claim(self, name: str, declared: InputDescription) -> bool:
        """Check the declaration of a stored input: it must be the same, or gain columns. Returns whether it gains some."""
        stored = self.unclaimed[name]
        gains = gains_columns(stored, declared)
        if not gains and not stored.same_as(declared):
            raise ConflictError(
                f"table {name!r} is stored in {self.url} as {stored}, but declared as {declared}: declare it as it is "
                "stored, drop it first, or choose another storage path"
            )
        del self.unclaimed[name]
        return gains

    def append(self, change: DurableChange) -> None:
        """Have a change become durable."""
        for source, position in change.positions.items():
            self.positions.pop(source, None)
            if position is not None:
                self.positions[source] = position
        self.writer.append(change)

    def close(self, discard: bool = False) -> None:
        """Make everything durable, unless it is to be discarded, and let go of the storage, even if that fails. Closing twice
        is harmless.
        """
        self._dictionary.give_up_loading()
        self.writer.close(discard)  # which unlocks as it stops

    def _unlock(self) -> None:
        if self._lock is not None:
            self._lock.release()


def read_inputs(state: ManifestState, files: Files) -> list[StoredInput]:
    """The inputs that a version holds, with their batches mapped and checked."""
    found = []
    batches = state.batches()
    for name, plain in state.arrangements.items():
        if plain.get("kind") == "input":
            shards = [
                [files.batch(state, live) for live in batches.get((name, shard), [])] for shard in range(state.shards)
            ]
            found.append(StoredInput(name, InputDescription.from_json(plain), state.lows.get(name, 0), shards))
    return found


def checked_positions(positions: Mapping[str, Position | None]) -> dict[str, dict[str, Any] | None]:
    """Positions in a form that a manifest can hold.

    >>> checked_positions({"orders": {"batch": 7}})
    {'orders': {'batch': 7}}
    """
    try:
        plain: dict[str, dict[str, Any] | None] = json.loads(json.dumps(positions))
    except (TypeError, ValueError) as error:
        raise IncorrectError(f"positions are what JSON can hold, by the name of their source: {error}") from None
    if not isinstance(plain, dict) or not all(isinstance(p, dict | None) for p in plain.values()):
        raise IncorrectError(f"positions are a dict for each source, by its name; found {positions!r}")
    return plain
