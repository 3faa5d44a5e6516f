"""Actions of a pipeline: fetch, subtract and intersect.

An action has no state. It reads arrangements at the versions that its place in the pipeline requires, and returns its results in
pieces of bounded size. It may read the keys of any shard, because all shards are in this process's memory and versions do not
change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Protocol

import numpy as np

from tektite.dataflow.arrange import Arranged, consolidate
from tektite.dataflow.graph import LinearStep
from tektite.dataflow.join import PIECE
from tektite.dataflow.joined_rows import FEWEST, JoinedRows, halves
from tektite.dataflow.node import Node
from tektite.errors import IncorrectError
from tektite.kernels.operators.intersect import intersect
from tektite.kernels.operators.intersect_two import intersect_two
from tektite.kernels.operators.join import JOIN_STATE
from tektite.kernels.operators.join import join as join_kernel
from tektite.kernels.seek.candidates import find_candidates, numbered_keys
from tektite.kernels.seek.shift import scale
from tektite.trace.addresses import addresses
from tektite.trace.batch import Batch
from tektite.trace.chunk import Chunk
from tektite.trace.records import Version
from tektite.values.words import Words

EMPTY: Words = np.zeros(3, np.int64)
"""The head of no rows."""

FoundKeys = tuple[Words, list[Words]]
"""A description of an item's extenders for the kernel, and the memory that it points to."""

Taken = tuple[Version, tuple[Batch, ...], Version]


class Versions:
    """The versions that all readers took when the node ran: old, delta and new, by reader and shard. `ranks` orders the
    relations.
    """

    def __init__(self, taken: list[list[Taken]], ranks: Sequence[int]) -> None:
        self.taken = taken
        self.ranks = ranks

    def table(self, lookup: KeyLookup, shard: int) -> Version:
        """The version that a lookup reads: new if its relation ranks before the source, otherwise old."""
        old, _, new = self.taken[lookup.reader][shard]
        return new if self.ranks[lookup.relation] < self.ranks[lookup.source] else old

    def everywhere(self, lookup: KeyLookup) -> tuple[Words, Words, int]:
        """The batches that a lookup reads in all shards, where those of each shard start, and the most that a shard has."""
        tables = [self.table(lookup, shard).table for shard in range(len(self.taken[lookup.reader]))]
        sizes = [len(table) for table in tables]
        table = tables[0] if len(tables) == 1 else np.concatenate(tables)
        return table, np.array([0, *accumulate(sizes)], np.int64), max(sizes)


class Item:
    """Rows that wait for an action, and the shard that has their keys. `table` is set once they are sorted. `state` says how far
    the action has come. `joined` is what a fetch joins, once it has begun.
    """

    __slots__ = ("action", "chunks", "found", "joined", "rows", "shard", "state", "table", "versions")

    def __init__(self, action: Action, chunks: list[Chunk], versions: Versions, shard: int) -> None:
        self.action = action
        self.shard = shard
        self.chunks = chunks
        self.rows = sum(chunk.n for chunk in chunks)
        self.versions = versions
        self.table: Words | None = None
        self.found: FoundKeys | None = None
        self.joined: JoinedRows | None = None
        self.state: Words = np.zeros(JOIN_STATE, np.int64)


class KeyLookup:
    """A look-up by an action in the pipeline of relation `source`: it finds its rows in an arrangement of `relation` by their
    first `key` data columns.

    Rows have `data` columns. They are `settled` if the shard of the action before has their keys too. They are `sorted` if they
    come from a source whose batches are sorted by the key.
    """

    def __init__(
        self, reader: int, arranged: Arranged, shards: int, source: int, relation: int, key: int, data: int
    ) -> None:
        self.reader = reader
        self.trace = arranged.trace
        self.columns = arranged.columns
        self.source = source
        self.relation = relation
        self.key = key
        self.data = data
        self.route = np.arange(arranged.sharded_by, dtype=np.int64)
        self.settled = shards == 1
        self.sorted = False


class Branch:
    """The path of an action's results: through linear steps, then to the next action or out of the pipeline."""

    def __init__(self, steps: Sequence[LinearStep], target: Action | None) -> None:
        self.steps = tuple(steps)
        self.target = target


NOWHERE = Branch((), None)
"""The branch of an action that is not connected yet."""


class Action(Protocol):
    """One action of a pipeline. A row costs about `weight` times as much as one that is fetched. `reads_all_shards` says whether
    the action looks keys up in several shards at once.
    """

    lookup: KeyLookup
    branch: Branch
    weight: int
    reads_all_shards: bool

    def work(self, node: Node, item: Item) -> tuple[Chunk, bool]:
        """The next piece of the results for an item's rows, and whether it is the last."""

    def divided(self, item: Item) -> Item | None:
        """About a half of an item's rows, for another worker; None if they cannot be divided, or are few."""


def joined(node: Node, lookup: KeyLookup, item: Item, spec: Words) -> Chunk:
    """The next piece of the join of an item's rows with the arrangement of a lookup."""
    trace, rows = lookup.trace, item.joined
    if rows is None:
        version = item.versions.table(lookup, item.shard)
        if not len(version.table):
            item.state[0] = 1
            return Chunk(EMPTY, None)
        rows = item.joined = JoinedRows(item.chunks, version.batches, version.table)
        item.state = rows.state
    buf, head = join_kernel(
        rows.near, rows.far, lookup.key, lookup.data, trace.data, node.times, trace.times, node.times, spec,
        node.flow.reached, PIECE, 0, rows.state,
    )  # fmt: skip
    if head[0] < 0:
        raise IncorrectError(f"{node.name}: a product of multiplicities does not fit into 64 bits")
    return Chunk(head, buf)


def divided_rows(item: Item) -> Item | None:
    """The second half of the rows of an item whose action has not begun."""
    rows = sum(chunk.n for chunk in item.chunks)
    if rows < 2 * FEWEST:
        return None
    first, second = halves(item.chunks, rows // 2)
    other = Item(item.action, second, item.versions, item.shard)
    item.chunks = first
    if item.table is not None:
        item.table, other.table = addresses(first), addresses(second)
    return other


class FetchAction:
    """Joins each row with all rows of the arrangement that have its key. `spec` lists the columns to produce; the columns of
    the arrangement are numbered from `lookup.data` on.
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

    def divided(self, item: Item) -> Item | None:
        if item.joined is None:
            return divided_rows(item)
        rows = item.joined.divided()
        if rows is None:
            return None
        other = Item(self, item.chunks, item.versions, item.shard)
        other.table, other.joined, other.state = item.table, rows, rows.state
        return other


class SubtractAction:
    """Keeps the rows whose key is not in the arrangement, which must hold every key at most once."""

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
        return consolidate(found, (self.lookup.data, node.times, 1), node.flow.reached), True

    def divided(self, item: Item) -> Item | None:
        return divided_rows(item)


@dataclass(frozen=True)
class Extender:
    """An arrangement that restricts the variable that rows are extended by."""

    lookup: KeyLookup
    columns: Words
    """The columns of the rows that are its key."""
    equal: int
    """The number of columns after the key that must equal the new word."""
    complete: bool
    """Whether its times and diffs count, because all its columns are bound with this variable."""
    optional: bool
    """Whether it may skip checking what others propose, because a later step checks it."""


class IntersectAction:
    """Extends each row by every word that all extenders allow, as a further data column. It reads keys in all shards, so rows
    need not be exchanged.
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
        buf, head = self._intersect(node, prefix, item.found[0], item.state)
        if head[0] < 0:
            raise IncorrectError(f"{node.name}: a product of multiplicities does not fit into 64 bits")
        return Chunk(head, buf), bool(item.state[0] == prefix.n * len(self.extenders))

    def _intersect(self, node: Node, prefix: Chunk, found: Words, state: Words) -> tuple[Words, Words]:
        shape = (prefix.at, self.lookup.data, node.times, found, self.spec)
        made: tuple[Words, Words] = intersect(*shape, node.flow.reached, PIECE, state)
        return made

    def divided(self, item: Item) -> Item | None:
        return divided_rows(item) if item.found is None else None

    def _find(self, prefix: Chunk, versions: Versions) -> FoundKeys:
        """For each row, the ranges of rows with its key in every batch of every extender."""
        shapes: list[int] = []
        tables: list[Words] = []
        for number, extender in enumerate(self.extenders):
            lookup, kc = extender.lookup, len(extender.columns)
            rows = prefix
            if number and kc:
                buf, head = numbered_keys(prefix.at, extender.columns)
                rows = consolidate([Chunk(head, buf)], (kc + 1, 1, 1), 0)
            table, first_of, most = versions.everywhere(lookup)
            slots = most if kc else len(table)
            found = find_candidates(rows.at, kc, number, table, first_of, len(lookup.route), slots)
            tables.append(found)
            shapes += [int(found.ctypes.data), slots, kc, extender.equal, lookup.trace.data, lookup.trace.times]
            shapes += [int(extender.complete), int(extender.optional)]
        return np.array(shapes, np.int64), tables


class IntersectTwoAction(IntersectAction):
    """The same for two extenders that are looked up by bound columns and complete. If rows are `counted`, the word is left out,
    and the rows that a row becomes at one time are one row.
    """

    def __init__(self, extenders: Sequence[Extender], spec: Sequence[int], counted: bool) -> None:
        super().__init__(extenders, spec)
        self._counted = int(counted)

    def _intersect(self, node: Node, prefix: Chunk, found: Words, state: Words) -> tuple[Words, Words]:
        shape = (prefix.at, self.lookup.data, node.times, found, self.spec)
        made: tuple[Words, Words] = intersect_two(*shape, self._counted, node.flow.reached, PIECE, state)
        return made
