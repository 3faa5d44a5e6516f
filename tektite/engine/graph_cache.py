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

MOST_PLANS = 64
"""Plans that are kept although nobody else has them: those of a dashboard, each a few kilobytes."""
MOST_WORDS = 1 << 10
"""Constant words of a plan that is kept."""


@dataclass(eq=False)
class CachedGraph:
    """A dataflow's graph: where its result is, what it reads, and of which collections there were which arrangements."""

    flow: Dataflow
    arranged: Arranged
    uses: list[Entry]
    remembering: list[RowProgram]
    ground: list[tuple[tuple[Any, ...], list[Entry]]]
    generation: int
    plan: RunningPlan | None = None
    """Its plan, if that depends on the sizes of what it reads."""
    idle: bool = False


class GraphCache:
    """The graphs of one catalog's queries, by plan and key; of each the one that was made first."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._known: weakref.WeakKeyDictionary[Operator, dict[Lead, CachedGraph]] = weakref.WeakKeyDictionary()
        self._recent: OrderedDict[int, Operator] = OrderedDict()
        """The last plans by digest, those that were used last at the end."""

    def _first_of(self, operator: Operator) -> Operator:
        """The plan that graphs of this one are known by: the same one, which came first."""
        if operator in self._known:
            return operator
        other = self._recent.get(operator.digest)
        return operator if other is None or not is_same(other, operator) else other

    def _keep(self, operator: Operator) -> None:
        """Keep a plan for those that are the same, and let go of the one that was not used for longest."""
        constants = [part.words.size for part in walk([operator]) if isinstance(part, Rows)]
        if sum(constants) <= MOST_WORDS:
            self._recent[operator.digest] = operator
            self._recent.move_to_end(operator.digest)
            if len(self._recent) > MOST_PLANS:
                self._recent.popitem(last=False)

    def _drop(self, operator: Operator, key: Lead) -> None:
        self._known.get(operator, {}).pop(key, None)
        if self._recent.get(operator.digest) is operator:
            del self._recent[operator.digest]

    def begin(self, operator: Operator, key: Lead, name: str) -> CachedGraph | None:
        """A dataflow of this name with the graph that an earlier one of the same plan had, if it still serves."""
        operator = self._first_of(operator)
        found = self._known.get(operator, {}).get(key)
        if found is None or not found.idle:
            return None
        if not self._stands(found):
            self._drop(operator, key)
            return None
        if operator.digest in self._recent:
            self._recent.move_to_end(operator.digest)
        flow = found.flow
        try:
            found.idle = False
            self._catalog.begun(flow).begin_anew(name)
            for entry in found.uses:
                self._catalog.note(flow, entry)
            for program in found.remembering:
                program.wake()
        except BaseException:
            self._drop(operator, key)
            self._catalog.abandon(flow)
            raise
        return found

    def add(
        self, operator: Operator, key: Lead, renderer: Renderer, arranged: Arranged, recording: RecordingCatalog
    ) -> None:
        """Remember a graph, for when its dataflow is dropped."""
        operator = self._first_of(operator)
        known = self._known.setdefault(operator, {})
        if renderer.reusable and key not in known:
            self._keep(operator)
            ground = [(collection, self._catalog.all_of(collection)) for collection in recording.asked]
            made = known[key] = CachedGraph(
                renderer.flow, arranged, recording.used, renderer.remembering, ground, self._catalog.generation,
                self._catalog.plans.get(renderer.flow),
            )  # fmt: skip
            of = weakref.ref(operator)
            for entry in recording.used:
                if entry.graphs is None:
                    entry.graphs = weakref.WeakKeyDictionary()
                entry.graphs[made] = of, key

    def release(self, operator: Operator, flow: Dataflow) -> None:
        """A dataflow was dropped: what is remembered of it may be used."""
        for graph in self._known.get(self._first_of(operator), {}).values():
            if graph.flow is flow and flow.failure is None:
                flow.empty()
                for program in graph.remembering:
                    program.sleep()
                graph.idle = True

    def discard(self, flow: Dataflow) -> None:
        """Let go of the graph of a dataflow that has a successor."""
        for operator, known in list(self._known.items()):
            for key in [key for key, graph in known.items() if graph.flow is flow]:
                self._drop(operator, key)

    def forget(self, entry: Entry) -> None:
        """Let go of what read an arrangement that is dropped."""
        for of, key in (entry.graphs or {}).values():
            operator = of()
            if operator is not None:
                self._drop(operator, key)
        entry.graphs = None

    def _stands(self, graph: CachedGraph) -> bool:
        """Whether there is what there was when the graph was made."""
        if not all(entry.usable for entry in graph.uses):
            return False
        if graph.generation != self._catalog.generation:
            if any(self._catalog.all_of(collection) != found for collection, found in graph.ground):
                return False
            graph.generation = self._catalog.generation
        return True
