"""Advice: what an engine's own figures say that its user could do better. The relation `system.advice`.

========  =========================================================================================================
kind      says
========  =========================================================================================================
unread    an index that was created is read by no query, and none was answered by it
rebuilt   queries make an index again and again, each for itself: one that stays would serve them all
repeated  several views compute the same part for themselves, which one view could compute for all of them
skewed    one shard of an index has so many rows that it is closer to having all than to having its share
behind    a view lags
failing   a view cannot be read
========  =========================================================================================================
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tektite.dataflow.flow import EpochSource
from tektite.engine.input_core import InputCore
from tektite.engine.system.observation import Observation
from tektite.engine.view_core import ViewCore
from tektite.plan import algebra as plan
from tektite.plan.algebra import ColumnNumbers, describe
from tektite.trace.batch_memory import in_units


class Advice(NamedTuple):
    """A piece of advice."""

    kind: str
    about: str
    message: str
    bytes: int
    """The bytes that are at stake."""
    sources: Sequence[EpochSource]
    """The tables and views that it concerns."""


REBUILT_TIMES, REBUILT_ROWS = 5, 100_000
"""An index is worth keeping that was made so often, of so many rows in all: that is some 10 ms of work."""


def findings(seen: Observation) -> Iterable[Advice]:
    """All advice, for one look at an engine."""
    yield from _unread(seen)
    yield from _rebuilt(seen)
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
        if entry.flow is None or not entry.together or entry.answered or seen.readers(entry):
            continue
        if checking.isdisjoint([entry.flow, *entry.readers]):
            size = entry.trace.bytes
            message = f"no query reads this index: drop it, which frees {in_units(size)}"
            yield Advice("unread", entry.name, message, size, [entry.source])


def _rebuilt(seen: Observation) -> Iterable[Advice]:
    """Indexes of tables and views that queries made and left to nobody, unless there is one by the same columns."""
    known: set[object] = {*seen.inputs, *seen.views}
    kept: dict[object, list[ColumnNumbers]] = {}
    for entry in seen.entries:
        kept.setdefault(entry.index_of or entry.source, []).append(entry.columns)
    for source, columns, found in seen.core.catalog.discarded:
        if found.times < REBUILT_TIMES or found.rows < REBUILT_ROWS or source not in known:
            continue
        is_kept = any([order[: len(columns)] == columns for order in kept.get(source, ())])
        if isinstance(source, InputCore | ViewCore) and not is_kept:
            names = ", ".join([source.schema.names[column] for column in columns])
            message = (
                f"queries made this index {found.times:,} times, of {found.rows:,} rows in all, and it went with each of them: "
                f"create it, so that it stays, which takes {in_units(found.bytes)}"
            )
            yield Advice("rebuilt", f"{source.name} by ({names})", message, found.bytes, [source])


def _repeated(seen: Observation) -> Iterable[Advice]:
    """Expensive parts that stand in the plans of several views. What the views read of each other is computed once."""
    found: dict[int, list[tuple[plan.Operator, list[ViewCore]]]] = {}
    """Parts with the views that have them, by the part's digest."""
    for view in seen.views:
        for part in seen.plans.expensive(view):
            alike = found.setdefault(part.digest, [])
            for other, views in alike:
                if other.fingerprint == part.fingerprint:
                    views.append(view)
                    break
            else:
                alike.append((part, [view]))
    said: set[tuple[str, ...]] = set()
    for part, views in [pair for alike in found.values() for pair in alike]:
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
