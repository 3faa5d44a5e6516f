"""Scopes, ports and edges: how chunks travel between nodes. The agenda: which node of a dataflow runs next.

A *moment* is the tuple of rounds that a scope is running. The only moment of the outermost scope is ().

* Rows that wait do so at a node and a moment of its scope. They are entered in the scope's agenda.
* A scope runs its moments in lexicographic order, and at each moment its nodes in topological order.
* A nested scope is a node of its parent. It runs all its moments under the parent's moment.

Promise: a node never receives anything at a moment that has passed. A node without work costs nothing.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from heapq import heapify
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any, Protocol

from tektite.dataflow.interrupts import current_call
from tektite.errors import FaultError
from tektite.expr.guards import Guard, either
from tektite.kernels.ready import calls
from tektite.trace.chunk import Chunk, column_spec
from tektite.trace.times import Frontier, passed_frontier, running_frontier
from tektite.values.words import Words

if TYPE_CHECKING:
    from collections.abc import Callable

    from tektite.dataflow.errors import ErrorOrigin
    from tektite.dataflow.flow import Dataflow
    from tektite.dataflow.node import Node

Moment = tuple[int, ...]


class LinearStep(Protocol):
    """A linear operation on chunks: processes each row on its own and has no state."""

    errors: ErrorOrigin | None
    """Where its errors go. None if it does not fail on rows; then an exception ends the dataflow."""

    @property
    def guard(self) -> Guard | None:
        """A condition that every row meets which it does not drop, if it has one."""

    def origin(self, column: int) -> int | None:
        """The data column that it passes on as a column of its result; None if that is computed."""

    def __call__(self, chunk: Chunk, times: int) -> Chunk:
        """The transformed chunk. `times` is the number of its time columns."""


class FallibleStep(LinearStep, Protocol):
    """A linear operation that may fail on rows."""

    def attempt(self, chunk: Chunk, times: int) -> tuple[Chunk, Words | None]:
        """The transformed chunk without the rows that fail, and those as data, times and diff columns, if there are any."""


def common_guard(ways: Sequence[Sequence[LinearStep]]) -> Guard | None:
    """A condition on one column that every row meets which gets through one of some ways; None if there is none to be found."""
    return either([_guard_of_way(steps) for steps in ways])


def _guard_of_way(steps: Sequence[LinearStep]) -> Guard | None:
    """The condition of the first step that has one, on the rows that come in. Steps before it must not fail on rows: an error
    counts, whatever a later step drops.
    """
    for at, step in enumerate(steps):
        guard = step.guard
        if guard is not None:
            if not at:
                return guard
            column: int | None = guard[0]
            for before in reversed(steps[:at]):
                column = None if column is None else before.origin(column)
            return None if column is None else (column, guard[1])
        if step.errors is not None:
            return None
    return None


def run_step(step: LinearStep, shard: int, chunk: Chunk, times: int, outbox: Outbox) -> Chunk:
    """The transformed chunk. The errors of rows that fail go to the outbox."""
    errors = step.errors
    if errors is None:
        return step(chunk, times)
    made: Chunk
    made, failed = step.attempt(chunk, times)  # type: ignore[attr-defined]
    if failed is not None:
        errors.send(shard, failed, times, outbox)
    return made


if TYPE_CHECKING:

    class ScopeRecord:
        """The agenda of a scope; see native/agenda.c."""

        def schedule(self, position: int, moment: Moment) -> None:
            """Add the node at `position` to the agenda of `moment`."""

        def next(self, outer: Moment) -> tuple[Node | Scope, Moment] | None:
            """Take the next node from the agenda under the parent's moment `outer`; None if there is none."""

    _NOTHING: dict[Moment, list[int]]
    _NO_MOMENTS: list[Moment]
else:
    ScopeRecord = calls().ScopeRecord
    _NOTHING = calls().NO_AGENDA
    """The agenda of scopes that have nothing to do. Nobody adds to it."""
    _NO_MOMENTS = calls().NO_MOMENTS
    """Its moments."""
_run_agenda: Any = calls().run_agenda
_FIELDS = tuple(name for name, value in vars(ScopeRecord).items() if isinstance(value, MemberDescriptorType))


class Scope(ScopeRecord):
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
        self._moments = _NO_MOMENTS
        self._agenda = _NOTHING
        self._passed: tuple[object, Frontier] = (None, ())
        self._running: tuple[object, Frontier] = (None, ())
        self.rounds = 0
        """Rounds of its loop so far, beyond the first of each time that it is entered."""
        self.last_rounds = 0
        """Those of the last sweep that entered it."""
        self._counted = 0
        if parent is not None:
            parent.add(self)

    def add(self, member: Node | Scope) -> None:
        """Append a node or a nested scope."""
        member.position = len(self.body)
        self.body.append(member)

    def enters(self, parent: Scope) -> None:
        """Move this scope to the end of its parent, because something that the parent has by now enters it."""
        members = parent.body
        members.remove(self)
        members.append(self)
        for position, member in enumerate(members):
            member.position = position

    def upcoming(self, outer: Moment) -> tuple[Node, Moment] | None:
        """The node that would run next under the parent's moment `outer`, in this scope or in one nested in it."""
        for moment in sorted(self._agenda):
            if moment[:-1] == outer:
                for position in sorted(self._agenda[moment]):
                    member = self.body[position]
                    found = member.upcoming(moment) if isinstance(member, Scope) else (member, moment)
                    if found is not None:
                        return found
        return None

    def strike(self, positions: set[int], moments: Sequence[Moment]) -> None:
        """Remove nodes that other processes have run from the agenda of some moments."""
        for moment in moments:
            waiting = self._agenda.get(moment)
            if waiting:
                waiting[:] = [position for position in waiting if position not in positions]
                heapify(waiting)

    def _begin(self, moment: Moment) -> None:
        self.moment = moment
        self.flow.rounds += 1
        self.rounds += 1
        if moment[-1] > self.limit:
            raise FaultError(
                f"loop {self.name!r} still changes after {self.limit} rounds; {self.advice}",
                self.flow.name,
            )

    def frontier(self) -> Frontier:
        """The times that can still appear in this scope."""
        flow = self.flow
        if not flow.running or not self.depth:
            return ((flow.low,) + (0,) * self.depth,)
        key = (flow.reached, flow.high, self.moment)
        if self._running[0] != key:
            self._running = (key, running_frontier(*key))
        return self._running[1]

    def passed(self) -> Frontier:
        """The times that can still appear once the current moment is done."""
        flow = self.flow
        if not self.depth:
            return ((flow.high,),)
        key = (flow.reached, flow.high, self.moment)
        if self._passed[0] != key:
            self._passed = (key, passed_frontier(*key))
        return self._passed[1]

    @property
    def nodes(self) -> list[Node]:
        """The nodes of this scope itself, in order."""
        return [member for member in self.body if not isinstance(member, Scope)]

    @property
    def nested(self) -> list[Scope]:
        """The scopes directly inside."""
        return [member for member in self.body if isinstance(member, Scope)]

    def scopes(self) -> Iterator[Scope]:
        """This scope and all nested ones, outer ones first."""
        yield self
        for scope in self.nested:
            yield from scope.scopes()

    def enclosing(self) -> Iterator[Scope]:
        """This scope and all that enclose it, from the inside out."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.parent

    def rest(self) -> None:
        """Return to moment zero at the end of a sweep."""
        self.moment = (0,) * self.depth
        if self.rounds > self._counted:
            self.last_rounds, self._counted = self.rounds - self._counted, self.rounds
        for member in self.body:
            if isinstance(member, Scope):
                member.rest()

    def clear(self) -> None:
        """Empty the agenda and all buffers."""
        self._moments, self._agenda = _NO_MOMENTS, _NOTHING
        self.rest()
        for member in self.body:
            member.clear()

    def ship(self) -> dict[str, Any]:
        """The attributes of a copy in another process. Its agenda is empty."""
        state = {name: getattr(self, name) for name in _FIELDS}
        return state | {"_moments": [], "_agenda": {}, "_passed": (None, ()), "_running": (None, ())}


class Port:
    """The output of a node. Each edge carries the emitted chunks to another node."""

    __slots__ = ("edges",)

    def __init__(self) -> None:
        self.edges: tuple[Edge, ...] = ()

    def emit(self, shard: int, chunk: Chunk, moment: Moment, times: int, outbox: Outbox) -> None:
        """Send a chunk of one moment through the edges, and put the results into the outbox. Steps that several edges begin with
        run once.
        """
        if chunk.n:
            done: Done | None = {} if len(self.edges) > 1 else None
            for edge in self.edges:
                edge.carry(shard, chunk, moment, times, outbox, done)


class Edge:
    """The way from a port to a node: linear steps, then entry into nested scopes, then the exchange."""

    __slots__ = ("lift", "steps", "target")

    def __init__(self, steps: Sequence[LinearStep], lift: int, target: Node) -> None:
        self.steps = tuple(steps)
        self.lift = lift
        self.target = target

    def carry(self, shard: int, chunk: Chunk, moment: Moment, times: int, outbox: Outbox, done: Done | None) -> None:
        """Transform a chunk and address it. `done` holds the results of steps by the id of their chunk, if there are other edges.
        All these chunks live as long as it does, so ids are unique.
        """
        for step in self.steps:
            if done is None:
                chunk = step(chunk, times) if step.errors is None else run_step(step, shard, chunk, times, outbox)
            else:
                made = done.get((step, id(chunk)))
                if made is None:
                    made = done[step, id(chunk)] = run_step(step, shard, chunk, times, outbox)
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
    """The chunk with `lift` further time columns, all zero. The diff is the last column."""
    columns = chunk.width
    key = (columns, lift)
    spec = _ENTER.get(key)
    if spec is None:
        last = columns - 1
        spec = _ENTER[key] = column_spec([*range(last), *([-1] * lift), last], (0,))
    return chunk.select(spec)


_ENTER: dict[tuple[int, int], Words] = {}


def run_agenda(root: Scope, deadline: float) -> bool:
    """Run a dataflow's agenda. Returns whether it is empty; False if the deadline came first."""
    flow = root.flow
    journal = flow.journal
    work = None if journal is None else journal.work
    around: Callable[[Node, Moment], None] | None = None if work is None else work.run
    if flow.limit is not None:
        unlimited = around or _run_node

        def around(node: Node, moment: Moment) -> None:
            unlimited(node, moment)
            flow.check_limit()

    done: bool = _run_agenda(root, deadline, time.perf_counter, current_call(), around)
    return done


def _run_node(node: Node, moment: Moment) -> None:
    node.run(moment)
