"""The catalog: every arrangement that queries share, by collection and leading columns.

An arrangement in the catalog belongs to no query. It is the base arrangement of an input, or the output of a small
dataflow of its own, which is made when the first query asks for it and dropped with the last one that reads it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tektite.dataflow.arrange import serves
from tektite.dataflow.flow import Dataflow, Source, last_closed
from tektite.errors import ConflictError
from tektite.plan import operators as plan
from tektite.plan.operators import describe
from tektite.plan.render import Renderer
from tektite.trace.trace import Hold, Trace

if TYPE_CHECKING:
    from tektite.dictionary import Dictionary
    from tektite.runtime.coordinator import Coordinator
    from tektite.runtime.threads import Threads


@dataclass(eq=False)
class Entry:
    """One shared arrangement: whose it is, where it comes from, and who reads it."""

    name: str
    collection: tuple[Any, ...]
    source: Source
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


class Catalog:
    """Finds, makes and drops shared arrangements."""

    def __init__(
        self, coordinator: Coordinator, executor: Threads, dictionary: Dictionary, shards: int, effort: str
    ) -> None:
        self.coordinator = coordinator
        self.executor = executor
        self.dictionary = dictionary
        self.shards = shards
        self.effort = effort
        self.entries: list[Entry] = []

    def explain(self, operator: plan.Operator) -> str:
        """What installing a plan would do, as text. Nothing is made."""
        flow = self.new_flow("explain")
        try:
            renderer = Renderer(flow, Scout(self, flow), self.dictionary, operator)
            renderer.stream(operator)
        finally:
            flow.drop()
        lines = [*renderer.decisions]
        uses = list(dict.fromkeys(renderer.uses))
        if uses:
            lines.append("arrangements")
            lines += [f"  {use.collection} by ({', '.join(use.columns)}): {use.origin}" for use in uses]
        return "\n".join(lines)

    def new_flow(self, name: str) -> Dataflow:
        """An empty dataflow that runs as this engine's do."""
        return Dataflow(name, self.executor, self.shards, self.effort)

    def add(self, entry: Entry) -> None:
        """Let queries find an arrangement."""
        self.entries.append(entry)

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
        flow = self.new_flow(name)
        inner = operator.input if isinstance(operator, plan.Arrange) else operator
        try:
            renderer = Renderer(flow, Scribe(self, flow), self.dictionary, operator)
            arranged = renderer.arrange_anew(inner, lead, key if sharded_by is None else sharded_by)
        except BaseException:
            flow.drop()
            self.release(flow)
            raise
        flow.settle_start()
        entry = Entry(
            name, collection, flow, arranged.trace, arranged.columns, tuple(names[c] for c in arranged.columns),
            arranged.sharded_by, flow,
        )  # fmt: skip
        entry.hold = Hold(arranged.trace, last_closed(flow))
        self.entries.append(entry)
        self.coordinator.add(flow)
        self.coordinator.finish(flow)
        return entry

    def release(self, reader: Dataflow) -> None:
        """A reader is gone: drop what was made for readers and has none left."""
        for entry in list(self.entries):
            if reader in entry.readers:
                entry.readers.remove(reader)
                if entry.flow is not None and not entry.readers:
                    self.drop(entry)

    def drop(self, entry: Entry) -> None:
        """Drop an arrangement that was made for readers, and what it alone reads."""
        self.entries.remove(entry)
        if entry.hold is not None:
            entry.hold.drop()
        assert entry.flow is not None
        self.coordinator.remove(entry.flow)
        self.release(entry.flow)


class Scribe:
    """The catalog as one reader sees it: notes what the reader uses."""

    def __init__(self, catalog: Catalog, reader: Dataflow) -> None:
        self.catalog = catalog
        self.reader = reader

    def arrangement(self, operator: plan.Operator, lead: tuple[int, ...], sharded_by: int | None, key: int) -> Entry:
        entry = self.catalog.find(fingerprint(operator), lead, sharded_by, key)
        return self._note(entry or self.catalog.make(operator, lead, sharded_by, key))

    def has(self, operator: plan.Operator, lead: tuple[int, ...], sharded_by: int | None, key: int) -> bool:
        return self.catalog.find(fingerprint(operator), lead, sharded_by, key) is not None

    def changes(self, operator: plan.Read) -> Entry:
        entry = self.catalog.find(fingerprint(operator), (), None, 1 << 30)
        if entry is None:
            name = operator.readable.name
            raise ConflictError(f"{name!r} cannot be read: it was dropped")
        return self._note(entry)

    def _note(self, entry: Entry) -> Entry:
        if self.reader not in entry.readers:
            entry.readers.append(self.reader)
        return entry


class Scout(Scribe):
    """The catalog as a query would see it that is not installed: what is missing is stood in for, and nothing is noted."""

    def arrangement(self, operator: plan.Operator, lead: tuple[int, ...], sharded_by: int | None, key: int) -> Entry:
        entry = self.catalog.find(fingerprint(operator), lead, sharded_by, key)
        if entry is not None:
            return entry
        names = operator.schema.names
        columns = (*lead, *(c for c in range(len(names)) if c not in lead))
        trace = Trace(len(columns), 1, 1, self.catalog.shards, self.catalog.effort)
        sharding = key if sharded_by is None else sharded_by
        ordered = tuple(names[c] for c in columns)
        return Entry(describe(operator), fingerprint(operator), self.reader, trace, columns, ordered, sharding, None)

    def _note(self, entry: Entry) -> Entry:
        return entry


def fingerprint(operator: plan.Operator) -> tuple[Any, ...]:
    """What the catalog knows a collection by: arranging does not make it another one."""
    return operator.input.fingerprint if isinstance(operator, plan.Arrange) else operator.fingerprint
