"""Parcel: dataflows on their way to the tasks that run them.

The driver packs the nodes as they are, with references to files in place of batches: each trace and each handle's queue and
pinned version are lists of sections. Functions travel as Spark sends them from its driver to its own executors. A batch that lies
in no file is written into the store's folder of sweeps first, once: batches never change. A task unpacks the same nodes, with
the batches of its own shard mapped, and none of the others'.
"""

from __future__ import annotations

import io
import pickle
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from pyspark import cloudpickle

from tektite.dataflow.arrange import Buffer
from tektite.dataflow.flow import Dataflow
from tektite.dataflow.graph import Moment, Node, Outbox, Scope
from tektite.dataflow.output import Inspect
from tektite.dataflow.pipelines import Pipelines
from tektite.dataflow.reduce import ReduceNode
from tektite.spark.sweep.files import opened
from tektite.spark.sweep.graph import Graph, Stages
from tektite.spark.sweep.texts import Library, Shelf
from tektite.storage.batchfile import FOLDER, FileInfo, Mapped, Opened, Rows, Shape, write_file
from tektite.storage.files import Files
from tektite.storage.options import SWEEPS
from tektite.storage.store import Store
from tektite.trace.batch import Batch
from tektite.trace.chunk import Chunk
from tektite.trace.spine import Version
from tektite.trace.times import Frontier
from tektite.trace.trace import EMPTY, Handle, Hold, Trace
from tektite.values.dictionary import Dictionary

Place = tuple[str, str, int, int]
"""Where a batch lies: the folder, the name and the length of its file, and the section."""
BUFFER, PUT_OFF = -1, -2
"""What rows wait for that are for no action of a conjunction: a node's buffer, or the keys it has put off."""
Reference = tuple[Place, Frontier, Frontier, Frontier]
"""A batch by its place, with its frontiers as its reader knows them."""


@dataclass(frozen=True)
class Pending:
    """Rows that wait for a node when the job begins."""

    node: int
    kind: int
    moment: Moment
    shard: int
    place: Place


@dataclass(frozen=True)
class Parcel:
    """Everything that the tasks of a job are given."""

    store: Store
    token: str
    """Tells the files of this job from those of others; all attempts of a task have the same."""
    shards: int
    epoch: int
    content: bytes
    stages: Stages
    pending: tuple[Pending, ...]
    library: Library


class Yard:
    """Where batches of memory become files of the folder of sweeps, for as long as they live."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.files = Files(store, folder=SWEEPS)
        self._written: dict[int, tuple[weakref.ref[Any], _Written, int]] = {}
        self._live: weakref.WeakValueDictionary[str, Any] = weakref.WeakValueDictionary()

    def open(self, info: FileInfo) -> Opened:
        """A file that a task wrote. It is deleted when nothing of it is used any longer."""
        known = info.name in self._live
        opened = self.files.open(info)
        if not known:
            self._live[info.name] = opened
            self._delete_after(opened, info.name)
        return opened

    def delete(self, names: Sequence[str]) -> None:
        """Delete what tasks have sent each other."""
        self.store.delete([f"{SWEEPS}/{name}" for name in names])

    def tidy(self) -> None:
        """Delete what nobody uses: a job that was given up may have left something."""
        self.store.delete([f"{SWEEPS}/{name}" for name in self.store.sizes(SWEEPS) if name not in self._live])

    def clear(self) -> None:
        """Delete everything."""
        self.store.delete([f"{SWEEPS}/{name}" for name in self.store.sizes(SWEEPS)])

    def place(self, batch: Batch | Chunk) -> Place | None:
        """Where rows lie, if they do in a file that is there still."""
        keep = batch.keep
        if isinstance(keep, Mapped) and keep.head is batch.head:
            folder = SWEEPS if keep.opened.name in self._live else FOLDER
            if self._there(folder, keep.opened.name):
                return folder, keep.opened.name, keep.opened.info.length, keep.index
        known = self._written.get(id(batch.head))
        if known is not None and known[0]() is batch.head:
            return SWEEPS, known[1].info.name, known[1].info.length, known[2]
        return None

    def write(self, epoch: int, shard: int, batches: Sequence[tuple[Batch | Chunk, Shape]]) -> None:
        """Put rows into one file."""
        info = write_file(
            self.store, epoch, "ship", shard, [Rows("", shard, shape, whole(found)) for found, shape in batches], SWEEPS
        )
        written = self._live.get(info.name)
        if not isinstance(written, _Written):
            written = _Written(info)
            self._live[info.name] = written
            self._delete_after(written, info.name)
        for index, (batch, _) in enumerate(batches):
            key = id(batch.head)
            self._written[key] = (weakref.ref(batch.head, partial(self._forget, key)), written, index)

    def _forget(self, key: int, _: object) -> None:
        self._written.pop(key, None)

    def _delete_after(self, thing: object, name: str) -> None:
        weakref.finalize(thing, self.store.delete, [f"{SWEEPS}/{name}"]).atexit = False

    def _there(self, folder: str, name: str) -> bool:
        local = self.store.local(f"{folder}/{name}")
        return local.exists() if local is not None else name in self.store.sizes(folder)


def whole(rows: Batch | Chunk) -> Batch:
    """Rows as a batch, to be written."""
    return rows if isinstance(rows, Batch) else Batch(rows.head, rows.keep, (), (), ())


class _Written:
    """A file of batches that live in memory too."""

    def __init__(self, info: FileInfo) -> None:
        self.info = info


@dataclass(frozen=True)
class Contents:
    """What a parcel begins with: how many things there are, of which kinds, and the traces."""

    nodes: list[type[Node]]
    scopes: int
    flows: int
    traces: list[Any]


# ------------------------------------------------------------------ packing


def pack(
    graph: Graph, stages: Stages, ranks: dict[int, Sequence[int]], yard: Yard, epoch: int
) -> tuple[bytes, bool, list[Pending], list[Batch | Chunk]]:
    """The dataflows as bytes, whether they need the dictionary, what waits for their nodes, and what has to live until the job
    has ended. Of traces and handles, what the nodes of the stages read is packed.
    """
    active = [graph.nodes[number] for number in stages.first]
    handles = {id(reader.handle): reader.handle for node in active for reader in node.reads}
    read = {id(handle.trace) for handle in handles.values()}
    read |= {id(node.mints) for node in active if isinstance(node, ReduceNode) and node.own_history}
    versions = [_versions(trace) if id(trace) in read else None for trace in graph.traces]
    used: list[tuple[int, Batch | Chunk, Shape]] = []
    for trace, found in zip(graph.traces, versions, strict=True):
        shape = (trace.data, trace.times, trace.diffs)
        used += [(shard, batch, shape) for shard, version in enumerate(found or ()) for batch in version]
    for handle in handles.values():
        shape = (handle.trace.data, handle.trace.times, handle.trace.diffs)
        for shard in range(handle.trace.shards):
            used += [(shard, batch, shape) for batch in (*handle.queues[shard], *handle.pins[shard].batches)]
    waiting = list(_waiting(graph, stages))
    used += [(shard, chunk, shape) for _, _, _, shard, chunk, shape in waiting]
    _write_missing(used, yard, epoch)

    def place(what: Batch | Chunk) -> Place:
        found = yard.place(what)
        assert found is not None
        return found

    def reference(batch: Batch) -> Reference:
        return place(batch), batch.lower, batch.upper, batch.since

    file = io.BytesIO()
    pickler = _Pickler(file, graph, handles, reference)
    dump: Callable[[object], None] = pickler.dump
    dump(
        Contents(
            [type(node) for node in graph.nodes],
            len(graph.scopes),
            len(graph.flows),
            [
                (trace.data, trace.times, trace.diffs, trace.shards, trace.effort, trace._uppers,
                 None if found is None else [[reference(batch) for batch in version] for version in found])
                for trace, found in zip(graph.traces, versions, strict=True)
            ],
        )
    )  # fmt: skip
    states = [_node(node, ranks.get(number)) for number, node in enumerate(graph.nodes)]
    dump((states, list(map(_scope, graph.scopes)), list(map(_flow, graph.flows))))
    pending = [Pending(node, kind, moment, shard, place(chunk)) for node, kind, moment, shard, chunk, _ in waiting]
    return file.getvalue(), pickler.reads_texts, pending, [what for _, what, _ in used]


def _versions(trace: Trace) -> list[list[Batch]] | None:
    if trace.spines is None:
        return None
    return [[batch for batch in trace.version(shard).batches if batch.n] for shard in range(trace.shards)]


def _waiting(graph: Graph, stages: Stages) -> Iterator[tuple[int, int, Moment, int, Chunk, Shape]]:
    """What waits for the nodes of the stages: node, kind, moment, shard, rows and their shape."""
    for number in stages.first:
        node = graph.nodes[number]
        buffer = getattr(node, "buffer", None)
        for moment in stages.moments:
            for shard, chunks in enumerate(buffer.waiting(moment) if isinstance(buffer, Buffer) else ()):
                yield from ((number, BUFFER, moment, shard, chunk, node.buffer.shape) for chunk in chunks if chunk.n)  # type: ignore[attr-defined]
            for shard, todo in enumerate(node.todo if isinstance(node, ReduceNode) else ()):
                shape = (node.key, node.times, 0)  # type: ignore[attr-defined]
                yield from ((number, PUT_OFF, moment, shard, chunk, shape) for chunk in todo.get(moment, ()) if chunk.n)


def _write_missing(used: list[tuple[int, Batch | Chunk, Shape]], yard: Yard, epoch: int) -> None:
    """Have everything lie in a file."""
    missing: dict[int, dict[int, tuple[Batch | Chunk, Shape]]] = {}
    for shard, what, shape in used:
        if yard.place(what) is None:
            missing.setdefault(shard, {})[id(what.head)] = (what, shape)
    for shard, batches in missing.items():
        yard.write(epoch, shard, list(batches.values()))


def _flow(flow: Dataflow) -> dict[str, Any]:
    kept = ("name", "shards", "effort", "first", "low", "high", "running", "rounds", "root")
    return {name: getattr(flow, name) for name in kept}


def _scope(scope: Scope) -> dict[str, Any]:
    return scope.__dict__ | {"_moments": [], "_agenda": {}, "_passed": (None, ())}


def _node(node: Node, ranks: Sequence[int] | None) -> dict[str, Any]:
    state = dict(node.__dict__)
    if isinstance(node, Inspect):
        state |= {"function": None, "dictionary": None}
    elif isinstance(node, Pipelines):
        state["ranks"] = ranks
    elif isinstance(node, ReduceNode):
        state |= {"todo": [{} for _ in range(node.shards)], "_put_off_to": [set() for _ in range(node.shards)]}
    return state


class _Pickler(cloudpickle.CloudPickler):
    """Nodes, scopes, dataflows and traces go by their numbers, so that no chain of nodes is followed; handles as references."""

    def __init__(
        self, file: io.BytesIO, graph: Graph, handles: dict[int, Handle], reference: Callable[[Batch], Reference]
    ) -> None:
        super().__init__(file)  # type: ignore[no-untyped-call]
        self._graph = graph
        self._handles = handles
        self._reference = reference
        self.reads_texts = False

    def persistent_id(self, thing: object) -> tuple[str, int] | None:
        number = self._graph.number.get(id(thing))
        if number is not None:
            return type(thing).__name__ if isinstance(thing, Scope | Dataflow | Trace) else "Node", number
        if isinstance(thing, Dictionary):
            self.reads_texts = True
            return "Dictionary", 0
        return ("Context", 0) if isinstance(thing, _Context) else None

    def reducer_override(self, thing: Any) -> Any:
        if isinstance(thing, Handle):
            queues: list[list[Reference]] = [[] for _ in thing.queues]
            pins: list[list[Reference]] = [[] for _ in thing.pins]
            if id(thing) in self._handles:
                queues = [[self._reference(batch) for batch in queue] for queue in thing.queues]
                pins = [[self._reference(batch) for batch in pin.batches] for pin in thing.pins]
            return _handle, (_Context(), thing.trace, thing.hold is not None, queues, pins)
        if isinstance(thing, Buffer):
            return Outgoing, (thing.flow, thing.shards, *thing.shape)
        return super().reducer_override(thing)  # type: ignore[no-untyped-call]


# ------------------------------------------------------------------ unpacking


class Pinned:
    """The batches of one shard's trace in a task: what is added is merged by whoever keeps it."""

    def __init__(self, batches: Sequence[Batch]) -> None:
        self.version = Version(tuple(batches))

    def insert(self, batch: Batch) -> None:
        """One more batch."""
        if batch.n:
            self.version = Version((*self.version.batches, batch))


class Alone:
    """Runs a node on one shard, whatever the number of shards."""

    def __init__(self, shard: int) -> None:
        self.shard = shard

    def map(self, work: Callable[[int, Outbox], None], shards: int, rows: int) -> list[Outbox]:
        """The outbox of the one shard."""
        outbox: Outbox = []
        work(self.shard, outbox)
        return [outbox]


class Outgoing(Buffer):
    """A buffer in a task, which consolidates what it will send to other shards too."""

    def consolidate(self) -> None:
        full = sorted(self._full)
        self._full.clear()
        for moment, shard in full:
            self.consolidate_at(moment, shard)


class _Context:
    """Stands, where a handle is packed, for what unpacks it."""


_HELD: Hold = Hold.__new__(Hold)
"""Says of a handle that it reads versions. Nothing is merged in a task, so nothing is held."""


def _handle(
    unpacked: Unpacked, trace: Trace, reads_versions: bool, queues: list[list[Reference]], pins: list[list[Reference]]
) -> Handle:
    shard = unpacked.shard
    handle: Handle = Handle.__new__(Handle)
    handle.trace = trace
    handle.hold = _HELD if reads_versions else None
    handle.queues = [[] for _ in queues]
    handle.pins = [EMPTY for _ in pins]
    handle.queues[shard] = [unpacked.batch(reference) for reference in queues[shard]]
    handle.pins[shard] = Version(tuple(unpacked.batch(reference) for reference in pins[shard]))
    trace.handles.append(handle)
    return handle


class Unpacked:
    """The dataflows of a parcel, as one shard has them."""

    def __init__(self, parcel: Parcel, shard: int) -> None:
        self.store = parcel.store
        self.shard = shard
        self.texts = Shelf(parcel.store, parcel.library)
        reading = _Unpickler(io.BytesIO(parcel.content))
        contents = reading.load()
        traces = [self._trace(*found) for found in contents.traces]
        nodes = [kind.__new__(kind) for kind in contents.nodes]
        scopes = [Scope.__new__(Scope) for _ in range(contents.scopes)]
        flows = [Dataflow(f"{number}", Alone(shard), 1, "default") for number in range(contents.flows)]
        reading.things = {
            "Node": nodes, "Scope": scopes, "Dataflow": flows, "Trace": traces,
            "Context": [self], "Dictionary": [self.texts],
        }  # fmt: skip
        everything: tuple[list[Any], ...] = (nodes, scopes, flows)
        for things, states in zip(everything, reading.load(), strict=True):
            for thing, state in zip(things, states, strict=True):
                thing.__dict__.update(state)
        self.graph = Graph(flows, scopes, nodes, traces)
        self.texts.forget()  # the constants of programs

    def batch(self, reference: Reference) -> Batch:
        """A batch, mapped and checked."""
        place, *frontiers = reference
        found = opened(self.store, *place[:3]).batch(place[3])
        return Batch(found.head, found.keep, *frontiers)

    def _trace(
        self, data: int, times: int, diffs: int, shards: int, effort: str, uppers: list[Frontier],
        versions: list[list[Reference]] | None,
    ) -> Trace:  # fmt: skip
        trace = Trace(data, times, diffs, shards, effort)
        trace._uppers = list(uppers)
        if versions is not None:
            mine = [[self.batch(r) for r in version] if n == self.shard else [] for n, version in enumerate(versions)]
            trace.spines = list(map(Pinned, mine))  # type: ignore[arg-type]
        return trace


class _Unpickler(pickle.Unpickler):
    """Reads what the driver of this very application has packed."""

    things: dict[str, list[Any]]

    def persistent_load(self, found: tuple[str, int]) -> Any:
        kind, number = found
        return self.things[kind][number]
