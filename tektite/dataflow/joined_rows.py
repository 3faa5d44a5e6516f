"""JoinedRows: a join of some rows with others that has come some way, and can be divided between workers.

The rows of both sides do not change, so any worker may find any part of the pairs. A node begins with what each shard has. A
worker that has nothing left takes a half of what another one has not done. A frequent key is divided in itself: its pairs are a
*rectangle* of the rows of one side by those of the other, and the kernel leaves what it has not written in its state. So a node
of a graph with a tenth of all edges keeps all workers busy, though its shard belongs to one of them, and nobody has to know it
beforehand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

import numpy as np

from tektite.kernels.operators.rectangles import (
    CUT_AT,
    CUT_END,
    CUT_OUTER,
    CUT_OUTER_END,
    CUT_START,
    JOIN_STATE,
    LARGE_ROW,
    PAIR,
    SMALL_ROW,
)
from tektite.trace.addresses import addresses
from tektite.trace.batch import Batch
from tektite.trace.chunk import Chunk
from tektite.values.words import Words

FEWEST = 1 << 10
"""JoinSide that are not worth dividing: handing them over takes as long as joining them."""
BEHIND_ALL = 1 << 62
"""A row after all others."""

JoinSide = Sequence[Chunk | Batch]


class JoinedRows:
    """The rows of both sides, each sorted by the key, and how far the join of them has come."""

    __slots__ = ("far", "far_rows", "near", "near_rows", "state")

    def __init__(self, near: JoinSide, far: JoinSide, far_table: Words | None = None) -> None:
        """`far_table` has the addresses of `far`, if they are known."""
        self.near_rows = near
        self.far_rows = far
        self.near = addresses(near)
        self.far = addresses(far) if far_table is None else far_table
        self.state: Words = np.zeros(JOIN_STATE, np.int64)

    def divided(self) -> JoinedRows | None:
        """Leave about a half of what is not joined yet to another; None if there is too little."""
        state = self.state
        if state[CUT_OUTER] < state[CUT_OUTER_END]:
            return self._half_of_key()
        near, far = len(self.near), len(self.far)
        at = int(state[PAIR])
        if at // far + 1 < near:
            return self._later_batches(at // far + 1 + (near - at // far - 1) // 2)
        self._narrow(self.near_rows[-1:], self.far_rows[at % far :], 0)
        if len(self.far) > 1:
            return self._other_batches((len(self.far) + 1) // 2)
        return self._later_rows()

    def _narrow(self, near: JoinSide, far: JoinSide, pair: int) -> None:
        """Be what is left with fewer rows, at a pair of batches."""
        self.near_rows, self.far_rows = near, far
        self.near, self.far = addresses(near), addresses(far)
        self.state[PAIR] = pair

    def _half_of_key(self) -> JoinedRows | None:
        """Half of the rectangle that the last piece has cut."""
        state = self.state
        outer, outer_end, start, end, at = [
            int(state[word]) for word in (CUT_OUTER, CUT_OUTER_END, CUT_START, CUT_END, CUT_AT)
        ]
        if (outer_end - outer) * (end - start) < FEWEST:
            return None
        pair, far = int(state[PAIR]), len(self.far)
        other = JoinedRows(self.near_rows[pair // far : pair // far + 1], self.far_rows[pair % far : pair % far + 1])
        other.state[:] = state
        other.state[PAIR] = 0
        other.state[SMALL_ROW] = other.state[LARGE_ROW] = BEHIND_ALL
        if outer_end - outer > 1:
            middle = outer + (outer_end - outer + 1) // 2
            state[CUT_OUTER_END] = other.state[CUT_OUTER] = middle
            other.state[CUT_AT] = start
        else:
            middle = at + (end - at + 1) // 2
            if middle >= end:
                return None
            state[CUT_END] = middle
            other.state[CUT_START] = other.state[CUT_AT] = middle
        return other

    def _later_batches(self, first: int) -> JoinedRows:
        other = JoinedRows(self.near_rows[first:], self.far_rows, self.far)
        self.near_rows = self.near_rows[:first]
        self.near = addresses(self.near_rows)
        return other

    def _other_batches(self, first: int) -> JoinedRows:
        other = JoinedRows(self.near_rows, self.far_rows[first:])
        self._narrow(self.near_rows, self.far_rows[:first], 0)
        return other

    def _later_rows(self) -> JoinedRows | None:
        """The second half of the rows of the smaller side that are left. The key of the last one before has been joined."""
        (near,), (far,) = self.near_rows, self.far_rows
        small = near if near.n <= far.n else far
        done = int(self.state[SMALL_ROW])
        if small.n - done < FEWEST:
            return None
        middle = done + (small.n - done) // 2
        rows = Chunk(small.head, small.memory)
        first, second = rows.slice(0, middle), rows.slice(middle, small.n)
        is_near = small is near
        other = JoinedRows([second] if is_near else [near], [far] if is_near else [second])
        other.state[LARGE_ROW] = self.state[LARGE_ROW]
        self._narrow([first] if is_near else [near], [far] if is_near else [first], 0)
        return other


def halves(chunks: Sequence[Chunk], rows: int) -> tuple[list[Chunk], list[Chunk]]:
    """The first `rows` rows of some chunks, and the others."""
    first: list[Chunk] = []
    second: list[Chunk] = []
    for chunk in chunks:
        cut = min(max(rows, 0), chunk.n)
        rows -= chunk.n
        if cut == chunk.n:
            first.append(chunk)
        elif cut:
            first.append(chunk.slice(0, cut))
            second.append(chunk.slice(cut, chunk.n))
        else:
            second.append(chunk)
    return first, second


T = TypeVar("T")


class TaskQueue(Protocol[T]):
    """The tasks of one worker."""

    def __len__(self) -> int: ...
    def __getitem__(self, at: int, /) -> T: ...
    def __delitem__(self, at: int, /) -> None: ...
    def append(self, task: T, /) -> None: ...


def share_tasks(tasks: Sequence[TaskQueue[T]], divided: Callable[[T], T | None], last: int = -1) -> None:
    """Give each worker without a task the last one of the worker with most, or a part of its only one. A worker reaches the task
    at `last` of its queue after all others.
    """
    for own in tasks:
        if len(own):
            continue
        most = max(tasks, key=len)
        if len(most) > 1:
            own.append(most[last])
            del most[last]
        elif len(most) and (part := divided(most[0])) is not None:
            own.append(part)
