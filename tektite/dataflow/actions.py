"""What happens to rows on their way through a pipeline: look-ups, subtraction, counting and proposing candidates, intersection.

Every action reads one version of an arrangement, the one that its place in the pipeline says, and keeps nothing. What it makes of
its rows comes in pieces of bounded size.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from tektite.dataflow.arrange import Arranged, consolidate
from tektite.dataflow.graph import Node, Step
from tektite.dataflow.join import PIECE, STATE
from tektite.errors import IncorrectError
from tektite.kernels.extend import count_candidates, nominate, propose
from tektite.kernels.intersect import find_ranges, intersect, numbered_keys
from tektite.kernels.intersect_two import intersect_two
from tektite.kernels.join import join as join_kernel
from tektite.kernels.route import scale
from tektite.trace.batch import Batch
from tektite.trace.chunk import Chunk
from tektite.trace.spine import Version
from tektite.words import Words

EMPTY: Words = np.zeros(3, np.int64)
"""The head of no rows."""

Found = tuple[Words, Words, Words, Chunk | None]
"""What extenders look like, their batches, where in these the rows with each row's key are, and, if there are two extenders and
both count, the numbers of the rows in the order of the second one's key.
"""

Taken = tuple[Version, tuple[Batch, ...], Version]


class Versions:
    """What all readers saw when the node ran: old, delta and new, by reader and shard, and the order of the relations."""

    def __init__(self, taken: list[list[Taken]], ranks: Sequence[int]) -> None:
        self.taken = taken
        self.ranks = ranks

    def table(self, lookup: Lookup, shard: int) -> Version:
        """The version of an arrangement that a lookup reads: new if its relation comes before the source."""
        old, _, new = self.taken[lookup.reader][shard]
        return new if self.ranks[lookup.relation] < self.ranks[lookup.source] else old


class Item:
    """Rows that wait for an action. Once `table` is there they are sorted, and `state` says how far the action has come."""

    __slots__ = ("action", "chunks", "found", "rows", "state", "table", "versions")

    def __init__(self, action: Action, chunks: list[Chunk], versions: Versions) -> None:
        self.action = action
        self.chunks = chunks
        self.rows = sum(chunk.n for chunk in chunks)
        self.versions = versions
        self.table: Words | None = None
        self.found: Found | None = None
        self.state: Words = np.zeros(STATE, np.int64)


class Lookup:
    """How an action in the pipeline of relation `source` reads an arrangement: the first `key` data columns of its rows are
    those of the arrangement.

    Rows have `data` columns. Where they are `settled` they come in at the right shard; where they are `sorted`, they come
    from a source whose batches are sorted by the key.
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

    def __init__(self, steps: Sequence[Step], target: Action | None) -> None:
        self.steps = tuple(steps)
        self.target = target


class Action(Protocol):
    """One place in a pipeline that rows stop at."""

    lookup: Lookup
    branches: list[Branch]

    def work(self, node: Node, shard: int, item: Item) -> tuple[Chunk, bool]:
        """The next piece of what becomes of an item's rows, and whether it was the last."""


def joined(node: Node, lookup: Lookup, shard: int, item: Item, spec: Words) -> Chunk:
    """The next piece of the join of an item's rows with the arrangement that a look-up reads."""
    trace, table = lookup.trace, item.versions.table(lookup, shard).table
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


class Fetch:
    """Each row with all rows of the arrangement that have its key. `spec` lists the columns to produce, those of the
    arrangement counted on from `lookup.data`.
    """

    def __init__(self, lookup: Lookup, spec: Sequence[int]) -> None:
        self.lookup = lookup
        self.spec = np.array(spec, np.int64)
        self.branches: list[Branch] = []

    def work(self, node: Node, shard: int, item: Item) -> tuple[Chunk, bool]:
        chunk = joined(node, self.lookup, shard, item, self.spec)
        return chunk, bool(item.state[0])


class Subtract:
    """The rows whose key the arrangement, which holds every row once, does not have."""

    def __init__(self, lookup: Lookup) -> None:
        self.lookup = lookup
        self.spec = np.arange(lookup.data, dtype=np.int64)
        self.branches: list[Branch] = []

    def work(self, node: Node, shard: int, item: Item) -> tuple[Chunk, bool]:
        found = list(item.chunks)
        last = self.lookup.data + node.times
        while not item.state[0]:
            chunk = joined(node, self.lookup, shard, item, self.spec)
            if chunk.n:
                buf, head = scale(chunk.at, last, -1)
                found.append(Chunk(head, (chunk.keep, buf)))
        if len(found) == 1:
            return found[0], True
        return consolidate(found, (self.lookup.data, node.times, 1), node.flow.low), True


class Count:
    """The rows that have candidates in the arrangement. A number notes, in the last two data columns, the least number of
    candidates so far and whose they are; without one, rows are only checked.
    """

    def __init__(self, lookup: Lookup, number: int = -1) -> None:
        self.lookup = lookup
        self.number = number
        self.branches: list[Branch] = []

    def work(self, node: Node, shard: int, item: Item) -> tuple[Chunk, bool]:
        (prefix,) = item.chunks
        table = item.versions.table(self.lookup, shard).table
        counts = count_candidates(prefix.at, table, self.lookup.key)
        buf, head = nominate(prefix.at, counts, self.lookup.data, self.number)
        return Chunk(head, buf), True


class Propose:
    """Each row with every different word that follows its key in the arrangement, as one more data column."""

    def __init__(self, lookup: Lookup) -> None:
        self.lookup = lookup
        self.branches: list[Branch] = []

    def work(self, node: Node, shard: int, item: Item) -> tuple[Chunk, bool]:
        (prefix,) = item.chunks
        table = item.versions.table(self.lookup, shard).table
        buf, head = propose(prefix.at, table, self.lookup.key, self.lookup.data, PIECE, item.state)
        return Chunk(head, buf), bool(item.state[0] == prefix.n)


class Intersect:
    """Each row with every word that all of some arrangements allow, as one more data column. Each look-up comes with the
    columns of its key among those of the rows, and whether the arrangement's times and diffs count. All keys are in one shard.
    """

    def __init__(self, extenders: Sequence[tuple[Lookup, Sequence[int], bool]], spec: Sequence[int]) -> None:
        self.lookup = extenders[0][0]
        self.extenders = [(lookup, np.array(columns, np.int64), complete) for lookup, columns, complete in extenders]
        self.spec = np.array(spec, np.int64)
        self.branches: list[Branch] = []

    def work(self, node: Node, shard: int, item: Item) -> tuple[Chunk, bool]:
        (prefix,) = item.chunks
        if item.found is None:
            item.found = self._find(prefix, item.versions, shard)
        extenders, batches, ranges, ordered = item.found
        shape = (prefix.at, self.lookup.data, node.times, extenders, batches, ranges)
        if ordered is not None:
            key = len(self.extenders[1][1])
            buf, head = intersect_two(*shape, ordered.at, key, self.spec, node.flow.low, PIECE, item.state)
        else:
            buf, head = intersect(*shape, self.spec, node.flow.low, PIECE, item.state)
        if head[0] < 0:
            raise IncorrectError(f"{node.name}: a product of multiplicities does not fit into 64 bits")
        return Chunk(head, buf), bool(item.state[0] == (prefix.n if ordered is None else 2 * prefix.n))

    def _find(self, prefix: Chunk, versions: Versions, shard: int) -> Found:
        """Where in each batch of each arrangement the rows with a row's key are."""
        ordered = None
        tables = [versions.table(lookup, shard).table for lookup, _, _ in self.extenders]
        batches = np.concatenate(tables)
        ranges = np.empty(2 * len(batches) * prefix.n, np.int64)
        shapes: list[int] = []
        first = 0
        for number, ((lookup, columns, complete), table) in enumerate(zip(self.extenders, tables, strict=True)):
            rows, kc = prefix, len(columns)
            if number and kc:
                buf, head = numbered_keys(prefix.at, columns)
                rows = consolidate([Chunk(head, buf)], (kc + 1, 1, 1), 0)
                ordered = rows
            find_ranges(rows.at, kc, table, first, number, ranges, len(batches))
            shapes += [first, len(table), kc, lookup.trace.data, lookup.trace.times, int(complete)]
            first += len(table)
        if len(tables) > 2 or not all(complete for _, _, complete in self.extenders):
            ordered = None
        return np.array(shapes, np.int64), batches, ranges, ordered
