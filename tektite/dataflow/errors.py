"""Errors of rows: a second collection of a dataflow, beside its results.

An update (row, time, diff) on which an expression fails gives an error update (origin, row, epoch, diff) instead of a row. The
update that deletes the row gives the same error with the opposite diff. So errors cancel as rows do, and what stands at an epoch
does not depend on what has been merged. An error inside a loop says in which round it is: what a later round gets rid of has kept
a row from that round, so it stands as well.

`ErrorNode` arranges the errors of all origins of one dataflow. What stands in the way of a result are the errors of every origin
that the result depends on, in its own dataflow and in those that it reads (`ErrorSource`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from tektite.dataflow.arrange import ArrangeNode, consolidate
from tektite.dataflow.graph import Outbox
from tektite.errors import TektiteError
from tektite.kernels.seek.route import split_epoch
from tektite.trace.chunk import Chunk
from tektite.trace.trace import Trace
from tektite.values.words import Words

if TYPE_CHECKING:
    from tektite.dataflow.flow import Dataflow


EVER = 1 << 62
"""An epoch after all others."""


class Fallible(Protocol):
    """An expression or function that may fail on a row, or on a group of rows."""

    error: type[TektiteError]
    """Whose fault it is."""

    def explain(self, words: Words) -> str:
        """Describes the failure, given the data columns of one row (columns x 1)."""


class ErrorOrigin:
    """A step or an operator that may fail, as the errors of its dataflow know it."""

    node: ErrorNode
    """Where its errors go. Set when the dataflow has been rendered."""

    def __init__(self, number: int, width: int, depth: int, fallible: Fallible) -> None:
        """Its errors name a row of `width` data columns, in at most `depth` loops."""
        self.number = number
        self.width = width
        self.depth = depth
        self.fallible = fallible

    def send(self, shard: int, rows: Words, times: int, outbox: Outbox) -> None:
        """Address the errors of updates, given as all their columns: data, times, diff."""
        node = self.node
        errors = np.zeros((node.width + 2, rows.shape[1]), np.int64)
        errors[0] = self.number
        errors[1:times] = rows[self.width + 1 : self.width + times]
        errors[1 + node.depth : 1 + node.depth + self.width] = rows[: self.width]
        errors[-2] = rows[self.width]
        errors[-1] = rows[self.width + times]
        node.exchange(shard, Chunk.of_array(errors), (), outbox)

    def explain(self, row: Words) -> str:
        """Describes the failure, given the row; further words behind it are ignored."""
        return self.fallible.explain(np.ascontiguousarray(row[: self.width].reshape(-1, 1)))


class ErrorNode(ArrangeNode):
    """The errors of a dataflow, arranged: the number of the origin, the rounds of the loops around it, and the row, with zeros
    behind what is shorter. An error stays in the shard that made it, so the errors of all shards are added up when they are read.
    """

    def __init__(self, flow: Dataflow, origins: Sequence[ErrorOrigin]) -> None:
        self.depth = max([origin.depth for origin in origins])
        self.width = 1 + self.depth + max([origin.width for origin in origins])
        super().__init__(flow.root, flow.shards, tuple(range(self.width)), 1, "errors", settled=True)
        self.origins = list(origins)
        for origin in origins:
            origin.node = self

    def standing(self, epoch: int, numbers: frozenset[int]) -> Words:
        """The errors of some origins that do not add up to nothing at an epoch, in some round: (the number of the origin, the
        row) x errors. They add up to nothing in every round if and only if they do so round by round.
        """
        trace = self.trace
        chunks = [
            Chunk(batch.head, batch.memory) for shard in range(trace.shards) for batch in trace.version(shard).batches
        ]
        chunks = [before(chunk, self.width, epoch) for chunk in chunks if chunk.n]
        chunks = [chunk for chunk in chunks if chunk.n]
        if not chunks:
            return np.empty((self.width - self.depth, 0), np.int64)
        words = consolidate(chunks, (self.width, 1, 1), epoch).to_array()[: self.width]
        words = np.delete(words[:, np.isin(words[0], list(numbers))], range(1, 1 + self.depth), axis=0)
        return np.unique(words, axis=1) if self.depth else words

    def ship(self) -> dict[str, Any]:
        return super().ship() | {"origins": []}


def before(chunk: Chunk, width: int, epoch: int) -> Chunk:
    """The updates of a chunk up to an epoch."""
    buf, head, cut = split_epoch(chunk.at, width, epoch + 1)
    return Chunk(head, (chunk.memory, buf)).slice(0, int(cut))


@dataclass(frozen=True)
class ErrorSource:
    """Origins of one dataflow that a result depends on, in the epochs since ≤ e < until: another plan may have computed it in
    others.
    """

    node: ErrorNode
    numbers: frozenset[int]
    since: int = 0
    until: int = EVER

    def within(self, since: int, until: int) -> ErrorSource:
        """The same in some of these epochs."""
        return replace(self, since=max(self.since, since), until=min(self.until, until))


@dataclass(frozen=True)
class StandingErrors:
    """The errors that a read finds instead of an answer: one of them, its dataflow, and the number of rows that fail."""

    kind: type[TektiteError]
    message: str
    flow: str
    count: int


def standing_errors(sources: Iterable[ErrorSource], epoch: int) -> StandingErrors | None:
    """The errors that stand in the way of a result at an epoch; None if there are none."""
    count = 0
    first: tuple[ErrorNode, Words] | None = None
    numbers: dict[ErrorNode, frozenset[int]] = {}
    for source in sources:
        if not source.node.trace.is_empty and source.since <= epoch < source.until:
            numbers[source.node] = numbers.get(source.node, frozenset()) | source.numbers
    for node, origins in numbers.items():
        found = node.standing(epoch, origins)
        count += found.shape[1]
        if first is None and found.shape[1]:
            first = node, found[:, 0]
    if first is None:
        return None
    node, error = first
    origin = node.origins[int(error[0])]
    return StandingErrors(origin.fallible.error, origin.explain(error[1:]), node.flow.name, count)


def sources_of(
    flow: Dataflow,
    own: ErrorNode | None,
    results: Sequence[Trace],
    imported: Mapping[int, Sequence[ErrorSource]],
) -> Sequence[tuple[ErrorSource, ...]]:
    """For each result of a dataflow, the errors that it depends on. `imported` has those of traces of other dataflows, by id."""
    if own is None and not any(imported.values()):
        return _no_errors(len(results))
    return [_merged(own, *_upstream(flow, result), imported) for result in results]


@cache
def _no_errors(results: int) -> tuple[tuple[()], ...]:
    """For each of some results, none."""
    return ((),) * results


def _merged(
    own: ErrorNode | None, numbers: set[int], traces: set[int], imported: Mapping[int, Sequence[ErrorSource]]
) -> tuple[ErrorSource, ...]:
    found: dict[tuple[ErrorNode, int, int], frozenset[int]] = {}
    if own is not None and numbers:
        found[own, 0, EVER] = frozenset(numbers)
    for trace in traces:
        for source in imported.get(trace, ()):
            place = source.node, source.since, source.until
            found[place] = found.get(place, frozenset()) | source.numbers
    return tuple([ErrorSource(node, origins, *epochs) for (node, *epochs), origins in found.items()])


def _upstream(flow: Dataflow, result: Trace) -> tuple[set[int], set[int]]:
    """The numbers of the origins that a trace depends on in its dataflow, and the ids of the traces."""
    nodes = [node for scope in flow.root.scopes() for node in scope.nodes]
    mints = {id(node.mints): node for node in nodes if node.mints is not None}
    feeds: dict[int, list[tuple[Any, Any]]] = {}
    for node in nodes:
        for edge in node.port.edges:
            feeds.setdefault(id(edge.target), []).append((node, edge))
    numbers: set[int] = set()
    traces = {id(result)}
    waiting = [mints[id(result)]] if id(result) in mints else []
    known = {id(node) for node in waiting}

    def reach(node: Any) -> None:
        if node is not None and id(node) not in known:
            known.add(id(node))
            waiting.append(node)

    while waiting:
        node = waiting.pop()
        if node.errors is not None:
            numbers.add(node.errors.number)
        for before_it, edge in feeds.get(id(node), ()):
            numbers |= {step.errors.number for step in edge.steps if step.errors is not None}
            reach(before_it)
        for reader in node.reads:
            traces.add(id(reader.trace))
            reach(mints.get(id(reader.trace)))
    return numbers, traces
