"""Installs views, and drops views and inputs: each as one decision, which happens whole or not at all."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from tektite.engine.catalog import Entry
from tektite.engine.hooks import Installation
from tektite.engine.input_core import InputCore
from tektite.engine.lock import StepByStep
from tektite.engine.names import check_name
from tektite.engine.view import View
from tektite.engine.view_core import ViewCore
from tektite.errors import ConflictError, IncorrectError
from tektite.expr import Expr
from tektite.query.collection import Collection
from tektite.query.columns import column_numbers
from tektite.query.grouped import Grouped
from tektite.query.limits import row_order
from tektite.runtime import allocator
from tektite.storage.epoch_writer import DurableChange
from tektite.unknown_options import is_function

if TYPE_CHECKING:
    from tektite.engine.engine_core import EngineCore


def install(
    core: EngineCore,
    collections: Mapping[str, Collection],
    keys: Mapping[str, str | Sequence[str]],
    keep: bool,
    on_change: Callable[[pa.Table], None] | None,
    since: int | None,
    limit: int | None,
) -> list[View]:
    """Views of several collections by one dataflow; see `EngineCore.install_together`."""
    at, began = time.time(), time.perf_counter()
    for name, collection in collections.items():
        check_installable(core, name, collection)
    leads = [column_numbers(collection.schema, keys.get(name, ())) for name, collection in collections.items()]
    flow, arranged = core.catalog.render(
        ", ".join(collections), [c.operator for c in collections.values()], leads, limit
    )
    views: list[ViewCore] = []
    try:
        flow.settle_start(since)
        for (name, collection), found in zip(collections.items(), arranged, strict=True):
            view = ViewCore(core, name, collection.operator, flow, found, keep, len(views))
            view.facade = View(core.engine, view)
            view.row_order = row_order(name, collection)
            views.append(view)
            if on_change is not None:
                view.call_on_change(on_change, snapshot=True)
    except BaseException:
        core.catalog.abandon(flow)
        for view in views:
            view.release()
        raise
    entries = [entry_for(view) for view in views]

    def add() -> None:
        core.views.update({view.name: view for view in views})
        core.catalog.add(*entries)
        core.coordinator.add(flow)
        core.catalog.finished(flow)

    core.lock.decide(StepByStep(add))
    try:
        # Where somebody else goes on with what is large, what follows from having a new view is not interrupted by others.
        with core.lock.held if core.coordinator.on_left is None else core.lock.undisturbed:
            core.coordinator.start(flow)
    except BaseException:
        if not flow.swept:  # an interrupt of its first sweep: whoever installs it gives it up
            for view in views:
                core.drop(view.name)
        raise
    if core.notices.is_due:
        core.notices.give(core.coordinator)
    if core.hooks.installed and not core.system.reads_system(flow):
        made = Installation(flow.name, at, time.perf_counter() - began)
        for heard in list(core.hooks.installed):
            heard(made)
    return [view.facade for view in views]


def check_installable(core: EngineCore, name: str, collection: Collection) -> None:
    """Refuse what cannot be a view."""
    check_name(core, name)
    if not isinstance(collection, Collection):
        raise IncorrectError(f"view {name!r} needs a query, which is a collection, not {_instead_of(collection)}")
    if collection.engine not in (None, core.engine):
        raise IncorrectError(f"view {name!r}: the collection belongs to another engine")
    loop = collection.operator.loop
    if loop is not None:
        raise IncorrectError(f"view {name!r}: the collection belongs to loop {loop.name!r}; leave it first")


def _instead_of(query: object) -> str:
    """Describes an object that was given for a query, and says what to write."""
    kind = type(query).__name__
    if isinstance(query, str):
        return f"the text {query!r}: create_view(name, text) takes SQL, and from_sql(text) makes a collection of it"
    if isinstance(query, Expr):
        return f"the expression {query}: select a column, as in c.select(x=...), or aggregate, as in c.agg(x=...)"
    if isinstance(query, Grouped):
        return "groups: aggregate them, as in group_by(...).agg(n=tk.count())"
    if type(query).__module__.partition(".")[0] in ("pyarrow", "pandas", "polars"):
        return f"rows, a {kind}: create_table(name, rows) keeps them, and values(rows) is a collection"
    if is_function(query):
        return "a function: call it, and give what it returns"
    return kind


def drop_input(core: EngineCore, source: InputCore) -> None:
    """Remove an input that nothing reads, and what is stored of it."""
    if source.is_system:
        raise ConflictError(f"cannot drop {source.name!r}: it is a system relation")
    drop_unique_indexes(core, source)
    entry = core.entry_of(source, "table")
    steps: list[Callable[[], object]] = [
        lambda: core.catalog.remove(entry), source.release, lambda: core.inputs.pop(source.name, None)
    ]  # fmt: skip
    storage = core.storage
    if storage is not None and source.is_stored:
        steps.append(lambda: storage.unclaimed.pop(source.name, None))
        # Whoever declares an input of this name again begins anew, its sources included.
        gone = {source.name: None}
        steps.append(core.to_storage(DurableChange(core.epoch, arrangements={**gone}, positions={**gone})))
    core.lock.decide(StepByStep(*steps))


def drop_unique_indexes(core: EngineCore, source: InputCore) -> None:
    """Let go of what UNIQUE keeps of an input. It is made again when it is needed."""
    for view in source.unique_indexes.values():
        if not view.dropped:
            drop_view(core, view)
    source.unique_indexes.clear()


def drop_view(core: EngineCore, view: ViewCore) -> None:
    """Remove a view, and everything that only it used."""
    entry, flow = core.entry_of(view, "view"), view.flow
    held = sum([trace.bytes for trace in flow.traces])
    core.coordinator.before_drop(flow)
    steps: list[Callable[[], object]] = [
        lambda: core.catalog.remove(entry), view.release, lambda: core.views.pop(view.name, None)
    ]  # fmt: skip
    if not any([other is not view and core.views.get(other.name) is other for other in view.together]):
        keep = core.catalog.graphs.discard if flow.is_away else partial(core.catalog.graphs.release, view.definition)
        steps += [
            lambda: core.coordinator.remove(flow), lambda: core.catalog.release(flow), lambda: keep(flow),
        ]  # fmt: skip
    if view.publication is not None:
        gone = DurableChange(core.epoch, arrangements={view.name: None})
        steps += [view.publication.handle.drop, core.to_storage(gone)]
    core.lock.decide(StepByStep(*steps))
    if held >= 8 * allocator.BULK:
        gc.collect()  # a dataflow's nodes refer to each other
        allocator.trim()


def entry_for(source: InputCore | ViewCore) -> Entry:
    """The arrangement of an input or a view, for queries to find."""
    names = source.schema.names
    if source.columns != tuple(range(len(names))):
        names = tuple([names[c] for c in source.columns])
    return Entry(source.name, None, source, source.trace, source.columns, names, source.sharded_by, None)
