"""Changing the number of shards of a stored engine: every row moves to the shard that owns it by the new count.

All of it is one version, so that a reader sees the storage before or after, never between.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from tektite.kernels.build import build
from tektite.kernels.route import route
from tektite.storage.batchfile import FileInfo, Rows, write_file
from tektite.storage.description import InputDescription
from tektite.storage.files import Files
from tektite.storage.manifest import Change, Live, Manifest
from tektite.trace.batch import Batch
from tektite.trace.chunk import Chunk


def repartition(manifest: Manifest, files: Files, shards: int) -> None:
    """Give every stored input `shards` shards. What else is stored by shard (derived arrangements) is dropped."""
    state = manifest.state
    change = Change(shards=shards)
    for name, plain in state.arrangements.items():
        if plain.get("kind") != "input":
            change.arrangements[name] = None
            continue
        lives = [live for shard in range(state.shards) for live in state.live(name, shard)]
        change.remove += lives
        change.add += _spread(manifest, files, name, InputDescription.from_json(plain), lives, shards)
    manifest.commit(change)


def _spread(
    manifest: Manifest, files: Files, name: str, description: InputDescription, lives: list[Live], shards: int
) -> list[FileInfo]:
    """Files with the rows of some batches, by their new shards."""
    state = manifest.state
    low = state.lows.get(name, 0)
    since = ((max(low - 1, 0),),)
    key = np.arange(description.sharded_by, dtype=np.int64)
    pieces: list[list[Chunk]] = [[] for _ in range(shards)]
    for live in lives:
        batch = files.batch(state, live)
        buf, head, offsets = route(batch.at, key, shards)
        routed = Chunk(head, (batch.keep, buf))
        for shard, (start, stop) in enumerate(pairwise(offsets.tolist())):
            if stop > start:
                pieces[shard].append(routed.slice(start, stop))
    written = []
    for shard, chunks in enumerate(pieces):
        buf, head = build(np.array([chunk.at for chunk in chunks], np.int64), *description.shape, since[0][0])
        batch = Batch(head, buf, ((0,),), ((low,),), since)
        if batch.n:
            rows = Rows(name, shard, description.shape, batch)
            written.append(write_file(manifest.store, state.epoch, "shards", shard, [rows]))
    return written
