"""Settings of the C library's allocator, when it and Arrow's return memory to the system, and what they have not returned."""

from __future__ import annotations

import ctypes
import mmap
import sys
import time
from contextlib import suppress
from typing import Any, NamedTuple

import pyarrow as pa

BULK = 1 << 20
"""From this many rows on, an epoch frees so much memory that returning it (some milliseconds) costs little in comparison."""

_M_ARENA_MAX = -8

# The least pause between two trims: in seconds, and as a multiple of the duration of a trim.
_PAUSE = 2.0
_SHARE = 200.0


class _HeapFigures(ctypes.Structure):
    """The result of mallinfo2, in bytes: `used` of the heap, and `mapped` for large pieces."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in ("heap", "free_chunks", "fast_chunks", "maps", "mapped", "_", "fast", "used", "free", "top")
    ]


class MemoryFigures(NamedTuple):
    """The process's memory in bytes; 0 where the system does not say."""

    resident: int
    in_files: int
    """The part of it that is in mapped files: libraries, and batches of a storage."""
    used: int
    """Bytes of the C library's heap that the program uses."""

    @property
    def own(self) -> int:
        """The part that is in no file."""
        return self.resident - self.in_files


def figures() -> MemoryFigures:
    """The memory of the process now."""
    resident = in_files = used = 0
    with suppress(OSError), open("/proc/self/statm") as file:
        words = file.read().split()
        resident, in_files = int(words[1]) * mmap.PAGESIZE, int(words[2]) * mmap.PAGESIZE
    if (function := _allocators("mallinfo2")) is not None:
        function.restype = _HeapFigures
        heap = function()
        used = heap.used + heap.mapped
    return MemoryFigures(resident, in_files, used)


def trim() -> None:
    """Return unused memory to the system, where the allocators support that."""
    pa.default_memory_pool().release_unused()
    if (function := _allocators("malloc_trim")) is not None:
        function(0)


def share_between_threads() -> None:
    """Let threads reuse memory that other threads have freed. By default each thread keeps its own: a load by two workers took
    1.7 times as long, and a tenth more memory. Threads then wait for each other to allocate, which costs little, because
    kernels allocate seldom and in large pieces.
    """
    if (option := _allocators("mallopt")) is not None:
        option(_M_ARENA_MAX, 1)


def _allocators(function: str) -> Any:
    """A function of the allocator; None if it has no such function."""
    return getattr(ctypes.CDLL(None), function, None) if sys.platform.startswith("linux") else None


class MemoryTrimmer:
    """Returns unused memory to the system from time to time, so rarely that it costs little. Without that, gaps between the
    buffers of many epochs grow for a long time.
    """

    def __init__(self) -> None:
        self._next = time.monotonic() + _PAUSE

    def trim_soon(self) -> None:
        """Trim at the next call of `trim_if_due`, because much was freed at once."""
        self._next = 0.0

    def trim_if_due(self) -> None:
        """Trim if the pause is over. To be called when nobody waits."""
        now = time.monotonic()
        if now >= self._next:
            trim()
            done = time.monotonic()
            self._next = done + max(_PAUSE, _SHARE * (done - now))
