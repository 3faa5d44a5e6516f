"""The catalog: every arrangement that queries share, by collection and leading columns.

An arrangement in the catalog belongs to no query. It is the base arrangement of an input, or the output of a small
dataflow of its own, which is made when the first query asks for it and dropped with the last one that reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable
from weakref import WeakKeyDictionary, ref

from tektite.dataflow.arrange import Arranged, serves
from tektite.dataflow.errors import ErrorNode, ErrorSource, sources_of
from tektite.dataflow.flow import Dataflow, EpochSource, LastClosed
from tektite.dataflow.succession import after_switch
from tektite.engine.arrangement_sources import ConstantSource, MadeSource
from tektite.engine.discarded_indexes import DiscardedIndexes
from tektite.engine.graph_cache import CachedGraph, GraphCache
from tektite.engine.lock import Decision, StepByStep
from tektite.engine.running_plan import RunningPlan, is_repeatable, plan_text
from tektite.errors import ConflictError, UnsupportedError
from tektite.plan import algebra as plan
from tektite.plan.algebra import ColumnNumbers, describe
from tektite.plan.depth import within_depth
from tektite.plan.estimates import Estimates, Sizes
from tektite.plan.explain import explain
from tektite.plan.explanation import Explanation
from tektite.plan.graph_data import graph_data
from tektite.plan.render import Renderer
from tektite.plan.rules import optimize
from tektite.trace.batch_memory import BatchMemory
from tektite.trace.trace import Hold, Trace
from tektite.values.schema import Schema

if TYPE_CHECKING:
    from tektite.runtime.coordinator import Coordinator
    from tektite.values.dictionary import Dictionary


@runtime_checkable
class HasErrors(Protocol):
    """A source some of whose rows may fail."""

    @property
    def errors(self) -> Sequence[ErrorSource]:
        """The errors that what it holds depends on."""


NOBODY: dict[Dataflow, None] = {}
"""The readers of an arrangement that has had none. Nobody adds to it."""


@dataclass(eq=False, slots=True, weakref_slot=True)
class Entry:
    """One shared arrangement: whose it is, where it comes from, and who reads it."""

    name: str
    made_from: tuple[Any, ...] | None
    """The collection; of a table or a view itself, its source says it."""
    source: EpochSource
    trace: Trace
    columns: tuple[int, ...]
    column_names: tuple[str, ...]
    sharded_by: int
    flow: Dataflow | None
    hold: Hold | None = None
    readers: dict[Dataflow, None] = field(default_factory=lambda: NOBODY)
    answered: int = 0
    """How many queries read it that were answered once."""
    together: Sequence[Entry] = ()
    """The entries that were made with it for readers, itself included, and are dropped with it; none for a table or a view."""
    index_of: plan.Readable | None = None
    """The table or view that it has the rows of, in another order, if it was made for readers."""
    lead: ColumnNumbers = ()
    """The columns that readers asked for, which come first."""
    graphs: WeakKeyDictionary[CachedGraph, tuple[ref[plan.Operator], ColumnNumbers]] | None = None
    """Graphs that read it and are kept for the next dataflow of their plan: of which plan, and by which columns. Most views have
    no reader, and none of these.
    """

    @property
    def collection(self) -> tuple[Any, ...]:
        """The collection that it has, as plans name it."""
        if self.made_from is None:
            source: Any = self.source
            found: tuple[Any, ...] = source.operator.fingerprint
            return found
        return self.made_from

    @property
    def glance(self) -> Hashable:
        """A key of its collection that is quick to compare."""
        return id(self.source) if self.made_from is None else _at_a_glance(self.made_from)

    @property
    def errors(self) -> Sequence[ErrorSource]:
        """The errors that what it holds depends on."""
        if self.flow is not None:
            return self.flow.result_errors[self.together.index(self)]
        return self.source.errors if isinstance(self.source, HasErrors) else ()

    @property
    def usable(self) -> bool:
        """Whether the dataflow that was made for it still runs."""
        return self.flow is None or self.flow.failure is None


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
        self._alike: dict[Hashable, tuple[Entry, ...]] = {}
        """The same, by what is quickly compared of a collection."""
        self._used: dict[Dataflow, tuple[Entry, ...]] = {}
        """The arrangements that each reader reads."""
        self.plans: dict[Dataflow, RunningPlan] = {}
        """The plans of dataflows that depend on the sizes of what they read."""
        self.plan_changes = 0
        """Changes whenever these do."""
        self.generation = 0
        """Changes whenever a collection that is known already gets or loses an arrangement."""
        self.discarded = DiscardedIndexes()
        self.graphs = GraphCache(self)
        self._orders: dict[plan.Operator, list[ColumnNumbers]] = {}
        self._orders_at = 0
        self._unfinished: list[Dataflow] = []
        """Dataflows that are being built, each for the one before it."""

    def explain(self, operator: plan.Operator) -> Explanation:
        """The explanation of a plan as if it were installed. Nothing is made."""
        with within_depth([operator]):
            return self._explain(operator)

    def _explain(self, operator: plan.Operator) -> Explanation:
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
        decisions = [line for decision in renderer.decisions for line in decision()]
        lines = ["plan", *(f"  {line}" for line in about), *decisions]
        data, numbers = graph_data(operator, estimates.of)
        indexes: dict[str, dict[str, Any]] = {}
        for use in [use() for use in renderer.uses]:
            shown = f"  {use.collection} by ({', '.join(use.columns)}): {use.origin}"
            number = numbers.get(use.operator)
            found = indexes.setdefault(
                shown, {"collection": use.collection, "columns": list(use.columns), "origin": use.origin, "of": []}
            )
            if number is not None and number not in found["of"]:
                found["of"].append(number)
        if indexes:
            lines += ["indexes", *indexes]
        data |= {"decisions": decisions, "indexes": list(indexes.values())}
        return Explanation("\n".join(lines), data)

    def render(
        self, name: str, roots: Sequence[plan.Operator], leads: Sequence[ColumnNumbers], limit: int | None = None
    ) -> tuple[Dataflow, list[Arranged]]:
        """A dataflow of some plans, and the arrangements of their results. It reuses a cached graph if possible. The
        caller says when it is `finished`, or else abandons it. It may keep `limit` bytes, and so may each arrangement that is
        made for it, until that is complete.
        """
        self.clean_up()
        with within_depth(roots):
            return self._render(name, roots, leads, limit)

    def _render(
        self, name: str, roots: Sequence[plan.Operator], leads: Sequence[ColumnNumbers], limit: int | None
    ) -> tuple[Dataflow, list[Arranged]]:
        if len(roots) == 1:
            known = self.graphs.begin(roots[0], leads[0], name)
            if known is not None:
                known.flow.limit = limit
                if known.plan is not None:
                    self.plans[known.flow] = known.plan
                    self.plan_changes += 1
                return known.flow, [known.arranged]
        flow = self.begun(self.new_flow(name))
        flow.limit = limit
        try:
            recording = RecordingCatalog(self, flow)
            renderer = Renderer(flow, recording, self.dictionary)
            sizes = Sizes()
            rewritten = optimize(roots, sizes)
            arranged = [
                renderer.arranged(root, lead or renderer.any_order(root, len(root.schema.names))[:1], None)
                for root, lead in zip(rewritten, leads, strict=True)
            ]
            renderer.finish([found.trace for found in arranged])
            self._note_plan(flow, roots, rewritten, arranged, sizes)
            if len(roots) == 1 and not self.coordinator.executor.sends:
                self.graphs.add(leads[0], renderer, arranged[0], recording)
        except BaseException:
            self.abandon(flow)
            raise
        return flow, arranged

    def render_again(self, old: Dataflow, sizes: Sizes) -> Dataflow:
        """A dataflow that computes what a running one does, planned for other sizes: it can succeed that one. The caller says
        when it is `finished`, or else abandons it. Arrangements that are made for it become complete in turns, like itself.
        """
        self.clean_up()
        plan = self.plans[old]
        flow = self.begun(self.new_flow(old.name))
        flow.limit = old.limit
        try:
            renderer = Renderer(flow, RecordingCatalog(self, flow), self.dictionary)
            rewritten = optimize(plan.roots, sizes)
            made: dict[int, Arranged] = {}
            for root, kept in zip(rewritten, plan.arranged, strict=True):
                if id(kept.trace) in made:
                    continue
                found = renderer.arranged(root, kept.columns, kept.sharded_by, len(kept.columns))
                if kept.imported and found.trace is not kept.trace:
                    raise UnsupportedError("a part of its answer is an index that another plan does not read")
                if not kept.imported and (found.imported or any([found.trace is a.trace for a in made.values()])):
                    found = renderer.arrange_anew(root, kept.columns, kept.sharded_by)
                made[id(kept.trace)] = found
            renderer.finish([made[id(kept.trace)].trace for kept in plan.arranged])
            self._note_plan(flow, plan.roots, rewritten, plan.arranged, sizes, plan.replaced + 1)
        except BaseException:
            self.abandon(flow)
            raise
        return flow

    def _note_plan(
        self, flow: Dataflow, roots: Sequence[plan.Operator], rewritten: Sequence[plan.Operator],
        arranged: Sequence[Arranged], sizes: Sizes, replaced: int = 0,
    ) -> None:  # fmt: skip
        if sizes.used and is_repeatable(rewritten):
            self.plans[flow] = RunningPlan(roots, arranged, sizes.used, plan_text(rewritten), replaced)
            self.plan_changes += 1

    def successor(self, old: Dataflow, new: Dataflow) -> None:
        """Let a dataflow that was rendered again be the one of the arrangements that were made by another. May be repeated."""
        for entry in self.entries:
            if entry.flow is old:
                entry.flow = new
                if isinstance(entry.source, MadeSource):
                    entry.source.flow = new
        self.finished(new)

    def settle_errors(self, flow: Dataflow) -> None:
        """Find out anew which errors the results of a dataflow depend on, since what it reads depends on others. May be
        repeated.
        """
        own = next((node for node in flow.root.nodes if isinstance(node, ErrorNode)), None)
        imported = {id(entry.trace): entry.errors for entry in self._used.get(flow, ())}
        found = sources_of(flow, own, flow.results, imported)
        former = flow.former_errors
        since = max([source.until for sources in former for source in sources], default=0)
        flow.result_errors = tuple(after_switch(former, found, since) if former else found)
        flow.hold_errors()

    def forget_graphs(self, flows: Container[Dataflow | None]) -> None:
        """Keep no graph that reads what some dataflows compute. May be repeated."""
        found = {entry for entry in self.entries if entry.source.flow in flows}
        for entry in found:
            self.graphs.forget(entry)
        self.graphs.forget_running(found)

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

    @property
    def is_building(self) -> bool:
        """Whether a dataflow is being built. Nobody else may build one meanwhile."""
        return bool(self._unfinished)

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
            glance = entry.glance
            alike = self._alike.get(glance, ())
            if entry not in alike:
                self._alike[glance] = (*alike, entry)
            self.entries[entry] = None

    def remove(self, entry: Entry) -> None:
        """Let queries not find an arrangement any more. May be repeated."""
        self.entries.pop(entry, None)
        glance = entry.glance
        alike = tuple([other for other in self._alike.get(glance, ()) if other is not entry])
        if alike:
            self._alike[glance] = alike
        else:
            self._alike.pop(glance, None)
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
            sizes = Sizes()
            rewritten = [inner] if known is not None else optimize([inner, *siblings], sizes)
            root, *others = rewritten
            if known is None and isinstance(root, plan.AtLeast | plan.Aggregate | plan.First | plan.Reduce):
                made = [(name, inner, renderer.arranged(root, lead, sharded_by, key))]  # its own output, if that serves
            else:
                made = [(name, inner, renderer.arrange_anew(root, lead, key if sharded_by is None else sharded_by))]
            # A loop is run once for all that leave it.
            for other, found in zip(siblings, others, strict=True):
                first = other.schema.names[0]
                made.append((f"{describe(other)} by ({first})", other, renderer.arrange_anew(found, (0,), 1)))
            results = [arranged for _, _, arranged in made]
            renderer.finish([arranged.trace for arranged in results])
            self._note_plan(flow, [inner, *siblings], rewritten, results, sizes)
        except BaseException:
            self.abandon(flow)
            raise
        flow.settle_start(self.earliest())
        if (work := self.coordinator.journal.work) is not None:
            work.indexes.add(flow)
        source = MadeSource(flow)
        entries = [
            Entry(title, what.fingerprint, source, arranged.trace, arranged.columns,
                  tuple(what.schema.names[c] for c in arranged.columns), arranged.sharded_by, flow,
                  Hold(arranged.trace, LastClosed(source, self.earliest)))
            for title, what, arranged in made
        ]  # fmt: skip
        for entry in entries:
            entry.together = entries
        if isinstance(inner, plan.Read):
            entries[0].index_of, entries[0].lead = inner.readable, lead
        self.generation += 1
        self.note(reader, entries[0])
        self.decide(
            StepByStep(
                lambda: self.add(*entries), lambda: self.coordinator.add(flow), lambda: self.finished(flow)
            )
        )  # fmt: skip
        if reader.limit is not None:
            flow.limit = reader.limit
            flow.on_swept += (lambda: _lift_limit(flow),)
        return entries[0]

    def abandon(self, flow: Dataflow) -> None:
        """Drop a dataflow that could not be finished, and what was made for it."""
        flow.let_go()
        self.graphs.discard(flow)
        self.release(flow)
        self.finished(flow)

    def release(self, reader: Dataflow) -> None:
        """A reader is gone: drop what was made for readers and has none left. May be repeated."""
        used = self._used.get(reader, ())
        if self.plans.pop(reader, None) is not None:
            self.plan_changes += 1
        for entry in used:
            entry.readers.pop(reader, None)
        for entry in used:
            self._drop_unread(entry)
        self._used.pop(reader, None)

    def used_by(self, reader: Dataflow) -> tuple[Entry, ...]:
        """The arrangements that a dataflow reads, in the order in which it came to them."""
        return self._used.get(reader, ())

    def note(self, reader: Dataflow, entry: Entry) -> None:
        """Count a dataflow among the readers of an arrangement."""
        self._used[reader] = (*self._used.get(reader, ()), entry)
        if entry.readers is NOBODY:
            entry.readers = {}
        entry.readers[reader] = None
        if entry.flow is not None and entry.flow.limit is not None:
            entry.flow.limit = None if reader.limit is None else max(reader.limit, entry.flow.limit)

    def reader_names(self, entry: Entry) -> list[str]:
        """The names of what reads an arrangement, itself or by an index that was made for it: drop them, and none is left."""
        made: dict[Dataflow, Sequence[Entry]] = {
            e.flow: e.together for e in self.entries if e.flow is not None and e.together
        }
        names: dict[str, None] = {}
        waiting, seen = list(entry.readers), set(entry.readers)
        for reader in waiting:
            further = [later for index in made.get(reader, ()) for later in index.readers if later not in seen]
            if reader not in made:
                names[reader.name] = None
            seen.update(further)
            waiting += dict.fromkeys(further)
        return list(names) or [reader.name for reader in entry.readers]

    def count_answer(self, reader: Dataflow) -> None:
        """Count a dataflow that answers a query once, where it reads arrangements."""
        for entry in self._used.get(reader, ()):
            entry.answered += 1

    def _drop_unread(self, entry: Entry) -> None:
        """Drop an arrangement that was made for readers, the others of its dataflow, and what that alone has read, if nobody
        reads any of them. May be repeated.
        """
        if not entry.together or any([other.readers for other in entry.together]):
            return
        self.generation += 1
        if entry.index_of is not None and entry in self.entries:
            self.discarded.add(entry.index_of, entry.lead, entry.trace.rows, entry.trace.bytes)
        if entry.flow is not None and entry in self.entries:
            self.coordinator.before_drop(entry.flow)
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
        self._asked_alike: dict[Hashable, list[tuple[Any, ...]]] = {}
        self.used: list[Entry] = []

    def find(self, operator: plan.Operator, lead: tuple[int, ...], sharded_by: int | None, key: int) -> Entry | None:
        """An arrangement that there is already."""
        collection = fingerprint(operator)
        alike = self._asked_alike.setdefault(_at_a_glance(collection), [])
        if collection not in alike:
            alike.append(collection)
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


def _lift_limit(flow: Dataflow) -> None:
    """An arrangement that was made for readers is complete: from here on it belongs to whoever comes."""
    flow.limit = None


GLANCES = 4
"""Operators that a glance looks at, one behind the other: few, so that it stays cheap, and enough to come from the rule of a
small relation to the relation.
"""


def _at_a_glance(collection: tuple[Any, ...], depth: int = GLANCES) -> Hashable:
    """A cheap hash of a collection, equal for equal collections: which input or view it is; or else the kind of its last
    operator, the names of its columns, a number or a text that comes first among its parameters, and the same of its first input.
    """
    kind, schema, *more = collection
    if kind == "Read":
        glance: int = more[0]
        return glance
    below = None
    if depth > 1:
        for part in more:
            if isinstance(part, tuple) and len(part) > 2 and isinstance(part[0], str) and isinstance(part[1], Schema):
                below = _at_a_glance(part, depth - 1)
                break
    return kind, schema.names, more[0] if more and isinstance(more[0], int | str) else None, below


def fingerprint(operator: plan.Operator) -> tuple[Any, ...]:
    """The key of a collection in the catalog. An arranged collection has the key of its input."""
    return operator.input.fingerprint if isinstance(operator, plan.Arrange) else operator.fingerprint
