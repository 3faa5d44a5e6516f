"""Shipment: dataflows, packed for processes that each run one shard of them.

The engine packs what each node says of itself (`Node.ship`). Batches are not packed: a trace, a queue and a pinned version are
lists of references to sections of files. `SweepFiles.write_missing` first writes the batches that are in no file. The executor's
pickler decides how functions travel. A shard unpacks the same nodes and maps only its own batches.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from tektite.dataflow.flow import Dataflow, Workers
from tektite.dataflow.graph import Moment, Scope
from tektite.dataflow.node import Node
from tektite.runtime.open_files import FilePlace, opened
from tektite.runtime.shard_texts import ShardTexts
from tektite.runtime.stages import Graph, Stages
from tektite.runtime.sweep_files import SweepFiles, Used
from tektite.storage.store import Store
from tektite.trace.batch import Batch
from tektite.trace.chunk import Chunk
from tektite.trace.spine import BatchShape
from tektite.trace.times import Frontier
from tektite.trace.trace import Handle, Trace
from tektite.values.dictionary import Dictionary

BatchReference = tuple[FilePlace, Frontier, Frontier, Frontier]
"""A batch by its place, with its frontiers lower, upper and since."""


class Address(NamedTuple):
    """A place where rows wait: the number of a node, one of its buffers, a moment, and a shard."""

    node: int
    buffer: int
    moment: Moment
    shard: int


@dataclass(frozen=True)
class Shipment:
    """Everything that the shards of a part of a sweep get."""

    store: Store
    token: str
    """Distinguishes the files of this part from those of others. A stage that is run again has the same token."""
    shards: int
    epoch: int
    content: bytes
    stages: Stages
    decisions: dict[int, Any]
    """Decisions of nodes for all shards (`Node.decide`)."""
    waiting: tuple[tuple[Address, FilePlace], ...]
    """Rows that wait at the start of the part."""
    texts: tuple[FilePlace, ...]
    """The places of the texts that the engine knows."""


@dataclass(frozen=True)
class Contents:
    """The start of a shipment's content: the classes of nodes, the number of scopes and dataflows, the traces and the handles."""

    nodes: list[type[Node]]
    scopes: int
    flows: int
    traces: list[PackedTrace]
    handles: list[PackedHandle]


class PackedTrace(NamedTuple):
    """A trace: its shape, how far it was minted, and its history by shard if somebody reads versions."""

    data: int
    times: int
    diffs: int
    shards: int
    effort: str
    uppers: tuple[Frontier, ...]
    versions: list[list[BatchReference]] | None


class PackedHandle(NamedTuple):
    """A handle: the number of its trace, and its queues and pinned versions by shard."""

    trace: int
    reads_versions: bool
    queues: list[list[BatchReference]]
    pins: list[list[BatchReference]]


# ------------------------------------------------------------------ packing


@dataclass(frozen=True)
class Packed:
    """Dataflows as bytes, whether they need the dictionary, the rows that wait for their nodes, and the rows in use, which must
    live until the part has ended.
    """

    content: bytes
    reads_texts: bool
    waiting: tuple[tuple[Address, FilePlace], ...]
    used: list[Batch | Chunk]


def pack(graph: Graph, stages: Stages, files: SweepFiles, epoch: int, pickler: type[pickle.Pickler]) -> Packed:
    """Pack dataflows. Of traces and handles, only what the nodes of the stages read is packed."""
    active = [graph.nodes[number] for number in stages.first]
    readers = {id(reader.handle) for node in active for reader in node.reads}
    handles = graph.handles()
    read = {id(trace) for node in active for trace in (*(reader.trace for reader in node.reads), *node.consults())}
    versions = [_versions(trace) if id(trace) in read else None for trace in graph.traces]
    used: list[Used] = []
    for trace, found in zip(graph.traces, versions, strict=True):
        used += [(shard, batch, trace.shape) for shard, version in enumerate(found or ()) for batch in version]
    for handle in handles:
        if id(handle) in readers:
            for shard, (queue, pin) in enumerate(zip(handle.queues, handle.pins, strict=True)):
                used += [(shard, batch, handle.trace.shape) for batch in (*queue, *pin.batches)]
    waiting = list(_waiting(graph, stages))
    used += [(address.shard, chunk, shape) for address, chunk, shape in waiting]
    files.write_missing(used, epoch)

    def references(lists: Sequence[Sequence[Batch]]) -> list[list[BatchReference]]:
        return [[(files.place(batch), batch.lower, batch.upper, batch.since) for batch in found] for found in lists]

    file = io.BytesIO()
    base: Any = pickler
    packing = _pickler(base)(file, graph, {id(handle): number for number, handle in enumerate(handles)})
    packing.dump(
        Contents(
            [type(node) for node in graph.nodes],
            len(graph.scopes),
            len(graph.flows),
            [
                PackedTrace(
                    *trace.shape, trace.shards, trace.effort, trace.uppers, None if found is None else references(found)
                )
                for trace, found in zip(graph.traces, versions, strict=True)
            ],
            [
                PackedHandle(
                    graph.number[id(handle.trace)],
                    handle.reads_versions,
                    references(handle.queues if id(handle) in readers else [[]] * len(handle.queues)),
                    references([pin.batches if id(handle) in readers else () for pin in handle.pins]),
                )
                for handle in handles
            ],
        )
    )
    packing.dump([[thing.ship() for thing in things] for things in (graph.nodes, graph.scopes, graph.flows)])
    places = tuple((address, files.place(chunk)) for address, chunk, _ in waiting)
    return Packed(file.getvalue(), packing.reads_texts, places, [rows for _, rows, _ in used])


def _versions(trace: Trace) -> list[list[Batch]] | None:
    if trace.spines is None:
        return None
    return [[batch for batch in trace.version(shard).batches if batch.n] for shard in range(trace.shards)]


def _waiting(graph: Graph, stages: Stages) -> Iterator[tuple[Address, Chunk, BatchShape]]:
    """The rows that wait for the nodes of the stages."""
    for number in stages.first:
        for place, buffer in enumerate(graph.nodes[number].buffers):
            for moment in stages.moments:
                for shard, chunks in enumerate(buffer.waiting(moment)):
                    address = Address(number, place, moment, shard)
                    yield from ((address, chunk, buffer.shape) for chunk in chunks if chunk.n)


@cache
def _pickler(base: type[Any]) -> Any:
    """A pickler like `base` that writes nodes, scopes, dataflows, traces and handles as numbers, so that it follows no chain of
    nodes. The engine's dictionary is not written either.
    """

    class Packing(base):  # type: ignore[misc]
        def __init__(self, file: io.BytesIO, graph: Graph, handles: dict[int, int]) -> None:
            super().__init__(file)
            self._graph = graph
            self._handles = handles
            self.reads_texts = False

        def persistent_id(self, thing: object) -> tuple[str, int] | None:
            number = self._graph.number.get(id(thing))
            if number is not None:
                return next(kind.__name__ for kind in KINDS if isinstance(thing, kind)), number
            if isinstance(thing, Handle):
                if id(thing) not in self._handles:
                    raise pickle.PicklingError("a node has a handle that is not in its `reads`")
                return "Handle", self._handles[id(thing)]
            if isinstance(thing, Dictionary):
                self.reads_texts = True
                return "Dictionary", 0
            return None

    return Packing


KINDS = (Node, Scope, Dataflow, Trace)
"""The classes whose objects have numbers in a graph."""


# ------------------------------------------------------------------ unpacking


class Unpacked:
    """The dataflows of a shipment, in one shard."""

    def __init__(self, shipment: Shipment, shard: int, workers: Workers) -> None:
        self._store = shipment.store
        self._shard = shard
        self.texts = ShardTexts(shipment.store, shipment.texts)
        reading = _Unpickler(io.BytesIO(shipment.content))
        contents: Contents = reading.load()
        traces = list(map(self._trace, contents.traces))
        handles = [self._handle(found, traces[found.trace]) for found in contents.handles]
        nodes = [kind.__new__(kind) for kind in contents.nodes]
        scopes = [Scope.__new__(Scope) for _ in range(contents.scopes)]
        flows = [Dataflow(f"{number}", workers, 1, "default") for number in range(contents.flows)]
        reading.things = {
            "Node": nodes, "Scope": scopes, "Dataflow": flows, "Trace": traces,
            "Handle": handles, "Dictionary": [self.texts],
        }  # fmt: skip
        everything: tuple[list[Any], ...] = (nodes, scopes, flows)
        for things, states in zip(everything, reading.load(), strict=True):
            for thing, state in zip(things, states, strict=True):
                for name, value in state.items():
                    setattr(thing, name, value)
        self.graph = Graph(flows, scopes, nodes, traces)
        self.texts.forget()  # constants of programs, which the engine knows

    def _batch(self, reference: BatchReference) -> Batch:
        """A batch, mapped and checked."""
        place, *frontiers = reference
        found = opened(self._store, *place[:3]).batch(place[3])
        return Batch(found.head, found.memory, *frontiers)

    def _own(self, shards: list[list[BatchReference]]) -> list[list[Batch]]:
        """The batches of this shard, mapped. Other shards get none."""
        return [list(map(self._batch, found)) if shard == self._shard else [] for shard, found in enumerate(shards)]

    def _trace(self, packed: PackedTrace) -> Trace:
        trace = Trace(packed.data, packed.times, packed.diffs, packed.shards, packed.effort)
        trace.load_state(packed.uppers, None if packed.versions is None else self._own(packed.versions))
        return trace

    def _handle(self, packed: PackedHandle, trace: Trace) -> Handle:
        return Handle.from_state(trace, packed.reads_versions, self._own(packed.queues), self._own(packed.pins))


class _Unpickler(pickle.Unpickler):
    """Reads what the engine has packed. `things` are the objects that stand for numbers."""

    things: dict[str, list[Any]]

    def persistent_load(self, found: tuple[str, int]) -> Any:
        kind, number = found
        return self.things[kind][number]


def rows_at(store: Store, place: FilePlace) -> Chunk:
    """The rows of a section."""
    batch = opened(store, *place[:3]).batch(place[3])
    return Chunk(batch.head, batch.memory)
