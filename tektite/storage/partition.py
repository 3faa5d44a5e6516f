"""Moves stored rows to another number of shards.

The move is one version, so a reader sees the storage before or after it, never between. The caller chooses who moves the
rows: this process, or others that write files into the same storage.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from tektite.kernels.seek.route import route
from tektite.kernels.sort.build import build
from tektite.storage.batchfile import BatchSection, FileInfo, write_file
from tektite.storage.description import InputDescription
from tektite.storage.files import Files
from tektite.storage.manifest import Live, Manifest, ManifestChange
from tektite.storage.store import Store
from tektite.trace.addresses import addresses
from tektite.trace.batch import Batch
from tektite.trace.chunk import Chunk


@dataclass(frozen=True)
class Moving:
    """A stored input whose rows must move."""

    name: str
    description: InputDescription
    low: int
    """The first epoch that it has not closed."""
    epoch: int
    lives: tuple[Live, ...]

    def pieces(self, rows: Chunk, shards: int) -> Iterator[tuple[int, Chunk]]:
        """Some of its rows, by their new shards."""
        buf, head, offsets = route(rows.at, np.arange(self.description.sharded_by, dtype=np.int64), shards)
        routed = Chunk(head, (rows.memory, buf))
        for shard, (start, stop) in enumerate(pairwise(offsets.tolist())):
            if stop > start:
                yield shard, routed.slice(start, stop)

    def write(self, store: Store, shard: int, chunks: list[Chunk]) -> FileInfo | None:
        """A file with the rows of a shard, sorted and consolidated; None if they cancel out."""
        since = max(self.low - 1, 0)
        buf, head = build(addresses(chunks), *self.description.shape, since)
        batch = Batch(head, buf, ((0,),), ((self.low,),), ((since,),))
        if not batch.n:
            return None
        return write_file(
            store, self.epoch, "shards", shard, [BatchSection(self.name, shard, self.description.shape, batch)]
        )


Move = Callable[[Manifest, Files, list[Moving], int], list[FileInfo]]
"""Moves the rows of inputs to a number of shards; returns the files that hold them."""


def repartition(manifest: Manifest, files: Files, shards: int, move: Move) -> None:
    """Give every stored input `shards` shards. Derived arrangements, which are stored by shard, are dropped."""
    state = manifest.state
    change = ManifestChange(shards=shards)
    moving = []
    for name, plain in state.arrangements.items():
        if plain.get("kind") != "input":
            change.arrangements[name] = None
            continue
        lives = [live for shard in range(state.shards) for live in state.live(name, shard)]
        change.remove += lives
        low = state.lows.get(name, 0)
        moving.append(Moving(name, InputDescription.from_json(plain), low, state.epoch, tuple(lives)))
    change.add = move(manifest, files, moving, shards)
    manifest.commit(change)


def move_here(manifest: Manifest, files: Files, moving: list[Moving], shards: int) -> list[FileInfo]:
    """Move the rows in this process, one input at a time."""
    written = []
    for one in moving:
        pieces: list[list[Chunk]] = [[] for _ in range(shards)]
        for live in one.lives:
            batch = files.batch(manifest.state, live)
            for shard, piece in one.pieces(Chunk(batch.head, batch.memory), shards):
                pieces[shard].append(piece)
        written += [one.write(manifest.store, shard, chunks) for shard, chunks in enumerate(pieces)]
    return [info for info in written if info is not None]
