"""The catalog: every arrangement that queries share, by collection and leading columns.

An arrangement in the catalog belongs to no query. It is the base arrangement of an input, or the output of a small
dataflow of its own, which is made when the first query asks for it and dropped with the last one that reads it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tektite.dataflow.arrange import Arranged, consolidate, serves
from tektite.dataflow.flow import Dataflow, EpochSource, last_closed
from tektite.engine.graph_cache import GraphCache
from tektite.errors import ConflictError
from tektite.kernels.seek.route import route
from tektite.plan import algebra as plan
from tektite.plan.algebra import describe
from tektite.plan.estimates import Estimates
from tektite.plan.explain import explain
from tektite.plan.render import Renderer
from tektite.plan.rules import optimize
from tektite.trace.chunk import Chunk
from tektite.trace.trace import Hold, Trace

if TYPE_CHECKING:
    from tektite.runtime.coordinator import Coordinator
    from tektite.values.dictionary import Dictionary

Columns = tuple[int, ...]


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
    readers: list[Dataflow] = field(default_factory=list)

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

    def __init__(self, name: str, operator: plan.Rows, columns: Columns, sharded_by: int, shards: int) -> None:
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

    def __init__(self, coordinator: Coordinator, dictionary: Dictionary, shards: int, effort: str) -> None:
        self.coordinator = coordinator
        self.dictionary = dictionary
        self.shards = shards
        self.effort = effort
        self.entries: list[Entry] = []
        self.generation = 0
        """Changes whenever a collection that is known already gets or loses an arrangement."""
        self.graphs = GraphCache(self)
        self._orders: dict[plan.Operator, list[Columns]] = {}
        self._orders_at = 0

    def explain(self, operator: plan.Operator) -> str:
        """What installing a plan would do, as text. Nothing is made."""
        flow = self.new_flow("explain")
        (operator,) = optimize([operator])
        try:
            renderer = Renderer(flow, HypotheticalCatalog(self, flow), self.dictionary)
            renderer.stream(operator)
        finally:
            flow.drop()
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
        self, name: str, roots: Sequence[plan.Operator], leads: Sequence[Columns]
    ) -> tuple[Dataflow, list[Arranged]]:
        """A dataflow of some plans, and where their results are; it begins with a graph that is there, if one serves."""
        if len(roots) == 1:
            known = self.graphs.begin(roots[0], leads[0], name)
            if known is not None:
                return known.flow, [known.arranged]
        flow = self.new_flow(name)
        try:
            recording = RecordingCatalog(self, flow)
            renderer = Renderer(flow, recording, self.dictionary)
            arranged = [
                renderer.arranged(root, lead or renderer.any_order(root, len(root.schema.names))[:1], None)
                for root, lead in zip(optimize(roots), leads, strict=True)
            ]
        except BaseException:
            self.abandon(flow)
            raise
        if len(roots) == 1 and not self.coordinator.executor.sends:
            self.graphs.add(roots[0], leads[0], renderer, arranged[0], recording)
        return flow, arranged

    def new_flow(self, name: str) -> Dataflow:
        """An empty dataflow that runs as this engine's do."""
        return Dataflow(name, self.coordinator.executor, self.shards, self.effort)

    def add(self, entry: Entry) -> None:
        """Let queries find the arrangement of a collection that is new."""
        self.entries.append(entry)

    def remove(self, entry: Entry) -> None:
        """Let queries not find an arrangement any more."""
        self.entries.remove(entry)
        for operator in [o for o in self._orders if o.fingerprint == entry.collection]:
            del self._orders[operator]
        self.graphs.forget(entry)

    def orders_of(self, operator: plan.Operator) -> list[Columns]:
        """The orders of columns in which a collection is arranged for everybody."""
        if self._orders_at != self.generation:
            self._orders.clear()
            self._orders_at = self.generation
        found = self._orders.get(operator)
        if found is None:
            found = self._orders[operator] = [e.columns for e in self.entries if e.collection == operator.fingerprint]
        return found

    def all_of(self, collection: tuple[Any, ...]) -> list[Entry]:
        """The arrangements of a collection that can be read."""
        return [entry for entry in self.entries if entry.collection == collection and entry.usable]

    def find(
        self, collection: tuple[Any, ...], lead: tuple[int, ...], sharded_by: int | None, key: int
    ) -> Entry | None:
        """An arrangement of the collection that serves, if there is one."""
        for entry in self.entries:
            if entry.collection == collection and entry.usable and serves(entry, lead, sharded_by, key):
                return entry
        return None

    def make(self, operator: plan.Operator, lead: tuple[int, ...], sharded_by: int | None, key: int) -> Entry:
        """A new arrangement, in a dataflow of its own."""
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
            self.entries.append(entry)
            self.generation += 1
            return entry
        flow = self.new_flow(name)
        made: list[tuple[str, plan.Operator, Arranged]]
        inner = operator.input if isinstance(operator, plan.Arrange) else operator
        siblings: list[plan.Leave] = []
        if isinstance(inner, plan.Leave) and inner.of.shared:
            siblings = [leave for leave in inner.of.leaves if leave is not inner]
        try:
            recording = RecordingCatalog(self, flow)
            renderer = Renderer(flow, recording, self.dictionary)
            known = next((e for e in self.entries if e.collection == collection and e.usable), None)
            if known is not None and not isinstance(inner, plan.Read):
                # What another order of columns has computed already is not computed a second time.
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
        except BaseException:
            self.abandon(flow)
            raise
        flow.settle_start()
        for title, what, arranged in made:
            shown = tuple(what.schema.names[c] for c in arranged.columns)
            self.entries.append(
                Entry(title, what.fingerprint, flow, arranged.trace, arranged.columns, shown, arranged.sharded_by, flow,
                      Hold(arranged.trace, last_closed(flow)))
            )  # fmt: skip
        entry = self.entries[-len(made)]
        self.generation += 1
        self.coordinator.add(flow)
        self.coordinator.finish(flow)
        return entry

    def abandon(self, flow: Dataflow) -> None:
        """Drop a dataflow that could not be finished, and what was made for it."""
        flow.drop()
        self.release(flow)

    def release(self, reader: Dataflow) -> None:
        """A reader is gone: drop what was made for readers and has none left."""
        for entry in list(self.entries):
            if reader in entry.readers:
                entry.readers.remove(reader)
                if isinstance(entry.source, ConstantSource):
                    together = [entry]
                else:
                    together = [e for e in self.entries if e.flow is not None and e.flow is entry.flow]
                if together and not any(e.readers for e in together):
                    self.drop(together)

    def drop(self, together: list[Entry]) -> None:
        """Drop arrangements that one dataflow was made for, and what it alone reads."""
        self.generation += 1
        for entry in together:
            self.remove(entry)
            if entry.hold is not None:
                entry.hold.drop()
        flow = together[0].flow
        if flow is not None:
            self.coordinator.remove(flow)
            self.release(flow)


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
        return self.note(entry or self.catalog.make(operator, lead, sharded_by, key))

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
            entry.readers.append(self.reader)
        return entry


class HypotheticalCatalog(RecordingCatalog):
    """The catalog as a query would see it that is not installed: what is missing is stood in for, and nothing is noted."""

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


def fingerprint(operator: plan.Operator) -> tuple[Any, ...]:
    """What the catalog knows a collection by: arranging does not make it another one."""
    return operator.input.fingerprint if isinstance(operator, plan.Arrange) else operator.fingerprint
