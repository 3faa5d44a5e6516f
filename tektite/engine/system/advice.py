"""Advice: what an engine's own figures say that its user could do better. The relation `system.advice`.

========  =========================================================================================================
kind      says
========  =========================================================================================================
unread    an index that was created is read by no query
repeated  several views compute the same part for themselves, which one index could hold for all of them
skewed    one shard of an index has so many rows that it is closer to having all than to having its share
behind    a view lags
failing   a view cannot be read
========  =========================================================================================================
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tektite.dataflow.flow import EpochSource
from tektite.engine.system.observation import Observation
from tektite.engine.view_core import ViewCore
from tektite.plan import algebra as plan
from tektite.plan.algebra import describe
from tektite.plan.walk import walk
from tektite.trace.batch_memory import in_units


class Advice(NamedTuple):
    """A piece of advice."""

    kind: str
    about: str
    message: str
    bytes: int
    """The bytes that are at stake."""
    sources: Sequence[EpochSource]
    """What it tells of."""


EXPENSIVE = (plan.Join, plan.Match, plan.Aggregate, plan.Reduce, plan.First, plan.AtLeast, plan.Leave)
"""Operators that keep an index for what they read or compute."""


def findings(seen: Observation) -> Iterable[Advice]:
    """All advice, for one look at an engine."""
    yield from _unread(seen)
    yield from _repeated(seen)
    yield from _skewed(seen)
    for view in seen.views:
        if (error := view.error) is not None:
            yield Advice("failing", view.name, f"it cannot be read: {error}", 0, [view])
        elif not seen.core.is_current(view):
            yield Advice("behind", view.name, "it lags: give the engine more workers, or smaller epochs", 0, [view])


def _unread(seen: Observation) -> Iterable[Advice]:
    inputs = seen.core.inputs.values()
    checking = {index.flow for source in inputs for index in source.unique_indexes.values()}
    for entry in seen.entries:
        if entry.flow is None or not entry.together or seen.readers(entry):
            continue
        if checking.isdisjoint([entry.flow, *entry.readers]):
            size = entry.trace.bytes
            message = f"no query reads this index: drop it, which frees {in_units(size)}"
            yield Advice("unread", entry.name, message, size, [entry.source])


def _repeated(seen: Observation) -> Iterable[Advice]:
    """Expensive parts that stand in the plans of several views. What the views read of each other is computed once."""
    found: dict[plan.Operator, list[ViewCore]] = {}
    for view in seen.views:
        parts = [part for part in walk([seen.plans.plan(view)]) if isinstance(part, EXPENSIVE)]
        different: dict[object, plan.Operator] = {part.fingerprint: part for part in parts if part.loop is None}
        for part in different.values():
            known = next((other for other in found if other.fingerprint == part.fingerprint), part)
            found.setdefault(known, []).append(view)
    said: set[tuple[str, ...]] = set()
    for part, views in found.items():
        together = tuple(sorted([view.name for view in views]))
        if len(together) < 2 or together in said or seen.core.catalog.all_of(part.fingerprint):
            continue
        said.add(together)  # the first part found is the largest that they have in common
        saved = sum(sorted([view.flow.bytes for view in views])[:-1])
        message = f"{', '.join(together)} each compute this: make it a view of its own that they read"
        read = [source for view in views for source in view.flow.sources]
        yield Advice("repeated", describe(part), message, saved, [*views, *read])


def _skewed(seen: Observation) -> Iterable[Advice]:
    shards = seen.core.workers
    if shards < 2:
        return
    for entry in seen.entries:
        found = entry.trace.skew
        if found is not None:
            key = ", ".join(entry.column_names[: entry.sharded_by])
            message = (
                f"one of {shards} shards has {found[0]:,} of {found[1]:,} rows: a value of ({key}) is too frequent"
            )
            yield Advice("skewed", entry.name, message, entry.trace.bytes, [entry.source])
