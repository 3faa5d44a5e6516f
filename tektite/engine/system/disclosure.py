"""Disclosure: what somebody has to be allowed to read in order to be told of a dataflow, or of what a name stands for.

Whoever may read all objects of a subject could compute what system relations say of it. So these say it to nobody else: a plan
names what it reads, and a count or a size tells of rows.

=========  =====================================================================================
object     is met by
=========  =====================================================================================
`table t`  whoever may read all rows of the table or view
`query`    whoever has prepared or follows the query of the dataflow
`engine`   superusers alone: the subject is of nobody, such as what a language keeps for itself
=========  =====================================================================================

Each subject has an object at least. One that is not listed is disclosed to superusers alone.
"""

from __future__ import annotations

from collections.abc import Iterable

from tektite.dataflow.flow import Dataflow, EpochSource
from tektite.engine.core import HIDDEN_PREFIX
from tektite.engine.input_core import InputCore
from tektite.engine.system.advice import findings
from tektite.engine.system.observation import Observation
from tektite.engine.view_core import ViewCore

QUERY = "query"
ENGINE = "engine"
Requirement = tuple[int | None, str | None, str]
"""A dataflow and its name, or a name alone, and an object that is needed to be told of it."""
ObjectsRead = dict[Dataflow, frozenset[str]]
"""The objects that dataflows read, as far as a walk has found them."""


def requirements(seen: Observation) -> Iterable[Requirement]:
    """The rights that all dataflows and names require. A name of several things requires those of each of them."""
    found: set[Requirement] = set()
    known: ObjectsRead = {}
    for flow in seen.flows:
        found.update((seen.numbers.of(flow), seen.name_of(flow), object) for object in objects_of(seen, flow, known))
    for entry in seen.entries:
        found.update((None, entry.name, object) for object in _objects_of_source(entry.source, known) or {ENGINE})
    for finding in findings(seen):
        objects = {object for source in finding.sources for object in _objects_of_source(source, known)}
        found.update((None, finding.about, object) for object in objects or {ENGINE})
    return found


def objects_of(seen: Observation, flow: Dataflow, known: ObjectsRead | None = None) -> set[str]:
    """The objects that a user must be allowed to read in order to see a dataflow with its texts."""
    found = {*_objects_read(flow, {} if known is None else known)}
    match seen.kind_of(flow):
        case "view":
            found.add(_table(flow.name))
        case "query":
            found.add(QUERY)
        case "internal":
            found.add(ENGINE)
    return found or {ENGINE}


def _objects_read(flow: Dataflow, known: ObjectsRead) -> frozenset[str]:
    """The tables and views that a dataflow reads, also through shared indexes. Many ways lead from a dataflow to a table: each
    dataflow is asked once.
    """
    found = known.get(flow)
    if found is None:
        read = (object for source in flow.sources for object in _objects_of_source(source, known))
        found = known[flow] = frozenset(read)
    return found


def _objects_of_source(source: EpochSource, known: ObjectsRead) -> frozenset[str]:
    """The tables and views whose rows a source has. What languages keep for themselves, such as arguments, is left out."""
    if isinstance(source, InputCore | ViewCore) and not source.name.startswith(HIDDEN_PREFIX):
        return frozenset((_table(source.name),))
    return frozenset() if source.flow is None else _objects_read(source.flow, known)


def _table(name: str) -> str:
    return f"table {name}"
