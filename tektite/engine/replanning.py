"""Replanner: gives views other plans when the sizes of what they read have changed, while they run.

The order of joins depends on sizes, and a view may be older than its data. The policy:

* A plan is looked at again when a source whose size it was made with has `FACTOR` times, or one in `FACTOR` of, the rows that it
  had then, and has or had `ROWS` at least. Looking at sizes costs an epoch a microsecond for each table that it changes.
* It is made again with the new sizes of these sources and the old sizes of all others, so that sources of about one size do not
  take turns. If that gives the same plan, the sizes are noted, and nothing else happens.
* Otherwise a second dataflow computes the same from the other plan, beside the first one, in turns of bounded length, as a new
  view would. When it has come as far as the first one, it takes its place (`tektite.dataflow.succession`). Nobody who reads,
  follows or holds the view, or a view of it, notices.
* One dataflow is replaced at a time. If the second one fails, the first one goes on, and its plan stays.

So a plan is made again after at least as many changes of rows as a large part of its sources has, and the work for that
is in proportion to the changes. Plans that read a stream, whose past nobody knows, stay; so do those in which a Python function
sees changes pass, plans whose order or strategy their author chose, and those of engines with `replan=False`.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from tektite.dataflow.flow import Dataflow
from tektite.dataflow.succession import Succession
from tektite.engine.lock import StepByStep
from tektite.engine.running_plan import RunningPlan, plan_text, sizes_text
from tektite.errors import TektiteError
from tektite.plan.algebra import Readable
from tektite.plan.estimates import Sizes
from tektite.plan.rules import optimize

if TYPE_CHECKING:
    from tektite.engine.engine_core import EngineCore
    from tektite.engine.view_core import ViewCore

LOG = logging.getLogger("tektite")

FACTOR = 8
"""How many times as many rows count as another size. Estimates are no better than a factor of a few, and a plan that is made
again computes its answer again: after that many more rows, this is a small part of the work that these have caused.
"""
ROWS = 10_000
"""Smaller sources do not matter: a bad order of joins costs less than another plan."""
LOOKS = 8
"""Plans that are looked at in one epoch: about ten milliseconds at most."""
SOURCES = 2
"""Sources whose sizes are looked at in one epoch, beside the tables that it changes. An engine with many views closes epochs of
half a millisecond, in which eight of them took a tenth.
"""


class Replanner:
    """Watches the plans of one engine's dataflows. Its methods are called with the engine's lock held."""

    def __init__(self, core: EngineCore, is_on: bool) -> None:
        self._core = core
        self.is_on = is_on
        self.rows = ROWS
        self.candidate: tuple[Dataflow, Dataflow] | None = None
        """A dataflow that is to be replaced, and the one that is to replace it."""
        self._due: deque[Dataflow] = deque()
        """Dataflows whose plans are to be looked at."""
        self._bounds: dict[Readable, tuple[float, float]] = {}
        """Between which numbers of rows a source has the size that plans were made for."""
        self._turn: deque[Readable] = deque()
        """Sources in the order in which they are looked at."""
        self._known = -1

    # ------------------------------------------------------------------ when

    def after_epoch(self, changed: Iterable[Readable]) -> None:
        """Look at the sizes of tables that have changed, and of some other sources; then do a part of what there is to do."""
        if (not self.is_on or not self._core.catalog.plans) and self.candidate is None:
            return
        if self._core.coordinator.working:
            return  # a callback closes an epoch of system relations
        try:
            self._look(changed)
            self.step()
        except Exception:  # the epoch is closed, and views go on as they are
            LOG.exception("plans could not be made again")
            self._due.clear()

    def _look(self, changed: Iterable[Readable]) -> None:
        """Note the plans that are to be looked at. While there are some, there is enough to do."""
        if self._due or self.candidate is not None:
            return
        if self._known != self._core.catalog.plan_changes:
            self._find_bounds()
        for source in changed:
            if source in self._bounds:
                self._look_at(source)
        for _ in range(min(SOURCES, len(self._turn))):
            self._look_at(self._turn[0])
            self._turn.rotate(-1)

    def _find_bounds(self) -> None:
        """Work out for each source which sizes are others than plans were made for."""
        bounds: dict[Readable, tuple[float, float]] = {}
        for plan in self._core.catalog.plans.values():
            if plan.is_fixed:
                continue
            for source, rows in plan.sizes.items():
                least, most = bounds.get(source, (-1.0, float("inf")))
                small = rows / FACTOR if rows >= self.rows else -1.0
                bounds[source] = max(least, small), min(most, max(float(rows * FACTOR), float(self.rows)))
        self._turn = deque(bounds)
        self._bounds = bounds
        self._known = self._core.catalog.plan_changes

    def _look_at(self, source: Readable) -> None:
        least, most = self._bounds[source]
        if least < 0 and source.most_rows < most:
            return  # its size merges updates that cancel each other, which is too much for every epoch
        if not least < source.size < most:
            for flow, plan in self._core.catalog.plans.items():
                before = plan.sizes.get(source)
                if before is None or flow in self._due or max(source.size, before) < self.rows:
                    continue
                if is_another_size(source.size, before):
                    self._due.append(flow)

    # ------------------------------------------------------------------ what

    def step(self) -> None:
        """Go on: switch, if a dataflow is ready to; otherwise look at some plans."""
        if self.candidate is not None:
            self._try_to_switch(*self.candidate)
        looks = 0
        while self._due and self.candidate is None and looks < LOOKS:
            flow = self._due.popleft()
            plan = self._core.catalog.plans.get(flow)
            if plan is not None and self._may_replace(flow, plan):
                self._plan_again(flow, plan)
                looks += 1

    def _may_replace(self, flow: Dataflow, plan: RunningPlan) -> bool:
        return self.is_on and not plan.is_fixed and flow.swept and flow.failure is None and not flow.closed

    def _plan_again(self, flow: Dataflow, plan: RunningPlan) -> None:
        sizes: Mapping[Readable, int] = {
            source: source.size if is_another_size(source.size, rows) else rows for source, rows in plan.sizes.items()
        }
        found = Sizes(sizes)
        text = plan_text(optimize(plan.roots, found))
        if text == plan.text:
            plan.sizes = found.used
            self._known = -1
            return
        catalog, coordinator = self._core.catalog, self._core.coordinator
        try:
            new = catalog.render_again(flow, Sizes(sizes))
            new.settle_start()
            new.read(flow)  # so that it never comes further
        except TektiteError as error:
            LOG.warning("view %r keeps its plan, since another one could not be made: %s", flow.name, error)
            plan.is_fixed = True
            self._known = -1
            return

        def begin() -> None:
            coordinator.add(new)
            catalog.finished(new)
            self.candidate = flow, new

        self._core.lock.decide(StepByStep(begin))
        LOG.info("view %r gets another plan, since the sizes of what it reads have changed", flow.name)

    def _try_to_switch(self, old: Dataflow, new: Dataflow) -> None:
        coordinator = self._core.coordinator
        if old not in coordinator.flows or old.failure is not None or new.failure is not None or not self.is_on:
            if new.failure is not None and old.failure is None and old in self._core.catalog.plans:
                LOG.warning("view %r keeps its plan, since another one failed: %s", old.name, new.failure)
                self._core.catalog.plans[old].is_fixed = True
                self._known = -1
            self.give_up()
        elif Succession.is_ready(old, new):
            self._switch(old, new)

    def give_up(self) -> None:
        """Drop a dataflow that was to replace another one, if there is one."""
        if self.candidate is not None:
            _, new = self.candidate
            core = self._core

            def drop() -> None:
                core.coordinator.remove(new)
                core.catalog.release(new)
                self.candidate = None

            core.lock.decide(StepByStep(drop))

    def _switch(self, old: Dataflow, new: Dataflow) -> None:
        core = self._core
        catalog, coordinator = core.catalog, core.coordinator
        views = [view for view in core.views.values() if view.flow is old]
        readers = [flow for flow in _readers_of(coordinator.flows, old) if flow is not new]
        flows = {new, *readers}

        def move() -> None:
            for view in views:
                view.flow = new
            catalog.successor(old, new)

        def settle() -> None:
            catalog.forget_graphs(flows)
            catalog.graphs.discard(old)
            if any(old.result_errors) or any(new.result_errors):
                for reader in readers:
                    catalog.settle_errors(reader)

        def end() -> None:
            coordinator.replace(old, new)
            catalog.release(old)
            self.candidate = None

        try:
            decision = StepByStep(Succession(old, new).apply, move, settle, end)
        except BaseException:
            self.give_up()
            raise
        core.lock.decide(decision)
        LOG.info("view %r runs by another plan", new.name)

    # ------------------------------------------------------------------ what views ask

    def fix_plan(self, view: ViewCore) -> None:
        """Let a view keep its plan, whatever becomes of the sizes."""
        plan = self._core.catalog.plans.get(view.flow)
        if plan is not None:
            plan.is_fixed = True

    def about(self, view: ViewCore) -> list[str]:
        """Lines about the plan of a view: the sizes that it was made for, and how often it was replaced."""
        plan = self._core.catalog.plans.get(view.flow)
        if plan is None:
            return []
        lines = ["sizes that its plan was made for", f"  {sizes_text(plan)}"]
        if plan.replaced:
            lines.append(f"  it has had {plan.replaced} other plan{'s' * (plan.replaced > 1)} before")
        if plan.is_fixed or not self.is_on:
            lines.append("  it keeps its plan")
        elif self.is_replacing(view.flow):
            lines.append("  another plan is being made ready")
        if plan_text(optimize([view.definition])) != plan.text and len(plan.roots) == 1:
            lines += ["it runs by this plan", *(f"  {line}" for line in plan.text.splitlines())]
        return lines

    def is_replacing(self, flow: Dataflow) -> bool:
        """Whether a dataflow is about to be replaced."""
        return self.candidate is not None and self.candidate[0] is flow

    def let_go(self, flow: Dataflow | None = None) -> None:
        """Give up replacing a dataflow that is about to be dropped, or is gone already."""
        if self.candidate is not None and (
            self.candidate[0] is flow or self.candidate[0] not in self._core.coordinator.flows
        ):
            self.give_up()


def is_another_size(rows: int, before: int) -> bool:
    """Whether a number of rows is so far from another one that a plan may be another.

    >>> is_another_size(0, 0), is_another_size(7, 1), is_another_size(8, 1), is_another_size(1, 8)
    (False, False, True, True)
    """
    return rows != before and (rows >= FACTOR * before or rows * FACTOR <= before)


def _readers_of(flows: Iterable[Dataflow], source: Dataflow) -> list[Dataflow]:
    """The dataflows that read one, directly or indirectly, sources before readers."""
    found: dict[Dataflow, None] = {}
    for flow in flows:
        if any([other.flow is source or other.flow in found for other in flow.sources]):
            found[flow] = None
    return list(found)
