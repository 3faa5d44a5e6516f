"""Keys that a node has put off to later moments. They wait there as rows do in a buffer, and are scheduled once a run is over."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tektite.dataflow.graph import Moment
from tektite.dataflow.node import Node
from tektite.trace.chunk import Chunk


class DeferredKeys:
    """Keys that a node has put off to later moments, by shard, in parts that are each sorted by key."""

    def __init__(self, node: Node, key: int) -> None:
        self.shape = (key, node.times, 0)
        self._parts: list[dict[Moment, list[Chunk]]] = [{} for _ in range(node.shards)]
        self._new: list[set[Moment]] = [set() for _ in range(node.shards)]
        self.has_new = False
        node.buffers.append(self)

    def __getstate__(self) -> dict[str, Any]:
        empty = {"_parts": [{} for _ in self._parts], "_new": [set() for _ in self._new], "has_new": False}
        return self.__dict__ | empty

    def add(self, shard: int, part: Chunk, moment: Moment) -> None:
        """Put keys off to a moment that the agenda does not know of."""
        self.put(shard, part, moment)
        self._new[shard].add(moment)
        self.has_new = True

    def unscheduled(self) -> Iterator[Moment]:
        """The moments that keys were added to since the last time."""
        self.has_new = False
        for moments in self._new:
            yield from moments
            moments.clear()

    def put(self, shard: int, chunk: Chunk, moment: Moment) -> None:
        """Let a part wait."""
        self._parts[shard].setdefault(moment, []).append(chunk)

    def take(self, shard: int, moment: Moment) -> list[Chunk]:
        """The parts of a shard that wait at a moment, which wait no longer."""
        return self._parts[shard].pop(moment, [])

    def rows(self, moment: Moment) -> int:
        """How many keys wait at a moment."""
        return sum([chunk.n for parts in self._parts for chunk in parts.get(moment, ())])

    def moments(self) -> list[Moment]:
        """The moments at which something waits."""
        return sorted({moment for parts in self._parts for moment in parts})

    def waiting(self, moment: Moment) -> list[list[Chunk]]:
        """The parts that wait at a moment, per shard."""
        return [parts.get(moment, []) for parts in self._parts]

    def gathered(self, moment: Moment, shard: int) -> list[Chunk]:
        """The parts of a shard that wait at a moment; each is sorted, but not all of them together."""
        return self._parts[shard].get(moment, [])

    def forget(self, moment: Moment) -> None:
        """Forget what waits at a moment."""
        for parts in self._parts:
            parts.pop(moment, None)

    def clear(self) -> None:
        """Forget everything."""
        for parts in self._parts:
            parts.clear()
