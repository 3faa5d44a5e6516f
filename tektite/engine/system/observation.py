"""Observation: one look at an engine, from which the rows of all system relations are computed.

What exists only because of system relations is left out: their tables, and whatever reads those. So a query over them does not
report on itself, and nothing changes because somebody looked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from itertools import count
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from tektite.dataflow.flow import Dataflow
from tektite.dataflow.graph import Scope
from tektite.dataflow.node import Node
from tektite.engine.catalog import Entry
from tektite.engine.core import HIDDEN_PREFIX
from tektite.engine.input_core import InputCore
from tektite.engine.system.process_memory import ProcessMemory
from tektite.engine.view_core import ViewCore
from tektite.plan import algebra as plan
from tektite.plan.algebra import Operator
from tektite.plan.explain import explain
from tektite.plan.rules import optimize
from tektite.plan.walk import walk
from tektite.trace.trace import Trace

if TYPE_CHECKING:
    from tektite.engine.engine_core import EngineCore


QUERIES = {f"{HIDDEN_PREFIX}prepared_": "prepared", f"{HIDDEN_PREFIX}shared_": "shared query"}
"""How the names of dataflows begin that compute what clients ask for, beside views, and what people call them."""


def shown_name(name: str) -> str:
    """The name of a dataflow as people know it, given the one that it has.

    >>> shown_name("totals"), shown_name("__shared_3")
    ('totals', 'shared query 3')
    """
    for start, called in QUERIES.items():
        if name.startswith(start):
            return f"{called} {name.removeprefix(start)}"
    return name


class StableNumbers:
    """Numbers for dataflows and operators, which last as long as these do."""

    def __init__(self) -> None:
        self._numbers: WeakKeyDictionary[Dataflow | Node, int] = WeakKeyDictionary()
        self._next = count(1)

    def of(self, thing: Dataflow | Node) -> int:
        """The number of a dataflow or an operator."""
        found = self._numbers.get(thing)
        if found is None:
            found = self._numbers[thing] = next(self._next)
        return found


EXPENSIVE = (plan.Join, plan.Match, plan.Aggregate, plan.Reduce, plan.First, plan.AtLeast, plan.Leave)
"""Operators that keep an index for what they read or compute."""


class ViewPlans:
    """The plans of views, after all rewrites; each is made once."""

    def __init__(self) -> None:
        self._plans: WeakKeyDictionary[ViewCore, tuple[Operator, str, list[Operator]]] = WeakKeyDictionary()

    def of(self, view: ViewCore) -> str:
        """The plan of a view, as text."""
        return self._found(view)[1]

    def expensive(self, view: ViewCore) -> list[Operator]:
        """The different parts of a view's plan that keep an index, outside loops; the largest first."""
        return self._found(view)[2]

    def _found(self, view: ViewCore) -> tuple[Operator, str, list[Operator]]:
        found = self._plans.get(view)
        if found is None:
            (operator,) = optimize([view.definition])
            parts = [part for part in walk([operator]) if isinstance(part, EXPENSIVE) and part.loop is None]
            different: dict[object, Operator] = {part.fingerprint: part for part in parts}
            found = self._plans[view] = operator, "\n".join(explain(operator)), list(different.values())
        return found


class Observation:
    """An engine as it is at one moment. The caller holds the lock while it uses this."""

    def __init__(
        self,
        core: EngineCore,
        own: set[InputCore],
        numbers: StableNumbers,
        plans: ViewPlans,
        process: ProcessMemory,
        clock: int,
    ) -> None:
        """`own` are the tables of system relations. `clock` is the last epoch that something else than these relations closed."""
        self.core = core
        self.own = own
        self.numbers = numbers
        self.plans = plans
        self.process = process
        self.clock = clock

    @cached_property
    def flows(self) -> list[Dataflow]:
        """Dataflows that do not depend on system relations. Sources come before their readers."""
        found, excluded = [], set()
        for flow in self.core.coordinator.flows:
            if any(source in self.own or source.flow in excluded for source in flow.sources):
                excluded.add(flow)
            else:
                found.append(flow)
        return found

    @cached_property
    def flow_set(self) -> set[Dataflow]:
        """The same, to look one up."""
        return set(self.flows)

    @property
    def inputs(self) -> Iterator[InputCore]:
        """Tables that are not system relations, and that no language keeps for itself."""
        for source in self.core.inputs.values():
            if source not in self.own and not source.name.startswith(HIDDEN_PREFIX):
                yield source

    @property
    def views(self) -> Iterator[ViewCore]:
        """Views that do not depend on system relations."""
        for view in self.core.views.values():
            if view.flow in self.flow_set and not view.name.startswith(HIDDEN_PREFIX):
                yield view

    @property
    def entries(self) -> Iterator[Entry]:
        """Shared arrangements that do not depend on system relations."""
        for entry in self.core.catalog.entries:
            source = entry.source
            if entry.name.startswith(HIDDEN_PREFIX):
                continue
            if source not in self.own and (source.flow is None or source.flow in self.flow_set):
                yield entry

    @property
    def written(self) -> Counter[InputCore]:
        """Bytes of what was written to tables and no epoch that is closed has: in transactions, and for later."""
        found: Counter[InputCore] = Counter()
        for writes in (self.core.writes, self.core.scheduled, *self.core.snapshots.writes()):
            for source, updates in list(writes.updates.items()):
                if source not in self.own and (size := updates.bytes):
                    found[source] += size
        return found

    def readers(self, entry: Entry) -> list[Dataflow]:
        """The dataflows of queries that read a shared arrangement. What only keeps it, such as CREATE INDEX, is no query."""
        return [r for r in entry.readers if r in self.flow_set and self.kind_of(r) != "internal"]

    def kind_of(self, flow: Dataflow) -> str:
        """The kind of a dataflow: of a view, an index, a query that clients prepared or follow, or something internal."""
        if flow in self.index_flows:
            return "index" if flow in self.shared_flows else "internal"
        if not flow.name.startswith(HIDDEN_PREFIX):
            return "view"
        return "query" if flow.name.startswith(tuple(QUERIES)) else "internal"

    def name_of(self, flow: Dataflow) -> str:
        """The name of a dataflow, as people know it."""
        return shown_name(flow.name)

    @cached_property
    def makers(self) -> dict[int, Node]:
        """The operator that keeps each trace, by the trace's id."""
        return {id(node.mints): node for _, _, node in self.nodes() if node.mints is not None}

    @cached_property
    def shared_traces(self) -> dict[int, Entry]:
        """The shared arrangement of each trace, by the trace's id; the first that was made, where a view has one, too."""
        found: dict[int, Entry] = {}
        for entry in self.entries:
            found.setdefault(id(entry.trace), entry)
        return found

    @cached_property
    def index_flows(self) -> set[Dataflow]:
        """Dataflows that compute arrangements, also of what languages keep for themselves."""
        return {entry.flow for entry in self.core.catalog.entries if entry.flow is not None}

    @cached_property
    def shared_flows(self) -> set[Dataflow]:
        """Dataflows that compute arrangements for whoever reads them."""
        return {entry.flow for entry in self.entries if entry.flow is not None}

    def number_of_maker(self, trace: Trace) -> int | None:
        """The number of the operator that keeps a trace; None for that of a table."""
        maker = self.makers.get(id(trace))
        return None if maker is None else self.numbers.of(maker)

    def nodes(self) -> Iterator[tuple[Dataflow, Scope, Node]]:
        """All operators, with their dataflow and their scope."""
        for flow in self.flows:
            for scope in flow.root.scopes():
                for node in scope.nodes:
                    yield flow, scope, node

    def owner_of(self, name: str) -> str | None:
        """The role that owns a table or view, if some language knows of one."""
        return self.core.hooks.owner_of(name)

    def until(self, low: int) -> int:
        """The last epoch that something answers for, given the first that it does not: none that system relations closed."""
        return min(low - 1, self.clock)
