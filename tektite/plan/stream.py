"""A collection in a dataflow: chunks from some ports, and the linear steps that they pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from tektite.dataflow.arrange import Arranged
from tektite.dataflow.graph import Edge, LinearStep, Port, Scope
from tektite.dataflow.linear import SelectStep
from tektite.dataflow.node import Node
from tektite.plan.algebra import ColumnNumbers

T = TypeVar("T")
StreamPart = tuple[Port, tuple[LinearStep, ...], int]


class Stream:
    """A collection as chunks: the ports it comes from, each with the linear steps on the way."""

    def __init__(self, scope: Scope, parts: Sequence[StreamPart], placed: ColumnNumbers | None) -> None:
        """`placed` lists the columns whose hash decides the shard of each row; None if no columns of the stream do."""
        self.scope = scope
        self.parts = tuple(parts)
        self.placed = placed

    def then(self, step: LinearStep, placed: ColumnNumbers | None) -> Stream:
        """The stream with one more step, after which rows are `placed` as said."""
        return Stream(self.scope, [(port, (*steps, step), lift) for port, steps, lift in self.parts], placed)

    def enter(self, scope: Scope) -> Stream:
        """The stream as seen from an inner scope."""
        levels = scope.depth - self.scope.depth
        if not levels:
            return self
        return Stream(scope, [(port, steps, lift + levels) for port, steps, lift in self.parts], self.placed)

    def feed(self, target: Node) -> None:
        """Connect the stream to a node."""
        for port, steps, lift in self.parts:
            port.edges += (Edge(steps, lift, target),)


def together(scope: Scope, streams: Sequence[Stream]) -> Stream:
    """Streams of one scope as one."""
    places = {stream.placed for stream in streams}
    parts = [part for stream in streams for part in stream.parts]
    return Stream(scope, parts, places.pop() if len(places) == 1 else None)


def in_order(node: Node, arranged: Arranged) -> Stream:
    """Puts rows that a node emits in the order of an arrangement's columns into the order of the collection's."""
    columns = arranged.columns
    placed = columns[: arranged.sharded_by] or None
    stream = Stream(node.scope, [(node.port, (), 0)], placed)
    if columns == tuple(range(len(columns))):
        return stream
    return stream.then(SelectStep([columns.index(c) for c in range(len(columns))]), placed)


def first_places(columns: Sequence[T], wanted: Sequence[Sequence[T]]) -> ColumnNumbers | None:
    """For each wanted entry the first place among `columns` that holds one of its alternatives; None if one has none."""
    places = [next((at for at, c in enumerate(columns) if c in alternatives), None) for alternatives in wanted]
    return None if None in places else tuple(place for place in places if place is not None)
