"""Pipelines: one stateless way from the changes of each relation of a conjunction to the changes of its result.

Old and new are separated by version, as in a join of two: Δ(ABC) = ΔA·B_old·C_old + A_new·ΔB·C_old + A_new·B_new·ΔC, times
meeting at their least upper bound. All versions are taken together when the node runs and kept until the last row that began with
them has come out, so the sum telescopes in any partial order, with many epochs in one sweep, and with traces that run ahead.

Rows on their way wait in a stack per shard, the ones that have come furthest on top, in pieces of bounded size: memory does not
follow the number of intermediate rows. Between two actions, rows go to the shard where the next one finds their key.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from tektite.dataflow.arrange import Arranged, Reader, consolidate
from tektite.dataflow.graph import Moment, Node, Outbox, Scope, Step, enter
from tektite.dataflow.join import PIECE, PIECES_PER_RUN, STATE, emit_by_moment
from tektite.errors import IncorrectError
from tektite.kernels.extend import count_candidates, nominate, propose
from tektite.kernels.join import join as join_kernel
from tektite.kernels.route import route, scale
from tektite.trace.batch import Batch
from tektite.trace.chunk import Chunk
from tektite.trace.spine import Version
from tektite.words import Words

SLICE = 1 << 18
"""Rows of a source that are sorted together: many, so that they are sought close to each other; few enough to bound memory."""

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

    __slots__ = ("action", "chunks", "rows", "state", "table", "versions")

    def __init__(self, action: Action, chunks: list[Chunk], versions: Versions) -> None:
        self.action = action
        self.chunks = chunks
        self.rows = sum(chunk.n for chunk in chunks)
        self.versions = versions
        self.table: Words | None = None
        self.state: Words = np.zeros(STATE, np.int64)


class Lookup:
    """How an action reads an arrangement: the first `key` data columns of its rows are those of the arrangement.

    Rows have `data` columns. Where they are `settled` they come in at the right shard; where they are `sorted`, they come
    from a source whose batches are sorted by the key.
    """

    def __init__(self, node: Pipelines, arranged: Arranged, source: int, relation: int, key: int, data: int) -> None:
        self.reader = node.reader_of(arranged)
        self.trace = arranged.trace
        self.source = source
        self.relation = relation
        self.key = key
        self.data = data
        self.route = np.arange(arranged.sharded_by, dtype=np.int64)
        self.settled = node.shards == 1
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

    def work(self, node: Pipelines, shard: int, item: Item) -> tuple[Chunk, bool]:
        """The next piece of what becomes of an item's rows, and whether it was the last."""


class Fetch:
    """Each row with all rows of the arrangement that have its key. `spec` lists the columns to produce, those of the
    arrangement counted on from `lookup.data`.
    """

    def __init__(self, lookup: Lookup, spec: Sequence[int]) -> None:
        self.lookup = lookup
        self.spec = np.array(spec, np.int64)
        self.branches: list[Branch] = []

    def work(self, node: Pipelines, shard: int, item: Item) -> tuple[Chunk, bool]:
        chunk = node.join(self.lookup, shard, item, self.spec)
        return chunk, bool(item.state[0])


class Subtract:
    """The rows whose key the arrangement, which holds every row once, does not have."""

    def __init__(self, lookup: Lookup) -> None:
        self.lookup = lookup
        self.spec = np.arange(lookup.data, dtype=np.int64)
        self.branches: list[Branch] = []

    def work(self, node: Pipelines, shard: int, item: Item) -> tuple[Chunk, bool]:
        found = list(item.chunks)
        last = self.lookup.data + node.times
        while not item.state[0]:
            chunk = node.join(self.lookup, shard, item, self.spec)
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

    def work(self, node: Pipelines, shard: int, item: Item) -> tuple[Chunk, bool]:
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

    def work(self, node: Pipelines, shard: int, item: Item) -> tuple[Chunk, bool]:
        (prefix,) = item.chunks
        table = item.versions.table(self.lookup, shard).table
        buf, head = propose(prefix.at, table, self.lookup.key, self.lookup.data, PIECE, item.state)
        return Chunk(head, buf), bool(item.state[0] == prefix.n)


class Source:
    """Where a pipeline begins: the changes of a relation, run through `branch`. All lookups of the pipeline are listed, so
    that it need not be run while one of them has nothing to find.
    """

    def __init__(self, node: Pipelines, arranged: Arranged, relation: int, branch: Branch) -> None:
        self.reader = node.reader_of(arranged)
        self.trace = arranged.trace
        self.lift = node.scope.depth - arranged.scope.depth
        self.relation = relation
        self.branch = branch
        self.needed: list[Lookup] = []


class Pipelines(Node):
    """All pipelines of a conjunction. `negated` relations come first; nothing to find in those does not end a pipeline."""

    def __init__(self, scope: Scope, shards: int, data: int, relations: int, negated: int, name: str) -> None:
        super().__init__(scope, shards, name)
        self.data = data
        self.relations = relations
        self.negated = negated
        self.readers: list[Reader] = []
        self.sources: list[Source] = []
        self.stacks: list[list[Item]] = [[] for _ in range(shards)]
        self._sent: list[list[tuple[int, Item]]] = [[] for _ in range(shards)]

    def reader_of(self, arranged: Arranged) -> int:
        """The number of this node's one reader of an arrangement."""
        for number, reader in enumerate(self.readers):
            if reader.trace is arranged.trace:
                return number
        self.readers.append(Reader(self, arranged))
        return len(self.readers) - 1

    def clear(self) -> None:
        for stack in self.stacks:
            stack.clear()
        for sent in self._sent:
            sent.clear()

    def run(self, moment: Moment) -> None:
        if any(reader.handle.waiting() for reader in self.readers):
            self._begin()
        self.each_shard(self._work, sum(item.rows for stack in self.stacks for item in stack))
        for sent in self._sent:
            for shard, item in sent:
                self.stacks[shard].append(item)
            sent.clear()
        if any(self.stacks):
            self.scope.schedule(self.position, moment)

    def _begin(self) -> None:
        """Take everything that waits, and put the changes of every source on the stacks."""
        taken = [[reader.take(shard) for shard in range(self.shards)] for reader in self.readers]
        versions = Versions(taken, self._ranks(taken))
        for source in self.sources:
            if not all(self._found(versions, lookup) for lookup in source.needed):
                continue
            for shard in range(self.shards):
                self._start(source, shard, versions)

    def _ranks(self, taken: list[list[Taken]]) -> Sequence[int]:
        """The order in which the relations count as changed. Any is right; where all of them begin with nothing, the one
        with the fewest rows is last, so that its pipeline alone has something to find.
        """
        ranks = list(range(self.relations))
        positive = [source for source in self.sources if source.relation >= self.negated]
        if not any(len(old.table) for source in positive for old, _, _ in taken[source.reader]):
            sizes = [sum(b.n for _, delta, _ in taken[s.reader] for b in delta) for s in positive]
            least = positive[sizes.index(min(sizes))].relation
            ranks[least] = self.relations
        return ranks

    def _found(self, versions: Versions, lookup: Lookup) -> bool:
        """Whether an arrangement that must have a match has any row."""
        if lookup.relation < self.negated:
            return True
        return any(len(versions.table(lookup, shard).table) for shard in range(self.shards))

    def _start(self, source: Source, shard: int, versions: Versions) -> None:
        _, delta, _ = versions.taken[source.reader][shard]
        target = source.branch.target
        whole = target is not None and target.lookup.sorted
        ready: list[Chunk] = []
        for batch in delta:
            rows = Chunk(batch.head, batch.keep)
            for start in range(0, rows.n, rows.n if whole else SLICE):
                chunk = rows if whole or rows.n <= SLICE else rows.slice(start, min(start + SLICE, rows.n))
                for step in source.branch.steps:
                    chunk = step(chunk, source.trace.times)
                if source.lift and chunk.n:
                    chunk = enter(chunk, source.trace.times, source.lift)
                if chunk.n:
                    ready.append(chunk)
        if not ready:
            return
        if target is None:
            raise IncorrectError(f"{self.name}: a pipeline has to lead somewhere")
        if whole:
            item = Item(target, ready, versions)
            item.table = np.array([chunk.at for chunk in ready], np.int64)
            self.stacks[shard].append(item)
            return
        for chunk in ready:
            self._send(target, chunk, versions, shard)
        for to, item in self._sent[shard]:
            self.stacks[to].append(item)
        self._sent[shard].clear()

    def _send(self, target: Action, chunk: Chunk, versions: Versions, shard: int) -> None:
        """Put rows where their next action finds their key."""
        lookup = target.lookup
        if lookup.settled:
            self.stacks[shard].append(Item(target, [chunk], versions))
            return
        buf, head, offsets = route(chunk.at, lookup.route, self.shards)
        routed = Chunk(head, (chunk.keep, buf))
        for to in range(self.shards):
            start, stop = int(offsets[to]), int(offsets[to + 1])
            if stop > start:
                self._sent[shard].append((to, Item(target, [routed.slice(start, stop)], versions)))

    def _work(self, shard: int, outbox: Outbox) -> None:
        stack = self.stacks[shard]
        pieces = 0
        while stack and pieces < PIECES_PER_RUN:
            item = stack[-1]
            if item.table is None:
                self._prepare(stack, item)
            chunk, done = item.action.work(self, shard, item)
            if done:
                stack.pop()
            pieces += 1
            for branch in item.action.branches:
                self._follow(branch, chunk, item.versions, shard, outbox)

    def _prepare(self, stack: list[Item], item: Item) -> None:
        """Sort the rows of the topmost item, together with those below it that wait for the same action."""
        chunks = item.chunks
        below = len(stack) - 2
        while below >= 0 and item.rows < PIECE:
            other = stack[below]
            if other.action is not item.action or other.versions is not item.versions or other.table is not None:
                break
            chunks = [*other.chunks, *chunks]
            item.rows += other.rows
            below -= 1
        del stack[below + 1 : -1]
        built = consolidate(chunks, (item.action.lookup.data, self.times, 1), self.flow.low)
        item.chunks = [built]
        item.table = np.array([built.at], np.int64)

    def _follow(self, branch: Branch, chunk: Chunk, versions: Versions, shard: int, outbox: Outbox) -> None:
        if not chunk.n:
            return
        for step in branch.steps:
            chunk = step(chunk, self.times)
            if not chunk.n:
                return
        if branch.target is None:
            emit_by_moment(self.port, shard, chunk, self.data, self.times, outbox)
        else:
            self._send(branch.target, chunk, versions, shard)

    def join(self, lookup: Lookup, shard: int, item: Item, spec: Words) -> Chunk:
        """The next piece of the join of an item's rows with the arrangement of its action."""
        trace, table = lookup.trace, item.versions.table(lookup, shard).table
        if not len(table):
            item.state[0] = 1
            return Chunk(EMPTY, None)
        buf, head = join_kernel(
            item.table, table, lookup.key, lookup.data, trace.data, self.times, trace.times, self.times, spec,
            self.flow.low, PIECE, 0, item.state,
        )  # fmt: skip
        if head[0] < 0:
            raise IncorrectError(f"{self.name}: a product of multiplicities does not fit into 64 bits")
        return Chunk(head, buf)


EMPTY: Words = np.zeros(3, np.int64)
