"""Every system relation: its columns, what they mean, and how its rows are read from the engine.

The tables are named `system.views` and so on. `ATTRIBUTES` are the same facts as attributes of entities, under the names that the
paper on 3DF gives them.
"""

from __future__ import annotations

import datetime
import json
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from tektite.dataflow.flow import Dataflow
from tektite.dataflow.graph import Edge, Scope
from tektite.dataflow.journal import PHASES
from tektite.engine.catalog import Entry
from tektite.engine.core import HIDDEN_PREFIX
from tektite.engine.input_core import InputCore
from tektite.engine.running_plan import sizes_text
from tektite.engine.system.advice import findings
from tektite.engine.system.disclosure import requirements
from tektite.engine.system.observation import Observation, shown_name
from tektite.engine.view_core import ViewCore
from tektite.trace.trace import Trace
from tektite.values.types import Bool, Float, Int, String, TimestampTz, Type

SystemRow = tuple[Any, ...]


@dataclass(frozen=True)
class SystemRelation:
    """A relation that an engine keeps about itself."""

    about: str
    columns: dict[str, Type]
    rows: Callable[[Observation], Iterable[SystemRow]]
    counts_work: bool = False
    """Whether operators have to be watched for it."""
    notes_epochs: bool = False
    """Whether epochs have to be noted for it."""
    counts_epochs: bool = False
    """Whether the work of operators has to be counted for each epoch."""


def views(seen: Observation) -> Iterable[SystemRow]:
    for view in seen.views:
        failure, error = view.failure, view.error
        time = seen.until(view.low)
        state = "failed" if failure is not None else "error" if error is not None else "current"
        if state == "current" and not seen.core.is_current(view):
            state = "behind"
        yield (
            view.name, seen.plans.of(view), state, None if error is None else str(error), view.first,
            time, max(seen.clock - time, 0), view.trace.count, view.flow.bytes, len(view.feeds), view.trace.minted,
            seen.numbers.of(view.flow), seen.owner_of(view.name),
        )  # fmt: skip


def tables(seen: Observation) -> Iterable[SystemRow]:
    for source in seen.inputs:
        mode = "stream" if source.is_stream else "append" if source.declared.append else source.semantics
        yield (
            source.name, mode, ", ".join(source.schema.names), source.trace.count, source.trace.bytes,
            seen.until(source.low), source.is_stored and seen.core.storage is not None, len(source.feeds),
            source.trace.minted, seen.owner_of(source.name),
        )  # fmt: skip


def indexes(seen: Observation) -> Iterable[SystemRow]:
    for entry in seen.entries:
        trace = entry.trace
        first = min((time[0] for time in trace.since()), default=entry.source.low)
        readers = len(seen.readers(entry))
        yield (
            entry.name, ", ".join(entry.column_names), seen.core.workers, trace.batches, trace.count, trace.bytes,
            min(first, seen.clock), seen.until(entry.source.low), readers, _kind_of_index(entry), trace.minted,
            seen.number_of_maker(trace), None if entry.source.flow is None else seen.numbers.of(entry.source.flow),
        )  # fmt: skip


def _kind_of_index(entry: Entry) -> str:
    match entry.source:
        case InputCore():
            return "table"
        case ViewCore():
            return "view"
    return "index"


def index_readers(seen: Observation) -> Iterable[SystemRow]:
    for entry in seen.entries:
        for reader in seen.readers(entry):
            yield entry.name, seen.number_of_maker(entry.trace), seen.name_of(reader), seen.numbers.of(reader)


def dataflows(seen: Observation) -> Iterable[SystemRow]:
    for flow in seen.flows:
        failure = None if flow.failure is None else str(flow.failure)
        waiting = flow.queued()
        yield (
            seen.numbers.of(flow), seen.name_of(flow), seen.until(flow.low), flow.running, waiting, flow.bytes, failure,
            seen.kind_of(flow),
        )  # fmt: skip


def operators(seen: Observation) -> Iterable[SystemRow]:
    for flow, scope, node in seen.nodes():
        rows, size = (0, 0) if node.mints is None else (node.mints.rows, node.mints.bytes)
        yield (
            seen.numbers.of(node), seen.numbers.of(flow), node.name, type(node).__name__, _path(scope), rows, size,
            flow in seen.shared_flows, flow.purpose_of(node),
        )  # fmt: skip


def channels(seen: Observation) -> Iterable[SystemRow]:
    for flow, _, node in seen.nodes():
        for edge in node.port.edges:
            yield seen.numbers.of(node), seen.numbers.of(edge.target), "sends", None, _steps(flow, edge)
        for trace in dict.fromkeys([reader.trace for reader in node.reads]):
            entry = seen.shared_traces.get(id(trace))
            yield seen.number_of_maker(trace), seen.numbers.of(node), "reads", None if entry is None else entry.name, ""


def _steps(flow: Dataflow, edge: Edge) -> str:
    return "; ".join(flow.purpose_of(step) or type(step).__name__ for step in edge.steps)


def loops(seen: Observation) -> Iterable[SystemRow]:
    for flow in seen.flows:
        for scope in flow.root.scopes():
            if scope.depth:
                yield seen.numbers.of(flow), _path(scope), scope.last_rounds, scope.rounds, scope.limit


def _path(scope: Scope) -> str:
    return "/".join(inner.name for inner in reversed(list(scope.enclosing())) if inner.name)


def work(seen: Observation) -> Iterable[SystemRow]:
    journal = seen.core.coordinator.journal
    if journal.work is None:
        return
    for _, _, node in seen.nodes():
        done = journal.work.of(node)
        if done.runs:
            yield seen.numbers.of(node), done.runs, done.seconds, done.received, done.sent


def traffic(seen: Observation) -> Iterable[SystemRow]:
    journal = seen.core.coordinator.journal
    if journal.work is None:
        return
    for _, _, node in seen.nodes():
        done, number = journal.work.of(node), seen.numbers.of(node)
        carried: dict[tuple[int | None, int, str, str | None], int] = {}
        for target in dict.fromkeys([edge.target for edge in node.port.edges]):
            if rows := done.sent_to.get(id(target), 0):
                carried[number, seen.numbers.of(target), "sends", None] = rows
        for at, rows in done.taken.items():
            trace = node.reads[at].trace
            entry = seen.shared_traces.get(id(trace))
            channel = (seen.number_of_maker(trace), number, "reads", None if entry is None else entry.name)
            carried[channel] = carried.get(channel, 0) + rows
        for channel, rows in carried.items():
            yield *channel, rows


def epoch_work(seen: Observation) -> Iterable[SystemRow]:
    journal = seen.core.coordinator.journal
    if journal.work is None or journal.work.epochs is None:
        return
    nodes = {id(done): node for node, done in journal.work.items() if node.flow in seen.flow_set}
    for closed in list(journal.work.epochs):
        for done, *counts in closed.work:
            if (node := nodes.get(id(done))) is not None:
                yield closed.epoch, seen.numbers.of(node), *counts


def merges(seen: Observation) -> Iterable[SystemRow]:
    traces: list[tuple[str, int | None, int | None, Trace]] = []
    for source in seen.inputs:
        traces.append((source.name, None, None, source.trace))
    for flow, _, node in seen.nodes():
        if node.mints is not None:
            traces.append((seen.name_of(flow), seen.numbers.of(node), seen.numbers.of(flow), node.mints))
    for name, operator, dataflow, trace in traces:
        for shard, spine in enumerate(trace.spines or ()):
            under_way = spine.merges
            if under_way or spine.merged:
                rows, done = sum([merge.n for merge in under_way]), sum([merge.taken for merge in under_way])
                yield name, operator, dataflow, shard, spine.merged, len(under_way), rows, done, spine.bytes_in_progress


def connectors(seen: Observation) -> Iterable[SystemRow]:
    for server in seen.core.hooks.servers:
        yield from map(tuple, server.connected())


def sweeps(seen: Observation) -> Iterable[SystemRow]:
    journal = seen.core.coordinator.journal
    first = journal.ended_sweeps - len(journal.sweeps)
    names = {flow.name for flow in seen.flows if seen.kind_of(flow) != "internal"}
    for number, sweep in enumerate(journal.sweeps, first):
        if sweep.name in names:
            yield (
                number,
                shown_name(sweep.name),
                sweep.first,
                sweep.time,
                sweep.rows,
                sweep.seconds,
                sweep.where,
                sweep.why,
                len(sweep.jobs),
                sweep.stages,
                sweep.sent,
                sweep.written,
            )


def plans(seen: Observation) -> Iterable[SystemRow]:
    replanner = seen.core.replanner
    replacements = {new for _, new in [replanner.candidate or (None, None)]}
    for flow in seen.flows:
        plan = seen.core.catalog.plans.get(flow)
        if plan is None or flow in replacements or flow.name.startswith(HIDDEN_PREFIX):
            continue
        kept = plan.is_fixed or not replanner.is_on
        state = "kept" if kept else "being replaced" if replanner.is_replacing(flow) else "watched"
        yield flow.name, plan.text, sizes_text(plan), plan.replaced, state


def epochs(seen: Observation) -> Iterable[SystemRow]:
    journal = seen.core.coordinator.journal
    for closed in list(journal.epochs):
        at = datetime.datetime.fromtimestamp(closed.at, datetime.UTC)
        yield closed.epoch, at, closed.rows, *[closed.phases.get(phase) for phase in PHASES], closed.seconds


def clients(seen: Observation) -> Iterable[SystemRow]:
    for server in seen.core.hooks.servers:
        yield from map(tuple, server.clients())


def subscriptions(seen: Observation) -> Iterable[SystemRow]:
    for kind, sources in (("table", seen.inputs), ("view", seen.views)):
        for source in sources:
            if source.feeds:
                yield source.name, kind, len(source.feeds)


def memory(seen: Observation) -> Iterable[SystemRow]:
    found: list[tuple[str, str, int]] = []
    shared: dict[int, Entry] = {}
    for entry in seen.entries:
        if shared.setdefault(id(entry.trace), entry) is entry:
            found.append(("view" if isinstance(entry.source, ViewCore) else "index", entry.name, entry.trace.bytes))
    for flow in seen.flows:
        own = sum([trace.bytes for trace in flow.traces if id(trace) not in shared])
        waiting = flow.bytes - sum([trace.bytes for trace in flow.traces])
        if own:
            found.append(("operators", seen.name_of(flow), own))
        if waiting:
            found.append(("waiting", seen.name_of(flow), waiting))
    found += [("waiting", shown_name(source.name), size) for source, size in seen.written.items()]
    found.append(("texts", "", seen.core.dictionary.nbytes))
    yield from found
    is_mapped = seen.core.storage is not None or (seen.core.memory is not None and seen.core.memory.mapped > 0)
    yield from seen.process.rows(sum([each for _, _, each in found]), is_mapped)


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


def advice(seen: Observation) -> Iterable[SystemRow]:
    for found in findings(seen):
        yield found.kind, found.about, found.message, found.bytes


def queries(seen: Observation) -> Iterable[SystemRow]:
    for standing in [query for known in seen.core.hooks.queries for query in known()]:
        if standing.flow in seen.flow_set:
            yield seen.numbers.of(standing.flow), standing.user_name, standing.uses


RELATIONS: dict[str, SystemRelation] = {
    "views": SystemRelation(
        "every view: its plan; its state (current, behind, error while rows fail, failed for good) and error; the first and the "
        "last time that it answers for; how many epochs it lags; how many rows it holds; bytes that only it keeps; its "
        "subscriptions; how many rows were added to it or taken from it so far; its dataflow; the role that owns it, if there "
        "are roles",
        {"name": String, "definition": String, "state": String, "error": String, "first": Int, "time": Int, "lag": Int,
         "rows": Int, "bytes": Int, "subscriptions": Int, "changes": Int, "dataflow": Int, "owner": String},
        views,
    ),
    "tables": SystemRelation(
        "every table: its mode, columns, how many rows it holds, bytes, last closed epoch, whether a storage keeps it, how "
        "many subscriptions it has, how many rows were added to it or taken from it so far, and the role that owns it, if "
        "there are roles",
        {"name": String, "mode": String, "columns": String, "rows": Int, "bytes": Int, "time": Int, "stored": Bool,
         "subscriptions": Int, "changes": Int, "owner": String},
        tables,
    ),
    "indexes": SystemRelation(
        "every shared index: its columns, shards, batches, rows, bytes, the first and the last time that it answers for, how "
        "many dataflows read it; whether it is that of a table or a view, or was made for its readers (index); how many rows "
        "were added to it or taken from it so far; the operator that keeps it and its dataflow, which a table has not",
        {"name": String, "columns": String, "shards": Int, "batches": Int, "rows": Int, "bytes": Int, "first": Int,
         "time": Int, "readers": Int, "kind": String, "changes": Int, "operator": Int, "dataflow": Int},
        indexes,
    ),
    "index_readers": SystemRelation(
        "which dataflow reads which shared index: the index with the operator that keeps it, and the dataflow's name and number",
        {"index": String, "operator": Int, "reader": String, "dataflow": Int},
        index_readers,
    ),
    "dataflows": SystemRelation(
        "every dataflow: what it computes, its last time, whether a sweep is under way, changes that wait, bytes, why it failed, "
        "and its kind: of a view, a shared index, a query that clients prepared or follow (query), or internal",
        {"id": Int, "name": String, "time": Int, "running": Bool, "waiting": Int, "bytes": Int, "failure": String,
         "kind": String},
        dataflows,
    ),
    "operators": SystemRelation(
        "every operator of every dataflow: its name, its kind, the loops that it is in, rows and bytes of the arrangement that "
        "it keeps, whether it belongs to an index that queries share, and the line of the plan that it was made for",
        {"id": Int, "dataflow": Int, "name": String, "kind": String, "loops": String, "rows": Int, "bytes": Int,
         "shared": Bool, "text": String},
        operators,
    ),
    "channels": SystemRelation(
        "the edges between operators. One sends rows to another, with what happens to them on the way (kind sends); or one reads "
        "the arrangement of another (kind reads), and then which shared index that is. A table has no operator: there, the "
        "source is NULL",
        {"source": Int, "target": Int, "kind": String, "index": String, "steps": String},
        channels,
    ),
    "loops": SystemRelation(
        "every loop of every dataflow, with the loops around it; its rounds in the last sweep that entered it, and in all, "
        "beyond the first round of each; how many it may take",
        {"dataflow": Int, "loops": String, "last_rounds": Int, "rounds": Int, "most": Int},
        loops,
    ),
    "work": SystemRelation(
        "what each operator has done since somebody first looked: runs, seconds, rows received or read, and rows sent",
        {"operator": Int, "runs": Int, "seconds": Float, "received": Int, "sent": Int},
        work,
        counts_work=True,
    ),
    "traffic": SystemRelation(
        "how many rows have gone over each channel since somebody first looked",
        {"source": Int, "target": Int, "kind": String, "index": String, "rows": Int},
        traffic,
        counts_work=True,
    ),
    "epoch_work": SystemRelation(
        "what each operator did for each of the last epochs, some 1,000 lines in all: runs, seconds, rows received or read, and "
        "rows sent. What was done later for a view that lags counts for the epoch that closed next",
        {"epoch": Int, "operator": Int, "runs": Int, "seconds": Float, "received": Int, "sent": Int},
        epoch_work,
        counts_work=True,
        notes_epochs=True,
        counts_epochs=True,
    ),
    "merges": SystemRelation(
        "merges of batches, by arrangement and shard: the table, or the dataflow and the operator, that keeps it; how many rows "
        "have been merged so far; how many merges are under way, of how many rows, how many of these they have done, and the "
        "bytes of their results. Batches of a few thousand rows are merged at once, and not counted",
        {"name": String, "operator": Int, "dataflow": Int, "shard": Int, "merged": Int, "open": Int, "rows": Int,
         "done": Int, "bytes": Int},
        merges,
    ),
    "sweeps": SystemRelation(
        "the last 256 sweeps: which dataflow computed which epochs, first to time, with how many changes, how long, where and "
        "why; and of its Spark jobs, how many, their stages, the rows that their shards sent each other, and the bytes that they "
        "wrote",
        {"number": Int, "name": String, "first": Int, "time": Int, "rows": Int, "seconds": Float, "place": String,
         "reason": String, "jobs": Int, "stages": Int, "sent": Int, "written": Int},
        sweeps,
    ),
    "epochs": SystemRelation(
        "the last 256 epochs: when each began to close, its changes of tables, and the seconds that it took: to check and sort "
        "(prepare), to give to tables (apply), to merge, to bring views up to date (sweep), to tell subscribers, altogether",
        {"epoch": Int, "at": TimestampTz, "rows": Int, **dict.fromkeys(PHASES, Float), "seconds": Float},
        epochs,
        notes_epochs=True,
    ),
    "clients": SystemRelation(
        "who is connected to the server, or waits for the answer to a request: its user, protocol and address, since when, how "
        "many subscriptions it has, and the statement or request that runs",
        {"number": Int, "user_name": String, "protocol": String, "address": String, "since": TimestampTz,
         "subscriptions": Int, "running": String, "running_since": TimestampTz},
        clients,
    ),
    "queries": SystemRelation(
        "whose queries, beside views, a dataflow computes: of users who follow them or have prepared them, and how often",
        {"dataflow": Int, "user_name": String, "uses": Int},
        queries,
    ),
    "plans": SystemRelation(
        "every plan that depends on the sizes of what it reads: the view or index, the plan, the sizes it was made for, how many "
        "plans were there before, and whether it is watched, kept or being replaced",
        {"name": String, "plan": String, "sizes": String, "replaced": Int, "state": String},
        plans,
    ),
    "subscriptions": SystemRelation(
        "how many subscriptions a table or view has", {"name": String, "kind": String, "subscriptions": Int}, subscriptions
    ),
    "memory": SystemRelation(
        "memory by owner: tables and shared indexes, results of views, operators' own state, waiting rows, texts; and what else "
        "the process has taken since the engine was made: libraries, objects of Python, Arrow's buffers, what allocators have "
        "not returned. With what it had before, that is the process's size but for some percent",
        {"kind": String, "owner": String, "bytes": Int},
        memory,
    ),
    "storage": SystemRelation(
        "the storage: where it is, its version, files, bytes, last durable epoch, and the process that has it",
        {"url": String, "version": Int, "files": Int, "bytes": Int, "durable": Int, "process": Int},
        storage,
    ),
    "positions": SystemRelation("how far sources have been read", {"source": String, "position": String}, positions),
    "connectors": SystemRelation(
        "the sources and sinks of a server: the table or view of each, where it reads or writes, how many rows or changes since "
        "it was started, how far it is, and why its last step failed, if it did",
        {"kind": String, "name": String, "relation": String, "place": String, "rows": Int, "position": String,
         "error": String},
        connectors,
    ),
    "errors": SystemRelation(
        "views that cannot be read: because rows fail, or because they failed for good",
        {"view": String, "kind": String, "message": String},
        errors,
    ),
    "advice": SystemRelation(
        "what could be better: its kind (unread, rebuilt, repeated, skewed, behind, failing), what it is about, what to do, the "
        "bytes that are at stake",
        {"kind": String, "about": String, "message": String, "bytes": Int},
        advice,
    ),
    "requirements": SystemRelation(
        "what a user has to be allowed to read in order to see what system relations say of a dataflow, or of what a name "
        "stands for: the tables and views that it is about (table t); query, if it has to be the user's own; engine, if only "
        "superusers see it",
        {"dataflow": Int, "name": String, "object": String},
        requirements,
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
