"""ProcessMemory: what the process has taken since the engine was made, beside what the engine counts: libraries, objects, and
memory that allocators have not returned to the system. With these, `system.memory` adds up to the process's size.

Figures of the process change whenever anybody does anything. They are told when they differ enough from what was told before, so
that looking at them does not change them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable

import pyarrow as pa

from tektite.runtime import allocator

BLOCK_BYTES = 100
"""Bytes of a small object of Python on average, with its share of what its arena leaves free: 80 to 120 in engines with many
views. Larger objects are in the C library's heap.
"""
LEAST, SHARE = 4 << 20, 16
"""A figure is told anew if it differs by so many bytes, or by one part in so many of itself, whichever is more."""


class ProcessMemory:
    """The memory of the process since the engine was made."""

    def __init__(self) -> None:
        self._before = allocator.figures()
        self._blocks = sys.getallocatedblocks()
        self._told: dict[str, int] = {}

    def rows(self, counted: int, is_mapped: bool) -> Iterable[tuple[str, str, int]]:
        """Kinds, owners and bytes, given the bytes that the engine counts itself, and whether some of these are in files."""
        pool = pa.default_memory_pool()
        pool.release_unused()
        now, before = allocator.figures(), self._before
        arrow = pool.bytes_allocated()
        taken = max(now.own - before.own - arrow, 0)
        heap = min(
            now.used - before.used, taken
        )  # the room of merges under way is in nobody's memory until it is written
        room = taken - heap
        small = min(max(sys.getallocatedblocks() - self._blocks, 0) * BLOCK_BYTES, room)
        objects = small + max(heap - counted, 0)
        libraries = 0 if is_mapped else max(now.in_files - before.in_files, 0)
        # Memory that is in no file and in nobody's use is held by an allocator: the C library's, Python's or Arrow's.
        free = room - small
        yield "process", "before the engine", before.resident
        yield "libraries", "kernels and others", self._steady("libraries", libraries)
        yield "objects", "Python", self._steady("objects", objects)
        yield "arrow", pool.backend_name, self._steady("arrow", arrow)
        yield "unreturned", "allocators", self._steady("free", free)

    def _steady(self, name: str, found: int) -> int:
        told = self._told.get(name, 0)
        if abs(found - told) > max(LEAST, told // SHARE):
            told = self._told[name] = found
        return told
