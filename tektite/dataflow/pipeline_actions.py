"""What happens to rows on their way through a pipeline: look-ups, subtraction, intersection.

Every action reads one version of an arrangement, the one that its place in the pipeline says, and keeps nothing. What it makes of
its rows comes in pieces of bounded size. It reads whichever shard has a key: all shards are in this process's memory, and
versions do not change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from tektite.dataflow.arrange import Arranged, consolidate
from tektite.dataflow.graph import LinearStep
from tektite.dataflow.join import PIECE
from tektite.dataflow.node import Node
from tektite.errors import IncorrectError
from tektite.kernels.operators.intersect import intersect
from tektite.kernels.operators.join import JOIN_STATE
from tektite.kernels.operators.join import join as join_kernel
from tektite.kernels.seek.candidates import find_candidates, numbered_keys
from tektite.kernels.seek.route import scale
from tektite.trace.batch import Batch
from tektite.trace.chunk import Chunk
from tektite.trace.spine import Version
from tektite.values.words import Words

EMPTY: Words = np.zeros(3, np.int64)
"""The head of no rows."""

Found = tuple[Words, list[Words]]
"""What the extenders of an item look like, and the memory that this points to."""

Taken = tuple[Version, tuple[Batch, ...], Version]


class Versions:
    """What all readers saw when the node ran: old, delta and new, by reader and shard, and the order of the relations."""

    def __init__(self, taken: list[list[Taken]], ranks: Sequence[int]) -> None:
        self.taken = taken
        self.ranks = ranks

    def table(self, lookup: KeyLookup, shard: int) -> Version:
        """The version of an arrangement that a lookup reads: new if its relation comes before the source."""
        old, _, new = self.taken[lookup.reader][shard]
        return new if self.ranks[lookup.relation] < self.ranks[lookup.source] else old

    def everywhere(self, lookup: KeyLookup) -> tuple[Words, Words]:
        """The batches of all shards that a lookup reads, and where those of each shard begin."""
        tables = [self.table(lookup, shard).table for shard in range(len(self.taken[lookup.reader]))]
        return np.concatenate(tables), np.cumsum([0, *map(len, tables)], dtype=np.int64)


class Item:
    """Rows that wait for an action, with the shard in which it finds their keys. Once `table` is there they are sorted, and
    `state` says how far the action has come.
    """

    __slots__ = ("action", "chunks", "found", "rows", "shard", "state", "table", "versions")

    def __init__(self, action: Action, chunks: list[Chunk], versions: Versions, shard: int) -> None:
        self.action = action
        self.shard = shard
        self.chunks = chunks
        self.rows = sum(chunk.n for chunk in chunks)
        self.versions = versions
        self.table: Words | None = None
        self.found: Found | None = None
        self.state: Words = np.zeros(JOIN_STATE, np.int64)


class KeyLookup:
    """How an action in the pipeline of relation `source` reads an arrangement: the first `key` data columns of its rows are
    those of the arrangement.

    Rows have `data` columns. Where they are `settled`, those that come in together have their keys in one shard, that of the
    action before; where they are `sorted`, they come from a source whose batches are sorted by the key.
    """

    def __init__(
        self, reader: int, arranged: Arranged, shards: int, source: int, relation: int, key: int, data: int
    ) -> None:
        self.reader = reader
        self.trace = arranged.trace
        self.source = source
        self.relation = relation
        self.key = key
        self.data = data
        self.route = np.arange(arranged.sharded_by, dtype=np.int64)
        self.settled = shards == 1
        self.sorted = False


class Branch:
    """Where the rows that an action makes go: through linear steps, to the next action or out of the pipeline."""

    def __init__(self, steps: Sequence[LinearStep], target: Action | None) -> None:
        self.steps = tuple(steps)
        self.target = target


NOWHERE = Branch((), None)
"""Where rows go until an action is connected to the next one."""


class Action(Protocol):
    """One place in a pipeline that rows stop at. A row takes about `weight` times as long as a row that is looked up.
    One that `reads_all_shards` finds keys in several shards at once.
    """

    lookup: KeyLookup
    branch: Branch
    weight: int
    reads_all_shards: bool

    def work(self, node: Node, item: Item) -> tuple[Chunk, bool]:
        """The next piece of what becomes of an item's rows, and whether it was the last."""


def joined(node: Node, lookup: KeyLookup, item: Item, spec: Words) -> Chunk:
    """The next piece of the join of an item's rows with the arrangement that a look-up reads."""
    trace, table = lookup.trace, item.versions.table(lookup, item.shard).table
    if not len(table):
        item.state[0] = 1
        return Chunk(EMPTY, None)
    buf, head = join_kernel(
        item.table, table, lookup.key, lookup.data, trace.data, node.times, trace.times, node.times, spec,
        node.flow.low, PIECE, 0, item.state,
    )  # fmt: skip
    if head[0] < 0:
        raise IncorrectError(f"{node.name}: a product of multiplicities does not fit into 64 bits")
    return Chunk(head, buf)


class FetchAction:
    """Each row with all rows of the arrangement that have its key. `spec` lists the columns to produce, those of the
    arrangement counted on from `lookup.data`.
    """

    weight = 1
    reads_all_shards = False

    def __init__(self, lookup: KeyLookup, spec: Sequence[int]) -> None:
        self.lookup = lookup
        self.spec = np.array(spec, np.int64)
        self.branch = NOWHERE

    def work(self, node: Node, item: Item) -> tuple[Chunk, bool]:
        chunk = joined(node, self.lookup, item, self.spec)
        return chunk, bool(item.state[0])


class SubtractAction:
    """The rows whose key the arrangement, which holds every row once, does not have."""

    weight = 1
    reads_all_shards = False

    def __init__(self, lookup: KeyLookup) -> None:
        self.lookup = lookup
        self.spec = np.arange(lookup.data, dtype=np.int64)
        self.branch = NOWHERE

    def work(self, node: Node, item: Item) -> tuple[Chunk, bool]:
        found = list(item.chunks)
        last = self.lookup.data + node.times
        while not item.state[0]:
            chunk = joined(node, self.lookup, item, self.spec)
            if chunk.n:
                buf, head = scale(chunk.at, last, -1)
                found.append(Chunk(head, (chunk.memory, buf)))
        if len(found) == 1:
            return found[0], True
        return consolidate(found, (self.lookup.data, node.times, 1), node.flow.low), True


@dataclass(frozen=True)
class Extender:
    """An arrangement that talks about the variable that rows are extended by."""

    lookup: KeyLookup
    columns: Words
    """The columns of its key among those of the rows."""
    equal: int
    """How many columns behind the key have to be the word."""
    complete: bool
    """Whether its times and diffs count."""
    optional: bool
    """Whether it need not check what others propose, because a later step will."""


class IntersectAction:
    """Each row with every word that all of some arrangements allow, as one more data column. Each look-up comes with what its
    extender needs to know (see `Extender`). Keys are found in whichever shard has them, so rows need not be moved.
    """

    weight = 16
    reads_all_shards = True

    def __init__(self, extenders: Sequence[Extender], spec: Sequence[int]) -> None:
        self.lookup = extenders[0].lookup
        self.lookup.settled = True
        self.extenders = extenders
        self.spec = np.array(spec, np.int64)
        self.branch = NOWHERE

    def work(self, node: Node, item: Item) -> tuple[Chunk, bool]:
        (prefix,) = item.chunks
        if item.found is None:
            item.found = self._find(prefix, item.versions)
        shape = (prefix.at, self.lookup.data, node.times, item.found[0])
        buf, head = intersect(*shape, self.spec, node.flow.low, PIECE, item.state)
        if head[0] < 0:
            raise IncorrectError(f"{node.name}: a product of multiplicities does not fit into 64 bits")
        return Chunk(head, buf), bool(item.state[0] == prefix.n * len(self.extenders))

    def _find(self, prefix: Chunk, versions: Versions) -> Found:
        """Where in each batch of each arrangement the rows with a row's key are."""
        shapes: list[int] = []
        tables: list[Words] = []
        for number, extender in enumerate(self.extenders):
            lookup, kc = extender.lookup, len(extender.columns)
            rows = prefix
            if number and kc:
                buf, head = numbered_keys(prefix.at, extender.columns)
                rows = consolidate([Chunk(head, buf)], (kc + 1, 1, 1), 0)
            table, first_of = versions.everywhere(lookup)
            slots = int(np.diff(first_of).max()) if kc else len(table)
            found = find_candidates(rows.at, kc, number, table, first_of, len(lookup.route), slots)
            tables.append(found)
            shapes += [int(found.ctypes.data), slots, kc, extender.equal, lookup.trace.data, lookup.trace.times]
            shapes += [int(extender.complete), int(extender.optional)]
        return np.array(shapes, np.int64), tables
