"""GraphCache: the graph of a dataflow that was dropped, for the next one of the same plan.

Dashboards install the same queries again and again, and over shared arrangements most of what that takes is to work out the
graph. Promise: a dataflow that begins with a graph from here answers as one rendered afresh. The graph is of the same plan, and
of every collection that rendering asked the catalog about there are the same arrangements as then. Nothing but the graph is kept:
no rows, no history, no results of text functions; and nothing of an arrangement that was dropped.

A program that builds its query anew each time makes another plan with the same fingerprint. So the last plans are kept, and found
by plans that are the same.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Container
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tektite.plan.algebra import Operator, Rows, is_same
from tektite.plan.walk import walk

if TYPE_CHECKING:
    from tektite.dataflow.arrange import Arranged
    from tektite.dataflow.flow import Dataflow
    from tektite.engine.catalog import Catalog, Entry, RecordingCatalog
    from tektite.engine.running_plan import RunningPlan
    from tektite.expr import RowProgram
    from tektite.plan.render import Renderer

Lead = tuple[int, ...]
"""The leading columns that a result was asked to have."""
FoundArrangements = tuple[tuple[Any, ...], "list[Entry]"]
"""A collection, and the arrangements that there are of it."""

MOST_PLANS = 64
"""Plans that are kept although nobody else has them: those of a dashboard, each a few kilobytes."""
MOST_WORDS = 1 << 10
"""Constant words of a plan that is kept."""


@dataclass(eq=False, slots=True, weakref_slot=True)
class CachedGraph:
    """A dataflow's graph: where its result is, what it reads, and of which collections there were which arrangements."""

    flow: Dataflow
    key: Lead
    arranged: Arranged
    uses: tuple[Entry, ...]
    remembering: tuple[RowProgram, ...]
    ground: tuple[FoundArrangements, ...]
    generation: int
    plan: RunningPlan | None = None
    """Its plan, if that depends on the sizes of what it reads."""


class GraphCache:
    """The graphs of one catalog's queries: of dataflows that run, and of dropped ones by plan and key."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._running: dict[Dataflow, CachedGraph] = {}
        self._known: weakref.WeakKeyDictionary[Operator, dict[Lead, CachedGraph]] = weakref.WeakKeyDictionary()
        """Those that may be used."""
        self._recent: OrderedDict[int, Operator] = OrderedDict()
        """The last plans by digest, those that were used last at the end."""
        self._ground: dict[Entry, FoundArrangements] = {}
        """The arrangements of some collections found in the present generation, by the first one. Thousands of views ask about
        the same ones. Collections are no keys: hashing one visits a part as often as others take it.
        """
        self._grounds: dict[tuple[int, ...], tuple[FoundArrangements, ...]] = {}
        """Some of them together, by their ids: what graphs stand on."""
        self._ground_of = -1

    def _clear_ground(self) -> None:
        self._ground.clear()
        self._grounds.clear()

    def _first_of(self, operator: Operator) -> Operator:
        """The plan that graphs of this one are known by: the same one, which came first."""
        if operator in self._known:
            return operator
        other = self._recent.get(operator.digest) if self._recent else None
        return operator if other is None or not is_same(other, operator) else other

    def _remember(self, operator: Operator) -> None:
        """Remember a plan for those that are the same, and let go of the one that was not used for longest."""
        constants = [part.words.size for part in walk([operator]) if isinstance(part, Rows)]
        if sum(constants) <= MOST_WORDS:
            self._recent[operator.digest] = operator
            self._recent.move_to_end(operator.digest)
            if len(self._recent) > MOST_PLANS:
                self._recent.popitem(last=False)

    def _drop(self, operator: Operator, key: Lead) -> None:
        """Forget a graph, and its plan."""
        self._known.get(operator, {}).pop(key, None)
        if self._recent.get(operator.digest) is operator:
            del self._recent[operator.digest]

    def begin(self, operator: Operator, key: Lead, name: str) -> CachedGraph | None:
        """A dataflow of this name with the graph that an earlier one of the same plan had, if it still serves."""
        known = self._known.get(operator) or self._known.get(self._first_of(operator))
        found = None if known is None else known.pop(key, None)
        if found is None or not self._stands(found):
            return None
        if operator.digest in self._recent:
            self._recent.move_to_end(operator.digest)
        flow = found.flow
        try:
            self._catalog.begun(flow).begin_anew(name)
            for entry in found.uses:
                self._catalog.note(flow, entry)
            for program in found.remembering:
                program.wake()
        except BaseException:
            self._catalog.abandon(flow)
            raise
        self._running[flow] = found
        return found

    def add(self, key: Lead, renderer: Renderer, arranged: Arranged, recording: RecordingCatalog) -> None:
        """Remember a graph, for when its dataflow is dropped."""
        if renderer.reusable:
            ground = self._shared_ground(tuple([self._ground_now(collection) for collection in recording.asked]))
            self._running[renderer.flow] = CachedGraph(
                renderer.flow, key, arranged, self._catalog.used_by(renderer.flow), tuple(renderer.remembering), ground,
                self._catalog.generation, self._catalog.plans.get(renderer.flow),
            )  # fmt: skip

    def _shared_ground(self, ground: tuple[FoundArrangements, ...]) -> tuple[FoundArrangements, ...]:
        """One for all graphs that stand on the same arrangements."""
        if not all([found in self._ground for _, there in ground for found in there[:1]]):
            return ground
        return self._grounds.setdefault(tuple([id(found) for found in ground]), ground)

    def _ground_now(self, collection: tuple[Any, ...]) -> FoundArrangements:
        if self._ground_of != self._catalog.generation:
            self._clear_ground()
            self._ground_of = self._catalog.generation
        there = self._catalog.all_of(collection)
        if not there:
            return collection, there
        found = self._ground.get(there[0])
        if found is None or found[1] != there:
            found = self._ground[there[0]] = there[0].collection, there
        return found

    def release(self, operator: Operator, flow: Dataflow) -> None:
        """A dataflow was dropped: its graph may be used, unless there is one of its plan already."""
        operator, graph = self._first_of(operator), self._running.get(flow)
        known = self._known.setdefault(operator, {})
        if (
            graph is not None
            and flow.failure is None
            and known.get(graph.key, graph) is graph
            and all([entry in self._catalog.entries for entry in graph.uses])
        ):
            flow.empty()
            for program in graph.remembering:
                program.sleep()
            of = weakref.ref(operator)
            for entry in graph.uses:
                if entry.graphs is None:
                    entry.graphs = weakref.WeakKeyDictionary()
                entry.graphs[graph] = of, graph.key
            known[graph.key] = graph
            self._remember(operator)
        self._running.pop(flow, None)

    def discard(self, flow: Dataflow) -> None:
        """Let go of the graph of a dataflow that has a successor, or is gone."""
        self._running.pop(flow, None)

    def forget(self, entry: Entry) -> None:
        """Let go of what may be used and reads an arrangement that is dropped."""
        self._clear_ground()
        for of, key in (entry.graphs or {}).values():
            operator = of()
            if operator is not None:
                self._drop(operator, key)
        entry.graphs = None

    def forget_running(self, entries: Container[Entry]) -> None:
        """Let go of the graphs of dataflows that read some arrangements."""
        for flow, graph in list(self._running.items()):
            if any([entry in entries for entry in graph.uses]):
                del self._running[flow]

    def _stands(self, graph: CachedGraph) -> bool:
        """Whether there is what there was when the graph was made."""
        for entry in graph.uses:
            if not entry.usable:
                return False
        if graph.generation != self._catalog.generation:
            if any(self._catalog.all_of(collection) != found for collection, found in graph.ground):
                return False
            graph.generation = self._catalog.generation
        return True
