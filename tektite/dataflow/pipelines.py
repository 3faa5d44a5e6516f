"""Pipelines: maintains a conjunction by one stateless pipeline for each relation (delta queries).

A pipeline starts with the changes of its relation and joins them with all others. Versions separate old from new, as in a join of
two: Δ(ABC) = ΔA·B_old·C_old + A_new·ΔB·C_old + A_new·B_new·ΔC, at the least upper bound of the times. The node takes all versions
together when it runs, and uses them until the last row that started with them has left. So the sum telescopes in any partial
order, with many epochs in one sweep, and with traces that run ahead.

Intermediate rows wait in one stack per worker, those that have come furthest on top, in pieces of bounded size. So memory does
not grow with their number. Rows stay with their worker: it reads versions of other shards directly, because these do not change
and are in the same memory. A copy that acts as one shard sends rows to other shards instead, through one buffer for each
action.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from tektite.dataflow.arrange import EVERYTHING, Arranged, ArrangementReader, Buffer, consolidate
from tektite.dataflow.away import LONG
from tektite.dataflow.graph import LinearStep, Moment, Outbox, Scope, common_guard, enter
from tektite.dataflow.join import PIECE, PIECES_PER_RUN, emit_by_moment
from tektite.dataflow.joined_rows import FEWEST, halves, share_tasks
from tektite.dataflow.linear import SelectStep
from tektite.dataflow.node import Node
from tektite.dataflow.pipeline_actions import Action, Branch, Item, KeyLookup, Taken, Versions
from tektite.expr.guards import Guard, either
from tektite.kernels.seek.route import route
from tektite.trace.addresses import addresses
from tektite.trace.batch import Batch
from tektite.trace.chunk import Chunk
from tektite.trace.trace import Trace

SLICE = 1 << 16
"""Rows of a source that are sorted together: many, so that look-ups are close to each other; few enough to bound memory."""


class PipelineSource:
    """The start of a pipeline: the changes of a relation, a slice at a time, after linear steps. `needed` lists all look-ups of
    the pipeline. It need not run while one of them has nothing to find.
    """

    def __init__(
        self, node: PipelinesNode, arranged: Arranged, relation: int, steps: Sequence[LinearStep], target: Action | None,
        needed: Sequence[KeyLookup],
    ) -> None:  # fmt: skip
        self.reader = node.reader_of(arranged)
        self.trace = arranged.trace
        self.columns = arranged.columns
        self.lift = node.scope.depth - arranged.scope.depth
        self.relation = relation
        self.steps = tuple(steps)
        self.weight = 1
        self.reads_all_shards = False
        self.branch = Branch((), target)
        self.lookup = needed[0]
        self.needed = list(needed)

    def begin(self, delta: tuple[Batch, ...], versions: Versions, shard: int) -> Item:
        """The changes of one shard as an item. Changes that are already sorted and not filtered are not cut into slices."""
        chunks = [Chunk(batch.head, batch.memory) for batch in delta]
        target = self.branch.target
        whole = target is not None and target.lookup.sorted and all(isinstance(step, SelectStep) for step in self.steps)
        item = Item(self, chunks, versions, shard)
        if whole and target is not None:
            item = Item(target, [self._through(chunk) for chunk in chunks], versions, shard)
        item.table = addresses(item.chunks)
        return item

    def work(self, node: Node, item: Item) -> tuple[Chunk, bool]:
        number, start = item.state[:2].tolist()
        chunk = item.chunks[number]
        stop = min(start + SLICE, chunk.n)
        number, after = (number + 1, 0) if stop == chunk.n else (number, stop)
        item.state[:2] = number, after
        return self._through(chunk if stop - start == chunk.n else chunk.slice(start, stop)), number == len(item.chunks)

    def divided(self, item: Item) -> Item | None:
        """The second half of the changes that have not been taken."""
        number, start = item.state[:2].tolist()
        left = [item.chunks[number].slice(start, item.chunks[number].n), *item.chunks[number + 1 :]]
        rows = sum(chunk.n for chunk in left)
        if rows < 2 * FEWEST:
            return None
        first, second = halves(left, rows // 2)
        item.chunks, item.table = first, addresses(first)
        item.state[:2] = 0
        other = Item(self, second, item.versions, item.shard)
        other.table = addresses(second)
        return other

    def _through(self, chunk: Chunk) -> Chunk:
        for step in self.steps:
            if chunk.n:
                chunk = step(chunk, self.trace.times)
        return enter(chunk, self.trace.times, self.lift) if self.lift and chunk.n else chunk


def divided(item: Item) -> Item | None:
    """About a half of an item's rows, which are no longer the item's; None if they cannot be divided, or are few."""
    other = item.action.divided(item)
    if other is not None:
        other.rows = item.rows = item.rows // 2  # about
    return other


def actions_from(source: PipelineSource) -> Iterator[Action]:
    """A source and the actions of its pipeline."""
    action: Action | None = source
    while action is not None:
        yield action
        action = action.branch.target


class PipelinesNode(Node):
    """All pipelines of a conjunction. The first `negated` relations are negated, and may be empty without ending a pipeline."""

    def __init__(self, scope: Scope, shards: int, data: int, relations: int, negated: int, name: str) -> None:
        super().__init__(scope, shards, name)
        self.data = data
        self.relations = relations
        self.negated = negated
        self.readers: list[ArrangementReader] = []
        self.sources: list[PipelineSource] = []
        self.stacks: list[list[Item]] = [[] for _ in range(shards)]
        self._single_shard: SingleShardState | None = None
        self._most = EVERYTHING
        """About how many rows a worker makes in a run. A few may make many: then others use the engine while the rest is made."""

    def reader_of(self, arranged: Arranged) -> int:
        """The number of this node's only reader of an arrangement."""
        for number, reader in enumerate(self.readers):
            if reader.trace is arranged.trace:
                return number
        self.readers.append(ArrangementReader(self, arranged))
        return len(self.readers) - 1

    def lookup(self, arranged: Arranged, source: int, relation: int, key: int, data: int) -> KeyLookup:
        """A lookup in an arrangement (see `KeyLookup`)."""
        return KeyLookup(self.reader_of(arranged), arranged, self.shards, source, relation, key, data)

    def choose_rows(self) -> None:
        """A relation's own conditions apply in every pipeline, so rows that do not meet them never matter, whether they change or
        are looked up.
        """
        guards: dict[int, Guard] = {}
        for source in self.sources:
            guard = common_guard([source.steps])
            if guard is not None:
                guards[source.relation] = source.columns[guard[0]], guard[1]
        uses: list[PipelineSource | KeyLookup] = [*self.sources]
        for source in self.sources:
            uses += source.needed
        for number, reader in enumerate(self.readers):
            found = [
                None
                if use.relation not in guards
                else (use.columns.index(guards[use.relation][0]), guards[use.relation][1])
                for use in uses
                if use.reader == number
            ]
            wanted = either(found)
            if wanted is not None and reader.imported:
                reader.guard(wanted)

    @property
    def engine_only(self) -> bool:  # type: ignore[override]
        """Whether some action reads several shards at once, so that it needs all of them in one process."""
        return self.shards > 1 and any(action.reads_all_shards for s in self.sources for action in actions_from(s))

    @property
    def hops(self) -> int:  # type: ignore[override]
        """One exchange before each action that is not settled, except the first."""
        ways = [list(actions_from(source))[1:] for source in self.sources]
        return max((sum(not action.lookup.settled for action in way) for way in ways), default=0)

    @property
    def busy(self) -> bool:
        return any(self.stacks)

    def clear(self) -> None:
        super().clear()
        for stack in self.stacks:
            stack.clear()

    def decide(self, is_known: Callable[[Trace], bool]) -> list[int]:
        """The ranks of the relations. Any order is correct, but all shards must use the same. If all relations were empty, the
        smallest one that is known comes last, so that only its pipeline finds anything.
        """
        ranks = list(range(self.relations))
        positive = [source for source in self.sources if source.relation >= self.negated]
        handles = [self.readers[source.reader].handle for source in positive]
        known = [
            (sum(batch.n for queue in handle.queues for batch in queue), source.relation)
            for source, handle in zip(positive, handles, strict=True)
            if is_known(handle.trace)
        ]
        if known and not any(len(handle.old(shard).table) for handle in handles for shard in range(self.shards)):
            ranks[min(known)[1]] = self.relations
        return ranks

    def act_as(self, shard: int, decision: list[int]) -> None:
        if self._single_shard is None:
            self._single_shard = SingleShardState(self, shard)
        self._single_shard.ranks = decision

    def replay(self, shard: int, moment: Moment) -> None:
        if self._single_shard is not None:
            self._single_shard.versions(moment)  # for later runs at this moment
        super().replay(shard, moment)

    def run(self, moment: Moment) -> None:
        was_busy = self.busy
        if any([reader.handle.waiting() for reader in self.readers]):
            self._begin(moment)
        if self._single_shard is not None:
            self._single_shard.arrive(moment)
        elif self.shards > 1:
            share_tasks(self.stacks, divided, last=0)
        if any(self.stacks):
            rows = sum([item.rows * item.action.weight for stack in self.stacks for item in stack])
            self._most = LONG if rows < LONG and not was_busy else EVERYTHING
            self.work_out(self._work, rows + LONG if was_busy else rows)
        if any(self.stacks):
            self.scope.schedule(self.position, moment)

    def _begin(self, moment: Moment) -> None:
        """Take all queued changes, and put those of every source on the stacks."""
        if self._single_shard is not None and self._single_shard.has_versions(moment):
            return
        versions = self.take() if self._single_shard is None else self._single_shard.versions(moment)
        for source in self.sources:
            deltas = [delta for _, delta, _ in versions.taken[source.reader]]
            # Of many relations few change in a round: only their pipelines are looked at.
            if not any(deltas) or not all([self._found(versions, lookup) for lookup in source.needed]):
                continue
            for shard, delta in enumerate(deltas):
                if delta:
                    self.stacks[shard].append(source.begin(delta, versions, shard))

    def take(self) -> Versions:
        """Old, delta and new of all readers, taken from their handles."""
        taken = [[reader.take(shard) for shard in range(self.shards)] for reader in self.readers]
        return Versions(taken, self._ranks(taken) if self._single_shard is None else self._single_shard.ranks)

    def _ranks(self, taken: list[list[Taken]]) -> Sequence[int]:
        """The ranks of the relations. Any order is correct. If all relations were empty, the one with the fewest rows comes last,
        so that only its pipeline finds anything.
        """
        ranks = list(range(self.relations))
        positive = [source for source in self.sources if source.relation >= self.negated]
        if not any(len(old.table) for source in positive for old, _, _ in taken[source.reader]):
            sizes = [sum(b.n for _, delta, _ in taken[s.reader] for b in delta) for s in positive]
            least = positive[sizes.index(min(sizes))].relation
            ranks[least] = self.relations
        return ranks

    def _found(self, versions: Versions, lookup: KeyLookup) -> bool:
        """Whether a lookup can find anything. A negated relation may be empty."""
        if lookup.relation < self.negated or self._single_shard is not None:
            return True
        return any([len(versions.table(lookup, shard).table) for shard in range(self.shards)])

    def _work(self, worker: int, outbox: Outbox) -> None:
        stack = self.stacks[worker]
        pieces = rows = 0
        while stack and pieces < PIECES_PER_RUN and rows < self._most:
            item = stack[-1]
            if item.table is None:
                self._prepare(stack, item)
            chunk, done = item.action.work(self, item)
            if done:
                stack.pop()
            pieces += 1
            rows += chunk.n
            self._follow(item, chunk, worker, outbox)

    def _prepare(self, stack: list[Item], item: Item) -> None:
        """Sort the rows of the topmost item, together with items below it that wait for the same action and shard."""
        chunks = item.chunks
        below = len(stack) - 2
        while below >= 0 and item.rows < PIECE:
            other = stack[below]
            if other.action is not item.action or other.versions is not item.versions or other.table is not None:
                break
            if other.shard == item.shard:
                chunks = [*other.chunks, *chunks]
                item.rows += other.rows
                del stack[below]
            below -= 1
        built = consolidate(chunks, (item.action.lookup.data, self.times, 1), self.flow.reached)
        item.chunks = [built]
        item.table = addresses([built])

    def _follow(self, item: Item, chunk: Chunk, worker: int, outbox: Outbox) -> None:
        """Send the results for an item to the next action, or out of the node."""
        if not chunk.n:
            return
        branch = item.action.branch
        for step in branch.steps:
            chunk = step(chunk, self.times)
            if not chunk.n:
                return
        target = branch.target
        if target is None:
            emit_by_moment(self.port, item.shard, chunk, self.data, self.times, outbox)
            return
        for shard, part in self._by_shard(target.lookup, chunk, item.shard):
            if self._single_shard is not None and shard != worker:
                self._single_shard.send(target, shard, part)
                continue
            waiting = Item(target, [part], item.versions, shard)
            if target.lookup.sorted:
                waiting.table = addresses([part])
            self.stacks[worker].append(waiting)

    def _by_shard(self, lookup: KeyLookup, chunk: Chunk, shard: int) -> Iterator[tuple[int, Chunk]]:
        """Rows by the shard that has their keys."""
        if lookup.settled:
            yield shard, chunk
            return
        buf, head, offsets = route(chunk.at, lookup.route, self.shards)
        routed = Chunk(head, (chunk.memory, buf))
        for other in range(self.shards):
            start, stop = int(offsets[other]), int(offsets[other + 1])
            if stop > start:
                yield other, routed.slice(start, stop)


class SingleShardState:
    """The state of pipelines that act as one shard of several: the ranks of the relations, which all shards share, the versions
    taken at a moment, and one buffer for each action.
    """

    def __init__(self, node: PipelinesNode, shard: int) -> None:
        self.ranks: Sequence[int] = ()
        self._node = node
        self._shard = shard
        self._actions = [action for source in node.sources for action in actions_from(source)]
        self._buffers = [Buffer(node, action.lookup.data) for action in self._actions]
        self._moment: Moment = ()
        self._taken: tuple[object, Versions | None] = (None, None)

    def has_versions(self, moment: Moment) -> bool:
        """Whether versions have been taken at a moment of this sweep."""
        return self._taken[0] == (self._node.flow.high, moment)

    def versions(self, moment: Moment) -> Versions:
        """The versions of a moment. Rows that arrive later from other shards are joined with the same versions."""
        if not self.has_versions(moment):
            self._taken = (self._node.flow.high, moment), self._node.take()
        assert self._taken[1] is not None
        return self._taken[1]

    def arrive(self, moment: Moment) -> None:
        """Put rows from other shards on the stack."""
        self._moment = moment
        for action, buffer in zip(self._actions, self._buffers, strict=True):
            for chunk in buffer.take_shard(self._shard, moment):
                item = Item(action, [chunk], self.versions(moment), self._shard)
                self._node.stacks[self._shard].append(item)

    def send(self, action: Action, shard: int, chunk: Chunk) -> None:
        """Buffer rows that another shard has to look up."""
        place = next(place for place, found in enumerate(self._actions) if found is action)
        self._buffers[place].add(shard, chunk, self._moment)
