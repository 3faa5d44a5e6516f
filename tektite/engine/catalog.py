"""The catalog: every arrangement that queries share, by collection and leading columns.

An arrangement in the catalog belongs to no query. It is the base arrangement of an input, or the output of a small
dataflow of its own, which is made when the first query asks for it and dropped with the last one that reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, ref

import numpy as np

from tektite.dataflow.arrange import Arranged, consolidate, serves
from tektite.dataflow.errors import ErrorSource
from tektite.dataflow.flow import Dataflow, EpochSource, last_closed
from tektite.engine.graph_cache import CachedGraph, GraphCache
from tektite.engine.lock import Decision, StepByStep
from tektite.errors import ConflictError
from tektite.kernels.seek.route import route
from tektite.plan import algebra as plan
from tektite.plan.algebra import ColumnNumbers, describe
from tektite.plan.estimates import Estimates
from tektite.plan.explain import explain
from tektite.plan.render import Renderer
from tektite.plan.rules import optimize
from tektite.trace.batch_memory import BatchMemory
from tektite.trace.chunk import Chunk
from tektite.trace.trace import Hold, Trace

if TYPE_CHECKING:
    from tektite.runtime.coordinator import Coordinator
    from tektite.values.dictionary import Dictionary


@dataclass(eq=False)
class Entry:
    """One shared arrangement: whose it is, where it comes from, and who reads it."""

    name: str
    collection: tuple[Any, ...]
    source: EpochSource
    trace: Trace
    columns: tuple[int, ...]
    column_names: tuple[str, ...]
    sharded_by: int
    flow: Dataflow | None
    hold: Hold | None = None
    errors: Sequence[ErrorSource] = ()
    """The errors that what it holds depends on."""
    readers: dict[Dataflow, None] = field(default_factory=dict)
    together: Sequence[Entry] = ()
    """What was made with it for readers, itself included, and is dropped with it; nothing for an input or a view."""
    graphs: WeakKeyDictionary[CachedGraph, tuple[ref[plan.Operator], ColumnNumbers]] | None = None
    """Graphs that read it and are kept for the next dataflow of their plan: of which plan, and by which columns. Most views have
    no reader, and none of these.
    """

    @property
    def usable(self) -> bool:
        """Whether the dataflow that was made for it still runs."""
        return self.flow is None or self.flow.failure is None


class ConstantSource:
    """Rows that never change, as a source: all there before the first epoch ends, and closed for good."""

    first = 0
    low = 1
    closed = True
    failure = None
    flow = None

    def __init__(self, name: str, operator: plan.Rows, columns: ColumnNumbers, sharded_by: int, shards: int) -> None:
        self.name = name
        width = len(columns)
        self.trace = Trace(width, 1, 1, shards, "default")
        self.hold = Hold(
            self.trace, last_closed(self)
        )  # before anything is minted: a trace that nobody holds keeps nothing
        rows = operator.words.shape[1]
        times = np.zeros((1, rows), np.int64)
        chunk = Chunk.of_array(np.ascontiguousarray(np.vstack([operator.words[list(columns)], times, times + 1])))
        if not rows:
            return
        buf, head, offsets = route(chunk.at, np.arange(sharded_by, dtype=np.int64), shards)
        routed = Chunk(head, (chunk.memory, buf))
        for shard in range(shards):
            part = routed.slice(int(offsets[shard]), int(offsets[shard + 1]))
            if part.n:
                built = consolidate([part], (width, 1, 1), 0)
                self.trace.mint(shard, built.head, built.memory, ((1,),))


class Catalog:
    """Finds, makes and drops shared arrangements."""

    def __init__(
        self,
        coordinator: Coordinator,
        dictionary: Dictionary,
        shards: int,
        effort: str,
        decide: Callable[[Decision], None],
        earliest: Callable[[], int | None],
        memory: BatchMemory | None,
    ) -> None:
        """`decide` makes a change whole, whatever interrupts it. `earliest` is the first epoch that a transaction reads."""
        self.earliest = earliest
        self.coordinator = coordinator
        self.decide = decide
        self.dictionary = dictionary
        self.shards = shards
        self.effort = effort
        self.memory = memory
        self.entries: dict[Entry, None] = {}
        """All arrangements, in the order in which they were made."""
        self._alike: dict[tuple[Any, ...], list[Entry]] = {}
        """The same, by what is quickly compared of a collection."""
        self._used: dict[Dataflow, list[Entry]] = {}
        """What each reader reads."""
        self.generation = 0
        """Changes whenever a collection that is known already gets or loses an arrangement."""
        self.graphs = GraphCache(self)
        self._orders: dict[plan.Operator, list[ColumnNumbers]] = {}
        self._orders_at = 0
        self._unfinished: list[Dataflow] = []
        """Dataflows that are being built, each for the one before it."""

    def explain(self, operator: plan.Operator) -> str:
        """What installing a plan would do, as text. Nothing is made."""
        (operator,) = optimize([operator])
        flow = self.begun(self.new_flow("explain"))
        try:
            renderer = Renderer(flow, HypotheticalCatalog(self, flow), self.dictionary)
            renderer.stream(operator)
        finally:
            flow.let_go()
            self.finished(flow)
        estimates = Estimates()
        about = explain(operator, lambda part: f"  (about {estimates.of(part):,.0f} rows)")
        lines = ["plan", *(f"  {line}" for line in about)]
        lines += [line for decision in renderer.decisions for line in decision()]
        uses = list(dict.fromkeys(use() for use in renderer.uses))
        if uses:
            lines.append("arrangements")
            lines += [f"  {use.collection} by ({', '.join(use.columns)}): {use.origin}" for use in uses]
        return "\n".join(lines)

    def render(
        self, name: str, roots: Sequence[plan.Operator], leads: Sequence[ColumnNumbers], limit: int | None = None
    ) -> tuple[Dataflow, list[Arranged]]:
        """A dataflow of some plans, and the arrangements of their results. It reuses a cached graph if possible. The
        caller says when it is `finished`, or else abandons it. It may keep `limit` bytes, and so may each arrangement that is
        made for it, until that is complete.
        """
        self.clean_up()
        if len(roots) == 1:
            known = self.graphs.begin(roots[0], leads[0], name)
            if known is not None:
                known.flow.limit = limit
                return known.flow, [known.arranged]
        flow = self.begun(self.new_flow(name))
        flow.limit = limit
        try:
            recording = RecordingCatalog(self, flow)
            renderer = Renderer(flow, recording, self.dictionary)
            arranged = [
                renderer.arranged(root, lead or renderer.any_order(root, len(root.schema.names))[:1], None)
                for root, lead in zip(optimize(roots), leads, strict=True)
            ]
            renderer.finish([found.trace for found in arranged])
            if len(roots) == 1 and not self.coordinator.executor.sends:
                self.graphs.add(roots[0], leads[0], renderer, arranged[0], recording)
        except BaseException:
            self.abandon(flow)
            raise
        return flow, arranged

    def new_flow(self, name: str) -> Dataflow:
        """An empty dataflow that runs as this engine's do."""
        return Dataflow(name, self.coordinator.executor, self.shards, self.effort, self.memory)

    def begun(self, flow: Dataflow) -> Dataflow:
        """A dataflow is being built. If it is neither `finished` nor abandoned, `clean_up` drops it."""
        self._unfinished.append(flow)
        return flow

    def finished(self, flow: Dataflow) -> None:
        """A dataflow has been built, and others than this catalog look after it. May be repeated."""
        if flow in self._unfinished:
            self._unfinished.remove(flow)

    def clean_up(self) -> None:
        """Drop what an interrupt has left behind: dataflows that were being built, and arrangements made for them."""
        if self._unfinished:
            while self._unfinished:
                self.abandon(self._unfinished[-1])
            for entry in list(self.entries):
                self._drop_unread(entry)

    def add(self, *entries: Entry) -> None:
        """Let queries find the arrangements of a collection that is new. May be repeated."""
        for entry in entries:
            alike = self._alike.setdefault(_at_a_glance(entry.collection), [])
            if entry not in alike:
                alike.append(entry)
            self.entries[entry] = None

    def remove(self, entry: Entry) -> None:
        """Let queries not find an arrangement any more. May be repeated."""
        self.entries.pop(entry, None)
        alike = self._alike.get(_at_a_glance(entry.collection), [])
        if entry in alike:
            alike.remove(entry)
        if not alike:
            self._alike.pop(_at_a_glance(entry.collection), None)
        for operator in [o for o in self._orders if o.fingerprint == entry.collection]:
            del self._orders[operator]
        self.graphs.forget(entry)

    def orders_of(self, operator: plan.Operator) -> list[ColumnNumbers]:
        """The orders of columns in which a collection is arranged for everybody."""
        if self._orders_at != self.generation:
            self._orders.clear()
            self._orders_at = self.generation
        found = self._orders.get(operator)
        if found is None:
            found = self._orders[operator] = [e.columns for e in self._entries_of(operator.fingerprint)]
        return found

    def all_of(self, collection: tuple[Any, ...], failed: bool = False) -> list[Entry]:
        """The arrangements of a collection that can be read; with those whose dataflow has failed, if asked."""
        return [entry for entry in self._entries_of(collection) if failed or entry.usable]

    def _entries_of(self, collection: tuple[Any, ...]) -> list[Entry]:
        return [e for e in self._alike.get(_at_a_glance(collection), ()) if e.collection == collection]

    def find(
        self, collection: tuple[Any, ...], lead: tuple[int, ...], sharded_by: int | None, key: int
    ) -> Entry | None:
        """An existing arrangement of the collection that fits, if there is one."""
        for entry in self._alike.get(_at_a_glance(collection), ()):
            if entry.collection == collection and entry.usable and serves(entry, lead, sharded_by, key):
                return entry
        return None

    def make(
        self, reader: Dataflow, operator: plan.Operator, lead: tuple[int, ...], sharded_by: int | None, key: int
    ) -> Entry:
        """A new arrangement for a reader, in a dataflow of its own."""
        collection, described = fingerprint(operator), describe(operator)
        names = operator.schema.names
        name = f"{described} by ({', '.join(names[c] for c in lead)})"
        if isinstance(operator, plan.Rows):
            columns = (*lead, *(c for c in range(len(names)) if c not in lead))
            by = key if sharded_by is None else sharded_by
            constant = ConstantSource(name, operator, columns, by, self.shards)
            entry = Entry(
                name, collection, constant, constant.trace, columns, tuple(names[c] for c in columns), by, None
            )
            entry.hold = constant.hold
            entry.together = [entry]
            self.generation += 1
            self.note(reader, entry)
            self.add(entry)
            return entry
        flow = self.begun(self.new_flow(name))
        made: list[tuple[str, plan.Operator, Arranged]]
        inner = operator.input if isinstance(operator, plan.Arrange) else operator
        siblings: list[plan.Leave] = []
        if isinstance(inner, plan.Leave) and inner.of.shared:
            siblings = [leave for leave in inner.of.leaves if leave is not inner]
        try:
            recording = RecordingCatalog(self, flow)
            renderer = Renderer(flow, recording, self.dictionary)
            known = next(iter(self.all_of(collection)), None)
            if known is not None and not isinstance(inner, plan.Read):
                # Reuse what the arrangement in another column order has computed.
                siblings = []
                renderer.adopt(inner, recording.note(known))
            root, *others = [inner] if known is not None else optimize([inner, *siblings])
            if known is None and isinstance(root, plan.AtLeast | plan.Aggregate | plan.First | plan.Reduce):
                made = [(name, inner, renderer.arranged(root, lead, sharded_by, key))]  # its own output, if that serves
            else:
                made = [(name, inner, renderer.arrange_anew(root, lead, key if sharded_by is None else sharded_by))]
            # A loop is run once for all that leave it.
            for other, rewritten in zip(siblings, others, strict=True):
                first = other.schema.names[0]
                made.append((f"{describe(other)} by ({first})", other, renderer.arrange_anew(rewritten, (0,), 1)))
            renderer.finish([arranged.trace for _, _, arranged in made])
        except BaseException:
            self.abandon(flow)
            raise
        flow.settle_start(self.earliest())
        entries = [
            Entry(title, what.fingerprint, flow, arranged.trace, arranged.columns,
                  tuple(what.schema.names[c] for c in arranged.columns), arranged.sharded_by, flow,
                  Hold(arranged.trace, last_closed(flow, self.earliest)), errors)
            for (title, what, arranged), errors in zip(made, flow.result_errors, strict=True)
        ]  # fmt: skip
        for entry in entries:
            entry.together = entries
        self.generation += 1
        self.note(reader, entries[0])
        self.decide(
            StepByStep(
                lambda: self.add(*entries), lambda: self.coordinator.add(flow), lambda: self.finished(flow)
            )
        )  # fmt: skip
        flow.limit = reader.limit
        self.coordinator.finish(flow)
        flow.limit = None
        return entries[0]

    def abandon(self, flow: Dataflow) -> None:
        """Drop a dataflow that could not be finished, and what was made for it."""
        flow.let_go()
        self.release(flow)
        self.finished(flow)

    def release(self, reader: Dataflow) -> None:
        """A reader is gone: drop what was made for readers and has none left. May be repeated."""
        used = self._used.get(reader, ())
        for entry in used:
            entry.readers.pop(reader, None)
        for entry in used:
            self._drop_unread(entry)
        self._used.pop(reader, None)

    def note(self, reader: Dataflow, entry: Entry) -> None:
        """Count a dataflow among the readers of an arrangement."""
        self._used.setdefault(reader, []).append(entry)
        entry.readers[reader] = None

    def _drop_unread(self, entry: Entry) -> None:
        """Drop an arrangement that was made for readers, the others of its dataflow, and what that alone has read, if nobody
        reads any of them. May be repeated.
        """
        if not entry.together or any([other.readers for other in entry.together]):
            return
        self.generation += 1
        for other in entry.together:
            self.remove(other)
            if other.hold is not None:
                other.hold.drop()
        if entry.flow is not None:
            self.coordinator.remove(entry.flow)
            self.release(entry.flow)


class RecordingCatalog:
    """The catalog as one reader sees it: notes which collections the reader asks about, and which arrangements it uses."""

    def __init__(self, catalog: Catalog, reader: Dataflow) -> None:
        self.catalog = catalog
        self.reader = reader
        self.asked: list[tuple[Any, ...]] = []
        self.used: list[Entry] = []

    def find(self, operator: plan.Operator, lead: tuple[int, ...], sharded_by: int | None, key: int) -> Entry | None:
        """An arrangement that there is already."""
        collection = fingerprint(operator)
        if collection not in self.asked:
            self.asked.append(collection)
        return self.catalog.find(collection, lead, sharded_by, key)

    def arrangement(self, operator: plan.Operator, lead: tuple[int, ...], sharded_by: int | None, key: int) -> Entry:
        entry = self.find(operator, lead, sharded_by, key)
        if entry is not None:
            return self.note(entry)
        entry = self.catalog.make(self.reader, operator, lead, sharded_by, key)
        self.used.append(entry)
        return entry

    def has(self, operator: plan.Operator, lead: tuple[int, ...], sharded_by: int | None, key: int) -> bool:
        return self.find(operator, lead, sharded_by, key) is not None

    def changes(self, operator: plan.Read) -> Entry:
        entry = self.find(operator, (), None, 1 << 30)
        if entry is None:
            name = operator.readable.name
            raise ConflictError(f"{name!r} cannot be read: it was dropped")
        return self.note(entry)

    def note(self, entry: Entry) -> Entry:
        """Count the reader among an arrangement's."""
        if entry not in self.used:
            self.used.append(entry)
            self.catalog.note(self.reader, entry)
        return entry


class HypotheticalCatalog(RecordingCatalog):
    """The catalog for EXPLAIN: invents missing arrangements, and records nothing."""

    def arrangement(self, operator: plan.Operator, lead: tuple[int, ...], sharded_by: int | None, key: int) -> Entry:
        entry = self.find(operator, lead, sharded_by, key)
        if entry is not None:
            return entry
        names = operator.schema.names
        columns = (*lead, *(c for c in range(len(names)) if c not in lead))
        trace = Trace(len(columns), 1, 1, self.catalog.shards, self.catalog.effort)
        sharding = key if sharded_by is None else sharded_by
        ordered = tuple(names[c] for c in columns)
        return Entry(describe(operator), fingerprint(operator), self.reader, trace, columns, ordered, sharding, None)

    def note(self, entry: Entry) -> Entry:
        return entry


def _at_a_glance(collection: tuple[Any, ...]) -> tuple[Any, ...]:
    """A cheap hash of a collection, equal for equal collections: the kind of its last operator, the names of its columns, and
    which input or view it reads.
    """
    kind, schema, *more = collection
    return kind, schema.names, more[0] if more and isinstance(more[0], int | str) else None


def fingerprint(operator: plan.Operator) -> tuple[Any, ...]:
    """The key of a collection in the catalog. An arranged collection has the key of its input."""
    return operator.input.fingerprint if isinstance(operator, plan.Arrange) else operator.fingerprint
