"""Deferred keys: keys that a reduction has to evaluate at later moments.

They wait as rows do in a buffer. The node schedules itself for their moments at the end of its run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from threading import Lock
from typing import Any

from tektite.dataflow.graph import Moment
from tektite.dataflow.node import Node
from tektite.trace.chunk import Chunk
from tektite.values.shared_values import shared

_NO_PARTS: dict[Moment, list[Chunk]] = {}
"""The parts of a shard that has none. Nobody adds to it."""


@cache
def _nothing(shards: int) -> tuple[dict[Moment, list[Chunk]], ...]:
    """The parts of so many shards that have none."""
    return (_NO_PARTS,) * shards


_beginning = Lock()


class DeferredKeys:
    """The deferred keys of a node by moment and shard, in parts that are each sorted by key."""

    # There is one for each of ten thousand small views, and outside of loops they stay empty.
    __slots__ = ("_new", "_parts", "has_new", "shape")

    def __init__(self, node: Node, key: int) -> None:
        self.shape = shared((key, node.times, 0))
        self._parts: Sequence[dict[Moment, list[Chunk]]] = _nothing(node.shards)
        self._new: Sequence[set[Moment]] = ()
        self.has_new = False
        node.buffers += (self,)

    def __getstate__(self) -> tuple[None, dict[str, Any]]:
        return None, {
            "_parts": (_NO_PARTS,) * len(self._parts),
            "_new": (),
            "has_new": False,
            "shape": self.shape,
        }

    def __setstate__(self, state: tuple[None, dict[str, Any]]) -> None:
        for name, value in state[1].items():
            setattr(self, name, value)
        self._parts = _nothing(len(self._parts))  # a copy of `_NO_PARTS` is another one

    def add(self, shard: int, part: Chunk, moment: Moment) -> None:
        """Defer keys to a moment that may not be scheduled yet."""
        self.put(shard, part, moment)
        self._new[shard].add(moment)
        self.has_new = True

    def unscheduled(self) -> Iterator[Moment]:
        """The moments of the keys added since the last call."""
        self.has_new = False
        for moments in self._new:
            if moments:
                yield from moments
                moments.clear()

    def _begin(self) -> None:
        """Make containers of its own. Threads that each add keys to another shard may come here at the same time."""
        with _beginning:
            if isinstance(self._parts, tuple):
                self._new = [set() for _ in self._parts]
                self._parts = [{} for _ in self._parts]

    def put(self, shard: int, chunk: Chunk, moment: Moment) -> None:
        """Add a part whose moment is scheduled."""
        if isinstance(self._parts, tuple):
            self._begin()
        self._parts[shard].setdefault(moment, []).append(chunk)

    def take(self, shard: int, moment: Moment) -> list[Chunk]:
        """Remove and return the parts of a shard and moment."""
        return self._parts[shard].pop(moment, [])

    def rows(self, moment: Moment) -> int:
        """The number of keys of a moment."""
        rows = 0
        for parts in self._parts:
            for chunk in parts.get(moment, ()):
                rows += chunk.n
        return rows

    @property
    def bytes(self) -> int:
        """About what its keys take."""
        return sum([8 * sum(self.shape) * self.rows(moment) for moment in self.moments()])

    def moments(self) -> list[Moment]:
        """The moments for which there are keys, in order."""
        return sorted({moment for parts in self._parts for moment in parts})

    def waiting(self, moment: Moment) -> list[list[Chunk]]:
        """The parts of a moment, by shard."""
        return [parts.get(moment, []) for parts in self._parts]

    def gathered(self, moment: Moment, shard: int) -> list[Chunk]:
        """The parts of a moment and shard. Each part is sorted by itself."""
        return self._parts[shard].get(moment, [])

    def forget(self, moment: Moment) -> None:
        """Drop the keys of a moment."""
        for parts in self._parts:
            parts.pop(moment, None)

    def clear(self) -> None:
        """Drop all keys."""
        self._parts = _nothing(len(self._parts))
