"""Scopes, ports and the agenda: what runs next in one dataflow, and how chunks travel between nodes.

A *moment* is the tuple of rounds that a scope is running; the outermost scope's only moment is (). Everything that
waits in a dataflow waits at a node, at a moment of the node's scope, and is entered in that scope's agenda. A scope
runs its moments in lexicographic order, and at each moment its nodes in topological order; a nested scope is a node
of its parent that runs all its moments under the parent's moment. So a node never receives anything at a moment that
has passed, and a node with nothing to do costs nothing.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Any, Protocol

from tektite.errors import FaultError
from tektite.trace.chunk import Chunk, column_spec
from tektite.trace.times import Frontier, passed_frontier, running_frontier
from tektite.values.words import Words

if TYPE_CHECKING:
    from tektite.dataflow.flow import Dataflow
    from tektite.dataflow.node import Node

Moment = tuple[int, ...]


class LinearStep(Protocol):
    """A linear operation on chunks: looks at one row at a time, keeps nothing."""

    def __call__(self, chunk: Chunk, times: int) -> Chunk:
        """The chunk transformed; `times` is the number of its time columns."""


class Runnable(Protocol):
    """What an agenda schedules: a node, or a nested scope."""

    position: int


class Scope:
    """A loop's body, or the outermost level of a dataflow."""

    def __init__(
        self, flow: Dataflow, parent: Scope | None = None, name: str = "", limit: int = 0, advice: str = ""
    ) -> None:
        self.flow = flow
        self.parent = parent
        self.name = name
        self.limit = limit
        self.advice = advice
        self.depth: int = 0 if parent is None else parent.depth + 1
        self.body: list[Node | Scope] = []
        self.position = -1
        self.moment: Moment = (0,) * self.depth
        self._moments: list[Moment] = []
        self._agenda: dict[Moment, list[int]] = {}
        self._passed: tuple[object, Frontier] = (None, ())
        if parent is not None:
            parent.add(self)

    def add(self, member: Node | Scope) -> None:
        """Put a node or a nested scope behind everything that is in the scope so far."""
        member.position = len(self.body)
        self.body.append(member)

    def enters(self, parent: Scope) -> None:
        """Something of the parent enters this scope: it has to come after all that the parent holds so far."""
        members = parent.body
        members.remove(self)
        members.append(self)
        for position, member in enumerate(members):
            member.position = position

    def schedule(self, position: int, moment: Moment) -> None:
        """Enter the node at `position` in the agenda of `moment`."""
        waiting = self._agenda.get(moment)
        if waiting is None:
            self._agenda[moment] = [position]
            heappush(self._moments, moment)
            if self.parent is not None:
                self.parent.schedule(self.position, moment[:-1])
        elif position not in waiting:
            heappush(waiting, position)

    def next(self, outer: Moment) -> tuple[Node | Scope, Moment] | None:
        """Take the next node from the agenda under the parent's moment `outer`; None when nothing is left there."""
        moments = self._moments
        while moments:
            moment = moments[0]
            if moment[:-1] != outer:
                return None
            waiting = self._agenda[moment]
            if waiting:
                if moment != self.moment:
                    self._begin(moment)
                return self.body[heappop(waiting)], moment
            heappop(moments)
            del self._agenda[moment]
        return None

    def upcoming(self, outer: Moment) -> tuple[Node, Moment] | None:
        """The node that would run next under the parent's moment `outer`, here or in a scope inside."""
        for moment in sorted(self._agenda):
            if moment[:-1] == outer:
                for position in sorted(self._agenda[moment]):
                    member = self.body[position]
                    found = member.upcoming(moment) if isinstance(member, Scope) else (member, moment)
                    if found is not None:
                        return found
        return None

    def strike(self, positions: set[int], moments: Sequence[Moment]) -> None:
        """Take nodes that others have run off the agenda of some moments."""
        for moment in moments:
            waiting = self._agenda.get(moment)
            if waiting:
                waiting[:] = [position for position in waiting if position not in positions]
                heapify(waiting)

    def _begin(self, moment: Moment) -> None:
        self.moment = moment
        self.flow.rounds += 1
        if moment[-1] > self.limit:
            raise FaultError(
                f"loop {self.name!r} did not come to rest within {self.limit} rounds; {self.advice}",
                self.flow.name,
            )

    def frontier(self) -> Frontier:
        """The times that can still appear in this scope."""
        flow = self.flow
        if not flow.running or not self.depth:
            return ((flow.low,) + (0,) * self.depth,)
        return running_frontier(flow.low, flow.high, self.moment)

    def passed(self) -> Frontier:
        """The times that can still appear once the current moment is done."""
        if not self.depth:
            return ((self.flow.high,),)
        key = (self.flow.low, self.flow.high, self.moment)
        if self._passed[0] != key:
            self._passed = (key, passed_frontier(*key))
        return self._passed[1]

    @property
    def nodes(self) -> list[Node]:
        """The nodes of this scope itself, in their order."""
        return [member for member in self.body if not isinstance(member, Scope)]

    @property
    def nested(self) -> list[Scope]:
        """The scopes directly inside."""
        return [member for member in self.body if isinstance(member, Scope)]

    def scopes(self) -> Iterator[Scope]:
        """This scope and all inside, outer ones first."""
        yield self
        for scope in self.nested:
            yield from scope.scopes()

    def enclosing(self) -> Iterator[Scope]:
        """This scope and all that it is in, from the inside out."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.parent

    def rest(self) -> None:
        """Start over at moment zero: the sweep has ended."""
        self.moment = (0,) * self.depth
        for member in self.body:
            if isinstance(member, Scope):
                member.rest()

    def clear(self) -> None:
        """Forget everything that waits."""
        self._moments.clear()
        self._agenda.clear()
        self.rest()
        for member in self.body:
            member.clear()

    def ship(self) -> dict[str, Any]:
        """The attributes of a copy in another process: its agenda is empty."""
        return self.__dict__ | {"_moments": [], "_agenda": {}, "_passed": (None, ())}


class Port:
    """An output of a node: chunks put here run through each edge to the node at its other end."""

    __slots__ = ("edges",)

    def __init__(self) -> None:
        self.edges: list[Edge] = []

    def emit(self, shard: int, chunk: Chunk, moment: Moment, times: int, outbox: Outbox) -> None:
        """Run a chunk of one moment through the edges and leave the results in the outbox. A step that several edges begin
        with runs once.
        """
        if chunk.n:
            done: Done = {}
            for edge in self.edges:
                edge.carry(shard, chunk, moment, times, outbox, done)


class Edge:
    """The way from a port to a node: linear steps, then the scopes entered, then the exchange."""

    __slots__ = ("lift", "steps", "target")

    def __init__(self, steps: Sequence[LinearStep], lift: int, target: Node) -> None:
        self.steps = tuple(steps)
        self.lift = lift
        self.target = target

    def carry(self, shard: int, chunk: Chunk, moment: Moment, times: int, outbox: Outbox, done: Done) -> None:
        """Transform a chunk and address it. `done` keeps what steps made of chunks, so that numbers tell these apart."""
        for step in self.steps:
            made = done.get((step, id(chunk)))
            if made is None:
                made = done[step, id(chunk)] = step(chunk, times)
            chunk = made
            if not chunk.n:
                return
        target = self.target
        if self.lift:
            chunk = enter(chunk, times, self.lift)
            moment += (0,) * self.lift
        target.exchange(shard, chunk, moment, outbox)


Done = dict[tuple[LinearStep, int], Chunk]
Delivery = tuple["Node", int, Chunk, Moment]
Outbox = list[Delivery]


def enter(chunk: Chunk, times: int, lift: int) -> Chunk:
    """The chunk with `lift` zero rounds behind its time columns. The diff is the last column."""
    columns = int(chunk.head[2])
    key = (columns, lift)
    spec = _ENTER.get(key)
    if spec is None:
        last = columns - 1
        spec = _ENTER[key] = column_spec([*range(last), *([-1] * lift), last], (0,))
    return chunk.select(spec)


_ENTER: dict[tuple[int, int], Words] = {}


def run_agenda(root: Scope, deadline: float) -> bool:
    """Run a dataflow's agenda until it is empty (True) or the deadline has passed (False)."""
    path: list[tuple[Scope, Moment]] = [(root, ())]
    while path:
        scope, outer = path[-1]
        found = scope.next(outer)
        if found is None:
            path.pop()
            continue
        member, moment = found
        if isinstance(member, Scope):
            path.append((member, moment))
            continue
        member.run(moment)
        if time.perf_counter() > deadline:
            for nested, at in path[1:]:
                assert nested.parent is not None
                nested.parent.schedule(nested.position, at)
            return False
    return True
