"""Every system relation: its columns, what they mean, and how its rows are read from the engine.

The tables are named `system.views` and so on. `ATTRIBUTES` are the same facts as attributes of entities, under the names that the
paper on 3DF gives them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from tektite.dataflow.graph import Edge
from tektite.engine.system.advice import advice
from tektite.engine.system.observation import Observation
from tektite.values.types import Bool, Float, Int, String, Type

SystemRow = tuple[Any, ...]


@dataclass(frozen=True)
class SystemRelation:
    """A relation that an engine keeps about itself."""

    about: str
    columns: dict[str, Type]
    rows: Callable[[Observation], Iterable[SystemRow]]
    counts_work: bool = False
    """Whether operators have to be watched for it."""
    notes_sweeps: bool = False
    """Whether sweeps have to be noted for it."""


def views(seen: Observation) -> Iterable[SystemRow]:
    for view in seen.views:
        failure, error = view.failure, view.error
        time = seen.until(view.low)
        state = "failed" if failure is not None else "error" if error is not None else "current"
        if state == "current" and not seen.core.is_current(view):
            state = "behind"
        yield (
            view.name, seen.plans.of(view), state, None if error is None else str(error), view.first,
            time, max(seen.clock - time, 0), view.size, view.flow.bytes, len(view.feeds),
        )  # fmt: skip


def tables(seen: Observation) -> Iterable[SystemRow]:
    for source in seen.inputs:
        mode = "stream" if source.is_stream else "append" if source.declared.append else source.semantics
        yield (
            source.name, mode, ", ".join(source.schema.names), source.trace.rows, source.trace.bytes,
            seen.until(source.low), source.is_stored and seen.core.storage is not None, len(source.feeds),
        )  # fmt: skip


def indexes(seen: Observation) -> Iterable[SystemRow]:
    for entry in seen.entries:
        trace = entry.trace
        since = min((time[0] for time in trace.since()), default=entry.source.low)
        readers = len(seen.readers(entry))
        yield (
            entry.name, ", ".join(entry.column_names), seen.core.workers, trace.batches, trace.rows, trace.bytes,
            min(since, seen.clock), seen.until(entry.source.low), readers,
        )  # fmt: skip


def index_readers(seen: Observation) -> Iterable[SystemRow]:
    for entry in seen.entries:
        for reader in seen.readers(entry):
            yield entry.name, reader.name


def dataflows(seen: Observation) -> Iterable[SystemRow]:
    for flow in seen.flows:
        failure = None if flow.failure is None else str(flow.failure)
        waiting = flow.queued()
        yield seen.numbers.of(flow), flow.name, seen.until(flow.low), flow.running, waiting, flow.bytes, failure


def operators(seen: Observation) -> Iterable[SystemRow]:
    for flow, scope, node in seen.nodes():
        loops = "/".join(inner.name for inner in reversed(list(scope.enclosing())) if inner.name)
        held = 0 if node.mints is None else node.mints.rows
        yield seen.numbers.of(node), seen.numbers.of(flow), node.name, type(node).__name__, loops, held


def channels(seen: Observation) -> Iterable[SystemRow]:
    for _, _, node in seen.nodes():
        for edge in node.port.edges:
            yield seen.numbers.of(node), seen.numbers.of(edge.target), _steps(edge)


def _steps(edge: Edge) -> str:
    return ", ".join(type(step).__name__ for step in edge.steps)


def work(seen: Observation) -> Iterable[SystemRow]:
    journal = seen.core.coordinator.journal
    if journal is None or journal.work is None:
        return
    for _, _, node in seen.nodes():
        done = journal.work.of(node)
        if done.runs:
            yield seen.numbers.of(node), done.runs, done.seconds, done.received, done.sent


def sweeps(seen: Observation) -> Iterable[SystemRow]:
    journal = seen.core.coordinator.journal
    if journal is None:
        return
    first = journal.ended_sweeps - len(journal.sweeps)
    names = {flow.name for flow in seen.flows}
    for number, sweep in enumerate(journal.sweeps, first):
        if sweep.name in names:
            yield number, sweep.name, sweep.low, sweep.high, sweep.rows, sweep.seconds, sweep.where, sweep.why


def subscriptions(seen: Observation) -> Iterable[SystemRow]:
    for kind, sources in (("table", seen.inputs), ("view", seen.views)):
        for source in sources:
            if source.feeds:
                yield source.name, kind, len(source.feeds)


def memory(seen: Observation) -> Iterable[SystemRow]:
    shared = {id(entry.trace): (entry.name, entry.trace) for entry in seen.entries}
    for name, trace in shared.values():
        yield "index", name, trace.bytes
    for flow in seen.flows:
        own = sum([trace.bytes for trace in flow.traces if id(trace) not in shared])
        waiting = flow.bytes - sum([trace.bytes for trace in flow.traces])
        if own:
            yield "operators", flow.name, own
        if waiting:
            yield "waiting", flow.name, waiting
    yield "texts", "", seen.core.dictionary.nbytes


def storage(seen: Observation) -> Iterable[SystemRow]:
    found = seen.core.storage
    if found is None:
        return
    state = found.writer.manifest.state
    sizes = [file.length for file in state.files.values()]
    yield str(found.url), state.version, len(sizes), sum(sizes), min(found.writer.durable - 1, seen.clock), os.getpid()


def positions(seen: Observation) -> Iterable[SystemRow]:
    found = seen.core.storage
    for source, position in ({} if found is None else found.positions).items():
        yield source, json.dumps(position, sort_keys=True, default=str)


def errors(seen: Observation) -> Iterable[SystemRow]:
    for view in seen.views:
        if view.failure is not None:
            yield view.name, "failed", str(view.failure)
        elif (error := view.error) is not None:
            yield view.name, "rows", str(error)


RELATIONS: dict[str, SystemRelation] = {
    "views": SystemRelation(
        "every view: its plan; its state (current, behind, error while rows fail, failed for good) and error; the first and the "
        "last time that it answers for; how many epochs it lags; about how many rows it holds; bytes that only it keeps",
        {"name": String, "definition": String, "state": String, "error": String, "first": Int, "time": Int, "lag": Int,
         "rows": Int, "bytes": Int, "subscriptions": Int},
        views,
    ),
    "tables": SystemRelation(
        "every table: its mode, columns, about how many rows it holds, bytes, last closed epoch, whether a storage keeps it",
        {"name": String, "mode": String, "columns": String, "rows": Int, "bytes": Int, "time": Int, "stored": Bool,
         "subscriptions": Int},
        tables,
    ),
    "indexes": SystemRelation(
        "every shared index: its columns, shards, batches, rows, bytes, the times that it tells apart (since to upper), readers",
        {"name": String, "columns": String, "shards": Int, "batches": Int, "rows": Int, "bytes": Int, "since": Int,
         "upper": Int, "readers": Int},
        indexes,
    ),
    "index_readers": SystemRelation(
        "which dataflow reads which shared index", {"index": String, "reader": String}, index_readers
    ),
    "dataflows": SystemRelation(
        "every dataflow: what it computes, its last time, whether a sweep is under way, changes that wait, bytes, why it failed",
        {"id": Int, "name": String, "time": Int, "running": Bool, "waiting": Int, "bytes": Int, "failure": String},
        dataflows,
    ),
    "operators": SystemRelation(
        "every operator of every dataflow: its name, its kind, the loops that it is in, rows of the arrangement that it keeps",
        {"id": Int, "dataflow": Int, "name": String, "kind": String, "loops": String, "rows": Int},
        operators,
    ),
    "channels": SystemRelation(
        "the edges between operators, with what happens to rows on the way",
        {"source": Int, "target": Int, "steps": String},
        channels,
    ),
    "work": SystemRelation(
        "what each operator has done since somebody first looked: runs, seconds, rows received and sent",
        {"operator": Int, "runs": Int, "seconds": Float, "received": Int, "sent": Int},
        work,
        counts_work=True,
    ),
    "sweeps": SystemRelation(
        "the last 256 sweeps: which dataflow went from which epoch to which, with how many changes, how long, where and why",
        {"number": Int, "name": String, "low": Int, "high": Int, "rows": Int, "seconds": Float, "place": String,
         "reason": String},
        sweeps,
        notes_sweeps=True,
    ),
    "subscriptions": SystemRelation(
        "how many subscriptions a table or view has", {"name": String, "kind": String, "subscriptions": Int}, subscriptions
    ),
    "memory": SystemRelation(
        "memory by owner: shared indexes, operators' own state, rows that wait, texts",
        {"kind": String, "owner": String, "bytes": Int},
        memory,
    ),
    "storage": SystemRelation(
        "the storage: where it is, its version, files, bytes, last durable epoch, and the process that has it",
        {"url": String, "version": Int, "files": Int, "bytes": Int, "durable": Int, "process": Int},
        storage,
    ),
    "positions": SystemRelation("how far sources have been read", {"source": String, "position": String}, positions),
    "errors": SystemRelation(
        "views that cannot be read: because rows fail, or because they failed for good",
        {"view": String, "kind": String, "message": String},
        errors,
    ),
    "advice": SystemRelation(
        "what could be better: its kind (unread, repeated, skewed, behind, failing), what it is about, what to do, the bytes",
        {"kind": String, "about": String, "message": String, "bytes": Int},
        advice,
    ),
}  # fmt: skip

ATTRIBUTES: dict[str, SystemRelation] = {
    "timely.event.operates/name": SystemRelation(
        "the name of an operator",
        {"e": Int, "v": String},
        lambda seen: [(seen.numbers.of(node), node.name) for _, _, node in seen.nodes()],
    ),
    "timely.event.operates/shutdown?": SystemRelation(
        "whether an operator has been shut down, because its dataflow failed",
        {"e": Int, "v": Bool},
        lambda seen: [(seen.numbers.of(node), flow.failure is not None) for flow, _, node in seen.nodes()],
    ),
    "differential.event/size": SystemRelation(
        "the number of tuples that an operator keeps arranged",
        {"e": Int, "v": Int},
        lambda seen: [
            (seen.numbers.of(node), node.mints.rows) for _, _, node in seen.nodes() if node.mints is not None
        ],
    ),
}

SYSTEM = {f"system.{name}": relation for name, relation in RELATIONS.items()} | ATTRIBUTES
"""All of them, by the names of their tables."""
